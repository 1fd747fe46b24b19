"""Lists whose length only the run knows: `[f(v) for v in x]` of a long array, `[0.0] * n`, `list(x)`.

Such a list is an array for each part of an element. With a filter that only the run decides, it is all elements and a mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce
from typing import Any, NoReturn

import numpy as np

from ...errors import TracerError
from ...ops.card import card_named
from ...types import TensorType
from ..numpy.joining import concatenate, stack
from ..numpy.places import flatnonzero
from ..numpy.shape import broadcast_to
from ..numpy.shape_arguments import dim
from ..tree import LEAF, ListOf, OpenList, Structure, flattened, n_leaves, unflatten
from ..variable import CAPTURE, HOOKS, METHODS, Variable, as_variable, at_line, op
from ..views import Assumption, UnsureView, use
from .arrays import written
from .cells import Joined, Part
from .chosen import check_free, freeze, holders
from .elements import Each, Generated, each_of, items_of, unfolded
from .frames import FRAMES
from .joining import as_type, is_numeric, promoted
from .loops import MOST_WRITTEN_OUT, collected
from .made import InPlaceOfAList, Made, Make, OtherDtype
from .rows import PythonNumbers, Rows, rows_of
from .truth import truth

Leaf = Variable | PythonNumbers


class Listed(InPlaceOfAList, Made, OpenList):
    """A list of numbers, arrays, or nests of these.

    - leaves: for each leaf of an element, its values in all elements. structure: of an element.
    - depth: how many levels of lists its elements are.
    - mask: which elements exist; None for all. kind: list or tuple.
    - born: the branch or pass in which it was made.
    """

    _of: tuple[tuple[Any, Any], ...] = ()  # the lists that it was made of to be run over

    def __init__(
        self, leaves: Iterable[Leaf], structure: Structure = LEAF, depth: int = 0, mask: Variable | None = None, kind: type = list
    ) -> None:
        self._leaves, self._structure, self._depth, self._mask, self.kind = list(leaves), structure, depth, mask, kind
        self.born = CAPTURE.frame

    # how many -------------------------------------------------------------------------------------------------------------

    def _n_rows(self) -> Any:
        return dim(_array(self._leaves[0]), 0)

    def is_open(self) -> bool:
        return self._mask is not None or not isinstance(self._n_rows(), int)

    @property
    def length(self) -> Any:
        """`len(x)`."""
        n_rows = self._n_rows() if self._mask is None else np.sum(self._mask)
        return n_rows if isinstance(n_rows, int) else op(card_named("python_number"), METHODS["astype"](as_variable(n_rows), "int64"))

    # what runs over it ------------------------------------------------------------------------------------------------------

    def rows(self) -> Rows | None:
        if self._mask is not None or self._depth:
            return None
        return Rows(tuple(self._leaves), lent(self._structure), self._n_rows(), self.lists())

    def held(self) -> Any:
        """What holds its arrays: another object where it changes otherwise than by writes into these."""
        return self._leaves

    def lists(self) -> tuple[tuple[Any, Any], ...]:
        """The lists to be checked where something runs over this one (`Rows.lists`)."""
        return (*self._of, (self, self.held()))

    def kept(self) -> Listed:
        """The list of the elements that exist, without a filter, to be run over."""
        if self._mask is None:
            return self
        kept = Listed(self._kept(), self._structure, self._depth, None, self.kind)
        kept._of = self.lists()
        return kept

    def taken(self) -> tuple[Any, Make]:
        masks = [] if self._mask is None else [self._mask]
        rows = Rows((*self._leaves, *masks), (list, None, ("*",) * (len(self._leaves) + len(masks))), self._n_rows(), self.lists())

        def make(items: Iterable[Any], each: Any) -> None:
            for parts in items:
                element = self._element(parts[: len(self._leaves)])
                if masks:
                    each.when(parts[-1], _handing(each, element))
                else:
                    each(element)

        return rows, make

    def _element(self, parts: list[Any]) -> Any:
        return Listed(parts, depth=self._depth - 1) if self._depth else unflatten(lent(self._structure), parts)

    def __iter__(self) -> Iterator[Any]:
        n_rows = self._n_rows()
        if self._mask is None and isinstance(n_rows, int):
            return self._one_by_one()
        raise TracerError(
            f"what is not Python's own runs over a list of as many elements as only the run knows{at_line()}; write a `for` loop, or give "
            "it np.array of the list"
        )

    def _one_by_one(self) -> Iterator[Any]:
        k = 0
        while k < self._n_rows():  # which may grow meanwhile
            yield self[k]
            k += 1

    # elements ---------------------------------------------------------------------------------------------------------------

    def _kept(self) -> list[Leaf]:
        """The leaves, of the elements that exist alone."""
        return self._leaves if self._mask is None else [_apart(leaf, flatnonzero(self._mask)) for leaf in self._leaves]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Listed([_apart(leaf, index) for leaf in self._kept()], self._structure, self._depth, kind=self.kind)
        place = as_variable(index)
        if place.ndim or place.type.kind not in "iu":
            raise TypeError(f"list indices must be integers or slices, not {place.type}{at_line()}")
        return self._element([leaf[index] for leaf in self._kept()])

    def set(self, index: Any, value: Any) -> None:
        """`x[index] = value`."""
        if self._mask is not None and FRAMES.stack:
            self._refuse("a list with a filter that only the run decides is written in a choice or a loop that it decides, too")
        check_free(self)
        self._gather()
        number = as_variable(value) if is_numeric(value) else None
        array = _array(self._leaves[0])
        is_of_numbers = self._structure == LEAF and array.ndim == 1 and self.kind is list
        if number is None or number.ndim or not is_of_numbers or isinstance(index, slice) or as_variable(index).ndim:
            raise TypeError(
                f"a list of as many elements as only the run knows is written{at_line()}, which takes a number for a number; make it an "
                "array (np.zeros)"
            )
        type_ = promoted(array.type, number.type)
        if type_.dtype != array.type.dtype:
            if FRAMES.stack:
                raise OtherDtype(partial(self.promote, type_.dtype), type_.dtype, array.type.dtype)
            self.promote(type_.dtype)
            array = _array(self._leaves[0])
        if isinstance(self._leaves[0], PythonNumbers) and not number.type.weak:
            self._put(array)
        written(array, index, number)

    def _gather(self) -> None:
        """Makes it hold an array for each leaf, of the elements that exist alone, so that they can be written there."""
        if self._mask is not None:
            self._leaves, self._mask = self._kept(), None

    def _put(self, leaf: Leaf) -> None:
        """Gives it the same numbers as others of its kind: NumPy's for Python's."""
        self._leaves[0] = leaf

    def promote(self, dtype: str) -> None:
        """Gives the numbers a dtype that holds them. The array stays the same, for loops over it. TypeError for a row of a table."""
        array = _array(self._leaves[0])
        if array.view_of is not None:
            self._refuse("a list that is an element of a list gets numbers of another dtype")
        array._hold(METHODS["astype"](array, dtype).node)

    def array(self) -> Variable:
        """np.array of it."""
        return Variable(_stacked(unflatten(self._structure, list(map(_array, self._kept())))).node)

    def closed(self) -> Any:
        """Python's own list, where the length is known and no large one. Else this list."""
        n_rows = self._n_rows()
        if self._mask is not None or not isinstance(n_rows, int) or n_rows > MOST_WRITTEN_OUT:
            return self
        return self.kind(one.closed() if isinstance(one, OpenList) else one for one in (self[k] for k in range(n_rows)))

    def parts(self) -> tuple[ListOf, list[Any]]:
        """As a result of a compiled function."""
        if not self._leaves:
            self._refuse("a list of elements that hold no number is returned")
        return ListOf(self.kind, self._structure, self._depth), list(map(_array, self._kept()))

    def nested(self) -> tuple[Variable, int, bool]:
        """This list as an element of another one: its array, the depth of the other, and whether the numbers are Python's."""
        if self._structure != LEAF or (self._depth == 0 and _array(self._leaves[0]).ndim > 1):
            self._refuse("a list of nests or arrays is an element of a list")
        return self.array(), self._depth + 1, isinstance(self._leaves[0], PythonNumbers)

    def holds_pythons(self) -> bool:
        """Whether its elements are Python's numbers."""
        return isinstance(self._leaves[0], PythonNumbers)

    def copy(self, kind: type = list) -> Listed:
        """A list of the same elements."""
        return Listed([_apart(leaf, slice(None)) for leaf in self._leaves], self._structure, self._depth, self._mask, kind)

    def __copy__(self) -> Listed:
        return self.copy(self.kind)

    def __deepcopy__(self, memo: Any) -> Listed:
        leaves = [Variable(_array(leaf).node) for leaf in self._leaves]
        parts = [PythonNumbers(new) if isinstance(leaf, PythonNumbers) else new for new, leaf in zip(leaves, self._leaves, strict=True)]
        return Listed(parts, self._structure, self._depth, self._mask, self.kind)

    def picked(self, places: Variable) -> Listed:
        """A list of the elements at some places."""
        return Listed([leaf[places] for leaf in self._kept()], self._structure, self._depth, kind=list)

    def holds(self, value: Any) -> Any:
        """`value in x`."""
        if self._structure != LEAF or _array(self._leaves[0]).ndim > 1:
            self._refuse("`in` asks a list of nests or arrays")
        is_equal = _array(self._leaves[0]) == value
        return (is_equal if self._mask is None else is_equal & self._mask).any()

    # what is added to it ------------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Listed:
        return self._joined(self, other)

    def __radd__(self, other: Any) -> Listed:
        return self._joined(other, self)

    def _joined(self, *parts: Any) -> Listed:
        """The concatenation of two lists, one of which is this one."""
        if not all(isinstance(part, self.kind) or (isinstance(part, Listed) and part.kind is self.kind) for part in parts):
            self._refuse("what is no list is added to one")
        numbers = [part._numbers() if isinstance(part, Listed) else [as_variable(_number(one)) for one in part] for part in parts]
        types = [python_type(one) for part in numbers for one in part]
        type_ = reduce(promoted, types)
        arrays = [METHODS["astype"](_array(one), type_.dtype) for part in numbers for one in part]
        whole = Variable(concatenate([one if one.ndim else one[np.newaxis] for one in arrays]).node)
        return Listed([PythonNumbers(whole) if type_.weak else whole], kind=self.kind)

    def _numbers(self) -> list[Leaf]:
        """All elements, which are numbers."""
        if self._structure != LEAF or _array(self._leaves[0]).ndim > 1:
            self._refuse("a list that holds no numbers is added to another one")
        return self._kept()


