"""Comprehensions, generator expressions, `map`, `filter` and lists of any length: each function beside itself under Python."""

# ruff: noqa: C416, C417, C419, RUF015 - programs as people write them

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.front.tree import flattened

SHORT, LONG = np.array([3.0, -1.0, 2.0]), np.linspace(-1.0, 1.3, 20)
TABLE = np.arange(60.0).reshape(20, 3) % 7
LETTERS = np.random.default_rng(0).integers(0, 3, 20)


def assert_as_python(f: Callable[..., Any], *args: Any, mode: str | None = "python") -> None:
    """A function gives what it gives under Python, in NumPy's dtypes."""
    expected, result = f(*args), ns.jit(f, mode=mode)(*args)
    for one, other in zip(flattened(expected)[0], flattened(result)[0], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
        assert np.asarray(other).dtype == np.asarray(one).dtype


OF_ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: sum(v * v for v in x),
    "sum of some": lambda x: sum(math.log(v) for v in x if v > 0),
    "sum of a list": lambda x: sum([v * v for v in x if v > 0]),
    "sum over pairs": lambda x: sum(a * b for a in x for b in x if a > b),
    "sum of sums": lambda x: sum(sum(a * b for b in x) for a in x),
    "number of some": lambda x: sum(1 for v in x if v > 0),
    "length of some": lambda x: len([v for v in x if v > 0]),
    "mean of some": lambda x: sum([v for v in x if v > 0]) / len([v for v in x if v > 0]),
    "largest": lambda x: max(abs(v) for v in x),
    "smallest of some": lambda x: min(v for v in x if v > 0),
    "default": lambda x: max((v for v in x if v > 5), default=7.0),
    "default of some": lambda x: max([v for v in x if v > 0], default=7.0),
    "by key": lambda x: max(x, key=lambda v: -abs(v - 0.3)),
    "place by key": lambda x: min(range(len(x)), key=lambda i: abs(x[i] - 0.3)),
    "pair": lambda x: min((abs(v - 0.3), i) for i, v in enumerate(x)),
    "any": lambda x: any(v > 0.5 for v in x),
    "any of a list": lambda x: any([v > 5 for v in x]),
    "all": lambda x: all(v > -2 for v in x),
    "all in order": lambda x: all(x[i] <= x[i + 1] for i in range(len(x) - 1)),
    "none": lambda x: any(v > 50 for v in x) or all(v > 0 for v in x),
    "array": lambda x: np.array([v * 2 for v in x]),
    "array of numbers": lambda x: np.array([1.0 for _ in x]) + np.array([1 for _ in x]),
    "array of pairs": lambda x: np.array([(v, v * v) for v in x]),
    "table": lambda x: np.array([[a * b for b in x] for a in x]),
    "array of dtype": lambda x: np.array([v for v in x], dtype=np.float32),
    "NumPy's functions": lambda x: (np.mean([v * 2 for v in x]), np.exp([v for v in x]), np.dot([v for v in x], x)),
    "element": lambda x: ([v * 2 for v in x][2], [v * 2 for v in x][-1], [(v, -v) for v in x][1]),
    "slice": lambda x: np.array([v * 2 for v in x][1:3]),
    "length": lambda x: len([v for v in x]),
    "in": lambda x: (0.3 in [v for v in x], -1.0 in [v for v in x], 1 in [1 for v in x]),
    "is a list": lambda x: (isinstance([v for v in x], list), isinstance(tuple(v for v in x), tuple)),
    "added": lambda x: np.array([0.5] + [v for v in x] + [1, 2] + [v for v in x]),
    "repeated": lambda x: (np.array([0.0] * len(x)), sum([1] * len(x)), ([2.5] * len(x))[-1], (len(x) * [x[0]])[1]),
    "map": lambda x: (max(map(abs, x)), sum(map(lambda a, b: a * b, x, x)), np.array(list(map(lambda v: v + 1, x)))),
    "filter": lambda x: sum(filter(lambda v: v > 0, x)),
    "generator of a generator": lambda x: sum(v + 1 for v in (w * 2 for w in x if w > 0) if v > 1),
    "list": lambda x: np.array(list(x)),
    "zip": lambda x: sum(a * b for a, b in zip(x, x)),  # noqa: B905
    "rows of lists": lambda x: sum(k * v for k, v in enumerate(reversed([v for v in x]))),
    "sorted": lambda x: np.array(sorted(x)),
    "sorted backwards": lambda x: np.array(sorted(x, reverse=True)),
    "sorted by key": lambda x: np.array(sorted(range(len(x)), key=lambda i: abs(x[i] - 0.31))),
    "fsum, prod": lambda x: (math.fsum(v for v in x), math.prod(v for v in x)),
    "fromiter": lambda x: np.fromiter((v * 2 for v in x), dtype=np.float64),
    "numbers of a range": lambda x: sum(x[i] * i for i in range(len(x))),
    "elements of some": lambda x: ([v for v in x if v > 0][0], [v for v in x if v > 0][-1], [v * 2 for v in x if v > -5][1:][0]),
    "array of some": lambda x: (np.array([v for v in x if v > 0]), np.median([v for v in x if v > -1])),
    "some added": lambda x: np.array([v for v in x if v > 0] + [1.5] + [v for v in x if v < 0]),
    "range": lambda x: (sum(x[i] / (k + 1) for k, i in enumerate(range(len(x))[::-1])), range(len(x))[-1], sum(range(len(x))[1::2])),
    "some sorted": lambda x: (np.array(sorted([v for v in x if v > -0.5])), sorted([v for v in x if v > -0.5], reverse=True)[0]),
    "some in loops": lambda x: (
        sum(i * v for i, v in enumerate([v for v in x if v > -0.5])),
        sum(a * b for a, b in zip([v for v in x if v > 0], [v for v in x if v > -5])),  # noqa: B905
        1.0 if [v for v in x if v > 50] else 0.0,
    ),
    "reduce": lambda x: (functools.reduce(operator.mul, x, 1.0), functools.reduce(lambda a, b: a if a > b else b, x)),
    "accumulate": lambda x: (
        list(itertools.accumulate(x))[-1],
        max(itertools.accumulate(x, operator.mul)),
        *itertools.accumulate([1, x[0]]),
    ),
}


