"""Every parameter of NumPy's functions is honoured, or refused by its name."""

import inspect
import warnings
from decimal import Decimal

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.variable import DISPATCH

A = np.array([[4.0, 1.5, -0.5], [1.5, 300.0, 0.25], [-0.5, 0.25, 2.0]])
V, K = np.array([0.5, 1.5, 3.0]), np.array([2, 0, 1])

FUNCTIONS = sorted(
    {key for key in DISPATCH if callable(key) and not isinstance(key, np.ufunc) and key.__module__.startswith("numpy")}
    - {np.empty_like},  # any numbers
    key=lambda key: (key.__module__, key.__name__),
)

BY_SIGN = {np.linalg.svd, np.linalg.eigh, np.linalg.qr}
"""Functions whose results have a sign that is LAPACK's choice."""

FIRST = {
    # the arguments of a function that does not take one matrix; what is an array is traced
    **dict.fromkeys(("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "broadcast_arrays"), ([A, A],)),
    **dict.fromkeys(("dot", "inner", "outer", "tensordot", "kron", "vdot", "isclose", "allclose", "isin", "cross", "average"), (A, A)),
    **dict.fromkeys(("array_split", "split", "vsplit", "hsplit"), (A, 3)),
    **dict.fromkeys(("moveaxis", "swapaxes"), (A, 0, 1)),
    **dict.fromkeys(("interp",), (V, V, V)),
    **dict.fromkeys(("linspace", "logspace"), (V, V + 1, 4)),
    **dict.fromkeys(("repeat", "tile", "roll", "expand_dims"), (A, 1)),
    **dict.fromkeys(("searchsorted",), (V, A)),
    **dict.fromkeys(("solve", "lstsq"), (A, V)),
    "multi_dot": ([A, A, A],),
    "matrix_power": (A, 2),
    **dict.fromkeys(("quantile", "nanquantile"), (A, 0.3)),
    **dict.fromkeys(("percentile", "nanpercentile"), (A, 30.0)),
    **dict.fromkeys(("array_equal", "intersect1d", "setdiff1d", "setxor1d"), (A, A + (A > 1))),
    **dict.fromkeys(("convolve", "correlate"), (V, V[:2])),
    "delete": (A, 1),
    "insert": (A, 1, 2.0),
    "compress": ([True, False, True], A),
    "extract": (A > 0, A),
    "digitize": (A, V),
    **dict.fromkeys(("polyder", "polyint"), (V,)),
    "polyfit": (V, V**2, 1),
    "unravel_index": (K, (3, 3)),
    "ravel_multi_index": ((K, K), (3, 3)),
    "trim_zeros": (np.array([0.0, 1.0, 0.0]),),
    "bincount": (K,),
    "broadcast_to": (V, (3, 3)),
    "choose": (K, A),
    "clip": (A, 0.0, 2.0),
    "cov": (A,),
    "diagonal": (A,),
    "einsum": ("ij->i", A),
    "full_like": (A, 3.0),
    "ix_": (K, K),
    "meshgrid": (V, V),
    "pad": (A, 1),
    "polyval": (V, A),
    "reshape": (A, (9,)),
    "select": ([A > 0, A > 1], [A, A]),
    "take": (A, K),
    "vander": (V,),
    "take_along_axis": (A, np.array([[0], [1], [2]])),
    "where": (A > 0, A, V),
    "vecdot": (A, A),
}

VALUES = {
    # for a parameter: values that are not NumPy's own
    "axis": (0, None, (0, 1)),
    "axes": ((1, 0), 1),
    "dtype": ("float32", "int8", "complex128", "bool"),
    "casting": ("no", "safe", "unsafe"),
    "out": (np.zeros(3), np.zeros((3, 3))),
    "keepdims": (True,),
    "initial": (2.0,),
    "where": (A > 0,),
    "order": ("F", "A"),
    "subok": (False,),
    "shape": ((2, 2),),
    "device": ("cpu",),
    "copy": (False, True),
    "ddof": (1,),
    "correction": (1,),
    "mean": (np.full((3, 3), 2.0),),
    "n": (0, 2, -1),
    "norm": ("ortho", "forward", "backward"),
    "s": ((2, 4), (-1, 3)),
    "start": (1, 3, -1),
    "prepend": (0.0,),
    "append": (1.0,),
    "k": (1, -1),
    "offset": (1,),
    "weights": (np.ones((3, 3)), V),
    "returned": (True,),
    "stable": (True,),
    "kind": ("stable",),
    "side": ("right",),
    "sorter": (K,),
    "left": (-1.0,),
    "right": (7.0,),
    "period": (2.0,),
    "rtol": (0.5,),
    "atol": (0.5,),
    "equal_nan": (True,),
    "nan": (1.0,),
    "posinf": (1.0,),
    "neginf": (1.0,),
    "decimals": (1, -1),
    "endpoint": (False,),
    "retstep": (True,),
    "base": (2.0,),
    "indexing": ("ij",),
    "sparse": (True,),
    "mode": ("wrap", "clip", "reflect", "complete", "r"),
    "rowvar": (False,),
    "bias": (True,),
    "fweights": (K + 1,),
    "aweights": (V,),
    "minlength": (9,),
    "invert": (True,),
    "assume_unique": (True,),
    "ord": (1, np.inf, "nuc"),
    "UPLO": ("U",),
    "upper": (True,),
    "hermitian": (True,),
    "full_matrices": (False,),
    "compute_uv": (False,),
    "tol": (1.0,),
    "rtol_": (1.0,),
    "rcond": (0.1,),
    "p": (1, "fro"),
    "axis1": (1,),
    "axis2": (0,),
    "axisa": (0,),
    "axisb": (0,),
    "axisc": (0,),
    "num": (3,),
    "N": (2,),
    "x": (V,),
    "y": (A,),
    "to_end": (np.ones(2),),
    "to_begin": (np.ones(2),),
    "dx": (0.5,),
    "default": (2.0,),
    "overwrite_input": (True,),
    "deg": (True,),
    "increasing": (True,),
    "optimize": (True,),
    "min": (0.5,),
    "max": (1.5,),
    "a_min": (0.5,),
    "a_max": (1.5,),
    "bins": (3, V),
    "range": ((0.0, 5.0),),
    "density": (True,),
    "edge_order": (2,),
    "method": ("lower", "higher", "nearest", "midpoint", "weibull"),
    "return_counts": (True,),
    "return_index": (True,),
    "return_indices": (True,),
    "return_inverse": (True,),
    "sorted": (False,),
    "trim": ("f", "B"),
    "m": (0, 2),
    "w": (V,),
    "full": (True,),
    "cov": (True,),
}


def is_traced(value):
    return isinstance(value, np.ndarray)


def leaves(value):
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value] * is_traced(value)


def filled(value, arrays):
    if isinstance(value, (list, tuple)):
        return type(value)(filled(part, arrays) for part in value)
    return next(arrays) if is_traced(value) else value


def results(value):
    return [leaf for part in value for leaf in results(part)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_every_parameter_is_honoured_or_refused_by_its_name(function):
    try:
        parameters = [name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_POSITIONAL]
    except ValueError:  # a compiled function that does not tell
        return
    arguments = FIRST.get(function.__name__, (A,))
    for name in parameters:
        for value in VALUES.get(name, ()):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check(function, arguments, name, value)


def test_every_optional_parameter_is_asked_for():
    signatures = [inspect.signature(function) for function in FUNCTIONS]
    optional = {name for one in signatures for name, parameter in one.parameters.items() if parameter.default is not parameter.empty}
    assert optional - VALUES.keys() == set()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: np.round(x, 1, np.ones(3)), r"np\.round\(out=…\)"),
        (lambda x: np.nansum(x, initial=2.0), r"np\.nansum\(initial=…\)"),
        (lambda x: np.std(x, where=x > 1), "where"),
        (lambda x: np.hypot.reduce(x), r"np\.linalg\.norm\(x, axis=0\)"),
        (lambda x: np.logaddexp.reduce(x), r"nt\.logsumexp\(x, axis=0\)"),
        (lambda x: np.subtract.reduce(x), r"x\[0\] - np\.sum\(x\[1:\], axis=0\)"),
        (lambda x: np.multiply.outer(x, x), r"x\[:, None\]"),
        (lambda x: np.concatenate(y[None] for y in x), r"an iterator.*\[… for …\]"),
        (lambda x: x + (y for y in x), r"computed with is an iterator .*, for which write a list"),
    ],
)
def test_what_is_not_supported_names_it_the_line_and_what_to_write(call, words):
    with pytest.raises(TypeError, match=rf"(?s)(?=.*test_parameters\.py, line \d+).*{words}"):
        ns.jit(call, mode="python")(V)


