"""NumPy's and SciPy's functions, which make arrays or numbers of what they are given: of traced values right results, or errors of ours."""

from __future__ import annotations

import contextlib
import copy
import importlib
import math
import warnings
from collections.abc import Callable, Collection, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

HERE = r"test_numpy_protocols\.py, line \d+"

# what functions are asked with: every array and every number is traced, in lists too -----------------------------------


def patterns(n: int) -> dict[str, tuple[Any, ...]]:
    """Arguments by name. Lengths of 16 and less are fixed in the first kinds, longer ones are open."""
    rng = np.random.default_rng(1)
    v, w = np.sort(rng.uniform(0.1, 0.9, (2, n)))
    square = rng.uniform(0.1, 0.9, (n, n)) + np.eye(n)
    of_arrays = {
        "vector": (v,),
        "two vectors": (v, w),
        "three vectors": (v, w, v),
        "matrix": (square,),
        "matrix and vector": (square, v),
        "a number and a vector": (v[0], w),
        "conditions": (v > 0.5,),
        "short integers": ((10 * v).astype("int8"),),
        "complex": (v + 1j * w,),
        "list of vectors": ([v, w],),
    }
    of_numbers = {
        "a number": (v[0],),
        "list of numbers": ([v[0], w[0], v[1]],),
        "two lists of numbers": ([v[0], w[0]], [v[1], w[1]]),
        "list of conditions": ([v[0] > 0.5, v[1] > 0.5, v[2] > 0.5],),
        "list of short integers": ([np.int8(100), np.int8(100), np.int8(3)],),
        "list of whole numbers": ([np.int64(3), np.int64(2)],),
        "list of precisions": ([np.float32(3e8), np.float32(1.0), np.float64(-3e8)],),
        "list of complex numbers": ([v[0] + 1j, 2j * w[0]],),
        "list with a number of Python": ([v[0], 2, 0.5],),
        "list of lists": ([[v[0], w[0]], [v[1], w[1]]],),
    }
    return of_arrays if n > 16 else of_arrays | of_numbers


def leaves_of(value: Any) -> list[Any]:
    """What is traced of an argument or of arguments."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [value] if isinstance(value, (np.ndarray, np.generic)) else []


def with_leaves(value: Any, leaves: Iterator[Any]) -> Any:
    """The same nest with other leaves."""
    if isinstance(value, (list, tuple)):
        return [with_leaves(part, leaves) for part in value]
    return next(leaves) if isinstance(value, (np.ndarray, np.generic)) else value


def results_of(value: Any) -> tuple[Any, ...]:
    return tuple(leaf for part in value for leaf in results_of(part)) if isinstance(value, (list, tuple)) else (value,)


# which functions ------------------------------------------------------------------------------------------------------

MODULES = ["numpy", "numpy.linalg", "numpy.fft", "numpy.polynomial.polynomial", "numpy.polynomial.chebyshev"]
SCIPY = {
    "scipy.special": "softmax log_softmax logsumexp comb factorial multigammaln erf gamma gammaln expit logit xlogy beta betainc j0 jv "
    "poch entr rel_entr zeta digamma polygamma sinc diric sph_harm_y bernoulli",
    "scipy.linalg": "norm solve inv det expm cholesky qr svd eigh lu lstsq pinv toeplitz circulant hankel block_diag companion logm "
    "sqrtm solve_triangular cho_factor null_space orth kron khatri_rao hilbert",
    "scipy.signal": "convolve correlate fftconvolve oaconvolve deconvolve detrend hilbert lfilter medfilt wiener resample sosfilt square",
    "scipy.stats": "zscore skew kurtosis pearsonr spearmanr gmean hmean iqr rankdata sem trim_mean describe entropy mode linregress",
    "scipy.ndimage": "convolve1d correlate1d gaussian_filter laplace median_filter sobel uniform_filter maximum_filter zoom shift",
    "scipy.integrate": "trapezoid simpson cumulative_trapezoid romb",
    "scipy.spatial.distance": "cdist pdist euclidean cosine cityblock squareform correlation",
    "scipy.fft": "fft ifft rfft dct dst fftshift ifftshift next_fast_len",
}
_ELSEWHERE = (
    "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromregex memmap info show_config show_runtime test get_include "
    "set_printoptions printoptions seterr seterrcall setbufsize getbufsize errstate frombuffer fromstring "
    "copyto place put put_along_axis putmask fill_diagonal shuffle nditer broadcast vectorize frompyfunc nested_iters ndindex ndenumerate"
)
ELSEWHERE = frozenset(_ELSEWHERE.split())
"""Functions that read and write files, settings or their argument, and those whose results are no arrays."""

NOT_OURS = {
    "argsort": "the order of equal elements",
    "bmat": "None for what is no array to it",
    "busday_count": "dates",
    "busday_offset": "dates",
    "is_busday": "dates",
    "empty": "any numbers",
    "empty_like": "any numbers",
    "eig": "complex eigenvalues always, as the page on differences says",
    "eigvals": "complex eigenvalues always",
    "isscalar": "asks for the class of a number",
    "packbits": "bits",
    "reciprocal": "of an object array of whole numbers, refused where its name is seen: tested by itself",
    "unpackbits": "bits",
}
"""Functions of which NumPy's result is not what is asked here, and why."""


def functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    names = SCIPY[module].split() if module in SCIPY else sorted(dir(importlib.import_module(module)))
    for name in names:
        function = getattr(importlib.import_module(module), name, None)
        is_kind = isinstance(function, type) and issubclass(function, (BaseException, np.dtype, np.generic, np.ndarray))
        if callable(function) and not name.startswith("_") and name not in NOT_OURS.keys() | ELSEWHERE and not is_kind:
            yield name, function


def expected_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[np.ndarray] | None:
    """NumPy's results; None where the function does not take these arguments, or gives no numbers."""
    try:
        results = [np.asarray(result) for result in results_of(function(*copy.deepcopy(arguments)))]
    except Exception:  # whatever it says to arguments that are not its own
        return None
    is_known = all(one.dtype.kind in "biufc" and one.dtype != np.float16 for one in results)  # half precision is single precision here
    return results if results and is_known else None


def is_ours(error: Exception) -> bool:
    return isinstance(error, ns.TracerError) or "test_numpy_protocols.py, line" in str(error)


def faults(module: str, n: int, before: Callable[[Any], Any] = lambda x: x, asked_with: Collection[str] = ()) -> list[str]:
    """What is neither NumPy's result nor an error of ours, where every function of a module is given traced values."""
    found: list[str] = []
    asked = 0
    for name, function in functions(module):
        for pattern, arguments in patterns(n).items():
            expected = None if asked_with and pattern not in asked_with else expected_of(function, arguments)
            if expected is None:
                continue
            asked += 1

            def traced(*values: Any, function: Any = function, arguments: Any = arguments) -> Any:
                return results_of(function(*with_leaves(arguments, map(before, values))))

            try:
                results = ns.jit(traced, mode="python")(*leaves_of(arguments))
            except Exception as error:
                if not is_ours(error):
                    found.append(f"{name}({pattern}): {type(error).__name__}: {error}")
                continue
            if not (len(results) == len(expected) and all(map(is_same, results, expected))):
                found.append(f"{name}({pattern}): {results} for {expected}")
    assert asked > 3
    return found


def is_same(result: Any, expected: np.ndarray) -> bool:
    """Is it NumPy's result? Half precision is float32 here."""
    array, dtype = np.asarray(result), np.float32 if expected.dtype == np.float16 else expected.dtype
    rtol = {2: 2e-3, 4: 2e-5}.get(expected.dtype.itemsize, 1e-7) if expected.dtype.kind in "fc" else 1e-7
    return array.dtype == dtype and array.shape == expected.shape and np.allclose(array, expected, rtol=rtol, atol=1e-12, equal_nan=True)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("n", [3, 20], ids=["fixed", "open"])
@pytest.mark.parametrize("module", [*MODULES, *SCIPY])
def test_every_function_gives_its_result_or_an_error_of_ours(module: str, n: int) -> None:
    assert faults(module, n) == []


ARRAYS = ("vector", "two vectors", "matrix", "matrix and vector", "a number and a vector", "list of vectors")
GO_BY_DTYPE = ("full_like", "imag", "nan_to_num", "ones_like", "zeros_like")


def test_every_function_of_what_asarray_gives_has_its_result_or_an_error_of_ours() -> None:
    """All but functions that go by the dtype of an array and look at no element of it, as the page on NumPy says."""
    found = faults("numpy", 3, before=lambda x: np.asarray(x) if x.ndim else x, asked_with=ARRAYS)
    assert [fault for fault in found if not fault.startswith(GO_BY_DTYPE)] == []


# one by one -----------------------------------------------------------------------------------------------------------


def normed(y: Any) -> Any:
    y = np.asarray(y)
    return y / y.sum()


def test_asarray_of_any_length_is_right_or_refused() -> None:
    f = ns.jit(normed, mode="python")
    for n in range(2, 14):  # the first eight are fixed
        y = np.arange(1.0, n + 1)
        if n < 10:
            np.testing.assert_allclose(f(y), normed(y))
    for n in (17, 40):
        np.testing.assert_allclose(ns.jit(normed, mode="python")(np.arange(n)), normed(np.arange(n)))
        with pytest.raises(ns.TracerError, match=rf"needs a fixed shape.*{HERE}.*leave np\.asarray out"):
            ns.jit(ns.as_written(FunctionType(normed.__code__, globals())), mode="python")(np.ones(n))


