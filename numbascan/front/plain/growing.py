"""Lists that a loop of known length appends to: `for t in range(1000): xs.append(x)`.

Such a loop is a scan, and what a pass appends is one of its results. While a pass is traced, the variable holds a `Growing` in place of the
list; behind the loop it holds a `Grown`. That is right because no other variable refers to the list (`lists_of`): nobody can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...ir.node import Node, constant_value
from ...ops.card import Card
from ..converted.source import is_library_name
from ..numpy.joining import concatenate
from ..tree import LEAF, ListOf, OpenList, Structure, fields_of, flattened, n_leaves, unflatten
from ..variable import CAPTURE, HOOKS, Variable, as_variable, at_line
from ..views import UnsureView, is_array
from .cells import Cells, Joined, Part, own_variables, references, sole_parts, sole_values
from .chosen import check_free, freeze, holders, is_frozen, is_known
from .frames import FRAMES, Frame
from .joining import as_type, is_numeric, promoted
from .lists import Leaf, Listed, lent, python_type
from .loops import LAST_ELEMENTS
from .made import InPlaceOfAList, Made
from .rows import PythonNumbers, Rows

WINDOW = 8
"""The most elements from before a pass that the pass may read."""


# while a pass is traced -----------------------------------------------------------------------------------------------


class _List(NamedTuple):
    """A list as an element of another one: its array, the levels of lists that its elements have, whether they are Python's numbers."""

    array: Variable
    depth: int
    is_python: bool


