"""Choices under JAX's names: one branch is computed, indices are clamped, results have one type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax

BRANCHES: list[Callable[..., Any]] = [lambda x: x, lambda x: x * 10, lambda x: -x]


def in_python(f: Callable[..., Any], *args: Any) -> Any:
    return ns.jit(f, mode="python")(*args)


@pytest.mark.parametrize("pred", [True, False, 2, 0, 0.5, np.bool_(True), np.array(0)], ids=repr)
def test_a_condition_holds_where_it_is_not_0(pred: Any) -> None:
    run = ns.jit(lambda p, a, b: lax.cond(p, lambda a, b: {"r": (a, None)}, lambda a, b: {"r": (b, None)}, a, b), mode="python")
    assert run(pred, 1.0, 2.0) == {"r": (1.0 if pred else 2.0, None)}


def test_the_other_branch_is_not_computed() -> None:
    def fails(x: Any) -> Any:
        return np.linalg.inv(x * 0)

    run = ns.jit(lambda p, x: lax.cond(p, fails, lambda x: x, x), mode="python")
    np.testing.assert_array_equal(run(False, np.eye(2)), np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        run(True, np.eye(2))


def test_keys_may_be_written_in_another_order() -> None:
    run = ns.jit(lambda p: lax.cond(p, lambda: {"a": 1, "b": 2}, lambda: {"b": 4, "a": 3}), mode="python")
    assert (run(True), run(False)) == ({"a": 1, "b": 2}, {"a": 3, "b": 4})


def test_a_number_takes_the_dtype_of_the_other_branches() -> None:
    found = in_python(lambda k, x: lax.switch(k, [lambda x: 1, lambda x: x, lambda x: 2], x), 2, np.float32(7))
    assert (found, found.dtype) == (2, "float32")


def test_branches_may_return_nothing() -> None:
    assert in_python(lambda p: lax.cond(p, lambda: None, lambda: None), True) is None


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint8])
def test_an_index_is_clamped(dtype: Any) -> None:
    run = ns.jit(lambda k: lax.switch(k, BRANCHES, 3.0), mode="python")
    indices = [0, 1, 2, 3, 100] if dtype is np.uint8 else [-100, -1, 0, 1, 2, 3, 100]
    assert [float(run(dtype(k))) for k in indices] == [[3.0, 30.0, -3.0][min(max(k, 0), 2)] for k in indices]


def test_there_may_be_many_branches() -> None:
    run = ns.jit(lambda k, x: lax.switch(k, [lambda x, m=m: x + m for m in range(37)], x), mode="python")
    assert [float(run(k, 0.5)) for k in range(-1, 38)] == [min(max(k, 0), 36) + 0.5 for k in range(-1, 38)]


def test_one_branch_is_no_choice() -> None:
    assert in_python(lambda k: lax.switch(k, BRANCHES[1:2], 3.0), -5) == 30


def test_each_row_of_a_scan_chooses() -> None:
    found = in_python(lambda ks: lax.scan(lambda c, k: (lax.switch(k, BRANCHES, c), None), 1, ks)[0], np.array([1, 2, 0, 9, -1]))
    assert found == 10


def test_each_lane_chooses() -> None:
    run = ns.vmap(ns.jit(lambda k, x: (lax.switch(k, BRANCHES, x), lax.cond(k > 0, np.sqrt, np.negative, x)), mode="python"))
    found = run(np.array([-1, 0, 1, 7]), np.array([1.0, 2.0, 4.0, 9.0]))
    np.testing.assert_array_equal(found, [[1, 2, 40, -9], [-1, -2, 2, 3]])


def test_a_selection_is_elementwise_and_keeps_the_dtype() -> None:
    a, b = np.array([1, 2], "int16"), np.array([3, 4], "int16")
    for found in (lax.select(np.array([True, False]), a, b), in_python(lax.select, np.array([True, False]), a, b)):
        assert (found.tolist(), found.dtype) == ([1, 4], "int16")
    for run in (lax.select, lambda *args: in_python(lax.select, *args)):
        assert run(False, a, b).tolist() == [3, 4]
        assert run(True, 1.0, 2.0) == 1


def doubled(p: dict[str, Any]) -> Any:
    p["a"] = p["a"] * 2
    return p["a"]


def raised(p: dict[str, Any]) -> Any:
    p["a"] = p["a"] + 100
    return p["a"]


@pytest.mark.parametrize("x", [-1.0, 1.0])
@pytest.mark.parametrize("wrap", [lambda f: f, functools.partial])
def test_branches_have_nests_of_their_own(x: float, wrap: Callable[..., Any]) -> None:
    """What one changes of a dict, neither the other nor the code behind gets: branches are traced one after the other."""

    def program(x: float) -> Any:
        p = {"a": x}
        chosen = lax.cond(x > 0, wrap(doubled), wrap(raised), p)
        return chosen, lax.switch(1, [wrap(doubled), wrap(raised), wrap(doubled)], p), p["a"]

    expected = (2 * x if x > 0 else x + 100, x + 100, x)
    assert ns.jit(program, mode="python")(x) == expected
    assert lax.cond(x > 0, wrap(doubled), wrap(raised), {"a": x}) == expected[0]


def test_loops_have_nests_of_their_own() -> None:
    start = {"a": 1.0}
    assert lax.while_loop(lambda c: doubled(c) < 10, lambda c: {"a": c["a"] + 1}, start)["a"] == 5.0
    assert lax.fori_loop(0, 3, lambda i, c: {"a": doubled(c)}, start)["a"] == 8.0
    assert start == {"a": 1.0}
