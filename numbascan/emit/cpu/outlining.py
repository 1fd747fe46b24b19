"""Outlining: loops over lanes whose passes may run in several threads become functions of their own.

    # before: rows = np.empty(100)                  # after: def f_lanes(first, last, watch, x, out):
    #         for i in range(n):                    #            rows = np.empty(100)
    #             …                                 #            for i in range(first, last):
    #                                               #                …
    #                                               #        watch = new_watch()
    #                                               #        if not in_threads(f_lanes, 0, n, 1, 100 * 3, 0, (watch, x, out)):
    #                                               #            f_lanes(np.int64(0), n, watch, x, out)
    #                                               #        if stopped(watch, 0):
    #                                               #            raise InterruptedError

Only lanes with loops over time are worth a thread. Each thread has its own copy of memory that only the loop uses, and of views of it.
After an error in a thread one thread runs all lanes again, so that the first error is raised. If a call is stopped, all threads leave, and
so does the function around them, which alone frees its memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ...ir import loops as ir
from ...ir.mentions import used_by_alone
from ...ir.names import WORD
from ..estimates import DRAWN, operations_in
from ..text import expression, statements
from .looks import Looks

OFTEN = 16  # assumed steps of a loop whose bounds a pass computes
SOME = 1024  # most steps that count of a loop that may end early: its bound says nothing about its length
ENOUGH = 1 << 32  # steps of a lane beyond which more make no difference; times the operations of a step they fit into an int64
_WORD = re.compile(rf"(?<![\w.]){WORD}")


@dataclass(frozen=True)
class OutlinedLoop:
    """A loop over lanes as a function of a range of lanes."""

    name: str
    loop: ir.For
    own: Sequence[ir.Alloc | ir.Alias]
    reads: Sequence[str]
    options: str

    def function(self, messages: Mapping[str, str], looks: Looks) -> list[str]:
        """The lines of the function's definition."""
        head = f"def {self.name}({', '.join(('first', 'last', looks.watch.name, *self.reads))}):"
        return [f"@njit({self.options})", head, *statements([*self.own, looks.in_lanes(_any_passes(self.loop), self.loop.stop)], messages)]

    def call(self, most: int, looks: Looks) -> list[str]:
        """The lines that replace the loop. `most`: the most threads; 0: as many as there are processors."""
        start, stop = expression(self.loop.start), expression(self.loop.stop)
        values = ", ".join((looks.watch.name, *self.reads))
        work = f"{expression(self.loop.step)}, {expression(self._work())}, {most}"
        ends = (f"np.int64({end})" if end.isdigit() else end for end in (start, stop))  # Numba would compile again for a literal
        threads = [
            f"    if not in_threads({self.name}, {start}, {stop}, {work}, ({values}{',' * (not self.reads)})):",
            f"        {self.name}({', '.join((*ends, values))})",
        ]
        return [*statements([looks.new_watch()], {}), *threads, *statements([looks.raise_if_stopped()], {})]

    def _work(self) -> ir.Index:
        """The operations of a pass: those of all steps of its loops over time, draws included."""
        times = list(ir.outermost_times(self.loop.body))
        inside = _defined_in(self.loop.body) | {stmt.name for stmt in ir.walk(self.loop.body) if isinstance(stmt, ir.For)}
        steps = [_steps_that_count(time) for time in times]
        known = [count if inside.isdisjoint(name for name, _ in ir.names_in(count)) else OFTEN for count in steps]
        drawn = DRAWN * sum(isinstance(stmt, ir.Call) and stmt.routine.endswith("_ahead") for stmt in self.loop.body)
        return reduce(ir.add, [ir.mul(count, max(operations_in(time.body) + drawn, 1)) for time, count in zip(times, known, strict=True)])


def _steps_that_count(time: ir.For) -> ir.Index:
    """The steps of a loop over time as a measure of its work: bounded by SOME if it may end early, a known number by ENOUGH."""
    steps = ir.sub(time.stop, time.start)
    if ir.may_end(time.body):
        return ir.least(steps, SOME)
    return min(steps, ENOUGH) if isinstance(steps, int) else steps


