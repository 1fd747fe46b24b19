"""A loop on inputs of other types: the step is inferred again from the types of its rows."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ScanTypeError
from ..types import TensorType
from .graph import substitute
from .messages import changed_type
from .node import Node, new_input
from .ports import LoopSpec, row_of


def respecialised(spec: LoopSpec, inputs: tuple[Node, ...]) -> LoopSpec:
    """`spec` fed by `inputs`; where a type changed, the step is rebuilt on the new types.

    Fixed dimensions may come to light; a state keeps a dimension fixed only if its step keeps it too.
    """
    fed = spec.with_outer(inputs)
    reads = _read_types(fed)
    old_inputs = spec.inner_inputs()
    return fed if [node.type for node in old_inputs] == reads else settled(_on_types(fed, reads))


def settled(spec: LoopSpec) -> LoopSpec:
    """`spec` with those dimensions of its states unknown that the step does not keep, and those known that every step gives."""
    widened = _widened(spec)
    while widened is not None:
        spec = _on_types(spec, widened)
        widened = _widened(spec)
    return spec


def _on_types(spec: LoopSpec, reads: list[TensorType]) -> LoopSpec:
    """`spec` around its step built again on inputs of the types `reads`."""
    old_inputs = spec.inner_inputs()
    fresh = tuple(new_input(type_, old.name) for old, type_ in zip(old_inputs, reads, strict=True))
    return spec.with_inner(fresh, substitute(spec.inner_outputs(), dict(zip(old_inputs, fresh, strict=True))))


def _read_types(spec: LoopSpec) -> list[TensorType]:
    types = [row_of(port.outer.type) for port in spec.seqs for _ in port.reads]
    types += [row_of(port.outer.type) for port in spec.mit_mots for _ in port.reads]
    for state in spec.states:
        row = row_of(state.initial.type) if state.has_axis else state.initial.type
        types += [row.strong()] * len(state.reads)
    types += [port.shared.type.strong() for port in spec.carries]
    return types + [port.outer.type for port in spec.non_seqs]


def _widened(spec: LoopSpec) -> list[TensorType] | None:
    """Types of the reads with the dimensions of what a step makes of them; None where these are the same."""
    types = [node.type for node in spec.inner_inputs()]
    position = sum(len(seq.reads) for seq in spec.seqs) + sum(len(mit_mot.reads) for mit_mot in spec.mit_mots)
    changed = False
    recurrent = [(state.reads, state.write) for state in spec.states] + [((carry.read,), carry.write) for carry in spec.carries]
    for k, (reads, write) in enumerate(recurrent):
        for offset, read in enumerate(reads):
            kept = _kept(read.type, write.type)
            if kept is None:
                raise ScanTypeError(changed_type(spec, k, read))
            changed |= kept != read.type
            types[position + offset] = kept
        position += len(reads)
    return types if changed else None


def _kept(read: TensorType, write: TensorType) -> TensorType | None:
    """`read` without the dimensions that `write` does not keep, with those that it fixes; None where the two cannot be one type."""
    if read.dtype != write.dtype or read.rank != write.rank:
        return None
    pairs = list(zip(read.shape, write.shape, strict=True))
    if any(before is not None and after is not None and before != after for before, after in pairs):
        return None
    return replace(read, shape=write.shape)