def test_the_advice_for_reductions_by_ufuncs_is_the_same_number():
    for ufunc, written in (
        (np.hypot, lambda x: np.linalg.norm(x, axis=0)),
        (np.logaddexp, lambda x: nt.logsumexp(x, axis=0)),
        (np.subtract, lambda x: x[0] - np.sum(x[1:], axis=0)),
        (np.divide, lambda x: x[0] / np.prod(x[1:], axis=0)),
    ):
        np.testing.assert_allclose(ns.jit(written, mode="python")(A), ufunc.reduce(A), rtol=1e-12)


def test_numbers_that_numpy_does_not_compute_with_are_refused():
    for number in (Decimal("1.5"), Decimal(2)):
        with pytest.raises(TypeError, match=r"Decimal.*test_parameters\.py, line \d+.*float"):
            ns.jit(lambda x, number=number: x * number, mode="python")(V)


def test_dtypes_of_means_grids_and_conjugates_are_those_of_numpy():
    cases = [
        (lambda x: np.mean(x, dtype="uint8"), np.array([1.5, 250.7, 300.0, 4.0])),
        (lambda k: np.mean(k, dtype="int8", axis=0), np.array([[100, 1], [100, 2], [101, 4]])),
        (lambda a: np.linspace(a, np.int8(9), 3), np.float32(1)),
        (lambda c: c.conj(), np.array([True, False])),
        (lambda x: np.interp(x, [0.0, 1.0, 2.0], [1 + 1j, complex(np.inf, 1), 2.0]), np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])),
    ]
    for function, x in cases:
        np.testing.assert_array_equal(ns.jit(function)(x), function(x), strict=np.ndim(function(x)) > 0)


def check(function, arguments, name, value):
    def call(*arrays):
        return tuple(results(function(*filled(arguments, iter(arrays)), **{name: np.copy(value) if name == "out" else value})))

    arrays = leaves(arguments)
    try:
        expected = call(*arrays)
    except Exception:
        expected = None
    label = f"{function.__name__}({name}={value!r})"
    try:
        found = ns.jit(call, mode="python")(*arrays)
    except Exception as error:
        is_named = expected is None or name in str(error) or "traced" in str(error)
        if not is_named:
            raise AssertionError(label) from error
        return
    assert expected is not None, f"{label} is refused by NumPy, and gives {found}"
    assert len(found) == len(expected), label
    for one, wanted in zip(found, expected, strict=True):
        dtype = np.dtype("float32") if np.asarray(wanted).dtype == np.float16 else np.asarray(wanted).dtype
        assert one.dtype == dtype, f"{label}: {one.dtype} for {dtype}"
        if function in BY_SIGN:
            one, wanted = np.abs(one), np.abs(wanted)
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-9, err_msg=label)
