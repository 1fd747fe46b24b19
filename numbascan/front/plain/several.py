"""Python's functions of several values: `max`, `min`, `sum`, `any`, `all`, `list`, `tuple`, with Python's meaning.

Each takes the arguments of the function that it replaces, and calls that for known values. Elements that are made on demand, or whose
number only the run knows, are taken by a loop.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, ValuesView
from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ..draw_scopes import keep_draws
from ..tree import flattened, unflatten
from ..variable import CAPTURE, Variable, as_variable, at_line, op
from .calls import callee, replaces
from .choices import choose, one_of, value_of
from .chosen import keep_free
from .elements import Each, each_of, is_open, is_run, run
from .joining import is_numeric
from .lists import list_of
from .made import Made
from .rows import Once, Rows, rows_of
from .stores import holds_traced
from .truth import either, is_traced, negation, python_bool, truth


def _is_traced(*values: Any) -> bool:
    return any(isinstance(value, Variable) or is_traced(value) for value in values)


Order = Callable[[Any, Any], Any]


def _extreme(known: Callable[..., Any], of_array: Callable[..., Any], is_better: Order) -> Callable[..., Any]:
    def extreme(*args: Any, key: Any = None, **default: Any) -> Any:
        rank = None if key is None else callee(key)
        items: Any = args if len(args) != 1 else list(args[0]) if isinstance(args[0], ValuesView) else args[0]
        is_array = len(args) == 1 and _is_traced(items) and as_variable(items).ndim
        if is_array and as_variable(items).type.shape[0] == 0 and rank is None:
            if default:
                return default["default"]
            raise ValueError(_empty(known.__name__))
        if is_array and rank is None and as_variable(items).ndim == 1 and not (default and is_open(items)):
            return _of_rows(as_variable(items), of_array, is_better)
        is_several = isinstance(items, (list, tuple)) and holds_traced(items)
        if not (is_array or is_several or is_run(items) or isinstance(items, Rows | Once) or (rank is not None and CAPTURE.home)):
            return known(*(args if len(args) != 1 else (items,)), **({} if key is None else {"key": rank}), **default)
        return _of_elements(items, known.__name__, is_better, rank, **default)

    return extreme


def _of_elements(items: Any, name: str, is_better: Order, key: Any, **default: Any) -> Any:
    """Python's extreme of elements: the first that none is better than."""
    best: Any = False
    rank: Any = False
    is_found: Any = False

    def take(element: Any) -> None:
        nonlocal best, rank, is_found
        own = element if key is None else key(element)
        if isinstance(is_found, Variable) and _ranks((best, rank)) != _ranks((element, own)):
            raise _OtherStart(_start_like(element, name), _start_like(own, name))

        def replace() -> None:
            nonlocal best, rank, is_found
            best, rank, is_found = element, own, True

        choose(one_of(negation(is_found), lambda: is_better(own, rank)), replace, None, ("best", "rank", "is_found"))

    source, make = items.taken() if isinstance(items, Made) else (rows_of(items), each_of)
    each = Each(take, ("best", "rank", "is_found"))
    taken_back = keep_free(), keep_draws()
    try:
        each.over(items if source is None else source, make)
    except _OtherStart as start:
        for take_back in taken_back:
            take_back()
        best, rank, is_found = start.best, start.rank, False
        each.over(source, make)
    if is_found is True:
        return best
    if default:
        return value_of(is_found, lambda: best, lambda: default["default"])
    if is_found is False:
        raise ValueError(_empty(name))
    leaves, structure = flattened(best)
    return unflatten(structure, [op(RAISING, leaf, truth(is_found), error="ValueError", message=_empty(name)) for leaf in leaves])


class _OtherStart(BaseException):
    """Elements are arrays or nests: the loop starts again from such values, which nobody reads. No `except Exception` gets it."""

    def __init__(self, best: Any, rank: Any) -> None:
        super().__init__()
        self.best, self.rank = best, rank


def _ranks(nest: Any) -> Any:
    leaves, structure = flattened(nest)
    return structure, list(map(np.ndim, leaves))


