"""Singular values, pseudo-inverses, LU factors, eigenvalues and equations between matrices: NumPy's and SciPy's values, and derivatives."""

import numpy as np
import pytest
import scipy.linalg
from ops.derivative_checks import check_card, random_like
from ops.functions import assert_as_numpy, flat, traced
from ops.test_linalg_derivatives import Reverse

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime.routines import linalg, spectral
from numbascan.errors import NullGradientError
from numbascan.ops.card import CARDS
from numbascan.oracle.interpret import interpret

RNG = np.random.default_rng(3)
A, B, S = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3, 5)), RNG.normal(size=(3, 3))
Z, SS = S + 1j * RNG.normal(size=(3, 3)), RNG.normal(size=(2, 3, 3))
RIGHT = RNG.normal(size=(4, 2))
OF_RANK_1 = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0])
SMALL = RNG.normal(size=(2, 2))


def assert_as_scipy(function, wanted, *arrays):
    """The function gives on variables what `wanted` gives on arrays: values, shapes, dtypes."""
    exact = [np.asarray(x) for x in flat(wanted(*arrays))]
    for is_known in (True, False):
        graph, arguments = traced(function, arrays, is_known)
        for found, value in zip(interpret(graph, arguments), exact, strict=True):
            assert (np.shape(found), found.dtype) == (value.shape, value.dtype)
            np.testing.assert_allclose(found, value, rtol=1e-10, atol=1e-5 if value.dtype.name in ("float32", "complex64") else 1e-11)


# values -------------------------------------------------------------------------------------------------------------


def test_singular_values_and_pseudo_inverses():
    assert_as_numpy(
        lambda a, b, s, z: [
            *(np.linalg.svdvals(a), np.linalg.svd(b, compute_uv=False), *np.linalg.svd(z), *np.linalg.svd(s, full_matrices=False)),
            *(*np.linalg.svd(a), *np.linalg.svd(a[:0]), *np.linalg.svd(b[0], False), np.linalg.pinv(a), np.linalg.pinv(b, 0.2)),
            *(np.linalg.pinv(b, np.array([0.1, 0.9])), np.linalg.pinv(a, rtol=None), np.linalg.pinv(a.astype("float32"))),
            *(np.linalg.pinv(a[:0]), np.linalg.pinv((s * 9).astype("int64"))),
        ],
        *(A, B, S, Z),
    )
    lower = np.tril(Z)
    assert_as_scipy(lambda z: nt.linalg.pinv(z, hermitian=True), lambda z: np.linalg.pinv(lower + np.tril(Z, -1).conj().T), Z)
    assert np.linalg.svd(nt.dmatrix("x"))._fields == np.linalg.svd(S)._fields


def test_ranks_conditions_and_norms():
    assert_as_numpy(
        lambda a, b, r: [
            *(np.linalg.matrix_rank(a), np.linalg.matrix_rank(b), np.linalg.matrix_rank(r), np.linalg.matrix_rank(b, tol=1.0)),
            *(np.linalg.matrix_rank(b, rtol=0.3), np.linalg.matrix_rank(a[0]), np.linalg.cond(a), np.linalg.cond(b, -2)),
            *(np.linalg.norm(a, 2), np.linalg.norm(b, "nuc", axis=(1, 2)), np.linalg.norm(b, -2, axis=(2, 0), keepdims=True)),
            *(np.linalg.cond(a[:3], 1), np.linalg.cond(a[:3], "fro")),
        ],
        *(A, B, OF_RANK_1),
    )


def test_least_squares():
    assert_as_numpy(
        lambda a, b, r: [
            *(*np.linalg.lstsq(a, b), *np.linalg.lstsq(a, b[:, 0]), *np.linalg.lstsq(a.T, b[:3]), np.linalg.lstsq(a, b, rcond=0.5)[0]),
            *(np.linalg.lstsq(r, b)[0], *np.linalg.lstsq(r, b)[2:], *np.linalg.lstsq(a.astype("float32"), b.astype("float32"))),
            *(*np.linalg.lstsq(a, b.astype("int64")), *np.linalg.lstsq(a, b * 1j), *np.linalg.lstsq(a, b, rcond=-1)),
        ],
        *(A, RIGHT, OF_RANK_1),
        is_definite=False,
    )
    # of a matrix of rank 1 there are residuals here, and NumPy gives none
    x, residuals = (np.linalg.lstsq(nt.constant(OF_RANK_1), RIGHT)[k].eval() for k in (0, 1))
    np.testing.assert_allclose(residuals, ((RIGHT - OF_RANK_1 @ x) ** 2).sum(0), rtol=1e-12)


