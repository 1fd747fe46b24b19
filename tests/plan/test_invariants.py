"""What is proved of integer states (plan/lower/invariants.py): indices that need no check have none, all others keep theirs."""

from __future__ import annotations

import numpy as np
import pytest
import random_loops

import numbascan as ns


def bisection(a, v):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo


def pairs_of_sum(a, total):
    i, j, n = 0, len(a) - 1, 0
    while i < j:
        if a[i] + a[j] < total:
            i += 1
        elif a[i] + a[j] > total:
            j -= 1
        else:
            n += 1
            i += 1
            j -= 1
    return n


def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def both_at_once(a, b):
    i = j = 0
    s = 0.0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            s += a[i]
            i += 1
        else:
            s -= b[j]
            j += 1
    return s, i, j


def partition(a):
    i = -1
    for j in range(len(a) - 1):
        if a[j] <= 0.1:
            i += 1
            a[i], a[j] = a[j], a[i]
    return a, i


NUMBERS = np.random.default_rng(3).normal(size=40)
SORTED = np.sort(NUMBERS)
WHOLE = np.sort(np.random.default_rng(4).integers(0, 50, size=60))


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (bisection, (SORTED, 0.3)),
        (pairs_of_sum, (WHOLE, 50)),
        (insertion_sort, (NUMBERS,)),
        (both_at_once, (SORTED, SORTED[:20] + 0.01)),
        (partition, (NUMBERS,)),
    ],
)
def test_indices_that_the_loop_keeps_in_bounds_need_no_check(f, args) -> None:
    jitted = ns.jit(f)
    got, wanted = jitted(*[np.copy(one) for one in args]), f(*[np.copy(one) for one in args])
    for one, other in zip(got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "raise IndexError" not in jitted.source()


def one_too_far(a):
    i, s = 0, 0.0
    while i <= len(a):
        s += a[i]
        i += 1
    return s


def below_the_first(a):
    j, s = len(a) - 1, 0.0
    while j >= -len(a) - 1:
        s += a[j]
        j -= 1
    return s


def past_the_end_in_one_way(a):
    i, s = 0, 0.0
    while i < len(a):
        if a[i] > 0:
            i += 2
        else:
            i += 1
        s += a[i]
    return s


def from_a_number_that_nobody_checked(a, i):
    s = 0.0
    while i < len(a):
        s += a[i]
        i += 1
    return s


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (one_too_far, ()),
        (below_the_first, ()),
        (past_the_end_in_one_way, ()),
        (from_a_number_that_nobody_checked, (-41,)),
    ],
)
def test_indices_that_leave_the_array_are_found(f, args) -> None:
    with pytest.raises(IndexError):
        f(NUMBERS.copy(), *args)
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 40"):
        ns.jit(f)(NUMBERS.copy(), *args)


def test_a_number_that_wraps_is_not_taken_to_be_positive() -> None:
    def counted(a, step):
        i, s = 1, 0.0
        while i > 0:
            s += a[i % 4]
            i += step
        return s

    step = 2**61
    jitted = ns.jit(counted)
    assert jitted(np.arange(20.0), step) == sum([1.0, 1.0, 1.0, 1.0])  # 1, 2**61 + 1, 2**62 + 1, 3 * 2**61 + 1, then below zero


def test_sums_of_states_are_not_taken_to_last_where_one_may_leave_int64() -> None:
    def from_any_number(a, m, n):
        s = 0.0
        if m >= 0:
            i, k = m, 0
            while k < n:
                if i < len(a):
                    s += a[i]
                i += 1
                k += 1
        return s

    jitted = ns.jit(from_any_number)
    assert jitted(np.arange(20.0), 17, 30) == from_any_number(np.arange(20.0), 17, 30)
    with pytest.raises(IndexError, match="index -9223372036854775808 is out of bounds"):
        jitted(np.arange(20.0), 2**63 - 2, 30)


def test_what_is_asked_of_an_item_is_not_known_of_the_next_one() -> None:
    def against_items(a, items):
        i, s = 25, 0.0
        for v in items:
            s += a[i - v]
            if v > 3:
                s += v
            i -= 1
            if i < v:
                break
        return s, i

    for items in (np.arange(20), np.array([0, 20, 40, *range(17)])):
        got, wanted = ns.jit(against_items)(np.arange(40.0) ** 2, items), against_items(np.arange(40.0) ** 2, items)
        np.testing.assert_array_equal(got, wanted)


def test_an_element_that_is_there_if_an_inner_loop_has_a_step_is_not_read_in_front_of_a_loop_without() -> None:
    def rows_after_their_end(a, m):
        i, s = 0, 0.0
        while i < m:
            for k in range(len(a) - i):
                v = a[i]
                s += v * a[k] + v
            i += 1
        return s

    jitted, a = ns.jit(rows_after_their_end), np.arange(20.0)
    assert jitted(a, 50) == rows_after_their_end(a, 50)
    assert "v = a[i] if maximum > 0 else 0.0\n" in jitted.source()


@pytest.mark.parametrize("seed", range(8))
def test_random_loops_over_integers(seed: int) -> None:
    random_loops.compare(seed)
