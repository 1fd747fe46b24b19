"""Checks that a graph is legal: closed, with the types that its ops infer and consistent loop ports. Tests call it after every pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import ScanError
from ..types import TensorType
from .graph import Graph, toposort
from .inner_graphs import bodies
from .loop_node import SCAN, loop_spec
from .node import ARG, CONSTANT, INPUT, ITEM, Node, constant_value
from .ports import LoopSpec, State, row_of


class IllegalGraphError(ScanError, AssertionError):
    """A pass made a graph that means nothing. A fault of numbascan, never of its user."""


def check(graph: Graph) -> None:
    """Raises IllegalGraphError, listing every fault, unless the graph is legal."""
    faults = list(_faults(graph))
    if faults:
        raise IllegalGraphError("\n".join(faults))


def _faults(graph: Graph) -> Iterator[str]:
    known = set(graph.inputs)
    if len(known) != len(graph.inputs):
        yield "an input stands twice in the graph's inputs"
    for node in toposort(graph.outputs, stop=known):
        if node in known:
            continue
        if node.op in (INPUT, ARG):
            yield f"{node} is read, but is no input of the graph"
            continue
        yield from _node_faults(node)
        for body in bodies(node):
            yield from (f"in the body of {node}: {fault}" for fault in _faults(body))
    for output in graph.outputs:
        if len(output.types) != 1:
            yield f"output {output} has {len(output.types)} values; an item of it should stand there"


def _node_faults(node: Node) -> Iterator[str]:
    for parent in node.inputs:
        if len(parent.types) != 1 and node.op is not ITEM:
            yield f"{node} reads {parent}, which has {len(parent.types)} values"
    if node.op is CONSTANT:
        value = constant_value(node)
        assert value is not None
        if (value.dtype.name, value.shape) != (node.type.dtype, node.type.shape):
            yield f"{node} holds a {value.dtype} array of shape {value.shape}"
        return
    if node.op is SCAN:
        faults = list(_port_faults(loop_spec(node)))
        yield from (f"{node}: {fault}" for fault in faults)
        if faults:
            return  # a loop with wrong ports cannot be inferred again
    inferred = node.op.rebuild(node, node.inputs).types
    if inferred != node.types:
        yield f"{node} has types {_texts(node.types)}, but its inputs give {_texts(inferred)}"


def _texts(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types))


def _port_faults(spec: LoopSpec) -> Iterator[str]:
    if spec.n_steps.type.rank or spec.n_steps.type.kind not in "iu":
        yield f"n_steps is {spec.n_steps.type}, not an integer scalar"
    if spec.until is not None and (spec.until.type.rank or spec.until.type.dtype != "bool"):
        yield f"until is {spec.until.type}, not a bool scalar"
    yield from _duplicates(spec)
    for k, seq in enumerate(spec.seqs):
        yield from _rows(f"seq {k}", seq.outer.type, seq.taps, seq.reads)
    for k, mit_mot in enumerate(spec.mit_mots):
        yield from _rows(f"mit_mot {k}", mit_mot.outer.type, mit_mot.in_taps, mit_mot.reads)
        yield from _rows(f"writes of mit_mot {k}", mit_mot.outer.type, mit_mot.out_taps, mit_mot.writes, exact=False)
    for k, state in enumerate(spec.states):
        yield from _state_faults(f"state {k}", state)
    for k, carry in enumerate(spec.carries):
        yield from _same(f"shared {k}", carry.shared.type, carry.read.type)
        yield from _same(f"the update of shared {k}", carry.shared.type, carry.write.type)
    for k, non_seq in enumerate(spec.non_seqs):
        if non_seq.read.type != non_seq.outer.type:
            yield f"non_seq {k} is {non_seq.outer.type} outside and {non_seq.read.type} inside"


def _duplicates(spec: LoopSpec) -> Iterator[str]:
    inner = spec.inner_inputs()
    if len(set(inner)) != len(inner):
        yield "two ports share an inner input"


def _rows(label: str, outer: TensorType, taps: Sequence[int], nodes: Sequence[Node], exact: bool = True) -> Iterator[str]:
    if len(taps) != len(nodes) or len(set(taps)) != len(taps) or not taps:
        yield f"{label} has taps {list(taps)} and {len(nodes)} inner values"
    if not outer.rank:
        yield f"{label} is {outer}, which has no rows"
        return
    for node in nodes:
        if exact and node.type != row_of(outer):
            yield f"{label} gives rows of {row_of(outer)}, but its inner value is {node.type}"
        elif not exact:
            yield from _same(label, row_of(outer), node.type)


def _state_faults(label: str, state: State) -> Iterator[str]:
    if len(state.taps) != len(state.reads) or len(set(state.taps)) != len(state.taps) or not state.taps:
        yield f"{label} has taps {list(state.taps)} and {len(state.reads)} inner values"
    if any(tap >= 0 for tap in state.taps):
        yield f"{label} has taps {list(state.taps)}; they must be negative"
    if not state.has_axis and state.taps != (-1,):
        yield f"{label} has taps {list(state.taps)}, but an initial value without a leading axis"
    if state.has_axis and not state.initial.type.rank:
        yield f"{label} starts from {state.initial.type}, which has no leading axis"
        return
    first = row_of(state.initial.type) if state.has_axis else state.initial.type
    for read in state.reads:
        yield from _same(f"{label} at its start", read.type, first)
        yield from _same(f"{label} after a step", read.type, state.write.type)


def _same(label: str, wanted: TensorType, seen: TensorType) -> Iterator[str]:
    """A fault unless dtypes and ranks are equal and fixed dimensions agree."""
    pairs = zip(wanted.shape, seen.shape, strict=False)
    if (wanted.dtype, wanted.rank) != (seen.dtype, seen.rank) or any(a != b for a, b in pairs if a is not None and b is not None):
        yield f"{label} should be {wanted}, but is {seen}"
