"""Small work rows of fixed shape live on the stack: they need no heap allocation, and LLVM knows that nothing aliases them.

Not handled: rows that are returned, or allocated at several places.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...ir.loops import Alias, Alloc, Function, Return, Stmt, rebuilt, walk
from ..target import Target


def stack_rows(function: Function, target: Target) -> Function:
    """The function with such rows on the stack."""
    every = list(walk(function.body))
    returned = _returned(every)
    counts = Counter(stmt.name for stmt in every if isinstance(stmt, Alloc))
    chosen: set[str] = set()
    room = target.stack
    for stmt in every:
        size = _bytes(stmt) if isinstance(stmt, Alloc) else 0
        if isinstance(stmt, Alloc) and 0 < size <= min(target.stack_row, room) and stmt.name not in returned and counts[stmt.name] == 1:
            chosen.add(stmt.name)
            room -= size

    def marked(stmt: Stmt) -> list[Stmt] | None:
        return [replace(stmt, on_stack=True)] if isinstance(stmt, Alloc) and stmt.name in chosen else None

    return replace(function, body=rebuilt(function.body, marked))


def _returned(every: Sequence[Stmt]) -> set[str]:
    """The names of arrays that are returned, whole or as a view, and of these views."""
    names = {name for stmt in every if isinstance(stmt, Return) for name in stmt.names}
    for stmt in reversed(every):
        if isinstance(stmt, Alias) and stmt.name in names:
            names.add(stmt.array)
    return names


def _bytes(array: Alloc) -> int:
    fixed = [dim for dim in array.shape if isinstance(dim, int)]
    return math.prod(fixed) * np.dtype(array.dtype).itemsize if fixed and len(fixed) == len(array.shape) else 0
