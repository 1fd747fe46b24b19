"""Where states live shows in the generated code: no more memory than what is read needs, nothing taken inside a loop."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from structure_loops import loop_of_every_kind

import numbascan as ns
from numbascan.ir.graph import Graph
from numbascan.plan.cpu import CPU
from numbascan.plan.plan import plan


def source(step: Any, **arguments: Any) -> str:
    return ns.scan(step).lower(**arguments).source()


def inside_loop(text: str) -> list[str]:
    """The lines of the loop over time."""
    lines = iter(text.split("    for t in range", 1)[1].splitlines()[1:])
    return list(itertools.takewhile(lambda line: line.startswith("        "), lines))


def test_a_scalar_state_lives_in_a_local() -> None:
    text = source(lambda x, s: s + x, sequences=np.arange(20.0), outputs_info=0.0)
    assert text.count("np.empty") == 1  # the result
    assert [line.strip() for line in inside_loop(text)][:-2] == ["s_2 += x[t]", "s_rows[t] = s_2"]


def test_a_wide_state_read_at_the_end_alone_takes_one_row_where_it_may_be_updated_in_place() -> None:
    text = source(lambda p, a: p * a, outputs_info=np.ones(40), non_sequences=np.ones(40), n_steps=9, keep_last=1)
    assert text.count("np.empty") == 1
    assert "np.empty(p.shape[0])" in text


def test_a_wide_state_that_reads_its_neighbours_takes_two_rows() -> None:
    text = source(lambda u: u[::-1] * 0.5, outputs_info=np.ones(40), n_steps=9, keep_last=1)
    assert "np.empty((2, u.shape[0]))" in text


def test_a_whole_result_holds_the_initial_rows_too() -> None:
    text = source(lambda u: np.tanh(u), outputs_info=np.ones(40), n_steps=9)
    assert "np.empty((n_steps + 1, u.shape[0]))" in text


@pytest.mark.parametrize("keep", [{}, {"keep_last": 1}, {"keep_last": 3}, {"save_every": 4}])
def test_no_memory_is_taken_inside_the_loop(keep: dict[str, int]) -> None:
    def step(x: Any, h: Any, g: Any, W: Any) -> Any:
        new = np.tanh(h @ W + x)
        return new, np.where(new > 0, new, g[::-1]), np.sort(new).sum()

    text = source(step, sequences=np.ones((5, 30)), outputs_info=[np.zeros(30), np.ones(30), None], non_sequences=np.ones((30, 30)), **keep)
    assert [line for line in inside_loop(text) if "np.empty" in line] == []


@pytest.mark.parametrize("keep", [{"keep_last": 1}, {"keep_last": 7}])
def test_the_end_of_a_long_run_costs_no_memory_that_grows(keep: dict[str, int]) -> None:
    walk = ns.scan(lambda u: u[::-1] * 0.999, **keep)
    short = walk.lower(outputs_info=np.ones(40), n_steps=10).memory()
    long = walk.lower(outputs_info=np.ones(40), n_steps=10_000_000).memory()
    assert (short.total, short.per_step) == (long.total, 0)


def test_a_loop_with_buffers_of_cotangents_is_refused_by_the_plan() -> None:
    loop = loop_of_every_kind()
    inputs = (loop.n, loop.w, loop.a0, loop.x, loop.z, loop.m, loop.f0, loop.s, loop.c)
    graph = Graph(tuple(variable.node for variable in inputs), (loop.results[1].node,))
    with pytest.raises(AssertionError, match="buffers of cotangents become states before a loop is planned"):
        plan(graph, CPU, "planned")


def test_the_code_of_a_gradient_is_as_long_as_the_taps_are_many():
    def lines(n_taps):
        def cost(xs):
            start = {"initial": np.zeros(n_taps), "taps": list(range(-n_taps, 0))}
            path = ns.scan(lambda x, *rows: np.tanh(x + sum((k + 1) * row for k, row in enumerate(rows))), xs, start, return_updates=False)
            return (path**2).sum()

        return len(ns.grad(cost).lower(np.ones(30)).source().splitlines())

    assert lines(14) - lines(11) == lines(11) - lines(8)
