"""What branches and passes do to Python's own objects: carried along, or refused. Never done once, while the function is traced."""

from __future__ import annotations

import bisect
import heapq
import io
import operator
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pytest
from effect_programs import RIGHT, SAFE, reset

import numbascan as ns

REFUSALS = (TypeError, ValueError, UnboundLocalError, ns.TracerError)


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """What the traced function gives; the class of the error that refuses it."""
    try:
        return ns.jit(f, mode="python")(*args)
    except (*REFUSALS, StopIteration, AttributeError, LookupError) as error:
        return error


def under_python(f: Callable[..., Any], *args: Any) -> Any:
    """What the function itself gives; the error that it raises."""
    try:
        return f(*args)
    except Exception as error:
        return error


def assert_same(expected: Any, result: Any) -> None:
    if isinstance(expected, tuple):
        assert len(expected) == len(result)
        for one, other in zip(expected, result, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_allclose(result, expected, rtol=1e-12)


# objects whose content changes --------------------------------------------------------------------------------------------


class Bag:
    """An object with every way of changing it."""

    def __init__(self) -> None:
        self.n: Any = 0
        self.items: list[Any] = [0, 0]

    def __call__(self) -> None:
        self.n += 1

    def __setitem__(self, index: int, value: Any) -> None:
        self.n = value

    def __getitem__(self, index: int) -> Any:
        self.n += 1
        return self.n

    def __delitem__(self, index: int) -> None:
        self.n += 1

    def __iadd__(self, value: Any) -> Bag:
        self.n += value
        return self

    def __add__(self, value: Any) -> Any:
        self.n += value
        return self.n

    def __enter__(self) -> Bag:
        self.n += 1
        return self

    def __exit__(self, *error: object) -> None:
        self.n += 10

    def __iter__(self) -> Iterator[int]:
        self.n += 1
        return iter([1, 2])

    def __next__(self) -> int:
        self.n += 1
        return 1

    @property
    def double(self) -> Any:
        self.n += 1
        return 2 * self.n

    @double.setter
    def double(self, value: Any) -> None:
        self.n = value / 2


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


class Loud(list[Any]):
    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, 2 * value)


COUNTS = {"n": 0}
NUMBER = 0


def bumps() -> None:
    COUNTS["n"] += 1


def bumps_number() -> None:
    global NUMBER
    NUMBER += 1


class Shared:
    n = 0
    log: ClassVar[list[int]] = []


def generated(l: list[int]) -> Iterator[int]:
    for k in range(5):
        l.append(k)
        yield k


@contextmanager
def appended(l: list[int]) -> Iterator[None]:
    l.append(1)
    yield
    l.append(2)


