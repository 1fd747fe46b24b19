"""Joins: what a variable holds where two ways meet. It is one of two values, in one structure, dtype and shape."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from ...ir.node import HIDDEN
from ...ops.card import card_named
from ...ops.raising import RAISING, named
from ...types import TensorType, show_shape
from ..numpy.shape_arguments import dim
from ..tree import LEAF, Structure, alike, flattened, is_record, unflatten
from ..tree import describe as describe_structure
from ..variable import CAPTURE, METHODS, Variable, as_variable, at_line, number_as, op
from ..views import Either, PlainView, UnsureView, is_array, root_of
from .cells import ABSENT
from .frames import Frame
from .made import InPlaceOfAList
from .options import as_options


class Unset:
    """The result of a function on a way that has not reached a `return` yet. Nobody reads it: any value may stand for it."""

    def __repr__(self) -> str:
        return "nothing yet"


UNSET = Unset()
RESULT = "_ns_result"  # the variable that holds what a function returns


class Held:
    """A snapshot of an array in a nest: the value that it had at one moment, whatever is written into it later. Refers to the array weakly.

    root: the cell of the array below all its views, or its own. sources: the arrays that it may share memory with, held weakly.
    unsure: what is known of these where they are several.
    """

    __slots__ = ("born", "cell", "is_0d", "is_view", "ref", "root", "sources", "unsure", "value")

    def __init__(self, array: Variable) -> None:
        self.ref, self.cell, self.born, self.is_view = weakref.ref(array), array.cell, array.born, array.view_of is not None
        self.value, self.is_0d = Variable(array.node), array.is_0d is True
        array = root_of(array)
        self.root, self.unsure = array.cell, array.view_of
        self.sources: list[Callable[[], Variable | None]] = [
            weakref.ref(array),
            *([ref for ref, _, _ in array.view_of.others] if isinstance(array.view_of, UnsureView) else []),
        ]

    @property
    def array(self) -> Variable:
        """The array itself; its value, as an array of its own, once it is gone."""
        array = self.ref()
        return self.value if array is None else array

    def others(self) -> list[Variable]:
        """The arrays that are still there and may share memory with it."""
        return [array for array in (source() for source in self.sources) if array is not None]

    def cells(self) -> set[int]:
        """The ids of the cells of all arrays that it may share memory with, also of those that are gone."""
        return self._reached()[0]

    def arrays(self) -> list[np.ndarray]:
        """The arrays of NumPy's that it may share memory with."""
        return self._reached()[1]

    def _reached(self) -> tuple[set[int], list[np.ndarray]]:
        arrays: list[np.ndarray] = []
        found, todo, seen = {id(self.root)}, [self.unsure], set()
        while todo:
            view = todo.pop()
            if isinstance(view, PlainView):
                arrays.append(view.array)
            if not isinstance(view, UnsureView) or id(view) in seen:
                continue
            seen.add(id(view))
            arrays += [array for array, _ in view.arrays]
            for ref, cell, _ in view.others:
                found.add(id(cell))
                if (array := ref()) is not None:
                    root = root_of(array)
                    found.add(id(root.cell))
                    todo.append(root.view_of)
        return found, arrays


_ARRAYS = (np.ndarray, Variable, Held)


class Returned(UnsureView):
    """A function's result as long as the function runs: writes on other ways do not change it. Its caller gets one of several arrays."""

    __slots__ = ()

    def changed(self) -> None:
        """None: it never changes."""

    def handed_out(self) -> UnsureView:
        """What the caller gets."""
        others = [array for array in (ref() for ref, _, _ in self.others) if array is not None]
        return UnsureView(self.base, others, self.why, self.is_shared, [array for array, _ in self.arrays])


def held(nest: Any) -> Any:
    """A nest with a snapshot (`Held`) for each array."""
    if is_unbound(nest):
        return nest
    leaves, structure = flattened(nest)
    if not any(isinstance(leaf, Variable) for leaf in leaves):
        return nest
    return unflatten(structure, [Held(leaf) if isinstance(leaf, Variable) and is_array(leaf) else leaf for leaf in leaves])


