"""Estimates of a kernel's call, read from its loops before it runs: bytes of its arrays, steps of its loops, operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..ir.loops import Alias, Alloc, Apply, Call, Expr, For, Function, If, Index, Let, Load, Return, Stmt, Store, names_in, walk
from ..ops.elementwise import HELPERS
from ..plan.gpu.threads import AT_ONCE
from .text import expression, handed, statements, view_text

LONGER = 1000  # further steps, to see what grows
ROUTINE, DRAWN = 1000, 30  # operations that a routine counts as, and a number that is drawn


# bytes and steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelMemory:
    """A kernel's use of a GPU: registers and bytes of local memory per thread, bytes of shared memory per block."""

    name: str
    registers: int
    local: int
    shared: int

    def __str__(self) -> str:
        return f"{self.name}: {self.registers} registers and {self.local:,} bytes a thread, {self.shared:,} bytes a block"


@dataclass(frozen=True)
class Memory:
    """Bytes that one call stores.

    results: the arrays returned (with the initial rows that lie before them). trace: rows of all steps that are not returned.
    checkpoints: states kept for a gradient. work: everything that does not grow with the number of steps.
    per_step: the growth of results and trace per step. steps_again: forward steps that checkpoints run again (no bytes).
    kernels: for CUDA, those that were compiled for this device.
    """

    results: int
    trace: int
    checkpoints: int
    work: int
    per_step: int
    steps_again: int = 0
    kernels: tuple[KernelMemory, ...] = ()

    @property
    def total(self) -> int:
        return self.results + self.trace + self.checkpoints + self.work

    def __str__(self) -> str:
        parts = [f"{name:<12}{getattr(self, name):>16,} bytes" for name in ("results", "trace", "checkpoints", "work", "total")]
        again = [f"{'run again':<12}{self.steps_again:>16,} steps"] if self.steps_again else []
        return "\n".join([*parts, f"{'per step':<12}{self.per_step:>16,} bytes", *again, *map(str, self.kernels)])


def memory_of(function: Function, values: Sequence[Any], steps_again: int = 0, at_once: Callable[[int, int], int] | None = None) -> Memory:
    """The bytes of a call of `function` with `values` (arrays, numbers); `steps_again` as for Memory.

    at_once: the number of passes of a loop that run at once on a GPU, from the number of all and the bytes of each. Without it these
    bytes do not count.
    """
    stmts = list(walk(function.body))
    lengths = _lengths(function, stmts)
    arrays = [stmt for stmt in stmts if isinstance(stmt, Alloc)]
    known, longer = _known(function, values, stmts, set(), at_once), _known(function, values, stmts, lengths, at_once)
    returned = _returned(function)
    sums = {"results": 0, "trace": 0, "checkpoints": 0, "work": 0}
    per_step = 0
    for array in arrays:
        size = _bytes(array, known)
        growth = (_bytes(array, longer) - size) // LONGER
        kind = "checkpoints" if array.name.startswith("checkpoints_") else "trace" if growth else "work"
        sums["results" if array.name in returned else kind] += size
        per_step += growth if kind != "checkpoints" else 0
    return Memory(sums["results"], sums["trace"], sums["checkpoints"], sums["work"], per_step, steps_again)


def _bytes(array: Alloc, known: _Names) -> int:
    return math.prod(max(known.number(dim), 0) for dim in array.shape) * np.dtype(array.dtype).itemsize


def _lengths(function: Function, stmts: Sequence[Stmt]) -> set[str]:
    """The names that decide how many steps the outermost loops make."""
    names = {name for loop in function.body if isinstance(loop, For) and loop.kind in ("time", "lanes") for name, _ in names_in(loop.stop)}
    for stmt in reversed(stmts):
        if isinstance(stmt, Let) and stmt.name in names:
            names |= {name for name, _ in names_in(stmt.value)}
    return names


def steps_of(function: Function, values: Sequence[Any]) -> int:
    """The most steps that the outermost loops of a call make."""
    known = _known(function, values, list(walk(function.body)))
    return sum(known.number(loop.stop) for loop in function.body if isinstance(loop, For) and loop.kind in ("time", "lanes"))


def lanes_of(function: Function, values: Sequence[Any]) -> int:
    """The most lanes with steps of their own that one loop of a call runs, each in a thread of a GPU."""
    known = _known(function, values, list(walk(function.body)))
    calls = [stmt.value for stmt in function.body if isinstance(stmt, Let) and isinstance(stmt.value, Apply)]
    passes: list[Index] = [call.args[0] for call in calls if call.template == AT_ONCE]
    for loop in function.body:
        if isinstance(loop, For) and loop.kind == "threads" and any(isinstance(one, For) and one.kind == "time" for one in walk(loop.body)):
            passes.append(loop.stop)
    return max(map(known.number, passes), default=0)


