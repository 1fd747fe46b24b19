"""What a traced function read from outside: closures, globals, attributes, defaults. A later call asks whether all is as it was.

A value read while tracing is frozen in the graph. So numbers and strings are compared by type and value, everything else by identity,
containers by what they hold, and arrays also by content: an array may have been read by NumPy while tracing (`W.sum() * y`), which leaves
no mark in the graph. What is compared is held: a new object in the place of one that is gone would look like it.
"""

from __future__ import annotations

import functools
import operator
import pickle
import random
import struct
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np

from .namespaces import ABSENT, COMPARED, Namespace, content, items, slots, space_of
from .reachable import Reachable

WATCHED = 1 << 24  # bytes of an array that are kept and compared; of a larger one a digest
_ROW = 4096  # words of a row in a digest
FRACTIONS = frozenset({float, complex, np.float32, np.float64, np.complex64, np.complex128})

Read = tuple[Callable[[Any], Any], Any, Any]  # the function that reads, what it reads from, and what it gave while tracing
_mro = operator.attrgetter("__mro__")
_bits = struct.Struct("dd").pack


class Guards:
    """The reads of one function, made when it is traced. `hold()` is asked before every call, by any thread.

    given: what it gets besides traced values: classes of its arguments, whose methods it may call, and static arguments.
    """

    def __init__(self, fn: Callable[..., Any], given: Iterable[Any] = ()) -> None:
        reach = Reachable(fn, given)
        own = fn.__self__ if isinstance(fn, types.MethodType) else fn
        self.generators, self._stored = reach.generators, reach.stored
        self.array_names = {id(array): name for array, name in reach.arrays}
        self.arrays = [(array, about_array(array)) for array, _ in reach.arrays if not array.dtype.hasobject]
        self._functions = [(weakref.ref(function), *_parts(function)) for function in reach.functions]
        closures = [zip(function.__closure__ or (), function.__code__.co_freevars, strict=True) for function in reach.functions]
        cells = [(cell, _kept(content(cell), own), name) for cell, name in chain(*closures)]
        self._cells = [one for one in cells if one[1] is not ABSENT]
        self._names: list[tuple[Mapping[str, Any], str, Any]] = []
        self._absent: list[tuple[KeysView[str], frozenset[str]]] = []
        self._reads: list[Read] = [(content, cell, ABSENT) for cell, value, _ in cells if value is ABSENT]
        for space in reach.spaces:
            self._add(space, own)
        questions = [(ask, source) for ask, source in _questions(reach) if ask is not space_of or source is not own]
        self._reads += [(ask, source, _kept(ask(source), own)) for ask, source in questions]
        answers = [answer if type(answer) is tuple else (answer,) for _, _, answer in self._reads]
        parts = chain(*answers, *map(items, reach.containers), *((array,) for array, _ in reach.arrays))
        self.numbers = {id(value): "" for value in parts if _is_number(value)}
        self.numbers |= {id(value): name for name, value, _ in self._named() if _is_number(value)}
        self._reads = [_weakly(read, own) for read in self._reads]

    def _named(self) -> Iterator[tuple[str, Any, Any]]:
        """The name of each variable and attribute that was read, the value that it had, and the one that it has now."""
        for cell, value, name in self._cells:
            yield name, value, content(cell)
        for space, name, value in self._names:
            yield name, value, space.get(name, ABSENT)

    def changed_elsewhere(self) -> bool:
        """Whether a variable or an attribute has another value though no code of the function stores it: another thread did."""
        changes = (name for name, before, now in self._named() if now is not before and not same(now, before))
        return not self._stored.issuperset(changes)

    def changed_number(self) -> tuple[str, Any, Any] | None:
        """The first number whose value, not whose type, has changed since the function was traced: its name, the value then, and now."""
        for name, before, now in self._named():
            if isinstance(before, Number) and type(now) is type(before) and not same(now, before):
                return name, before, now
        return None

    def _add(self, space: Namespace, own: Any) -> None:
        """Adds what code names in a namespace. In a class, and where every name counts, no name may come or go."""
        now, present = space.now(), space.present()
        if space.slots:
            named = space.holder, tuple([slot for slot in space.slots if slot.__name__ in present or slot.__name__ not in now])
            self._reads.append((slots, named, _kept(slots(named), own)))
            return
        if space.holder is own:  # whose namespace may lead back to it
            ask = functools.partial(_named, tuple({*present, *space.names}), space.whole or isinstance(own, type))
            self._reads.append((ask, own, _kept(ask(own), own)))
            return
        self._names += [(now, name, _kept(now.get(name, ABSENT), own)) for name in present]
        if space.whole:
            self._reads.append((tuple, now, tuple(now)))
        elif absent := space.names - now.keys():
            self._absent.append((now.keys(), frozenset(absent)))
        if isinstance(space.holder, type):
            self._reads.append((len, now, len(now)))

    def hold(self) -> bool:
        """Whether every read still gives what it gave while the function was traced."""
        try:
            for reference, code, defaults, keywords, attributes in self._functions:
                # one that is gone is not called again; whoever held it is asked, too
                if (fn := reference()) is not None and not (
                    fn.__code__ is code
                    and fn.__defaults__ is defaults
                    and fn.__kwdefaults__ is keywords
                    and (fn.__dict__ or None) is attributes
                ):
                    return False
            for cell, value, _ in self._cells:
                if (now := cell.cell_contents) is not value and not same(now, value):
                    return False
            for space, name, value in self._names:
                if (now := space.get(name, ABSENT)) is not value and not same(now, value):
                    return False
            for names, absent in self._absent:
                if not names.isdisjoint(absent):
                    return False
            for ask, source, value in self._reads:
                if (now := ask(source)) is not value and not same(now, value):
                    return False
            return not self.arrays or all(about_array(array) == before for array, before in self.arrays)
        except (AttributeError, RuntimeError, TypeError, ValueError):  # what was there is gone, or changes at this very moment
            return False

    def written_arrays(self) -> list[str]:
        """The names of arrays that hold other numbers than when the function was traced."""
        return [self.array_names[id(array)] for array, before in self.arrays if about_array(array) != before]

    def bytes_watched(self) -> int:
        """Bytes of the arrays that the function reads from outside."""
        return sum(array.nbytes for array, _ in self.arrays)

    def holds_array(self, array: np.ndarray) -> bool:
        """Whether `array`, or what it is a view of, was found outside the function: later calls must see it change."""
        base: Any = array
        while isinstance(base, np.ndarray):
            if id(base) in self.array_names:
                return True
            base = base.base
        return False


