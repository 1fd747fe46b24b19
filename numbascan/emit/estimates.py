"""What a kernel will take, known before it runs: bytes of its arrays, steps of its loops, for given arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..ir.loops import Alias, Alloc, For, Function, Index, Let, Return, Stmt, names_in, walk
from ..ops.elementwise import HELPERS
from .text import expression

LONGER = 1000  # steps more, to see what grows


@dataclass(frozen=True)
class Memory:
    """Bytes that one call stores.

    results: what is returned (with the initial rows that lie before it). trace: rows of all steps that are not returned.
    checkpoints: states kept for a gradient. work: everything that does not grow with the number of steps.
    per_step: by how much results and trace grow with each step. steps_again: forward steps that checkpoints make run again (no bytes).
    """

    results: int
    trace: int
    checkpoints: int
    work: int
    per_step: int
    steps_again: int = 0

    @property
    def total(self) -> int:
        return self.results + self.trace + self.checkpoints + self.work

    def __str__(self) -> str:
        parts = [f"{name:<12}{getattr(self, name):>16,} bytes" for name in ("results", "trace", "checkpoints", "work", "total")]
        again = [f"{'run again':<12}{self.steps_again:>16,} steps"] if self.steps_again else []
        return "\n".join([*parts, f"{'per step':<12}{self.per_step:>16,} bytes", *again])


def memory_of(function: Function, values: Sequence[Any], steps_again: int = 0) -> Memory:
    """The bytes of a call of `function` with `values` (arrays, numbers); `steps_again` as for Memory."""
    stmts = list(walk(function.body))
    lengths = _lengths(function, stmts)
    arrays = [stmt for stmt in stmts if isinstance(stmt, Alloc)]
    known, longer = _known(function, values, stmts), _known(function, values, stmts, lengths)
    returned = _returned(function)
    sums = {"results": 0, "trace": 0, "checkpoints": 0, "work": 0}
    per_step = 0
    for array in arrays:
        size = _bytes(array, known)
        growth = (_bytes(array, longer) - size) // LONGER
        kind = "checkpoints" if array.name.startswith("checkpoints_") else "trace" if growth else "work"
        sums["results" if array.name in returned else kind] += size
        per_step += growth if kind != "checkpoints" else 0
    return Memory(**sums, per_step=per_step, steps_again=steps_again)


def _bytes(array: Alloc, known: dict[str, Any]) -> int:
    return math.prod(max(_number(dim, known), 0) for dim in array.shape) * np.dtype(array.dtype).itemsize


def _lengths(function: Function, stmts: Sequence[Stmt]) -> set[str]:
    """The arguments that decide how many steps the outermost loops make."""
    names = {name for loop in function.body if isinstance(loop, For) and loop.kind in ("time", "lanes") for name, _ in names_in(loop.stop)}
    for stmt in reversed(stmts):
        if isinstance(stmt, Let) and stmt.name in names:
            names |= {name for name, _ in names_in(stmt.value)}
    return names


def steps_of(function: Function, values: Sequence[Any]) -> int:
    """How many steps the outermost loops of a call make at most."""
    known = _known(function, values, list(walk(function.body)))
    return sum(_number(loop.stop, known) for loop in function.body if isinstance(loop, For) and loop.kind in ("time", "lanes"))


def _known(function: Function, values: Sequence[Any], stmts: Sequence[Stmt], longer: Set[str] = frozenset()) -> dict[str, Any]:
    """The locals whose value follows from the arguments' shapes and numbers alone. Arguments in `longer` as for LONGER more steps."""
    known = known_functions()
    for argument, value in zip(function.arguments, values, strict=False):
        more = LONGER if argument.name in longer else 0
        shape = np.shape(value)
        known[argument.name] = SimpleNamespace(shape=(shape[0] + more, *shape[1:])) if argument.rank else value + more if more else value
    for stmt in stmts:
        if isinstance(stmt, Let) and stmt.is_new and stmt.name not in known:
            try:
                known[stmt.name] = eval(expression(stmt.value), {"__builtins__": {}}, known)
            except Exception:
                continue  # depends on elements: not a size
        elif isinstance(stmt, Alloc):
            known[stmt.name] = SimpleNamespace(shape=tuple(_number(dim, known) for dim in stmt.shape))
    return known


def known_functions() -> dict[str, Any]:
    """What sizes are computed with, by name."""
    wrapping = {"wrapping_add": np.add, "wrapping_sub": np.subtract, "wrapping_mul": np.multiply}
    of_cards = {name: helper.function for name, helper in HELPERS.items() if helper.function is not None}
    return {"np": np, "math": math, "min": min, "max": max, **wrapping, **of_cards}


def _number(dim: Index, known: dict[str, Any]) -> int:
    """A dimension as a number, 0 where only the run knows it."""
    try:
        return int(eval(expression(dim), {"__builtins__": {}}, known))
    except Exception:
        return 0


def _returned(function: Function) -> set[str]:
    """Names of the arrays that a function returns, seen through the last views."""
    names: set[str] = set()
    for stmt in reversed(function.body):
        if isinstance(stmt, Return):
            names |= set(stmt.names)
        elif isinstance(stmt, Alias) and stmt.name in names:
            names.add(stmt.text.text.split("[")[0])
    return names