class Growing(InPlaceOfAList, Made, OpenList):
    """A list to which each pass of a loop appends.

    - before: the list before the loop. appended: what this pass has appended: elements, and rows that a loop within it has appended.
    - window: the last elements from before this pass. counters: the numbers of the pass, by their nodes, with the first one of each.
    - is_counted: an element was found by the number of the pass, which is right if a pass appends one element.
    - is_over: no pass is traced. Nobody may ask it anything: the list is another object now, and a name that still has this one is wrong.
    """

    def __init__(self, before: list[Any] | Grown | Growing) -> None:
        self.before = before
        self.appended: list[Any] = []
        self.is_counted = False
        self._window: Sequence[Any] = ()
        self._counters: dict[Node, int] = {}
        self._frame: Frame | None = None
        self._is_over = False

    def first_window(self) -> tuple[Any, ...]:
        """The last elements before the loop."""
        last = self.before.backwards() if isinstance(self.before, Growing) else (self.before[-k] for k in range(1, len(self.before) + 1))
        return tuple(reversed(list(islice(last, WINDOW))))

    def begin(self, window: Sequence[Any], counters: dict[Node, int]) -> None:
        """Begins a pass."""
        freeze([holder for one in window for holder in holders(one)], "it is an element that a list had before a pass of a loop")
        self.appended, self.is_counted, self._is_over = [], False, False
        self._window, self._counters, self._frame = window, counters, CAPTURE.frame

    def end(self) -> tuple[Any, ...]:
        """The last elements behind the pass. TypeError where elements were found by a wrong count."""
        if self.is_counted and self.n_appended != 1:
            self._refuse(f"a pass appends {self.n_appended} elements and reads one by the number of the pass")
        last = tuple(reversed(list(islice(self.backwards(), len(self._window)))))
        self._is_over = True
        return last

    def check(self) -> None:
        """TypeError where its pass has ended."""
        if self._is_over:
            self._refuse("a list to which a loop has appended is read or written by a name that a pass has given it")

    @property
    def n_appended(self) -> int:
        """How many elements this pass has appended."""
        return sum(one.length if isinstance(one, Rows) else 1 for one in self.appended)

    def backwards(self) -> Iterator[Any]:
        """The elements from the last one back, as far as they are the same at each pass."""
        self.check()
        for one in reversed(self.appended):
            if isinstance(one, _List):
                self._refuse("a list is read that is an element")
            rows = Rows(one.sources, lent(one.structure), one.length) if isinstance(one, Rows) else None
            yield from [one] if rows is None else (rows.at(k) for k in reversed(range(rows.length)))
        yield from reversed(self._window)

    def append(self, value: Any) -> None:
        """`x.append(value)`."""
        if isinstance(value, Listed):
            if is_frozen(value) or not _is_new(value.born):
                self._refuse("a list is an element of several others, or was made before the pass")
            freeze([value], "it is an element of another list, which holds it as an array")
            value = _List(*value.nested())
        self.add([value if isinstance(value, _List) else _element(value)])

    def extend(self, values: Any) -> None:
        """`x.extend(values)`."""
        if not isinstance(values, (list, tuple)):
            self._refuse("list.extend is called")
        self.add(list(map(_element, values)))

    def add(self, parts: list[Any]) -> None:
        """Appends elements, and rows of elements."""
        self.check()
        for frame in reversed(FRAMES.stack):
            if frame is self._frame:
                break
            if not frame.is_trial:
                self._refuse("list.append is called in a choice or a loop within the loop")
        appended, n = self.appended, len(self.appended)

        def undo() -> None:  # it refers to neither the list nor an element, whose references are counted
            del appended[n:]

        FRAMES.stack[-1].undone.append((None, undo))
        appended += parts

    def check_own(self, names: Mapping[int, int]) -> None:
        """TypeError where something besides variables has a list, dict or object that is an element. names: how many have it, by its id.

        What has one would see a write into the element, which holds rows of arrays behind the loop, and the element a write there.
        """
        parts = [part for one in self.appended if not isinstance(one, Rows | _List) for part in _containers(one)]
        if any(n - names.get(id(part), 0) > 1 for part, n in zip(parts, references(parts), strict=True)):
            self._refuse("a list, dict or object is an element of a list, and has another name")

    def __getitem__(self, index: Any) -> Any:
        self.check()
        place = self._place_from_end(index)
        found = [] if place is None or place >= 0 else list(islice(self.backwards(), -place - 1, -place))
        return found[0] if found else self._refuse("an element is read that is none of the last ones at each pass")

    def _place_from_end(self, index: Any) -> int | None:
        """The place of an element, counted from the end, if it is the same at each pass."""
        if isinstance(index, int) and index < 0:
            return index
        first = _first(as_variable(index).node, self._counters) if isinstance(index, Variable) and not index.ndim else None
        if first is None or first < 0 or isinstance(self.before, Growing):
            return None
        self.is_counted = True
        return first - len(self.before) - self.n_appended

    @property
    def length(self) -> Any:
        """`len(x)`."""
        self.check()
        for counter, first in self._counters.items() if not isinstance(self.before, Growing) else ():
            self.is_counted = True
            return Variable(counter) + (len(self.before) + self.n_appended - first)
        return self._refuse("the number of elements is asked")

    def has_elements(self) -> Any:
        """Whether there is an element."""
        self.check()
        return bool(self._window or self.appended) or super().has_elements()

    def taken(self) -> Any:
        """Refused."""
        self._refuse("a list is read as a whole that a loop appends to")

    is_open = rows = array = parts = __iter__ = taken

    def __reduce_ex__(self, *_: Any) -> Any:
        self.taken()

    def holds(self, value: Any) -> Any:
        """Refused."""
        self.taken()

    def set(self, index: Any, value: Any) -> None:
        """Refused."""
        self.taken()


def _first(node: Node, counters: dict[Node, int]) -> int | None:
    """What a number is at the first pass, if it is a number of the pass plus a constant; else None."""
    if node in counters:
        return counters[node]
    if not isinstance(node.op, Card) or node.op.name not in ("add", "subtract"):
        return None
    left, right = node.inputs
    if right in counters and node.op.name == "add":
        left, right = right, left
    other = constant_value(right)
    if left not in counters or other is None or other.dtype.kind not in "iu":
        return None
    return counters[left] + (int(other) if node.op.name == "add" else -int(other))


