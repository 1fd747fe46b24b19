"""Writes in converted code: `x[i] = v`, `obj.a = v`, `x += v`. What a branch or a pass writes is noted, so that it can be carried along."""

from __future__ import annotations

import inspect
import math
import operator
import random
import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ...errors import TracedKeyError
from ...ir.node import constant_value
from ...ops.card import card_named
from ...ops.raising import RAISING
from ..converted.source import converted
from ..tracing import NeedsTracedArrays
from ..tree import LEAF, flattened, unflatten
from ..variable import CAPTURE, HOOKS, METHODS, Variable, as_variable, at_line, op
from ..views import PlainView, UnsureView
from .arrays import behind_mask, changed, changed_where, written
from .cells import GlobalVariable, content, fill
from .checks import is_refusal
from .chosen import check_free, check_free_array, freeze, holders, is_frozen
from .frames import FRAMES, Place, decides, is_outer, note
from .joining import as_type, held, is_numeric, promoted
from .made import Made
from .options import numbers_in
from .rows import Rows
from .truth import is_traced
from .witness import is_opaque

IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": operator.ipow,
    "MatMult": operator.imatmul,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
}


def holds_traced(value: Any) -> bool:
    """Whether a value is a variable, or holds one in tuples, lists, slices or arrays of objects."""
    if isinstance(value, Made | Rows):
        return True
    if isinstance(value, (tuple, list)):
        return any(map(holds_traced, value))
    if isinstance(value, slice):
        return any(map(holds_traced, (value.start, value.stop, value.step)))
    return isinstance(value, Variable) or is_traced(value)


def outside(value: Any) -> Any:
    """A value read from outside the function, or from an object. Where arrays are traced, one of NumPy's becomes read-only and traced."""
    if not CAPTURE.makes_arrays or type(value) is not np.ndarray or value.dtype.kind not in "biufc" or not value.ndim:
        return value
    array = Variable(as_variable(value).node)
    array.home = "an array that is read from outside"
    return array


def key(value: Any) -> Any:
    """A key of a dict, or an element of a set. TypeError for a traced one: only the run knows which others are equal.

    Variables of the symbolic interface are keys of updates: they are told apart as objects.
    """
    if holds_traced(value) and not (isinstance(value, Variable) and value.home is None):
        raise TracedKeyError(
            f"a traced value is a key of a dict, or an element of a set{at_line()}: only the run knows which it equals; write an array "
            "and an index, or np.unique of an array (in updates the keys must be shared variables)"
        )
    return value


def keys(values: Any) -> list[Any]:
    """Elements of a set."""
    return [key(value) for value in values]


def item(holder: Any, index: Any) -> Any:
    """`holder[index]`."""
    index = numbers_in(index)
    if FRAMES.stack and (method := _own_method(holder, "__getitem__")) is not None:
        return method(index)
    if isinstance(holder, Mapping):
        if _may_be_key(holder, index):
            return _one_of([*holder.values()], _place_of_key(holder, index))
        return holder[key(index)]
    if not holds_traced(index) or isinstance(holder, Variable | Made):
        return holder[index]
    if isinstance(holder, np.ndarray):
        return _read_only(holder)[index]
    if isinstance(holder, (list, tuple)) and not isinstance(index, slice):
        return _one_of(holder, index)
    if isinstance(holder, range) and not isinstance(index, slice):
        place = _place_in(len(holder), as_variable(index), "range object index out of range")
        return holder.start + holder.step * place
    if isinstance(holder, range):
        return Rows((holder,), LEAF, len(holder))[index]
    return holder[index]


def _read_only(array: np.ndarray) -> Variable:
    """An array of NumPy's as a traced one: where it is written, the function is traced again with traced arrays."""

    def write(*_: Any) -> NoReturn:
        raise NeedsTracedArrays(
            f"an array that is read from outside is written at a place that only the run knows{at_line()}; copy it first (x.copy()), "
            "or make it a state"
        )

    value = Variable(as_variable(array).node)
    if array.ndim > 1:
        freeze([array], "what it holds at a place that only the run knows was taken as a view")
        value.view_of = PlainView(Variable(value.node), array, write)
    return value