def _is_number(value: Any) -> bool:
    """Whether it is a number with a fraction, or an array of rank 0."""
    return type(value) in FRACTIONS or (type(value) is np.ndarray and not value.ndim)


# what is asked ------------------------------------------------------------------------------------------------------


def _questions(reach: Reachable) -> Iterator[tuple[Callable[[Any], Any], Any]]:
    """What to ask of everything that has no names."""
    yield from ((type, value) for value in reach.objects)
    yield from ((_mro, value) for value in reach.objects if isinstance(value, type))
    yield from ((space_of, space.holder) for space in reach.spaces if space.is_of_object())
    yield from ((items, container) for container in reach.containers if type(container) not in (tuple, frozenset))
    yield from ((_buffer, buffer) for buffer in reach.buffers)
    yield from ((_context, variable) for variable in reach.contexts)
    yield from ((_target, reference) for reference in reach.references)
    yield from ((_as_array, value) for value in reach.like_arrays)
    yield from ((_objects, array) for array, _ in reach.arrays if array.dtype.hasobject)
    if "get_value" in reach.attributes:
        yield from ((_shared, variable.container) for variable in reach.shared)


def _parts(fn: types.FunctionType) -> tuple[Any, ...]:
    return fn.__code__, fn.__defaults__, fn.__kwdefaults__, vars(fn) or None


