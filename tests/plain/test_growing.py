"""Lists to which a loop of known length appends: each function beside itself under Python, as a scan where that is possible."""

# ruff: noqa: RUF005 - programs as people write them

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan import lax
from numbascan.front.tree import flattened

Y = 1.25


def assert_as_python(f: Callable[..., Any], *args: Any, mode: str | None = "python") -> Any:
    """A function gives what it gives under Python: the same lists and tuples, in NumPy's dtypes."""
    expected, run = f(*args), ns.jit(f, mode=mode)
    result = run(*args)
    (ours, structure), (theirs, known) = flattened(result), flattened(expected)
    assert structure == known
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return run


# what becomes a scan ----------------------------------------------------------------------------------------------------


def last(y: Any) -> Any:
    ys = [y]
    for _ in range(50):
        ys.append(ys[-1] * 0.9 + 0.1)
    return np.array(ys), ys


def by_number(y: Any) -> Any:
    ys = [y, y + 1]
    for i in range(1, 50):
        ys.append(ys[i] * 0.9 + ys[i - 1] * 0.05)
    return np.array(ys), ys[3], ys[-1], len(ys), ys[0]


def whole_numbers(y: Any) -> Any:
    f = [0, 1]
    for i in range(2, 60):
        f.append(f[i - 1] + f[i - 2])
    return np.array(f) * y, f


def several(y: Any) -> Any:
    a, b, c = [], [], [0.0]
    for i in range(40):
        a.append(y * i)
        b.append(i)
        a.append(-y * i)
        c.append(c[-1] + 0.5)
    return np.array(a), b, c, a[3], a[-2:], sum(a), max(b), c[1:4]


def pairs(y: Any) -> Any:
    trace = []
    for i in range(40):
        y = y * 0.9
        trace.append((i * 0.1, y))
    return np.array(trace), [a for a, _ in trace], trace[5], trace


def new_arrays(y: Any) -> Any:
    x = np.array([y, y + 1, 2.0])
    rows = [x]
    for _ in range(40):
        x = x * 0.9 + np.roll(x, 1) * 0.05
        rows.append(x)
    return np.array(rows), x, rows[-1], rows[5], np.mean(rows, axis=0)


def copies(y: Any) -> Any:
    x = np.zeros(30) + y
    rows = [x.copy()]
    for _ in range(40):
        x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
        x[0] = y
        rows.append(x.copy())
    return np.array(rows), x


def written_before_the_end(y: Any) -> Any:
    x = np.array([y, y + 1, 2.0])
    rows = []
    for i in range(40):
        x = x + 1
        rows.append(x)
        x[0] = 7 * i
        rows[-1][1] += 2
    return np.array(rows), x[2]


def elements_written(y: Any) -> Any:
    rows = []
    for i in range(40):
        rows.append(np.array([y, 2.0, y]) * i)
    rows[5][1] = -1
    for row in rows:
        row[2] += 1
    rows[-1] += 3
    return np.array(rows)


def lengths(y: Any) -> Any:
    ys = [y]
    for _ in range(40):
        if ys:
            ys.append(len(ys) * y)
    return np.array(ys)


def twice(y: Any) -> Any:
    ys = []
    for i in range(40):
        ys.append(y * i)
    ys.append(7.0 * y)
    for _ in range(30):
        ys.append(ys[-1] * 0.5)
    ys.extend([y, y])
    ys[3] = 8.0
    return np.array(ys), ys[39], ys[40], ys[41:45], len(ys)


def tables(y: Any) -> Any:
    rows, flat, arrays = [], [], []
    for i in range(20):
        row = []
        for j in range(30):
            row.append(y * i + j)
            flat.append(y * j - i)
        rows.append(row)
        arrays.append(np.array(row))
    return np.array(rows), rows, np.array(flat), np.array(arrays), rows[3][4], len(rows[2])