@pytest.mark.parametrize("a", [A, A.T.copy(), S, Z, B, A.astype("float32"), np.array([[1, 2], [3, 4]]), A[:0], np.zeros((2, 2))])
def test_lu_factors(a):
    assert_as_scipy(
        lambda a: [nt.linalg.lu(a), nt.linalg.lu(a, permute_l=True), nt.linalg.lu(a, p_indices=True)],
        lambda a: [scipy.linalg.lu(a), scipy.linalg.lu(a, permute_l=True), scipy.linalg.lu(a, p_indices=True)],
        a,
    )
    if a.ndim == 2 and a.size and a.any():
        assert_as_scipy(nt.linalg.lu_factor, scipy.linalg.lu_factor, a)


def test_systems_by_lu_factors():
    for a in (S, Z):
        for trans in (0, 1, 2):
            assert_as_scipy(
                lambda a, b, c: [nt.linalg.lu_solve(nt.linalg.lu_factor(a), right, trans) for right in (b, c)],  # noqa: B023 - called at once
                lambda a, b, c: [scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), right, trans) for right in (b, c)],  # noqa: B023
                *(a, S, S[:, 0].copy()),
            )
    for right in (S, S[:, 0].copy(), SS):
        assert_as_scipy(lambda a, b: nt.linalg.lu_solve(nt.linalg.lu_factor(a), b), np.linalg.solve, SS, right)


def test_eigenvalues_are_complex_always():
    for a in (S, Z, SS, S.astype("float32"), S[:0, :0], (S * 9).astype("int64")):
        wide = np.result_type(a, "complex64" if a.dtype == "float32" else "complex128")
        assert_as_scipy(
            lambda a: [nt.linalg.eig(a), nt.linalg.eigvals(a)],
            lambda a: [*(x.astype(wide) for x in np.linalg.eig(a)), np.linalg.eigvals(a).astype(wide)],  # noqa: B023 - called at once
            a,
        )


def test_matrices_of_blocks_and_equations_of_matrices():
    assert_as_scipy(lambda a, s: nt.linalg.block_diag(a, s, a[0], 3, []), lambda a, s: scipy.linalg.block_diag(a, s, a[0], 3, []), A, S)
    for a in (S, Z):
        assert_as_scipy(nt.linalg.solve_sylvester, scipy.linalg.solve_sylvester, a, SMALL.astype(a.dtype), RIGHT[:3])
        assert_as_scipy(nt.linalg.solve_discrete_lyapunov, scipy.linalg.solve_discrete_lyapunov, a / 4, a)
        assert_as_scipy(nt.linalg.solve_continuous_lyapunov, scipy.linalg.solve_continuous_lyapunov, a, a)
    mixed = nt.linalg.solve_sylvester(nt.constant(Z), SMALL, RIGHT[:3]).eval()  # SciPy reads the real Schur form as a complex one
    np.testing.assert_allclose(Z @ mixed + mixed @ SMALL, RIGHT[:3], atol=1e-12)
    stack = nt.linalg.solve_sylvester(nt.constant(SS), SMALL, RIGHT[:3]).eval()
    np.testing.assert_allclose(SS @ stack + stack @ SMALL, np.broadcast_to(RIGHT[:3], stack.shape), atol=1e-12)


# compiled code ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_compiled_routines_give_what_the_oracle_gives(dtype):
    """Signs of singular vectors, too: both ways call one LAPACK."""
    tolerance = {"rtol": 1e-9, "atol": 2e-4 if dtype == "float32" else 1e-10}
    for m, n in ((3, 3), (5, 2), (2, 6), (12, 9), (0, 3), (3, 0)):
        a = random_like(RNG, np.empty((m, n), dtype))
        a.flags.writeable = False  # as in a kernel
        calls = [
            *((spectral.svd_into, CARDS["svd"].evaluate(a, full)) for full in (True, False)),
            (spectral.svdvals_into, (CARDS["svdvals"].evaluate(a),)),
            (linalg.lu_into, CARDS["lu_factor"].evaluate(a)),
        ]
        for routine, wanted in calls:
            results = [np.full(x.shape, 7, x.dtype) for x in wanted]
            assert routine(*results, a) in (True, None)
            for found, exact in zip(results, wanted, strict=True):
                np.testing.assert_allclose(found, exact, **tolerance)
        inverse = np.full((n, m), 7, dtype)
        assert spectral.pinv_into(inverse, a, 0.1)
        np.testing.assert_allclose(inverse, np.linalg.pinv(a, 0.1), **tolerance)
    kind = "complex" if dtype == "complex128" else "real"
    for n in (0, 1, 2, 5, 12):
        a = random_like(RNG, np.empty((n, n), dtype))
        a.flags.writeable = False
        values, vectors = CARDS["eig"].evaluate(a)
        results = np.full_like(values, 7), np.full_like(vectors, 7), np.full_like(values, 7)
        assert getattr(spectral, f"eig_{kind}_into")(*results[:2], a)
        assert getattr(spectral, f"eigvals_{kind}_into")(results[2], a)
        for found, exact in zip(results, (values, vectors, CARDS["eigvals"].evaluate(a)), strict=True):
            np.testing.assert_allclose(found, exact, **tolerance)


