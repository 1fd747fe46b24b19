"""Matrices of up to 3 rows, whose routines are written out as scalars in the kernel: NumPy's values, errors and accuracy."""

import numpy as np
import pytest
import scipy.linalg

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(23)
ROWS = (1, 2, 3)


def matrix(n, dtype="float64"):
    """Not symmetric, and with its large elements off the diagonal, so that rows must be exchanged."""
    return np.roll(RNG.normal(size=(n, n)) + 2 * n**0.5 * np.eye(n), 1, axis=0).astype(dtype)


def assert_close(wanted, found, dtype="float64"):
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for one, other in zip(wanted, found, strict=True):
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other))
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


def everything(a, b, v):
    """Each function, of a definite matrix where it needs one."""
    square = a @ a.T
    return (
        *(np.linalg.solve(a, b), np.linalg.solve(a, v), np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a)),
        *(np.linalg.cholesky(square), nt.solve_triangular(square, b, lower=True), nt.solve_triangular(square, v, trans=1)),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", ROWS)
def test_values_are_numpys(n, dtype):
    f = ns.jit(everything)
    a, b, v = matrix(n, dtype), RNG.normal(size=(n, 2)).astype(dtype), RNG.normal(size=n).astype(dtype)
    square = a @ a.T
    triangular = scipy.linalg.solve_triangular(square, b, lower=True), scipy.linalg.solve_triangular(square, v, trans=1)
    assert_close(
        [
            *(np.linalg.solve(a, b), np.linalg.solve(a, v), np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a)),
            *(np.linalg.cholesky(square), *triangular),
        ],
        f(a, b, v),
        dtype,
    )
    assert "emit.runtime.routines" not in f.source()


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("columns", [1, 5, 40])
def test_right_hand_sides_of_any_width(n, columns):
    a, b = matrix(n), RNG.normal(size=(n, columns))
    assert_close([np.linalg.solve(a, b), np.linalg.inv(a) @ b], ns.jit(lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a) @ b))(a, b))


@pytest.mark.parametrize("n", ROWS)
def test_stacks_of_matrices(n):
    a, b = np.stack([matrix(n) for _ in range(30)]), RNG.normal(size=(30, n, 2))
    definite = a @ a.mT

    @ns.jit
    def f(a, b, definite):
        return np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a), np.linalg.cholesky(definite)

    assert_close(
        [np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a), *np.linalg.slogdet(a), np.linalg.cholesky(definite)], f(a, b, definite)
    )
    assert_close([np.linalg.solve(a, b)], [ns.vmap(np.linalg.solve)(a, b)])


@pytest.mark.parametrize("n", [2, 3])
def test_every_order_of_rows_and_every_sign_of_the_determinant(n):
    @ns.jit
    def f(a, v):
        return np.linalg.solve(a, v), np.linalg.det(a), *np.linalg.slogdet(a)

    for k in range(200):
        a = RNG.permutation(np.diag([10.0**k for k in range(n)])) * RNG.choice([-1, 1], size=(n, 1)) + 0.3 * RNG.normal(size=(n, n))
        v = RNG.normal(size=n)
        assert_close([np.linalg.solve(a, v), np.linalg.det(a), *np.linalg.slogdet(a)], f(a, v))


@pytest.mark.parametrize("n", [2, 3])
def test_ill_conditioned_systems_are_solved_as_well_as_by_numpy(n):
    """By the residual: |a x - b| / (|a| |x|), which pivoting keeps near the unit roundoff whatever the condition."""
    f = ns.jit(lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a)))
    worst = {"ours": 0.0, "numpy": 0.0}
    for k in range(300):
        q, r = (np.linalg.qr(RNG.normal(size=(n, n)))[0] for _ in range(2))
        a = q @ np.diag(np.geomspace(1, 10.0 ** -(k % 16), n)) @ r * 10.0 ** RNG.integers(-8, 8, size=(n, 1))
        b = RNG.normal(size=(n, 2))
        for name, (x, inverse) in {"ours": f(a, b), "numpy": (np.linalg.solve(a, b), np.linalg.inv(a))}.items():
            for solution, right in ((x, b), (inverse, np.eye(n))):
                exact = np.longdouble(a) @ np.longdouble(solution) - right
                sizes = np.abs(a) @ np.abs(solution) + np.abs(right)
                worst[name] = max(worst[name], float((np.abs(exact) / np.max(sizes, axis=0)).max()))
    assert worst["ours"] <= 3 * worst["numpy"]
    assert worst["ours"] < 1e-15


