"""The cotangent of a loop's result, taken apart: often only the last row has one."""

from __future__ import annotations

from ..ir.node import Node
from ..ops.algebra import incremented, indexed, is_zero, total, zeros_like


def split_last(cotangent: Node) -> tuple[Node | None, Node | None]:
    """(rows, last): their sum, with `last` added to the last row, is the cotangent. None for zero.

    A loss on `out[-1]` alone so costs no row per step.
    """
    dense: list[Node] = []
    last: list[Node] = []
    for term in _terms(cotangent):
        row = _last_row(term)
        if row is not None:
            last.append(row)
        elif not is_zero(term):
            dense.append(term)
    return total(dense), total(last)


def _terms(node: Node) -> list[Node]:
    """The addends of a sum of rows."""
    found, stack = [], [node]
    while stack:
        node = stack.pop()
        if node.op.name == "add" and all(parent.type.shape == node.type.shape for parent in node.inputs):
            stack += node.inputs
        else:
            found.append(node)
    return found


def _last_row(node: Node) -> Node | None:
    """The last row of `x[-1, ...]`'s cotangent: zeros with something added there."""
    if node.op.name not in ("inc_subtensor", "set_subtensor") or len(node.inputs) != 2 or not is_zero(node.inputs[0]):
        return None
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    if not spec or spec[0] != -1:
        return None
    value = node.inputs[1]
    row = zeros_like(indexed(node, (-1,)))
    return value if len(spec) == 1 and value.type.rank == row.type.rank else incremented(row, value, spec[1:])
