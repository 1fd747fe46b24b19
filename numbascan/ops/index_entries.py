"""The entries of an index `x[…]`: one per axis of x, and one per new axis. Whole axes at the end are left out.

    3, HOLE             a position (HOLE: known only to the run)
    (start, stop, step) a slice, each None, an int or HOLE
    "newaxis"           an axis of length 1
    ARRAY               an array of positions

With an array among them, single positions count as arrays of rank 0, and all arrays broadcast together, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..ir.loops import Expr, Index, Literal, add, both, choice, compare, floor_div, greatest, least, mul, sub
from ..types import Shape, TensorType, broadcast_shapes
from .card import at_line
from .lowering import Indices, Operands
from .runtime_attributes import ARRAY, HOLE, must_equal

Spec = tuple[Any, ...]
FULL = (None, None, None)
FARTHEST = 2**62  # beyond every axis, and at least the length of an axis away from the ends of int64


def for_all_axes(spec: Spec, rank: int) -> Spec:
    """`spec` with an entry for every axis of an array of `rank` axes."""
    return (*spec, *(FULL for _ in range(rank - sum(entry != "newaxis" for entry in spec))))


def shortened(spec: Spec) -> Spec:
    """`spec` without whole axes at the end: equal regions get equal specs."""
    while spec and spec[-1] == FULL:
        spec = spec[:-1]
    return spec


@dataclass(frozen=True)
class Range:
    """The `length` places first, first + step, … of an axis; if step is 1, also the number of places before and after them."""

    first: Index
    length: Index
    step: Index = 1
    before: Index = 0
    after: Index = 0
    ends_early: bool = False  # the places after are counted from the end, as many as there are

    def place_after(self, i: Index, n: Index) -> Index:
        """The i-th place after them, on an axis of length n."""
        return sub(add(n, -1), i) if self.ends_early else add(i, sub(n, self.after))


def is_position(entry: Any) -> bool:
    """True if an entry is a single position, known now or only to the run."""
    return isinstance(entry, int | Expr) or entry == HOLE


# slices -------------------------------------------------------------------------------------------------------------


def slice_range(entry: tuple[Any, Any, Any], n: Index) -> Range:
    """The range that a slice takes of an axis of length n, clipped as in NumPy."""
    start, stop, step = entry = _within_reach(entry[0]), _within_reach(entry[1]), _within_reach(entry[2])
    if isinstance(n, int) and all(part is None or isinstance(part, int) for part in entry):
        first, last, stride = slice(start, stop, step).indices(n)
        length = len(range(first, last, stride))
        return Range(first, length, stride, min(first, n), max(n - first - length, 0) if stride == 1 else 0)
    if step is not None and not isinstance(step, int):
        return _run_step(start, stop, step, n)
    if step is not None and step < 0:
        return _backwards(start, stop, step, n)
    one = _forwards(start, stop, n)
    if step in (None, 1):
        return one
    return Range(one.first, floor_div(add(one.length, step - 1), step), step)


def _within_reach(part: Any) -> Any:
    return max(-FARTHEST, min(part, FARTHEST)) if isinstance(part, int) else part


def _forwards(start: Any, stop: Any, n: Index) -> Range:
    """The range of x[start:stop]. Known bounds keep its length simple: x[1:-1] and x[2:] both have max(n - 2, 0) elements."""
    start = 0 if start is None else start
    if isinstance(start, int) and start >= 0:
        if stop is None or (isinstance(stop, int) and stop < 0):
            cut = start - (stop or 0)
            inside = n if start == 0 else greatest(sub(n, start), 0)  # from start on
            length = n if cut == 0 else greatest(sub(n, cut), 0)
            before = least(start, n) if start else 0
            return Range(start, length, 1, before, 0 if stop is None else least(-stop, inside), stop is not None)
        if isinstance(stop, int):
            length = least(stop, n) if start == 0 else greatest(sub(least(stop, n), start), 0)
            return _measured(start, length if stop > start else 0, n)
    if isinstance(start, int):
        first = greatest(add(n, start), 0)
        if stop is None:
            return Range(first, least(-start, n), 1, first, 0)
        if isinstance(stop, int) and stop < 0:
            return _measured(first, least(stop - start, greatest(add(n, stop), 0)) if stop > start else 0, n)
    first = _clipped(start, n)
    last = n if stop is None else _clipped(stop, n)
    return _measured(first, last if first == 0 else greatest(sub(last, first), 0), n, is_last=stop is None)


def _measured(first: Index, length: Index, n: Index, is_last: bool = False) -> Range:
    before = least(first, n) if isinstance(first, int) else first
    return Range(first, length, 1, before, 0 if is_last else sub(n, add(before, length)))


def _clipped(bound: Any, n: Index, low: int = 0, high: int = 0) -> Index:
    """A bound of a slice as a place between low and n + high."""
    from_end, from_start = greatest(add(n, bound), low), least(bound, add(n, high))
    if bound == 0 and high == 0:
        return 0
    if isinstance(bound, int):
        return from_end if bound < 0 else from_start
    return choice(compare("<", bound, 0), from_end, from_start)


def _backwards(start: Any, stop: Any, step: int, n: Index) -> Range:
    first = add(n, -1) if start is None else _clipped(start, n, -1, -1)
    last = -1 if stop is None else _clipped(stop, n, -1, -1)
    length = n if start is None and stop is None else greatest(sub(first, last), 0)
    return Range(first, floor_div(add(length, -step - 1), -step), step)


def _run_step(start: Any, stop: Any, step: Expr, n: Index) -> Range:
    """The range of a slice whose direction only the run knows.

    A step beyond the axis is cut to its length + 1: it takes one element all the same, and sums with it stay in the range of int64.
    """
    farthest = add(n, 1)
    pace = greatest(least(step, farthest), sub(0, farthest))
    is_up = compare(">", pace, 0)
    first = choice(is_up, 0 if start is None else _clipped(start, n), add(n, -1) if start is None else _clipped(start, n, -1, -1))
    last = choice(is_up, n if stop is None else _clipped(stop, n), -1 if stop is None else _clipped(stop, n, -1, -1))
    span = choice(is_up, sub(last, first), sub(first, last))
    stride = choice(is_up, pace, sub(0, pace))
    return Range(first, floor_div(add(greatest(span, 0), sub(stride, 1)), stride), pace)


# layout: which axis of the result an entry makes ---------------------------------------------------------------------


@dataclass(frozen=True)
class ResultAxes:
    """`axes[k]`: the axis of the result that entry k makes (None for positions); arrays share `array_rank` axes from `array_start` on."""

    axes: tuple[int | None, ...]
    array_start: int
    array_rank: int
    rank: int


def layout(spec: Spec, array_rank: int) -> ResultAxes:
    """The axes of the result, placed as in NumPy: those of the arrays at the first array if they stand side by side, else at the front."""
    has_arrays = ARRAY in spec
    advanced = [k for k, entry in enumerate(spec) if has_arrays and (entry == ARRAY or is_position(entry))]
    is_side_by_side = bool(advanced) and advanced[-1] - advanced[0] + 1 == len(advanced)
    array_start = 0
    if is_side_by_side:
        array_start = sum(not is_position(entry) and entry != ARRAY for entry in spec[: advanced[0]])
    axes: list[int | None] = []
    count = 0
    for entry in spec:
        if is_position(entry) or entry == ARRAY:
            axes.append(None)
            continue
        axes.append(count if count < array_start or not has_arrays else count + array_rank)
        count += 1
    return ResultAxes(tuple(axes), array_start, array_rank, count + array_rank)


def array_types(spec: Spec, operand_types: Iterable[TensorType]) -> list[TensorType]:
    """The types of the arrays of positions; `operand_types` are those that fill the holes."""
    return [type_ for type_ in operand_types if type_.rank] if ARRAY in spec else []


def region_shape(name: str, x: TensorType, spec: Spec, operand_types: Iterable[TensorType]) -> Shape:
    """The shape of x[spec], as far as it is known. Raises IndexError if a known position does not exist."""
    spec = for_all_axes(spec, x.rank)
    arrays = [type_.shape for type_ in array_types(spec, operand_types)]
    common = broadcast_shapes(*arrays) if arrays else ()
    where = layout(spec, len(common))
    result: list[int | None] = [1] * where.rank
    result[where.array_start : where.array_start + len(common)] = common
    dims = iter(enumerate(x.shape))
    for entry, axis in zip(spec, where.axes, strict=True):
        if entry == "newaxis":
            continue
        position, dim = next(dims)
        if isinstance(entry, int) and dim is not None and not -dim <= entry < dim:
            raise IndexError(f"{name}: index {entry} is out of bounds for axis {position} with size {dim}{at_line()}")
        if axis is not None:
            result[axis] = _known_length(entry, dim)
    return tuple(result)


def _known_length(entry: tuple[Any, Any, Any], dim: int | None) -> int | None:
    if dim is None or HOLE in entry:
        return None
    return len(range(*slice(*entry).indices(dim)))


# the same at run time -----------------------------------------------------------------------------------------------


class Region:
    """x[spec] as seen by a lowering. Operand 0 is x, operands from number `first` on fill the holes.

    `place` gives the place in x of an element of the region, and checks positions that come from an array.
    """

    def __init__(self, view: Operands, first: int, name: str) -> None:
        self.view, self.name = view, name
        self.spec: Spec = for_all_axes(view.attrs["spec"], view.types[0].rank)
        self.arrays: list[int] = []
        holes = iter(range(first, len(view.types)))
        self.entries = [self._entry(entry, holes) for entry in self.spec]
        types = [view.types[k] for k in self.arrays]
        self.array_shape: Shape = broadcast_shapes(*(type_.shape for type_ in types)) if types else ()
        self.layout = layout(self.spec, len(self.array_shape))
        self.x_dims = view.dims(0)

    def _entry(self, entry: Any, holes: Any) -> Any:
        if isinstance(entry, tuple):
            return tuple(self._entry(part, holes) for part in entry)
        if entry == ARRAY:
            self.arrays.append(next(holes))
            return ARRAY
        return self.view.scalar(next(holes)) if entry == HOLE else entry

    def axes(self) -> Iterable[tuple[Any, int | None, int, Index]]:
        """Entry, axis of the result, axis of x, and length of that axis; new axes left out."""
        axis = 0
        for entry, result_axis in zip(self.entries, self.layout.axes, strict=True):
            if isinstance(entry, str) and entry == "newaxis":
                continue
            yield entry, result_axis, axis, self.view.known(self.x_dims[axis])
            axis += 1

    def dims(self) -> Indices:
        result: list[Index] = [1] * self.layout.rank
        start = self.layout.array_start
        result[start : start + len(self.array_shape)] = self._array_dims()
        for entry, result_axis, _, n in self.axes():
            if result_axis is not None:
                result[result_axis] = self._range(entry, n).length
        return tuple(result)

    def _array_dims(self) -> list[Index]:
        """The broadcast dimensions of the arrays of positions: of each axis the first that is not fixed at 1."""
        rank = len(self.array_shape)
        result: list[Index | None] = list(self.array_shape)
        for k in self.arrays:
            shape, dims = self.view.types[k].shape, self.view.dims(k)
            for axis, (known, dim) in enumerate(zip(shape, dims, strict=True), rank - len(shape)):
                if result[axis] is None and known != 1:
                    result[axis] = dim
        return [1 if dim is None else dim for dim in result]

    def checked_dims(self) -> Indices:
        """`dims`, with the checks that do not depend on an element."""
        for entry, _, axis, n in self.axes():
            if is_position(entry):
                self._check_position(entry, n, axis)
            elif isinstance(entry, tuple):
                self._check_step(entry)
        common = self._array_dims()
        for k in self.arrays:
            shape, dims = self.view.types[k].shape, self.view.dims(k)
            for known, dim, wanted in zip(shape, dims, common[len(common) - len(shape) :], strict=True):
                if known != 1:
                    message = f"{self.name}: index arrays of lengths {{0}} and {{1}} do not broadcast"
                    must_equal(self.view, wanted, dim, message, "IndexError")
        return self.dims()

    def _check_step(self, entry: tuple[Any, Any, Any]) -> None:
        if isinstance(entry[2], Expr):
            self.view.check(compare("!=", entry[2], 0), "ValueError", "slice step cannot be zero")

    def _check_position(self, i: Index, n: Index, axis: int) -> None:
        if isinstance(i, int):
            exists = compare(">", n, i) if i >= 0 else compare(">=", n, -i)
        else:
            exists = both(compare("<", i, n), compare(">=", add(i, n), 0))  # in this order the sum stays in the range of int64
        message = f"{self.name}: index {{0}} is out of bounds for axis {axis} with size {{1}}"
        self.view.check(exists, "IndexError", message, i, n)

    def ranges(self) -> list[Range]:
        """The range that is taken of each axis of x, for a spec without arrays."""
        return [self._range(entry, n) for entry, _, _, n in self.axes()]

    def _range(self, entry: Any, n: Index) -> Range:
        """The range that an entry takes of an axis of length n, simplified by what is known here."""
        one, known = slice_range(entry, n) if isinstance(entry, tuple) else _single(entry, n), self.view.known
        return Range(known(one.first), known(one.length), known(one.step), known(one.before), known(one.after), one.ends_early)

    def place(self, index: Indices) -> Indices:
        """The place in x of the region's element at `index`."""
        arrays, start = iter(self.arrays), self.layout.array_start
        shared = index[start : start + len(self.array_shape)]
        places: list[Index] = []
        for entry, result_axis, axis, n in self.axes():
            if isinstance(entry, tuple):
                assert result_axis is not None
                found = self._range(entry, n)
                places.append(add(found.first, mul(index[result_axis], found.step)))
            elif is_position(entry):
                places.append(self.view.known(from_start(entry, n)))
            else:
                places.append(self._array_place(next(arrays), shared, axis, n))
        return tuple(places)

    def _array_place(self, k: int, shared: Indices, axis: int, n: Index) -> Index:
        shape = self.view.types[k].shape
        index = tuple(0 if dim == 1 else i for dim, i in zip(shape, shared[len(shared) - len(shape) :], strict=True))
        found = self.view.at(k, index, "int64")
        i: Index = int(found.value.real) if isinstance(found, Literal) else self.view.short(found)  # used several times below
        self._check_position(i, n, axis)
        if self.view.types[k].kind == "u":
            return i
        return self.view.known(from_start(i, n))


def from_start(i: Index, n: Index) -> Index:
    """A position counted from the start."""
    if isinstance(i, int):
        return i if i >= 0 else add(n, i)
    return choice(compare("<", i, 0), add(i, n), i)


def _single(i: Index, n: Index) -> Range:
    """One position as a range of length 1."""
    first = from_start(i, n)
    after = -1 - i if isinstance(i, int) and i < 0 else sub(n, add(first, 1))
    return Range(first, 1, 1, first, after)
