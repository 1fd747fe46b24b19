"""`ns.scan` of arrays, run now. Code of earlier calls is found by the step, the keywords and the kind of the arguments.

A step is found by itself or by a twin, since most steps are lambdas made anew for each call.
"""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

from ...progress import Show
from ..captures.twins import Twin, new_twin, twin_of
from .arguments import Arguments, Options
from .compiled import CompiledScan, CompiledScans, QuickTable, quick_call
from .updates import OrderedUpdates

MOST_TABLES = 8
_UNCHANGING = frozenset({type(None), bool, int, str})

Given = tuple[Any, Any, Any, Any]  # sequences, outputs_info, non_sequences, n_steps, unread
Keywords = tuple[Any, ...]


class ImmediateScans(CompiledScans):
    """The compiled kinds of one step, with a table of calls for each set of keywords."""

    def __init__(self, like: CompiledScans | None = None) -> None:
        super().__init__(like)
        self._tables: tuple[tuple[Keywords, QuickTable], ...] = ()

    def table(self, keywords: Keywords) -> QuickTable | None:
        """The calls with exactly these keyword objects (compared by `is`); None if there were none."""
        for met, table in self._tables:
            if all(map(operator.is_, met, keywords)):
                return table
        return None

    def table_for(self, keywords: Keywords) -> QuickTable:
        """The table, made if there is none. Not kept for keywords whose meaning may change (a list, "auto"), nor beyond MOST_TABLES."""
        if (known := self.table(keywords)) is not None:
            return known
        table = QuickTable()
        if all(type(value) in _UNCHANGING and value != "auto" for value in keywords) and len(self._tables) < MOST_TABLES:
            self._tables = (*self._tables, (keywords, table))
        return table


_scans: weakref.WeakKeyDictionary[types.FunctionType, ImmediateScans] = weakref.WeakKeyDictionary()


def run_known(fn: types.FunctionType, given: Given, keywords: Keywords) -> tuple[Any] | None:
    """The results of a call that is like an earlier one, in a tuple of one; None if the call must take the long way."""
    twin = twin_of(fn)
    scans = _scans.get(fn if twin is None else twin.functions[0])
    table = None if scans is None else scans.table((fn.__name__, *keywords))
    quick = None if table is None else quick_call(*given)
    if table is None or quick is None:
        return None
    key, values = quick
    known = table.get(key)
    if known is None or not _is_for(known[0], twin) or not known[0].is_current():
        return None
    compiled, kind = known
    return _handed_out(compiled, compiled.run(values, None, kind))


def _is_for(compiled: CompiledScan, twin: Twin | None) -> bool:
    """True without a twin, or if the code was traced with the twin's copy: what a twin reads may have changed since."""
    return twin is None or compiled.read is twin.copy


def run_now(
    fn: Callable[..., Any],
    given: Given,
    keywords: Keywords,
    arguments: Arguments,
    steps: int | None,
    options: Options,
    progress: Show | bool,
) -> tuple[Any] | None:
    """The results of any immediate call, in a tuple of one; None if the step uses symbolic or shared variables."""
    if isinstance(fn, types.FunctionType):
        scans, compiled = _found(fn, arguments, steps is not None, options)
    else:
        scans = ImmediateScans()
        compiled = scans.find(fn, arguments, steps is not None, options)
    if compiled.symbolic or compiled.has_states:
        return None
    quick = quick_call(*given) if isinstance(fn, types.FunctionType) else None
    if quick is not None:
        key, values = quick
        scans.table_for((fn.__name__, *keywords)).add(key, compiled, values if steps is None else values[1:], arguments.leaves)
    return _handed_out(compiled, compiled.run(arguments.values(steps), progress=progress))


def _found(fn: types.FunctionType, arguments: Arguments, has_n_steps: bool, options: Options) -> tuple[ImmediateScans, CompiledScan]:
    """The compiled kind of a twin or of the step itself, and the table that holds it."""
    twin = twin_of(fn)
    scans = None if twin is None or not twin.hold() else _scans.get(twin.functions[0])
    if twin is not None and scans is not None:
        compiled = scans.find(fn, arguments, has_n_steps, options, twin)
        if _is_for(compiled, twin):
            return scans, compiled
    is_new = fn not in _scans
    like = twin_of(fn, but_numbers=True) if is_new else None
    scans = _scans.setdefault(fn, ImmediateScans(None if like is None else _scans.get(like.functions[0]))) if is_new else _scans[fn]
    return scans, scans.find(fn, arguments, has_n_steps, options, new_twin(fn) if is_new else None)


def _handed_out(compiled: CompiledScan, outputs: Any) -> tuple[Any]:
    return ((outputs, OrderedUpdates()),) if compiled.options.return_updates else (outputs,)