def _one_of(several: Sequence[Any], index: Any) -> Any:
    """The element of a list or tuple at a traced index: all have one structure, whose numbers are read one by one.

    A list of numbers is read as a row of a table.
    """
    if all(map(is_numeric, several)):
        return _number_of(several, index)
    if all(type(one) is list for one in several) and _are_rows(several):
        row, is_python = Variable(_array_of(several)[index].node), all(as_variable(one).type.weak for one in flattened(several)[0])
        is_short = 0 < math.prod(n or 0 for n in row.type.shape) <= _LONGEST
        element = _row(row, is_python) if is_short else HOOKS["row"](row, is_python)
        lists = holders(element) if is_short else [element]
    else:
        nests = [flattened(one) for one in several]
        if any(structure != nests[0][1] for _, structure in nests) or not all(is_numeric(leaf) for leaves, _ in nests for leaf in leaves):
            raise TypeError(
                f"the elements of a list or dict are of several kinds, or hold what is no number{at_line()}, and only the run knows which "
                "of them is read; give them one structure of numbers and arrays"
            )
        parts = zip(*(leaves for leaves, _ in nests), strict=True)
        element = unflatten(nests[0][1], [_number_of(leaves, index) for leaves in parts])
        lists = holders(element)
    freeze(
        [*lists, *(one for part in several for one in holders(part))],
        "it is one of several elements of a list, and only the run decides which",
    )
    return element


def _array_of(several: Sequence[Any]) -> Variable:
    """np.array of a list; of a row of a table, as it was read there."""
    row = None if CAPTURE.home is None else CAPTURE.home.rows.get(id(several))
    return row[1] if row is not None and is_frozen(several) else as_variable(several)


def _row(row: Variable, is_python: bool) -> list[Any]:
    """A row of a table as a list of numbers, or of rows. It is known for what it is as long as it is frozen."""
    n, number = row.type.shape[0], card_named("python_number")
    parts = [row[k] for k in range(n or 0)]
    elements = [_row(one, is_python) if one.ndim else op(number, one) if is_python else one for one in parts]
    if CAPTURE.home is not None:
        CAPTURE.home.rows[id(elements)] = elements, row
    return elements


def _are_rows(several: Sequence[Any]) -> bool:
    """True for numbers, and for lists of as many rows each."""
    if all(isinstance(one, list) for one in several):
        return len({len(one) for one in several}) == 1 and _are_rows([part for one in several for part in one])
    return all(is_numeric(one) and not np.ndim(one) for one in several)


def _number_of(several: Sequence[Any], index: Any) -> Variable:
    """The number or array of a list at a traced index."""
    value = Variable(_array_of(several)[index].node)
    if not value.ndim and all(as_variable(one).type.weak for one in several):
        return op(card_named("python_number"), value)
    if value.ndim:
        why = "an element of a list at a place that only the run knows is one of several arrays"
        known = [one for part in several for one in holders(part)]
        freeze(known, why)
        arrays = [part for part in flattened(several)[0] if isinstance(part, Variable) and part.ndim]
        if arrays:
            value.view_of = UnsureView(Variable(value.node), arrays, why)
        elif known:
            value.home = "one of several arrays of a list"
    return value


_MOST_EXACT = 2**53  # whole numbers up to here are the same as floats


def _may_be_key(holder: Any, index: Any) -> bool:
    """True for a traced number, and a dict whose keys are numbers: the run finds the key that it equals."""
    if not isinstance(index, Variable) or index.ndim or index.type.kind not in "biuf" or type(holder) is not dict:
        return False
    return bool(holder) and all(type(one) in (bool, int, float) and abs(one) <= _MOST_EXACT for one in holder)


