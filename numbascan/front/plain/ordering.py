"""`sorted`, and the methods of lists that compare elements: `sort`, `index`, `count`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ..variable import Variable, as_variable, at_line, op
from .calls import COMPARING, callee, replaces
from .elements import is_run
from .lists import Listed, list_of, listed
from .rows import python_number
from .stores import get, holds_traced
from .truth import truth


@replaces(sorted)
def _sorted(items: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    rank = None if key is None else callee(key)
    several = list_of(items) if is_run(items) or isinstance(items, Variable) else list(items)
    if isinstance(several, Listed):
        ranks = several if rank is None else listed(several, lambda parts, each: [each(rank(part)) for part in parts])
        return several.picked(_order(ranks.array(), reverse))
    ranks = several if rank is None else [rank(one) for one in several]
    if not holds_traced(ranks):
        order = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=reverse)
        return [several[k] for k in order]
    ordered = as_variable(several)[_order(as_variable(ranks), reverse)]
    return [python_number(ordered[k]) if ordered.type.weak else ordered[k] for k in range(len(several))]


def _order(ranks: Variable, reverse: Any) -> Variable:
    """The indices that sort numbers; equal ones keep their order. The run raises a ValueError for NaN."""
    if ranks.ndim != 1:
        raise TypeError(f"sorted by what is no number{at_line()}: of tuples, lists and arrays only the run knows which comes first")
    if ranks.type.kind == "f":
        what = "sorted of NaN: under Python its place depends on the order of comparisons"
        ranks = op(RAISING, ranks, np.logical_not(np.isnan(ranks).any()), error="ValueError", message=what)
    if not reverse:
        return as_variable(np.argsort(ranks, stable=True))
    return as_variable(ranks.shape[0] - 1 - np.argsort(ranks[::-1], stable=True)[::-1])


def _sort(several: list[Any], *, key: Any = None, reverse: Any = False) -> None:
    several[:] = _sorted(several, key=key, reverse=reverse)


def _equal(several: Sequence[Any], value: Any) -> list[Any]:
    return [True if one is value else truth(one == value) for one in several]


def _index(several: Sequence[Any], value: Any, *limits: int) -> Any:
    part = range(len(several))[slice(*(*limits, None)[:2])]
    equal = _equal([several[k] for k in part], value)
    if not any(isinstance(one, Variable) for one in equal):
        return several.index(value, *limits)
    array = as_variable(equal)
    place = op(RAISING, np.argmax(array), array.any(), error="ValueError", message="the value is not in the list")
    return python_number(place + part.start)


def _count(several: Sequence[Any], value: Any) -> Any:
    equal = _equal(several, value)
    known = sum(one for one in equal if not isinstance(one, Variable))
    traced = [one for one in equal if isinstance(one, Variable)]
    return python_number(np.sum(as_variable(traced)) + known) if traced else known


_OF_LISTS: dict[str, Callable[..., Any]] = {"sort": _sort, "index": _index, "count": _count}
COMPARING[dict, "get"] = partial(get)
COMPARING.update({(kind, name): partial(ours) for kind in (list, tuple) for name, ours in _OF_LISTS.items() if hasattr(kind, name)})