def released(nest: Any) -> Any:
    """A nest with the arrays themselves in the place of their snapshots."""
    if is_unbound(nest):
        return nest
    leaves, structure = flattened(nest)
    if not any(isinstance(leaf, Held) for leaf in leaves):
        return nest
    return unflatten(structure, [leaf.array if isinstance(leaf, Held) else leaf for leaf in leaves])


class Unassured(UnsureView):
    """A loop's value for a name that was not bound before it. If the loop runs no step, reading it is Python's error at the run.

    owner: the variable, zeros if there is no step. rows: its values at all steps, the last one counts. others, why, is_shared: what it may
    be a view of.
    """

    __slots__ = ("frame", "name", "owner", "value")

    def __init__(
        self,
        name: str,
        owner: Variable,
        rows: Variable,
        others: Sequence[Variable],
        why: str,
        is_shared: bool,
        arrays: Sequence[np.ndarray] = (),
    ) -> None:
        super().__init__(rows, others, why, is_shared, arrays)
        self.owner, self.frame = weakref.ref(owner), self  # no frame: it was not read yet
        self.name, self.value = name, Variable(owner.node)

    def changed(self) -> Any:
        """Its value with the check, made anew in each branch or pass that reads it: a choice may read it on one side alone."""
        super().changed()
        if self.frame is CAPTURE.frame:
            return None
        self.frame = CAPTURE.frame
        return self._last()

    def is_bound(self) -> Variable:
        """Whether the loop has run a step."""
        return as_variable(dim(self.base, 0) > 0)

    def _last(self) -> Any:
        text = f"cannot access local variable {self.name!r} where it is not associated with a value"
        message = named(UnboundLocalError, text)
        return op(RAISING, self.value, self.is_bound(), error="RuntimeError", message=message).node

    def check(self) -> None:
        """ValueError where it may be a view of an array that still exists. Else it is written now, and gets its value with the check."""
        super().check()
        owner = self.owner()
        if owner is not None:
            owner._hold(self._last())


class HalfBound(Unassured):
    """A number under a name that a choice binds on one way alone. Reading it right behind the choice is Python's error while tracing; in a
    branch further on, which may exclude the other way, at the run."""

    __slots__ = ("condition", "joined_in")

    def __init__(self, name: str, owner: Variable, condition: Variable) -> None:
        super().__init__(name, owner, Variable(owner.node), [], "", False)
        self.condition, self.joined_in = condition, CAPTURE.frame

    def changed(self) -> Any:
        """The same in a branch. UnboundLocalError in none."""
        if self.joined_in is CAPTURE.frame:
            raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value{at_line()}")
        return super().changed()

    def is_bound(self) -> Variable:
        """Whether the choice went that way."""
        return self.condition


def _number_and_bound(value: Any) -> tuple[Any, Variable] | None:
    """The number of a value (None if it is not bound), and whether its name is bound; None for a value that is no number."""
    if value is ABSENT:
        return None, as_variable(False)
    if is_unassured(value):
        view = value.view_of if isinstance(value, Variable) else None  # to ask the variable itself would be to read it
        return (view.value, view.is_bound()) if isinstance(view, Unassured) and not view.value.ndim else None
    is_number = is_numeric(value) and not isinstance(value, Held) and not np.ndim(value) and not isinstance(value, np.ndarray)
    return (value, as_variable(True)) if is_number else None


def is_unassured(value: Any) -> bool:
    """Whether a value, or a part of it, exists only if a loop has run a step, or a choice has gone one way."""
    if type(value) in (tuple, list):
        return any(map(is_unassured, value))
    return type(value) is Variable and isinstance(value.view_of, Unassured)


def assured(value: Any, before: Any) -> Any:
    """A value; read, with its check, if its name was bound before: such a name got it by reading another one."""
    if is_absent(before) or not is_unassured(value):
        return value
    return Variable(value.node) if isinstance(value, Variable) else type(value)(assured(part, None) for part in value)


def handed(nest: Any) -> Any:
    """A function's result as its caller gets it."""
    result = released(nest)
    for leaf in [] if is_unbound(result) else flattened(result)[0]:
        if isinstance(leaf, Variable) and type(leaf.view_of) is Returned:
            leaf.view_of = leaf.view_of.handed_out()
    return result


