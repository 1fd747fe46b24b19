"""A graph as DOT text, the language of Graphviz, for people: names, shapes, and the step of each loop in a box of its own.

What says nothing is left out: small constants are written into the nodes that read them, casts to a wider dtype have no node, and non_seqs
are read straight from outside. A dashed edge leads to what the next step reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .graph import Graph, toposort
from .inner_graphs import bodies
from .loop_node import SCAN, loop_spec
from .node import ARG, CONSTANT, HIDDEN, INPUT, ITEM, Node, constant_value
from .ports import Carry, LoopSpec, MitMot, State, Trace
from .show import INLINE_LIMIT, attributes, input_kind, number, read_by, row

INPUT_LOOK, READ_LOOK = 'shape=ellipse, style=filled, fillcolor="#dcebf7"', 'shape=ellipse, style=filled, fillcolor="#fdf0d0"'
RESULT_LOOK = 'style="filled,bold", fillcolor="#e3f2df"'
BOX_LOOK = 'labeljust=l; fontname="Helvetica"; fontsize=12; style=filled; color="#999999"; fillcolor="#f7f7f7"'
HEAD = (
    'node [fontname="Helvetica", fontsize=11, shape=box, margin="0.1,0.04", height=0.3]',
    'edge [fontname="Helvetica", fontsize=9, color="#555555"]',
)
SIGNS = {
    **{"add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "floor_divide": "//", "remainder": "%", "power": "**"},
    **{"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="},
}
NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "floor_divide": 1}  # operands that change no integer
LONGEST = 48  # letters shown of an operation's attributes


def dot(graph: Graph) -> str:
    """The graph in DOT.

    >>> from numbascan.ir.graph import Graph
    >>> from numbascan.ir.node import new_input
    >>> from numbascan.types import TensorType
    >>> x = new_input(TensorType("float64"), "x")
    >>> print("\\n".join(dot(Graph((x,), (x,))).splitlines()[3:]))
        "0" [label="x\\nfloat64[]", shape=ellipse, style=filled, fillcolor="#dcebf7"]
        "result" [shape=plaintext]
        "0" -> "result"
    }
    """
    drawing = Drawing()
    lines = [*HEAD, *drawing.values(graph, {})]
    for k, node in enumerate(graph.outputs):
        name = "result" if len(graph.outputs) == 1 else f"result {k}"
        value = drawing.place(node)
        lines += [f'"{name}" [shape=plaintext]' if value.id else _shape(name, (f"{name}: {value.text}",), "shape=plaintext")]
        drawing.edge(value, name)
    return "\n".join(["digraph {", *(f"    {line}" for line in [*lines, *drawing.edges]), "}"])


@dataclass(frozen=True)
class Place:
    """A value in the picture: its node (None where it is written into its readers) and its text in operations."""

    id: str | None
    text: str


Scope = dict[Node, Place]


class Drawing:
    """The names and edges so far, and the places of the current graph's values."""

    def __init__(self) -> None:
        self.edges: list[str] = []  # written after all boxes: Graphviz puts a node into the box that names it
        self._ids = map(str, itertools.count())
        self._numbers = itertools.count()
        self._used: set[str] = set()
        self._scopes: list[Scope] = []
        self._items: set[tuple[Node, int]] = set()  # (loop, index) of the results that are read
        self._results: dict[tuple[str, int], Place] = {}

    def place(self, node: Node) -> Place:
        """The place of a value of the current graph."""
        return self._scopes[-1][shown(node)]

    def edge(self, source: Place, target: str | None, label: str = "", look: str = "") -> None:
        """Adds an edge from a value, unless that is written into its readers."""
        if source.id is not None:
            said = ", ".join(filter(None, (f'label="{_quoted(label)}"' if label else "", look)))
            self.edges.append(f'"{source.id}" -> "{target}"' + (f" [{said}]" if said else ""))

    def values(self, graph: Graph, known: Scope) -> Iterator[str]:
        """The nodes of a graph's values, given the places of its inputs. The graph stays the current one until its scope is popped."""
        self._scopes.append({**known})
        order = _order(graph)
        self._items |= {(node.inputs[0], _index(node)) for node in order if node.op is ITEM}
        for node in order:
            if node not in self._scopes[-1]:
                yield from self._value(node, self._scopes[-1])

    def _value(self, node: Node, scope: Scope) -> Iterator[str]:
        if node.op is CONSTANT and (node.type.size or 0) <= INLINE_LIMIT and node.name is None:
            scope[node] = Place(None, number(node))
        elif node.op is ITEM and node.inputs[0].op is SCAN:
            loop = self.place(node.inputs[0])
            assert loop.id is not None
            scope[node] = self._results[loop.id, _index(node)]
        elif node.op is SCAN:
            yield from self._loop(node)
        elif bodies(node):
            yield from self._choice(node)
        elif node.inputs:
            yield self._operation(node)
        else:
            scope[node] = place = self._new(node.name)
            is_leaf = node.op in (INPUT, ARG)
            kind = "shared " if is_leaf and input_kind(node) == "shared" else ""
            made = "" if is_leaf else " = constant" if node.op is CONSTANT else f" = {node.op.name}()"
            yield _shape(place.id, (f"{kind}{place.text}{made}", str(node.type)), INPUT_LOOK)

    def _operation(self, node: Node) -> str:
        """The node of an operation."""
        operands = [self.place(parent) for parent in node.inputs]
        self._scopes[-1][node] = place = self._new(node.name)
        for operand in dict.fromkeys(operands):
            self.edge(operand, place.id)
        text = _as_written(node, [operand.text for operand in operands])
        return _shape(place.id, (f"{place.text} = {text}", ", ".join(map(str, node.types))))

    def _choice(self, node: Node) -> Iterator[str]:
        """A node that holds graphs, each in a box: the branches of a choice, or what a function computes."""
        graphs, operands = bodies(node), {parent: self.place(parent) for parent in node.inputs}
        self._scopes[-1][node] = place = self._new(node.name)
        for label, body in zip(("where it holds", "else") if len(graphs) == 2 else ("computes",) * len(graphs), graphs, strict=True):
            known = {read: operands[operand] for read, operand in zip(body.inputs, read_by(body, node), strict=True)}
            yield from self._box(label, self.values(body, known))
            for write in body.outputs:
                self.edge(self.place(write), place.id)
            self._scopes.pop()
        yield _shape(place.id, (f"{place.text} = {node.op.name}", ", ".join(map(str, node.types))))
        if len(read_by(graphs[0], node)) < len(node.inputs):
            self.edge(operands[node.inputs[0]], place.id, "condition")

    def _box(self, label: str, lines: Iterable[str]) -> Iterator[str]:
        yield f'subgraph "cluster {next(self._ids)}" {{'
        yield f'    label="{_quoted(label)}"; {BOX_LOOK}'
        yield from (f"    {line}" for line in lines)
        yield "}"

    # loops ----------------------------------------------------------------------------------------------------------

    def _loop(self, node: Node) -> Iterator[str]:
        """The step of a loop in a box, and its results below."""
        spec, body = loop_spec(node), bodies(node)[0]
        known: Scope = {port.read: self.place(port.outer) for port in spec.non_seqs}
        label = f"loop{'' if spec.name == 'loop' else f' {spec.name}'}, n_steps = {self.place(spec.n_steps).text}"
        reads = list(self._reads(spec, known))
        yield from self._box(label, itertools.chain(reads, self.values(body, known), self._end(spec)))
        yield from self._writes(node, spec)

    def _reads(self, spec: LoopSpec, known: Scope) -> Iterator[str]:
        """The inner inputs that change from step to step: all but non_seqs."""
        for seq in spec.seqs:
            for tap, read in zip(seq.taps, seq.reads, strict=True):
                name = self.place(seq.outer).text if seq.outer.name else _name(read, default=self.place(seq.outer).text)
                yield self._read(known, read, f"{name}[{row(tap)}]", seq.outer)
        for mit_mot in spec.mit_mots:
            for tap, read in zip(mit_mot.in_taps, mit_mot.reads, strict=True):
                yield self._read(known, read, f"{_name(mit_mot.reads[0], mit_mot.writes[0])}[{row(tap)}]", mit_mot.outer, "at first")
        for state in spec.states:
            for tap, read in zip(state.taps, state.reads, strict=True):
                yield self._read(known, read, f"{_name(state.write, read)}[{row(tap)}]", state.initial, "at first")
        for carry in spec.carries:
            yield self._read(known, carry.read, _name(carry.read, carry.shared), carry.shared, "at first")

    def _read(self, known: Scope, node: Node, text: str, source: Node, label: str = "") -> str:
        known[node] = place = self._new(text)
        outer = self.place(source)
        self.edge(outer, place.id, label)
        first = f", {label} {outer.text}" if label and outer.id is None else ""
        return _shape(place.id, (place.text + first, str(node.type)), READ_LOOK)

    def _end(self, spec: LoopSpec) -> Iterator[str]:
        if spec.until is not None:
            end = next(self._ids)
            yield _shape(end, ("ends where this holds",), "shape=plaintext")
            self.edge(self.place(spec.until), end)

    def _writes(self, node: Node, spec: LoopSpec) -> Iterator[str]:
        """The results, with edges to them and to what the next step reads of them."""
        inner = self._scopes.pop()
        loop = Place(next(self._ids), spec.name)
        ports: list[MitMot | State | Trace | Carry] = [*spec.mit_mots, *spec.states, *spec.traces, *spec.carries]
        for k, (port, type_) in enumerate(zip(ports, node.types, strict=True)):
            writes = port.writes if isinstance(port, MitMot) else (port.write,)
            taps = map(row, port.out_taps) if isinstance(port, MitMot) else [""]
            reads = port.reads if isinstance(port, MitMot | State) else (port.read,) if isinstance(port, Carry) else ()
            name = _name(writes[0], *reads[:1]) + "[:]" * (type_.rank > writes[0].type.rank)
            for write, read in itertools.product(writes, reads):
                self.edge(inner[shown(write)], inner[read].id, look="style=dashed, constraint=false")
            if len(node.types) > 1 and (node, k) not in self._items:
                continue
            self._results[loop.id or "", k] = result = self._new(name)
            yield _shape(result.id, (result.text, str(type_)), RESULT_LOOK)
            for write, tap in zip(writes, taps, strict=True):
                self.edge(inner[shown(write)], result.id, tap)
        self._scopes[-1][node] = self._results[loop.id or "", 0] if len(node.types) == 1 else loop

    def _new(self, name: str | None) -> Place:
        """A new node under a name that no other has."""
        base = f"v{next(self._numbers)}" if name is None or name.startswith(HIDDEN) else name
        text, copies = base, 1
        while text in self._used:
            copies += 1
            text = f"{base}_{copies}"
        self._used.add(text)
        return Place(next(self._ids), text)