def _place_of_key(holder: Mapping[Any, Any], index: Variable, is_needed: bool = True) -> Variable:
    """The place of a key that equals a traced number. If there is none, KeyError at the run, or the number of keys."""
    is_equal = as_variable(list(holder)) == index
    place = np.argmax(np.append(is_equal, True))
    return op(RAISING, place, is_equal.any(), error="KeyError", message="no key of the dict is equal") if is_needed else as_variable(place)


def get(holder: dict[Any, Any], index: Any, default: Any = None) -> Any:
    """`holder.get(index, default)`."""
    index = numbers_in(index)
    if not _may_be_key(holder, index):
        return holder.get(key(index), default)
    return _one_of([*holder.values(), default], _place_of_key(holder, index, is_needed=False))


_BUILT_IN = frozenset({int, float, complex, bool, str, list, tuple, dict, set, np.ndarray, np.float64, np.int64, Variable})


def _own_method(value: Any, name: str) -> Callable[..., Any] | None:
    """The converted method that a user's class has for an operation; None where the operation is Python's own."""
    if type(value) in _BUILT_IN:
        return None
    method = inspect.getattr_static(type(value), name, None)
    if type(method) is not types.FunctionType or (own := converted(method)) is method:
        return None
    return partial(own, value)


def set_item(value: Any, holder: Any, index: Any) -> None:
    """`holder[index] = value`."""
    index = numbers_in(index)
    if type(holder) is list and isinstance(index, Variable) and _set_one_of(value, holder, index):
        return
    if isinstance(holder, Mapping):
        key(index)
    if isinstance(holder, Made):
        holder.set(index, value)
        return
    if isinstance(holder, Variable):
        written(holder, index, value.array() if isinstance(value, Rows) else value)
        return
    if (method := _own_method(holder, "__setitem__")) is not None:
        method(index, value)
        return
    check_free(holder)
    if isinstance(holder, np.ndarray) and holder.dtype != object:
        check_plain(holder, (value, index))
    elif FRAMES.stack and isinstance(holder, (list, dict)):
        if is_outer(holder):
            _note_item(holder, index, value)
    elif FRAMES.stack:
        check_opaque(holder, "a write of an element")
    check_index(holder, index)
    holder[index] = value


_LONGEST = 64
"""The most numbers of a list that is written at a place known at run time only, where each is chosen anew, or that is read there."""


def _set_one_of(value: Any, several: Any, index: Variable) -> bool:
    """`several[index] = value` for a list of numbers, or a dict that has the key, and a traced index. False for others."""
    if not 0 < len(several) <= _LONGEST or not all(is_numeric(one) and not np.ndim(one) for one in (value, *_values_in(several).values())):
        return False
    if type(several) is dict:
        if not _may_be_key(several, index):
            return False
        place = _place_of_key(several, index)
    elif index.ndim or index.type.kind not in "iu":
        return False
    else:
        place = _place_in(len(several), index, "list assignment index out of range")
    for k, (of, old) in enumerate(_values_in(several).items()):
        set_item(_chosen(place == k, value, old), several, of)
    return True


def _values_in(several: Any) -> dict[Any, Any]:
    """The elements of a list by their places, or those of a dict by their keys."""
    return dict(several if isinstance(several, dict) else enumerate(several))


def _place_in(n: int, index: Variable, message: str) -> Variable:
    """A traced index of one of n elements, counted from the first. IndexError at the run for others."""
    if index.ndim or index.type.kind not in "iu":
        raise TypeError(f"indices must be integers, not {index.type}{at_line()}")
    return op(RAISING, np.where(index < 0, index + n, index), (index >= -n) & (index < n), error="IndexError", message=message)


def _chosen(condition: Any, value: Any, old: Any) -> Any:
    """One of two numbers, in a dtype that holds both as they are; Python's number of two of these."""
    one, other = as_variable(value), as_variable(old)
    if _gives_way(one, other) or _gives_way(other, one):
        type_ = promoted(one.type, other.type)
        return Variable(as_variable(np.where(condition, as_type(one, type_), as_type(other, type_))).node)
    dtype = np.result_type(one.dtype, other.dtype).name
    chosen = Variable(as_variable(np.where(condition, METHODS["astype"](one, dtype), METHODS["astype"](other, dtype))).node)  # a number
    return op(card_named("python_number"), chosen) if one.type.weak and other.type.weak and not chosen.type.weak else chosen