def of_factors(a, b):
    u, s, vh = np.linalg.svd(a[:, :2], full_matrices=False)
    lu = nt.linalg.lu_factor(a)
    return np.sum((u * np.exp(s)) @ vh) + np.sum(np.linalg.pinv(a[:2]) ** 2) + np.sum(nt.linalg.lu_solve(lu, b, 1) * b)


def test_in_lanes_with_derivatives():
    right = RIGHT[:2, :1] + np.ones(3)
    lanes, gradient = ns.vmap(ns.value_and_grad(of_factors))(SS, right)
    for k in range(2):
        value, slope = ns.jit(ns.value_and_grad(of_factors), mode="python")(SS[k], right[k])
        np.testing.assert_allclose(lanes[k], value, rtol=1e-11)
        np.testing.assert_allclose(gradient[k], slope, rtol=1e-9)


def everything(a, b):
    """All of them, of a square matrix and a right-hand side."""
    values, vectors = np.linalg.eig(a)
    return (
        of_factors(a, b)
        + np.sum(np.linalg.lstsq(a[:, :2], b)[0] ** 2)
        + np.sum(np.real((vectors * np.exp(values / 4)) @ np.linalg.inv(vectors)))
        + np.sum(nt.linalg.block_diag(a, b) ** 3)
        + np.sum(nt.linalg.solve_discrete_lyapunov(a / 9, a))
        + np.linalg.norm(a, 2)
        + np.sum(np.abs(np.linalg.eigvals(a)) ** 2)
    )


def test_in_loops():
    step = ns.jit(lambda a, xs: ns.scan(lambda x, total: total + everything(a * x, x + a[0]), xs, 0.0, return_updates=False)[-1])
    xs = np.array([1.0, 1.5])
    wanted = sum(ns.jit(everything, mode="python")(S * x, x + S[0]) for x in xs)
    np.testing.assert_allclose(step(S, xs), wanted, rtol=1e-11)
    ns.verify_grad(everything, [S, RIGHT[:3, 0]], mode="python")


@pytest.mark.parametrize("mode", [None, "python"])
def test_what_has_no_values_raises(mode):
    wrong = np.array([[np.nan, 1.0], [2.0, 3.0]])
    for function in (np.linalg.svdvals, np.linalg.pinv, np.linalg.eigvals):
        with pytest.raises(np.linalg.LinAlgError, match=r"SVD did not converge|must not contain infs or NaNs"):
            ns.jit(function, mode=mode)(wrong)
    with pytest.raises(np.linalg.LinAlgError, match="a pivot names a row that is not there"):
        ns.jit(lambda a, p: nt.linalg.lu_solve((a, p), a[0]), mode=mode)(SMALL, np.array([0, 2]))


# derivatives --------------------------------------------------------------------------------------------------------

CASES = [
    *(("svdvals", (4, 3), {}), ("svdvals", (2, 3, 4), {}), ("pinv", (4, 3), {}), ("pinv", (2, 3, 4), {}), ("lu_factor", (3, 3), {})),
    *(("lu_factor", (5, 3), {}), ("lu_factor", (2, 3, 4), {}), ("eigvals", (2, 3, 3), {})),
]
REAL_CASES = [("svd", (3, 3), {"full": True}), ("svd", (2, 4, 3), {"full": False}), ("svd", (3, 5), {"full": False})]


@pytest.mark.parametrize(
    "name, shape, attrs, dtype",
    [*((*case, dtype) for case in CASES for dtype in ("float64", "complex128")), *((*case, "float64") for case in REAL_CASES)],
)
def test_derivatives_agree_with_differences_to_second_order(name, shape, attrs, dtype):
    a = random_like(np.random.default_rng(4), np.empty(shape, dtype))
    operands = (a, np.full(shape[:-2], 0.35)) if name == "pinv" else (a,)
    check_card(CARDS[name], operands, attrs)
    if name != "pinv":  # whose bound is no part of the derivative
        for is_known in (True, False):
            if name == "svd" and attrs["full"] and not is_known:
                continue
            differences, forward, reverse = Reverse(name, operands, attrs, is_known).moved()
            for wanted, ahead, back in zip(differences, forward, reverse, strict=True):
                np.testing.assert_allclose(ahead, back, rtol=1e-7, atol=1e-8 * (1 + np.abs(back).max()))
                np.testing.assert_allclose(ahead, wanted, rtol=1e-5, atol=1e-5 * (1 + np.abs(wanted).max()))


