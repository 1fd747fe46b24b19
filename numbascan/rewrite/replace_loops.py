"""Loops replaced by other loops: what passes over loops do at their beginning and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..ir.graph import substitute, toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import ITEM, Node, new_input
from ..ir.ports import LoopSpec
from ..ops.card import PLACE


def opened(loop: Node) -> LoopSpec:
    """The ports of a loop around a step on inputs of its own: its nodes are no other graph's, so that both sides can be told apart."""
    spec = loop_spec(loop)
    fresh = tuple(new_input(node.type, node.name) for node in spec.inner_inputs())
    return spec.with_inner(fresh, substitute(spec.inner_outputs(), dict(zip(spec.inner_inputs(), fresh, strict=True))))


@contextmanager
def placed(node: Node) -> Iterator[None]:
    """Nodes made inside belong to the user's line of `node`."""
    outer, PLACE.origin = PLACE.origin, node.origin
    try:
        yield
    finally:
        PLACE.origin = outer


def with_loops(outputs: Sequence[Node], change: Callable[[Node], Sequence[Node] | None]) -> tuple[Node, ...]:
    """`outputs` with the results of each loop replaced by those that `change` gives for it; None keeps them."""
    done: dict[Node, Node] = {}
    results: dict[Node, Sequence[Node]] = {}
    for node in toposort(outputs):
        if node.op is ITEM and node.inputs[0] in results:
            done[node] = _result(results[node.inputs[0]], node)
            continue
        inputs = tuple(done[parent] for parent in node.inputs)
        built = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        built.name, built.origin = built.name or node.name, built.origin or node.origin
        done[node] = built
        found = change(built) if built.op is SCAN else None
        if found is not None:
            results[node] = found
            if len(node.types) == 1:
                done[node] = found[0]
    return tuple(done[output] for output in outputs)


def with_results(outputs: Sequence[Node], results: Mapping[Node, Sequence[Node]], others: Mapping[Node, Node]) -> tuple[Node, ...]:
    """`outputs` with the results of loops, and some other nodes, replaced. `results`: for a loop, what stands for each of its results."""
    done: dict[Node, Node] = dict(others)
    for node in toposort(outputs, stop=others):
        if node in done:
            continue
        if node in results:
            if len(node.types) == 1:
                done[node] = results[node][0]
            continue
        if node.op is ITEM and node.inputs[0] in results:
            done[node] = _result(results[node.inputs[0]], node)
            continue
        inputs = tuple(done[parent] for parent in node.inputs)
        done[node] = node if inputs == node.inputs else node.op.rebuild(node, inputs)
    return tuple(done[output] for output in outputs)


def reads_few_rows(reader: Node) -> bool:
    """Does a node that reads rows ask for the last ones, or every k-th one: `x[-1, …]`, `x[-k:, …]`, `x[s::k, …]`?"""
    spec = reader.attr("spec") if reader.op.name == "index" and len(reader.inputs) == 1 else None
    first = spec[0] if isinstance(spec, tuple) and spec else None
    if not isinstance(first, tuple):
        return first == -1
    start, stop, step = first
    is_end = isinstance(start, int) and start < 0 and step in (None, 1)
    return stop is None and (is_end or (isinstance(step, int) and step > 1))


def _result(results: Sequence[Node], item: Node) -> Node:
    """What stands for one of several results, under its name."""
    index = item.attr("index")
    assert isinstance(index, int)
    found = results[index]
    found.name = found.name or item.name
    return found
