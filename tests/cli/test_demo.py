"""The tour of `numbascan demo`: its data, and the fit that it prints."""

from types import SimpleNamespace

import numpy as np
import pytest

import numbascan as ns
from numbascan import demo, errors


class Device:
    """A GPU as Numba tells of it."""

    id, name, compute_capability = 1, b"Toy", (9, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def get_primary_context(self):
        return SimpleNamespace(get_memory_info=lambda: (3_200_000_000, 8_000_000_000))


def test_a_device_is_told_with_its_memory():
    assert errors._described(Device()) == "1: Toy, compute capability 9.0, 3.2 of 8.0 GB free"


def test_the_ensemble_is_right_and_a_wrong_one_is_noticed(monkeypatch):
    monkeypatch.setattr(demo, "ENSEMBLE", 64)
    right, wrong = demo.Tour(), demo.Tour()
    right.ensemble()
    times = wrong.times
    monkeypatch.setattr(wrong, "times", lambda *args, **options: (times(*args, **options)[0], np.zeros((64, 3))))
    wrong.ensemble()
    assert (right.wrong, wrong.wrong) == ([], ["after 50 steps all are where plain NumPy has them"])


@pytest.fixture(scope="module")
def returns():
    return demo.oil_returns()


@pytest.fixture(scope="module")
def loss_and_gradient():
    return ns.value_and_grad(demo.garch_loss)


def test_oil_returns_are_those_of_every_trading_day(returns):
    assert len(returns) == 8320
    assert returns[0] == pytest.approx(100 * (26 / 25.56 - 1))
    assert returns.min() == pytest.approx(-33.395349, abs=1e-6)  # 1991-01-17, from 32.25 to 21.48 dollars
    assert returns[-1] == pytest.approx(100 * (46.92 / 46.31 - 1))


def test_garch_fit_is_that_of_another_program(returns, loss_and_gradient):
    fit, _ = demo.fit_garch(loss_and_gradient, True, returns)
    hessian = ns.hessian(demo.garch_loss)(fit.x, returns, demo.variance_before(returns))
    assert -fit.fun == pytest.approx(-18165.858869544, abs=1e-7)  # arch 8.0.0, as in demo.py
    assert np.sqrt(np.diag(np.linalg.inv(hessian))) == pytest.approx(demo.OIL_ERRORS, rel=1e-3)
    assert np.all(abs(fit.x - demo.OIL_ESTIMATES) < 1e-3 * np.array(demo.OIL_ERRORS))


def test_garch_gradient_agrees_with_finite_differences(returns, loss_and_gradient):
    loss, before = ns.jit(demo.garch_loss), demo.variance_before(returns)
    at = np.array([0.1, 0.2, 0.15, 0.7])
    _, gradient = loss_and_gradient(at, returns, before)
    for i, step in enumerate(1e-5 * np.eye(4)):
        difference = (loss(at + step, returns, before) - loss(at - step, returns, before)) / 2e-5
        assert gradient[i] == pytest.approx(difference, rel=1e-6)


def test_garch_fit_without_gradients_needs_more_evaluations_for_the_same_numbers(returns, loss_and_gradient):
    exact, _ = demo.fit_garch(loss_and_gradient, True, returns)
    differences, _ = demo.fit_garch(ns.jit(demo.garch_loss), False, returns)
    assert np.all(abs(exact.x - differences.x) < 1e-3 * np.array(demo.OIL_ERRORS))
    assert differences.nfev > 2 * exact.nfev


def test_demo_says_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(demo, "OIL_LOG_LIKELIHOOD", -18165.0)
    tour = demo.Tour()
    tour.garch()
    assert tour.wrong == ["the log-likelihood that the package arch finds"]
    assert "WRONG: the log-likelihood" in capsys.readouterr().out