def _gives_way(number: Variable, other: Variable) -> bool:
    """Whether a number is an int of Python's that another one's dtype holds, so that sums with it wrap and round as that one's."""
    if not number.type.weak or other.type.weak or number.type.kind != "i" or other.type.kind not in "iuf":
        return False
    known = constant_value(number.node)
    return other.type.kind in "iu" if known is None else bool(np.can_cast(np.min_scalar_type(known), other.dtype))


def del_item(holder: Any, index: Any) -> None:
    """`del holder[index]`."""
    if (method := _own_method(holder, "__delitem__")) is not None:
        method(index)
        return
    may_change(holder, f"`del {type(holder).__name__}[…]`")
    del holder[index]


def del_attribute(holder: Any, name: str) -> None:
    """`del holder.name`."""
    if (method := _own_method(holder, "__delattr__")) is not None:
        method(name)
        return
    if decides(holder):
        raise TypeError(f"`del` of the attribute {name!r} in {FRAMES.stack[-1].place}; give it another value there (np.nan)")
    if FRAMES.stack and is_outer(holder) and hasattr(holder, name):
        before = getattr(holder, name)
        FRAMES.stack[-1].undone.append((holder, lambda: setattr(holder, name, before)))
    delattr(holder, name)


def may_change(holder: Any, what: str) -> None:
    """Notes that a list, dict or set changes its length. TypeError in a branch or a pass that only the run decides."""
    check_free(holder)
    if not is_outer(holder):
        return
    if decides(holder):
        raise TypeError(
            f"{what} in {FRAMES.stack[-1].place} changes how many things it holds; make an array of the full length before "
            "(np.zeros), and write its elements"
        )
    if isinstance(holder, (list, dict, set)):
        FRAMES.stack[-1].undone.append((holder, contents_of(holder)))


def check_opaque(value: Any, what: str) -> None:
    """TypeError where an opaque object (an iterator, a random generator) from outside is used in a branch or a pass that the run decides.

    A trial pass that uses one cannot be taken back.
    """
    if not is_opaque(value) or not (is_outer(value) or isinstance(value, _WORLDS)):
        return
    if decides(None if isinstance(value, _WORLDS) else value):
        raise TypeError(
            f"{what} in {FRAMES.stack[-1].place} uses a {type(value).__name__} that was made before: what becomes of that only "
            "the run knows; use it before, and use the result there"
        )
    FRAMES.stack[-1].is_stuck = True


def check_iterator(items: Any, what: str) -> None:
    """TypeError for a loop over an iterator whose position only the run knows, before the loop or behind it."""
    if hasattr(items, "__next__"):
        check_free(items)
    if FRAMES.stack:
        check_opaque(items, what)


_WORLDS = (np.random.Generator, np.random.RandomState, random.Random)
"""Random generators: their objects may exist without a name, so that no witness knows them."""


def check_index(holder: Any, index: Any) -> None:
    """TypeError for a traced place of a list or dict: what is written there would be lost."""
    if isinstance(holder, Mapping):
        key(index)
    if isinstance(holder, (list, tuple)) and holds_traced(index):
        raise TypeError(f"a {type(holder).__name__} is written at a place that only the run knows{at_line()}; use an array (np.zeros)")


def check_plain(array: np.ndarray, parts: tuple[Any, ...]) -> None:
    """Checks a write into a NumPy array, and notes how to take it back.

    Raises ValueError for an array from outside, NeedsTracedArrays where only the run knows what will be in it.
    """
    if CAPTURE.is_outside is not None and CAPTURE.is_outside(array):
        raise ValueError(f"an array that is read from outside is written into{at_line()}; copy it first (x.copy()), or make it a state")
    if CAPTURE.home is not None and (holds_traced(parts) or decides(array)):
        raise NeedsTracedArrays(
            f"an array that is read from outside is written with what only the run knows{at_line()}; copy it first (x.copy()), "
            "or make it a state"
        )
    check_free_array(array)
    if FRAMES.stack:
        before = array.copy()
        FRAMES.stack[-1].undone.append((array, lambda: np.copyto(array, before)))