def _known(
    function: Function,
    values: Sequence[Any],
    stmts: Sequence[Stmt],
    longer: Set[str] = frozenset(),
    at_once: Callable[[int, int], int] | None = None,
) -> _Names:
    """The locals that decide sizes, as far as they follow from the arguments' shapes and numbers alone.

    Arguments in `longer` are taken as for LONGER more steps.
    """
    known = _Names({"at_once": at_once} if at_once else {})
    for argument, value in zip(function.arguments, values, strict=False):
        more = LONGER if argument.name in longer else 0
        shape = np.shape(value)
        known.names[argument.name] = _without_elements((shape[0] + more, *shape[1:])) if argument.rank else value + more if more else value
    sizes = _sizes(stmts)
    for stmt in stmts:
        if isinstance(stmt, Let) and stmt.is_new and stmt.name in sizes and stmt.name not in known.names:
            known.define(stmt.name, expression(stmt.value))
        elif isinstance(stmt, Alloc):
            known.names[stmt.name] = _without_elements([known.number(dim) for dim in stmt.shape])
    return known


def _sizes(stmts: Sequence[Stmt]) -> set[str]:
    """The names that shapes of arrays and bounds of loops depend on."""
    names: set[str] = set()
    for stmt in reversed(stmts):
        indices: Sequence[Index] = ()
        if isinstance(stmt, Alloc):
            indices = stmt.shape
        elif isinstance(stmt, For):
            indices = (stmt.start, stmt.stop, stmt.step)
        elif isinstance(stmt, Let) and (stmt.name in names or (isinstance(stmt.value, Apply) and stmt.value.template == AT_ONCE)):
            indices = (stmt.value,)
        names.update(name for index in indices for name, _ in names_in(index))
    return names


def _without_elements(shape: Sequence[int]) -> Any:
    """A stand-in for an array: a shape, without elements that a size could depend on."""
    return SimpleNamespace(shape=tuple(shape))


def _returned(function: Function) -> set[str]:
    """The names of the arrays that a function returns, also through views."""
    names: set[str] = set()
    for stmt in reversed(function.body):
        if isinstance(stmt, Return):
            names |= set(stmt.names)
        elif isinstance(stmt, Alias) and stmt.name in names:
            names.add(stmt.array)
    return names


# what is known of names -------------------------------------------------------------------------------------------------


class _Names:
    """The values of names as far as they are known before the run."""

    def __init__(self, names: dict[str, Any]) -> None:
        wrapping = {"wrapping_add": np.add, "wrapping_sub": np.subtract, "wrapping_mul": np.multiply}
        of_cards = {name: helper.function for name, helper in HELPERS.items() if helper.function is not None}
        self.names = {"np": np, "math": math, "min": min, "max": max, **wrapping, **of_cards, **names}

    def define(self, name: str, text: str) -> None:
        value = self.value(text)
        if value is None:
            self.names.pop(name, None)
        else:
            self.names[name] = value

    def number(self, index: Index) -> int:
        """A dimension or bound as a number; 0 if it is known only at run time."""
        try:
            return int(self.value(expression(index)))
        except (TypeError, ValueError, OverflowError):
            return 0

    def value(self, text: str) -> Any:
        """The value of a text; None if it is known only at run time."""
        try:
            return eval(text, {"__builtins__": {}}, self.names)
        except Exception:
            return None


# operations ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoopEstimate:
    """A loop: its line in the source, how often its body runs, and the operations of all passes together, loops inside included.

    inside: the loops in it that compute something; those of both branches of a choice count, though only one is taken.
    copied: for an outermost loop, the numbers that loops inside only copy from another row or array, by array, all passes together. Rows
    that are kept of each pass do not count: each has its own place.
    """

    line: str
    passes: int
    operations: int
    copied: Mapping[str, int] = field(default_factory=dict)
    inside: tuple[LoopEstimate, ...] = ()


@dataclass(frozen=True)
class Work:
    """The operations of a call on floating-point and complex numbers, and the outermost loops that make them.

    A function such as exp counts as one, a product of matrices as two per multiplication, any other library routine as none.
    A loop that may end early counts as if it did not; of two branches the longer one counts.
    """

    operations: int
    loops: tuple[LoopEstimate, ...]


def work_of(function: Function, values: Sequence[Any]) -> Work:
    """The work of a call of `function` with `values` (arrays, numbers)."""
    counter = _Counter({argument.name: value for argument, value in zip(function.arguments, values, strict=False)})
    loops: list[LoopEstimate] = []
    total = 0
    for stmt in function.body:
        with np.errstate(all="ignore"):  # rows that do not exist yet are read as zeros
            operations = counter.statement(stmt)
        total += operations
        copied, counter.copied = counter.copied, {}
        if isinstance(stmt, For) and (operations or copied):
            loops.append(LoopEstimate(_line(stmt), counter.passes(stmt), operations, copied, inside=tuple(counter.inside)))
        counter.inside = []
    return Work(total, tuple(loops))