def outlined_loops(function: ir.Function, options: str) -> list[OutlinedLoop]:
    """The loops of a function whose passes may be shared out to threads. `options`: those of each function's decorator."""
    outlined: list[OutlinedLoop] = []
    for stmt in function.body:
        if (
            isinstance(stmt, ir.For)
            and stmt.kind == "lanes"
            and any(isinstance(one, ir.For) and one.kind == "time" for one in ir.walk(stmt.body))
        ):
            one = _outlined(function, stmt, f"{function.name}_lanes" + f"_{len(outlined) + 1}" * bool(outlined), options)
            outlined += [one] if one else []
    return outlined


def _outlined(function: ir.Function, loop: ir.For, name: str, options: str) -> OutlinedLoop | None:
    """The loop as a function; None if its passes share more than what they read and the arrays that they write."""
    others = [stmt for stmt in function.body if stmt is not loop]
    own = used_by_alone(loop, ir.walk(function.body))
    around = [stmt for stmt in others if stmt not in own]
    changed = {stmt.name for stmt in ir.walk([loop]) if isinstance(stmt, ir.Let) and not stmt.is_new}
    if changed - _defined_in(loop.body) or _defined_in(loop.body) & set(_words(around)) or not _is_apart(function, loop, own, around):
        return None
    known = _defined_in(around) | {argument.name for argument in function.arguments}
    return OutlinedLoop(name, loop, own, [word for word in _words([*own, loop]) if word in known], options)


def _is_apart(function: ir.Function, loop: ir.For, own: Sequence[ir.Alloc | ir.Alias], around: Sequence[ir.Stmt]) -> bool:
    """True if each pass writes arrays from outside only at places that depend on the pass.

    Arrays that are complete before the loop may be read anywhere: arguments, and those written before. Any other array from outside
    counts as written if a routine, or a view that does not depend on the pass, takes it.
    """
    whole = {argument.name for argument in function.arguments if not argument.is_written}
    inside = _defined_in(loop.body) | {stmt.name for stmt in own}
    arrays = _defined_in(around) | {argument.name for argument in function.arguments}
    for stmt in ir.walk(function.body[: next(k for k, stmt in enumerate(function.body) if stmt is loop)]):
        if isinstance(stmt, ir.Store):
            whole.add(stmt.array)
        elif isinstance(stmt, ir.Call):
            whole.update(stmt.args)
        elif (isinstance(stmt, ir.Alias) and not arrays.intersection(_words([stmt])) - whole - {stmt.name}) or isinstance(stmt, ir.Let):
            whole.add(stmt.name)
    for stmt in ir.walk(loop.body):
        if isinstance(stmt, ir.Store) and stmt.array not in inside and not _depends(stmt.index, loop.name):
            return False
        if isinstance(stmt, ir.Alias) and not _depends(stmt.args, loop.name) and arrays.intersection(_words([stmt])) - whole - inside:
            return False
        if isinstance(stmt, ir.Call) and arrays.intersection(_words([stmt])) - whole - inside:
            return False
    return True


def _depends(exprs: Sequence[ir.Index], name: str) -> bool:
    return any(read == name for expr in exprs for read, _ in ir.names_in(expr))


def _any_passes(loop: ir.For) -> ir.For:
    """The loop over the passes that a call gets, from `first` to `last`."""
    return replace(loop, start=ir.Name("int64", "first"), stop=ir.Name("int64", "last"))


def _defined_in(stmts: Sequence[ir.Stmt]) -> set[str]:
    """The locals that statements define."""
    return {stmt.name for stmt in ir.walk(stmts) if isinstance(stmt, ir.Alloc | ir.Alias) or (isinstance(stmt, ir.Let) and stmt.is_new)}


def _words(stmts: Sequence[ir.Stmt]) -> dict[str, None]:
    """The words in the text of statements, each once, in order."""
    lines = statements(stmts, defaultdict(str))
    return dict.fromkeys(word for line in lines for word in _WORD.findall(line))