@pytest.mark.parametrize("n", ROWS)
def test_singular_matrices_raise_what_they_raise_elsewhere(n):
    zero = np.zeros((n, n))
    singular = {1: zero, 2: np.array([[1.0, 2.0], [2.0, 4.0]]), 3: np.tril(np.ones((3, 3)))[[0, 0, 1]]}[n]
    for a in (zero, singular):
        with pytest.raises(np.linalg.LinAlgError, match=r"^solve: Singular matrix \(.*line \d+\)$"):
            ns.jit(np.linalg.solve)(a, np.ones((n, 2)))
        with pytest.raises(np.linalg.LinAlgError, match=r"^solve: Singular matrix \(.*line \d+\)$"):
            ns.jit(np.linalg.solve)(a, np.ones(n))
        with pytest.raises(np.linalg.LinAlgError, match=r"^inv: Singular matrix \(.*line \d+\)$"):
            ns.jit(np.linalg.inv)(a)
        assert_close([np.linalg.det(a), *np.linalg.slogdet(a)], ns.jit(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)))(a))
    with pytest.raises(np.linalg.LinAlgError, match=r"^cholesky: Matrix is not positive definite \(.*line \d+\)$"):
        ns.jit(np.linalg.cholesky)(-np.eye(n))
    np.testing.assert_array_equal(ns.jit(np.linalg.cholesky)(np.full((n, n), np.nan)), np.linalg.cholesky(np.full((n, n), np.nan)))
    with pytest.raises(np.linalg.LinAlgError, match=r"^solve_triangular: Singular matrix \(.*line \d+\)$"):
        ns.jit(lambda a, b: nt.solve_triangular(a, b, lower=True))(np.tril(np.ones((n, n)), -1), np.ones(n))


def test_a_matrix_that_is_singular_for_two_functions_raises_the_first_ones_error():
    with pytest.raises(np.linalg.LinAlgError, match=r"^inv: Singular matrix \(.*line \d+\)$"):
        ns.jit(lambda a: np.linalg.solve(a, np.linalg.inv(a)[0]))(np.ones((2, 2)))


def test_a_singular_matrix_in_a_loop_without_steps_raises_nothing():
    def f(a, n):
        return ns.scan(lambda x, a: np.linalg.solve(a, x), outputs_info=np.ones(2), non_sequences=a, n_steps=n, return_updates=False)

    assert ns.jit(f)(np.ones((2, 2)), 0).shape == (0, 2)
    with pytest.raises(np.linalg.LinAlgError, match="solve: Singular matrix"):
        ns.jit(f)(np.ones((2, 2)), 1)


def test_determinants_whose_parts_overflow_or_vanish_are_still_right():
    f = ns.jit(np.linalg.det)
    for diagonal in (
        [1e200, 1e200, 1e-200],
        [1e-200, 1e-115, 1e200],
        [1e250, -1e40],
        [-1e-200, 1e-100],
        [3e-200, 0.5, -1e-90],
        [1e300, 1, 0],
    ):
        with np.errstate(over="ignore", under="ignore"):
            wanted = np.prod(np.longdouble(diagonal))
        assert f(np.diag(diagonal)) == pytest.approx(float(wanted), rel=1e-12)


def test_nan_and_infinity_go_through():
    for n in (2, 3):
        a = matrix(n)
        a[0, 1] = np.nan
        assert np.isnan(ns.jit(np.linalg.inv)(a)).any()
    for n in (1, 2, 3, 5, 12):
        for place in ((0, 0), (n - 1, 0), (n - 1, n - 1)):
            a = n * np.eye(n) + 0.1
            a[place] = np.nan
            np.testing.assert_allclose(ns.jit(np.linalg.cholesky)(a), np.linalg.cholesky(a), rtol=1e-13)
    assert ns.jit(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)))(np.array([[-np.inf]])) == (-np.inf, -1, np.inf)


def test_a_matrix_that_several_functions_read_is_eliminated_once():
    def step(a, x):
        s = a @ a.T
        return np.linalg.solve(s, x) / np.linalg.det(s) + np.linalg.slogdet(s)[1] + np.linalg.inv(s)[0]

    f = ns.jit(lambda a, x: ns.scan(step, a, outputs_info=x, return_updates=False))
    a, x = np.stack([matrix(2) for _ in range(4)]), np.ones(2)
    wanted = []
    for one in a:
        x = step(one, x)
        wanted.append(x)
    np.testing.assert_allclose(f(a, np.ones(2)), wanted, rtol=1e-10)
    assert f.source().count("is_larger = ") == 1


def test_gradients_through_small_matrices():
    for n in ROWS:
        a = matrix(n)

        def cost(a, v):
            return v @ np.linalg.solve(a @ a.T, v) + np.linalg.slogdet(a)[1] + np.linalg.cholesky(a @ a.T).sum()

        ns.verify_grad(cost, [a, RNG.normal(size=n)])


def test_a_state_that_is_its_own_matrix():
    """The matrix is read after the result has been computed, and before the state moves on."""

    def step(a):
        return np.linalg.inv(a) + a, np.linalg.slogdet(a)[0], np.linalg.det(a)

    for n in ROWS:
        a = matrix(n)
        found = ns.jit(lambda a: ns.scan(step, outputs_info=[a, None, None], n_steps=5, return_updates=False))(a)
        wanted = []
        for _ in range(5):
            sign, det = np.linalg.slogdet(a)[0], np.linalg.det(a)
            a = np.linalg.inv(a) + a
            wanted.append((a, sign, det))
        for one, other in zip(found, zip(*wanted, strict=True), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