def _name(*nodes: Node, default: str = "value") -> str:
    """The first name that a user has given, else `default`."""
    return next((node.name for node in nodes if node.name is not None and not node.name.startswith(HIDDEN)), default)


def _order(graph: Graph) -> list[Node]:
    """The inputs of a graph and the values that are shown, operands first."""
    reached = {shown(node) for node in graph.outputs}
    pending = list(reached)
    while pending:
        new = {shown(parent) for parent in pending.pop().inputs} - reached
        reached |= new
        pending += new
    reached.update(graph.inputs)
    return [node for node in toposort((*graph.inputs, *graph.outputs), stop=graph.inputs) if node in reached]


def shown(node: Node) -> Node:
    """The value shown in place of a node: the node itself, unless it only hands on an operand."""
    while (same := _same_as(node)) is not None:
        node = same
    return node


def _same_as(node: Node) -> Node | None:
    """The operand that a node only hands on, by a cast that keeps every number or integer arithmetic without effect; else None."""
    if len(node.types) > 1 or (node.name is not None and not node.name.startswith(HIDDEN)):
        return None
    name, operands = node.op.name, node.inputs
    if name in ("cast", "python_number"):
        return operands[0] if np.can_cast(operands[0].type.dtype, node.type.dtype, "safe") else None
    if node.type.kind != "i":
        return None
    known = [constant_value(operand) for operand in operands]
    if name == "where" and node.type.rank == 0 and known[0] is not None:
        return operands[1] if known[0] else operands[2]
    if name == "maximum" and node.type.rank == 0 and operands[0].op is node.op and operands[0].inputs[1] is operands[1]:
        return operands[0]
    if name in NEUTRAL:
        for k, other in ((1, 0), (0, 1))[: 1 if name in ("subtract", "floor_divide") else 2]:
            if operands[k].type.rank == 0 and known[k] is not None and known[k] == NEUTRAL[name]:
                return operands[other]
    return None