@pytest.mark.parametrize("name", OF_ELEMENTS)
@pytest.mark.parametrize("x", [SHORT, LONG], ids=["short", "long"])
def test_elements_are_those_of_the_plain_function(name: str, x: Any) -> None:
    assert_as_python(OF_ELEMENTS[name], x)


@pytest.mark.parametrize("name", ["sum of some", "mean of some", "by key", "pair", "any", "table", "array of pairs", "added", "filter"])
def test_compiled_elements(name: str) -> None:
    assert_as_python(OF_ELEMENTS[name], LONG, mode=None)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", ["sum", "array", "largest", "element", "in", "repeated", "array of numbers"])
def test_elements_have_the_dtypes_of_the_plain_function(name: str, dtype: str) -> None:
    assert_as_python(OF_ELEMENTS[name], np.arange(1, 21).astype(dtype))
    assert_as_python(lambda x: (0.5 * x[0], [0.5 for _ in x][0] * x[0], ([0.5] * len(x))[1] * x[0]), np.arange(1, 21).astype("float32"))


def test_derivatives_and_lanes_go_through_elements() -> None:
    def f(x: Any) -> Any:
        return sum(math.log(v) * k for k, v in enumerate(x) if v > 0) + max(v * v for v in x) + np.array([v**3 for v in x]).sum()

    slope = ns.grad(f)(LONG)
    steps = [(f(LONG + d) - f(LONG - d)) / 2e-7 for d in 1e-7 * np.eye(20)]
    np.testing.assert_allclose(slope, steps, rtol=1e-5, atol=1e-6)
    lanes = np.stack([LONG, LONG[::-1], LONG * 2])
    np.testing.assert_allclose(ns.vmap(f)(lanes), [f(lane) for lane in lanes], rtol=1e-12)


@pytest.mark.parametrize("x", [SHORT, LONG], ids=["short", "long"])
def test_what_is_behind_the_first_is_not_made(x: Any) -> None:
    def f(x: Any) -> Any:
        n = 0

        def check(v: Any) -> Any:
            nonlocal n
            n += 1
            return v > 0

        return any(check(v) for v in x), n, all(map(check, x)), n, any([check(v) for v in x]), n

    assert_as_python(f, x)