EFFECTS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "deque.append": (lambda: deque([1.0]), lambda s: s.append(1), len),
    "deque.rotate": (lambda: deque([1.0, 2.0]), lambda s: s.rotate(1), lambda s: s[0]),
    "list.append": (lambda: [1.0], lambda s: s.append(1), len),
    "list.__setitem__": (lambda: [1.0], lambda s: list.__setitem__(s, 0, 5.0), lambda s: s[0]),
    "l.__setitem__": (lambda: [1.0], lambda s: s.__setitem__(0, 5.0), lambda s: s[0]),
    "list.extend by iadd": (lambda: [1.0], lambda s: operator.iadd(s, [2]), len),
    "list.reverse": (lambda: [1.0, 2.0], lambda s: s.reverse(), lambda s: s[0]),
    "heappush": (lambda: [1.0], lambda s: heapq.heappush(s, 0.0), lambda s: s[0]),
    "insort": (lambda: [1.0], lambda s: bisect.insort(s, 0.5), lambda s: s[0]),
    "next": (lambda: iter([1.0, 2.0]), lambda s: next(s), lambda s: next(s)),
    "next of a generator": (lambda: generated([]), lambda s: next(s), lambda s: next(s)),
    "list of an iterator": (lambda: iter([1.0, 2.0]), lambda s: list(s), lambda s: next(s, 7)),
    "setattr": (Bag, lambda s: setattr(s, "n", 5), lambda s: s.n),
    "delattr": (Bag, lambda s: delattr(s, "n"), lambda s: float(hasattr(s, "n"))),
    "dict.__ior__": (lambda: {"a": 1.0}, lambda s: s.__ior__({"a": 2.0}), lambda s: s["a"]),
    "dict.update": (lambda: {"a": 1.0}, lambda s: s.update(a=2.0), lambda s: s["a"]),
    "dict.setdefault": (lambda: {"a": 1.0}, lambda s: s.setdefault("b", 1), len),
    "OrderedDict.move_to_end": (lambda: OrderedDict(a=1.0, b=2.0), lambda s: s.move_to_end("a"), lambda s: next(iter(s.values()))),
    "Counter.update": (lambda: Counter("a"), lambda s: s.update("ab"), len),
    "defaultdict": (lambda: defaultdict(float), lambda s: s["a"], len),
    "set.add": (lambda: {1}, lambda s: s.add(2), len),
    "set.__ior__": (lambda: {1}, lambda s: s.__ior__({2}), len),
    "bytearray": (lambda: bytearray(b"a"), lambda s: s.append(1), len),
    "call": (Bag, lambda s: s(), lambda s: s.n),
    "operator of the user": (Bag, lambda s: s + 1, lambda s: s.n),
    "getitem of the user": (Bag, lambda s: s[0], lambda s: s.n),
    "getter of the user": (Bag, lambda s: s.double, lambda s: s.n),
    "iteration of the user": (Bag, lambda s: [2 * v for v in s], lambda s: s.n),
    "next of the user": (Bag, lambda s: next(s), lambda s: s.n),
    "attribute of an attribute": (Bag, lambda s: s.items.append(1), lambda s: len(s.items)),
    "slots": (Slotted, lambda s: object.__setattr__(s, "n", 4), lambda s: s.n),
    "vars": (Bag, lambda s: vars(s).update(n=3), lambda s: s.n),
    "StringIO.write": (io.StringIO, lambda s: s.write("abc"), lambda s: len(s.getvalue())),
    "random.Random": (lambda: random.Random(0), lambda s: s.random(), lambda s: s.random()),
    "map of a function": (lambda: [1.0], lambda s: tuple(map(s.append, [1, 2])), len),
    "reduce": (lambda: [1.0], lambda s: reduce(lambda a, b: s.append(b), [1, 2]), len),
    "class attribute": (lambda: Shared, lambda s: setattr(s, "n", s.n + 1), lambda s: s.n),
    "class attribute list": (lambda: Shared, lambda s: s.log.append(1), lambda s: len(s.log)),
    "a global dict": (lambda: None, lambda s: bumps(), lambda s: COUNTS["n"]),
    "a global": (lambda: None, lambda s: bumps_number(), lambda s: NUMBER),
    "generator": (lambda: [1.0], lambda s: [2 * k for k in generated(s)], len),
    "array.fill": (lambda: np.zeros(2), lambda s: s.fill(3.0), lambda s: s[0]),
    "array.sort": (lambda: np.array([2.0, 1.0]), lambda s: s.sort(), lambda s: s[0]),
    "add out": (lambda: np.zeros(2), lambda s: np.add(s, 1.0, out=s), lambda s: s[0]),
    "add out by place": (lambda: np.zeros(2), lambda s: np.add(s, 1.0, s), lambda s: s[0]),
    "add.at": (lambda: np.zeros(2), lambda s: np.add.at(s, [0, 0], 1.0), lambda s: s[0]),
    "copyto": (lambda: np.zeros(2), lambda s: np.copyto(s, 1.0), lambda s: s[0]),
    "put": (lambda: np.zeros(2), lambda s: np.put(s, [0], 1.0), lambda s: s[0]),
    "fill_diagonal": (lambda: np.zeros((2, 2)), lambda s: np.fill_diagonal(s, 1.0), lambda s: s[0, 0]),
    "cumsum out": (lambda: np.ones(2), lambda s: np.cumsum(s, out=s), lambda s: s[1]),
    "clip by place": (lambda: np.ones(2), lambda s: np.clip(s, 2.0, 3.0, s), lambda s: s[1]),
    "flat": (lambda: np.ones(2), lambda s: s.flat.__setitem__(0, 5.0), lambda s: s[0]),
    "array in a list": (lambda: [np.ones(2)], lambda s: s[0].fill(5.0), lambda s: s[0][0]),
}


def fresh() -> None:
    """Globals as they were."""
    global NUMBER
    NUMBER, COUNTS["n"], Shared.n = 0, 0, 0
    Shared.log.clear()