@pytest.mark.usefixtures("unconverted")
def test_lengths_that_open_are_refused_by_asarray_while_they_are_open() -> None:
    def f(y: Any, n_seen: list[Any]) -> Any:
        n_seen.append(y.type.shape[0])
        return normed(y)

    seen: list[Any] = []
    g = ns.jit(lambda y: f(y, seen), mode="python")
    for n in range(2, 15):
        y = np.arange(1.0, n + 1)
        try:
            np.testing.assert_allclose(g(y), normed(y))
        except ns.TracerError:
            assert seen[-1] is None
    assert None in seen


A = np.eye(3) + 1.0
PROTOCOLS: dict[str, tuple[Callable[[Any], Any], str | None]] = {
    # what is asked of x, and words of the error where x has an open length; None where it is right
    "__array__": (lambda x: np.asarray(x) * 2, "fixed shape"),
    "__array__ with a dtype": (lambda x: np.array(x, dtype="float64"), r"put into a NumPy array.*x\.astype\('float64'\)"),
    "__array__ of some": (lambda x: np.array([x[0], x[1]]) * 2, None),
    "__array__ that is copied": (lambda x: np.array(x, copy=False), "no memory that could be shared|fixed shape"),
    "np.r_": (lambda x: np.r_[x, 1.0], "fixed shape"),
    "np.c_": (lambda x: np.c_[x, x], "fixed shape"),
    "np.vectorize": (lambda x: np.vectorize(lambda y: 2 * y)(x), "fixed shape"),
    "a method of an array": (lambda x: np.ones(3).dot(x[:3]), "fixed shape"),
    "an element of an array": (lambda x: np.zeros(3).__setitem__(0, x[0]), "put into a NumPy array"),
    "an index of an array": (lambda x: A[(x > 0)[:3]], r"np\.where\(mask, value, array\)"),
    "__len__": (lambda x: len(x) * x, r"write x\.shape\[0\]"),
    "__iter__": (lambda x: sum(x), "needs a fixed length"),
    "__iter__ that NumPy asks for": (lambda x: x * np.iterable(x), None),
    "__bool__": (lambda x: x if x[0] else -x, r"np\.where\(condition, a, b\)"),
    "__int__": (lambda x: int(x[0]), r"x\.astype\('int64'\)"),
    "__float__": (lambda x: math.sin(x[0]), r"np\.sin for math\.sin"),
    "__complex__": (lambda x: complex(x[0]), r"x\.astype\('complex128'\)"),
    "__index__": (lambda x: [1, 2][x.astype("int64")[0]], "an index, a size"),
    "__trunc__": (lambda x: math.trunc(x[0]), r"np\.trunc\(x\)"),
    "__array_interface__": (lambda x: x.__array_interface__, "has no memory before it is computed"),
    "__array_struct__": (lambda x: x.__array_struct__, "has no memory before it is computed"),
    "__dlpack__": (lambda x: np.from_dlpack(x), "has no memory before it is computed"),
    "the buffer protocol": (lambda x: np.frombuffer(x), "bytes-like object is required"),
    "__array_priority__": (lambda x: np.ones(3) * x[:3], None),
    "__copy__": (lambda x: copy.copy(x) + copy.deepcopy([x])[0], None),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_gives_what_numpy_gives_or_is_refused(name: str) -> None:
    function, _ = PROTOCOLS[name]
    for x in (np.arange(1.0, 4.0), np.arange(1.0, 21.0)):
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            result = ns.jit(function, mode="python")(x)
            np.testing.assert_array_equal(result, function(x))


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_gives_what_numpy_gives_or_says_what_to_write(name: str) -> None:
    function, words = PROTOCOLS[name]
    for x in (np.arange(1.0, 4.0), np.arange(1.0, 21.0)):
        f = ns.jit(function, mode="python")
        if words is None:
            np.testing.assert_array_equal(f(x), function(x))
            continue
        try:
            np.testing.assert_array_equal(f(x), function(x))
        except (TypeError, ValueError, AttributeError) as error:
            with pytest.raises(type(error), match=words):
                raise
        else:
            assert len(x) == 3


def test_known_values_are_numbers_to_every_protocol() -> None:
    ones = nt.ones(3)
    assert np.asarray(ones).dtype == np.float64
    assert (float(ones[0]), int(ones[1]), bool(ones[2]), len(ones), [1, 2][nt.constant(1)]) == (1.0, 1, True, 3, 2)
    assert np.isfinite(np.array(ones, dtype="float32")).all()


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "complex128"])
def test_arrays_of_what_numpy_would_widen_cast_or_take_apart_are_refused(dtype: str) -> None:
    x = np.array([1, 0, 1]).astype(dtype)
    for collect in (lambda x: np.array([x[0], x[1]]), lambda x: np.sum([x[0], x[1], x[2]]), lambda x: np.asarray(x)):
        with pytest.raises(ns.TracerError, match=rf"dtype {dtype}.*{HERE}.*np\.stack"):
            ns.jit(collect, mode="python")(x)
    np.testing.assert_array_equal(ns.jit(lambda x: np.sum(np.stack([x[0], x[1], x[2]])))(x), x.sum(), strict=True)


