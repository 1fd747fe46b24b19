"""What a variable holds where ways meet: one value of two, in one structure, dtype and shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from ...ops.card import card_named
from ...types import TensorType, show_shape
from ..tree import LEAF, Structure, alike, flattened, unflatten
from ..tree import describe as describe_structure
from ..variable import METHODS, Variable, as_variable, number_as, op
from .cells import ABSENT


class Unset:
    """What a function gives on a way that has not reached a `return` yet. Nobody reads it: any value may stand for it."""

    def __repr__(self) -> str:
        return "nothing yet"


UNSET = Unset()
RESULT = "_result"  # the variable that holds what a function returns


def is_numeric(value: Any) -> bool:
    """Whether a leaf of a nest is an array or a number."""
    return isinstance(value, (Variable, np.ndarray, np.generic, Number)) and not (type(value) is np.ndarray and value.dtype.kind in "USVmM")


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are one, so that nothing has to be chosen."""
    if one is other:
        return True
    if isinstance(one, Variable) and isinstance(other, Variable):
        return one.node is other.node
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray) or isinstance(one, Variable) or isinstance(other, Variable):
        return False
    if isinstance(one, (float, complex, np.inexact)):
        return type(one) is type(other) and repr(one) == repr(other)
    return type(one) is type(other) and not isinstance(one, (list, tuple, dict)) and bool(one == other)


def common(one: Any, other: Any, what: str, places: tuple[str, str]) -> tuple[Variable, Variable]:
    """Two leaves in one type. TypeError for shapes that differ, and for what is no number."""
    for value in (one, other):
        if not is_numeric(value):
            raise TypeError(
                f"{what} is {_shown(one)}{places[0]} and {_shown(other)}{places[1]}, and only the run decides which; numbers and arrays "
                "alone can be chosen there"
            )
    a, b = as_variable(one), as_variable(other)
    if a.ndim != b.ndim or not all(x is None or y is None or x == y for x, y in zip(a.type.shape, b.type.shape, strict=True)):
        raise TypeError(
            f"{what} has shape {show_shape(a.type.shape)}{places[0]} and {show_shape(b.type.shape)}{places[1]}, and only the run decides "
            "which; give it one shape"
        )
    if a.type.dtype == b.type.dtype and a.type.weak == b.type.weak:
        return a, b
    type_ = promoted(a.type, b.type)
    return as_type(a, type_), as_type(b, type_)


def promoted(one: TensorType, other: TensorType) -> TensorType:
    """The type of numbers that holds both: that of a sum, and for truth values of both sides theirs. Weak where both are Python's."""
    if one.weak and other.weak:
        kinds = sorted((one, other), key=lambda type_: "biufc".index(type_.kind))
        return kinds[-1]
    if {one.kind, other.kind} == {"b", "i"} and (one.weak or other.weak):
        return TensorType("int64", one.shape)
    examples = [_ZERO[type_.kind] if type_.weak else np.dtype(type_.dtype) for type_ in (one, other)]
    return TensorType(np.result_type(*examples).name, one.shape)


def as_type(x: Variable, type_: TensorType) -> Variable:
    """`x` in dtype and weakness of a type."""
    if x.type.dtype == type_.dtype and x.type.weak == type_.weak:
        return x
    cast = x if x.type.dtype == type_.dtype else number_as(x, type_.dtype) if x.type.weak else METHODS["astype"](x, type_.dtype)
    if type_.weak:
        return op(card_named("python_number"), cast)
    return METHODS["astype"](cast, type_.dtype) if cast.type.weak else cast


def leaves_of(one: Any, other: Any, what: str, places: tuple[str, str]) -> tuple[Structure, list[tuple[Any, Any]]]:
    """The leaves of two nests of one structure, in pairs. TypeError where the structures differ."""
    (mine, structure), (theirs, other_structure) = flattened(one), flattened(other)
    if not alike(structure, other_structure):
        raise TypeError(
            f"{what} is {describe_structure(structure)}{places[0]} and {describe_structure(other_structure)}{places[1]}, and only the run "
            "decides which; give it one structure"
        )
    return structure, list(zip(mine, theirs, strict=True))


Way = tuple[str, Any, Any]  # what a value is called, and the value on both ways
Choose = Callable[[list[tuple[Variable, Variable]]], list[Variable]]


def joined(ways: Sequence[Way], places: tuple[str, str], choose: Choose) -> list[Any]:
    """One value for each place where two ways meet; ABSENT where one way leaves it unbound. `choose` makes one of each pair."""
    pairs: list[tuple[Variable, Variable]] = []
    nests: list[tuple[Structure, list[Any]]] = []
    for label, one, other in ways:
        if is_same(one, other) or one is ABSENT or other is ABSENT:
            nests.append((LEAF, [one if is_same(one, other) else ABSENT]))
            continue
        what = "what the function returns" if label == RESULT else label
        structure, leaves = leaves_of(_filled(one, other), _filled(other, one), what, places)
        parts: list[Any] = []
        for mine, theirs in leaves:
            parts.append(mine if is_same(mine, theirs) else _Place(len(pairs)))
            if not is_same(mine, theirs):
                pairs.append(common(mine, theirs, what, places))
        nests.append((structure, parts))
    chosen = choose(pairs) if pairs else []
    return [unflatten(nest, [chosen[part.k] if isinstance(part, _Place) else part for part in parts]) for nest, parts in nests]


@dataclass(frozen=True, slots=True)
class _Place:
    """A leaf that is the k-th of those that were chosen."""

    k: int


def _filled(value: Any, other: Any) -> Any:
    """A value; for what is not set zeros like the other value."""
    return zeros_like(other) if value is UNSET else value


def zeros_like(value: Any) -> Any:
    """Zeros in the structure, dtypes and shapes of a nest; other leaves as they are."""
    leaves, structure = flattened(value)
    return unflatten(structure, [_zero(leaf) if is_numeric(leaf) else leaf for leaf in leaves])


def _zero(leaf: Any) -> Variable:
    x = as_variable(leaf)
    return as_variable(_ZERO[x.type.kind]) if x.type.weak else METHODS["zeros_like"](x)


_ZERO: dict[str, Any] = {"i": 0, "f": 0.0, "c": 0j}


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, Number, type(None))) else f"a {type(value).__name__}"