def _element(value: Any) -> Any:
    """An element that a pass may append: numbers, arrays that nobody had before the pass, and nests of these. TypeError for others.

    The lists, dicts and objects of a nest are new in the pass, too: a pass cannot hand an older one on as the same object.
    """
    passes = [frame for frame in FRAMES.stack if not frame.is_trial]
    if any(not passes or is_known(holder, passes[-1]) for holder in holders(value)):
        raise TypeError(
            f"a list gets a list, dict or object from before the pass of a loop{at_line()}; append a copy, or write an array (np.zeros)"
        )
    leaves, _ = flattened(value)
    for leaf in leaves:
        is_own = is_numeric(leaf) and not isinstance(leaf, np.ndarray)
        if is_own and isinstance(leaf, Variable) and is_array(leaf):
            is_own = leaf.view_of is None and _is_new(leaf.born)
        if not is_own:
            raise TypeError(
                f"a list gets {leaf!r} in a loop{at_line()}, and may hold numbers, new arrays and nests of these there; append a copy "
                "(x.copy()), or write an array (np.zeros)"
            )
    if not leaves:
        raise TypeError(f"a list gets elements that hold no number in a loop{at_line()}; write them before it")
    return value


def _is_new(born: Frame | None) -> bool:
    """Whether what was made in a branch or pass was made in the pass that is traced."""
    passes = [frame for frame in FRAMES.stack if not frame.is_trial]
    return bool(passes) and passes[-1].made(born)


def _containers(nest: Any) -> list[Any]:
    """The lists, dicts and objects of a nest, and the tuples that hold them."""
    if not holders(nest):
        return []
    parts = nest.values() if isinstance(nest, dict) else nest if isinstance(nest, (list, tuple)) else fields_of(nest).values()
    return [nest, *(one for part in parts for one in _containers(part))]


# behind the loop ------------------------------------------------------------------------------------------------------


class Grown(Listed):
    """A list of known length in parts: lists, and rows that a loop has appended."""

    def __init__(self, parts: Iterable[list[Any] | Rows], structure: Structure, depth: int = 0) -> None:
        self._parts, self.born = list(parts), CAPTURE.frame
        self._structure, self._depth, self._mask, self.kind = structure, depth, None, list

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def _n_rows(self) -> int:
        return len(self)

    def held(self) -> Any:
        """What holds its arrays."""
        return self._parts

    def _gather(self) -> None:
        """Makes one part of several. TypeError in a branch or a pass that only the run decides: the array would be its own."""
        if len(self._parts) == 1:
            return
        for frame in reversed(FRAMES.stack):
            if frame.made(self.born):
                break
            if not frame.is_trial:
                self._refuse(f"a list that a loop has made and that was made longer is written in {frame.place}")
        self._leaves = self._leaves

    def join(self) -> None:
        """Makes one part of several, right where the list is made, if its elements are numbers of one kind: later a loop may write them."""
        sources = [source for part in self._parts for source in _sources(part, 0)] if self._structure == LEAF and not self._depth else []
        types = {(type_.dtype, type_.weak, one.ndim) for one, type_ in ((_array_in(source), python_type(source)) for source in sources)}
        if len(self._parts) > 1 and len(types) == 1 and _array_in(sources[0]).ndim == 1:
            self._leaves = self._leaves

    def _put(self, leaf: Leaf) -> None:
        self._parts[0] = Rows((leaf,), self._structure, len(self))

    @property
    def _leaves(self) -> list[Leaf]:
        return [self._leaf(k) for k in range(n_leaves(self._structure))]

    @_leaves.setter
    def _leaves(self, leaves: list[Leaf]) -> None:
        self._parts = [Rows(tuple(leaves), self._structure, len(self))]

    def _leaf(self, k: int) -> Leaf:
        """A leaf of all elements. Arrays of several parts may not be written through it."""
        if len(self._parts) == 1 and isinstance(self._parts[0], Rows):
            leaf: Leaf = self._parts[0].sources[k]
            return leaf
        sources = [source for part in self._parts for source in _sources(part, k)]
        type_ = python_type(sources[0])
        for source in sources:
            type_ = promoted(type_, python_type(source))
        arrays = [source.array if isinstance(source, PythonNumbers) else source for source in sources]
        whole = Variable(concatenate([as_type(array, type_.with_shape(array.type.shape)) for array in arrays]).node)
        if whole.ndim > 1:
            whole.view_of = UnsureView(Variable(whole.node), arrays, "elements of a list that a loop has made are arrays of their own")
        return PythonNumbers(whole) if type_.weak else whole

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int) or isinstance(index, bool) or self._depth:
            return super().__getitem__(index)
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"list index out of range{at_line()}")
        place = index % n
        for part in self._parts:
            if place < len(part):
                return Rows(part.sources, lent(part.structure), part.length).at(place) if isinstance(part, Rows) else part[place]
            place -= len(part)
        raise AssertionError

    def rows(self) -> Rows | None:
        """Its elements as rows."""
        return None if self._depth else Rows(tuple(self._leaves), lent(self._structure), len(self), self.lists())

    def parts(self) -> tuple[ListOf, list[Any]]:
        """As a result of a compiled function."""
        leaves = self._leaves
        if any(
            python_type(source).dtype != python_type(leaf).dtype
            for part in self._parts
            for k, leaf in enumerate(leaves)
            for source in _sources(part, k)
        ):
            self._refuse("a list of ints and floats is returned")
        return super().parts()

    def append(self, value: Any) -> None:
        """`x.append(value)`."""
        self.extend([value])

    def extend(self, values: Any) -> None:
        """`x.extend(values)`."""
        elements = [*values]
        if self._depth or not all(_fits(one, self._parts, self._structure) for one in elements):
            self._refuse("an element of another kind is appended to a list that a loop has made")
        self._note_change()
        self._parts = [*self._parts, elements]

    def reverse(self) -> None:
        """`x.reverse()`."""
        leaves = [PythonNumbers(one.array[::-1]) if isinstance(one, PythonNumbers) else one[::-1] for one in self._leaves]
        self._note_change()
        self._leaves = leaves

    def _note_change(self) -> None:
        """Notes that the list changes. TypeError where only the run decides that."""
        check_free(self)
        frame, before = CAPTURE.frame, self._parts
        if frame is not None:
            frame.undone.append((None, lambda: setattr(self, "_parts", before)))
        while frame is not None and not frame.made(self.born):
            if not frame.is_trial:
                self._refuse(f"a list that a loop has made changes in {frame.place}")
            frame = frame.outer

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"{what}{at_line()}, and a loop has made it as an array; write np.array of it, or np.zeros before the loop")


