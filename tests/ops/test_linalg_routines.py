"""The compiled routines of linear algebra, called as generated code calls them, against NumPy and SciPy."""

import numba
import numpy as np
import pytest
import scipy.linalg

from numbascan.emit.runtime.routines import linalg, spectral, triangles

RNG = np.random.default_rng(10)
SIZES = (1, 2, 3, 5, 9, 20, 70)  # by loops, by LAPACK, and more than one block of a triangle


def matrix(n, dtype):
    """Not symmetric, and with its large elements off the diagonal, so that rows must be exchanged."""
    values = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if dtype.startswith("complex") else 0)
    return np.roll(values + 2 * n**0.5 * np.eye(n), 1, axis=0).astype(dtype)


def assert_writes(wanted, routine, *operands):
    """The routine fills arrays of the wanted results' shapes; its operands, read-only as in a kernel, stay as they are."""
    results = [np.full(np.shape(x) or (1,), 7, np.asarray(x).dtype) for x in wanted]
    for x in operands:
        if isinstance(x, np.ndarray):
            x.flags.writeable = False
    routine(*results, *operands)
    tolerance = 2e-3 if results[0].dtype.name in ("float32", "complex64") else 1e-10
    for found, exact in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found.reshape(np.shape(exact)), exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_systems_and_inverses(dtype):
    for n in SIZES:
        a, b = matrix(n, dtype), RNG.normal(size=(n, 3)).astype(dtype)
        assert_writes([np.linalg.solve(a, b)], linalg.solve_into, a, b)
        assert_writes([np.linalg.solve(a, b[:, 0])], linalg.solve_vector_into, a, b[:, 0].copy())
        assert_writes([np.linalg.inv(a)], linalg.inv_into, a)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_determinants(dtype):
    for n in (0, *SIZES[:-1]):
        a = matrix(n, dtype)
        assert_writes([np.linalg.det(a)], linalg.det_into, a)
        assert_writes(list(np.linalg.slogdet(a)), linalg.slogdet_into, a)


