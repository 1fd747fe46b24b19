"""Values that may fail. They must not move before a loop that may have no step: such a loop never computes them.

Two things move values and ask here: the rewrites that take work out of steps, and dimensions of rows, which become nodes around the loop.
What the loops of a plan hoist is decided in `plan/builder.py`, expression by expression. To measure a value is to compute it, except where
`ops/dims.py` finds the dimension further back.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import toposort
from ..ir.node import ITEM, Node, constant_value
from . import dims
from .card import Card, weak_bounds
from .lowering import Contract, Elementwise, Fold

ALWAYS_THERE = frozenset(("transpose", "squeeze", "copied", "linked", "zero_grad", "disconnected_grad", "dim", "turned"))
"""Views, and the transpose in memory, whose operands cannot be wrong once they are made."""


def may_raise(node: Node) -> bool:
    """True if computing a value may fail. False only if no part of it can fail, whatever the run brings.

    Its parts end at inputs, so for a value of a step nothing around the loop is asked.
    """
    return any(one.inputs and _may_fail(one) for one in toposort([node]))


def _may_fail(node: Node) -> bool:
    if node.op is ITEM:
        return False
    if not isinstance(node.op, Card):
        return True
    kind, shapes = node.op.lower, [_dims_of(parent) for parent in node.inputs]
    if isinstance(kind, Elementwise):
        rank = node.type.rank
        is_misfit = any(_differ([shape[axis - rank] for shape in shapes if len(shape) >= rank - axis], 1) for axis in range(rank))
        return is_misfit or _is_refused(node, kind)
    if isinstance(kind, Contract):
        labels = node.attr("labels")
        assert isinstance(labels, tuple)
        of_label: dict[int, list[Node]] = {}
        for lengths, names in zip(shapes, labels[:2], strict=True):
            for length, label in zip(lengths, names, strict=True):
                of_label.setdefault(label, []).append(length)
        return any(map(_differ, of_label.values()))
    if isinstance(kind, Fold):
        axes = node.attr("axis")
        assert isinstance(axes, tuple)
        return not kind.allow_empty and not all(node.inputs[0].type.shape[axis] for axis in axes)
    if node.op.name == "index":
        spec = node.attr("spec")
        assert isinstance(spec, tuple)
        return not all(map(_is_cut, spec))
    return node.op.name not in ALWAYS_THERE


def _dims_of(node: Node) -> tuple[Node, ...]:
    return tuple(dims.dim_node(node, axis) for axis in range(node.type.rank))


def _is_refused(node: Node, kind: Elementwise) -> bool:
    """True if the code for one element may raise, or an operand that is a Python integer may not fit its dtype."""
    loop = kind.loop(*(parent.type for parent in node.inputs))
    takes = zip(node.inputs, loop, strict=False)
    return kind.code(*loop).raises or any(weak_bounds(one.type, dtype) is not None and one.inputs for one, dtype in takes)


def _differ(lengths: Sequence[Node], stretched: int | None = None) -> bool:
    """True if lengths that must be equal may differ. The length `stretched` fits every other."""
    numbers = [constant_value(length) for length in lengths]
    known = {int(number) for number in numbers if number is not None} - {stretched}
    unknown = {length for length, number in zip(lengths, numbers, strict=True) if number is None}
    return len(known) + len(unknown) > 1


def _is_cut(entry: object) -> bool:
    """True if an entry of an index is a new axis, or a slice with a known step, whose bounds are clipped."""
    if not isinstance(entry, tuple):
        return entry == "newaxis"
    step = entry[2]
    return step is None or (isinstance(step, int) and step != 0)