def _array_in(leaf: Leaf) -> Variable:
    return leaf.array if isinstance(leaf, PythonNumbers) else leaf


def _sources(part: list[Any] | Rows, k: int) -> list[Leaf]:
    """A leaf of all elements of a part, as arrays to be joined."""
    if isinstance(part, Rows):
        return [part.sources[k]]
    leaves = [as_variable(flattened(one)[0][k]) for one in part]
    return [PythonNumbers(one[np.newaxis]) if one.type.weak else one[np.newaxis] for one in leaves]


def _fits(element: Any, parts: Sequence[list[Any] | Rows], structure: Structure) -> bool:
    """Whether an element may be one of a list with these rows: its numbers have the dtypes and shapes of theirs, or are ints for floats."""
    leaves, own = flattened(element)
    if own != structure:
        return False
    (rows, *_) = [part for part in parts if isinstance(part, Rows)]
    for leaf, source in zip(leaves, rows.sources, strict=True):
        if not is_numeric(leaf):
            return False
        one, other = as_variable(leaf).type, (source.array if isinstance(source, PythonNumbers) else source).type
        is_known = one.dtype == other.dtype or (one.kind == "i" and one.weak and other.dtype in ("float64", "complex128"))
        if not is_known or one.rank != other.rank - 1 or any(a != b for a, b in zip(one.shape, other.shape[1:], strict=True)):
            return False
    return True


# the loop -------------------------------------------------------------------------------------------------------------


class Spot(NamedTuple):
    """Where a list is found: in a variable, under a key of a dict there, or as an attribute of an object there."""

    variable: str
    key: Any = None
    is_attribute: bool = False

    def read(self, cells: Cells) -> Any:
        """The list."""
        holder = cells.values()[self.variable]
        if self.key is None:
            return holder
        return vars(holder)[self.key] if self.is_attribute else holder[self.key]

    def found(self, cells: Cells) -> Any:
        """What stands there; None where nothing does."""
        holder = cells.values()[self.variable]
        if self.key is None:
            return holder
        space = getattr(holder, "__dict__", None) if self.is_attribute else holder
        return space.get(self.key) if type(space) is dict else None

    def write(self, cells: Cells, value: Any) -> None:
        """Puts another list there."""
        if self.key is None:
            cells.fill({self.variable: value})
            return
        holder = cells.values()[self.variable]
        (vars(holder) if self.is_attribute else holder)[self.key] = value