def test_a_determinant_whose_parts_overflow_or_vanish_is_still_right():
    det = np.empty(1)
    for diagonal in ([1e200, 1e200, 1e-200, 1e-200], [1e-200, 1e-115, 1e200], [1e250, -1e40], [3e-200, 0.5, -1e-90] * 4):
        linalg.det_into(det, np.diag(diagonal))
        np.testing.assert_allclose(det[0], np.linalg.det(np.diag(diagonal)), rtol=1e-12)
    linalg.det_into(det, np.diag([1e-200, 1e-115, 1e200]))
    assert det[0] == pytest.approx(1e-115, rel=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_cholesky_factors(dtype):
    for n in SIZES:
        a = matrix(n, dtype)
        wanted = np.linalg.cholesky(a @ a.conj().T)
        assert_writes([wanted], triangles.cholesky_into, (np.tril(a @ a.conj().T) + 9 * np.triu(np.ones((n, n)), 1)).astype(dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "trans, lower, unit", [(0, True, False), (0, False, True), (1, True, False), (1, False, False), (2, False, False), (2, True, True)]
)
def test_triangular_systems(dtype, trans, lower, unit):
    for n in SIZES:
        a, b = (np.roll(matrix(n, dtype), -1, axis=0) / (3 * n if unit else 1)).astype(dtype), RNG.normal(size=(n, 3)).astype(dtype)
        assert_writes([scipy.linalg.solve_triangular(a, b, trans, lower, unit)], triangles.triangular_into, a, b, lower, trans, unit)
        b = b[:, 0].copy()
        assert_writes([scipy.linalg.solve_triangular(a, b, trans, lower, unit)], triangles.triangular_vector_into, a, b, lower, trans, unit)


@pytest.mark.parametrize("lower, unit", [(True, True), (False, False)])
def test_triangular_systems_whose_rows_are_added_by_blas(lower, unit):
    n = triangles.DOT + 30
    a, b = RNG.normal(size=(n, n)) / n + np.eye(n), RNG.normal(size=n)
    assert_writes([scipy.linalg.solve_triangular(a, b, 0, lower, unit)], triangles.triangular_vector_into, a, b, lower, 0, unit)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
def test_eigenvectors_have_the_signs_that_numpys_have(dtype, lower):
    for n in SIZES[:-2]:
        a = matrix(n, dtype)
        assert_writes(list(np.linalg.eigh(a, "L" if lower else "U")), spectral.eigh_into, a, lower)
        assert_writes([np.linalg.eigvalsh(a, "L" if lower else "U")], spectral.eigvalsh_into, a, lower)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_qr_factors_have_the_signs_that_numpys_have(dtype):
    for m, n in ((1, 1), (4, 3), (3, 4), (12, 5), (2, 9)):
        a = matrix(12, dtype)[:m, :n].copy()
        for mode in ("reduced", "complete"):
            assert_writes(list(np.linalg.qr(a, mode)), spectral.qr_into, a)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("norm", [1e-3, 0.2, 0.9, 2.0, 5.0, 40.0])
def test_the_matrix_exponential_at_every_degree_and_with_squaring(dtype, norm):
    for n in (1, 3, 9):
        a = matrix(n, dtype)
        a *= norm / np.linalg.norm(a, 1)
        assert_writes([scipy.linalg.expm(a)], spectral.expm_into, a)


def test_the_matrix_exponential_of_what_is_not_finite_is_nan():
    for bad in (np.nan, np.inf):
        x = np.zeros((2, 2))
        spectral.expm_into(x, np.array([[1.0, 0.5], [bad, 2.0]]))
        assert np.isnan(x).all()


def test_the_matrix_exponential_in_single_precision():
    for norm in (0.1, 1.5, 3.0, 20.0):
        a = matrix(3, "float32")
        a *= np.float32(norm / np.linalg.norm(a, 1))
        assert_writes([scipy.linalg.expm(a)], spectral.expm_single_into, a)


def test_nan_goes_through_as_in_numpy():
    for n in (2, 12):
        a = matrix(n, "float64")
        a[0, 1] = np.nan
        x = np.empty((n, n))
        linalg.inv_into(x, a)
        assert np.isnan(x).any()


# routines for a known number of rows --------------------------------------------------------------------------------

solve_1, solve_2, solve_3 = linalg.solve_vector_into_1, linalg.solve_vector_into_2, linalg.solve_into_3
det_3, slogdet_2, cholesky_3, triangular_2 = (
    linalg.det_into_3,
    linalg.slogdet_into_2,
    triangles.cholesky_into_3,
    triangles.triangular_into_2,
)


@numba.njit
def by_known_rows(one, two, three, positive, b, pair, w, u, x1, x2, x3, det, sign, log, factor, pairs):
    """All of them in one kernel, as the planner calls them."""
    solve_1(x1, one, u)
    solve_2(x2, two, w)
    solve_3(x3, three, b)
    det_3(det, three)
    slogdet_2(sign, log, two)
    cholesky_3(factor, positive)
    triangular_2(pairs, two, pair, True, 2, False)


def test_routines_for_a_known_number_of_rows():
    one, two, three = (matrix(n, "float64") for n in (1, 2, 3))
    b, pair, w, u = (RNG.normal(size=shape) for shape in ((3, 4), (2, 4), (2,), (1,)))
    wanted = [
        *(np.linalg.solve(one, u), np.linalg.solve(two, w), np.linalg.solve(three, b)),
        *(np.linalg.det(three), *np.linalg.slogdet(two), np.linalg.cholesky(three @ three.T)),
        scipy.linalg.solve_triangular(two, pair, 2, True),
    ]
    results = [np.full(np.shape(x) or (1,), 7.0) for x in wanted]
    by_known_rows(one, two, three, three @ three.T, b, pair, w, u, *results)
    for found, exact in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found.reshape(np.shape(exact)), exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["solve_into_99", "solve_into_x", "sole_into_3"])
def test_other_names_are_no_routines(name):
    with pytest.raises(AttributeError, match=name):
        getattr(linalg, name)


# errors -------------------------------------------------------------------------------------------------------------


def singular(n):
    """Its first two rows are equal; not symmetric."""
    return np.zeros((1, 1)) if n == 1 else np.tril(np.ones((n, n)))[[0, *range(n - 1)]]


@pytest.mark.parametrize("n", [1, 2, 12])
def test_routines_say_that_a_matrix_is_singular(n):
    a, x, b, v = singular(n), np.empty((n, n)), np.ones((n, 2)), np.ones(n)
    assert linalg.inv_into(x, a) is False
    assert linalg.solve_into(np.empty((n, 2)), a, b) is False
    assert linalg.solve_vector_into(np.empty(n), a, v) is False
    assert triangles.cholesky_into(x, -np.eye(n)) is False
    assert triangles.triangular_vector_into(np.empty(n), np.zeros((n, n)), v, True, 0, False) is False
    det = np.empty(1)
    linalg.det_into(det, a)
    assert det[0] == 0


def test_a_singular_triangle_of_several_blocks_is_told():
    a = np.tril(np.ones((70, 70)))
    x, b = np.empty((70, 2)), np.ones((70, 2))
    assert triangles.triangular_into(x, a, b, True, 0, False) is True
    a[50, 50] = 0
    assert triangles.triangular_into(x, a, b, True, 0, False) is False


def test_routines_for_known_rows_tell_it_too():
    assert solve_2(np.empty(2), np.eye(2), np.ones(2)) is True
    assert solve_2(np.empty(2), singular(2), np.ones(2)) is False
    assert cholesky_3(np.empty((3, 3)), -np.eye(3)) is False
