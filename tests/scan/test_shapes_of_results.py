"""The shape of a loop's result, and of what is read of it, costs neither its steps nor its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

x, first, w = nt.dtensor3("x"), nt.dtensor3("first"), nt.dmatrix("w")
X, FIRST, W = np.ones((90, 30, 20)) / 7, np.ones((4, 30, 20)), np.eye(20)


def _results(**options: Any) -> Any:
    infos = [None, {"initial": first, "taps": [-4]}]
    return ns.scan(lambda row, u, w: (row.sum(), np.tanh(u @ w + row)), x, infos, w, return_updates=False, **options)


def _shapes(out: Any) -> list[Any]:
    views = [
        out,
        out[1],
        out[-1],
        out[1:],
        out[-3:],
        out[10:80:7, 2:],
        out[::-1, :, 3],
        out.reshape((out.shape[0], -1)),
        out.T,
        2 * out[5:],
    ]
    return [dim for view in views for dim in view.shape]


@pytest.mark.parametrize("options", [{}, {"go_backwards": True}, {"checkpoint": 5}, {"n_steps": nt.lscalar("n")}])
def test_no_step_runs_and_no_row_is_stored_for_a_shape(options: dict[str, Any]) -> None:
    inputs = [x, first, w, *(value for key, value in options.items() if key == "n_steps")]
    shapes = _shapes(_results(**options)[1])
    measure = ns.function(inputs, nt.stack([nt.as_tensor_variable(dim) for dim in shapes]), on_unused_input="ignore")
    n = [40] * (len(inputs) - 3)
    whole = np.zeros((*n, 30, 20)) if n else np.zeros((90, 30, 20))
    np.testing.assert_array_equal(_shapes(whole), measure(X, FIRST, W, *n))
    assert measure.memory().total == 8 * len(shapes)
    assert "for t in" not in measure.source()


def test_with_until_steps_run_and_no_path_is_stored() -> None:
    out = ns.scan(lambda row, u: (np.tanh(u + row), ns.until(u.sum() < 409)), x, {"initial": first, "taps": [-4]}, return_updates=False)
    shapes = nt.stack([nt.as_tensor_variable(dim) for dim in _shapes(out)])
    inputs = [x, first]
    measure, whole = ns.function(inputs, shapes), ns.function(inputs, out)
    for rows in (X, 3 * X):
        np.testing.assert_array_equal(_shapes(whole(rows, FIRST)), measure(rows, FIRST))
    assert measure.memory().per_step == 0


def test_the_shape_of_what_takes_the_place_of_a_result_counts() -> None:
    out = _results()[1]
    part = out[2:]
    shapes = [out[1:].shape[0], part.shape[0], part[3:].shape[0], out[-2:, 1].shape[1]]
    y = nt.dtensor3("y")
    inputs = [x, first, w, y]
    replaced = ns.function(inputs, shapes, givens={out: y}, on_unused_input="ignore")
    assert [int(dim) for dim in replaced(X, FIRST, W, X[:11])] == [10, 9, 6, 20]
    other = ns.function(inputs, shapes, givens={part: y}, on_unused_input="ignore")
    assert [int(dim) for dim in other(X, FIRST, W, X[:11])] == [89, 11, 8, 20]
    for mode in (None, "python"):
        as_input = ns.function([out], [out[1:].shape[0], part.shape[0]], mode=mode)
        assert [int(dim) for dim in as_input(X[:11])] == [10, 9]


def test_a_step_measures_the_result_of_a_loop_inside_it_without_running_it() -> None:
    def step(row: Any, total: Any, first: Any, w: Any) -> Any:
        inner = ns.scan(lambda s: np.tanh(s @ w), outputs_info={"initial": first, "taps": [-4]}, n_steps=7, return_updates=False)
        return total + row.sum() * inner[1:].shape[0] * inner[1].shape[0]

    total = ns.scan(step, x, np.float64(0), [first, w], return_updates=False)[-1]
    f = ns.function([x, first, w], total, on_unused_input="ignore")
    np.testing.assert_allclose(f(X, FIRST, W), X.sum() * 6 * 30)
    assert f.memory().total == 0
    assert "tanh" not in f.source()
