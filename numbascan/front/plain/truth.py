"""Whether a condition is known while tracing, and what conditions combine to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ...errors import TracerBoolError
from ...ir.node import INPUT, constant_value
from ...ops.card import card_named
from ..tree import OpenList
from ..variable import Variable, as_variable, at_line, op
from ..views import UnsureView, note_same, root_of
from .chosen import is_frozen
from .made import InPlaceOfAList, Made
from .options import Option

_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"


def is_traced(value: Any) -> bool:
    """Whether only the run knows a value: a variable without a known value, or an array of objects that holds one."""
    if isinstance(value, Variable):
        return constant_value(value.node) is None
    if isinstance(value, Option):
        return True
    if type(value) is np.ndarray and value.dtype == object:
        return any(isinstance(part, Variable) for part in value.flat)
    return False


def truth(condition: Any) -> bool | Variable:
    """A condition as Python's bool where it is known, else as a boolean scalar. ValueError for an array of several elements."""
    if condition is True or condition is False:
        return condition
    if isinstance(condition, OpenList):
        return truth(condition.has_elements())
    if isinstance(condition, Option):  # None is false
        return truth(as_variable(condition.has) & truth(condition.value))
    if not is_traced(condition):
        if isinstance(condition, Variable):
            return bool(constant_value(condition.node))
        return bool(condition)
    value = as_variable(condition)
    if value.ndim:
        if any(dim != 1 for dim in value.type.shape):
            raise ValueError(f"{_AMBIGUOUS} (the condition is {value.type}{at_line()})")
        value = value.reshape(())
    return value if value.type.kind == "b" else as_variable(value != 0)


def plain(condition: Any) -> bool:
    """A condition where Python decides. TracerBoolError where only the run knows it."""
    known = truth(condition)
    if isinstance(known, Variable):
        raise TracerBoolError(
            f"an `if` or a loop within a `try`, or a filter of a comprehension, asks for a value that only the run knows ({known.type})"
            f"{at_line()}; take it out of the `try`, or write np.where(condition, a, b)"
        )
    return known


def may_fail(value: Any) -> Any:
    """A result for which a `try` waits for an error. TracerBoolError for a number that only the run knows: none would come."""
    if isinstance(value, Variable) and not value.ndim and constant_value(value.node) is None:
        raise TracerBoolError(
            f"a `try` waits for an error of a number that only the run knows ({value.type}){at_line()}, where the run gives inf, nan or "
            "0; take it out of the `try`, and ask before: `y = 0.0 if b == 0 else a / b`"
        )
    return value


def negation(value: Any) -> Any:
    """`not value`."""
    known = truth(value)
    return python_bool(np.logical_not(known)) if isinstance(known, Variable) else not known


def python_bool(value: Any) -> Any:
    """A truth value as Python's own: `True + True` is 2, where NumPy's is True."""
    is_strong = isinstance(value, Variable) and not value.type.weak
    return op(card_named("python_number"), value) if is_strong else value


def either(*flags: Any) -> Any:
    """Whether one of some flags is set. They are Python's or traced."""
    traced = [flag for flag in flags if is_traced(flag)]
    if any(truth(flag) for flag in flags if not is_traced(flag)):
        return True
    result: Any = False
    for flag in traced:
        result = truth(flag) if result is False else np.logical_or(result, truth(flag))
    return result


def contains(container: Any, value: Any) -> Any:
    """`value in container`."""
    if isinstance(container, Variable):
        return (container == value).any()
    if isinstance(container, Made):
        return container.holds(value)
    if not is_traced(value) and not (isinstance(container, (list, tuple)) and any(map(is_traced, container))):
        return value in container
    if isinstance(container, range):
        number = as_variable(value)
        inside = (number >= container.start) & (number < container.stop)
        if container.step < 0:
            inside = (number <= container.start) & (number > container.stop)
        return python_bool(inside & ((number - container.start) % abs(container.step) == 0))
    if isinstance(container, (list, tuple, Set, Mapping, np.ndarray)):
        result: Any = False
        for part in np.ravel(container) if isinstance(container, np.ndarray) else container:
            if part is value:
                return True
            result = either(result, truth(value == part))
        return python_bool(result)
    return value in container


