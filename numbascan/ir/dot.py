"""A graph as DOT text, the language of Graphviz: the steps of loops and the branches of choices in boxes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .graph import Graph
from .inner_graphs import bodies
from .loop_node import SCAN, loop_spec
from .node import CONSTANT, ITEM, Node
from .ports import LoopSpec
from .show import NodeNames, input_kind, operation, read_by


def dot(graph: Graph) -> str:
    """The graph in DOT.

    >>> from numbascan.ir.graph import Graph
    >>> from numbascan.ir.node import new_input
    >>> from numbascan.types import TensorType
    >>> x = new_input(TensorType("float64"), "x")
    >>> print(dot(Graph((x,), (x,))))
    digraph {
        node [fontname="monospace", shape=box]
        "0" [label="input x: float64[]", shape=ellipse]
        "result 0" [shape=plaintext]
        "0" -> "result 0"
    }
    """
    ids = Ids(graph, "")
    lines = ['node [fontname="monospace", shape=box]', *_nodes(graph, ids)]
    for k, node in enumerate(graph.outputs):
        lines += [f'"result {k}" [shape=plaintext]', _edge(ids[node], f"result {k}")]
    return "\n".join(["digraph {", *(f"    {line}" for line in lines), "}"])


class Ids:
    """Names for DOT: positions in the graph, behind those of the graphs around it."""

    def __init__(self, graph: Graph, prefix: str) -> None:
        self.names = NodeNames(graph)
        self._ids = {node: f"{prefix}{k}" for k, node in enumerate(self.names.order)}

    def __getitem__(self, node: Node) -> str:
        return self._ids[node]


def _nodes(graph: Graph, ids: Ids) -> Iterator[str]:
    leaves = {*graph.inputs, *ids.names.strays}
    for node in ids.names.order:
        if node in leaves:
            yield _shape(ids[node], f"{input_kind(node)} {ids.names[node]}: {node.type}", "ellipse")
            continue
        types = ", ".join(map(str, node.types))
        text = operation(node, ids.names) if node.op in (CONSTANT, ITEM, SCAN) else node.op.name
        yield _shape(ids[node], text if node.op is CONSTANT else f"{text}: {types}", "plaintext" if node.op is CONSTANT else "box")
        for k, body in enumerate(bodies(node)):
            yield from _cluster(node, body, ids, f"{ids[node]}.{k}.")
        if not bodies(node):
            yield from (_edge(ids[parent], ids[node]) for parent in node.inputs)


def _cluster(node: Node, body: Graph, outer: Ids, prefix: str) -> Iterator[str]:
    """The body of a node in a box, with the edges that lead into it and out of it."""
    inner = Ids(body, prefix)
    yield f'subgraph "cluster {prefix}" {{'
    yield from (f"    {line}" for line in _nodes(body, inner))
    yield "}"
    sources: Sequence[tuple[Node, Node, str]]
    if node.op is SCAN:
        yield _edge(outer[node.inputs[0]], outer[node], "n_steps")
        sources = list(_feeds(loop_spec(node)))
    else:
        operands = read_by(body, node)
        if len(operands) < len(node.inputs):
            yield _edge(outer[node.inputs[0]], outer[node], "condition")
        sources = [(a, b, "") for a, b in zip(operands, body.inputs, strict=True)]
    for source, read, label in sources:
        yield _edge(outer[source], inner[read], label)
    for write in body.outputs:
        yield _edge(inner[write], outer[node])


def _feeds(spec: LoopSpec) -> Iterator[tuple[Node, Node, str]]:
    """Which outer value feeds which inner one, and how."""
    for seq in spec.seqs:
        yield from ((seq.outer, read, f"row t{tap:+d}" if tap else "row t") for tap, read in zip(seq.taps, seq.reads, strict=True))
    for mit_mot in spec.mit_mots:
        yield from ((mit_mot.outer, read, f"t{tap:+d}") for tap, read in zip(mit_mot.in_taps, mit_mot.reads, strict=True))
    for state in spec.states:
        yield from ((state.initial, read, f"at first, then t{tap}") for tap, read in zip(state.taps, state.reads, strict=True))
    for carry in spec.carries:
        yield carry.shared, carry.read, "at first"
    for non_seq in spec.non_seqs:
        yield non_seq.outer, non_seq.read, "always"


def _shape(name: str, label: str, shape: str) -> str:
    return f'"{name}" [label="{_quoted(label)}"]' if shape == "box" else f'"{name}" [label="{_quoted(label)}", shape={shape}]'


def _edge(source: str, target: str, label: str = "") -> str:
    return f'"{source}" -> "{target}"' + (f' [label="{_quoted(label)}"]' if label else "")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
