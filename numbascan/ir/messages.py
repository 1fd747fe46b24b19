"""Texts of the checks that every run of a loop makes, in every mode. {0}, {1}, … stand for the numbers seen."""

from __future__ import annotations

from .names import verbatim
from .node import Node
from .ports import LoopSpec, Seq, State

ONE_SHAPE = "an initial value and the step's result must have one shape"  # an error of a kernel with this text is a ScanTypeError


def title(scan: str) -> str:
    """The name of a loop in messages."""
    return verbatim(f"scan {scan!r}")


def label(node: Node, kind: str, position: int) -> str:
    """The name of a port in messages: its kind, position and name."""
    return f"{kind} {position}" + (f" ({verbatim(node.name)})" if node.name else "")


def negative_steps(spec: LoopSpec) -> str:
    """Numbers: n_steps."""
    return f"{title(spec.name)}: n_steps is {{0}}; it must be 0 or more"


def many_steps(spec: LoopSpec) -> str:
    """Numbers: n_steps."""
    return f"{title(spec.name)}: n_steps is {{0}}; no memory has room for the rows of so many steps: keep_last or save_every keep fewer"


def short_sequence(spec: LoopSpec, seq: Seq) -> str:
    """Numbers: rows there are, rows needed, n_steps."""
    position = spec.seqs.index(seq)
    taps = f" with taps {list(seq.taps)}" if seq.taps != (0,) else ""
    lanes = " (to ns.vmap: arguments with equally many lanes)" if spec.are_lanes else ""
    return (
        f"{title(spec.name)}: {label(seq.outer, 'sequence', position)} has {{0}} rows, but n_steps={{2}}{taps} needs {{1}}; "
        f"give a longer sequence or a smaller n_steps{lanes}"
    )


def short_initial(spec: LoopSpec, state: State) -> str:
    """Numbers: rows there are."""
    position = spec.states.index(state)
    return (
        f"{title(spec.name)}: the initial value of {_recurrent_label(spec, position)} has {{0}} rows along its leading axis, "
        f"but taps {list(state.taps)} need {state.depth}"
    )


def changed_type(spec: LoopSpec, position: int, read: Node) -> str:
    """No numbers: the types are known before the run. `read`: what the step reads of state or carry `position`."""
    write = recurrent(spec)[position][1]
    return _changed(spec, position, "shape" if read.type.dtype == write.type.dtype else "dtype", read.type, write.type)


def changed_shape_type(spec: LoopSpec, position: int) -> str:
    """In place of numbers: the type on entry, the type of the step's result. For a step without a loop, whose types are known later."""
    return _changed(spec, position, "shape", "{0}", "{1}")


def _changed(spec: LoopSpec, position: int, what: str, before: object, after: object) -> str:
    return (
        f"{title(spec.name)}: the step changes the {what} of {_recurrent_label(spec, position)}, which enters it as {before} and leaves it "
        f"as {after}{_line(recurrent(spec)[position][1])}; an initial value and the step's result must have one dtype and one shape"
    )


def _recurrent_label(spec: LoopSpec, position: int) -> str:
    """A state or carry in messages: by name, since its place among the user's outputs is not known here."""
    name = recurrent(spec)[position][0].name
    kind = "state" if position < len(spec.states) else "shared variable"
    return f"{kind} {verbatim(name) if name else position}"


def recurrent(spec: LoopSpec) -> list[tuple[Node, Node]]:
    """(first read, write) of each state, then of each carry."""
    return [(state.reads[0], state.write) for state in spec.states] + [(carry.read, carry.write) for carry in spec.carries]


def _line(write: Node) -> str:
    return verbatim(f" (step result at {write.origin[0]}, line {write.origin[1]})") if write.origin else ""


def ragged_rows(scan: str, result: str, axis: int) -> str:
    """Numbers: dimension of the first row, of a later one."""
    return (
        f"{title(scan)}: {verbatim(result)} has length {{0}} along axis {axis} in the first step and {{1}} in a later one; "
        "all rows of a result must have one shape: pad them, or reduce them inside the step"
    )


def changed_shape(spec: LoopSpec, position: int, axis: int) -> str:
    """Numbers: dimension on entry, dimension of the step's result."""
    write = recurrent(spec)[position][1]
    return (
        f"{title(spec.name)}: the step changes the shape of {_recurrent_label(spec, position)}: dimension {axis} is {{0}} on entry "
        f"and {{1}} in its result{_line(write)}; {ONE_SHAPE}"
    )


def result_names(spec: LoopSpec) -> list[str]:
    """The names of a loop's results in messages and generated code: states, traces, carries."""
    names = [state.reads[0].name or "state" for state in spec.states] + [trace.write.name or "out" for trace in spec.traces]
    return names + [carry.read.name or "carry" for carry in spec.carries]


def not_finite(spec: LoopSpec, name: str, write: Node) -> str:
    """Numbers: the step."""
    where = verbatim(f" ({write.origin[0]}, line {write.origin[1]})") if write.origin else ""
    return f"{title(spec.name)}, step {{0}}: {verbatim(name)}{where} is not finite"


def in_lane(text: str, position: int) -> str:
    """A text of `not_finite` about a loop in a lane, or in nested lanes, the outermost first. Number `position`: the lane."""
    before = "step {0}, lane " if position > 1 else "step {0}"
    return text.replace(before, f"{before}{{{position}}}, " if position > 1 else f"{before}, lane {{{position}}}", 1)
