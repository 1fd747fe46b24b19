"""Loops over lanes whose passes may run in several threads become functions of their own.

    # before: rows = np.empty(100)                  # after: def f_lanes(first, last, watch, x, out):
    #         for i in range(n):                    #            rows = np.empty(100)
    #             …                                 #            for i in range(first, last):
    #                                               #                …
    #                                               #        watch = new_watch()
    #                                               #        if not in_threads(f_lanes, 0, n, 1, 100 * 3, 0, (watch, x, out)):
    #                                               #            f_lanes(np.int64(0), n, watch, x, out)
    #                                               #        if stopped(watch, 0):
    #                                               #            raise InterruptedError

Only loops over time inside are worth a thread. Memory that nothing but the loop uses, and views of it, each thread has for itself. An
error in a thread leaves all to one thread, which meets the first error first. A call that is stopped is left by all threads, and by the
function around them, which alone gives its memory back.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

from ..ir.loops import (
    Alias,
    Alloc,
    Call,
    For,
    Function,
    Index,
    Let,
    Name,
    Stmt,
    Store,
    add,
    least,
    may_end,
    mul,
    names_in,
    outermost_times,
    sub,
    walk,
)
from ..ir.names import WORD
from .estimates import DRAWN, operations_in
from .looks import Looks
from .text import expression, statements

OFTEN = 16  # steps of an inner loop of which only the passes know how many there are
SOME = 1024  # steps of a loop that may end early: the most that there may be tells nothing of how many there are
ENOUGH = 1 << 32  # steps of a lane beyond which more make no difference, and whose product with the operations of a step fits into an int64
_WORD = re.compile(rf"(?<![\w.]){WORD}")


@dataclass(frozen=True)
class OutlinedLoop:
    """A loop over lanes as a function of a range of lanes."""

    name: str
    loop: For
    own: Sequence[Alloc | Alias]
    reads: Sequence[str]
    options: str

    def function(self, messages: Mapping[str, str], looks: Looks) -> list[str]:
        """The lines of its definition."""
        head = f"def {self.name}({', '.join(('first', 'last', looks.watch.name, *self.reads))}):"
        return [f"@njit({self.options})", head, *statements([*self.own, looks.in_lanes(_any_passes(self.loop), self.loop.stop)], messages)]

    def call(self, most: int, looks: Looks) -> list[str]:
        """The lines that stand for the loop; in at most so many threads, 0 for as many as there are processors."""
        start, stop = expression(self.loop.start), expression(self.loop.stop)
        values = ", ".join((looks.watch.name, *self.reads))
        work = f"{expression(self.loop.step)}, {expression(self._work())}, {most}"
        ends = (f"np.int64({end})" if end.isdigit() else end for end in (start, stop))  # for a literal Numba would compile it once more
        threads = [
            f"    if not in_threads({self.name}, {start}, {stop}, {work}, ({values}{',' * (not self.reads)})):",
            f"        {self.name}({', '.join((*ends, values))})",
        ]
        return [*statements([looks.new_watch()], {}), *threads, *statements([looks.raise_if_stopped()], {})]

    def _work(self) -> Index:
        """The operations in a pass: of all steps of its loops over time, and of what is drawn for them."""
        times = list(outermost_times(self.loop.body))
        inside = _defined_in(self.loop.body) | {stmt.name for stmt in walk(self.loop.body) if isinstance(stmt, For)}
        steps = [_steps_that_count(time) for time in times]
        known = [count if inside.isdisjoint(name for name, _ in names_in(count)) else OFTEN for count in steps]
        drawn = DRAWN * sum(isinstance(stmt, Call) and stmt.routine.endswith("_ahead") for stmt in self.loop.body)
        return reduce(add, [mul(count, max(operations_in(time.body) + drawn, 1)) for time, count in zip(times, known, strict=True)])


def _steps_that_count(time: For) -> Index:
    """The steps of a loop over time, as far as they say how much there is to do."""
    steps = sub(time.stop, time.start)
    if may_end(time.body):
        return least(steps, SOME)
    return min(steps, ENOUGH) if isinstance(steps, int) else steps


def outlined_loops(function: Function, options: str) -> list[OutlinedLoop]:
    """The loops of a function whose passes may be shared out to threads; `options`: of the decorator of each."""
    outlined: list[OutlinedLoop] = []
    for stmt in function.body:
        if isinstance(stmt, For) and stmt.kind == "lanes" and any(isinstance(one, For) and one.kind == "time" for one in walk(stmt.body)):
            one = _outlined(function, stmt, f"{function.name}_lanes" + f"_{len(outlined) + 1}" * bool(outlined), options)
            outlined += [one] if one else []
    return outlined


def _outlined(function: Function, loop: For, name: str, options: str) -> OutlinedLoop | None:
    """The loop as a function; None where its passes have more in common than what they read and the arrays they write to."""
    others = [stmt for stmt in function.body if stmt is not loop]
    own = _own(others)
    around = [stmt for stmt in others if stmt not in own]
    changed = {stmt.name for stmt in walk([loop]) if isinstance(stmt, Let) and not stmt.is_new}
    if changed - _defined_in(loop.body) or _defined_in(loop.body) & set(_words(around)) or not _is_apart(function, loop, own, around):
        return None
    known = _defined_in(around) | {argument.name for argument in function.arguments}
    return OutlinedLoop(name, loop, own, [word for word in _words([*own, loop]) if word in known], options)


def _own(others: Sequence[Stmt]) -> list[Alloc | Alias]:
    """Memory, and views of it, that nothing but the loop uses."""
    words = {id(stmt): list(_words([stmt])) for stmt in others}
    mentions = Counter(chain.from_iterable(words.values()))
    own: set[int] = set()
    while True:
        more = [id(stmt) for stmt in others if isinstance(stmt, Alloc | Alias) and id(stmt) not in own and mentions[stmt.name] == 1]
        if not more:
            return [stmt for stmt in others if isinstance(stmt, Alloc | Alias) and id(stmt) in own]
        own.update(more)
        for place in more:
            mentions.subtract(words[place])


def _is_apart(function: Function, loop: For, own: Sequence[Alloc | Alias], around: Sequence[Stmt]) -> bool:
    """Does each pass write into arrays from outside at places of its own alone?

    What lies whole before the loop may be read anywhere: arrays given, and those that something else writes. Any other array from outside
    is taken to be written where a routine, or a view that does not depend on the pass, has it.
    """
    whole = {argument.name for argument in function.arguments if not argument.is_written}
    inside = _defined_in(loop.body) | {stmt.name for stmt in own}
    arrays = _defined_in(around) | {argument.name for argument in function.arguments}
    for stmt in walk(function.body[: next(k for k, stmt in enumerate(function.body) if stmt is loop)]):
        if isinstance(stmt, Store):
            whole.add(stmt.array)
        elif isinstance(stmt, Call):
            whole.update(stmt.args)
        elif (isinstance(stmt, Alias) and not arrays.intersection(_words([stmt])) - whole - {stmt.name}) or isinstance(stmt, Let):
            whole.add(stmt.name)
    for stmt in walk(loop.body):
        if isinstance(stmt, Store) and stmt.array not in inside and not _depends(stmt.index, loop.name):
            return False
        if isinstance(stmt, Alias) and not _depends(stmt.args, loop.name) and arrays.intersection(_words([stmt])) - whole - inside:
            return False
        if isinstance(stmt, Call) and arrays.intersection(_words([stmt])) - whole - inside:
            return False
    return True


def _depends(exprs: Sequence[Index], name: str) -> bool:
    return any(read == name for expr in exprs for read, _ in names_in(expr))


def _any_passes(loop: For) -> For:
    """The loop over whichever passes a call is given."""
    return replace(loop, start=Name("int64", "first"), stop=Name("int64", "last"))


def _defined_in(stmts: Sequence[Stmt]) -> set[str]:
    """The locals that statements make."""
    return {stmt.name for stmt in walk(stmts) if isinstance(stmt, Alloc | Alias) or (isinstance(stmt, Let) and stmt.is_new)}


def _words(stmts: Sequence[Stmt]) -> dict[str, None]:
    """The words in the text of statements, each once, in order."""
    lines = statements(stmts, defaultdict(str))
    return dict.fromkeys(word for line in lines for word in _WORD.findall(line))