Listed.__name__ = "list"  # in messages


def _row(row: Variable, is_python: bool) -> Listed:
    """A row of a table, a list of lists of numbers, as the list that it is."""
    return Listed([PythonNumbers(row) if is_python else row], depth=row.ndim - 1)


HOOKS["row"] = _row


class _Lent:
    """Makes an element from its leaves. A list, dict or object is a new one at each read, so that it may not be written."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure

    def __call__(self, leaves: list[Any]) -> Any:
        element = unflatten(self._structure, leaves)
        freeze(holders(element), "it is an element of a list of as many elements as only the run knows, which holds arrays")
        return element


def lent(structure: Structure) -> Structure:
    """The structure of elements that are handed out."""
    return structure if structure == LEAF else (_Lent(structure), None, (LEAF,) * n_leaves(structure))


def _handing(each: Any, element: Any) -> Part:
    def then() -> None:
        each(element)

    return then


def python_type(leaf: Leaf) -> TensorType:
    """The type of a number, or of each number of several."""
    return TensorType(_array(leaf).type.dtype, (), weak=isinstance(leaf, PythonNumbers) or leaf.type.weak)


def _array(leaf: Leaf) -> Variable:
    return leaf.array if isinstance(leaf, PythonNumbers) else leaf


def _apart(leaf: Leaf, index: slice | Variable) -> Leaf:
    """Some elements, for another list. Arrays are then elements of both lists."""
    array = _array(leaf)
    part = Variable(array[index].node)
    if part.ndim > 1:
        part.view_of = UnsureView(Variable(part.node), [array], "elements of a list are elements of another one")
    return PythonNumbers(part) if isinstance(leaf, PythonNumbers) else part


def _stacked(element: Any) -> Variable:
    """An array of all elements, from one element whose leaves hold the values in all."""
    if isinstance(element, Variable):
        return element
    if not isinstance(element, (list, tuple)):
        raise TypeError(f"np.array of a list of {type(element).__name__}s{at_line()}; give it numbers, arrays, or lists of these")
    return as_variable(stack([_stacked(part) for part in element], axis=1))


# comprehensions -------------------------------------------------------------------------------------------------------


def made(source: Any, make: Make) -> Any:
    """A generator expression."""
    return Generated(source, make)


def listed(source: Any, make: Make, kind: type = list) -> Any:
    """A list comprehension: Python's list, or where only the run knows how many elements there are, a `Listed`."""
    source, make = unfolded(source, make)
    rows = rows_of(source)
    if rows is not None and not isinstance(rows.length, int):
        return _collected(rows, make, kind)
    taker = _Taker()
    make(items_of(source if rows is None else rows), taker)
    return taker.result(kind)