def _is_argument(x: Any) -> bool:
    """Whether a value is an array that the function was given."""
    return isinstance(x, Variable) and bool(x.ndim) and x.view_of is None and x.cell[0].op is INPUT and x.home is not None


def _is(one: Any, other: Any) -> Any:
    """`one is other`. A traced Python bool `is True` if it holds, and `is False` if it does not."""
    if one is None or other is None:
        option = other if one is None else one
        return negation(option.has) if isinstance(option, Option) else one is other
    value, known = (other, one) if isinstance(one, bool) else (one, other)
    if isinstance(known, bool) and isinstance(value, Variable) and value.type.weak and value.type.kind == "b":
        return value if known else negation(value)
    if one is not other and _is_argument(one) and _is_argument(other):
        if isinstance(one.home, str) or isinstance(other.home, str):
            raise TypeError(f"`is` asks whether {one!r} and {other!r} are one array{at_line()}, and only ns.jit knows; leave it out")
        note_same()
    if one is not other and _may_be_copies(one, other):
        raise TypeError(
            f"`is` asks whether two lists, dicts, objects or arrays are one{at_line()}, and a list or a choice holds their numbers alone; "
            "compare what they hold"
        )
    unsure = [x for x in (one, other) if isinstance(x, Variable) and isinstance(x.view_of, UnsureView)]
    if unsure and one is not other and isinstance(one, Variable) and isinstance(other, Variable):
        raise TypeError(f"`is` asks which array {unsure[0]!r} is{at_line()}, and only the run knows; compare what they hold")
    return one is other


def _may_be_copies(one: Any, other: Any) -> bool:
    """Whether two objects may be one under Python: what stands for lists, their elements, and what is one of two as the run decides.

    Elements that are arrays are views of the rows that the list holds.
    """
    if isinstance(one, InPlaceOfAList) and isinstance(other, InPlaceOfAList):
        return True
    if isinstance(one, Variable) and isinstance(other, Variable):
        return one.view_of is not None and other.view_of is not None and root_of(one) is root_of(other)
    return type(one) is type(other) and is_frozen(one) and is_frozen(other)


def _differ(one: Any, other: Any) -> Any:
    """`one != other`, part by part of tuples and lists."""
    if not _are_traced_nests(one, other):
        return one is not other and truth(one != other)
    return len(one) != len(other) or either(*(_differ(*pair) for pair in zip(one, other, strict=True)))


def _comes_first(operator_: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """The order of two tuples or lists: that of the first parts that differ, else of their lengths."""
    result: Any = operator_(len(one), len(other))
    for mine, theirs in reversed(list(zip(one, other, strict=False))):
        differ = _differ(mine, theirs)
        is_ordered = compare(_STRICT[operator_], mine, theirs)
        result = either(_all(differ, is_ordered), _all(negation(differ), result))
    return result


def _all(one: Any, other: Any) -> Any:
    return negation(either(negation(truth(one)), negation(truth(other))))


def _are_traced_nests(one: Any, other: Any) -> bool:
    """Whether two values are tuples, or lists, of which Python would compare traced parts by itself."""
    return type(one) is type(other) and type(one) in (tuple, list) and (_has_traced(one) or _has_traced(other))


def _has_traced(nest: Sequence[Any]) -> bool:
    return any(is_traced(part) or (type(part) in (tuple, list) and _has_traced(part)) for part in nest)


def compare(name: str, one: Any, other: Any) -> Any:
    """A comparison of two values."""
    is_of_parts = name in ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
    if not is_of_parts or type(one) not in (tuple, list) or not _are_traced_nests(one, other):
        return COMPARISONS[name](one, other)
    if name in ("Eq", "NotEq"):
        differ = python_bool(_differ(one, other))
        return differ if name == "NotEq" else negation(differ)
    return python_bool(_comes_first(COMPARISONS[name], one, other))


_STRICT = {operator.lt: "Lt", operator.le: "Lt", operator.gt: "Gt", operator.ge: "Gt"}

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": _is,
    "IsNot": lambda one, other: negation(_is(one, other)),
    "In": lambda value, container: contains(container, value),
    "NotIn": lambda value, container: negation(contains(container, value)),
}
