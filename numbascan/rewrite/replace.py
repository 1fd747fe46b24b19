"""Loops replaced by other loops: what every pass over loops does at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import toposort
from ..ir.node import ITEM, Node


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
            index = node.attr("index")
            assert isinstance(index, int)
            done[node] = results[node.inputs[0]][index]
            done[node].name = done[node].name or node.name
            continue
        inputs = tuple(done[parent] for parent in node.inputs)
        done[node] = node if inputs == node.inputs else node.op.rebuild(node, inputs)
    return tuple(done[output] for output in outputs)
