"""Functions of SciPy that converted code calls: ours give what SciPy gives, or are refused by the argument that they lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import numbascan as ns
from numbascan.front.plain.scipys import _OURS
from numbascan.front.tree import flattened

A = np.array([[4.0, 1.0, -0.5, 0.25], [0.5, 3.0, 0.75, -1.0], [0.0, 1.25, 5.0, 0.5], [-0.75, 0.5, 1.0, 6.0]])
B, V = A[:, :2] * 2 + 1, np.array([1.0, -2.0, 0.5, 3.0])
S = A @ A.T

CALLS: dict[str, Callable[..., Any]] = {
    "block_diag": lambda a, s, b, v: scipy.linalg.block_diag(a, b),
    "cho_factor": lambda a, s, b, v: scipy.linalg.cho_solve(scipy.linalg.cho_factor(s), v),
    "cho_solve": lambda a, s, b, v: scipy.linalg.cho_solve(scipy.linalg.cho_factor(s, lower=True), b),
    "cholesky": lambda a, s, b, v: (scipy.linalg.cholesky(s), scipy.linalg.cholesky(s, True), scipy.linalg.cholesky(np.triu(s))),
    "det": lambda a, s, b, v: scipy.linalg.det(a),
    "eigh": lambda a, s, b, v: scipy.linalg.eigh(a, lower=False, eigvals_only=True),
    "eigvalsh": lambda a, s, b, v: (scipy.linalg.eigvalsh(a), scipy.linalg.eigvalsh(a, lower=False)),
    "expm": lambda a, s, b, v: scipy.linalg.expm(a / 4),
    "inv": lambda a, s, b, v: scipy.linalg.inv(a, check_finite=False),
    "lu": lambda a, s, b, v: scipy.linalg.lu(a),
    "lu_factor": lambda a, s, b, v: scipy.linalg.lu_factor(a)[0],
    "lu_solve": lambda a, s, b, v: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), v),
    "norm": lambda a, s, b, v: (scipy.linalg.norm(v), scipy.linalg.norm(b, 1), scipy.linalg.norm(b, axis=0)),
    "pinv": lambda a, s, b, v: (scipy.linalg.pinv(b), scipy.linalg.pinv(b, rtol=0.4)),
    "qr": lambda a, s, b, v: (scipy.linalg.qr(b), scipy.linalg.qr(b, mode="economic"), scipy.linalg.qr(b, mode="r")),
    "solve": lambda a, s, b, v: (scipy.linalg.solve(a, v), scipy.linalg.solve(a, b)),
    "solve_continuous_lyapunov": lambda a, s, b, v: scipy.linalg.solve_continuous_lyapunov(a, s),
    "solve_discrete_lyapunov": lambda a, s, b, v: scipy.linalg.solve_discrete_lyapunov(a / 9, s),
    "solve_sylvester": lambda a, s, b, v: scipy.linalg.solve_sylvester(a, s, a),
    "solve_triangular": lambda a, s, b, v: (scipy.linalg.solve_triangular(a, v), scipy.linalg.solve_triangular(a, b, 1, lower=True)),
    "svd": lambda a, s, b, v: (scipy.linalg.svd(b, full_matrices=False)[1], scipy.linalg.svd(b, compute_uv=False)),
    "svdvals": lambda a, s, b, v: scipy.linalg.svdvals(b),
    "log_softmax": lambda a, s, b, v: scipy.special.log_softmax(a, axis=1),
    "logsumexp": lambda a, s, b, v: (scipy.special.logsumexp(v), scipy.special.logsumexp(a, axis=0, keepdims=True)),
    "softmax": lambda a, s, b, v: (scipy.special.softmax(v), scipy.special.softmax(a, axis=1)),
}


@pytest.mark.parametrize("name", sorted(name for names in _OURS.values() for name in names))
def test_functions_of_scipy(name: str) -> None:
    f = CALLS[name]
    expected, result = f(A, S, B, V), ns.jit(f, mode="python")(A, S, B, V)
    for one, other in zip(flattened(expected)[0], flattened(result)[0], strict=True):
        np.testing.assert_allclose(np.abs(other) if name == "qr" else other, np.abs(one) if name == "qr" else one, rtol=1e-10, atol=1e-12)


def test_a_likelihood_written_with_scipy_is_compiled_and_differentiated() -> None:
    def likelihood(s: Any, v: Any) -> Any:
        factor = scipy.linalg.cho_factor(s, lower=True)
        return -np.log(np.diag(factor[0])).sum() - 0.5 * v @ scipy.linalg.cho_solve(factor, v) + scipy.special.logsumexp(v)

    assert ns.jit(likelihood)(S, V) == pytest.approx(likelihood(S, V), rel=1e-13)
    expected = -np.linalg.solve(S, V) + scipy.special.softmax(V)
    np.testing.assert_allclose(ns.grad(likelihood, argnums=1)(S, V), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda a: scipy.linalg.solve(a, a, assume_a="pos"), "assume_a"),
        (lambda a: scipy.linalg.solve(a, a, transposed=True), r"scipy\.linalg\.solve\(transposed=True\).*leave transposed out"),
        (lambda a: scipy.linalg.eigh(a), r"np\.linalg\.eigh"),
        (lambda a: scipy.linalg.eigh(a, a), r"scipy\.linalg\.eigh\(b=.*leave b out"),
        (lambda a: scipy.linalg.qr(a, pivoting=True), r"qr\(pivoting=True\)"),
        (lambda a: scipy.linalg.qr(a, mode="raw"), "mode 'raw'"),
        (lambda a: scipy.linalg.pinv(a, atol=0.1), "give rtol"),
        (lambda a: scipy.special.logsumexp(a, b=a), r"logsumexp\(b="),
        (lambda a: scipy.linalg.sqrtm(a), "sqrtm"),
        (lambda a: scipy.linalg.inv(a.astype("float32")), r"inv of .*float64"),
        (lambda a: scipy.linalg.pinv(np.stack([a, a])), r"pinv of .*stack"),
    ],
)
def test_what_ours_lack_is_named(f: Callable[..., Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError, ns.TracerError), match=rf"(?s)(?=.*test_scipy\.py, line \d+).*{words}"):
        ns.jit(f, mode="python")(A)


def test_what_is_not_finite_is_refused_as_scipy_refuses_it() -> None:
    a = A.copy()
    a[0, 0] = np.nan
    with pytest.raises(ValueError, match="infs or NaNs"):
        ns.jit(lambda a: scipy.linalg.inv(a), mode="python")(a)
    assert np.isnan(ns.jit(lambda a: scipy.linalg.inv(a, check_finite=False), mode="python")(a)).any()
    np.testing.assert_allclose(ns.jit(lambda a: scipy.linalg.inv(a))(np.array([[2, 1], [1, 3]])), [[0.6, -0.2], [-0.2, 0.4]])


def test_known_numbers_are_scipys() -> None:
    assert ns.jit(lambda x: x * scipy.linalg.norm(V, check_finite=True), mode="python")(2.0) == 2 * scipy.linalg.norm(V)
