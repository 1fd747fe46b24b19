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


def test_nothing_moves_a_sum_of_nothing() -> None:
    """Where all are -inf, a derivative of NaN would spoil the sums that it comes into with the weight 0."""
    for mode in (None, "python"):
        for way in (ns.grad, ns.hessian):
            assert (ns.jit(lambda x, way=way: way(nt.logsumexp)(x), mode=mode)(np.full(3, -INF)) == 0).all()
            assert (ns.jit(lambda x, way=way: way(lambda x: np.logaddexp(x[0], x[1]))(x), mode=mode)(np.full(3, -INF)) == 0).all()


def test_states_of_a_hidden_markov_model_that_nothing_reaches_leave_the_gradient_as_it_is() -> None:
    moves = np.array([[0.7, 0.3, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]])
    emissions = np.array([[0.5, 0.5], [0.1, 0.9], [0.3, 0.7]])
    observed = np.array([0, 1, 1, 0, 1])

    def likelihood(log_emissions: Any) -> Any:
        with np.errstate(divide="ignore"):
            log_moves, start = np.log(moves), np.log([1.0, 0, 0])

        def forward(k: Any, alpha: Any) -> Any:
            return nt.logsumexp(alpha[:, None] + log_moves, axis=0) + log_emissions[:, k]

        path = ns.scan(forward, sequences=observed[1:], outputs_info=start + log_emissions[:, 0], return_updates=False)
        return nt.logsumexp(path[-1])

    def by_hand(log_emissions: Any) -> Any:
        alpha = np.array([1.0, 0, 0]) * np.exp(log_emissions[:, 0])
        for k in observed[1:]:
            alpha = (alpha @ moves) * np.exp(log_emissions[:, k])
        return np.log(alpha.sum())

    at, shift = np.log(emissions), 1e-6
    wanted = np.zeros((3, 2))
    for place in np.ndindex(3, 2):
        one = np.zeros((3, 2))
        one[place] = shift
        wanted[place] = (by_hand(at + one) - by_hand(at - one)) / (2 * shift)
    value, gradient = ns.value_and_grad(likelihood)(at)
    assert value == pytest.approx(by_hand(at), rel=1e-13)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8)


def test_beside_infinity_there_is_no_gradient() -> None:
    gradient = ns.jit(lambda x: ns.grad(nt.logsumexp)(x), mode="python")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gradient(np.array([INF, 0.0, 1.0])), [np.nan, 0.0, 0.0])


def test_the_text_of_the_gradient_does_not_look_for_the_greatest_again() -> None:
    gradient = ns.grad(lambda x: nt.logsumexp(x, axis=1).sum())
    x = np.arange(60.0).reshape(3, 20) / 7
    np.testing.assert_allclose(gradient(x), scipy.special.softmax(x, axis=1), rtol=1e-13)
    text = gradient.source()
    assert (text.count(" = max_or_nan("), text.count("exp_in_lanes("), text.count("isnan")) == (1, 1, 0)