def _note_item(holder: Any, index: Any, value: Any) -> None:
    if isinstance(holder, dict) and index not in holder:
        if not decides(holder):
            FRAMES.stack[-1].undone.append((holder, contents_of(holder)))
            return
        raise TypeError(
            f"a dict gets the new key {index!r} in {FRAMES.stack[-1].place}; give it the key before, with a value of the same kind"
        )
    if isinstance(index, slice) and not decides(holder):
        FRAMES.stack[-1].undone.append((holder, contents_of(holder)))
        return
    if isinstance(index, slice) or holds_traced(index):
        raise TypeError(f"a list is written at {index!r} in {FRAMES.stack[-1].place}; use an array (np.zeros)")
    key = range(len(holder))[index] if isinstance(holder, list) else index
    if holder[key] is value and isinstance(value, Variable):  # `holder[key] += y` has written the array itself
        return

    def write(value: Any) -> None:
        holder[key] = value

    label = f"an element [{key!r}] of a {type(holder).__name__}"
    note((id(holder), ("item", key)), Place(holder, label, lambda: held(holder[key]), write, holder[key], content=lambda: holder[key]))


def set_attribute(value: Any, holder: Any, name: str) -> None:
    """`holder.name = value`."""
    if isinstance(holder, Variable):
        _set_part(value, holder, name)
        return
    if (method := _own_method(holder, "__setattr__")) is not None:
        method(name, value)
        return
    descriptor = inspect.getattr_static(type(holder), name, None)
    if type(descriptor) is property and type(descriptor.fset) is types.FunctionType:
        converted(descriptor.fset)(holder, value)
        return
    check_free(holder)
    is_left = isinstance(value, Variable) and getattr(holder, name, None) is value  # `holder.name += y` has written the array itself
    if isinstance(holder, np.ndarray):
        check_plain(holder, (value,))
    elif FRAMES.stack and not is_left and is_outer(holder):
        _note_attribute(holder, name)
    setattr(holder, name, value)


def _set_part(value: Any, array: Variable, name: str) -> None:
    """`x.real = value` and its like."""
    if name not in ("real", "imag", "flat"):
        raise AttributeError(f"the attribute {name!r} of an array is set{at_line()}; write x = x.reshape(shape), or x[...] = values")
    if name == "imag" and array.type.kind != "c":
        raise TypeError(f"array does not have imaginary part to set{at_line()}")
    written(getattr(array, name), Ellipsis, value)


def _note_attribute(holder: Any, name: str) -> None:
    if not hasattr(holder, name):
        if not decides(holder):
            FRAMES.stack[-1].undone.append((holder, lambda: delattr(holder, name) if hasattr(holder, name) else None))
            return
        raise TypeError(
            f"a {type(holder).__name__} gets the new attribute {name!r} in {FRAMES.stack[-1].place}; give it the attribute before"
        )
    label = f"the attribute {name!r} of a {type(holder).__name__}"
    read, write = (lambda: held(getattr(holder, name))), (lambda value: setattr(holder, name, value))
    note((id(holder), name), Place(holder, label, read, write, getattr(holder, name), content=lambda: getattr(holder, name)))


def update(old: Any, name: str, value: Callable[[], Any]) -> Any:
    """What `x += value` binds x to."""
    new = value()
    if isinstance(old, Variable):
        return changed(old, _binary(name), new)
    if isinstance(old, list | Made) and (isinstance(new, Made) or (name == "Mult" and holds_traced(new))):
        raise TypeError(
            f"a list changes in place to as many elements as only the run knows{at_line()}, which other names of it would not see; write "
            "x = x + y, or an array (np.zeros)"
        )
    if isinstance(old, np.ndarray) and old.dtype != object:
        check_plain(old, (new,))
    elif (method := _own_method(old, f"__i{_METHOD_NAMES.get(name, name.lower())}__")) is not None:
        result = method(new)
        return _binary(name)(old, new) if result is NotImplemented else result
    elif isinstance(old, (list, dict, set, deque, bytearray)):
        may_change(old, f"`+=` of a {type(old).__name__}")
    return IN_PLACE[name](old, new)