def value_in(leaf: Any) -> Any:
    """The value of a leaf, for a snapshot at its moment."""
    return leaf.value if isinstance(leaf, Held) else leaf


def is_unbound(value: Any) -> bool:
    """Whether a variable has no value: unset, unbound, or bound only if a loop has run a step."""
    return value is UNSET or is_absent(value)


def is_absent(value: Any) -> bool:
    """Whether a variable is unbound, or bound only if a loop has run a step."""
    return value is ABSENT or is_unassured(value)


def is_numeric(value: Any) -> bool:
    """Whether a leaf of a nest is an array or a number."""
    return isinstance(value, (Variable, Held, np.ndarray, np.generic, Number)) and not (
        type(value) is np.ndarray and value.dtype.kind in "USVmM"
    )


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are one, so that no choice is needed."""
    if one is other:
        return True
    if isinstance(one, Held) and isinstance(other, Held):
        return one.cell is other.cell
    if isinstance(one, Variable) and isinstance(other, Variable):
        return one.node is other.node
    if isinstance(one, _ARRAYS) or isinstance(other, _ARRAYS):
        return False
    if isinstance(one, (float, complex, np.inexact)):
        return type(one) is type(other) and repr(one) == repr(other)
    is_nest = isinstance(one, (list, tuple, dict, InPlaceOfAList)) or is_record(type(one))
    return type(one) is type(other) and not is_nest and bool(one == other)


def common(one: Any, other: Any, what: str, places: tuple[str, str]) -> tuple[Variable, Variable]:
    """Two leaves in one type. TypeError for shapes that differ, and for what is no number."""
    for value in (one, other):
        if not is_numeric(value):
            raise TypeError(
                f"{what} is {_shown(one)}{places[0]} and {_shown(other)}{places[1]}, and only the run decides which; numbers and arrays "
                "alone can be chosen there"
            )
    a, b = as_variable(value_in(one)), as_variable(value_in(other))
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
    """The number type that holds both: that of a sum, but bool for two bools. Weak where both are Python's numbers."""
    if one.weak and other.weak:
        kinds = sorted((one, other), key=lambda type_: "biufc".index(type_.kind))
        return kinds[-1]
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
            f"decides which; {one_structure(structure, other_structure)}"
        )
    return structure, list(zip(mine, theirs, strict=True))


def one_structure(one: Structure, other: Structure) -> str:
    """What to write where a value has two structures."""
    if "None" not in (describe_structure(one), describe_structure(other)):
        return "give it one structure"
    return "beside None stands a number alone: give it numbers in both ways that tell, as found = (-1, -1) for no pair"


Way = tuple[str, Any, Any]  # what a value is called, and the value on both ways
Choose = Callable[[list[tuple[Variable, Variable]]], list[Variable]]