def _named(names: tuple[str, ...], whole: bool, holder: Any) -> tuple[Any, ...]:
    """What a namespace has under some names. With `whole`, a tuple of all its names comes first."""
    space = space_of(holder)
    return (tuple(space) if whole else (), *[space.get(name, ABSENT) for name in names])


def _buffer(value: Any) -> bytes:
    return memoryview(value).tobytes()


def _context(variable: Any) -> Any:
    return variable.get(ABSENT)


def _target(reference: weakref.ref[Any]) -> Any:
    return reference()


def _shared(container: Any) -> tuple[Any, ...]:
    return about_array(container.value)


def _as_array(value: Any) -> tuple[Any, ...]:
    try:
        array = np.asarray(value)
    except Exception:  # objects of packages may raise anything; what is no array NumPy has not read
        return ()
    return _objects(array) if array.dtype.hasobject else about_array(array)


def _objects(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, *array.ravel().tolist()


def about_array(array: np.ndarray) -> tuple[Any, ...]:
    """An array's dtype, shape, layout and content."""
    return array.dtype, array.shape, array.strides, array.flags.num, array.tobytes() if array.nbytes <= WATCHED else _digest(array)


def _digest(array: np.ndarray) -> bytes:
    """A checksum for each row of words, and the bytes left over: as fast as memory, and without a copy of the array.

    The sums of 32-bit words times odd weights, modulo 2**64: one changed word, or two that changed places, always show.
    """
    memory = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = memory.size - memory.size % (4 * _ROW)
    rows = memory[:whole].view(np.uint32).reshape(-1, _ROW)
    return np.einsum("ij,j->i", rows, _weights()).tobytes() + memory[whole:].tobytes()


@functools.cache
def _weights() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2**64, _ROW, np.uint64) | np.uint64(1)


# how answers compare ------------------------------------------------------------------------------------------------


class _Itself(weakref.ref[Any]):
    """The traced function, or the instance of a method, among what its own guards hold: they do not keep it alive."""

    __slots__ = ()


def _kept(answer: Any, own: Any) -> Any:
    """An answer as it is kept: with a weak reference in the place of `own`."""
    if type(answer) is tuple:
        return tuple([_kept(value, own) for value in answer]) if any(value is own for value in answer) else answer
    return _Itself(own) if answer is own and type(own).__weakrefoffset__ else answer


def _weakly(read: Read, own: Any) -> Read:
    """A read that does not keep `own` alive."""
    ask, source, answer = read
    source = _kept(source, own)
    if type(source) is _Itself:
        return lambda itself: ask(itself()), source, answer
    if type(source) is tuple and any(type(part) is _Itself for part in source):
        return lambda parts: ask(tuple([part() if type(part) is _Itself else part for part in parts])), source, answer
    return read


def same(now: Any, before: Any) -> bool:
    """Whether two answers that are not one object are equal: numbers, strings, and tuples of these and of identical objects."""
    kind = type(before)
    if kind is _Itself:
        return before() is now
    if type(now) is not kind:
        return False
    if kind is tuple:
        return len(now) == len(before) and all(one is other or same(one, other) for one, other in zip(now, before, strict=True))
    if kind is float and now == before and now:
        return True
    if kind is float or kind is complex:
        return _bits(now.real, now.imag) == _bits(before.real, before.imag)  # 0.0 is not -0.0, and NaN is NaN of the same sign
    if isinstance(before, np.generic):
        return bool(now.tobytes() == before.tobytes())
    return kind in COMPARED and bool(now == before)


def random_state(guards: Guards | None = None) -> bytes:
    """The state of the global random generators, and of those that a function captured."""
    known = [np.random.get_state(legacy=False), random.getstate()]  # noqa: NPY002 - the legacy state is what must not be used
    for generator in () if guards is None else guards.generators:
        known.append(_state_of(generator))
    return pickle.dumps(known)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return np.random.Generator.bit_generator.__get__(generator).state  # of those that stand for others, too
    if isinstance(generator, np.random.RandomState):
        return np.random.RandomState.get_state(generator, legacy=False)
    return generator.getstate()
