"""Everything public called from many threads at once, first calls too: each call gives what it gives alone."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import compile as compiling
from numbascan.emit.inside import object_code

THREADS = 16


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    """Python changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What work(0), ..., work(15) give, each in a thread of its own, all started together."""
    start = threading.Barrier(THREADS)
    results: list[Any] = [None] * THREADS

    def run(k: int) -> None:
        start.wait()
        try:
            results[k] = work(k)
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def same(got: Any, wanted: Any) -> bool:
    """Whether two nests of arrays are equal, dtypes and shapes included."""
    if isinstance(wanted, (tuple, list)):
        return type(got) is type(wanted) and len(got) == len(wanted) and all(map(same, got, wanted))
    if isinstance(wanted, dict):
        return isinstance(got, dict) and got.keys() == wanted.keys() and all(same(got[key], wanted[key]) for key in wanted)
    got, wanted = np.asarray(got), np.asarray(wanted)
    return got.dtype == wanted.dtype and got.shape == wanted.shape and bool(np.array_equal(got, wanted, equal_nan=True))


# what is called -------------------------------------------------------------------------------------------------------

ROWS = np.arange(1.0, 13.0)
REAL = [ROWS, ROWS.astype("float32"), ROWS.reshape(4, 3), ROWS.reshape(12, 1), ROWS[:1], ROWS.reshape(1, 12), ROWS[::2], 2.0, np.float32(3)]
KINDS = [*REAL, ROWS.astype("int64"), ROWS * 1j, ROWS.reshape(2, 3, 2), 3, True]


def _add(x: Any, s: Any) -> Any:
    return s + x


def _cubes(x: Any) -> Any:
    return (x * x * x).sum()


def _scanned(f: Any) -> list[Callable[[], Any]]:
    """Calls of a scan over rows, of all kinds and with all keywords."""

    def start(x: Any) -> Any:
        return np.zeros_like(x[0])

    calls = [lambda x=x: f(x, start(x)) for x in KINDS if np.ndim(x)]
    for keywords in ({"keep_last": 1}, {"keep_last": 2}, {"save_every": 2}, {"mode": "python"}, {"return_list": True}, {"name": "other"}):
        calls += [lambda x=x, keywords=keywords: f(x, start(x), **keywords) for x in KINDS[:3]]
    calls += [lambda x=x: f([x, x], None, mode=None) for x in KINDS[:3]]
    calls += [lambda x=x: f(x, start(x), n_steps=2) for x in KINDS[:3]]
    calls += [lambda x=x: f(x, start(x), out=np.empty_like(x)) for x in KINDS[:3]]
    return calls


def _of_one(f: Any, kinds: list[Any] = REAL) -> list[Callable[[], Any]]:
    return [lambda x=x: f(x) for x in kinds]


def _symbolic() -> list[Callable[[], Any]]:
    x, y = nt.dvectors("x y")
    f = ns.function([x, y], [x * y, (x - y).sum()])
    return [*(lambda n=n: f(ROWS[:n], ROWS[:n] * 2) for n in range(1, 12)), lambda: f(y=[1.0, 2.0], x=[3, 4])]


PUBLIC: dict[str, Callable[[], list[Callable[[], Any]]]] = {
    "scan": lambda: _scanned(ns.scan(_add)),
    "immediate scan": lambda: [lambda x=x: ns.scan(_add, x, np.zeros_like(x[0]))[0] for x in KINDS if np.ndim(x)],
    "map": lambda: [lambda x=x: ns.map(lambda row: row * 2, x)[0] for x in KINDS if np.ndim(x)],
    "reduce": lambda: [lambda x=x: ns.reduce(_add, x, np.zeros_like(x[0]))[0] for x in KINDS if np.ndim(x)],
    "jit": lambda: _of_one(ns.jit(lambda x: {"twice": x * 2, "rest": (x, [x + 1])}), KINDS),
    "grad": lambda: _of_one(ns.grad(_cubes)),
    "value_and_grad": lambda: _of_one(ns.value_and_grad(_cubes)),
    "vjp": lambda: [lambda x=x: ns.vjp(_cubes, x)[1](np.asarray(1, np.asarray(x).dtype)) for x in REAL],
    "jvp": lambda: [lambda x=x: ns.jvp(_cubes, (x,), (x,)) for x in REAL],
    "jacobian": lambda: _of_one(ns.jacobian(lambda x: x * x)),
    "hessian": lambda: _of_one(ns.hessian(_cubes)),
    "vmap": lambda: _of_one(ns.vmap(lambda x: x * 2), [x for x in KINDS if np.ndim(x)]),
    "vmap of grad": lambda: _of_one(ns.vmap(ns.grad(_cubes)), [x for x in REAL if np.ndim(x)]),
    "function": _symbolic,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_call_gives_what_it_gives_alone(name: str):
    alone = [call() for call in PUBLIC[name]()]
    for attempt in range(2):
        calls = PUBLIC[name]()  # nothing of it has been called

        def work(k: int, calls: list[Callable[[], Any]] = calls, attempt: int = attempt) -> list[int]:
            order = list(range(len(calls))) * 2
            random.Random(f"{attempt} {k}").shuffle(order)
            return [number for number in order if not same(calls[number](), alone[number])]

        assert at_once(work) == [[]] * THREADS
        assert [number for number, call in enumerate(calls) if not same(call(), alone[number])] == []


def test_tables_may_be_emptied_by_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiling, "MOST_KEYS", 2)
    test_a_call_gives_what_it_gives_alone("scan")
    test_a_call_gives_what_it_gives_alone("function")


# graphs ---------------------------------------------------------------------------------------------------------------


def test_equal_nodes_are_one_node():
    x = nt.dvector("x")
    for attempt in range(100):

        def work(k: int, attempt: int = attempt) -> Any:
            y = x
            for number in range(10):
                y = np.tanh(y * (attempt + number)) + number
            return y

        assert len({variable.node for variable in at_once(work)}) == 1


def test_scans_in_graphs_are_traced_side_by_side():
    x, s = nt.dvector("x"), nt.dscalar("s")

    def gradient(x: Any = x, s: Any = s) -> Any:
        path, _ = ns.scan(lambda row, total: np.sin(total) * row + x.sum(), x, s)
        return ns.function([x, s], ns.grad(path[-1], [x, s]))

    alone = gradient()(ROWS, 0.5)
    for got in at_once(lambda k: gradient()(ROWS, 0.5)):  # x.sum() stands outside the loop where it is there already: other roundings
        np.testing.assert_allclose(got[0], alone[0], rtol=1e-14)
        np.testing.assert_allclose(got[1], alone[1], rtol=1e-14)
    own = at_once(lambda k: gradient(nt.dvector("x"), nt.dscalar("s"))(ROWS, 0.5))
    assert all(same(got, alone) for got in own)


# shared variables -------------------------------------------------------------------------------------------------------


def test_updates_are_read_and_replaced_at_once():
    total, count = ns.shared(0.0, "total"), ns.shared(0, "count")
    x = nt.dscalar("x")
    add = ns.function([x], [total, count], updates={total: total + x, count: count + 1})
    seen = [pair for pairs in at_once(lambda k: [add(2.0) for _ in range(50)]) for pair in pairs]
    assert (total.get_value(), count.get_value()) == (2.0 * 50 * THREADS, 50 * THREADS)
    assert sorted(float(before) for before, _ in seen) == [2.0 * k for k in range(50 * THREADS)]
    assert all(before == 2.0 * number for before, number in seen)


def test_a_scan_carries_its_updates_in_every_thread():
    steps = ns.shared(0, "steps")
    f = ns.scan(lambda x: (x, {steps: steps + 1}))
    at_once(lambda k: [f(ROWS) for _ in range(20)])
    assert steps.get_value() == len(ROWS) * 20 * THREADS


def test_a_read_of_several_variables_is_of_one_moment():
    a, b = ns.shared(np.zeros(100), "a"), ns.shared(np.zeros(100), "b")
    step = ns.function([], [], updates=[(a, a + 1), (b, b - 1)])
    look = ns.function([], abs(a + b).max())
    seen = at_once(lambda k: [look() if k % 2 else step() or 0.0 for _ in range(50)])
    assert {float(value) for values in seen for value in values} == {0.0}


def test_values_are_set_and_read_whole():
    w = ns.shared(np.zeros(1000), "w")
    total = ns.function([], [w.min(), w.max(), w.shape[0]])

    def work(k: int) -> list[Any]:
        found = []
        for _ in range(50):
            w.set_value(np.full(100 * (k + 1), float(k)))
            low, high, length = total()
            value = w.get_value()
            found += [low == high and length in (1000, 100 * (high + 1)), np.ptp(value) == 0]
        return found

    assert {bool(fine) for found in at_once(work) for fine in found} == {True}


def test_a_variable_is_known_while_a_run_holds_its_value():
    w = ns.shared(1.0, "w")
    w.container.lock.acquire()
    try:
        graph = threading.Thread(target=lambda: ns.function([], w * 2).lower(), daemon=True)
        graph.start()
        graph.join(60)
        assert not graph.is_alive()
        assert w.get_value() == 1.0
    finally:
        w.container.lock.release()


class _Interrupted:
    """A lock that somebody else holds, and that Ctrl-C ends the wait for."""

    def acquire(self) -> bool:
        raise KeyboardInterrupt


def test_an_interrupted_wait_leaves_the_other_variables_free():
    a, b = ns.shared(1.0, "a"), ns.shared(2.0, "b")
    first, second = sorted((a.container, b.container), key=id)
    swap = ns.function([], [], updates={a: b, b: a})
    swap()
    lock, second.lock = second.lock, _Interrupted()
    with pytest.raises(KeyboardInterrupt):
        swap()
    second.lock = lock
    free: list[bool] = []
    asking = threading.Thread(target=lambda: free.append(first.lock.acquire(timeout=1)))
    asking.start()
    asking.join()
    assert (free, a.get_value(), b.get_value()) == ([True], 2.0, 1.0)


# draws ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", ["jit", "scan", "function"])
def test_no_two_calls_share_a_draw(made: str):
    def drawing() -> Callable[[], Any]:
        stream = nt.random.RandomStream(7)
        if made == "jit":
            return ns.jit(lambda: stream.uniform())
        if made == "scan":
            f = ns.scan(lambda: stream.uniform())
            return lambda: f(n_steps=3)
        u = stream.uniform()
        return ns.function([], u, updates=stream.updates())

    one, many = drawing(), drawing()
    alone = np.sort(np.ravel([one() for _ in range(20 * THREADS)]))
    np.testing.assert_array_equal(np.sort(np.ravel(at_once(lambda k: [many() for _ in range(20)]))), alone)


def test_places_that_draw_are_streams_of_their_own():
    for _ in range(5):
        stream = nt.random.RandomStream(7)
        at_once(lambda k, stream=stream: [(stream.uniform(), stream.updates()) for _ in range(10)])
        assert [int(state.get_value()[1]) for state in stream.states] == list(range(1 + 10 * THREADS))
        assert set(stream.updates()) == set(stream.states[1:])


# profiles ---------------------------------------------------------------------------------------------------------------


def test_a_profile_counts_the_calls_of_all_threads():
    f = ns.scan(lambda x, s: s + x, profile=True)
    at_once(lambda k: [f(ROWS, 0.0) for _ in range(20)])
    assert (f.profile.calls, f.profile.steps) == (20 * THREADS, len(ROWS) * 20 * THREADS)


# Numba ------------------------------------------------------------------------------------------------------------------

FIRST = """
import sys, threading
sys.setswitchinterval(1e-6)
import numpy as np, numbascan as ns
start, failed, f = threading.Barrier(16), [], ns.scan(lambda x, s: s + x)