@pytest.mark.usefixtures("unconverted")
def test_single_precision_is_collected_beside_its_kind_alone() -> None:
    x, y = np.array([3e8, 1.0, -3e8], dtype="float32"), np.array([0.1, 0.2])

    def rotated(x: Any) -> Any:
        return 0.5 * np.array([x[1], -x[0]]) + x[:2]

    for values in (x, x.astype("float64")):  # one kind of call after the other
        np.testing.assert_array_equal(ns.jit(rotated, mode="python")(values), rotated(values), strict=True)
    for collect in (
        lambda x, y: np.array([x[0], y[0]]),
        lambda x, y: np.sum([y[0], x[0], x[1]]),
        lambda x, y: np.array([x[0], 1 + 0 * y[0].astype("int64")]),
    ):
        with pytest.raises(ns.TracerError, match=rf"dtypes float(32 and|64).*{HERE}.*np\.stack"):
            ns.jit(collect, mode="python")(x, y)


@pytest.mark.usefixtures("unconverted")
def test_what_asarray_gives_cannot_be_written_into_and_a_copy_can() -> None:
    def writes(x: Any, taken: Callable[[Any], Any]) -> Any:
        y = taken(x)
        y[0] = 5.0
        return y

    x = np.arange(3.0)
    with pytest.raises(ns.TracerError, match=rf"written into.*{HERE}.*nt\.set_subtensor"):
        ns.jit(lambda x: writes(x, np.asarray))(x)
    np.testing.assert_array_equal(ns.jit(lambda x: writes(x, np.array), mode="python")(x), [5.0, 1.0, 2.0])


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("collected", [lambda x: np.array([x[0], x[1]]), lambda x: [x[0], x[1]], np.asarray])
def test_functions_that_go_by_the_dtype_alone_are_refused_by_name(collected: Callable[[Any], Any]) -> None:
    with pytest.raises(ns.TracerError, match=rf"np\.nan_to_num.*{HERE}.*np\.stack"):
        ns.jit(lambda x: np.nan_to_num(collected(x)), mode="python")(np.array([np.nan, 1.0]))


@pytest.mark.usefixtures("unconverted")
def test_integers_of_an_object_array_are_refused_where_the_result_would_be_a_float() -> None:
    for function in (lambda k: np.reciprocal(np.array([k[0], k[1]])), lambda k: np.round([k[0], k[1]])):
        with pytest.raises(TypeError, match=rf"{HERE}.*np\.stack"):
            ns.jit(function, mode="python")(np.array([2, 3]))
    np.testing.assert_array_equal(ns.jit(lambda x: x * np.prod(x.shape), mode="python")(np.ones((20, 18))), np.full((20, 18), 360.0))


def test_several_polynomials_at_a_traced_array_are_refused() -> None:
    c, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 2.0])
    for value in (np.polynomial.polynomial.polyval, np.polynomial.chebyshev.chebval):
        with pytest.raises(ns.TracerError, match=rf"of several polynomials.*{HERE}"):
            ns.jit(lambda x, value=value: value(x, c), mode="python")(x)
        np.testing.assert_array_equal(ns.jit(lambda x, value=value: value(x, c[0]), mode="python")(x), value(x, c[0]))


# methods --------------------------------------------------------------------------------------------------------------

IN_PLACE: dict[str, tuple[Any, ...]] = {
    "partition": (1,),
    "resize": ((2, 1),),
    "setflags": (False,),
    "setfield": (1.0, "float64"),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("n", [2, 20], ids=["fixed", "open"])
def test_methods_that_work_in_place_and_are_not_supported_are_refused(name: str, n: int) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        getattr(y, name)(*IN_PLACE[name])
        return y

    with pytest.raises(AttributeError, match=rf"{name}.*{HERE}.*in place.*write "):
        ns.jit(f, mode="python")(np.arange(float(n)))


def test_what_an_ndarray_has_a_traced_value_has_or_says_what_to_write() -> None:
    x = nt.dmatrix("x")
    missing = [name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(x, name)]
    assert {"sort", "tolist", "tobytes"} <= set(missing)
    for name in missing:
        with pytest.raises(AttributeError, match=rf"no attribute '{name}' \({HERE.replace('test_', '.*test_')}"):
            getattr(x, name)