def joined(
    ways: Sequence[Way], places: tuple[str, str], frames: tuple[Frame, Frame], choose: Choose, sole: Collection[int] = ()
) -> tuple[list[Any], Callable[[], None]]:
    """The joined value of each way, and a function to be called once all are written. ABSENT where one way leaves it unbound.

    - ways: the values are `held`. places: what messages call the two ways.
    - frames: what each way made and wrote.
    - choose: makes one variable of each pair.
    - sole: ids of the cells of arrays that one variable alone referred to before.

    An array that is one of two is as good as a new one if nobody else knows the two. Else it may only be read, and only as long as neither
    is written.
    """
    meetings: dict[tuple[int, int], _Meeting] = {}
    nests: list[tuple[Structure, list[Any]]] = []
    halves: list[_Half] = []
    for label, one, other in ways:
        if is_absent(one) or is_absent(other):
            half = None if one is other or label.startswith(HIDDEN) or label == RESULT else _half(label, one, other, places)
            nests.append((LEAF, [half or (one if one is other else ABSENT)]))
            halves += [half] if half else []
            continue
        if is_same(one, other):
            nests.append((LEAF, [released(one)]))
            continue
        what = "what the function returns" if label == RESULT else label
        here, there = [(theirs, mine) for _, mine, theirs in ways], [(mine, theirs) for _, mine, theirs in ways]
        mine_or_none, theirs_or_none = as_options(_filled(one, other, here), _filled(other, one, there))
        structure, leaves = leaves_of(mine_or_none, theirs_or_none, what, places)
        parts: list[Any] = []
        for mine, theirs in leaves:
            if is_same(mine, theirs):
                parts.append(released(mine))
                continue
            key = _identity(mine), _identity(theirs)
            if key not in meetings:
                meetings[key] = _Meeting(mine, theirs, common(mine, theirs, what, places), what, label == RESULT)
            parts.append(meetings[key])
        nests.append((structure, parts))
    chosen = choose([meeting.pair for meeting in meetings.values()]) if meetings else []
    for meeting, result in zip(meetings.values(), chosen, strict=True):
        meeting.result = result
    for half in halves:  # a choice of its own, which is gone where nobody reads the name
        half.result, is_bound = choose([half.pair, half.bound])
        half.result.view_of = HalfBound(half.label, half.result, is_bound)

    def settle() -> None:
        for meeting in meetings.values():
            meeting.settle(frames, sole, Counter(key for way in ways for key in _arrays_in(way)))

    results = [[part.result if isinstance(part, (_Meeting, _Half)) else part for part in parts] for _, parts in nests]
    return [unflatten(nest, parts) for (nest, _), parts in zip(nests, results, strict=True)], settle


@dataclass(slots=True, eq=False)
class _Half:
    """A number under a name that only one way has bound: its values on both ways, and whether it is bound."""

    label: str
    pair: tuple[Variable, Variable]
    bound: tuple[Variable, Variable]
    result: Any = None


def _half(label: str, one: Any, other: Any, places: tuple[str, str]) -> _Half | None:
    """A name that one way leaves unbound; None where neither binds it, or what is bound is no number."""
    found = _number_and_bound(one), _number_and_bound(other)
    if None in found:
        return None
    (mine, is_mine), (theirs, is_theirs) = found  # type: ignore[misc]
    if mine is None and theirs is None:
        return None
    mine, theirs = zeros_like(theirs) if mine is None else mine, zeros_like(mine) if theirs is None else theirs
    return _Half(label, common(mine, theirs, label, places), (is_mine, is_theirs))


@dataclass(slots=True, eq=False)
class _Meeting:
    """Two leaves that differ, and the variable that is one of them behind the join."""

    one: Any
    other: Any
    pair: tuple[Variable, Variable]
    what: str
    is_returned: bool
    result: Any = None

    def settle(self, frames: tuple[Frame, Frame], sole: Collection[int], names: Counter[tuple[int, int]]) -> None:
        """Allows only reading the result, where one of the two arrays is known elsewhere."""
        if not self.result.ndim and not any(map(is_0d, (self.one, self.other))):
            return
        sides = list(zip((0, 1), (self.one, self.other), frames, strict=True))
        known = [leaf for _, leaf, frame in sides if not _is_private(leaf, frame, sole)]
        if not self.result.ndim:
            known = [leaf for leaf in known if is_0d(leaf)]
            self.result.is_0d = True if known or all(map(is_0d, (self.one, self.other))) else Either()
        arrays = [array for leaf in known if isinstance(leaf, Held) for array in leaf.others()]
        numpys = [leaf for leaf in known if isinstance(leaf, np.ndarray) and not is_outside(leaf)]
        why = f"{self.what} is one of two arrays, and only the run decides which"
        is_shared = any(isinstance(leaf, Held) and names[k, id(leaf.root)] > 1 for k, leaf, _ in sides)
        if arrays or is_shared or numpys:
            view = Returned if self.is_returned else UnsureView
            self.result.view_of = view(self.result_itself(), arrays, why, is_shared, numpys)
        elif known:
            self.result.home = "one of two arrays, and only the run decides which"

    def result_itself(self) -> Variable:
        """The result as a value of its own."""
        return Variable(self.result.node)