def work(k):
    start.wait()
    try:
        if k % 4 == 0:
            import numba
            assert numba.njit(lambda x: x + k)(1) == 1 + k
        elif k % 4 == 1:
            import numba
            assert numba.vectorize(["float64(float64)"])(lambda x: x * k)(2.0) == 2.0 * k
        elif k % 4 == 2:
            assert f(np.arange(4.0), 0.0).tolist() == [0, 1, 3, 6]
        else:
            assert ns.jit(lambda x: x * k)(np.ones(3)).tolist() == [k] * 3
        try:
            ns.scan(lambda x, y: x @ y)(np.ones((2, 3)), None, np.ones(2))
        except ValueError:
            pass
        else:
            raise AssertionError("shapes that do not fit")
    except BaseException as error:
        failed.append((k, error))

threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
assert "numba" in sys.modules and sys.modules["numba"].njit(lambda x: x * 2)(4) == 8
"""


def test_a_part_of_numba_is_not_loaded_while_another_thread_imports_it():
    loading = threading.Thread(target=object_code._extension, args=("numba._helperlib",))
    with importlib._bootstrap._ModuleLockManager("numba._helperlib"):
        loading.start()
        loading.join(0.2)
        assert loading.is_alive()
    loading.join(60)
    assert not loading.is_alive()


def test_numba_is_first_imported_by_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(ns.__file__).parents[1]))
    for _ in range(2):  # compiled by two processes at once, then loaded without Numba
        processes = [subprocess.Popen([sys.executable, "-c", FIRST], stderr=subprocess.PIPE, text=True) for _ in range(2)]
        assert [process.communicate(timeout=600)[1] for process in processes] == ["", ""]


PLACE = types.SimpleNamespace(rate=0.25)


def test_a_number_that_another_thread_changes_while_a_function_is_traced_is_seen_at_the_next_call() -> None:
    asked, changed = threading.Event(), threading.Event()

    def read_late(x: Any) -> Any:
        y = x * PLACE.rate
        asked.set()
        changed.wait()
        return y

    def change() -> None:
        asked.wait()
        PLACE.rate = 0.75
        changed.set()

    thread = threading.Thread(target=change)
    thread.start()
    f = ns.jit(read_late, mode="python")
    assert f(8.0) == 2.0
    thread.join()
    assert f(8.0) == 6.0
    assert f(8.0) == 6.0


@pytest.mark.parametrize(
    "call",
    [
        lambda f: ns.jit(f)(np.ones(3)),
        lambda f: ns.scan(f)(sequences=np.ones(3)),
        lambda f: ns.batch(f, (np.ones(3),), progress=False),
        lambda f: ns.jit(lambda x: ns.scan(f, sequences=x, return_updates=False))(np.ones(3)),
    ],
    ids=["jit", "scan", "batch", "nested"],
)
@pytest.mark.parametrize("draw", [random.random, lambda: np.random.random()])  # noqa: NPY002 - the global generator is what is meant
def test_a_function_is_traced_again_where_another_thread_has_drawn_meanwhile(call: Callable[[Any], Any], draw: Callable[[], float]) -> None:
    asked, drawn = threading.Event(), threading.Event()
    drawn.set()
    stream = nt.random.RandomStream(3)

    def noisy(x: Any) -> Any:
        asked.set()
        drawn.wait(60)
        return x + stream.normal()

    def draw_late() -> None:
        asked.wait(60)
        draw()
        drawn.set()

    expected = call(noisy)
    stream.seed(3)
    for event in (asked, drawn):
        event.clear()
    thread = threading.Thread(target=draw_late)
    thread.start()
    got = call(lambda x: noisy(x))
    thread.join()
    assert same(got, expected)


def test_a_function_that_draws_is_refused_beside_threads_too() -> None:
    calls, ends = [], threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        with pytest.raises(TypeError, match="draws random numbers while it is traced"):
            ns.jit(lambda x: calls.append(x) or x + random.random())(1.0)
    finally:
        ends.set()
        thread.join()
    assert 1 < len(calls) < 10