def list_of(items: Any, kind: type = list) -> Any:
    """`list(items)`."""
    return items.copy(kind) if isinstance(items, Listed) else listed(items, each_of, kind)


class _Taker:
    """Takes elements into a Python list. `_masks`: by position, whether an element is kept, where only the run decides."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._masks: dict[int, Variable] = {}
        self._each: Each | None = None  # within a filter that only the run decides

    def __call__(self, element: Any) -> None:
        if self._each is None:
            self._values.append(element)
        else:
            self._each(element)

    def when(self, condition: Any, then: Part) -> None:
        known = truth(condition)
        if not isinstance(known, Variable) or self._each is not None:
            if isinstance(known, Variable):
                self._each.when(known, then)  # type: ignore[union-attr]
            elif known:
                then()
            return
        is_kept: Any = False
        element: Any = False

        def taken(value: Any) -> None:
            nonlocal is_kept, element
            is_kept, element = True, _number(value)

        self._each = Each(taken, ("is_kept", "element"))
        self._each.when(known, then)
        self._each = None
        self._masks[len(self._values)] = as_variable(is_kept)
        self._values.append(element)

    def over(self, source: Any, make: Make) -> None:
        if self._each is not None:
            _refuse_several()
        source, make = unfolded(source, make)
        make(items_of(source), self)

    def result(self, kind: type) -> Any:
        """The list."""
        if not self._masks:
            return self._values if kind is list else kind(self._values)
        masks = [self._masks.get(k, True) for k in range(len(self._values))]
        values = [as_variable(_number(value)) for value in self._values]
        type_ = values[0].type
        for value in values:
            type_ = promoted(type_, value.type)
        array = Variable(stack([as_type(value, type_) for value in values]).node)
        return Listed([PythonNumbers(array) if type_.weak else array], mask=Variable(stack(masks).node), kind=kind)


def _refuse_several() -> NoReturn:
    raise TypeError(
        f"a comprehension of several loops gives as many elements as only the run knows{at_line()}; write a list of lists, or a `for` loop "
        "that writes an array of the full length (np.zeros)"
    )


def _number(value: Any) -> Any:
    if not is_numeric(value) or as_variable(value).ndim:
        raise TypeError(
            f"a comprehension has a filter that only the run decides, and gives {value!r}{at_line()}; of numbers it can be a list here"
        )
    return value


class _OneForEachPass(Each):
    """Takes one element in each pass; with `is_filtered`, one or none. depth, is_of_python: of the `Listed` that the elements make."""

    is_filtered = is_of_python = False
    depth = 0

    def when(self, condition: Any, then: Part) -> None:
        known = truth(condition)
        self.is_filtered = self.is_filtered or known is not True
        super().when(known, then)

    def over(self, source: Any, make: Make) -> None:
        _refuse_several()

    def settled(self, element: Any) -> Any:
        """An element as a scan has it: with an array for a list."""
        if self.is_filtered:
            return _number(element)
        if isinstance(element, Listed):
            array, self.depth, self.is_of_python = element.nested()
            return array
        leaves, structure = flattened(element)
        for leaf in leaves:
            if not is_numeric(leaf):
                raise TypeError(
                    f"a comprehension runs over as many items as only the run knows{at_line()}, and gives {leaf!r}; of numbers, arrays and "
                    "nests of these alone it can be a list here"
                )
        return unflatten(structure, [_own(leaf) for leaf in leaves])


def _collected(rows: Rows, make: Make, kind: type) -> Listed:
    """The list of the elements that the passes of a scan make."""
    is_kept: Any = None
    element: Any = None

    def taken(value: Any) -> None:
        nonlocal is_kept, element
        is_kept, element = True, value

    def one_pass(item: Any) -> None:
        nonlocal is_kept, element
        is_kept, element = False, False
        make([item], each)
        element = each.settled(element)

    each = _OneForEachPass(taken, ("is_kept", "element"))
    del is_kept, element  # unbound names are left behind by the loop, not carried
    found = collected(rows, Joined((make, one_pass), one_pass), ("is_kept", "element"))
    leaves, structure = flattened(found["element"])
    if each.is_of_python:
        leaves = [PythonNumbers(leaf) for leaf in leaves]
    return Listed(leaves, structure, each.depth, _array(found["is_kept"]) if each.is_filtered else None, kind)


def _own(leaf: Any) -> Any:
    """A leaf as an element of a list; for an array from before the pass, a view of it."""
    if isinstance(leaf, Variable) and leaf.ndim and leaf.view_of is None and not (CAPTURE.frame and CAPTURE.frame.made(leaf.born)):
        return leaf[...]
    return leaf


# [x] * n ----------------------------------------------------------------------------------------------------------------


def repeated(several: list[Any] | tuple[Any, ...], n: Variable) -> Any:
    """`[x] * n` for a number n that only the run knows. TypeError for what is no whole number."""
    if isinstance(n.is_0d, Assumption):
        use(n.is_0d)
    if n.type.kind not in "iu":
        raise TypeError(f"can't multiply sequence by non-int of type {n.type.dtype!r}{at_line()}")
    if len(several) != 1 or not is_numeric(several[0]) or as_variable(several[0]).ndim:
        raise TypeError(
            f"a {type(several).__name__} of {len(several)} elements times {n!r}{at_line()}, a length that only the run knows: of one "
            "number it can be made; else write np.tile, or np.zeros"
        )
    value = as_variable(several[0])
    length = np.maximum(METHODS["astype"](n, "int64"), 0)
    strong = METHODS["astype"](value, value.type.dtype) if value.type.weak else value
    array = Variable(broadcast_to(strong, (length,)).node)
    return Listed([PythonNumbers(array) if value.type.weak else array], kind=type(several))


HOOKS["repeated"] = repeated
