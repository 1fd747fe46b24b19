"""one_step_scan: a loop of one step is replaced by its step.

Arithmetic: none is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import substitute
from ..ir.loop_node import loop_spec
from ..ir.messages import short_initial
from ..ir.node import Node, constant_value
from ..ir.ports import LoopSpec, State
from ..ops.algebra import cast, expand, indexed
from ..ops.card import apply
from ..ops.row_checks import AT_LEAST_ROWS, in_shape
from .replace_loops import with_loops
from .step_dependence import rows_read


def one_step(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with loops of one step replaced by their steps."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    if constant_value(loop_spec(loop).n_steps) != 1 or loop_spec(loop).mit_mots:
        return None
    spec = loop_spec(loop).opened()
    values = {port.read: port.outer for port in spec.non_seqs}
    values |= {port.read: cast(port.shared, port.read.type.dtype) for port in spec.carries}
    for seq in spec.seqs:
        values |= {read: indexed(rows_read(spec, seq, tap, tap), (0,)) for tap, read in zip(seq.taps, seq.reads, strict=True)}
    for state in spec.states:
        values |= _first_rows(spec, state)
    writes = substitute(spec.inner_outputs(), values)[: len(loop.types)]  # without `until`: there is no other step
    strong = [cast(write, write.type.dtype) for write in writes]
    n_states, n_rows = len(spec.states), len(spec.states) + len(spec.traces)
    states = [in_shape(spec, k, write) for k, write in enumerate(strong[:n_states])]
    carries = [in_shape(spec, k, write) for k, write in enumerate(strong[n_rows:], n_states)]
    return [*(expand(row, (0,)) for row in (*states, *strong[n_states:n_rows])), *carries]


def _first_rows(spec: LoopSpec, state: State) -> dict[Node, Node]:
    """The rows of an initial value by the reads of the first step."""
    dtype = state.write.type.dtype
    if not state.has_axis:
        return {state.reads[0]: cast(state.initial, dtype)}
    rows = apply(AT_LEAST_ROWS, state.initial, needed=state.depth, message=short_initial(spec, state))
    rows.origin = None  # the error is that of the loop, which names no line
    return {read: cast(indexed(rows, (state.depth + tap,)), dtype) for tap, read in zip(state.taps, state.reads, strict=True)}
