"""A loop on inputs of other types: the step is inferred again from the types of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import ScanTypeError
from ..types import TensorType
from .graph import substitute, toposort
from .messages import changed_type
from .node import ARG, CONSTANT, INPUT, Node, new_input
from .ports import LoopSpec, NonSeq, row_of

MISFIT = "misfit"  # the note of a loop whose step has lengths that do not fit; its value is the message
IN_STEP = "in the step of scan"
Agreed = Callable[[int | None, int | None], int | None]


def respecialised(spec: LoopSpec, inputs: tuple[Node, ...]) -> LoopSpec:
    """`spec` fed by `inputs`; where a type changed, the step is rebuilt on the new types.

    Dimensions may become fixed; a state keeps a fixed dimension only if its step keeps it too. Non_seqs that turn out to be one value, as
    lengths of equal arrays, are merged.

    Lengths that do not fit in the step are an error if the loop surely has a step. A loop that may have none keeps the types of its step
    and gets a note with the message; the error comes when it is planned or run. A ScanTypeError is raised in any case.
    """
    fed = spec.with_outer(inputs)
    if len({port.outer for port in fed.non_seqs}) < len({port.outer for port in spec.non_seqs}):
        fed = _merged(fed)
    reads = _read_types(fed)
    old_inputs = spec.inner_inputs()
    if [node.type for node in old_inputs] == reads:
        return fed
    try:
        return settled(_on_types(fed, reads))
    except (IndexError, ValueError) as error:
        if isinstance(error, ScanTypeError) or fed.has_step:
            raise
        return replace(fed, notes=(*fed.notes, (MISFIT, str(error))))


def _merged(spec: LoopSpec) -> LoopSpec:
    """`spec` with one non_seq for each value, its step rebuilt on the outer values and closed again.

    Outer values show that lengths are equal which the step's own inputs cannot show. A step that does not close again is not rebuilt.
    """
    ports = {port.outer: NonSeq(port.outer, new_input(port.outer.type, port.read.name)) for port in spec.non_seqs}
    moving = {node: new_input(node.type, node.name) for node in spec.inner_inputs() if all(node is not port.read for port in spec.non_seqs)}
    reads = {port.outer: port.read for port in ports.values()}
    outputs = substitute(spec.inner_outputs(), {port.read: reads[port.outer] for port in spec.non_seqs} | moving)
    around = substitute(outputs, {read: outer for outer, read in reads.items() if outer.op is not CONSTANT})
    again = substitute(around, {outer: read for outer, read in reads.items() if outer.op is not CONSTANT})
    own = {*reads.values(), *moving.values()}
    is_closed = all(node.op not in (INPUT, ARG) or node in own for node in toposort(again, stop=own))
    less = replace(spec, non_seqs=tuple(ports.values()))
    inputs = tuple(moving.get(node, node) for node in less.inner_inputs())
    return less.with_inner(inputs, again if is_closed else outputs)


def settled(spec: LoopSpec) -> LoopSpec:
    """`spec` with a dimension of a state fixed where every step gives it, and open where the step does not keep it.

    Two fixed-point iterations. In the first, a dimension that is known before or after a step counts; in the second, one that the step
    does not confirm is dropped. Each goes in one direction only, so both end.
    """
    for agreed in (_either, _both):
        types = _state_types(spec, agreed)
        while types is not None:
            spec = _on_types(spec, types)
            types = _state_types(spec, agreed)
    return spec


def _either(before: int | None, after: int | None) -> int | None:
    return after if before is None else before


def _both(before: int | None, after: int | None) -> int | None:
    return before if before == after else None


def _on_types(spec: LoopSpec, reads: list[TensorType]) -> LoopSpec:
    """`spec` with its step rebuilt on inputs of the types `reads`. ValueError, with the loop's name, where these do not fit."""
    old_inputs = spec.inner_inputs()
    fresh = tuple(new_input(type_, old.name) for old, type_ in zip(old_inputs, reads, strict=True))
    try:
        outputs = substitute(spec.inner_outputs(), dict(zip(old_inputs, fresh, strict=True)))
    except ValueError as error:
        if type(error) is not ValueError or IN_STEP in str(error):
            raise
        raise ValueError(f"{error} {IN_STEP} {spec.name!r}") from None
    return spec.with_inner(fresh, outputs)


def _read_types(spec: LoopSpec) -> list[TensorType]:
    types = [row_of(port.outer.type) for port in spec.seqs for _ in port.reads]
    types += [row_of(port.outer.type) for port in spec.mit_mots for _ in port.reads]
    for state in spec.states:
        row = row_of(state.initial.type) if state.has_axis else state.initial.type
        types += [row.strong()] * len(state.reads)
    types += [port.shared.type.strong() for port in spec.carries]
    return types + [port.outer.type for port in spec.non_seqs]


def _state_types(spec: LoopSpec, agreed: Agreed) -> list[TensorType] | None:
    """The types of all inner inputs, those of states and carries `agreed` with what the step writes; None where nothing changes."""
    types = [node.type for node in spec.inner_inputs()]
    position = sum(len(seq.reads) for seq in spec.seqs) + sum(len(mit_mot.reads) for mit_mot in spec.mit_mots)
    changed = False
    recurrent = [(state.reads, state.write) for state in spec.states] + [((carry.read,), carry.write) for carry in spec.carries]
    for k, (reads, write) in enumerate(recurrent):
        for offset, read in enumerate(reads):
            type_ = _agreed_type(read.type, write.type, agreed)
            if type_ is None:
                raise ScanTypeError(changed_type(spec, k, read).format())
            changed |= type_ != read.type
            types[position + offset] = type_
        position += len(reads)
    return types if changed else None


def _agreed_type(read: TensorType, write: TensorType, agreed: Agreed) -> TensorType | None:
    """`read` with the dimensions on which both agree; None where they cannot be one type."""
    if read.dtype != write.dtype or read.rank != write.rank:
        return None
    pairs = list(zip(read.shape, write.shape, strict=True))
    if any(before is not None and after is not None and before != after for before, after in pairs):
        return None
    return replace(read, shape=tuple(agreed(before, after) for before, after in pairs))
