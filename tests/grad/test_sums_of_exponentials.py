"""The greatest value that logsumexp, softmax and log_softmax take off is a constant for derivatives; these are exact at every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import numbascan as ns
import numbascan.tensor as nt

INF = np.inf
ROWS = {
    "plain": [0.5, -1.25, 2.0, 0.0],
    "ties of the greatest": [2.0, 2.0, -1.0, 2.0],
    "beyond the range of exp": [1000.0, 999.5, -1000.0, 998.0],
    "a probability of 0": [-INF, 0.5, 1.0, -INF],
}
WEIGHTS = np.array([0.3, -1.2, 0.7, 2.0])


def derivatives(f: Any, x: Any) -> tuple[Any, Any, Any]:
    """The gradient, the Hessian, and the third derivative along ones, in which the whole is constant or linear."""
    third = ns.jit(lambda x: ns.jvp(lambda x: ns.hessian(f)(x), (x,), (np.ones(4),))[1], mode="python")
    return (*(ns.jit(lambda x, way=way: way(f)(x), mode="python")(x) for way in (ns.grad, ns.hessian)), third(x))


@pytest.mark.parametrize("row", ROWS)
def test_logsumexp_has_softmax_as_its_gradient(row: str) -> None:
    x = np.array(ROWS[row])
    p = scipy.special.softmax(x)
    first, second, third = derivatives(nt.logsumexp, x)
    np.testing.assert_allclose(first, p, rtol=1e-14)
    np.testing.assert_allclose(second, np.diag(p) - np.outer(p, p), rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(third, np.zeros((4, 4)), atol=1e-15)


@pytest.mark.parametrize("row", ROWS)
def test_softmax_has_exact_derivatives(row: str) -> None:
    x = np.array(ROWS[row])
    p, w = scipy.special.softmax(x), WEIGHTS
    first, second, third = derivatives(lambda x: (nt.softmax(x) * w).sum(), x)
    mean = p @ w
    np.testing.assert_allclose(first, p * (w - mean), rtol=1e-13, atol=1e-16)
    expected = np.diag(p * (w - mean)) - np.outer(p, p * (w - mean)) - np.outer(p * (w - mean), p)
    np.testing.assert_allclose(second, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(third, np.zeros((4, 4)), atol=1e-15)


@pytest.mark.parametrize("row", [row for row in ROWS if row != "a probability of 0"])
def test_log_softmax_has_exact_derivatives(row: str) -> None:
    x = np.array(ROWS[row])
    p, w = scipy.special.softmax(x), WEIGHTS
    first, second, third = derivatives(lambda x: (nt.log_softmax(x) * w).sum(), x)
    np.testing.assert_allclose(first, w - w.sum() * p, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(second, -w.sum() * (np.diag(p) - np.outer(p, p)), rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(third, np.zeros((4, 4)), atol=1e-15)


def test_where_the_value_is_not_a_number_of_any_use_neither_is_the_gradient() -> None:
    gradient = ns.jit(lambda x: ns.grad(nt.logsumexp)(x), mode="python")
    with np.errstate(all="ignore"):
        assert np.isnan(gradient(np.full(3, -INF))).all()
        np.testing.assert_array_equal(gradient(np.array([INF, 0.0, 1.0])), [np.nan, 0.0, 0.0])


def test_the_text_of_the_gradient_does_not_look_for_the_greatest_again() -> None:
    gradient = ns.grad(lambda x: nt.logsumexp(x, axis=1).sum())
    x = np.arange(60.0).reshape(3, 20) / 7
    np.testing.assert_allclose(gradient(x), scipy.special.softmax(x, axis=1), rtol=1e-13)
    text = gradient.source()
    assert (text.count("np.maximum("), text.count("exp("), text.count("isnan")) == (1, 1, 0)