def path(x: Any, n: int) -> Any:
    states = [0.0] * (n + 1)
    states[0] = x
    for k in range(n):
        states[k + 1] = states[k] / 2 + k
    return np.array(states), max(states), states[n]


def of_floats(x: Any, n: int) -> Any:
    states = [0] * n
    for k in range(n):
        if k % 3:
            states[k] += x * k
    return np.array(states)


def in_a_branch(x: Any, n: int) -> Any:
    states = [0] * n
    if x > 0:
        states[1] = x
    return np.array(states)


def two_names(x: Any, n: int) -> Any:
    states = [x] * n
    same, other = states, states[:]
    same[1] = 5.0
    return states[1], other[1], sum(same)


def written_while_run_over(x: Any, n: int) -> Any:
    xs, ints, t = [x * k for k in np.arange(n * 1.0) * x], [0] * n, 0.0
    for v in xs:
        t = t + v
        xs[-1] = xs[-1] + 1
    for v in ints:
        ints[-1] = 2.5
        t = t + v
    for k, v in enumerate(xs):
        xs[k] = v + 1
    return t, xs[0], xs[-1], ints[0] * 1.0


def grid(x: Any, n: int) -> Any:
    cells = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            cells[i][j] = x * i + j
    return cells[2][3], sum(sum(row) for row in cells), np.array(cells), len(cells), len(cells[0])


def loops(x: Any, n: int) -> Any:
    total = 0.0
    states = [x * k for k in range(n)]
    for a, b in zip(states, range(n), strict=True):
        total += a * b
    for k, c in enumerate(states):
        total += k * c
    for d in [v for v in states if v > x]:
        total += d
    for e in (v for v in states if v > x):
        if e > 10 * x:
            break
        total -= e
    return total


def within_a_loop(x: Any, n: int) -> Any:
    total = 0.0
    for k in range(n):
        states = [x * k + j for j in range(n)]
        total += sum(v for v in states if v > total) + states[-1]
    return total


def sieve(x: Any, n: int) -> Any:
    is_prime = [True] * (n + 1)
    is_prime[0] = is_prime[1] = False
    i = 2
    while i * i <= n:
        if is_prime[i]:
            for j in range(i * i, n + 1, i):
                is_prime[j] = False
        i += 1
    return sum(is_prime), sum(i for i in range(n + 1) if is_prime[i]) * x


def coins(x: Any, n: int) -> Any:
    ways = [1] + [0] * n
    for coin in (1, 5, 10):
        for k in range(coin, n + 1):
            ways[k] += ways[k - coin]
    return ways[n] * x


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("f", [path, of_floats, in_a_branch, two_names, written_while_run_over, grid, loops, within_a_loop, sieve, coins])
def test_lists_of_any_length(f: Callable[..., Any], n: int) -> None:
    assert_as_python(f, 0.5, n)


@pytest.mark.parametrize("f", [path, grid, sieve, coins])
def test_compiled_lists(f: Callable[..., Any]) -> None:
    assert_as_python(f, 0.5, 40, mode=None)
    if f is not coins:
        slope = (total(f(0.5 + 1e-6, 20)) - total(f(0.5 - 1e-6, 20))) / 2e-6
        np.testing.assert_allclose(ns.grad(lambda x: total(f(x, 20)))(0.5), slope)


def total(results: Any) -> Any:
    """Something smooth of all results."""
    return sum(np.sum(one) for one in results)


