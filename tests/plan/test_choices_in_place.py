"""Arrays that branches change, and read between, live in one memory: right, and in the time of what is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

rng = np.random.default_rng(5)


def components(image: Any) -> Any:
    rows, columns = image.shape
    labels = np.zeros((rows, columns), np.int64)
    stack = np.empty((rows * columns, 2), np.int64)
    count = 0
    for i in range(rows):
        for j in range(columns):
            if image[i, j] and labels[i, j] == 0:
                count += 1
                labels[i, j] = count
                stack[0, 0], stack[0, 1] = i, j
                top = 1
                while top > 0:
                    top -= 1
                    y, x = stack[top, 0], stack[top, 1]
                    for k in range(4):
                        v, u = y + (k == 0) - (k == 1), x + (k == 2) - (k == 3)
                        if 0 <= v < rows and 0 <= u < columns and image[v, u] and labels[v, u] == 0:
                            labels[v, u] = count
                            stack[top, 0], stack[top, 1] = v, u
                            top += 1
    return labels, count


def quick_sort(a: Any) -> Any:
    a = a.copy()
    stack = np.zeros((2 * len(a) + 2, 2), np.int64)
    stack[0] = (0, len(a) - 1)
    top = 1
    while top:
        top -= 1
        low, high = stack[top]
        if low >= high:
            continue
        pivot, p = a[high], low
        for i in range(low, high):
            if a[i] < pivot:
                a[i], a[p] = a[p], a[i]
                p += 1
        a[high], a[p] = a[p], a[high]
        stack[top] = low, p - 1
        stack[top + 1] = p + 1, high
        top += 2
    return a


def heap_sort(a: Any) -> Any:
    a = a.copy()
    n = len(a)

    def sift(start: Any, end: Any) -> None:
        root = start
        while True:
            child = 2 * root + 1
            if child > end:
                break
            if child + 1 <= end and a[child] < a[child + 1]:
                child += 1
            if a[root] < a[child]:
                a[root], a[child] = a[child], a[root]
                root = child
            else:
                break

    for start in range((n - 2) // 2, -1, -1):
        sift(start, n - 1)
    for end in range(n - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        sift(0, end - 1)
    return a


def two_arrays(x: Any) -> Any:
    """Each side reads both arrays as they were, and one another's new elements."""
    a, b, log = x.copy(), x[::-1].copy(), np.zeros(len(x))
    for t in range(1, len(x)):
        if a[t] > b[t - 1]:
            a[t] = b[t] + a[t - 1]
            b[t - 1] = a[t] - b[t]
            log[t] = a[t] + b[t - 1]
        elif b[t] > 0:
            b[t] = a[t - 1]
            log[t] = b[t] * log[t - 1]
            a[t - 1] = log[t]
        else:
            a[t], b[t - 1] = b[t - 1] * 0.5, a[t]
            log[t] = a[t]
    return a, b, log


def swapped(x: Any) -> Any:
    """The two arrays change places on one side: neither may be written over the other."""
    a, b = x.copy(), x[::-1] * 2.0
    total = 0.0
    for t in range(len(x)):
        if x[t] > 0:
            a[t] = 7.0 + b[t]
            c = a.copy()
            a[:] = b
            b[:] = c
        else:
            b[t] = a[t] - 1.0
            a[t] = b[t] * 2.0
        total += a[t] * b[t]
    return a, b, total


def nested(x: Any) -> Any:
    a, n = x.copy(), len(x)
    hits = np.zeros(n, np.int64)
    for t in range(n):
        if a[t] > 0:
            if a[t] > 1:
                a[(t + 1) % n] -= a[t]
                hits[t] = 2
                if a[(t + 1) % n] < 0:
                    a[t] = -a[(t + 1) % n]
            else:
                hits[(t * 7) % n] += hits[t] + 1
                a[t] = a[t] / 2
            last = a[t]
        else:
            last = 0.0
        a[n - 1 - t] += last
    return a, hits


def breadth_first(table: Any) -> Any:
    """Levels of a graph: the neighbours of k are places[ends[k] : ends[k + 1]]."""
    ends, places = table[:, 0], table[:-1, 1:].reshape(-1)
    n = len(ends) - 1
    level, queue = np.full(n, -1), np.empty(n, np.int64)
    head, tail = 0, 1
    queue[0], level[0] = 0, 0
    while head < tail:
        k = queue[head]
        head += 1
        for v in places[ends[k] : ends[k + 1]]:
            if level[v] == -1:
                level[v] = level[k] + 1
                queue[tail] = v
                tail += 1
    return level, queue[:tail].sum(), tail


def counted_before_it_is_read(x: Any) -> Any:
    n = len(x)
    row, sums = x.copy(), np.zeros(n)
    for t in range(n):
        count = 0
        for i in range(n):
            sums[i] += x[i]
            if sums[i] > t:
                count += 1
        element = row[count % n]
        for j in range(count % 5 % n):
            row[j] += element * 0.1
    return row, sums


def elements_and_choices(x: Any) -> Any:
    n = len(x)
    row = x.copy()
    for t in range(n):
        one, other = row[t], row[(t * 3) % n]
        for j in range(n):
            if row[j] > one:
                row[j] -= other * 0.1
            else:
                row[(j + 1) % n] += one * 0.01
    return row