def of_singular_vectors(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (np.real((u * np.exp(s / 3)[..., None, :]) @ vh) ** 2).sum() + (abs(u) ** 4).sum() + (abs(vh) ** 4).sum()


def of_eigenvectors(a):
    w, v = np.linalg.eig(a)
    return (np.real((v * np.exp(w / 3)[..., None, :]) @ np.linalg.inv(v)) ** 2).sum() + (abs(v) ** 4).sum() + (abs(w) ** 2).sum()


@pytest.mark.parametrize(
    "function, shape",
    [(of_singular_vectors, (3, 3)), (of_singular_vectors, (4, 2)), (of_singular_vectors, (2, 2, 4)), (of_eigenvectors, (2, 4, 4))],
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_results_that_do_not_depend_on_phases_have_derivatives(function, shape, dtype):
    rng = np.random.default_rng(6)
    a, v, w = (random_like(rng, np.empty(shape, dtype)) for _ in range(3))

    def run(f, *arguments):
        return ns.jit(f, mode="python")(*arguments)

    gradient = ns.grad(function)
    slope = (run(function, a + 1e-5 * v) - run(function, a - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(np.sum(run(gradient, a) * v).real, slope, rtol=1e-6)
    np.testing.assert_allclose(run(lambda a: ns.jvp(function, (a,), (v,))[1], a), slope, rtol=1e-6)

    def along(a):
        return (gradient(a) * v).sum().real

    slope = (run(along, a + 1e-5 * w) - run(along, a - 1e-5 * w)) / 2e-5
    np.testing.assert_allclose(np.sum(run(ns.grad(along), a) * w).real, slope, rtol=1e-5)


def test_vectors_that_complete_a_basis_have_no_derivative_but_singular_values_have():
    for function in (ns.grad(lambda a: np.linalg.svd(a)[0].sum()), lambda a: ns.jvp(lambda a: np.linalg.svd(a)[0], (a,), (a,))):
        with pytest.raises(NullGradientError, match=r"svd has no derivative.*full_matrices=False"):
            ns.jit(function)(A)
    gradient = ns.jit(ns.grad(lambda a: np.linalg.svd(a)[1].sum()), mode="python")(A)
    u, _, vh = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(gradient, u @ vh, rtol=1e-12, atol=1e-13)


def test_equal_singular_values_have_derivatives_of_their_sum_alone():
    gradient = ns.jit(ns.grad(lambda a: np.linalg.svdvals(a).sum()), mode="python")(np.eye(3))
    np.testing.assert_allclose(gradient, np.eye(3), atol=1e-14)
    of_vectors = ns.jit(ns.grad(lambda a: (np.linalg.svd(a)[0] ** 3).sum()), mode="python")(np.eye(3))
    assert not np.isfinite(of_vectors).all()


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: np.linalg.svd(x[0]), np.linalg.LinAlgError, "svd needs a matrix"),
        (lambda x: np.linalg.eig(x), np.linalg.LinAlgError, "square"),
        (lambda x: np.linalg.lstsq(x, x[:1]), np.linalg.LinAlgError, "different numbers of rows"),
        (lambda x: np.linalg.lstsq(x[0], x[0]), np.linalg.LinAlgError, "no matrix"),
        (lambda x: np.linalg.pinv(x, 0.1, rtol=0.1), ValueError, "give one of them"),
        (lambda x: nt.linalg.lu_solve((x[:, :2], x[0]), x), TypeError, "pivots"),
        (lambda x: nt.linalg.lu_solve(nt.linalg.lu_factor(x[:, :2]), x, trans=3), ValueError, "give 0, 1 or 2"),
        (lambda x: nt.linalg.block_diag(x[None]), ValueError, "at most two axes"),
        (lambda x: nt.linalg.solve_sylvester(x[:, :2], x[:, :2], x), ValueError, "must have"),
        (lambda x: nt.linalg.solve_discrete_lyapunov(x[:, :2], x[:, :2], "bilinear"), ValueError, "leave method out"),
    ],
)
def test_what_is_refused_says_why(function, error, words):
    with pytest.raises(error, match=words):
        function(nt.tensor("float64", shape=(2, 3)))