def common(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            table[i][j] = table[i - 1][j - 1] + 1 if a[i - 1] == b[j - 1] else max(table[i - 1][j], table[i][j - 1])
    return table[n][m]


def test_the_longest_common_subsequence() -> None:
    assert_as_python(common, LETTERS, LETTERS[::-1].copy(), mode=None)


# arrays as elements ------------------------------------------------------------------------------------------------------


OF_ROWS: dict[str, Callable[[Any], Any]] = {
    "sums": lambda x: np.array([row.sum() for row in x]),
    "arrays": lambda x: np.array([row * 2 for row in x]),
    "row": lambda x: max(x, key=lambda row: row[1]) + 0.0,
    "sum": lambda x: sum((row for row in x), np.zeros(3)),
    "tuples": lambda x: np.array([(row[0], row.max()) for row in x if True]),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_of_arrays(name: str) -> None:
    assert_as_python(OF_ROWS[name], TABLE)


def rows_written(x: Any) -> Any:
    x = x.copy()
    rows = [row for row in x]
    x[0, 0] = 100.0
    return np.array(rows)


def element_written(x: Any) -> Any:
    x = x.copy()
    rows = [row for row in x]
    rows[0][0] = 100.0
    return x


def one_array(x: Any) -> Any:
    rows = (lambda array: [array for _ in x])(x[0] * 2)
    rows[0][0] = 100.0
    return np.array(rows)


def one_array_written(x: Any) -> Any:
    array = np.zeros(3)
    rows = [array for _ in x]
    array[0] = 5.0
    return np.array(rows)


def own_arrays(x: Any) -> Any:
    rows = [row * 2 for row in x]
    rows[2][1] = 100.0
    some = rows[1:]
    some[1][0] = 7.0
    return np.array(rows)


@pytest.mark.parametrize("f", [rows_written, element_written, one_array, one_array_written, own_arrays])
def test_arrays_that_are_elements_are_seen_there_or_refused(f: Callable[..., Any]) -> None:
    try:
        result = ns.jit(f, mode="python")(TABLE)
    except ValueError as error:
        assert "written" in str(error)  # noqa: PT017 - either is right
    else:
        np.testing.assert_array_equal(result, f(TABLE))


# what is refused ---------------------------------------------------------------------------------------------------------


def twice(x: Any) -> Any:
    values = (v for v in x)
    return sum(values), sum(values)


def begun_outside(x: Any) -> Any:
    values = (v for v in x)
    return sum(values) if x[0] > 0 else 0.0


def extended(x: Any) -> Any:
    values = [0.0]
    values += [1.0] * len(x)
    return values[0]


RETURNED: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: [v * 2 for v in x],
    "some": lambda x: [v for v in x if v > 0],
    "none": lambda x: [v for v in x if v > 50],
    "pairs": lambda x: [(i, v) for i, v in enumerate(x)],
    "rows": lambda x: [[v, v * v] for v in x],
    "in a nest": lambda x: {"kept": [v for v in x if v > 0], "n": len(x), "pair": (x.sum(), [i for i in range(len(x)) if x[i] > 0])},
    "places": lambda x: [i for i in range(len(x)) if x[i] > 0],
}


@pytest.mark.parametrize("name", RETURNED)
@pytest.mark.parametrize("x", [SHORT, LONG], ids=["short", "long"])
def test_lists_are_returned(name: str, x: Any) -> None:
    f = RETURNED[name]
    assert_as_python(f, x, mode=None if name in ("some", "in a nest") else "python")
    assert flattened(ns.jit(f, mode="python")(x))[1] == flattened(f(x))[1]


def test_a_list_is_returned_by_a_function_with_checks_and_in_lanes_refused() -> None:
    def positive(x: Any) -> Any:
        assert x[0] < 3.5
        return x.sum(), [v for v in x if v > 0]

    assert_as_python(positive, LONG)
    with pytest.raises(AssertionError):
        ns.jit(positive, mode="python")(LONG + 5)
    with pytest.raises(TypeError, match="how many elements it has only the run knows"):
        ns.vmap(lambda x: [v for v in x if v > 0])(TABLE.T)


def counts(letters: Any) -> Any:
    found = [0] * 3
    for letter in letters:
        found[letter] += 1
    return found


def one_written(x: Any, k: Any) -> Any:
    values = [1.0, 2, x[0]]
    values[k] = x[1]
    if x[0] > 0:
        values[-k] = 7
    return values


def shortest(weights: Any) -> Any:
    distance, is_done = [math.inf] * 5, [False] * 5
    distance[0] = 0.0
    for _ in range(5):
        best, nearest = math.inf, -1
        for i in range(5):
            if not is_done[i] and distance[i] < best:
                best, nearest = distance[i], i
        if nearest < 0:
            break
        is_done[nearest] = True
        for j in range(5):
            distance[j] = min(distance[j], distance[nearest] + weights[nearest, j])
    return distance


def test_lists_are_written_at_places_that_the_run_knows() -> None:
    for mode in ("python", None):
        assert_as_python(counts, LETTERS, mode=mode)
        assert_as_python(counts, LETTERS[:4], mode=mode)
        assert_as_python(shortest, np.abs(TABLE[:5, [0, 1, 2, 0, 1]]) + 1, mode=mode)
    for k in (0, 1, -1, -3):
        assert ns.jit(one_written, mode="python")(LONG, k) == one_written(LONG, k)
    for k in (3, -4):
        with pytest.raises(IndexError, match="list assignment index out of range"):
            ns.jit(one_written, mode="python")(LONG, k)
    f = ns.jit(ns.grad(lambda w: shortest(w)[3]), mode="python")
    assert f(np.abs(TABLE[:5, [0, 1, 2, 0, 1]]) + 1).sum() == 1.0


def by_sign(x: Any) -> Any:
    found = [0] * 3
    for v in x:
        if v > 0:
            found[int(v) % 3] += 1
        else:
            found[-1] -= 1
    return found


def test_what_is_written_in_a_list_leaves_the_others_as_they_are() -> None:
    def first(k: Any, x: Any) -> Any:
        values = [0.1, 0.2, 0.3]
        values[k] = x[0]
        return values[0] * 3

    assert ns.jit(first, mode="python")(1, np.array([0.5], "float32")) == 0.1 * 3
    for x in (SHORT, LONG * 4):
        assert_as_python(by_sign, x)

    def same(x: Any) -> Any:
        values = [x, x * 2]
        other = values
        return 1.0 if other is values else 2.0

    assert_as_python(same, SHORT)


class Holder:
    values = (0,)


def test_a_list_outside_that_would_hold_a_traced_value_is_given_back() -> None:
    holder = Holder()
    holder.values = [1, 2, 3]  # type: ignore[assignment]

    def one_of(k: Any) -> Any:
        holder.values[k] = 9  # type: ignore[index]
        return 0

    def first(k: Any) -> Any:
        holder.values[0] = k  # type: ignore[index]
        return 0

    for f in (one_of, first):
        with pytest.raises(ValueError, match="would hold no number"):
            ns.jit(f, mode="python")(1)
        assert holder.values == [1, 2, 3]


@pytest.mark.parametrize("place", [0, 3])
def test_running_extremes_meet_nan_as_pythons(place: int) -> None:
    x = LONG.copy()
    x[place] = np.nan
    for f in (max, min):
        assert_as_python(lambda x: np.array(list(itertools.accumulate(x, f))), x)  # noqa: B023
    with np.errstate(over="ignore"):
        assert_as_python(lambda x: np.array(list(itertools.accumulate(x, operator.mul))), (LETTERS + 1).astype("int8"))
    with pytest.raises(TypeError, match=r"itertools\.accumulate"):
        ns.jit(lambda x: list(itertools.accumulate(x)), mode="python")(LONG > 0)


def fibonacci(n: Any) -> Any:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def halves(x: Any, depth: int = 12) -> Any:
    if depth == 0 or x < 1e-3:
        return x
    return halves(x * 0.5, depth - 1) + halves(x * 0.4, depth - 1)


def transform(x: Any) -> Any:
    if len(x) == 1:
        return x
    even, odd = transform(x[::2]), transform(x[1::2])
    return np.concatenate([even + odd, even - odd])


def test_recursion_ends_while_tracing_or_is_refused() -> None:
    assert_as_python(transform, LONG[:8])

    def called_from_below(f: Any, x: Any, depth: int = 60) -> Any:
        return called_from_below(f, x, depth - 1) if depth else ns.jit(f, mode="python")(x)

    for f, x in ((fibonacci, 5), (halves, 1.0)):
        with pytest.raises(
            RecursionError, match=r"calls itself in a branch that only the run decides .*test_elements.py, line \d+.*`while` loop"
        ):
            called_from_below(f, x)


def test_bits_of_integers() -> None:
    def bits(n: Any) -> Any:
        return n.bit_length() if hasattr(n, "bit_length") else -1, n.bit_count()

    assert ns.jit(lambda x: x[0].bit_count(), mode="python")(np.array([2**64 - 1], "uint64")) == 64
    assert ns.jit(lambda n, k: math.perm(n, k), mode="python")(66, 70) == 0
    for n in (12, 0, -9, 2**62, -(2**63)):
        assert ns.jit(bits, mode="python")(n) == bits(n)
    assert ns.jit(bits, mode="python")(np.int64(9)) == (-1, 2) if not hasattr(np.int64(9), "bit_length") else bits(np.int64(9))
    assert not ns.jit(lambda x: hasattr(x, "bit_length"), mode="python")(0.5)
    assert [int(ns.jit(lambda n: math.perm(n, 3), mode="python")(n)) for n in (2, 3, 12, 66)] == [math.perm(n, 3) for n in (2, 3, 12, 66)]


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: np.tanh([v for v in x] * 2), r"np\.array"),
    (lambda x: [v for v in x].append(1.0), r"append.*np\.zeros"),
    (lambda x: [v for v in x] == [v for v in x], "compared"),
    (lambda x: [None for _ in x], "hold no number"),
    (lambda x: {v for v in x}, "key of a dict|only the run knows"),
    (lambda x: np.array([a + b for a in x for b in x]), "list of lists"),
    (lambda x: np.array([None for _ in x]), "None"),
    (lambda x: [[0.0] * 3] * len(x), r"np\.tile"),
    (lambda x: next(v for v in x), "`for` loop"),
    (twice, "run over before"),
    (begun_outside, "made before"),
    (extended, "other names"),
]


