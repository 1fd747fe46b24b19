"""Small work rows of a fixed shape live on the stack: nothing is taken from the heap for them, and LLVM knows that nothing overlaps them.

Not handled: rows that are returned, or taken at several places.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...ir.loops import Alias, Alloc, For, Function, If, Return, Stmt, walk
from ...ir.names import WORD
from ..target import Target


def stack(function: Function, target: Target) -> Function:
    """The function with such rows on the stack."""
    every = list(walk(function.body))
    kept = _returned(every)
    counts = Counter(stmt.name for stmt in every if isinstance(stmt, Alloc))
    chosen: set[str] = set()
    room = target.stack
    for stmt in every:
        size = _bytes(stmt) if isinstance(stmt, Alloc) else 0
        if isinstance(stmt, Alloc) and 0 < size <= min(target.stack_row, room) and stmt.name not in kept and counts[stmt.name] == 1:
            chosen.add(stmt.name)
            room -= size
    return replace(function, body=list(_marked(function.body, chosen)))


def _returned(every: Sequence[Stmt]) -> set[str]:
    """The arrays that are returned, whole or as a view."""
    names = {name for stmt in every if isinstance(stmt, Return) for name in stmt.names}
    for stmt in reversed(every):
        if isinstance(stmt, Alias) and stmt.name in names:
            names |= set(re.findall(WORD, stmt.text.text))
    return names


def _bytes(array: Alloc) -> int:
    fixed = [dim for dim in array.shape if isinstance(dim, int)]
    return math.prod(fixed) * np.dtype(array.dtype).itemsize if fixed and len(fixed) == len(array.shape) else 0


def _marked(stmts: Sequence[Stmt], chosen: set[str]) -> Iterator[Stmt]:
    for stmt in stmts:
        if isinstance(stmt, For):
            yield replace(stmt, body=list(_marked(stmt.body, chosen)))
        elif isinstance(stmt, If):
            yield If(stmt.condition, list(_marked(stmt.then, chosen)), list(_marked(stmt.otherwise, chosen)))
        else:
            yield replace(stmt, on_stack=True) if isinstance(stmt, Alloc) and stmt.name in chosen else stmt
