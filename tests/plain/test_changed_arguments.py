"""Lists, dicts and objects among arguments: a traced function has its own, so what it changes of them is refused or was made for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import numbascan as ns


@dataclass
class Rates:
    k: Any
    damp: Any = 0.5


def doubles_key(p: dict[str, Any]) -> Any:
    p["k"] = p["k"] * 2
    return p["k"]


def doubles_field(p: Rates) -> Any:
    p.k *= 2
    return p.k


def sorts(p: list[Any]) -> Any:
    p.sort()
    return p[0]


def appends(p: list[Any]) -> Any:
    p.append(p[0])
    return p[-1]


def deep(p: dict[str, Any]) -> Any:
    p["a"][0] = p["a"][0] + 1.0
    return p["a"][0]


def in_a_loop(p: Rates) -> Any:
    while p.k < 100.0:
        p.k *= 2
    return p.k


CHANGES: list[Any] = [
    (doubles_key, {"k": 3.0}, r"p holds \(dict: p_k\)"),
    (doubles_field, Rates(3.0), r"p holds \(Rates: p_k\)"),
    (sorts, [3.0, 1.0], r"p holds \(list: p_0\)"),
    (appends, [3.0], r"p holds \(list\)"),
    (deep, {"a": [1.0]}, r"p holds \(dict: p_a_0\)"),
    (in_a_loop, Rates(3.0), r"p holds \(Rates: p_k\)"),
]


@pytest.mark.parametrize("f, given, words", CHANGES)
def test_what_the_caller_would_not_see_is_refused(f: Callable[[Any], Any], given: Any, words: str) -> None:
    before = copy.deepcopy(given)
    with pytest.raises(ValueError, match=f"{f.__name__} changes what its argument {words}.*copy.copy"):
        ns.jit(f, mode="python")(given)
    with pytest.raises(ValueError, match="changes what its argument p holds"):
        ns.jit(f, mode="python")(p=given)
    assert given == before


@pytest.mark.parametrize("f, given, words", CHANGES)
def test_a_copy_may_be_changed(f: Callable[[Any], Any], given: Any, words: str) -> None:
    assert ns.jit(lambda p: f(copy.deepcopy(p)), mode="python")(given) == f(copy.deepcopy(given))


@pytest.mark.parametrize("f, given, words", [one for one in CHANGES if one[0] in (doubles_key, doubles_field, in_a_loop)])
def test_a_non_sequence_that_a_step_changes_is_refused(f: Callable[[Any], Any], given: Any, words: str) -> None:
    """Under Python the next step would see the change."""

    def step(total: Any, p: Any) -> Any:
        return total + f(p)

    before = copy.deepcopy(given)
    with pytest.raises(ValueError, match=f"scan 'step': the step step .* changes what its argument {words}"):
        ns.scan(step, outputs_info=0.0, non_sequences=[given], n_steps=3, mode="python")
    assert given == before


def test_a_state_and_a_row_are_the_steps_own() -> None:
    def step(row: dict[str, Any], state: Rates) -> Rates:
        row["x"] = row["x"] * 2
        state.k += row["x"]
        return state

    x = np.array([1.0, 2.0, 3.0])
    path = ns.scan(step, sequences=[{"x": x}], outputs_info=Rates(0.0), return_updates=False, mode="python")
    np.testing.assert_array_equal(path.k, np.cumsum(2 * x))


def test_arrays_in_a_nest_are_still_those_of_the_caller() -> None:
    def grow(p: dict[str, Any]) -> Any:
        p["w"] += 1.0
        p["w"][0] = 5.0
        return p["w"].sum()

    given = {"w": np.zeros(3)}
    assert ns.jit(grow, mode="python")(given) == 7.0
    assert given["w"].tolist() == [5.0, 1.0, 1.0]


def test_generators_beside_what_is_changed() -> None:
    def f(p: dict[str, Any], rng: np.random.Generator) -> Any:
        p["k"] = rng.normal()
        return p["k"]

    with pytest.raises(ValueError, match=r"argument p holds \(dict: p_k\)"):
        ns.jit(f, mode="python")({"k": 1.0}, np.random.default_rng(0))


# a trace that is begun again ------------------------------------------------------------------------------------------


def _element_then_table(x: Any, k: Any) -> Any:
    x[k] += 1
    m = np.ones(4)
    m[k] = x[k]
    return m


def _positions_then_table(x: Any, k: Any) -> Any:
    x[[0, 1]] = x[[1, 0]]
    m = np.zeros(6)
    m[k] = x[0]
    return m


def _view_then_table(x: Any, k: Any) -> Any:
    x[1:][::2] *= 3
    m = np.zeros(2)
    m[k] = x.sum()
    return m


def _leapfrog(x: Any, k: Any) -> Any:
    v, energy = np.ones(len(x)), np.zeros(5)
    for s in range(5):
        v -= 0.1 * x
        x += 0.1 * v
        energy[s] = x @ x
    return energy


@pytest.mark.parametrize("n", [4, 20])
@pytest.mark.parametrize("f", [_element_then_table, _positions_then_table, _view_then_table, _leapfrog])
def test_an_argument_is_written_once_though_the_trace_is_begun_again(f: Callable[..., Any], n: int) -> None:
    """A traced value in an array that NumPy has made begins the trace anew, with arguments as they were."""
    x, same = np.arange(float(n)), np.arange(float(n))
    np.testing.assert_allclose(ns.jit(f)(x, 1), f(same, 1))
    np.testing.assert_allclose(x, same)


def test_a_nest_of_arrays_and_a_step_are_written_once_though_the_trace_is_begun_again() -> None:
    def of_nest(p: dict[str, Any], k: Any) -> Any:
        p["a"][0] += 1
        part = p["a"][1:]
        part *= 2
        m = np.zeros(3)
        m[k] = p["a"][0]
        return m

    p, same = {"a": np.arange(3.0)}, {"a": np.arange(3.0)}
    np.testing.assert_allclose(ns.jit(of_nest)(p, 1), of_nest(same, 1))
    np.testing.assert_allclose(p["a"], same["a"])

    def step(u: Any, s: Any) -> Any:
        s[0] += 1
        m = np.zeros(3)
        m[u] = s[0]
        return s + m

    rows = ns.scan(step, np.array([0, 1, 2]), np.zeros(3), return_updates=False)
    np.testing.assert_allclose(rows, [[2, 0, 0], [3, 3, 0], [4, 3, 4]])