@pytest.mark.parametrize(("f", "what"), REFUSED)
def test_what_cannot_be_is_refused_with_its_line(f: Callable[..., Any], what: str) -> None:
    with pytest.raises((TypeError, ValueError, ns.TracerError), match=what) as caught:
        ns.jit(f, mode="python")(LONG)
    assert "test_elements.py, line" in str(caught.value)


def one_of_a_list(x: Any) -> Any:
    pairs = [[v, 0.0] for v in x]
    pairs[1][0] = 5.0
    return np.array([pair[0] for pair in pairs])


def each_of_a_list(x: Any) -> Any:
    pairs = [{"value": v} for v in x]
    for pair in pairs:
        pair["value"] = 2.0
    return sum(pair["value"] for pair in pairs)


def grown_element(x: Any) -> Any:
    pairs = [(v, [v]) for v in x]
    pairs[2][1].append(1.0)
    return len(pairs[2][1])


@pytest.mark.parametrize("f", [one_of_a_list, each_of_a_list, grown_element])
def test_an_element_that_is_a_list_may_not_be_written(f: Callable[..., Any]) -> None:
    """It is made anew at each read: what is written there would be lost."""
    with pytest.raises(TypeError, match=r"(list|dict) is written .*, and it is an element of a list of as many elements as only the run"):
        ns.jit(f)(LONG)


