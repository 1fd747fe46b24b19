"""A loop on inputs of other types: the step is inferred again from the types of its rows."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ScanTypeError
from ..types import TensorType
from .graph import substitute
from .node import Node, new_input
from .ports import LoopSpec, row_of


def respecialised(spec: LoopSpec, inputs: tuple[Node, ...]) -> LoopSpec:
    """`spec` fed by `inputs`; where a type changed, the step is rebuilt on the new types.

    Fixed dimensions may come to light; a state keeps a dimension fixed only if its step keeps it too.
    """
    fed = spec.with_outer(inputs)
    reads = _read_types(fed)
    old_inputs = spec.inner_inputs()
    if [node.type for node in old_inputs] == reads:
        return fed
    while True:
        fresh = tuple(new_input(type_, old.name) for old, type_ in zip(old_inputs, reads, strict=True))
        outputs = substitute(spec.inner_outputs(), dict(zip(old_inputs, fresh, strict=True)))
        built = fed.with_inner(fresh, outputs)
        widened = _widened(built)
        if widened is None:
            return built
        reads = widened


def _read_types(spec: LoopSpec) -> list[TensorType]:
    types = [row_of(port.outer.type) for port in spec.seqs for _ in port.reads]
    types += [row_of(port.outer.type) for port in spec.mit_mots for _ in port.reads]
    for state in spec.states:
        row = row_of(state.initial.type) if state.has_axis else state.initial.type
        types += [row.strong()] * len(state.reads)
    types += [port.shared.type.strong() for port in spec.carries]
    return types + [port.outer.type for port in spec.non_seqs]


def _widened(spec: LoopSpec) -> list[TensorType] | None:
    """Types of the reads after dropping dimensions that a step does not keep; None where all are kept."""
    types = [node.type for node in spec.inner_inputs()]
    position = sum(len(port.reads) for port in (*spec.seqs, *spec.mit_mots))
    changed = False
    for port in (*spec.states, *spec.carries):
        reads = (port.read,) if hasattr(port, "read") else port.reads
        write = port.write.type
        for offset, read in enumerate(reads):
            kept = _kept(read.type, write, spec.name)
            changed |= kept != read.type
            types[position + offset] = kept
        position += len(reads)
    return types if changed else None


def _kept(read: TensorType, write: TensorType, name: str) -> TensorType:
    if read.dtype != write.dtype or read.rank != write.rank:
        raise ScanTypeError(f"scan {name!r}: a state enters the step as {read} and leaves it as {write}")
    pairs = zip(read.shape, write.shape, strict=True)
    for before, after in pairs:
        if before is not None and after is not None and before != after:
            raise ScanTypeError(f"scan {name!r}: a state enters the step as {read} and leaves it as {write}")
    return replace(read, shape=tuple(a if b is not None else None for a, b in zip(read.shape, write.shape, strict=True)))
