"""Reductions, running results, averages, norms and sorting: NumPy's values and dtypes, lengths known or not."""

import numpy as np
import pytest
from ops.functions import assert_as_numpy, inputs_for
from ops.operands import assert_lowered_as_evaluated, lowered

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime.routines import sorting
from numbascan.ops.card import CARDS

X = np.sin(np.arange(24.0)).reshape(2, 3, 4) * 5
M = np.cos(np.arange(12.0)).reshape(3, 4) * 3
V = np.array([3.5, -1.0, 2.0, 7.0, 0.5])
I = np.array([[3, -7, 2], [5, 0, 1]], "int32")
B = np.array([True, False, True])
F = M.astype("float32")
C = M + 1j * M[::-1]
COUNTS = np.array([1, 3, 2, 1])
GAPS = np.where(X > 4, np.nan, X)

CASES = {
    "covariances": (
        lambda m, c, f: [
            *(np.cov(m), np.cov(m, m[::-1] ** 2), np.cov(m[0]), np.cov(m[0], m[1]), np.cov(m, rowvar=False), np.cov(m, bias=True)),
            *(np.cov(c, ddof=2), np.cov(f), np.cov(f, dtype="float32"), np.cov(m.T, m[0], rowvar=False)),
            *(np.cov(m, fweights=COUNTS), np.cov(m, aweights=m[0] ** 2), np.cov(m, fweights=COUNTS, aweights=m[0] ** 2)),
            *(np.cov(m, fweights=COUNTS, aweights=m[0] ** 2, bias=True), np.corrcoef(m), np.corrcoef(c), np.corrcoef(m[0]), np.cov(m[:0])),
        ],
        M,
        C,
        F,
    ),
    "sums": (
        lambda x, i, f, b, c: [
            *(np.sum(x), x.sum(axis=1), np.sum(x, axis=(0, -1)), np.sum(x, axis=1, keepdims=True), np.sum(x, axis=()), np.sum(c, axis=0)),
            *(
                np.sum(i),
                np.sum(i, axis=0, dtype="int8"),
                np.sum(f),
                np.sum(b),
                np.nansum(x),
                np.count_nonzero(i),
                np.count_nonzero(x > 0, 1),
            ),
        ],
        X,
        I,
        F,
        B,
        C,
    ),
    "products": (lambda x, i, f: [np.prod(i, axis=1), np.prod(x, axis=0), x.prod(), f.prod(axis=0, keepdims=True)], X, I, F),
    "running results": (
        lambda x, i, f: [
            np.cumsum(x),
            np.cumsum(i, axis=1),
            np.cumprod(f, axis=0),
            i.cumsum(axis=-1),
            x.cumprod(1),
            np.cumsum(f, dtype="float64"),
        ],
        X,
        I,
        F,
    ),
    "methods of ufuncs": (
        lambda x, i, b: [
            *(
                np.add.reduce(x),
                np.add.reduce(x, axis=None),
                np.add.accumulate(i, 1),
                np.multiply.reduce(i, axis=1),
                np.multiply.accumulate(i),
            ),
            *(
                np.maximum.reduce(x, axis=1),
                np.minimum.reduce(x, axis=(0, 2)),
                np.logical_or.reduce(b),
                np.logical_and.reduce(b, keepdims=True),
            ),
            *(np.maximum.accumulate(x), np.minimum.accumulate(np.where(x > 4, np.nan, x), axis=-1), np.maximum.accumulate(b)),
            *(np.minimum.accumulate(i, 1), np.maximum.accumulate(x[:0]), np.maximum.accumulate(i, dtype="float64")),
        ],
        X,
        I,
        B,
    ),
    "extremes": (
        lambda x, i, b, g: [
            *(np.max(x), x.max(axis=(0, 1)), np.amin(i), i.min(axis=0), np.max(b), np.ptp(x, axis=1), np.argmax(x), x.argmin(axis=1)),
            *(np.argmax(i, axis=0, keepdims=True), np.max(g, axis=2), np.min(g), np.argmax(g, axis=2), np.argmin(g)),
        ],
        X,
        I,
        B,
        GAPS,
    ),
    "truth": (
        lambda x, i, b: [np.all(x), np.any(b), (x > 0).all(axis=1), (i > 0).any(axis=0, keepdims=True), np.all(b), np.any(i, axis=1)],
        X,
        I,
        B,
    ),
    "means": (
        lambda x, i, f, c: [
            *(
                np.mean(x),
                x.mean(axis=1),
                i.mean(),
                f.mean(axis=0),
                np.mean(c),
                np.mean(x, axis=-1, keepdims=True),
                np.mean(i, dtype="float32"),
                np.mean(i, axis=0, dtype="int64"),
                np.add.reduce(i, axis=1, dtype="int8"),
                np.multiply.reduce(i, axis=0, dtype="float32"),
            ),
            *(np.average(x), np.average(x, axis=1, weights=np.array([1.0, 2.0, 3.0])), np.average(x, axis=0, returned=True)),
        ],
        X,
        I,
        F,
        C,
    ),
    "variances": (
        lambda x, i, f, c: [
            *(np.var(x), x.var(axis=(0, 2)), np.var(f, axis=0, ddof=1), np.std(i), x.std(axis=1, keepdims=True), np.var(c, axis=0)),
            np.std(x, correction=1),
        ],
        X,
        I,
        F,
        C,
    ),
    "medians": (
        lambda x, i, g: [
            np.median(x),
            np.median(x, axis=1),
            np.median(x, axis=(0, 2)),
            np.median(i),
            np.median(x, 0, keepdims=True),
            np.median(g, 2),
        ],
        X,
        I,
        GAPS,
    ),
    "means without NaN": (lambda g: [np.nanmean(g), np.nanmean(g, axis=2), np.nansum(g, axis=0)], GAPS),
    "norms": (
        lambda x, m, c, i: [
            *(np.linalg.norm(x), np.linalg.norm(m, axis=1), np.linalg.norm(m, 1), np.linalg.norm(m, np.inf), np.linalg.norm(m, -1)),
            *(np.linalg.norm(m, "fro"), np.linalg.norm(m[0], 1), np.linalg.norm(m[0], np.inf), np.linalg.norm(m[0], 3), np.linalg.norm(c)),
            *(np.linalg.norm(i), np.linalg.norm(m, axis=0, keepdims=True), np.linalg.norm(x, 1, axis=(0, 2)), np.linalg.norm(m[0], 0)),
            *(np.linalg.norm(c[0], 1), np.linalg.norm(m, -np.inf, keepdims=True), np.linalg.norm(m[0], 2), np.linalg.norm(m[0], -np.inf)),
        ],
        X,
        M,
        C,
        I,
    ),
    "interpolation": (
        lambda x, v: [
            *(
                np.interp(x, np.sort(v), v),
                np.interp(v[0], np.array([0.0, 1.0, 3.5]), np.array([5.0, 7.0, 6.0])),
                np.interp(x, v[:1], v[1:2]),
                np.interp(np.append(x, np.arange(-1, 4.5, 0.5)), np.array([0.0, 1, 2, 2, 3]), np.array([np.inf, np.inf, 2, -np.inf, 4])),
            ),
            np.interp(x, np.sort(v), v, left=-9.0, right=np.nan),
        ],
        X,
        V,
    ),
    "sorting": (
        lambda x, v, i, g: [
            *(
                np.sort(x),
                np.sort(x, axis=0),
                np.sort(x, axis=None),
                np.argsort(v),
                np.argsort(x, axis=1, kind="stable"),
                np.sort(i, axis=0),
            ),
            *(
                np.sort(g),
                np.argsort(g, axis=0, kind="stable"),
                np.searchsorted(np.sort(v), v),
                np.searchsorted(np.sort(v), 2.0, side="right"),
            ),
            *(np.searchsorted(np.sort(v), x), np.searchsorted([1, 2, 3], v)),
        ],
        X,
        V,
        I,
        GAPS,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_reductions_give_what_numpy_gives(case):
    assert_as_numpy(*CASES[case])


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "max", "min", "argmax", "argmin", "cumsum", "cumprod"])
def test_the_loops_of_a_card_compute_what_its_oracle_computes(name):
    assert_lowered_as_evaluated(CARDS[name])


