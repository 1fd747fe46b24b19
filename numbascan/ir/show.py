"""A graph as text, one line per node: `name: type = op(operands, attributes)`, graphs inside nodes (the step of a loop) indented."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from .graph import Graph, toposort
from .inner_graphs import bodies
from .loop_node import SCAN, loop_spec
from .node import ARG, CONSTANT, INPUT, ITEM, Data, Node, constant_value
from .ports import LoopSpec

INLINE_LIMIT = 4  # elements up to which a constant is written where it is read
INDENT = "    "


class GraphText(str):
    """A text that is its own repr, so that a prompt or a notebook prints it line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show(graph: Graph) -> GraphText:
    """The graph as text.

    >>> from numbascan.ir.graph import Graph
    >>> from numbascan.ir.node import constant, new_input
    >>> from numbascan.types import TensorType
    >>> x = new_input(TensorType("float64", (None,)), "x")
    >>> show(Graph((x,), (x, constant(2.0))))
    input x: float64[?]
    return x, 2.0
    """
    names = NodeNames(graph)
    inputs = [f"{input_kind(node)} {names[node]}: {node.type}" for node in graph.inputs]
    inputs += [f"{input_kind(node)} {names[node]}: {node.type}" for node in names.strays]
    results = ", ".join(names[node] for node in graph.outputs)
    return GraphText("\n".join([*inputs, *_lines(graph, names), f"return {results}"]))


setattr(Graph, "__str__", show)  # noqa: B010 - a graph is below its text


def input_kind(node: Node) -> str:
    """`shared` for a leaf with a container, `input` for any other."""
    return "shared" if "container" in node.params else "input"


class NodeNames:
    """A name for every node of a graph: the user's where there is one, else v0, v1, …; small constants by their value."""

    def __init__(self, graph: Graph) -> None:
        order = toposort((*graph.inputs, *graph.outputs), stop=graph.inputs)
        self.order = order
        self.strays = [node for node in order if node.op in (INPUT, ARG) and node not in graph.inputs]
        self._used: set[str] = set()
        self._numbers = itertools.count()
        self._names = {node: self._name(node) for node in order}

    def __getitem__(self, node: Node) -> str:
        return self._names[node]

    def _name(self, node: Node) -> str:
        if node.op is CONSTANT and node.name is None and (node.type.size or 0) <= INLINE_LIMIT:
            return number(node)
        base = node.name or f"v{next(self._numbers)}"
        name, copies = base, 1
        while name in self._used:
            copies += 1
            name = f"{base}_{copies}"
        self._used.add(name)
        return name


def number(node: Node) -> str:
    """A constant as it is written: the number alone where its dtype is the usual one."""
    value = constant_value(node)
    assert value is not None
    text = repr(value.tolist())
    return text if node.type.weak or node.type.dtype in ("bool", "int64", "float64") else f"{node.type.dtype}({text})"


def _lines(graph: Graph, names: NodeNames) -> Iterator[str]:
    inputs = set(graph.inputs)
    for node in names.order:
        if node in inputs or node in names.strays or not _has_line(node):
            continue
        yield f"{names[node]}: {', '.join(map(str, node.types))} = {operation(node, names)}"
        for line in _inside(node, names):
            yield INDENT + line


def _has_line(node: Node) -> bool:
    return node.op is not CONSTANT or node.name is not None or (node.type.size or 0) > INLINE_LIMIT


def operation(node: Node, names: NodeNames) -> str:
    """What a node does, in one line."""
    if node.op is CONSTANT:
        return f"constant({node.type})" if (node.type.size or 0) > INLINE_LIMIT else number(node)
    if node.op is ITEM:
        return f"{names[node.inputs[0]]}[{node.attr('index')}]"
    if node.op is SCAN:
        spec = loop_spec(node)
        notes = [f"n_steps={names[spec.n_steps]}"]
        notes += [f"truncate_gradient={spec.truncate_gradient}"] if spec.truncate_gradient != -1 else []
        return f"scan {spec.name!r} ({', '.join(notes)})"
    operands = [names[parent] for parent in node.inputs]
    return f"{node.op.name}({', '.join(operands + list(attributes(node)))})"