def _as_written(node: Node, operands: Sequence[str]) -> str:
    """What a node does, as a user would write it."""
    name = node.op.name
    if node.op is ITEM:
        return f"{operands[0]}[{_index(node)}]"
    if name in SIGNS and len(operands) == 2:
        return f"{operands[0]} {SIGNS[name]} {operands[1]}"
    if name in ("index", "gather"):
        return f"{operands[0]}[{_places(node, operands[1:])}]"
    if name in ("set_subtensor", "inc_subtensor"):
        return f"{operands[0]} with [{_places(node, operands[2:])}] {'=' if name[0] == 's' else '+='} {operands[1]}"
    more = [text for text in attributes(node) if not text.endswith("=False") and not text.startswith(("dtype=", "shape="))]
    text = ", ".join(more)
    return f"{name}({', '.join([*operands, *([text if len(text) <= LONGEST else text[:LONGEST] + '…'] if text else [])])})"


def _index(item: Node) -> int:
    """The number of the result that an ITEM selects."""
    index = item.attr("index")
    assert isinstance(index, int)
    return index


def _places(node: Node, holes: Sequence[str]) -> str:
    """The text between the brackets of `x[...]`."""
    rest = iter(holes)

    def part(entry: object) -> str:
        if isinstance(entry, tuple):
            start, stop, step = entry
            return f"{part(start)}:{part(stop)}" + (f":{part(step)}" if step not in (None, 1) else "")
        if entry in ("?", "array"):  # known at run time only
            return next(rest, "?")
        return "" if entry is None else "None" if entry == "newaxis" else str(entry)

    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    return ", ".join(map(part, spec))


def _shape(name: str | None, label: Sequence[str], look: str = "") -> str:
    text = "\\n".join(map(_quoted, label))
    return f'"{name}" [label="{text}"{", " * bool(look)}{look}]'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
