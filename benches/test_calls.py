"""What a call takes by itself, and what it takes to write the code of a first one: `pytest benches/test_calls.py`."""

from __future__ import annotations

import ours
import pytest
from data import CALL, GRADIENTS, inputs

import numbascan as ns
from numbascan.compile import lean_graph, planned
from numbascan.modes import Mode


def test_call_on_two_small_arrays(benchmark):
    run = ours.call(CALL, inputs(CALL))
    assert len(run()) == 2
    benchmark(run)


@pytest.mark.parametrize("name", GRADIENTS)
def test_from_the_function_to_the_text_of_its_gradient(benchmark, name):
    """Traced, differentiated, rewritten, planned and written; what Numba does then is `benches/compile.py`'s."""
    arguments = inputs(name)

    def written():
        graph = ns.jit(ns.grad(ours.cost(name), GRADIENTS[name].argnums), mode="python").lower(*arguments).graph
        return planned(lean_graph(graph, Mode()), Mode(), "gradient", (False,) * len(graph.outputs))[1]

    assert "def gradient(" in written()
    benchmark.pedantic(written, rounds=5)
