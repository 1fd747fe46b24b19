"""Systems, inverses, determinants and factors of matrices, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime.routines.small import SMALL
from numbascan.ir.graph import Graph
from numbascan.ops import linalg as cards
from numbascan.ops.card import evaluate
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

RNG = np.random.default_rng(9)
DTYPES = ["float32", "float64", "complex64", "complex128", "int64", "bool"]
CARDS = [
    *(cards.SOLVE, cards.SOLVE_VECTOR, cards.TRIANGULAR, cards.TRIANGULAR_VECTOR, cards.INV, cards.DET, cards.SLOGDET),
    *(cards.CHOLESKY, cards.EIGH, cards.EIGVALSH, cards.QR, cards.EXPM),
]


def matrices(*shape, dtype="float64"):
    """Well-conditioned matrices that are not symmetric and whose large elements are not on the diagonal."""
    rows = shape[-1]
    values = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    values = (values if dtype.startswith("complex") else values.real) + 2 * rows**0.5 * np.eye(rows)
    return np.roll(values, 1, axis=-2).astype(dtype)


def definite(*shape, dtype="float64"):
    a = matrices(*shape, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2)


def values(function, *arrays, is_known=True):
    """What a function of variables gives, as arrays; their types must be what was promised."""
    inputs = [nt.tensor(x.dtype.name, shape=x.shape if is_known else (None,) * x.ndim) for x in arrays]
    result = function(*inputs)
    results = result if isinstance(result, tuple) else (result,)
    found = interpret(Graph(tuple(x.node for x in inputs), tuple(x.node for x in results)), arrays)
    for one, array in zip(results, found, strict=True):
        assert one.type.dtype == np.asarray(array).dtype.name
        assert all(known in (None, seen) for known, seen in zip(one.type.shape, np.shape(array), strict=True))
    return found


def assert_gives(wanted, function, *arrays):
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for is_known in (True, False):
        for found, exact in zip(values(function, *arrays, is_known=is_known), wanted, strict=True):
            exact = np.asarray(exact)
            assert (found.dtype, found.shape) == (exact.dtype, exact.shape)
            tolerance = 1e-4 if exact.dtype.name in ("float32", "complex64") else 1e-11
            np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_matrix_have_numpys_values_and_dtypes(dtype):
    a = matrices(3, 3, dtype=dtype) if dtype != "bool" else np.array([[True, False], [True, True]])
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.qr):
        assert_gives(function(a), function, a)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (5, 1, 2, 2), (1, 1), (0, 0), (2, 0, 0)])
def test_leading_axes_are_stacks_of_matrices(shape):
    a = matrices(*shape)
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.eigvalsh):
        assert_gives(function(a), function, a)
    assert_gives(
        np.linalg.cholesky(definite(*shape) if a.size == 0 else (a @ a.swapaxes(-1, -2))), lambda x: np.linalg.cholesky(x @ x.mT), a
    )


@pytest.mark.parametrize(
    "a_dtype, b_dtype", [("float32", "float32"), ("float32", "float64"), ("int64", "float32"), ("float64", "complex64")]
)
def test_solve_computes_in_the_common_dtype(a_dtype, b_dtype):
    a, b = matrices(3, 3, dtype=a_dtype), (4 * RNG.normal(size=(3, 2))).astype(b_dtype)
    assert_gives(np.linalg.solve(a, b), np.linalg.solve, a, b)


SYSTEMS = [((3, 3), (3,)), ((3, 3), (3, 2)), ((4, 3, 3), (3,)), ((4, 3, 3), (4, 3, 2)), ((4, 1, 3, 3), (5, 3, 2)), ((3, 3), (4, 3, 1))]


@pytest.mark.parametrize("a_shape, b_shape", SYSTEMS)
def test_solve_takes_a_vector_only_where_b_has_one_dimension(a_shape, b_shape):
    a, b = matrices(*a_shape), RNG.normal(size=b_shape)
    wanted = np.linalg.solve(a, b)
    (found,) = values(np.linalg.solve, a, b)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular_is_scipys(trans, lower, unit):
    a, b = np.roll(matrices(4, 4, dtype="complex128"), -1, axis=0), RNG.normal(size=(4, 2)) + 1j
    for right in (b, b[:, 0].copy()):
        wanted = scipy.linalg.solve_triangular(a, right, trans, lower, unit)
        assert_gives(wanted, lambda x, y: nt.solve_triangular(x, y, trans, lower, unit), a, right)


@pytest.mark.parametrize("lower", [False, True])
def test_cho_solve_is_scipys(lower):
    a, b = definite(3, 3, dtype="complex128"), RNG.normal(size=(3, 2)) + 2j
    factor = scipy.linalg.cholesky(a, lower=lower)
    assert_gives(scipy.linalg.cho_solve((factor, lower), b), lambda c, y: nt.linalg.cho_solve((c, lower), y), factor, b)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_cholesky_reads_one_triangle(upper, dtype):
    a = definite(4, 4, dtype=dtype)
    garbled = (np.triu if upper else np.tril)(a) + (np.tril(a, -1) if upper else np.triu(a, 1)) * 7
    assert_gives(np.linalg.cholesky(a, upper=upper), lambda x: np.linalg.cholesky(x, upper=upper), garbled)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh_reads_one_triangle(uplo):
    a = matrices(4, 4, dtype="complex128")
    assert_gives(tuple(np.linalg.eigh(a, uplo)), lambda x: np.linalg.eigh(x, uplo), a)
    assert_gives(np.linalg.eigvalsh(a, uplo), lambda x: np.linalg.eigvalsh(x, uplo), a)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 5, 3)])
def test_qr_takes_any_shape(mode, shape):
    a = RNG.normal(size=shape)
    wanted = np.linalg.qr(a, mode)
    assert_gives(wanted if mode == "r" else tuple(wanted), lambda x: np.linalg.qr(x, mode), a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
def test_expm_is_scipys(dtype):
    a = matrices(3, 3, dtype=dtype)
    assert_gives(scipy.linalg.expm(a), nt.expm, a)


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5])
def test_matrix_power_multiplies_and_inverts(n):
    a = matrices(3, 3)
    assert_gives(np.linalg.matrix_power(a, n), lambda x: np.linalg.matrix_power(x, n), a)


def test_results_have_numpys_names():
    A = nt.dmatrix("A")
    assert np.linalg.slogdet(A)._fields == np.linalg.slogdet(np.eye(2))._fields
    assert np.linalg.eigh(A)._fields == np.linalg.eigh(np.eye(2))._fields
    assert np.linalg.qr(A)._fields == np.linalg.qr(np.eye(2))._fields


SQUARE = [np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh, nt.expm]
SQUARE += [lambda a: np.linalg.solve(a, np.ones(2)), lambda a: np.linalg.matrix_power(a, 2), lambda a: nt.solve_triangular(a, np.ones(2))]


@pytest.mark.parametrize("function", SQUARE)
@pytest.mark.parametrize(
    "shape, words", [((2, 3), r"must be square, not \(2, 3\)"), ((3,), r"needs a matrix, not an array of shape \(3,\)")]
)
def test_what_is_no_square_matrix_is_refused_while_tracing(function, shape, words):
    with pytest.raises(np.linalg.LinAlgError, match=words + r" \(.*test_linalg\.py, line"):
        function(nt.tensor("float64", shape=shape))


WRONG = [
    (lambda a: np.linalg.solve(a, np.ones(3)), ValueError, r"of shapes \(2, 2\) and \(3,\), do not fit"),
    (lambda a: np.linalg.solve(a, 1.0), ValueError, "right-hand side needs 1 or more dimensions"),
    (lambda a: np.linalg.solve(np.ones((3, 2, 2)) * a, np.ones((4, 2, 1))), ValueError, "leading axes of shapes"),
    (lambda a: nt.solve_triangular(a, a, trans=3), ValueError, "trans=3"),
    (lambda a: np.linalg.eigh(a, "X"), ValueError, "UPLO='X'"),
    (lambda a: np.linalg.qr(a, "raw"), ValueError, "mode='raw'"),
    (lambda a: np.linalg.qr(a[0]), ValueError, "qr needs a matrix"),
    (lambda a: np.linalg.matrix_power(a, 1.5), TypeError, "must be an int that is known while tracing"),
    (lambda a: np.linalg.matrix_power(a, nt.lscalar("n")), TypeError, "while tracing"),
]


@pytest.mark.parametrize("wrong, error, words", WRONG)
def test_other_wrong_arguments_are_named(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong(nt.tensor("float64", shape=(2, 2)))


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
FAILING = [
    (np.linalg.inv, SINGULAR, "inv: Singular matrix"),
    (lambda a: np.linalg.solve(a, a[0]), SINGULAR, "solve: Singular matrix"),
    (lambda a: np.linalg.solve(a, a), SINGULAR, "solve: Singular matrix"),
    (lambda a: nt.solve_triangular(a, a[0], lower=True), np.array([[1.0, 2.0], [3.0, 0.0]]), "solve_triangular: Singular matrix"),
    (np.linalg.cholesky, np.array([[1.0, 2.0], [2.0, 1.0]]), "cholesky: Matrix is not positive definite"),
]


@pytest.mark.parametrize("function, a, words", FAILING)
def test_a_matrix_that_will_not_do_raises_when_it_is_met(function, a, words):
    with pytest.raises(np.linalg.LinAlgError, match=words):
        values(function, a)


def test_compiled_code_raises_as_the_oracle_does():
    @ns.jit
    def all_of_them(a, b):
        return np.linalg.solve(a, b[0]), np.linalg.inv(b), np.linalg.cholesky(b @ b.T), nt.solve_triangular(b, a)

    good = np.array([[1.0, 2.0], [2.0, 5.0]])
    solution, inverse, factor, _ = all_of_them(good, good + 1)
    np.testing.assert_allclose(good @ solution, good[0] + 1)
    np.testing.assert_allclose(inverse, np.linalg.inv(good + 1))
    np.testing.assert_allclose(factor @ factor.T, (good + 1) @ (good + 1).T)
    with pytest.raises(np.linalg.LinAlgError, match="solve: Singular matrix"):
        all_of_them(SINGULAR, good)
    with pytest.raises(np.linalg.LinAlgError, match="inv: Singular matrix"):
        all_of_them(good, SINGULAR)


def test_the_determinant_of_a_singular_matrix_is_0():
    assert_gives(np.float64(0.0), np.linalg.det, SINGULAR)
    assert_gives((np.float64(0.0), np.float64(-np.inf)), np.linalg.slogdet, SINGULAR)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_every_card_gives_the_types_it_promises_on_its_samples(card):
    for operands, attrs in card.samples():
        types = [TensorType(x.dtype.name, x.shape) for x in operands]
        inferred = card.infer(*types, **attrs)
        promised = inferred if isinstance(inferred, tuple) else (inferred,)
        raw = card.evaluate(*operands, **attrs)
        found = evaluate(card, promised, tuple(types), list(operands), attrs)
        assert [(np.asarray(x).dtype.name, np.shape(x)) for x in (raw if isinstance(raw, tuple) else (raw,))] == [
            (x.dtype, x.shape) for x in promised
        ]
        assert all(np.isfinite(x).all() for x in found)


def test_there_is_a_routine_for_each_number_of_rows_that_a_card_asks_for():
    assert cards.KNOWN_ROWS == SMALL