def lists_of(body: Part) -> dict[Spot, int]:
    """The lengths of the lists to which the body of a loop refers and nobody else. Of a `Growing`, the number that a pass has appended."""
    found: dict[Spot, int] = {}
    for name, value in sole_values(body).items():
        if type(value) in _LISTS:  # a class of the user's may have an `append` of its own
            found[Spot(name)] = _length(value)
        elif type(value) is dict:
            found.update({Spot(name, key): n for key, n in _lists_in(value).items() if key is not None})
        elif isinstance(space := getattr(value, "__dict__", None), dict) and not is_library_name(type(value).__module__):
            found.update({Spot(name, key, True): n for key, n in _lists_in(space).items()})
    return found


def longer(body: Part, lists: Mapping[Spot, int]) -> list[Spot]:
    """Those of the lists that are longer now. Where another thing stands, there is none."""
    cells = Cells((body,), [spot.variable for spot in lists])
    now = {spot: spot.found(cells) for spot in lists}
    return [spot for spot, n in lists.items() if type(now[spot]) in _LISTS and _length(now[spot]) > n]


def _lists_in(space: dict[Any, Any]) -> dict[Any, int]:
    return {key: _length(one) for key, one in sole_parts(space).items() if type(one) in _LISTS}


def _length(several: Any) -> int:
    return several.n_appended if isinstance(several, Growing) else len(several)


_LISTS = (list, Grown, Growing)


class Growth:
    """A loop over `rows` whose body appends to lists.

    - body, names: the body that leaves what a pass has appended, and the variables that it adds.
    - kept: the variables whose values after every pass are needed, not only those after the last.
    """

    kept = ("_ns_appended",)
    names = ("_ns_appended", LAST_ELEMENTS)

    def __init__(self, body: Part, spots: Sequence[Spot], rows: Rows) -> None:
        cells = self._cells = Cells((body,), [spot.variable for spot in spots])
        self._body = body
        self._lists, self._rows = {spot: spot.read(cells) for spot in spots}, rows
        self._parts: list[list[_Appended]] = []
        _ns_appended: Any = None
        _ns_window: Any = [self._replaced(spot) for spot in spots]

        def one_pass(item: Any) -> None:
            nonlocal _ns_appended, _ns_window
            self._begin(_ns_window, _counters(rows, item))
            body(item)
            _ns_appended, _ns_window = self._end()

        del _ns_appended
        self.body = Joined((body, one_pass), one_pass)
        self._left = Cells((one_pass,), self.kept)

    def _replaced(self, spot: Spot) -> tuple[Any, ...]:
        """Puts a `Growing` where a list is. Nothing else refers to it, so that a loop in the body may replace it in turn."""
        one = Growing(self._lists[spot])
        spot.write(self._cells, one)
        return one.first_window()

    def _begin(self, windows: Sequence[Any], counters: dict[Node, int]) -> None:
        for spot, window in zip(self._lists, windows, strict=True):
            spot.read(self._cells).begin(window, counters)

    def _end(self) -> tuple[list[Any], list[Any]]:
        """What a pass has appended to each list, rows and lists as arrays, and the last elements behind it."""
        lists = [spot.read(self._cells) for spot in self._lists]
        names = Counter(map(id, own_variables(self._body).values()))
        for one in lists:
            one.check_own(names)
        self._parts = [list(map(_Appended.of, one.appended)) for one in lists]
        return [[part.value for part in parts] for parts in self._parts], [one.end() for one in lists]

    def finish(self) -> None:
        """Puts the lists where they were, as they are behind the loop. TypeError for elements of several kinds."""
        found = self._left.values()["_ns_appended"]
        for (spot, before), values, parts in zip(self._lists.items(), found, self._parts, strict=True):
            all_passes = [part._replace(value=value) for part, value in zip(parts, values, strict=True)]
            spot.write(self._cells, _grown(before, all_passes, self._rows.length) if all_passes else before)
        CAPTURE.has_grown = True

    def put_back(self) -> None:
        """Puts the lists where they were, as they were."""
        for spot, one in self._lists.items():
            spot.write(self._cells, one)


