"""Graphs as flat lists, for pickling: graphs are deep, and pickle recurses. Registered with `copyreg`, which pickle and copy ask."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence

from ..types import TensorType
from .graph import Graph, toposort
from .loop_node import Body
from .node import Attrs, Node, Op, Origin, arg, make
from .ports import LoopSpec

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
    """The last node of a list. All nodes count as held: users may hold variables of any of them."""
    nodes = from_records(records)
    for node in nodes:
        node.is_held = True
    return nodes[-1]


def restore_graph(records: Sequence[Record], inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """The graph whose inputs and outputs stand at these places of a list."""
    nodes = from_records(records)
    return Graph(tuple(nodes[place] for place in inputs), tuple(nodes[place] for place in outputs))


def reduce_node(node: Node) -> tuple[Callable[..., Node], tuple[list[Record]]]:
    """What pickle stores of a node."""
    return restore_node, (as_records([node]),)


def reduce_graph(graph: Graph) -> tuple[Callable[..., Graph], tuple[list[Record], list[int], list[int]]]:
    """What pickle stores of a graph."""
    places = {node: place for place, node in enumerate(toposort((*graph.inputs, *graph.outputs)))}
    records = as_records((*graph.inputs, *graph.outputs))
    return restore_graph, (records, [places[node] for node in graph.inputs], [places[node] for node in graph.outputs])


def restore_body(graph: Graph, ports: LoopSpec, layout: tuple[object, ...]) -> Body:
    """The body of a loop, its ports put around the graph again."""
    return Body(graph, ports.with_inner(graph.inputs, graph.outputs), layout)


def reduce_body(body: Body) -> tuple[Callable[..., Body], tuple[Graph, LoopSpec, tuple[object, ...]]]:
    """What pickle stores of the body of a loop: not the graph around it."""
    outer, reads, writes = map(_numbered, (body.ports.outer_inputs(), body.graph.inputs, body.graph.outputs))
    return restore_body, (body.graph, body.ports.with_outer(outer).with_inner(reads, writes), body.layout)


def _numbered(nodes: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(arg(k, node.type, node.name) for k, node in enumerate(nodes))


copyreg.pickle(Node, reduce_node)
copyreg.pickle(Graph, reduce_graph)
copyreg.pickle(Body, reduce_body)