def is_outside(array: np.ndarray) -> bool:
    """Whether a NumPy array was found outside the function, so that nobody writes it."""
    return CAPTURE.is_outside is not None and CAPTURE.is_outside(array)


def is_0d(leaf: Any) -> bool:
    """Whether a leaf of rank 0 is an array."""
    return isinstance(leaf, np.ndarray) or (isinstance(leaf, (Held, Variable)) and leaf.is_0d is True)


def _arrays_in(way: Way) -> list[tuple[int, int]]:
    """The arrays that a variable holds on both ways: the number of the way, and the id of the root's cell."""
    sides = [[] if is_unbound(value) or way[0] == RESULT else flattened(value)[0] for value in way[1:]]
    return [(k, id(leaf.root)) for k, leaves in enumerate(sides) for leaf in leaves if isinstance(leaf, Held)]


def _is_private(leaf: Any, frame: Frame, sole: Collection[int]) -> bool:
    """Whether only the variable that is joined knows an array: it was made on this way, or is `sole`, and is no view."""
    return isinstance(leaf, Held) and not leaf.is_view and (frame.made(leaf.born) or id(leaf.cell) in sole)


def _identity(leaf: Any) -> int:
    return id(leaf.cell) if isinstance(leaf, Held) else id(leaf)


def _filled(value: Any, other: Any, ways: Sequence[tuple[Any, Any]]) -> Any:
    """A value. For an unset one, what stands for it where `other` is returned on the other way.

    ways: what variables and places hold where `other` is returned, and here. For an array that is returned, that is its value here: the
    join then makes one value of the array and the result, and a loop keeps it once. For all else it is zeros.
    """
    if value is not UNSET:
        return value
    leaves, structure = flattened(other)
    return unflatten(structure, [_stand_in(leaf, ways) if is_numeric(leaf) else leaf for leaf in leaves])


def _is_value(value: Any) -> bool:
    """Whether to ask for a value is no read that Python might refuse."""
    return isinstance(value, Held) or (type(value) is Variable and value.view_of is None)


def _stand_in(leaf: Any, ways: Sequence[tuple[Any, Any]]) -> Variable:
    if isinstance(leaf, Held) and leaf.value.ndim:
        for there, here in ways:
            if _is_value(there) and _is_value(here) and value_in(there).node is leaf.value.node:
                value = value_in(here)
                if value.type == leaf.value.type:
                    return Variable(value.node)
    return _zero(leaf)


def zeros_like(value: Any) -> Any:
    """Zeros in the structure, dtypes and shapes of a nest; other leaves as they are."""
    leaves, structure = flattened(value)
    return unflatten(structure, [_zero(leaf) if is_numeric(leaf) else leaf for leaf in leaves])


def _zero(leaf: Any) -> Variable:
    x = as_variable(value_in(leaf))
    return as_variable(_ZERO[x.type.kind]) if x.type.weak else METHODS["zeros_like"](x)


def filler(value: Any, before: Any, frame: Frame) -> Any:
    """What stands for a value on a way that ends in an error: known and unchanged leaves stay, others are zeros."""
    if is_unbound(value):
        return value
    leaves, structure = flattened(value)
    olds, old_structure = ([], LEAF) if is_unbound(before) else flattened(before)
    known = olds if structure == old_structure and len(olds) == len(leaves) else [None] * len(leaves)
    fillers = [_filler(leaf, old, frame) for leaf, old in zip(leaves, known, strict=True)]
    return value if all(one is leaf for one, leaf in zip(fillers, leaves, strict=True)) else unflatten(structure, fillers)


def _filler(leaf: Any, old: Any, frame: Frame) -> Any:
    if not isinstance(leaf, (Variable, Held)) or is_same(leaf, old):
        return leaf
    type_ = value_in(leaf).type
    if type_.weak:
        return as_variable(_ZERO[type_.kind])
    zero = as_variable(np.zeros([dim or 0 for dim in type_.shape], type_.dtype))
    if not zero.ndim:
        return zero
    array = Held(zero)
    array.born = frame
    return array


_ZERO: dict[str, Any] = {"b": False, "i": 0, "f": 0.0, "c": 0j}


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, Number, type(None))) else f"a {type(value).__name__}"