def test_an_element_that_is_an_array_may_be_written() -> None:
    def f(x: Any) -> Any:
        pairs = [np.array([v, 0.0]) for v in x]
        pairs[1][0] = 5.0
        for pair in pairs:
            pair[1] += 2.0
        return np.array(pairs)

    assert_as_python(f, LONG)


def test_known_ranges_at_places_that_the_run_knows() -> None:
    def f(k: Any) -> Any:
        return range(10)[k], range(10, 0, -3)[k]

    run = ns.jit(f, mode="python")
    for k in (-4, -1, 0, 3):
        assert tuple(map(int, run(k))) == f(k)
    with pytest.raises(IndexError, match="range object index out of range"):
        run(4)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float64"])
def test_lists_of_ints_that_get_elements_wrap_as_these(dtype: str) -> None:
    def f(x: Any) -> Any:
        counts = [0] * 4
        for i in range(len(x)):
            counts[i % 4] += x[i]
        return counts

    x = np.array([200, 100, 255, 3] * 5).astype(dtype)
    with np.errstate(over="ignore"):
        assert_as_python(f, x)


def test_nothing_has_no_extreme() -> None:
    for x in (SHORT, LONG):
        with pytest.raises(ValueError, match="empty"):
            ns.jit(lambda x: min(v for v in x if v > 50), mode="python")(x)


def test_known_elements_are_pythons() -> None:
    def f(x: Any) -> Any:
        values = (k * k for k in range(4) if k)
        first = next(values)
        words = sorted(["bb", "a", "ccc"], key=len)
        pairs = [(a, b) for a in range(3) for b in range(a)]
        return x * first, list(values), len(words[0]), len(pairs), pairs[-1], max(words, key=len) == "ccc", dict(enumerate("ab"))[0] == "a"

    assert_as_python(f, 2.0)


