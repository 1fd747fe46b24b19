"""Loops that may run for long ask now and then whether they must stop (a look).

    # before: for t in range(n):            # after: for t in range(n):
    #             …                         #            …
    #                                       #            if interrupted_at(256, t, n):
    #                                       #                raise InterruptedError

    # before: for t in range(n):            # after: for t0 in range(0, n, 65536):
    #             y[t] = 2.0 * x[t]         #            for s in range(min(65536, n - t0)):
    #                                       #                t = max(t0, 0) + s
    #                                       #                y[t] = 2.0 * x[t]
    #                                       #            if interrupted_at(1, t0, n):
    #                                       #                raise InterruptedError

The second form is for loops that LLVM vectorizes, which it would not if a pass might be the last, and for passes of a few statements that
wait only for memory (`x[k] += w`): a look in each would take up to a third of the time. Rows of steps that ran are whole then.
`inside/looks.py` tells how a look works. Not handled: work within a step, except loops over time or lanes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...ir import loops as ir
from ...ir.names import Names
from .in_lanes import may_be_vectors

LONG = 1 << 16  # statements from which a loop is worth a look: some 20 µs
STRIP = 1 << 16  # passes of a strip, for loops that look between strips
BRIEF = 16  # statements of a pass up to which a look costs noticeable time
COUNTED = 1 << 32  # most steps of a lane that are counted: those of all lanes together then fit into an int64
FEW, MANY = 8, 256  # steps before the clock is first read: for steps that may take long, and for others


class Looks:
    """Puts looks into the loops of a function."""

    def __init__(self, names: Names, fastmath: bool) -> None:
        """`fastmath`: LLVM also vectorizes loops of sums."""
        self.names, self.fastmath = names.copy(), fastmath
        self.watch = ir.Name("int64", self.names.fresh("watch"))  # shared by the threads of a call
        self.count = 0

    def new_watch(self) -> ir.Stmt:
        return ir.Let(self.watch.name, ir.Apply("int64", ir.Template("new_watch()"), ()))

    def raise_if_stopped(self) -> ir.Stmt:
        return ir.If(_called("stopped", self.watch, 0), [_RAISE])

    def within(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """The statements with looks in their long loops."""
        return ir.rebuilt(stmts, lambda stmt: [self._looking(stmt, (0, 1, stmt.stop), None)] if isinstance(stmt, ir.For) else None)

    def in_lanes(self, loop: ir.For, passes: ir.Index) -> ir.Stmt:
        """A loop over some of the `passes` lanes of a call, with looks. Its function returns if the call is stopped."""
        return self._looking(loop, (0, 1, passes), self.watch)

    def _looking(self, loop: ir.For, place: Place, watch: ir.Name | None) -> ir.Stmt:
        """The loop with looks if it is long.

        `place`: the first pass's position among the passes of all loops around, how far one pass moves it, and the number of all; () if the
        loop does not report its progress.
        """
        counted = self.count
        body = [self._inner(stmt, _inside(place, loop, stmt), watch) for stmt in loop.body]
        if loop.kind not in ("time", "lanes", "rest") or _statements([loop]) < LONG:
            return replace(loop, body=body)
        looking = [stmt for stmt in body if isinstance(stmt, ir.For) and stmt.body and _is_look(stmt.body[-1])]
        if loop.kind == "lanes" and looking:  # the loops inside count the steps of all lanes
            return replace(loop, body=body)
        steps = 1 if self.count > counted else MANY if _statements(body) * MANY < LONG else FEW
        self.count += 1
        if loop.step == 1 and (_is_apart(loop) or _is_brief(loop)) and may_be_vectors(loop, _sums(loop, self.fastmath)):
            first, passed = (ir.Name("int64", self.names.fresh(name, is_counter=True)) for name in (f"{loop.name}0", "s"))
            counter = ir.Let(loop.name, ir.add(ir.greatest(first, 0), passed))  # `max` shows LLVM that the index is not negative
            strip = ir.For(passed.name, 0, ir.least(STRIP, ir.sub(loop.stop, first)), [counter, *body])
            return replace(loop, name=first.name, body=[strip, _look(1, _at(place, first), watch)], step=STRIP)
        return replace(loop, body=[*body, _look(steps, _at(place, ir.Name("int64", loop.name)), watch)])

    def _inner(self, stmt: ir.Stmt, place: Place, watch: ir.Name | None) -> ir.Stmt:
        if isinstance(stmt, ir.For):
            return self._looking(stmt, place, watch)
        return ir.with_blocks(stmt, lambda block: [self._inner(inner, (), watch) for inner in block])


Place = tuple[()] | tuple[ir.Index, ir.Index, ir.Index]

_RAISE = ir.Fail("InterruptedError", "")
_NAMES = ("interrupted", "interrupted_at", "stopped", "stopped_at")


def _inside(place: Place, loop: ir.For, stmt: ir.Stmt) -> Place:
    """The place of a loop inside one over lanes: it counts the steps of all lanes, or only lanes done if a lane's steps are not known.

    () in a loop over time, and for other statements.
    """
    if not place or loop.kind == "time" or not isinstance(stmt, ir.For):
        return ()
    start, passes = _at(place, ir.Name("int64", loop.name))
    if ir.may_end(stmt.body) or (isinstance(stmt.stop, int) and stmt.stop > COUNTED):
        return start, 0, passes
    return ir.mul(start, stmt.stop), ir.mul(place[1], loop.step), ir.mul(passes, stmt.stop)


def _at(place: Place, counter: ir.Name) -> tuple[ir.Index, ...]:
    return (ir.add(place[0], ir.mul(counter, place[1])), place[2]) if place else ()


def _look(steps: int, place: tuple[ir.Index, ...], watch: ir.Name | None) -> ir.Stmt:
    """A statement that leaves the function if the call must stop; it first reads the clock after `steps` steps."""
    name = _NAMES[bool(place) + 2 * (watch is not None)]
    return ir.If(_called(name, *(() if watch is None else (watch,)), steps, *place), [_RAISE if watch is None else ir.Return(())])


def _is_look(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.If) and isinstance(stmt.condition, ir.Apply) and stmt.condition.template.text.partition("(")[0] in _NAMES


def _called(name: str, *operands: ir.Index) -> ir.Expr:
    return ir.Apply("bool", ir.Template(f"{name}({', '.join(f'{{{k}}}' for k in range(len(operands)))})"), operands)


def _is_apart(loop: ir.For) -> bool:
    """True if each pass writes only its own places, in arrays that no pass reads."""
    stores = [stmt for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Store)]
    reads = {name for stmt in ir.walk(loop.body) for expr in ir.expressions(stmt) for name, is_element in ir.names_in(expr) if is_element}
    own = all(any(name == loop.name for index in store.index for name, _ in ir.names_in(index)) for store in stores)
    return own and reads.isdisjoint(store.array for store in stores)


def _is_brief(loop: ir.For) -> bool:
    """True if each pass is a few statements, none of them a loop."""
    return not any(isinstance(stmt, ir.For) for stmt in ir.walk(loop.body)) and _statements(loop.body) <= BRIEF


def _sums(loop: ir.For, fastmath: bool) -> set[str]:
    """The locals that passes only add to, or multiply, and that LLVM may reassociate: integers, and under `fastmath` all."""
    moved = [stmt for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let) and not stmt.is_new]
    reads = Counter(name for stmt in ir.walk(loop.body) for expr in ir.expressions(stmt) for name, _ in ir.names_in(expr))
    return {stmt.name for stmt in moved if reads[stmt.name] == 1 and _adds(stmt) and (fastmath or not _is_rounded(stmt.value))}


def _adds(stmt: ir.Let) -> bool:
    value = stmt.value
    return (
        isinstance(value, ir.Apply)
        and value.template in (ir.IN_ORDER, ir.DIFFERENCE, ir.PRODUCT)
        and value.args[0] == ir.Name(value.dtype, stmt.name)
    )


def _is_rounded(value: ir.Index) -> bool:
    return isinstance(value, ir.Expr) and value.dtype.startswith(("float", "complex"))


def _statements(stmts: Sequence[ir.Stmt]) -> float:
    """The number of statements that run; infinity if known only at run time, or if a routine is called."""
    return sum(_of(stmt) for stmt in stmts)


def _of(stmt: ir.Stmt) -> float:
    if isinstance(stmt, ir.For):
        passes, step = ir.sub(stmt.stop, stmt.start), stmt.step
        if not (isinstance(passes, int) and isinstance(step, int)):
            return math.inf
        return max(passes, 0) / step * (1 + _statements(stmt.body))
    if isinstance(stmt, ir.If):
        return 1 + _statements(stmt.then) + _statements(stmt.otherwise)
    return math.inf if isinstance(stmt, ir.Call) else 1