def test_sums_of_single_precision_are_as_good_as_numpys():
    x = np.full(20_000, 0.1, "float32")
    found = lowered(CARDS["sum"], (x,), {"axis": (0,), "keepdims": False})
    assert abs(float(found) - float(np.sum(x, dtype="float64"))) <= 2 * np.spacing(np.float32(2000))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_an_empty_extreme_is_refused(name):
    assert not CARDS[name].lower.allow_empty


def test_names_of_pytensor():
    x = nt.dmatrix("x")
    greatest, place = nt.max_and_argmax(x, axis=1)
    assert greatest.node is nt.max(x, axis=1).node
    assert place.node is nt.argmax(x, axis=1).node


def test_reductions_are_methods():
    x = nt.fmatrix("x")
    assert x.sum(0).node is np.sum(x, axis=0).node
    assert x.std(axis=1, ddof=1).node is np.std(x, axis=1, ddof=1).node
    assert (x.mean().dtype, x.argmax().dtype, x.all().dtype) == (np.float32, np.int64, np.bool_)


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: np.sum(x, axis=3), np.exceptions.AxisError, "axis 3 is out of bounds"),
        (lambda x: np.sum(x, axis=(0, 0)), ValueError, "repeated axis"),
        (lambda x: np.sum(x, where=x > 0), TypeError, r"np.sum\(where=.*not supported"),
        (lambda x: np.max(x, initial=0.0), TypeError, r"np.max\(initial=0.0\) is not supported"),
        (lambda x: np.sum(x, axis=nt.lscalar("k")), TypeError, "axis is traced"),
        (lambda x: np.searchsorted(x, 1.0), ValueError, "must be a vector"),
        (lambda x: np.searchsorted(x[0, 0], 1.0, side="top"), ValueError, "'left' or 'right'"),
        (lambda x: np.linalg.norm(x[0], 3), ValueError, "ord=3 over 2 axes is not supported"),
        (lambda x: np.sort(x, order="f"), TypeError, "order='f'"),
    ],
)
def test_what_cannot_be_is_refused_while_tracing(function, error, words):
    with pytest.raises(error, match=words):
        function(*inputs_for((X,), True))