def attributes(node: Node) -> Iterator[str]:
    """The fixed attributes of a node as keyword arguments, graphs and nodes left out."""
    for key, value in node.attrs:
        if isinstance(value, tuple) and any(isinstance(part, (Graph, Node)) for part in value):
            continue
        if isinstance(value, Data):
            value = value.array.shape
        yield f"{key}={getattr(value, '__name__', None) or repr(value)}"


def _inside(node: Node, names: NodeNames) -> Iterator[str]:
    if node.op is SCAN:
        name, count = names[node], len(node.types)
        results = [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
        yield from _loop(loop_spec(node), bodies(node)[0], names, results)
        return
    graphs = bodies(node)
    for label, body in zip(("where it holds", "else") if len(graphs) == 2 else ("computes",), graphs, strict=False):
        inner = NodeNames(body)
        bound = ", ".join(f"{inner[a]} = {names[b]}" for a, b in zip(body.inputs, read_by(body, node), strict=True))
        yield f"{label}: {bound}" if bound else f"{label}:"
        yield from (INDENT + line for line in _lines(body, inner))
        yield f"{INDENT}return {', '.join(inner[output] for output in body.outputs)}"


def read_by(body: Graph, node: Node) -> tuple[Node, ...]:
    """The operands of a node that its inner graph `body` reads: the last ones, after the condition of a choice."""
    return node.inputs[len(node.inputs) - len(body.inputs) :]


def _loop(spec: LoopSpec, body: Graph, outer: NodeNames, results: Sequence[str]) -> Iterator[str]:
    inner = NodeNames(body)
    yield from _reads(spec, inner, outer, results)
    yield from _lines(body, inner)
    yield from _writes(spec, inner, results)


def _reads(spec: LoopSpec, inner: NodeNames, outer: NodeNames, results: Sequence[str]) -> Iterator[str]:
    """One line per value that the step is given."""
    for seq in spec.seqs:
        for tap, read in zip(seq.taps, seq.reads, strict=True):
            yield f"seq {inner[read]}: {read.type} = {outer[seq.outer]}[{row(tap)}]"
    result = iter(results)
    for mit_mot in spec.mit_mots:
        name = next(result)
        for tap, read in zip(mit_mot.in_taps, mit_mot.reads, strict=True):
            yield f"mit_mot {inner[read]}: {read.type} = {name}[{row(tap)}], at first {outer[mit_mot.outer]}"
    for state in spec.states:
        name = next(result)
        for tap, read in zip(state.taps, state.reads, strict=True):
            yield f"state {inner[read]}: {read.type} = {name}[{row(tap)}], at first {outer[state.initial]}"
    for carry in spec.carries:
        yield f"shared {inner[carry.read]}: {carry.read.type} = at first {outer[carry.shared]}"
    for non_seq in spec.non_seqs:
        yield f"non_seq {inner[non_seq.read]}: {non_seq.read.type} = {outer[non_seq.outer]}"


def _writes(spec: LoopSpec, inner: NodeNames, results: Sequence[str]) -> Iterator[str]:
    """One line per value that the step gives."""
    result = iter(results)
    for mit_mot in spec.mit_mots:
        name = next(result)
        for tap, write in zip(mit_mot.out_taps, mit_mot.writes, strict=True):
            yield f"write {name}[{row(tap)}] = {inner[write]}"
    for state in spec.states:
        yield f"write {next(result)}[t] = {inner[state.write]}"
    for trace in spec.traces:
        yield f"write {next(result)}[t] = {inner[trace.write]}"
    for carry in spec.carries:
        yield f"write {next(result)} = {inner[carry.write]}, next {inner[carry.read]}"
    if spec.until is not None:
        yield f"until {inner[spec.until]}"


def row(tap: int) -> str:
    """The row that a tap reads at step t."""
    return "t" if tap == 0 else f"t{tap:+d}"