def _line(loop: For) -> str:
    """The line of a loop in the source."""
    (line, *_) = statements([For(loop.name, loop.start, loop.stop, [], loop.step)], {}, 0)
    return line.removesuffix(":")


class _Counter(_Names):
    """Counts in one walk over the statements; a loop's body counts as in its first pass. `copied`: numbers, by the array copied to.

    `inside`: the loops found so far in the current loop.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.copied: dict[str, int] = {}
        self.inside: list[LoopEstimate] = []
        self.around: dict[str, int] = {}  # the counters of the loops around, with their passes, the outermost first

    def block(self, stmts: Sequence[Stmt]) -> int:
        return sum(self.statement(stmt) for stmt in stmts)

    def statement(self, stmt: Stmt) -> int:
        """The operations of a statement with all inside it."""
        if isinstance(stmt, Let):
            if stmt.is_new:
                self.define(stmt.name, expression(stmt.value))
            return _operations(stmt.value)
        if isinstance(stmt, Store):
            if _is_copy(stmt, list(self.around)):
                self.copied[stmt.array] = self.copied.get(stmt.array, 0) + math.prod(self.around.values())
            return _operations(stmt.value) + bool(stmt.combine)
        if isinstance(stmt, For):
            passes = self.passes(stmt)
            times = math.prod(self.around.values())
            self.names[stmt.name] = self.number(stmt.start)
            outside, self.inside = self.inside, []
            self.around[stmt.name] = passes
            operations = passes * self.block(stmt.body)
            del self.around[stmt.name]
            inside, self.inside = self.inside, outside
            if times and self.around and operations:
                self.inside.append(LoopEstimate(_line(stmt), times * passes, times * operations, inside=tuple(inside)))
            elif not self.around:
                self.inside = inside
            return operations
        if isinstance(stmt, If):
            before = dict(self.copied)
            then, copied, self.copied = self.block(stmt.then), self.copied, before
            otherwise = self.block(stmt.otherwise)
            self.copied = {name: max(copied.get(name, 0), self.copied.get(name, 0)) for name in {**copied, **self.copied}}
            return _operations(stmt.condition) + max(then, otherwise)
        if isinstance(stmt, Call):
            return 0 if stmt.turned is None else self._product(stmt)
        if isinstance(stmt, Alloc):  # an array of the right shape that takes no memory
            self.names[stmt.name] = np.broadcast_to(np.zeros((), stmt.dtype), tuple(max(self.number(dim), 0) for dim in stmt.shape))
        elif isinstance(stmt, Alias):
            self.define(stmt.name, view_text(stmt))
        return 0

    def passes(self, loop: For) -> int:
        """The number of times that the body of a loop runs."""
        return len(range(self.number(loop.start), self.number(loop.stop), max(self.number(loop.step), 1)))

    def _product(self, stmt: Call) -> int:
        """The operations of np.dot(a, b, out)."""
        a, _, out = (self.value(text) for text in handed(stmt))
        return 2 * int(np.size(out)) * int(np.shape(a)[-1]) if np.ndim(a) and out is not None else 0


def _is_copy(stmt: Store, counters: Sequence[str]) -> bool:
    """True if a store in nested loops copies from the same place of another row or array, and every outermost pass writes there."""
    if len(counters) < 2 or stmt.combine or not isinstance(stmt.value, Load) or not stmt.index or not stmt.value.index:
        return False
    places = {name for index in stmt.index for name, _ in names_in(index)}
    return stmt.index[-1] == stmt.value.index[-1] and counters[-1] in places and counters[0] not in places


def operations_in(stmts: Sequence[Stmt]) -> int:
    """The operations in the text of statements, each counted once. A routine counts as ROUTINE, one that draws ahead as DRAWN."""
    every = list(walk(stmts))
    called = [DRAWN if one.routine.endswith("_ahead") else ROUTINE for one in every if isinstance(one, Call)]
    return sum(_operations(one.value) for one in every if isinstance(one, Let | Store)) + sum(called)


def _operations(expr: Index) -> int:
    """The operations on floating-point and complex numbers in an expression."""
    if not isinstance(expr, Expr):
        return 0
    if isinstance(expr, Apply):
        return expr.dtype.startswith(("float", "complex")) + sum(map(_operations, expr.args))
    return sum(map(_operations, expr.index)) if isinstance(expr, Load) else 0
