"""Loops under JAX's names give what plain Python loops give, for any nest, length and bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt

ROWS = np.arange(1.0, 7.0).reshape(3, 2)


class Body(NamedTuple):
    place: Any
    speed: Any


def in_python(f: Callable[..., Any], *args: Any) -> Any:
    """What a function of arrays gives without a compiler."""
    return ns.jit(f, mode="python")(*args)


def mixed(carry: Any, x: Any) -> Any:
    return 0.5 * carry + x, carry * x


def plain_scan(f: Callable[..., Any], carry: Any, xs: Any, reverse: bool = False) -> tuple[Any, list[Any]]:
    ys = []
    for x in xs[::-1] if reverse else xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, ys[::-1] if reverse else ys


# scan -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_gives_the_last_carry_and_a_row_for_each_step(reverse: bool) -> None:
    last, ys = in_python(lambda rows: lax.scan(mixed, np.ones(2), rows, reverse=reverse), ROWS)
    expected, rows = plain_scan(mixed, np.ones(2), ROWS, reverse)
    np.testing.assert_array_equal(last, expected)
    np.testing.assert_array_equal(ys, rows)


@pytest.mark.parametrize("reverse", [False, True])
def test_without_rows_the_carry_is_the_initial_one(reverse: bool) -> None:
    run = ns.jit(lambda rows: lax.scan(mixed, np.full(2, 7.0), rows, reverse=reverse), mode="python")
    last, ys = run(ROWS[:0])
    np.testing.assert_array_equal(last, [7, 7])
    assert ys.shape == (0, 2)


@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_length_stands_in_for_rows(length: int) -> None:
    last, ys = in_python(lambda n: lax.scan(lambda c, x: (c * 2, (x, c)), 1.0, length=n), length)
    assert last == 2.0**length
    assert ys[0] is None
    np.testing.assert_array_equal(ys[1], 2.0 ** np.arange(length))


def test_nests_come_back_as_they_were_given() -> None:
    def step(carry: Any, x: Any) -> Any:
        body, (count, nothing) = carry["body"], carry["rest"]
        moved = Body(body.place + body.speed * x["dt"], body.speed)
        return {"rest": [count + 1, nothing], "body": moved}, {"at": moved, "none": None, "list": [count, 1.5]}

    init = {"body": Body(np.float64(1), np.float64(2)), "rest": [0, None]}
    last, ys = in_python(lambda dt: lax.scan(step, init, {"dt": dt, "unused": (None,)}), np.array([1.0, 0.5, 0.25]))
    assert last == {"body": Body(4.5, 2.0), "rest": [3, None]}
    assert isinstance(ys["at"], Body)
    np.testing.assert_array_equal(ys["at"].place, [3, 4, 4.5])
    assert (ys["none"], [part.tolist() for part in ys["list"]]) == (None, [[0, 1, 2], [1.5, 1.5, 1.5]])


def test_a_list_of_numbers_is_a_nest_and_no_array() -> None:
    (total, product), ys = in_python(lambda xs: lax.scan(lambda c, x: ([c[0] + x, c[1] * x], [1, 2]), [0, 1], xs), np.array([2, 3]))
    assert (total, product) == (5, 6)
    assert [y.tolist() for y in ys] == [[1, 1], [2, 2]]


def test_a_scan_may_have_no_carry_or_nothing_at_all() -> None:
    assert in_python(lambda xs: lax.scan(lambda c, x: (None, x * 2), None, xs)[1], np.arange(3)).tolist() == [0, 2, 4]
    assert in_python(lambda xs: lax.scan(lambda c, x: (None, None), None, xs), np.arange(3)) == (None, None)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_a_carry_of_a_number_takes_the_dtype_of_the_step(dtype: str) -> None:
    for xs in (np.ones(2, dtype), np.ones(0, dtype)):
        last, _ = in_python(lambda xs: lax.scan(lambda c, x: (c + x, None), 1, xs), xs)
        assert (last.dtype, last) == (dtype, 1 + len(xs))


def test_keys_that_are_no_names_of_python_are_keys_all_the_same() -> None:
    init = {"class": 0.0, "two words": 1.0, 3: 2.0}
    last, _ = in_python(lambda xs: lax.scan(lambda c, x: ({**c, "class": c["class"] + x}, None), init, xs), np.ones(4))
    assert last == {"class": 4.0, "two words": 1.0, 3: 2.0}


def test_lengths_that_only_the_run_knows_may_be_symbolic() -> None:
    x, n = nt.dvector("x"), nt.lscalar("n")
    run = ns.function([x, n], [lax.scan(mixed, 1.0, x), lax.scan(mixed, 1.0, x[:n], n)[0]], mode="python")
    for rows in (np.arange(4.0), np.zeros(0)):
        (last, ys), first = run(rows, len(rows))
        assert (last, ys.tolist()) == plain_scan(mixed, 1.0, rows)
        assert first == last


# while_loop -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [1, 9, 10, 11, 0.5, np.float32(3)])
def test_the_condition_is_asked_before_each_step(start: Any) -> None:
    expected = start
    while expected < 10:
        expected = expected * 3
    found = in_python(lambda s: lax.while_loop(lambda s: s < 10, lambda s: s * 3, s), start)
    assert (found, found.dtype) == (expected, np.asarray(start).dtype)


@pytest.mark.parametrize(("most", "expected"), [(0, 0), (3, 3), (10, 10), (100, 10)])
def test_max_steps_ends_a_loop_that_would_go_on(most: int, expected: int) -> None:
    def ten(n: Any) -> Any:
        return lax.while_loop(lambda s: s < 10, lambda s: s + 1, 0, max_steps=n)

    assert in_python(ten, most) == expected
    assert in_python(lambda: ten(np.int32(most))) == expected


def test_the_first_condition_sees_a_number_in_the_dtype_that_it_takes() -> None:
    found = in_python(lambda one: lax.while_loop(lambda s: s - 6 < 100, lambda s: s + one, 5), np.uint8(1))
    assert (found, found.dtype) == (5, "uint8")  # 5 - 6 wraps to 255: no step


@pytest.mark.parametrize("nothing", [(), None, {"a": (), "b": [None]}])
def test_a_carry_of_nothing_comes_back_from_a_loop_that_ends(nothing: Any) -> None:
    assert lax.while_loop(lambda _: False, lambda _: nothing, nothing) == nothing
    assert lax.while_loop(lambda _: True, lambda _: nothing, nothing, max_steps=3) == nothing
    assert in_python(lambda x: (lax.while_loop(lambda _: x > 9, lambda _: nothing, nothing, max_steps=1), x), 3.0)[0] == nothing


def test_a_carry_of_nothing_is_refused_where_the_loop_might_not_end() -> None:
    text = r"init is \(\), without an array that a step could change: the loop would not end where cond .* holds; give an array"
    with pytest.raises(ValueError, match=text):
        lax.while_loop(lambda _: True, lambda _: (), ())
    with pytest.raises(ValueError, match=text):
        in_python(lambda x: (lax.while_loop(lambda _: x > 9, lambda _: (), ()), x), 3.0)


def test_a_loop_of_a_nest_counts_its_steps() -> None:
    def halved(state: Any) -> Any:
        return {"rows": state["rows"] / 2, "steps": state["steps"] + 1, "none": None}

    init = {"rows": ROWS, "steps": 0, "none": None}
    found = in_python(lambda: lax.while_loop(lambda s: s["rows"].max() > 1, halved, init))
    np.testing.assert_array_equal(found["rows"], ROWS / 8)
    assert (found["steps"], found["none"]) == (3, None)


# fori_loop ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (3, 4), (-2, 3), (5, 5), (5, -5)])
def test_a_counted_loop_takes_every_number_below_the_upper_bound(lower: int, upper: int) -> None:
    seen = sum(10.0**i for i in range(lower, upper))
    expected = pytest.approx(1 + seen)
    run = ns.jit(lambda a, b: lax.fori_loop(a, b, lambda i, s: s + 10.0**i, 1.0), mode="python")
    assert run(lower, upper) == expected
    assert in_python(lambda: lax.fori_loop(lower, upper, lambda i, s: s + 10.0**i, 1.0)) == expected


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (np.int8(-100), np.int8(100)),
        (np.uint8(250), np.uint8(255)),
        (np.uint8(250), np.uint8(3)),
        (np.uint64(2**63 + 5), np.uint64(2**63 + 8)),
        (0, np.int32(4)),
        (np.int64(2**63 - 3), np.int64(2**63 - 1)),
    ],
    ids=str,
)
def test_the_counter_has_the_dtype_of_the_bounds_and_never_wraps(lower: Any, upper: Any) -> None:
    def last(i: Any, state: Any) -> Any:
        return i, state[1] + 1

    found, count = in_python(lambda a, b: lax.fori_loop(a, b, last, (np.zeros((), upper.dtype), 0)), lower, upper)
    assert count == max(int(upper) - int(lower), 0)
    assert found.dtype == upper.dtype
    assert int(found) == (int(upper) - 1 if count else 0)


def test_more_steps_than_an_int64_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="n_steps is -1"):
        in_python(lambda a, b: lax.fori_loop(a, b, lambda i, s: s, 0), np.int64(-(2**63)), np.int64(2**63 - 1))


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("init", [(1, 2.5), (2.5, 1), (True + 1, 3j)])
def test_numbers_of_python_that_change_places_are_of_one_dtype(init: Any, steps: int) -> None:
    def changed(n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: (c[1], c[0]), init)

    for found in (changed(steps), in_python(changed, steps), in_python(lambda: changed(steps))):
        assert found == (init[::-1] if steps % 2 else init)
        assert {number.dtype for number in found} == {np.result_type(*init)}
    with pytest.raises(TypeError, match=r"carry\[0\] is int64\[\], but .* returns float64\[\]"):
        lax.fori_loop(0, 3, lambda i, c: (0.5, c[1]), (np.int64(1), 2.5))


def test_a_counted_loop_may_have_nothing_to_carry() -> None:
    assert in_python(lambda n: lax.fori_loop(0, n, lambda i, state: None, None), 3) is None


# map ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 2, np.int64(100)])
def test_a_map_gives_a_row_for_each_row(batch_size: Any) -> None:
    found = in_python(lambda x, k: lax.map(lambda row: (row[0].sum() * row[1], {"k": row[1]}), (x, k), batch_size), ROWS, np.arange(3))
    np.testing.assert_array_equal(found[0], ROWS.sum(axis=1) * [0, 1, 2])
    assert found[1]["k"].tolist() == [0, 1, 2]


def test_a_map_of_no_rows_has_none() -> None:
    assert in_python(lambda x: lax.map(lambda row: row * 2, x), ROWS[:0]).shape == (0, 2)
    assert in_python(lambda x: lax.map(lambda row: None, x), ROWS) is None


# associative_scan -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_elements_are_combined_in_order(n: int, reverse: bool) -> None:
    matrices = np.random.default_rng(3).normal(size=(n, 2, 2))
    ordered = matrices[::-1] if reverse else matrices
    expected = list(ordered[:1])
    for matrix in ordered[1:]:
        expected.append(expected[-1] @ matrix)
    found = in_python(lambda m: lax.associative_scan(np.matmul, m, reverse=reverse), matrices)
    np.testing.assert_allclose(found, np.reshape(expected[::-1] if reverse else expected, (n, 2, 2)), rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_linear_recurrence_runs_along_any_axis(axis: int) -> None:
    def combined(one: Any, other: Any) -> Any:
        assert one[0].shape[axis] == 1
        return one[0] * other[0], one[1] * other[0] + other[1]

    factor, shift = ROWS / 3, ROWS - 2
    product, found = in_python(lambda a, b: lax.associative_scan(combined, (a, b), axis=axis), factor, shift)
    np.testing.assert_allclose(product, np.cumprod(factor, axis=axis), rtol=1e-14)
    expected = np.zeros_like(shift)
    state = 0.0
    for a, b, row in zip(*(np.moveaxis(x, axis, 0) for x in (factor, shift, expected)), strict=True):
        row[...] = state = a * state + b
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_sign_of_a_zero_and_booleans_come_through() -> None:
    assert np.signbit(in_python(lambda x: lax.associative_scan(np.maximum, x), np.array([-0.0]))).all()
    assert in_python(lambda x: lax.associative_scan(np.logical_or, x), np.array([False, True, False])).tolist() == [False, True, True]


# running sums and their like ------------------------------------------------------------------------------------------

RUNNING = {
    lax.cumsum: np.cumsum,
    lax.cumprod: np.cumprod,
    lax.cummax: np.maximum.accumulate,
    lax.cummin: np.minimum.accumulate,
    lax.cumlogsumexp: np.logaddexp.accumulate,
}


@pytest.mark.parametrize("running", RUNNING, ids=lambda f: f.__name__)
def test_running_results_go_along_an_axis_in_both_directions(running: Callable[..., Any]) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4))
    for axis in (0, 1, -1):
        expected = RUNNING[running](x, axis=axis)
        np.testing.assert_allclose(in_python(lambda x, axis=axis: running(x, axis), x), expected, rtol=1e-14)
        expected = np.flip(RUNNING[running](np.flip(x, axis), axis=axis), axis)
        np.testing.assert_allclose(in_python(lambda x, axis=axis: running(x, axis, reverse=True), x), expected, rtol=1e-14)
    assert in_python(running, np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("running", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin], ids=lambda f: f.__name__)
def test_running_results_keep_the_dtype(running: Callable[..., Any]) -> None:
    x = np.array([200, 100, 3], "uint8")
    for found in (running(x), in_python(running, x)):
        assert found.dtype == "uint8"
    assert lax.cumsum(x).tolist() == [200, 44, 47]


def test_large_exponents_do_not_overflow_and_infinities_stay() -> None:
    x = np.array([-np.inf, -np.inf, 1000.0, 1000.0])
    np.testing.assert_allclose(in_python(lax.cumlogsumexp, x), [-np.inf, -np.inf, 1000.0, 1000.0 + np.log(2)])


def test_running_results_of_arrays_run_now() -> None:
    assert isinstance(lax.cumsum([1.0, 2.0], reverse=True), np.ndarray)
    assert lax.cumsum([1.0, 2.0], reverse=True).tolist() == [3, 2]
