"""Sums over the steps are taken while the loop runs: rows are not stored if only their sum is read.

A lane, a step that holds a loop and waits for no other step, keeps its own sum. These are added after the loop: lanes run in any order.

Arithmetic: a row is summed over its own axes, then added to the total. Totals of float32 are float64, of complex64 complex128, and rounded
at the end, as those of arrays; all others have the dtype of the sum. The order is free, as in the sum of an array.

Not handled: sums of values computed from rows; sums whose shape is known at run time only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.graph import toposort, users
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.node import ITEM, Node, constant, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, Trace
from ..ir.respecialise import settled
from ..ops.algebra import axes_sum, broadcast_to, call, cast, expand
from .replace_loops import with_results

_ADDED_IN = {"float32": "float64", "complex64": "complex128"}  # as the sum of an array does it


@dataclass(frozen=True)
class _StepSum:
    """A sum over the rows of result `index` of a loop."""

    node: Node
    index: int
    axes: tuple[int, ...]  # of a row
    keepdims: bool


def sum_in_loop(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with sums over the steps taken in the loop."""
    plain = tuple(outputs)
    while True:
        readers = users(plain)
        loop, sums = next(((node, sums) for node in toposort(plain) if (sums := _sums(node, readers, plain))), (None, []))
        if loop is None:
            return plain
        plain = _replaced(plain, loop, sums)


def _sums(loop: Node, readers: Mapping[Node, Sequence[Node]], outputs: Sequence[Node]) -> list[_StepSum]:
    """The sums over the rows of a loop's states and traces, where nothing else reads these rows."""
    if loop.op is not SCAN:
        return []
    spec = loop_spec(loop)
    candidates: list[_StepSum] = []
    results = [(0, loop)] if len(loop.types) == 1 else [(_index(item), item) for item in dict.fromkeys(readers[loop]) if item.op is ITEM]
    for index, item in results:
        is_rows = len(spec.mit_mots) <= index < len(spec.mit_mots) + len(spec.states) + len(spec.traces)
        asked = list(dict.fromkeys(readers[item]))
        if is_rows and asked and item not in outputs and all(map(_is_sum_of_rows, asked)):
            sums = [_step_sum(node, index) for node in asked]
            candidates += sums if not _has_lanes(loop) else [one for one in sums if one.axes and len(sums) == 1]
    return candidates


def _has_lanes(loop: Node) -> bool:
    """True if every step holds a loop and waits for no other step."""
    spec = loop_spec(loop)
    return not spec.waits and any(node.op is SCAN for node in toposort(spec.inner_outputs()))


def _index(item: Node) -> int:
    index = item.number("index")
    return index


def _is_sum_of_rows(node: Node) -> bool:
    axis = node.attr("axis") if node.op.name == "sum" else None
    return isinstance(axis, tuple) and 0 in axis and node.type.size is not None


def _step_sum(node: Node, index: int) -> _StepSum:
    axis = node.attr("axis")
    assert isinstance(axis, tuple)
    return _StepSum(node, index, tuple(k - 1 for k in axis if k), bool(node.attr("keepdims")))


def _replaced(outputs: Sequence[Node], loop: Node, sums: Sequence[_StepSum]) -> tuple[Node, ...]:
    return _with_sums_of_lanes(outputs, loop, sums) if _has_lanes(loop) else _with_carries(outputs, loop, sums)


def _with_sums_of_lanes(outputs: Sequence[Node], loop: Node, sums: Sequence[_StepSum]) -> tuple[Node, ...]:
    """`outputs` with rows summed in their lane, and these sums added after the loop."""
    spec = loop_spec(loop)
    traces = list(spec.traces)
    for one in sums:
        traces[one.index] = Trace(axes_sum(cast(traces[one.index].write, _added_in(one)), one.axes))
    new = replace(spec, traces=tuple(traces))
    results = outputs_of(scan_node(settled(new.with_inner(new.inner_inputs(), sum_in_loop(new.inner_outputs())))))
    others = {one.node: _total(axes_sum(results[one.index], (0,)), one) for one in sums}
    return with_results(outputs, {loop: results}, others)


def _with_carries(outputs: Sequence[Node], loop: Node, sums: Sequence[_StepSum]) -> tuple[Node, ...]:
    spec = loop_spec(loop)
    first, n_states = len(spec.mit_mots), len(spec.states)
    writes = [*(state.write for state in spec.states), *(trace.write for trace in spec.traces)]
    carries = [_carry(spec, writes[one.index - first], one) for one in sums]
    summed = {one.index - first - n_states for one in sums}
    traces = tuple(trace for k, trace in enumerate(spec.traces) if k not in summed)
    new = outputs_of(scan_node(settled(replace(spec, traces=traces, carries=(*spec.carries, *carries)))))
    rows = iter(new[first + n_states :])
    old = [*new[: first + n_states], *(loop if k in summed else next(rows) for k in range(len(spec.traces)))]
    old += [next(rows) for _ in spec.carries]
    others: dict[Node, Node] = {}
    for one, total in zip(sums, rows, strict=True):
        others[one.node] = _total(total, one)
    return with_results(outputs, {loop: old}, others)


def _total(total: Node, one: _StepSum) -> Node:
    axes = (0, *(axis + 1 for axis in one.axes)) if one.keepdims else ()
    return expand(cast(total, one.node.type.dtype), axes)


def _added_in(one: _StepSum) -> str:
    return _ADDED_IN.get(one.node.type.dtype, one.node.type.dtype)


def _carry(spec: LoopSpec, write: Node, one: _StepSum) -> Carry:
    """The carry of a sum over the steps."""
    dtype = _added_in(one)
    row = axes_sum(cast(write, dtype), one.axes)
    shape = [dim for axis, dim in enumerate(one.node.type.shape) if not (one.keepdims and (axis == 0 or axis - 1 in one.axes))]
    zeros = broadcast_to(constant(0, dtype), [dim or 0 for dim in shape])
    read = new_input(zeros.type, one.node.name or "total")
    return Carry(zeros, read, call("accumulate", read, row))
