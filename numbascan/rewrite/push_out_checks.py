"""Results that a step only checks for their dimensions are traced without the check, which is made of all rows behind the loop.

    # before: traces sum_to(z, n, m)        # after: traces z, of all rows: rows_to(rows, steps, n, m)

Gradients are such results, of one value often: then one trace of it is left (merge_inouts).

Arithmetic: none is made.

Where a loop may have no step, no rows have the dimensions that they are to have: rows_to.

Not handled: loops that end early, dimensions that only the step knows, and, where there may be no step, checks other than of cotangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.loop_node import loop_spec
from ..ir.node import Node
from ..ir.ports import LoopSpec, Trace
from ..ops.algebra import dims_of, is_check, node_of
from ..ops.dims import told_outside
from ..ops.runtime_attributes import SizedCard, filled, sized
from ..ops.sum_to import SUM_TO, rows_to
from .replace_loops import loop_results, with_loops


def push_out_checks(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such checks behind the loops."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    if spec.until is not None:
        return None
    peeled = [_peeled(spec, trace.write) for trace in spec.traces]
    if not any(checks for _, checks in peeled):
        return None
    results = list(loop_results(loop, replace(spec, traces=tuple(Trace(write) for write, _ in peeled))))
    for k, (_, checks) in enumerate(peeled, len(spec.mit_mots) + len(spec.states)):
        for card, dims in checks:
            shape = (dims_of(results[k])[0], *dims)
            results[k] = sized(card, (results[k],), shape) if spec.has_step else rows_to(results[k], shape)
    return results


def _peeled(spec: LoopSpec, write: Node) -> tuple[Node, list[tuple[SizedCard, tuple[Node, ...]]]]:
    """The value that is checked, and the checks, the innermost first."""
    checks: list[tuple[SizedCard, tuple[Node, ...]]] = []
    while (dims := _dims_outside(spec, write)) is not None:
        assert isinstance(write.op, SizedCard)
        checks.insert(0, (write.op, dims))
        write = write.inputs[0]
    return write, checks


def _dims_outside(spec: LoopSpec, write: Node) -> tuple[Node, ...] | None:
    """The dimensions that a result is checked for, around the loop; None where it is another result, or where only the step knows them."""
    if not is_check(write) or not (spec.has_step or write.op is SUM_TO):
        return None
    nest = filled(write.attr("shape"), iter(write.inputs[1:]))
    outside = [told_outside(spec, node_of(dim)) for dim in nest]
    dims = tuple(dim for dim in outside if dim is not None)
    return dims if len(dims) == len(outside) else None