@pytest.mark.parametrize("n", [0, 1, 5, 40])
def test_lexsort_sorts_by_the_last_key_first(n):
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 3, n), rng.integers(0, 4, n) / 2, rng.integers(0, 2, n)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(ns.jit(lambda *given: np.lexsort(given))(*keys[:k]), np.lexsort(keys[:k]))
    table = rng.integers(0, 3, (2, 4, n))
    for axis in (0, 1):
        found = ns.jit(lambda both, axis=axis: np.lexsort((both[0], both[1]), axis=axis))(table)
        np.testing.assert_array_equal(found, np.lexsort((table[0], table[1]), axis=axis))


@pytest.mark.parametrize(("n", "m"), [(3, 4), (20, 30), (20, 1), (30, 20)])
def test_lexsort_refuses_keys_of_different_lengths(n, m):
    with pytest.raises(ValueError, match="lexsort: key 2 has"):
        ns.jit(lambda a, b: np.lexsort((a, b)))(np.arange(n), np.arange(m))


# routines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorting_routines_equal_numpys(name):
    rng = np.random.default_rng(7)
    routine, complex_routine = getattr(sorting, f"{name}_into"), getattr(sorting, f"{name}_into_complex")
    for length in (0, 1, 2, 15, 16, 17, 33, 200):
        x = rng.integers(-9, 9, length) / 2
        x[rng.random(length) < 0.1] = np.nan
        _assert_sorted(name, routine, x)
        z = x + 1j * rng.permutation(x)
        _assert_sorted(name, complex_routine, z)


def _assert_sorted(name, routine, x):
    expected = getattr(np, name)(x, kind="stable")
    found = np.empty_like(expected)
    routine(found, x)
    np.testing.assert_array_equal(found, expected)


def test_the_search_routine_equals_numpys():
    ordered = np.array([-2.0, 0.5, 0.5, 0.5, 3.0, np.nan])
    wanted = np.array([0.5, -7.0, 3.5, np.nan, -2.0, 2.0])
    for side in ("left", "right"):
        found = np.empty(6, "int64")
        sorting.search_into(found, ordered, wanted, side == "right")
        np.testing.assert_array_equal(found, np.searchsorted(ordered, wanted, side))


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("shape, axis", [((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((2, 0, 3), (1, 2)), ((0, 0), None)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_median_of_nothing_is_nan(shape, axis, keepdims):
    x = np.zeros(shape)
    found = ns.jit(lambda x: np.median(x, axis, keepdims=keepdims), mode="python")(x)
    np.testing.assert_array_equal(found, np.median(x, axis, keepdims=keepdims), strict=True)


OF_VECTORS = [(shape, axis, ord) for shape, axis in [((0,), None), ((3, 0), 1)] for ord in (None, 0, 1, 2, np.inf)]
OF_MATRICES = [(shape, None, ord) for shape in [(0, 3), (3, 0), (0, 0)] for ord in (None, "fro", "nuc", 1, 2, np.inf)]


@pytest.mark.parametrize("shape, axis, ord", OF_VECTORS + OF_MATRICES)
def test_the_norm_of_nothing_is_0(shape, axis, ord):
    found = ns.jit(lambda x: np.linalg.norm(x, ord, axis), mode="python")(np.zeros(shape))
    np.testing.assert_array_equal(found, np.zeros(3) if axis == 1 else 0.0)
