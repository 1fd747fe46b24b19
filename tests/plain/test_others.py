"""Shapes of programs as other projects write them: each function beside itself under Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


def series(x: Any) -> Any:
    if x >= 1.0:
        return np.inf
    term = total = 1.0
    k = 0
    while True:
        term = term * x / (k + 1)
        before = total
        total += term
        if before == total:
            return total
        k += 1


def halved(x: Any) -> Any:
    if x > 2:
        while 1:
            for k in range(3):
                if k == 2:
                    break
                x = x / 2
            if x < 1:
                return x
    return x + 5


def left_by_break(x: Any) -> Any:
    if x > 2:
        while True:
            x = x / 2
            if x < 0.1:
                return x
            if x < 1:
                break
    return x + 5


@pytest.mark.parametrize("f", [series, halved, left_by_break])
@pytest.mark.parametrize("x", [-0.2, 0.3, 2.5, 9.0])
def test_what_follows_a_loop_without_end_is_not_reached(f: Callable[..., Any], x: float) -> None:
    np.testing.assert_allclose(ns.jit(f, mode="python")(x), f(x), rtol=1e-12)


def test_a_loop_without_end_has_a_derivative() -> None:
    assert ns.grad(series)(0.3) == pytest.approx(math.exp(0.3))


def gammas(x: Any, n: Any) -> Any:
    return math.gamma(x), math.lgamma(x), math.erf(x), math.erfc(x), math.gamma(n), math.lgamma(n), math.erf(n)


@pytest.mark.parametrize("mode", ["python", None])
def test_math_has_the_functions_of_gauss_and_euler(mode: str | None) -> None:
    for x, n in ((2.5, 4), (-0.7, 1), (0.3, 2)):
        np.testing.assert_allclose(np.ravel(ns.jit(gammas, mode=mode)(x, n)), np.ravel(gammas(x, n)), rtol=1e-12)


def test_a_derivative_goes_through_gamma() -> None:
    differences = (math.gamma(2.5 + 1e-6) - math.gamma(2.5 - 1e-6)) / 2e-6
    assert ns.grad(lambda x: math.gamma(x))(2.5) == pytest.approx(differences)


def sum_of_differences(y: Any, n: Any) -> Any:
    total = np.zeros(n)
    for i in numba.prange(n):
        for j in numba.prange(1, n, 2):
            total[i] += abs(y[i] - y[j])
    return total


def test_prange_is_range() -> None:
    args = np.random.default_rng(2).normal(size=7), 6
    np.testing.assert_allclose(ns.jit(sum_of_differences, mode="python")(*args), sum_of_differences(*args), rtol=1e-12)


class Named(type):
    """Classes that say of which module they are by a property, as those of Cython."""

    __module__ = property(lambda cls: __name__)  # type: ignore[assignment]


class Scale(metaclass=Named):
    by = 3.0


class Shift:
    __module__ = property(lambda self: __name__)  # type: ignore[assignment]
    by = 1.0


SCALE, SHIFT = Scale(), Shift()


def scaled(x: Any) -> Any:
    return x * SCALE.by + SHIFT.by if x > 0 else x


def test_a_class_may_have_a_module_that_is_no_name() -> None:
    assert ns.jit(scaled, mode="python")(2.0) == scaled(2.0)


# functions that Numba has compiled ----------------------------------------------------------------------------------------


@numba.njit
def clipped(x: Any, limit: Any) -> Any:
    return limit if x > limit else x


@numba.njit
def simulated(x: Any, n: int) -> Any:
    path = np.zeros(n)
    for k in range(n):
        x = clipped(0.9 * x + 0.1 * k, 1.5)
        path[k] = x
    return path


@numba.njit
def filled(x: Any, value: float) -> None:
    for k in range(len(x)):
        x[k] = value + k


@numba.njit
def wrapped(n: int) -> int:
    return np.int32(n) * 2


@numba.vectorize
def doubled(x: Any) -> Any:
    return 2 * x


def of_compiled(x: Any, n: int) -> Any:
    known = wrapped(5)
    array = np.zeros(3)
    filled(array, 2.0)
    total = simulated(x, n).sum() + known
    if x > 0:
        total += clipped(x, limit=0.5)
    return total, array, max(clipped(x, 0.1), x)


@pytest.mark.parametrize("mode", ["python", None])
def test_functions_that_numba_has_compiled_are_traced(mode: str | None) -> None:
    for x in (0.7, -0.7):
        for one, other in zip(ns.jit(of_compiled, mode=mode)(x, 30), of_compiled(x, 30), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    slope = (simulated(0.7 + 1e-6, 30).sum() - simulated(0.7 - 1e-6, 30).sum()) / 2e-6
    assert ns.grad(lambda x: simulated(x, 30).sum())(0.7) == pytest.approx(slope)
    lanes = np.array([0.1, 0.7])
    np.testing.assert_allclose(ns.vmap(lambda x: simulated(x, 30))(lanes), [simulated(x, 30) for x in lanes])


def test_functions_that_numba_has_compiled_write_arguments() -> None:
    def f(x: Any) -> Any:
        filled(x, x[0])
        return x.sum()

    x = np.arange(1.0, 30.0)
    expected = x.copy()
    assert ns.jit(f, mode="python")(x) == pytest.approx(f(expected))
    np.testing.assert_allclose(x, expected)


def test_ufuncs_that_numba_has_made_are_refused() -> None:
    with pytest.raises(ns.TracerError, match=r"doubled.*leave the decorator out"):
        ns.jit(lambda x: doubled(x))(2.0)


# which array an argument is ----------------------------------------------------------------------------------------------


def test_an_array_that_is_two_arguments_is_one_array() -> None:
    f = ns.jit(lambda x, y: (x is y, x is not y, x + y), mode="python")
    one, other = np.arange(3.0), np.arange(3.0)
    for x, y in [(one, one), (one, other), (one, one), (one, one[:2].copy().repeat(2)[:3])]:
        assert tuple(map(bool, f(x, y)[:2])) == (x is y, x is not y)
    with pytest.raises(TypeError, match=r"only ns\.jit knows"):
        ns.grad(lambda x, y: (x + y).sum() if x is y else x.sum())(one, one)


def test_arrays_of_rank_0_are_of_their_own_class() -> None:
    f = ns.jit(lambda x: (type(x) is np.float64, isinstance(x, np.ndarray), isinstance(x, float)), mode="python")
    for x in (np.array(3.0), np.float64(3.0), 3.0, np.array(3.0), np.array([3.0])):
        assert tuple(map(bool, f(x))) == f.__wrapped__(x)


def test_arrays_of_rank_0_are_written_in_place() -> None:
    def f(x: Any) -> Any:
        x += 1
        return x * 2

    traced, x = ns.jit(f, mode="python"), np.array(3.0)
    assert [float(traced(v)) for v in (x, 3.0, x, np.float64(3.0))] == [8.0, 8.0, 10.0, 8.0]
    assert x == 5.0


# whole numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["python", None])
def test_math_of_whole_numbers(mode: str | None) -> None:
    def f(n: Any, k: Any) -> Any:
        return math.gcd(n, k), math.lcm(n, k), math.gcd(n, k, 4), math.gcd(-n, k), math.isqrt(n), math.factorial(k), math.comb(n, k)

    traced = ns.jit(f, mode=mode)
    for n, k in [(12, 18), (0, 5), (5, 0), (0, 0), (66, 20), (7, 9), (60, 15)]:
        assert tuple(map(int, traced(n, k))) == f(n, k)
    root = ns.jit(lambda n: math.isqrt(n), mode=mode)
    for n in (0, 1, 15, 16, 17, 10**18, 2**63 - 1, 3037000499**2, 3037000499**2 - 1):
        assert root(n) == math.isqrt(n)


def test_math_of_whole_numbers_raises_as_python_does() -> None:
    for f in (math.isqrt, math.factorial):
        with pytest.raises(ValueError, match="negative"):
            ns.jit(lambda n, f=f: f(n), mode="python")(-1)
        with pytest.raises(TypeError, match="integer"):
            ns.jit(lambda n, f=f: f(n), mode="python")(1.5)
    with pytest.raises(OverflowError, match="64 bits"):
        ns.jit(lambda n: math.factorial(n), mode="python")(21)
    with pytest.raises(OverflowError, match="64 bits"):
        ns.jit(lambda n: math.comb(n, 3), mode="python")(67)


# names that are not bound ------------------------------------------------------------------------------------------------


def left_by_for(x: Any, n: Any) -> Any:
    for k in range(n):
        y = x * k
    return y


def left_by_while(x: Any, n: Any) -> Any:
    while x > n:
        y = x * np.ones(3)
        x = x / 2
    return y.sum()


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("f", [left_by_for, left_by_while])
def test_a_name_that_no_pass_has_bound_is_told_at_the_run(f: Callable[..., Any], mode: str | None) -> None:
    traced = ns.jit(f, mode=mode)
    unbound = 0 if f is left_by_for else 9
    assert traced(3.0, 2) == pytest.approx(f(3.0, 2))
    with pytest.raises(UnboundLocalError) as theirs:
        f(3.0, unbound)
    with pytest.raises(UnboundLocalError, match="variable 'y'") as ours:
        traced(3.0, unbound)
    assert str(theirs.value) in str(ours.value)


def test_a_name_that_some_branch_leaves_unbound_is_told_while_tracing() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            y = 1.0
        return y

    with pytest.raises(UnboundLocalError, match="'y'"):
        ns.jit(f, mode="python")(1.0)


def counted_down(a: Any) -> Any:
    while a > 0:
        b = a
        a = a - 1
    return b


def counted_down_from_zero(a: Any) -> Any:
    b = 0.0
    while a > 0:
        b = a
        a = a - 1
    return b


def the_one_before(a: Any) -> Any:
    """The states before and behind the last pass of a loop, and their sum."""
    old, new = a, a * 0.5 + 1
    while abs(new - old) > 1e-9:
        old, new = new, new * 0.5 + 1
    return old, new, old + new


@pytest.mark.parametrize("f", [counted_down, counted_down_from_zero, the_one_before])
def test_what_a_while_hands_on_of_its_last_pass_takes_no_memory(f: Callable[..., Any]) -> None:
    """Rows of a loop that may take 2**63 passes are none that anything may ask for."""
    np.testing.assert_allclose(ns.jit(f)(3.0), f(3.0), rtol=1e-12)
    assert "np.empty" not in ns.jit(f).lower(3.0).source()


@pytest.mark.parametrize("mode", ["python", None])
def test_a_second_array_of_rank_0_is_asked_for_once_the_first_one_is_known(mode: str | None) -> None:
    def f(x: Any, y: Any) -> Any:
        return 1.0 if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) else 2.0

    for args in ((np.array(1.0), np.array(2.0)), (np.array(1.0), 2.0), (1.0, np.array(2.0)), (1.0, 2.0)):
        assert ns.jit(f, mode=mode)(*args) == f(*args)


# names that some ways bind ---------------------------------------------------------------------------------------------


def chain(a: Any) -> Any:
    if a > 1:
        th = 0.5
    elif a <= -1:
        return np.nan
    else:
        th = 0.1 * a
    return th * 2


def searched(x: Any, t: Any) -> Any:
    for i, v in enumerate(x):
        if v > t:
            found = i
            break
    else:
        found = -1
    return found


def skipping(x: Any) -> Any:
    s = 0.0
    for v in x:
        if v < 0:
            continue
        if v > 5:
            w = v
        elif v > 3:
            break
        else:
            w = 1.0
        s += w
    return s


def unbound(a: Any, b: Any) -> Any:
    if a > 0:
        y = a
    if b > 0:
        return y
    return b


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_a_name_that_a_way_leaves_unbound_is_read_on_the_others(mode: str) -> None:
    for a in (2.0, 0.5, -3.0):
        np.testing.assert_equal(float(ns.jit(chain, mode=mode)(a)), chain(a))
    for n in (3, 20):
        x = np.arange(float(n))
        for t in (-1.0, 1.5, 30.0):
            assert ns.jit(searched, mode=mode)(x, t) == searched(x, t)
        assert ns.jit(skipping, mode=mode)(x[::-1] - 4.0) == skipping(x[::-1] - 4.0)
    assert [ns.jit(unbound, mode=mode)(*args) for args in ((1.5, 1.0), (1.5, -2.0), (-1.5, -2.0))] == [1.5, -2.0, -2.0]
    with pytest.raises(UnboundLocalError, match="'y'"):
        ns.jit(unbound, mode=mode)(-1.5, 1.0)
    assert ns.grad(chain)(0.5) == 0.2
    np.testing.assert_equal(ns.vmap(chain)(np.array([2.0, 0.5, -3.0])), [1.0, 0.1, np.nan])


def test_a_loop_that_breaks_without_binding_a_name_leaves_it_unbound() -> None:
    def f(x: Any, t: Any) -> Any:
        for v in x:
            if v > t:
                break
            found = v
        else:
            found = -1.0
        return found

    with pytest.raises(UnboundLocalError, match="'found'"):
        ns.jit(f)(np.arange(20.0), 3.5)


# tables of lists of rows -----------------------------------------------------------------------------------------------


def common_length(a: Any, b: Any) -> Any:
    m, n = len(a), len(b)
    table = np.zeros((m + 1, n + 1), dtype=np.int64)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    table[m][0] += 3
    return table


def test_elements_of_rows_are_elements() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 19), rng.integers(0, 3, 21)
    f = ns.jit(common_length)
    np.testing.assert_array_equal(f(a, b), common_length(a, b))
    arrays = [line for line in f.source().splitlines() if "np.empty(" in line]
    assert all("np.empty((" in line for line in arrays), arrays  # tables alone: no row is copied


def parts_of_parts(cube: Any, i: Any, v: Any) -> Any:
    cube = cube.copy()
    cube[i][:, [0, 2]] = v
    cube[i][1] = 5.0
    cube[i][0][1] += 2.0
    cube[i + 1][1:3, 0] = v[1:3, 0]
    cube[0][[0, 1]] = 7.0
    row = cube[i]
    row[2][2] = -1.0
    row[0] *= 2
    return cube, cube[i][2], cube[i][2][3], row[:, 1]


@pytest.mark.parametrize("mode", ["numba", "python"])
@pytest.mark.parametrize("n", [4, 20])
def test_parts_of_parts_are_written_where_numpy_writes_them(n: int, mode: str) -> None:
    rng = np.random.default_rng(0)
    cube, v = rng.normal(size=(n, n, n)), rng.normal(size=(n, 2))
    for i in (1, -2):
        for one, expected in zip(ns.jit(parts_of_parts, mode=mode)(cube, i, v), parts_of_parts(cube, i, v), strict=True):
            np.testing.assert_array_equal(one, expected)


def test_a_part_of_a_row_is_set_in_the_row() -> None:
    def f(x: Any) -> Any:
        row = nt.set_subtensor(x[1][2], 5.0)
        return row, nt.inc_subtensor(x[1, 1:][0], 2.0), x[0][1]

    x = np.arange(12.0).reshape(3, 4)
    for one, expected in zip(ns.jit(f)(x), ([4, 5, 5, 7], [7, 6, 7], 1), strict=True):
        np.testing.assert_array_equal(one, expected)


# loops of known length -------------------------------------------------------------------------------------------------


def pairs(place: Any, mass: Any) -> Any:
    n = len(mass)
    force = np.zeros((n, 3))
    for i in range(n):
        for j in range(i + 1, n):
            d = place[j] - place[i]
            inverse = 1.0 / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + 1e-3) ** 1.5
            for k in range(3):
                force[i, k] += mass[j] * d[k] * inverse
                force[j, k] -= mass[i] * d[k] * inverse
    return force


def test_loops_of_known_length_that_do_much_are_not_written_out() -> None:
    """Twelve bodies were 4,446 lines, which LLVM did not compile in a minute."""
    rng = np.random.default_rng(0)
    place, mass = rng.normal(size=(12, 3)), rng.uniform(0.5, 1.5, 12)
    f = ns.jit(pairs)
    np.testing.assert_allclose(f(place, mass), pairs(place, mass), rtol=1e-12)
    assert len(f.source().splitlines()) < 120


def test_a_result_equal_to_what_a_function_got_is_an_array_of_its_own() -> None:
    """The inverse of what is known to be the identity is the same constant, and may be kept while that is written."""

    def weighed(n: int) -> tuple[np.ndarray, float]:
        matrices, total = np.array([np.eye(2)] * 2), 0.0
        for _ in range(n):
            for j in range(2):
                inverse, ordered = np.linalg.inv(matrices[j]), np.sort(matrices[j])
                matrices[j] = 2 * matrices[j] + 1
                total += inverse[0, 0] + ordered[0, 1]
        return matrices, total

    for n in (0, 1, 3):
        for found, expected in zip(ns.jit(weighed)(n), weighed(n), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