def _start_like(element: Any, name: str) -> Any:
    leaves, structure = flattened(element)
    for leaf in leaves:
        if not is_numeric(leaf) or None in as_variable(leaf).type.shape:
            raise TypeError(f"{name}() of {leaf!r}{at_line()}, and of how many only the run knows; write {name}(range(n), key=…), a place")
    return unflatten(structure, [_zero(as_variable(leaf)) for leaf in leaves])


def _zero(x: Variable) -> Any:
    return x.dtype.type(0).item() if x.type.weak else as_variable(np.zeros(x.type.shape, x.dtype))


def _empty(name: str) -> str:
    """Python's message for the extreme of nothing."""
    try:
        getattr(builtins, name)(())
    except ValueError as error:
        return str(error)
    raise AssertionError(name)


def _before(one: Any, other: Any) -> Any:
    """`one < other`, of tuples as Python compares them: by the first parts that differ."""
    if not (isinstance(one, tuple) and isinstance(other, tuple) and one and other):
        return one < other
    return value_of(one[0] == other[0], lambda: _before(one[1:], other[1:]), lambda: one[0] < other[0])


def _better(condition: Any, one: Any, other: Any) -> Any:
    return value_of(condition, lambda: one, lambda: other)


def _of_rows(x: Variable, of_array: Callable[..., Any], is_better: Order) -> Any:
    """Python's extreme of a vector, by comparisons, in which NaN is neither more nor less."""
    if x.type.kind != "f":
        return of_array(x)
    if isinstance(x.type.shape[0], int):
        best = x[0]
        for k in range(1, len(x)):
            best = _better(is_better(x[k], best), x[k], best)
        return best
    worst = -np.inf if of_array is np.max else np.inf
    others = of_array(np.where(np.isnan(x), worst, x))
    return value_of(np.isnan(x[0]), lambda: x[0], lambda: others)


replaces(max)(_extreme(max, np.max, lambda a, b: _before(b, a)))
replaces(min)(_extreme(min, np.min, _before))


@replaces(sum)
def _sum(items: Any, /, start: Any = 0) -> Any:
    if isinstance(items, (list, tuple)) and _is_traced(*items, start):
        for item in items:
            start = start + item
        return start
    if is_run(items) and not isinstance(items, Variable):
        return _added(items, start)
    if not _is_traced(items):
        return sum(items, start)
    x = as_variable(items)
    if isinstance(x.type.shape[0], int):
        return sum([x[k] for k in range(len(x))], start)
    total = np.sum(x, axis=0)
    return total if isinstance(start, int) and start == 0 else start + total


def _added(items: Any, start: Any) -> Any:
    total = start

    def add(element: Any) -> None:
        nonlocal total
        total = total + element

    run(items, add, ("total",))
    return total


@replaces(any)
def _any(items: Any, /) -> Any:
    if is_run(items) and not isinstance(items, Variable):
        return _found(items, lambda element: element)
    if isinstance(items, (list, tuple, Iterator)):
        return _one_holds(items)
    return np.any(as_variable(items)) if _is_traced(items) and as_variable(items).ndim == 1 else any(items)


def _found(items: Any, condition: Callable[[Any], Any]) -> Any:
    """Whether a condition holds for one of some elements. Those behind the first such are not made."""
    is_found: Any = False

    def look(element: Any) -> None:
        nonlocal is_found
        is_found = truth(condition(element))

    run(items, look, ("is_found",), ("is_found",))
    return python_bool(is_found)


def _one_holds(items: Iterable[Any]) -> Any:
    """Whether one of some conditions holds. Those behind a known one that does are not computed."""
    conditions = []
    for item in items:
        conditions.append(truth(item))
        if conditions[-1] is True:
            return True
    return python_bool(either(*conditions))


@replaces(all)
def _all(items: Any, /) -> Any:
    if is_run(items) and not isinstance(items, Variable):
        return negation(_found(items, negation))
    if isinstance(items, (list, tuple, Iterator)):
        return negation(_one_holds(negation(item) for item in items))
    return np.all(as_variable(items)) if _is_traced(items) and as_variable(items).ndim == 1 else all(items)


for _kind in (list, tuple):

    @replaces(_kind)
    def _list(*args: Any, kind: Any = _kind) -> Any:
        return list_of(args[0], kind) if len(args) == 1 and is_open(args[0]) else kind(*args)
