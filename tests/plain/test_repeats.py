"""Functions that change what lies outside them: what they give at each call and step is Python's, or they are refused."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt

Maker = Callable[[], Callable[[Any], Any]]
REMEMBERING: dict[str, Maker] = {}  # what they give depends on what the calls before have left
FORGETFUL: dict[str, Maker] = {}  # what they change decides nothing


def remembering(make: Maker) -> Maker:
    REMEMBERING[make.__name__] = make
    return make


def forgetful(make: Maker) -> Maker:
    FORGETFUL[make.__name__] = make
    return make


@remembering
def an_element_of_a_dict() -> Any:
    d = {"k": 1.0}

    def f(y: Any) -> Any:
        d["k"] *= 2
        return y + d["k"]

    return f


@remembering
def an_element_of_a_list_in_an_object() -> Any:
    o = SimpleNamespace(values=[1.0, 2.0])

    def f(y: Any) -> Any:
        o.values[1] = o.values[1] + 0.3
        return y * o.values[1] + o.values[0]

    return f


@remembering
def a_variable_of_the_function_around() -> Any:
    k = 3

    def f(y: Any) -> Any:
        nonlocal k
        k += 1
        return np.ones(k) * y

    return f


RATE = 0.5


@remembering
def a_global_variable() -> Any:
    global RATE
    RATE = 0.5

    def f(y: Any) -> Any:
        global RATE
        RATE = 1 - RATE / 3
        return y**RATE

    return f


@remembering
def an_attribute() -> Any:
    class Filter:
        gain = 1.0

        def __call__(self, y: Any) -> Any:
            self.gain = self.gain + 1.5
            return np.sin(y * self.gain)

    return Filter().__call__


@remembering
def setattr_of_an_attribute() -> Any:
    o = SimpleNamespace(k=1.0)

    def f(y: Any) -> Any:
        setattr(o, "k", 2 * o.k)  # noqa: B010 - as people write it
        return y + o.k

    return f


@remembering
def an_attribute_by_the_namespace() -> Any:
    o = SimpleNamespace(k=1.0)

    def f(y: Any) -> Any:
        vars(o)["k"] *= 2
        return y + o.k

    return f


@remembering
def a_global_variable_by_globals() -> Any:
    global RATE
    RATE = 0.5

    def f(y: Any) -> Any:
        globals()["RATE"] = 1 - RATE / 3
        return y**RATE

    return f


@remembering
def a_flag() -> Any:
    o = SimpleNamespace(is_first=True)

    def f(y: Any) -> Any:
        if o.is_first:
            o.is_first = False
            return y * 2
        return y * 3

    return f


@remembering
def the_argument_of_the_call_before() -> Any:
    d: dict[str, Any] = {"previous": None}

    def f(y: Any) -> Any:
        change = y if d["previous"] is None else y - d["previous"]
        d["previous"] = y
        return change + 1

    return f


@remembering
def how_long_a_list_is() -> Any:
    calls: list[int] = []

    def f(y: Any) -> Any:
        calls.append(1)
        return y * len(calls)

    return f


@remembering
def what_a_deque_gives() -> Any:
    queue = deque([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    return lambda y: y * queue.popleft()


@remembering
def an_iterator() -> Any:
    values = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    return lambda y: y - next(values)


@remembering
def a_counter_of_itertools() -> Any:
    count = itertools.count(1)
    return lambda y: y * next(count)


@remembering
def a_generator() -> Any:
    def powers() -> Iterator[float]:
        k = 1.0
        while True:
            yield k
            k *= 1.5

    values = powers()
    return lambda y: y * next(values)


@remembering
def an_array_that_is_replaced() -> Any:
    o = SimpleNamespace(W=np.eye(3))

    def f(y: Any) -> Any:
        o.W = o.W * 1.1 + 0.1
        return (o.W @ np.ones(3)).sum() * y

    return f


@remembering
def a_helper() -> Any:
    d = {"k": 1.0}

    def grow() -> float:
        d["k"] += 0.25
        return d["k"]

    return lambda y: y * grow()


@remembering
def another_compiled_function() -> Any:
    grow = ns.jit(an_element_of_a_dict())
    return lambda y: grow(y) * 2


@remembering
def a_gradient_of_another_function() -> Any:
    d = {"k": 1.0}

    def grow(y: Any) -> Any:
        d["k"] *= 2
        return y**2 * d["k"]

    slope = ns.grad(grow)
    return lambda y: slope(y)


@remembering
def a_decorated_function() -> Any:
    f = an_attribute()

    @functools.wraps(f)
    def decorated(y: Any) -> Any:
        return f(y)

    return decorated


@remembering
def an_exception_at_the_second_call() -> Any:
    d = {"done": False}

    def f(y: Any) -> Any:
        if d["done"]:
            raise RuntimeError("called twice")
        d["done"] = True
        return y

    return f


@forgetful
def a_counter() -> Any:
    n = 0

    def f(y: Any) -> Any:
        nonlocal n
        n += 1
        return y * 2

    return f


@forgetful
def a_log() -> Any:
    log: list[str] = []

    def f(y: Any) -> Any:
        log.append("called")
        return np.exp(y)

    return f


@forgetful
def a_table_made_at_the_first_call() -> Any:
    class Model:
        def __init__(self) -> None:
            self.A: Any = np.eye(3) * 2 + 0.1
            self.inverse: Any = None

        @cached_property
        def scale(self) -> float:
            return float(self.A.sum()) / 3

        def __call__(self, y: Any) -> Any:
            if self.inverse is None:
                self.inverse = np.linalg.inv(self.A)
            return (self.inverse @ np.ones(3)).sum() * y * self.scale + self.inverse.shape[0]

    return Model().__call__


@forgetful
def a_cache() -> Any:
    cache: dict[str, Any] = {}

    def f(y: Any) -> Any:
        if "w" not in cache:
            cache["w"] = np.linspace(0.0, 1.0, 7)
            cache["k"] = 0.37
        return (np.exp(cache["w"]) * y).sum() * cache["k"]

    return f


@forgetful
def a_number_that_is_set_anew() -> Any:
    o = SimpleNamespace(k=2.5)

    def f(y: Any) -> Any:
        o.k = 2.5
        o.k *= 3
        return y * o.k

    return f


@forgetful
def a_counter_beside_draws() -> Any:
    n = [0]

    def f(y: Any) -> Any:
        n[0] += 1
        return y + 0 * np.random.default_rng(4).normal(size=3)

    return f


@pytest.mark.parametrize("transform", ["jit", "vmap", "value_and_grad"])
@pytest.mark.parametrize("name", REMEMBERING)
def test_what_depends_on_the_calls_before_is_refused(name: str, transform: str) -> None:
    f = REMEMBERING[name]()
    if name == "a_variable_of_the_function_around" and transform == "value_and_grad":
        f = (lambda g: lambda y: g(y).sum())(f)
    argument = np.array([1.0, 2.0]) if transform == "vmap" else 1.5
    with pytest.raises(ValueError, match=r"changes .*, and what it gives depends on that"):
        getattr(ns, transform)(f)(argument)


@pytest.mark.parametrize("name", FORGETFUL)
def test_what_decides_nothing_is_no_error(name: str) -> None:
    f, plain = ns.jit(FORGETFUL[name]()), FORGETFUL[name]()
    for y in (1.5, 2.5, -1.0, 0.25):
        np.testing.assert_allclose(f(y), plain(y))


def test_a_counter_counts_traces() -> None:
    n, log = 0, []

    @ns.jit
    def f(y: Any) -> Any:
        nonlocal n
        n += 1
        log.append(n)
        return y * 2

    for y in (1.0, 2.0, 3.0):
        f(y)
    assert (n, log) == (1, [1])
    f(np.ones(3))
    assert (n, log) == (2, [1, 2])


def a_step() -> tuple[dict[str, float], Callable[[Any], Any]]:
    d = {"k": 1.0}

    def step(s: Any) -> Any:
        d["k"] *= 2
        return s + d["k"]

    return d, step


LOOPS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "scan": lambda step, x: ns.scan(step, None, x, n_steps=3, return_updates=False),
    "scan_in_jit": lambda step, x: ns.jit(lambda x: ns.scan(step, None, x, n_steps=3, return_updates=False))(x),
    "symbolic": lambda step, x: ns.scan(step, None, nt.dscalar("x"), n_steps=3, return_updates=False),
    "fori_loop": lambda step, x: lax.fori_loop(0, 3, lambda _, s: step(s), x),
    "while_loop": lambda step, x: lax.while_loop(lambda s: s < 20, step, x),
    "condition": lambda step, x: lax.while_loop(lambda s: s < step(0.0), lambda s: s + 1, x),
    "lax_scan": lambda step, x: lax.scan(lambda s, _: (step(s), s), x, None, length=3)[0],
    "map": lambda step, x: ns.map(step, np.ones(4) * x, return_updates=False),
    "lax_map": lambda step, x: lax.map(step, np.ones(4) * x),
    "reduce": lambda step, x: ns.reduce(lambda a, b: step(a) + b, np.ones(4), x, return_updates=False),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_step_that_changes_what_it_reads_is_refused(loop: str) -> None:
    with pytest.raises(ValueError, match=r"changes d\['k'\], and what it gives depends on that"):
        LOOPS[loop](a_step()[1], 1.0)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_step_may_count_its_traces(loop: str) -> None:
    log: list[int] = []

    def step(s: Any) -> Any:
        log.append(len(log))
        return s + 2.0

    found, wanted = (LOOPS[loop](one, 1.0) for one in (step, lambda s: s + 2.0))
    if loop != "symbolic":
        np.testing.assert_array_equal(found, wanted)


def test_draws_and_generators_beside_a_counter() -> None:
    stream = nt.random.RandomStream(3)

    def run(is_counted: bool) -> list[Any]:
        n: list[int] = []
        rng = np.random.default_rng(5)
        stream.seed(3)

        def step(s: Any) -> Any:
            if is_counted:
                n.append(1)
            return s + stream.normal() + rng.normal()

        f = ns.jit(lambda x: ns.scan(step, None, x, n_steps=4, return_updates=False) + rng.normal())
        return [f(0.0), f(0.0)]

    np.testing.assert_array_equal(run(True), run(False))


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if loop not in ("symbolic", "scan_in_jit", "condition")])
def test_a_function_that_reads_how_often_its_step_ran_is_refused(loop: str) -> None:
    def f(x: Any) -> Any:
        n = 0
        seen = {"last": 0.5}

        def step(s: Any) -> Any:
            nonlocal n
            n += 1
            seen["last"] = 2.5
            return s + 2.0

        return LOOPS[loop](step, x) * n * seen["last"]

    with pytest.raises(ValueError, match=r"changes (the variable n|seen\['last'\]), which the function around it has made"):
        ns.jit(f)(1.0)


TRACES = 0


def counted_step(s: Any) -> Any:
    global TRACES
    TRACES += 1
    return s * 0.5


def test_a_step_may_count_in_a_global_variable() -> None:
    f = ns.jit(lambda x: ns.scan(counted_step, None, x, n_steps=3, return_updates=False))
    before = TRACES
    assert f(8.0)[-1] == f(8.0)[-1] == 1.0
    assert before < TRACES


def test_a_step_may_count_for_whoever_calls_the_function() -> None:
    count = 0

    @ns.jit
    def f(x: Any) -> Any:
        def step(s: Any) -> Any:
            nonlocal count
            count += 1
            return s + 2.0

        return ns.scan(step, None, x, n_steps=3, return_updates=False)

    assert f(1.0)[-1] == f(1.0)[-1] == 7.0
    assert count > 0


@pytest.mark.parametrize("choose", [lax.cond, lambda c, a, b, x: nt.ifelse(c, lambda: a(x), lambda: b(x))])
def test_a_branch_that_changes_what_others_see_is_refused(choose: Any) -> None:
    def f(x: Any) -> Any:
        d = {"k": 1.0}

        def yes(x: Any) -> Any:
            d["k"] = 2.0
            return x

        return choose(x > 0, yes, lambda x: x + 1, x) * d["k"]

    with pytest.raises(ValueError, match=r"changes d\['k'\], and only the run knows whether it is taken"):
        ns.jit(f)(1.0)


def test_a_branch_may_log_and_cache() -> None:
    log: list[str] = []
    cache: dict[str, float] = {}

    def yes(x: Any) -> Any:
        log.append("yes")
        cache["k"] = 3.0
        return x * cache["k"]

    f = ns.jit(lambda x: lax.switch(x.astype("int64"), [lambda x: x, yes, np.exp], x))
    assert [float(f(x)) for x in (0.0, 1.0)] == [0.0, 3.0]
    assert log == ["yes"]


def test_what_is_refused_leaves_what_the_trace_has_left() -> None:
    d, step = a_step()
    with pytest.raises(ValueError, match="depends on that"):
        ns.jit(step)(1.0)
    assert d == {"k": 2.0}


def test_another_thread_changes_what_is_read() -> None:
    """The function has no code that changes an attribute, so nobody is refused: it is traced again."""
    o = SimpleNamespace(k=1.0)
    met = threading.Barrier(2, timeout=60)

    def change() -> None:
        for k in (2.0, 2.0):
            met.wait()
            o.k = k
            met.wait()

    def f(y: Any) -> Any:
        result = y * o.k
        met.wait()
        met.wait()
        return result

    compiled = ns.jit(f)
    other = threading.Thread(target=change)
    other.start()
    found = [float(compiled(1.0)), float(compiled(1.0))]
    other.join()
    assert found == [1.0, 2.0]