_METHOD_NAMES = {"Mult": "mul", "Div": "truediv", "BitAnd": "and", "BitOr": "or", "BitXor": "xor"}


def contents_of(holder: Any) -> Callable[[], None]:
    """A function that gives a list, dict or set its present contents back."""
    before = holder.copy()

    def undo() -> None:
        holder.clear()
        holder.extend(before) if isinstance(holder, list) else holder.update(before)

    return undo


def _binary(name: str) -> Callable[[Any, Any], Any]:
    return _BINARY[name]


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, function.__name__[1:] if function.__name__ not in ("iand", "ior") else f"{function.__name__[1:]}_")
    for name, function in IN_PLACE.items()
}


def update_item(holder: Any, index: Any, name: str, value: Callable[[], Any]) -> None:
    """`holder[index] += value`."""
    if isinstance(holder, Variable) and (found := behind_mask(holder, index)) is not None:
        part, mask, rest = found
        before = Variable(part.node)
        old = item(holder, index) if mask.ndim else None  # read before the value is computed
        given = as_variable(value())
        if not part.ndim:
            set_item(np.where(mask, _BINARY[name](before, given), before), holder, rest)
            return
        if not given.ndim:
            changed_where(part, before, mask, _BINARY[name], given)
            return
        set_item(update(old, name, lambda: given), holder, index)
        return
    before = item(holder, index)
    after = update(before, name, value)
    if type(holder) is dict and isinstance(index, Variable) and _set_one_of(after, holder, index):
        return  # the key is there: it was read
    if after is not before or not isinstance(holder, Made):  # an array that is an element has been written itself
        set_item(after, holder, index)


def update_attribute(holder: Any, attribute: str, name: str, value: Callable[[], Any]) -> None:
    """`holder.attribute += value`."""
    set_attribute(update(getattr(holder, attribute), name, value), holder, attribute)


def rebinds(*probes: Callable[[], Any]) -> None:
    """Notes the variables of other functions that the called one may bind (`nonlocal`, `global`). Each probe reads one of them."""
    for probe in probes if FRAMES.stack else ():
        name = (*probe.__code__.co_freevars, *probe.__code__.co_names)[0]
        cell: Any = probe.__closure__[0] if probe.__closure__ else GlobalVariable(probe.__globals__, name)
        if not probe.__closure__ or is_outer(cell):
            key = (id(cell), "cell") if probe.__closure__ else (id(probe.__globals__), f"global {name}")
            note(key, _variable(cell, name))


def _variable(cell: Any, name: str) -> Place:
    before = content(cell)

    def write(value: Any) -> None:
        fill(cell, value)

    now = partial(content, cell)
    return Place(cell, name, lambda: held(now()), write, before, is_changed=lambda: now() is not before, content=now)


class _Context:
    """A context manager, with converted methods where they are the user's. It never suppresses a refusal."""

    def __init__(self, enter: Callable[..., Any], leave: Callable[..., Any]) -> None:
        self._enter, self._leave = enter, leave

    def __enter__(self) -> Any:
        return self._enter()

    def __exit__(self, cls: Any, error: Any, trace: Any) -> Any:
        return self._leave(cls, error, trace) and not (CAPTURE.home is not None and is_refusal(error))


def context(value: Any) -> Any:
    """The context manager of a `with`."""
    cls = type(value)
    if not hasattr(cls, "__enter__") or not hasattr(cls, "__exit__"):
        return value  # Python raises the error
    if FRAMES.stack:
        check_opaque(value, "`with`")
    enter, leave = (_own_method(value, name) or partial(getattr(cls, name), value) for name in ("__enter__", "__exit__"))
    return _Context(enter, leave)