def in_branch(make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s = make()
        if x > 0:
            act(s)
        return x + look(s)

    return f


def in_side(make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s = make()
        y = ([act(s)], x)[1] if x > 0 else -x
        return y + look(s)

    return f


def in_loop(make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s = make()
        total = 0.0
        for k in range(20):
            total = total + x * k
            if k < 3:
                act(s)
        return total + look(s)

    return f


def in_while(make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s = make()
        y = x
        while y * y < 9:
            act(s)
            y = y * 2
        return y + look(s)

    return f


def in_long_while(make: Callable[[], Any], act: Callable[[Any], Any], look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s = make()
        y = x
        for k in range(30):
            if y > 5:
                break
            y = y + 1
            if k == 1:
                act(s)
        return y + look(s)

    return f


@pytest.mark.parametrize("around", [in_branch, in_side, in_loop, in_while, in_long_while])
@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("x", [2.0, -1.0])
def test_what_changes_an_object_is_carried_along_or_refused(name: str, around: Callable[..., Any], x: float) -> None:
    f = around(*EFFECTS[name])
    fresh()
    expected = under_python(f, x)
    fresh()
    result = outcome(f, x)
    if isinstance(expected, Exception):
        assert isinstance(result, Exception)
    elif not isinstance(result, Exception):
        assert_same(expected, result)


def test_what_a_function_does_before_it_is_traced_again_is_done_once() -> None:
    log: ClassVar[list[int]] = []

    def f(x: Any) -> Any:
        log.append(1)
        z = np.zeros(3)
        if x > 0:
            z[0] = x
        return z

    expected = f(2.0)
    log.clear()
    assert_same(expected, ns.jit(f, mode="python")(2.0))
    assert log == [1]


def test_an_iterator_that_is_advanced_before_a_function_is_traced_again_is_refused() -> None:
    numbers = iter([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        y = np.zeros(2) + next(numbers)
        y[0] = x  # with traced arrays in the place of NumPy's
        return y

    with pytest.raises(TypeError, match="iterator numbers"):
        ns.jit(f, mode="python")(2.0)


# variables of other functions, deletions, contexts ------------------------------------------------------------------------


def nonlocal_in_branch(x: Any) -> Any:
    n = 0

    def inc() -> None:
        nonlocal n
        n = n + x

    if x > 0:
        inc()
        inc()
    return n * 10 + x


def nonlocal_in_loop(x: Any) -> Any:
    n, m = 0.0, 1.0

    def inc(by: Any) -> Any:
        nonlocal n
        n += by
        return n

    for k in range(30):
        m = m + inc(x * k)
        if k % 4 == 1:
            inc(1.0)
    return n, m


def nonlocal_in_helper_of_helper(x: Any) -> Any:
    n = 1.0

    def inc() -> None:
        nonlocal n
        if n < 5:
            n = n * 2

    def twice() -> None:
        inc()
        inc()

    while x < 20:
        twice()
        x = x + n
    return n, x


def nonlocal_of_a_fresh_call(x: Any) -> Any:
    def count(y: Any) -> Any:
        n = 0

        def inc() -> None:
            nonlocal n
            n += 1

        inc()
        if y > 2:
            inc()
        return n

    total = 0
    for k in range(40):
        total = total + count(x + k)
    return total


def global_in_loop(x: Any) -> Any:
    global NUMBER
    NUMBER = 3
    for _ in range(25):
        x = x * 0.9
        if x < 1:
            bumps_number()
    return NUMBER + x


def nonlocal_array(x: Any) -> Any:
    a = np.zeros(3)

    def set_() -> None:
        nonlocal a
        a = a + x

    for k in range(20):
        if x > k:
            set_()
    return a


def nonlocal_and_own(x: Any) -> Any:
    n = 0.0

    def inc() -> None:
        nonlocal n
        n = n + 1.0

    for k in range(20):
        inc()
        n = n + x
        if x > k:
            inc()
            n = n * 1.5
    return n


def deletes_item(x: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    if x > 0:
        del l[0]
    return l[0] + x


def deletes_key(x: Any) -> Any:
    d = {"a": 1.0}
    for k in range(30):
        x = x + 1
        if k == 3:
            del d["a"]
    return x + len(d)


def deletes_attribute(x: Any) -> Any:
    b = Bag()
    b.extra = 1
    if x > 0:
        del b.extra
    return x + (1 if hasattr(b, "extra") else 2)


def deletes_of_its_own(x: Any) -> Any:
    if x > 0:
        l = [1.0, 2.0]
        l.append(x)
        del l[0]
        b = Bag()
        b.extra = l[1]
        del b.extra
        d = {}
        d["k"] = l[0]
        x = d["k"] + sum(l)
    return x


def with_context(x: Any) -> Any:
    b = Bag()
    for _ in range(30):
        with b:
            x = x * 0.9
            if x < 0.5:
                b.n += 100
    return x + b.n


def with_generator(x: Any) -> Any:
    l = [0]
    if x > 0:
        with appended(l):
            x = x + len(l)
    return x + len(l)


def setters(x: Any) -> Any:
    b = Bag()
    if x > 0:
        b.double = 4 * x
    b += 3
    b[0] = b.n + 1
    return b.n


def augmented(x: Any) -> Any:
    b = Bag()
    for k in range(20):
        b += x
        if x > k:
            b += 1
    return b.n


def objects_made_inside(x: Any) -> Any:
    total = 0.0
    for k in range(30):
        b = Bag()
        b.n = x * k
        b()
        if b.n > 10:
            b.n = 10.0
        total = total + b.n
    return total


class Limited:
    def __init__(self, value: Any) -> None:
        self.value = value
        if value > 3:
            self.value = 3.0


def made_by_a_choice(x: Any) -> Any:
    return Limited(x).value


def memo(x: Any) -> Any:
    known: dict[int, Any] = {0: 0.0, 1: 1.0}

    def fib(n: int) -> Any:
        if n not in known:
            known[n] = fib(n - 1) + fib(n - 2)
        return known[n]

    return fib(30) if x > 0 else x


def memo_of_known(x: Any) -> Any:
    known: dict[int, int] = {}
    for k in range(30):
        known[k] = k * k
    if x > 0:
        x = x + known[7]
    return x + list(known)[3]


def memo_in_passes(x: Any) -> Any:
    known: dict[int, int] = {}
    for k in range(40):
        if k not in known:
            known[k] = k
        x = x + known[k]
    return x if x > 0 else -x


def custom_list(x: Any) -> Any:
    l = Loud([1.0, 2.0])
    if x > 0:
        l[0] = x
    return l[0]


def lists_in_branches(x: Any) -> Any:
    if x > 0:
        parts = []
        for k in range(3):
            parts.append(x * k)
        x = sum(parts)
    return x


def effect_in_test_of_while(x: Any) -> Any:
    b = Bag()

    def test() -> Any:
        b.n += 1
        return x < 50

    while test():
        x = abs(x) * 2
    return x + b.n


PROGRAMS = [
    nonlocal_in_branch, nonlocal_in_loop, nonlocal_in_helper_of_helper, nonlocal_of_a_fresh_call, global_in_loop, nonlocal_array,
    nonlocal_and_own, deletes_of_its_own, with_context, setters, augmented, objects_made_inside, made_by_a_choice, memo_of_known,
    lists_in_branches, effect_in_test_of_while,
]  # fmt: skip
REFUSED = [memo, deletes_item, deletes_key, deletes_attribute, with_generator, custom_list, memo_in_passes]


@pytest.mark.parametrize("x", [2.5, -1.5])
@pytest.mark.parametrize("f", PROGRAMS)
def test_effects_are_carried_along(f: Callable[..., Any], x: float) -> None:
    fresh()
    expected = f(x)
    fresh()
    assert_same(expected, ns.jit(f, mode="python")(x))


@pytest.mark.parametrize("x", [2.5, -1.5])
@pytest.mark.parametrize("f", REFUSED)
def test_effects_that_are_carried_along_or_refused(f: Callable[..., Any], x: float) -> None:
    expected, result = f(x), outcome(f, x)
    if not isinstance(result, Exception):
        assert_same(expected, result)


# programs -----------------------------------------------------------------------------------------------------------------


def own(args: tuple[Any, ...]) -> list[Any]:
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def names(programs: list[Any]) -> list[str]:
    return [f.__name__ for f, _ in programs]


def others(args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Arguments of the same types with which other ways are taken."""
    yield tuple(-a if isinstance(a, float) else a + 2 if isinstance(a, int) else 2.5 * a[::-1] - 1 for a in args)
    yield tuple(a + 7.3 if isinstance(a, float) else 1 if isinstance(a, int) else 0 * a - 1 for a in args)


def assert_same_or_refused(f: Callable[..., Any], traced: Callable[..., Any], args: tuple[Any, ...]) -> None:
    reset()
    expected = under_python(f, *own(args))
    reset()
    result = under_python(traced, *own(args))
    if isinstance(expected, Exception):
        assert isinstance(result, Exception)
    elif not isinstance(result, Exception):
        assert_same(expected, result)


@pytest.mark.parametrize("f, args", RIGHT, ids=names(RIGHT))
def test_programs_give_what_they_give_under_python(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    traced = ns.jit(f, mode="python")
    reset()
    expected = f(*own(args))
    reset()
    assert_same(expected, traced(*own(args)))
    for other in others(args):
        assert_same_or_refused(f, traced, other)


@pytest.mark.parametrize("f, args", SAFE, ids=names(SAFE))
def test_programs_give_what_they_give_under_python_or_are_refused(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    traced = ns.jit(f, mode="python")
    for one in (args, *others(args)):
        assert_same_or_refused(f, traced, one)