def two_rows_by_turns(x: Any) -> Any:
    n = len(x)
    row, sums = x.copy(), np.zeros(n)
    for t in range(n):
        one = row[t]
        for j in range(n):
            sums[j] += row[j] * one
        other = sums[t]
        for j in range(t):
            row[j] += other * 1e-3 + sums[j] * 1e-4
    return row, sums


def part_at_an_element(x: Any) -> Any:
    n = len(x)
    row = x.copy()
    for t in range(n):
        k = int(abs(row[t]) * 7) % n
        for v in x[k : k + 4]:
            row[k] += v * row[t] * 0.01
    return row


def graph(n: int) -> np.ndarray:
    """Ends, and three neighbours of each of n places, as columns of one table."""
    ends = np.sort(rng.integers(0, 3 * n, n + 1))
    ends[0], ends[-1] = 0, 3 * n
    return np.column_stack([ends, rng.integers(0, n, (n + 1, 3))])


PROGRAMS: dict[Callable[..., Any], Callable[[int], Any]] = {
    components: lambda n: rng.random((n, n + 1)) < 0.6,
    quick_sort: lambda n: rng.normal(size=n),
    heap_sort: lambda n: rng.normal(size=n),
    breadth_first: graph,
    counted_before_it_is_read: lambda n: rng.normal(size=n),
    elements_and_choices: lambda n: rng.normal(size=n),
    two_rows_by_turns: lambda n: rng.normal(size=n),
    part_at_an_element: lambda n: rng.normal(size=n),
    two_arrays: lambda n: rng.normal(size=n),
    swapped: lambda n: rng.normal(size=n),
    nested: lambda n: rng.normal(size=n),
}


@pytest.mark.parametrize("n", [2, 5, 19, 33])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_arrays_that_branches_change_are_what_they_are_in_python(f: Callable[..., Any], n: int) -> None:
    compiled = ns.jit(f)
    for _ in range(4):
        x = PROGRAMS[f](n)
        for one, expected in zip(_leaves(compiled(x)), _leaves(f(x)), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-12)


def _leaves(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize(
    "f", [quick_sort, heap_sort, two_arrays, nested, two_rows_by_turns, elements_and_choices], ids=lambda f: f.__name__
)
def test_their_gradients_and_lanes(f: Callable[..., Any]) -> None:
    x = rng.normal(size=18)
    weights = np.cos(np.arange(18.0))

    def cost(x: Any) -> Any:
        return (_leaves(f(x))[0] * weights).sum()

    along = rng.normal(size=18)
    difference = (cost(x + 1e-7 * along) - cost(x - 1e-7 * along)) / 2e-7
    assert np.sum(ns.grad(cost)(x) * along) == pytest.approx(difference, rel=1e-5, abs=1e-5)
    lanes = rng.normal(size=(3, 18))
    np.testing.assert_allclose(ns.vmap(cost)(lanes), [cost(lane) for lane in lanes], rtol=1e-12)


@pytest.mark.parametrize("f", [components, quick_sort, heap_sort, breadth_first], ids=lambda f: f.__name__)
def test_no_pass_copies_an_array(f: Callable[..., Any]) -> None:
    compiled = ns.jit(f)
    compiled(PROGRAMS[f](20))
    assert "_rows" not in compiled.source()  # two rows that take turns
    assert not re.search(r"\w+_v2\[i\] = ", compiled.source())  # a second memory for a row


# two arrays that read each other --------------------------------------------------------------------------------------


def from_one_another(x: Any, y: Any, places: Any) -> tuple[Any, Any]:
    for i in range(1, len(x)):
        if x[i - 1] >= 0:
            x[i] = y[i - 1] + 1
        else:
            y[i] = x[i - 1]
    return x, y


def from_places_of_one_another(x: Any, y: Any, places: Any) -> tuple[Any, Any]:
    for i in range(1, len(x)):
        u, v = x[places[i]], y[places[i - 1]]
        if u < v:
            x[i] = y[places[i]] * 0.5
            y[i] = u + v
        else:
            y[i] = x[places[i]] * 0.5 - v
    return x, y


def at_places_of_one_another(x: Any, y: Any, places: Any) -> tuple[Any, Any]:
    for i in range(1, len(x)):
        k = int(abs(x[i - 1]) * 3) % len(x)
        if y[k] > 0:
            x[k] = y[i] - 0.5
        else:
            y[k] = x[i] + 0.25
    return x, y


def swapped_with_one_another(x: Any, y: Any, places: Any) -> tuple[Any, Any]:
    for i in range(1, len(x)):
        if x[i] < y[i - 1]:
            x[i], y[i - 1] = y[i - 1], x[i]
        else:
            x[i - 1], y[i] = y[i] * 0.5, x[i - 1]
    return x, y


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize(
    "f", [from_one_another, from_places_of_one_another, at_places_of_one_another, swapped_with_one_another], ids=lambda f: f.__name__
)
def test_arrays_that_choices_make_of_each_other(f: Callable[..., Any], mode: str | None) -> None:
    x, y = np.random.default_rng(7).normal(size=(2, 200))
    places = np.random.default_rng(8).integers(0, 200, 200)
    traced = ns.jit(f, mode=mode)
    for one, other in zip(traced(x.copy(), y.copy(), places), f(x.copy(), y.copy(), places), strict=True):
        np.testing.assert_array_equal(one, other)
    if mode is None and f in (from_one_another, from_places_of_one_another):  # in the others each branch reads both arrays
        assert "_rows" not in traced.lower(x, y, places).source()