def test_lists_that_compare_their_elements() -> None:
    def f(x: Any) -> Any:
        values = [x[0], x[1], x[2]]
        values.sort()
        names = sorted([1, 2, 3], key=lambda k: -x[k - 1])
        backwards = [3, 1, 2]
        backwards.sort(key=lambda k: x[k - 1], reverse=True)
        return values, names, backwards, values.index(x[1]), values.index(x[0], 1), values.count(x[1]), (1, 2).index(2)

    assert_as_python(f, SHORT)
    with pytest.raises(ValueError, match="not in the list"):
        ns.jit(lambda x: [x[0], x[1]].index(x[2]), mode="python")(SHORT)
    with pytest.raises(ValueError, match="NaN"):
        ns.jit(lambda x: sorted(range(3), key=lambda k: x[k]), mode="python")(np.array([1.0, np.nan, 0.0]))


# places of arrays --------------------------------------------------------------------------------------------------------


def by_places(x: Any) -> Any:
    total = 0.0
    for i, j in np.ndindex(x.shape):
        total += x[i, j] * (i - j)
    return total


def written_at_places(x: Any) -> Any:
    y = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        if x[place] > 3:
            y[place] = x[place] * place[0]
    return y


def enumerated(x: Any) -> Any:
    total = 0.0
    for place, v in np.ndenumerate(x):
        total += v * place[0] - place[-1]
    return total


def enumerated_and_written(x: Any) -> Any:
    x = x.copy()
    for (_, _), v in np.ndenumerate(x):
        x[-1, 0] += v
        if v > 50:
            break
    return x


def counted(x: Any) -> Any:
    return sum(x[place] * k for k, place in enumerate(np.ndindex(x.shape))), np.array([x[i] * i[0] for i in np.ndindex(x.shape)])


def backwards(x: Any) -> Any:
    total = 0.0
    for v, place in zip(x, np.ndindex(x.shape[:1]), strict=True):
        total = total / 2 + v.sum() * place[0]
    return total


def of_known_lengths(x: Any) -> Any:
    total = 0.0
    for i, j in np.ndindex(30, 30):
        total += x[0, 0] * i - j
    for _ in np.ndindex(0, 3):
        total += 100.0
    return total


PLACES = [by_places, written_at_places, enumerated, enumerated_and_written, counted, backwards, of_known_lengths]


@pytest.mark.parametrize("f", PLACES)
@pytest.mark.parametrize("x", [TABLE, TABLE[:2], TABLE[:, :1].copy()])
def test_loops_over_places(f: Callable[..., Any], x: Any) -> None:
    assert_as_python(f, x)


def test_places_of_many_axes_and_of_none() -> None:
    x = np.arange(120.0).reshape(20, 2, 3)
    for f in (written_at_places, enumerated):
        assert_as_python(f, x)
        assert_as_python(f, x[:, 0, 0].copy())
    for n in (0, 1, 20):
        assert_as_python(lambda x, n: sum((i * j * x for i, j in np.ndindex(n, 3)), 0.0), 2.0, n)


def test_compiled_places_and_their_derivatives() -> None:
    for f in (by_places, written_at_places, enumerated):
        assert_as_python(f, TABLE, mode=None)
    np.testing.assert_allclose(ns.grad(by_places)(TABLE), [[i - j for j in range(3)] for i in range(20)])


def in_order_of_memory(x: Any) -> Any:
    return sum(v for v in np.nditer([x, x]))


def test_an_iteration_in_the_order_of_memory_is_refused() -> None:
    with pytest.raises(TypeError, match=r"numpy\.nditer is not supported on traced values .*; write for v in x\.ravel\(\)"):
        ns.jit(in_order_of_memory)(np.ones((3, 20)))


def added_to_and_bound_behind(x: Any, a: Any) -> Any:
    for _ in a:
        x += 1.0
    else:
        x = x + a[1]
    if x > 3:
        for v in a:
            x *= v
        else:
            x = a[1]
    return x


def test_a_loop_adds_to_a_name_that_its_else_binds() -> None:
    for x in (1.5, -99.0):
        for a in (SHORT, LONG):
            assert_as_python(added_to_and_bound_behind, x, a)
