"""The cotangent of a loop's result, taken apart: often only the last row has one."""

from __future__ import annotations

from ..ir.node import Node
from ..ops.algebra import incremented, indexed, is_zero, total, zeros_like


def split_last(cotangent: Node) -> tuple[Node | None, Node | None]:
    """(rows, last): their sum, with `last` added to the last row, is the cotangent. None where there is nothing, not for both.

    A loss on `out[-1]` alone so costs no row per step.
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
    """What the cotangent of `x[-1, ...]` adds to the last row of its first operand."""
    is_sum = node.op.name == "inc_subtensor" or (node.op.name == "set_subtensor" and is_zero(node.inputs[0]))
    if not is_sum or len(node.inputs) != 2:
        return None
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    if not spec or spec[0] != -1:
        return None
    value = node.inputs[1]
    row = zeros_like(indexed(node, (-1,)))
    return value if len(spec) == 1 and value.type.rank == row.type.rank else incremented(row, value, spec[1:])