def in_dict(y: Any) -> Any:
    found = {"x": [], "n": 3, "v": [0.0]}
    for _ in range(30):
        y = y * 0.9
        found["x"].append(y)
        found["v"].append(found["v"][-1] + y)
        found["n"] = found["n"] + 1
    return found


@dataclass
class Point:
    v: Any


class Run:
    def __init__(self, y: Any) -> None:
        self.y, self.seen = y, []

    def step(self) -> None:
        self.y = self.y * 0.99
        self.seen.append(self.y)


def in_object(y: Any) -> Any:
    run = Run(y)
    for _ in range(50):
        run.step()
    return np.array(run.seen), run.y


def read_afterwards(y: Any) -> Any:
    ys = []
    for _ in range(60):
        y = y * 0.9
        ys.append(y)
    total = 0.0
    for k, value in enumerate(ys):
        total += k * value
    for a, b in zip(ys, ys[1:]):  # noqa: B905, RUF007
        total += a * b
    i = 0
    while i < len(ys) and ys[i] > 0.5:
        i += 1
    k = int(y * 100)
    ys.reverse()
    return total, i, ys[k], ys[-k - 1], ys[0], min(ys), sorted(ys)[2], [v * 2 for v in ys], np.std(ys), ys + [1.0], y in ys


def named_rows(y: Any) -> Any:
    rows, points = [], [Point(y)]
    for i in range(40):
        y = y * 0.9
        row = [y, i]
        rows.append(row)
        if y > 0.5:
            y = y * 0.99
        row[1] = row[1] + 1
        point = Point(points[-1].v * 0.9)
        points.append(point)
        rows[-1][0] = rows[-1][0] + 1
    return rows, row, rows[3][1], [one.v for one in points], point.v


def last_arrays(y: Any) -> Any:
    rows, a, b = [np.zeros(2) + y], np.zeros(2), np.ones(2)
    for _ in range(40):
        last = rows[-1]
        rows.append(last * 0.9 + 0.1)
        a, b = b, a * 0.5 + y
        rows.append(b)
    return np.array(rows), last, a, b


def its_class(y: Any) -> Any:
    xs, asked = [], []
    for _ in range(50):
        if type(xs) is list and isinstance(xs, list) and xs.__class__ is list:
            y = y * 0.9
        xs.append(y)
    asked += [type(xs) is list, isinstance(xs, (list, tuple)), xs.__class__ is list, np.zeros(2).__class__ is np.ndarray]
    return xs, [1.0 if one else 2.0 for one in asked]


def written_while_run_over(y: Any) -> Any:
    xs, zs, ws, t = [y], [], [], 0.0
    for i in range(40):
        xs.append(y * i)
        zs.append(y - i)
        ws.append(y + i)
    for v in xs:
        t = t + v
        xs[-1] = 7.0
        xs[5] = xs[5] + v
    for k, v in enumerate(zs):
        zs[k] = np.sqrt(v * v + 1)
    for v in reversed(ws):
        ws[0] = v
        t = t + v
    both = zip(ws, range(60))  # noqa: B905
    ws[3] = 100.0
    for a, b in both:
        t = t + a * b
    for k, v in enumerate(xs):
        xs[k] = v * 2
    return t, xs, np.array(zs), ws


AS_SCANS = [
    last, by_number, whole_numbers, several, pairs, new_arrays, copies, written_before_the_end, elements_written, lengths, twice, tables,
    in_dict, in_object, read_afterwards, named_rows, last_arrays, its_class, written_while_run_over,
]  # fmt: skip


@pytest.fixture
def scans_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No list grows pass by pass, and no function is traced again with Python's lists."""
    from numbascan.front import tracing
    from numbascan.front.plain import loops

    monkeypatch.setattr(loops, "MOST_WRITTEN_OUT", 1)
    monkeypatch.setattr(tracing, "_WITHOUT_GROWTH", Refusing())


