"""Graphs inside nodes: the step of a loop, the branches of a choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .graph import Graph, toposort
from .loop_node import Body
from .node import Node


def bodies(node: Node) -> tuple[Graph, ...]:
    """The closed graphs that a node holds, empty for most."""
    graphs: list[Graph] = []
    for _, value in node.attrs:
        if isinstance(value, Body):
            graphs.append(value.graph)
        elif isinstance(value, tuple):
            graphs.extend(part for part in value if isinstance(part, Graph))
    return tuple(graphs)


def all_nodes(outputs: Iterable[Node]) -> Iterator[Node]:
    """Every node behind `outputs` and, after each node that holds graphs, every node in them."""
    for node in toposort(outputs):
        yield node
        for body in bodies(node):
            yield from all_nodes(body.outputs)
