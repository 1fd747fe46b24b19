"""Values as the arrays that routines take: memory where the elements lie side by side already, else copies.

A row of an array lies so, whatever way leads to it: read backwards, behind views that change nothing, transposed.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.loops import Index, Load, Name, add, names_in, sub
from ..ir.node import Node
from ..ops.card import Card
from ..ops.lowering import View as ViewLowering
from .scope import Scope, View
from .values import Computed, Indices, InMemory, Value

UNCHANGED = {"broadcast_to", "sum_to", "of_shape", "linked", "disconnected_grad", "zero_grad"}
"""Views that, where an element's index stays as it is, check every dimension to be that of their operand."""


def array_of(scope: Scope, node: Node, dtype: str) -> tuple[str, bool]:
    """The name of a C-contiguous array with the elements of a value, and whether it is the value's transpose."""
    node, is_transposed = _behind_views(scope, node)
    value = scope.value(node)
    if isinstance(value, Computed):
        found = _memory(scope, value) if value.type.dtype == dtype else None
        if found is None and value.type.rank == 2:
            swapped = Computed(value.type.with_shape(value.type.shape[::-1]), value.dims[::-1], lambda index: value.at(index[::-1]))
            found = _memory(scope, swapped) if value.type.dtype == dtype else None
            is_transposed ^= found is not None
        value = found or value
    return scope.kernel.array_of(scope, value if not isinstance(value, InMemory) else _cut(scope, value), dtype), is_transposed
