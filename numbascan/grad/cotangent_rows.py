"""The cotangent of a loop's result, its last row apart: often only that has one."""

from __future__ import annotations

from ..ir.node import Node
from ..ops.algebra import call, incremented, indexed, is_zero, total, where, zeros_like
from ..ops.dims import dim_node


def split_last(cotangent: Node) -> tuple[Node | None, Node | None]:
    """(rows, last): the cotangent is `rows` with `last` added to its last row. One of the two may be None: zeros.

    So a loss on `out[-1]` alone costs no row per step.
    """
    dense: list[Node] = []
    last: list[Node] = []
    stack = [cotangent]
    while stack:
        term = stack.pop()
        row = _last_row(term)
        if row is not None:
            last.append(row)
            stack.append(term.inputs[0])
        elif term.op.name == "add" and all(parent.type.shape == term.type.shape for parent in term.inputs):
            stack += term.inputs
        elif not is_zero(term):
            dense.append(term)
    return (total(dense), total(last)) if dense or last else (cotangent, None)


def _last_row(node: Node) -> Node | None:
    """What a cotangent of `x[-1, ...]` or `x[-1:]` adds to the last row of its first operand; None for any other node."""
    is_sum = node.op.name == "inc_subtensor" or (node.op.name == "set_subtensor" and is_zero(node.inputs[0]))
    if not is_sum or len(node.inputs) != 2:
        return None
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    value = node.inputs[1]
    if spec == ((-1, None, None),):
        return _row_alone(node, value)
    if not spec or spec[0] != -1:
        return None
    row = zeros_like(indexed(node, (-1,)))
    return value if len(spec) == 1 and value.type.rank == row.type.rank else incremented(row, value, spec[1:])


def _row_alone(node: Node, value: Node) -> Node | None:
    """The row in `value`, a cotangent of `x[-1:]`, where that is `row[newaxis]` or a slice of it; 0 where x has no rows. Else None."""
    one = value.inputs[0] if value.op.name == "index" else value
    whole = ((None, None, None),) * (node.type.rank - 1)
    if one.op.name != "index" or one.attr("spec") != ("newaxis", *whole) or len(value.inputs) > 2 or value.type.rank != node.type.rank:
        return None
    return where(call("greater", dim_node(node, 0), 0), one.inputs[0], 0)