class Refusing(set):
    def add(self, code: Any) -> None:
        raise AssertionError(f"{code} is traced again")


@pytest.mark.usefixtures("scans_alone")
@pytest.mark.parametrize("f", AS_SCANS)
def test_a_list_that_grows_means_what_it_means_under_python(f: Callable[..., Any]) -> None:
    assert_as_python(f, Y)


@pytest.mark.parametrize("f", [by_number, copies, twice])
def test_compiled_lists_that_grow(f: Callable[..., Any]) -> None:
    run = assert_as_python(f, Y, mode=None)
    assert len(run.source().splitlines()) < 120


@pytest.mark.parametrize("f", [last])
def test_every_transform_returns_a_list_that_has_grown(f: Callable[..., Any]) -> None:
    def own(y: Any) -> Any:
        return f(y)[1]

    ys = np.array([0.5, 1.0, 2.0])
    expected = [flattened(own(y))[0] for y in ys]
    for found in (
        ns.vmap(own)(ys),
        ns.batch(own, (ys,), progress=False),
        ns.scan(own, sequences=[ys], return_updates=False),
        lax.scan(lambda carry, y: (carry, own(y)), 0.0, ys)[1],
    ):
        np.testing.assert_allclose(np.array(flattened(found)[0]).T, expected, rtol=1e-12)
    value, slopes = ns.jvp(own, (1.0,), (1.0,))
    assert len(flattened(value)[0]) == len(flattened(slopes)[0]) == len(expected[0])


def test_a_long_loop() -> None:
    def euler(y: Any, k: Any) -> Any:
        ys, vs, ts = [y], [0.0], []
        for i in range(100_000):
            vs.append(vs[i] - k * ys[i] * 0.001)
            ys.append(ys[-1] + vs[-1] * 0.001)
            ts.append(i * 0.001)
        return np.array(ts), np.array(ys), np.array(vs)

    assert_as_python(euler, 1.0, 4.0, mode=None)
    with pytest.raises(TypeError, match=r"np\.zeros"):
        ns.jit(appending_any)(1.0)


