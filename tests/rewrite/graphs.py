"""Graphs of what a test writes, before and after rewrites; and functions and random programs that the oracle computes as rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.compile as compiling
from numbascan.grad.mit_mots import plain_graphs
from numbascan.ir.check import check
from numbascan.ir.graph import Graph, close, toposort
from numbascan.ir.loop_node import SCAN, loop_spec
from numbascan.ir.node import ARG, INPUT, Node
from numbascan.ir.ports import LoopSpec
from numbascan.rewrite import pipeline
from numbascan.rewrite.pipeline import PASSES, Pass


def graph_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> Graph:
    """The closed graph of variables, without what only derivatives ask for."""
    graph = close([variable.node for variable in inputs], [output.node for output in outputs])
    return Graph(graph.inputs, plain_graphs(graph.outputs))


def after(rewrite: Pass, graph: Graph) -> Graph:
    """The graph after one rewrite, found legal."""
    found = Graph(graph.inputs, rewrite(graph.outputs))
    check(found)
    return found


def loops(graph: Graph) -> list[LoopSpec]:
    """The loops of a graph, those inside others left out."""
    return [loop_spec(node) for node in toposort(graph.outputs) if node.op is SCAN]


def ops(outputs: Sequence[Node]) -> list[str]:
    """The names of the ops behind `outputs`, in their order."""
    return [node.op.name for node in toposort(outputs) if node.inputs]


def ops_in(spec: LoopSpec) -> list[str]:
    """The names of the ops in a step."""
    return ops(spec.inner_outputs())


@contextmanager
def rewritten_for_the_oracle(rewrites: Sequence[Pass] = PASSES) -> Iterator[list[str]]:
    """mode="python" computes rewritten graphs, each found legal. Gives the names of the rewrites that changed something, as they do."""
    changed: list[str] = []

    def watched(rewrite: Pass) -> Pass:
        def checked(outputs: Sequence[Node]) -> tuple[Node, ...]:
            found = rewrite(outputs)
            if found != tuple(outputs):
                changed.append(rewrite.__name__)
                leaves = [node for node in toposort(found) if node.op in (INPUT, ARG)]
                check(Graph(tuple(leaves), found))
            return found

        checked.__name__ = rewrite.__name__
        return checked

    plain = compiling.interpret

    def interpret(graph: Graph, arguments: Sequence[Any], **how: Any) -> list[Any]:
        return plain(pipeline.rewritten(Graph(graph.inputs, plain_graphs(graph.outputs))), arguments, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "PASSES", tuple(map(watched, rewrites)))
        patch.setattr(compiling, "interpret", interpret)
        yield changed


def assert_same(f: Callable[..., Any], *arguments: Any, rewrite: Pass, compiled: bool = True, rtol: float = 1e-11) -> None:
    """Results of `f` by the oracle: from its graph as it stands, after `rewrite` alone, after all, and after all others; compiled with
    all and with none. `rewrite` must change the graph.
    """
    wanted = _results(f, "python", arguments)
    seen: set[str] = set()
    for rewrites in ([rewrite], list(PASSES), [other for other in PASSES if other is not rewrite]):
        with rewritten_for_the_oracle(rewrites) as changed:
            _assert_close(_results(f, "python", arguments), wanted, rtol, f"with {[one.__name__ for one in rewrites]}")
        seen.update(changed)
    assert rewrite.__name__ in seen
    for without in ((), tuple(one.__name__ for one in PASSES)) if compiled else ():
        _assert_close(_results(f, ns.Mode(without=without), arguments), wanted, rtol, f"compiled without {without}")


def _results(f: Callable[..., Any], mode: Any, arguments: Sequence[Any]) -> list[Any]:
    found = ns.jit(f, mode=mode)(*arguments)
    return list(found) if isinstance(found, tuple) else [found]


def _assert_close(found: Sequence[Any], wanted: Sequence[Any], rtol: float, what: str) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b), what
        assert np.asarray(a).dtype == np.asarray(b).dtype, what
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, float(np.abs(b).max(initial=0))), err_msg=what)
