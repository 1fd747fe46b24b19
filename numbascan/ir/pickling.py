"""Graphs as flat lists, for pickling: graphs are deep, and pickle recurses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..types import TensorType
from .graph import Graph, toposort
from .node import Attrs, Node, Op, Origin, make

if TYPE_CHECKING:
    from .ports import Body, LoopSpec

Record = tuple[Op, tuple[int, ...], tuple[TensorType, ...], Attrs, str | None, Origin | None]


def as_records(outputs: Sequence[Node]) -> list[Record]:
    """Every node behind `outputs`, inputs before users; inputs are given by their place in the list."""
    places: dict[Node, int] = {}
    records: list[Record] = []
    for place, node in enumerate(toposort(outputs)):
        places[node] = place
        records.append((node.op, tuple(places[parent] for parent in node.inputs), node.types, node.attrs, node.name, node.origin))
    return records


def from_records(records: Sequence[Record]) -> list[Node]:
    """The nodes of `as_records`, interned again."""
    nodes: list[Node] = []
    for op, inputs, types, attrs, name, origin in records:
        nodes.append(make(op, tuple(nodes[place] for place in inputs), types, attrs, name, origin))
    return nodes


def restore_node(records: Sequence[Record]) -> Node:
    """The last node of a list. All of them may be behind variables that users hold."""
    nodes = from_records(records)
    for node in nodes:
        node.is_held = True
    return nodes[-1]


def restore_graph(records: Sequence[Record], inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """The graph whose inputs and outputs stand at these places of a list."""
    nodes = from_records(records)
    return Graph(tuple(nodes[place] for place in inputs), tuple(nodes[place] for place in outputs))


def reduce_node(node: Node) -> tuple[Callable[..., Node], tuple[list[Record]]]:
    """What Node.__reduce__ gives."""
    return restore_node, (as_records([node]),)


def reduce_graph(graph: Graph) -> tuple[Callable[..., Graph], tuple[list[Record], list[int], list[int]]]:
    """What Graph.__reduce__ gives."""
    places = {node: place for place, node in enumerate(toposort((*graph.inputs, *graph.outputs)))}
    records = as_records((*graph.inputs, *graph.outputs))
    return restore_graph, (records, [places[node] for node in graph.inputs], [places[node] for node in graph.outputs])


def restore_body(graph: Graph, ports: LoopSpec, layout: tuple[object, ...]) -> Body:
    """The body of a loop, its ports put around the graph again."""
    from .ports import Body

    return Body(graph, ports.with_inner(graph.inputs, graph.outputs), layout)