HOOKS.update(growth=Growth, lists=lists_of, longer=longer)


class _Appended(NamedTuple):
    """What a pass appends at once, an element or `n` rows, as numbers, arrays and nests of these; in the end, what all passes append there.

    depth: the levels of lists that an element has. is_python: for each leaf, whether its numbers are Python's; None: as the leaves tell.
    """

    value: Any
    n: int | None = None
    depth: int = 0
    is_python: Sequence[bool] | None = None

    @staticmethod
    def of(part: Any) -> _Appended:
        """Of an element, rows, or a list."""
        if isinstance(part, _List):
            return _Appended(part.array, None, part.depth, [part.is_python])
        if not isinstance(part, Rows):
            return _Appended(part)
        arrays = [source.array if isinstance(source, PythonNumbers) else as_variable(source) for source in part.sources]
        return _Appended(unflatten(part.structure, arrays), part.length, 0, [isinstance(source, PythonNumbers) for source in part.sources])

    def leaves(self) -> list[Leaf]:
        """The leaves: a row for each pass, of numbers of Python's where they are."""
        leaves = flattened(self.value)[0]
        return (
            leaves
            if self.is_python is None
            else [PythonNumbers(one) if of else one for one, of in zip(leaves, self.is_python, strict=True)]
        )


def _counters(rows: Rows, item: Any) -> dict[Node, int]:
    """The numbers of a pass that grow by one from pass to pass, with the first of each."""
    leaves, _ = flattened(item)
    return {
        as_variable(leaf).node: source.start
        for leaf, source in zip(leaves, rows.sources, strict=True)
        if isinstance(source, range) and source.step == 1
    }


def _grown(before: list[Any] | Grown | Growing, appended: Sequence[_Appended], n_passes: int) -> Any:
    """A list behind the loop. appended: what all passes have appended, part by part."""
    structure, depth = flattened(appended[0].value)[1], appended[0].depth
    if any(flattened(part.value)[1] != structure or part.depth != depth for part in appended):
        raise TypeError(f"a pass of a loop appends elements of different kinds to a list{at_line()}; give them one")
    are_rows = [part.n is not None for part in appended]
    sources = tuple(_in_one(leaves, are_rows) for leaves in zip(*[part.leaves() for part in appended], strict=True))
    rows = Rows(sources, structure, n_passes * sum(1 if part.n is None else part.n for part in appended))
    if isinstance(before, Growing) and not depth:
        before.add([rows])
        return before
    others = before._parts if isinstance(before, Grown) else before and [before]
    for part in others if not depth else ():
        if not all(_fits(one, [rows], structure) for one in (part if isinstance(part, list) else [part.at(0)])):
            raise TypeError(f"a loop appends elements of another kind than those that a list has{at_line()}; give them one dtype and shape")
    if depth and others:
        raise TypeError(f"a loop appends lists to a list that has elements{at_line()}; write an array (np.zeros)")
    grown = Grown([*others, rows], structure, depth)
    grown.join()
    return grown


def _in_one(leaves: Sequence[Leaf], are_rows: Sequence[bool]) -> Leaf:
    """What all passes have appended, one pass after the other. are_rows: where a pass appends several elements at once."""
    if not any(are_rows) and len(leaves) == 1:
        return leaves[0]
    arrays = [one.array if isinstance(one, PythonNumbers) else one for one in leaves]
    of_passes = [one if is_rows else as_variable(one[:, np.newaxis]) for one, is_rows in zip(arrays, are_rows, strict=True)]
    if len({(one.type.dtype, one.type.shape[2:]) for one in of_passes}) > 1:
        raise TypeError(f"a pass of a loop appends elements of different kinds to a list{at_line()}; give them one")
    rows = as_variable(concatenate(of_passes, axis=1)) if len(arrays) > 1 else of_passes[0]
    whole = Variable(rows.reshape((-1, *rows.shape[2:])).node)
    if any(one.view_of is not None for one in arrays) and whole.ndim > 1:
        whole.view_of = UnsureView(Variable(whole.node), arrays, "an element of a list may be a view of an array", True)
    return PythonNumbers(whole) if all(isinstance(one, PythonNumbers) for one in leaves) else whole