def appending_any(y: Any) -> Any:
    ys = [y]
    for i in range(100_000):
        ys.append(ys[i // 2] + y)
    return ys


def test_derivatives_and_lanes() -> None:
    def cost(k: Any) -> Any:
        ys, rows, x = [1.0], [], np.array([1.0, 2.0]) * k
        for i in range(40):
            ys.append(ys[-1] * (1 - 0.01 * k) + 0.001 * i)
            x = x * 0.9 + ys[-1]
            rows.append(x)
        return np.sum(np.array(ys) ** 2) + sum(rows[3]) + np.sum(np.array(rows)[::2]) + ys[7] * ys[-1]

    step = 1e-6
    slope = (cost(2.0 + step) - cost(2.0 - step)) / (2 * step)
    np.testing.assert_allclose(ns.grad(cost)(2.0), slope, rtol=1e-6)
    np.testing.assert_allclose(ns.jvp(cost, (2.0,), (1.0,))[1], slope, rtol=1e-6)
    ks = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(ns.vmap(cost)(ks), [cost(k) for k in ks], rtol=1e-12)
    steps = ns.scan(lambda k, total: total + cost(k), sequences=[ks], outputs_info=[0.0], return_updates=False)
    np.testing.assert_allclose(steps, np.cumsum([cost(k) for k in ks]), rtol=1e-12)
    sweep = ns.batch(cost, (ks,), progress=False)
    np.testing.assert_allclose(sweep, [cost(k) for k in ks], rtol=1e-12)


def test_draws_are_those_of_a_step() -> None:
    def walk(n: int, seed: Any) -> Any:
        rng = np.random.default_rng(3)
        xs = [0.0]
        for _ in range(n):
            xs.append(xs[-1] + rng.normal())
        return np.array(xs)

    run = ns.jit(walk, static_argnums=0)
    found = run(50, 1)
    assert found.shape == (51,)
    assert len(np.unique(found)) == 51
    np.testing.assert_array_equal(found, run(50, 1))


# what is Python's own list, as before ---------------------------------------------------------------------------------------


def one_array(y: Any) -> Any:
    x, rows = np.array([y, y + 1, 2.0]), []
    for _ in range(20):
        x[0] += 1
        rows.append(x)
    return np.array(rows)


def an_array_that_is_written_later(y: Any) -> Any:
    x, rows = np.array([y, y + 1, 2.0]), []
    for _ in range(20):
        x[1] *= 2
        x = x * 0.25
        rows.append(x)
    return np.array(rows)


def written_behind_the_loop(y: Any) -> Any:
    x = np.array([y, y + 1, 2.0])
    rows = [x]
    for _ in range(20):
        x = x * 0.25
        rows.append(x)
    x[0] = 100.0
    rows[0][1] = 50.0
    return np.array(rows), x


def in_two_lists(y: Any) -> Any:
    a, b = [], []
    for i in range(20):
        v = np.array([y, y * i])
        a.append(v)
        b.append(v)
    b[3][0] = 9
    return np.array(a), np.array(b)


def views(y: Any) -> Any:
    rows, table = [], np.zeros((20, 2)) + y
    for i in range(20):
        rows.append(table[i])
    table[3] = 7
    return np.array(rows)


def lists_written(y: Any) -> Any:
    rows = []
    for i in range(20):
        y = y * 0.9
        rows.append([y, i])
    rows[3][0] = 5.0
    return np.array(rows), rows


def a_row_written_behind(y: Any) -> Any:
    rows = []
    for i in range(20):
        row = []
        for j in range(18):
            row.append(y * i + j)
        rows.append(row)
        row[2] = 5.0
    rows[3][1] = 4.0
    return np.array(rows)


def two_names(y: Any) -> Any:
    a = []
    b = a
    for _ in range(20):
        y = y * 0.9
        a.append(y)
        if len(b) > 3:
            y = y + b[1]
    return np.array(b), len(a)


def held_elsewhere(y: Any) -> Any:
    a = []
    others = (a, 1.0)
    for _ in range(20):
        y = y * 0.9
        a.append(y)
        y = y + others[0][0]
    return np.array(others[0])


def by_function(y: Any) -> Any:
    seen = []

    def record(value: Any) -> None:
        seen.append(value)

    for _ in range(30):
        y = y * 0.9
        record(y)
    return seen


def stacked(y: Any) -> Any:
    rows = []
    for i in range(20):
        rows.append(np.array([y, i * 1.0]))
    return np.vstack(rows), np.stack(rows), np.concatenate(rows)


def any_element(y: Any) -> Any:
    ys = [y]
    for i in range(20):
        ys.append(ys[i // 2] + ys[0] + np.mean(ys[-3:]))
    return ys


def known_choice(y: Any) -> Any:
    ys = []
    for i in range(30):
        if i % 2 == 0:
            ys.append(y * i)
    return ys


def a_queue(y: Any) -> Any:
    q = [y, y, y]
    for _ in range(30):
        q.append(q[0] + q[1])
        q.pop(0)
    return q


def ints_and_floats(y: Any) -> Any:
    xs = [0]
    for i in range(20):
        xs.append(xs[-1] + y * i)
    return xs, np.array(xs)


def changed_by_a_list(y: Any) -> Any:
    ys = []
    for _ in range(20):
        y = y * 0.9
        ys.append(y)
    ys.insert(0, 1.0)
    ys.pop()
    return ys, ys == ys, ys * 2


def bound_anew(y: Any) -> Any:
    ys = []
    for i in range(20):
        y = y * 0.9
        ys += [y]
        if i == 7:
            ys = ys[2:]
    return ys


def swapped(y: Any) -> Any:
    a, b = [], [0.0]
    for _ in range(21):
        y = y * 0.9
        a.append(y)
        a, b = b, a
    return a, b


def one_list_as_every_row(y: Any) -> Any:
    row, rows = [y, 2.0], []
    for _ in range(30):
        rows.append(row)
        row[0] = row[0] + 1
    return rows


def one_object_as_every_row(y: Any) -> Any:
    p, d, rows = Point(y), {"a": y}, []
    for _ in range(30):
        p.v, d["a"] = p.v * 0.9, d["a"] * 0.8
        rows.append((p, d))
    return [(p.v, d["a"]) for p, d in rows]


def a_list_in_a_tuple(y: Any) -> Any:
    row, rows = (y, [y]), []
    for _ in range(30):
        row[1][0] = row[1][0] * 0.5
        rows.append(row)
    return rows[0][1][0]


def a_row_written_in_the_next_pass(y: Any) -> Any:
    row, rows = [y], []
    for _ in range(30):
        row[0] = row[0] * 0.5
        row = [row[0] + 1]
        rows.append(row)
    return rows


def the_last_row_written(y: Any) -> Any:
    rows = [[y]]
    for _ in range(30):
        rows[-1][0] = rows[-1][0] * 2
        rows.append([rows[-1][0] + 1])
    return rows


def the_last_row_written_by_name(y: Any) -> Any:
    rows = [[y]]
    for _ in range(30):
        prev = rows[-1]
        rows.append([prev[0] * 0.5])
        prev[0] = prev[0] + 1
    prev[0] = 77.0
    return rows


def a_row_written_behind_by_name(y: Any) -> Any:
    rows, others = [], [[y]]
    for _ in range(30):
        y = y * 0.9
        row, last = [y], others[-1]
        rows.append(row)
        others.append([y + last[0]])
    row[0], last[0] = 5.0, 7.0
    return rows, others


def a_row_in_an_object(y: Any) -> Any:
    rows, point, table = [], Point(None), {"row": [y]}
    for _ in range(30):
        point.v = [y]
        rows.append(point.v)
        table["row"] = [table["row"][0] * 0.5]
        rows.append(table["row"])
    point.v[0], table["row"][0] = 5.0, 6.0
    return rows


def a_row_in_an_object_of_the_pass(y: Any) -> Any:
    rows = []
    for _ in range(30):
        y = y * 0.9
        row = [1.0, 2.0]
        point, write = Box(row), lambda: row.append(3.0)  # noqa: B023
        rows.append(row)
    point.row[0] = 5.0
    write()
    return rows, y


class Box:
    def __init__(self, row: Any) -> None:
        self.row = row


def a_row_twice(y: Any) -> Any:
    rows = []
    for i in range(30):
        row = [y * i]
        rows.append([row, row])
    rows[3][0][0] = 100.0
    return rows


def the_last_array_written_behind(y: Any) -> Any:
    rows, table = [np.zeros(2)], {"last": np.ones(2)}
    for _ in range(30):
        last = rows[-1]
        rows.append(last + y)
        table["last"] = rows[-1]
        rows.append(last + y)
    last[0], table["last"][1] = 55.0, 44.0
    return np.array(rows)


def an_array_of_the_pass_before(y: Any) -> Any:
    rows, a, b = [], np.zeros(2), np.ones(2)
    for _ in range(40):
        a, b = b, a * 0.5 + y
        rows.append(b)
    a[0] = 9.0
    rows[-1][1] = 5.0
    return np.array(rows), a, b


def the_last_arrays_in_a_list(y: Any) -> Any:
    rows, last = [], [np.zeros(2), np.zeros(2)]
    for i in range(30):
        last = [np.array([y, i * 1.0]), last[0]]
        rows.append(last[0])
    rows[-2][0] = 55.0
    return np.array(rows), last


def chosen_arrays(y: Any) -> Any:
    w, us = np.ones(2), []
    for _ in range(40):
        if y > 1:
            w = w + y
        us.append(w)
        y = y * 0.9
    us[0] = us[0]
    return np.array(us)


def a_method_of_the_list(y: Any) -> Any:
    total = 0.0
    for _ in range(3):
        xs = []
        for i in range(50):
            xs.append(y * i)
            add = xs.append
        add(100.0)
        total += xs[-1]
    return total


def a_second_name(y: Any) -> Any:
    total, sizes = 0.0, []
    for _ in range(3):
        xs = []
        for i in range(50):
            xs.append(y * i)
            held = xs
            pair = (xs, 1.0)
        for j in range(20):
            held.append(y + j)
        pair[0].append(5.0)
        total += sum(xs) + xs[-1] + len(held)
        sizes.append(len(pair[0]))
    return total, sizes


class Log(list):
    def append(self, value: Any) -> None:
        super().append(2 * value)


def a_class_of_lists(y: Any) -> Any:
    xs = Log()
    for i in range(50):
        xs.append(y * i)
    return sum(xs), 1.0 if isinstance(xs, Log) else 2.0


def copied(y: Any) -> Any:
    xs, rows = [], []
    for i in range(50):
        xs.append(y * i)
        rows.append(np.array([y, i]))
    one, other, arrays = copy.copy(xs), copy.deepcopy(xs), copy.deepcopy(rows)
    xs[0] = 9.0
    rows[3][0] = 7.0
    return one, other, xs, np.array(arrays)


def copied_in_a_pass(y: Any) -> Any:
    xs = [y]
    for i in range(20):
        xs.append(y * i)
        snapshot = copy.copy(xs)
        xs.append(snapshot[-1])
        if len(snapshot) > 3:
            snapshot.append(y)
    return xs, snapshot


def a_grown_row_twice(y: Any) -> Any:
    out, others, first = [], [], []
    for i in range(20):
        first.append(y * i)
    for _ in range(20):
        row = []
        for i in range(20):
            row.append(y * i)
        out.append(row)
        others.append(row)
        out.append(row)
        for _ in range(20):
            row.append(y)
        out.append(first)
    out[0][0] = 100.0
    return out, others


def asked_which_object(y: Any) -> Any:
    rows, arrays, lists, xs = [], [], [], []
    for i in range(30):
        row = [y * i]
        rows.append(row)
        arrays.append(np.array([y, i]))
        inner = []
        for j in range(20):
            inner.append(y * j)
        lists.append(inner)
        xs.append(y)
        held = xs
    asked = rows[3] is rows[3], rows[-1] is row, arrays[3] is arrays[3], lists[2] is lists[2], held is xs, rows is xs
    return [1.0 if one else 2.0 for one in asked]


def matched(y: Any) -> Any:
    xs = []
    for i in range(50):
        xs.append(y * i)
    match xs:
        case [a, *_, b]:
            return a + b
        case _:
            return -1.0


def longer_while_run_over(y: Any) -> Any:
    xs, zs, n = [], [], 0
    for i in range(40):
        xs.append(y * i)
        zs.append(y)
    for v in xs:
        n = n + 1
        if n == 40:
            xs.append(v)
    both, doubled, each = zip(range(100), zs), (v * 2 for v in zs), iter(zs)  # noqa: B905
    next(each)
    zs.append(5.0)
    return n, len([a for a, b in both]), sum(doubled), sum(each)


def other_numbers(y: Any) -> Any:
    xs, table, zs = [], [], [0]
    for i in range(20):
        row = []
        for j in range(20):
            row.append(i * j)
        table.append(row)
        xs.append(i)
        zs.append(y * i)
    t = 0.0
    for v in xs:
        xs[-1] = 2.5
        t = t + v
    table[0][0] = 2.5
    while y < 9:
        zs[0] = y
        y = y * 1.5
    return t, table[0][0], table[1][2], zs


def another_thing_stands_there(y: Any) -> Any:
    a, b, c, run, found, out = [], [], [], Run(y), {"x": []}, 0.0
    for i in range(30):
        a, b, c = [y * i, y], [y, i], [y]
        out = out + sum(a) + b[0] + c[0]
        a = None
        b = sum(b)
        del c
        found = {"s": y + i}
        out = out + found["s"] + b
        run = None
    return out, 1.0 if a is run else 2.0


def the_last_element_written(y: Any) -> Any:
    xs, d = [y], {"a": y}
    for i in range(20):
        xs.append(y * i)
        xs[-1] = xs[-1] * 0.5
        xs[0] = xs[0] + 1
        d["b"] = d.pop("a") * 2
        d["b"] = d["b"] + 1
        d["a"] = d.pop("b")
    return xs, d


def a_row_read_behind(y: Any) -> Any:
    out = []
    for i in range(20):
        row = []
        for j in range(20):
            row.append(y * j + i)
        out.append(sum(row))
    return out, row[-1], row


OWN_LISTS = [
    one_array, an_array_that_is_written_later, written_behind_the_loop, in_two_lists, views, lists_written, a_row_written_behind, two_names,
    held_elsewhere, by_function, stacked, any_element, known_choice, a_queue, ints_and_floats, changed_by_a_list, bound_anew, swapped,
    one_list_as_every_row, one_object_as_every_row, a_list_in_a_tuple, a_row_written_in_the_next_pass, the_last_row_written,
    the_last_row_written_by_name, a_row_written_behind_by_name, a_row_in_an_object, a_row_in_an_object_of_the_pass, a_row_twice,
    the_last_array_written_behind, an_array_of_the_pass_before, the_last_arrays_in_a_list, chosen_arrays,
    a_method_of_the_list, a_second_name, a_class_of_lists, copied, copied_in_a_pass, a_grown_row_twice,
    asked_which_object, matched, longer_while_run_over, other_numbers,
    another_thing_stands_there, the_last_element_written, a_row_read_behind,
]  # fmt: skip


@pytest.mark.parametrize("f", OWN_LISTS)
def test_what_no_scan_can_do_python_does(f: Callable[..., Any]) -> None:
    assert_as_python(f, Y)


def in_a_choice(y: Any) -> Any:
    ys = []
    for _ in range(30):
        if y > 0:
            ys.append(y)
    return y


def behind_a_choice(y: Any) -> Any:
    ys = []
    for _ in range(30):
        ys.append(y)
    if y > 0:
        ys.append(3.0)
    return ys[0]


def the_best_array(y: Any) -> Any:
    rows, best = [], np.zeros(2)
    for i in range(40):
        v = np.array([y * i % 7, 1.0 * i])
        rows.append(v)
        if v[0] > best[0]:
            best = v
    best[1] = -5.0
    return np.array(rows)


@pytest.mark.parametrize(
    ("f", "what"), [(in_a_choice, r"np\.zeros"), (behind_a_choice, r"np\.zeros"), (the_best_array, "best is one of two arrays")]
)
def test_what_only_the_run_decides_is_refused(f: Callable[..., Any], what: str) -> None:
    with pytest.raises((TypeError, ValueError), match=what):
        ns.jit(f)(Y)


def checked(y: Any, flag: bool) -> Any:
    ys = [y]
    for _ in range(10_000):
        ys.append(ys[-1] * 0.9)
    if flag:
        raise ValueError("no such flag")
    return np.array(ys)


def test_an_error_of_the_program_is_told_and_forbids_nothing() -> None:
    run = ns.jit(checked, static_argnums=1, mode="python")
    with pytest.raises(ValueError, match="no such flag"):
        run(1.0, True)
    assert run(1.0, False).shape == (10_001,)
    assert ns.jit(checked, static_argnums=1, mode="python")(2.0, False).shape == (10_001,)
