"""Arrays by identity, with the switch on: whatever is written is seen by every name and view of it, as under NumPy, or is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.front.tree import flattened
from numbascan.front.variable import DISPATCH, METHODS, PROPERTIES, Variable
from numbascan.front.views import Assumption, UnsureView


def compare(f: Callable[..., Any], *args: Any, mode: str | None = "python") -> None:
    """The results of the traced function, and its arguments afterwards, are those of the function itself."""
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    expected, result = f(*theirs), ns.jit(f, mode=mode)(*mine)
    for one, other in zip(flattened((expected, theirs))[0], flattened((result, mine))[0], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)
        assert np.asarray(other).dtype == np.asarray(one).dtype


def right_or_refused(f: Callable[..., Any], *args: Any) -> bool:
    """As `compare`, or the traced function raises and leaves its arguments as they were; whether it gave results."""
    mine = copy.deepcopy(args)
    try:
        ns.jit(f, mode="python")(*mine)
    except (ValueError, TypeError):
        for one, other in zip(flattened(args)[0], flattened(mine)[0], strict=True):
            np.testing.assert_array_equal(other, one)
        return False
    compare(f, *args)
    return True


# what shares memory, function by function ---------------------------------------------------------------------------------

A = np.array([[4.0, 1.5, -0.5], [1.5, 300.0, 0.25], [-0.5, 0.25, 2.0]])
V, K, M, Z = np.array([0.5, 1.5, 3.0]), np.array([2, 0, 1]), np.array([[1, 2], [3, 4]]), np.array([1 + 2j, 3 - 1j])
T = np.arange(24.0).reshape(2, 3, 4)
ONE = np.ones((1, 3, 1))
N = np.array(3.0)

MATRIX = [(A,)]
CALLS: dict[str, list[tuple[Any, ...]]] = {
    **{key: [([A, A],), ([A],)] for key in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block")},
    **{key: [([A, A],), ([A],), ([A.T, A.T],), ([A, A.T],), ([V, V],)] for key in ("concatenate", "stack", "vstack")},
    **{key: [(V, V), (A, A)] for key in ("dot", "inner", "outer", "tensordot", "kron", "vdot", "isclose", "allclose", "isin", "cross")},
    "tensordot": [(A, A), (A, A.T)],
    "matmul": [(A, A), (A.T, A.T), (A, V)],
    "dot": [(A, A), (A.T, A.T), (A, V), (V, V)],
    **{key: [(A, 0), (V,)] for key in ("average",)},
    **{key: [(A, 3), (A, 1), (V, 3)] for key in ("array_split", "split")},
    **{key: [(A, 3), (V, 3)] for key in ("hsplit",)},
    "vsplit": [(A, 3), (A, 1)],
    "dsplit": [(T, 2), (T, 1)],
    **{key: [(A, 0, 1), (A, 0, 0), (T, 0, 2)] for key in ("moveaxis", "swapaxes")},
    "rollaxis": [(A, 1), (A, 0), (T, 2), (T, 0), (T, 1, 3)],
    "interp": [(V, V, V)],
    **{key: [(V, V + 1, 4)] for key in ("linspace", "logspace")},
    **{key: [(A, 1), (V, 1), (V, 2)] for key in ("repeat", "tile")},
    "roll": [(A, 0), (A, 1), (V, 0)],
    "expand_dims": [(A, 1), (V, 0), (V, (0, 1))],
    "searchsorted": [(V, A), (V, V)],
    **{key: [(A, V)] for key in ("solve", "lstsq")},
    "multi_dot": [([A, A, A],), ([A, A],)],
    "matrix_power": [(A, 1), (A, 2), (A, 0)],
    "bincount": [(K,)],
    "broadcast_to": [(V, (3, 3)), (V, (3,)), (A, (3, 3))],
    "broadcast_arrays": [(A, V), (A, A), (V, V)],
    "choose": [(K, A), (K, [V, V, V])],
    "clip": [(A, 0.0, 2.0), (A, None, None), (V, 0, 9)],
    "diagonal": [(A,), (A, 1), (T,)],
    "diag": [(A,), (V,), (A, 1)],
    "diff": [(A, 0), (A,), (V, 0)],
    "ediff1d": [(V,)],
    "einsum": [("ij->i", A), ("ij->ji", A), ("ii->i", A), ("ij", A), ("i,i->i", V, V)],
    **{key: [(A, 3.0), (V, 3.0), (N, 3.0)] for key in ("full_like",)},
    **{key: [(A,), (V,), (N,)] for key in ("zeros_like", "ones_like", "empty_like")},
    "meshgrid": [(V, V), (V,)],
    "pad": [(A, 1), (A, 0)],
    "polyval": [(V, A)],
    "reshape": [(A, (9,)), (A, (3, 3)), (A, -1), (V, (3, 1)), (V, (3,)), (T, (6, 4)), (ONE[0, 0], ())],
    "ravel": [(A,), (V,), (T,)],
    "squeeze": [(A,), (ONE,), (ONE, 0), (ONE[:, 0],)],
    **{key: [(A,), (V,), (T, (0, 1, 2)), (T, (2, 0, 1))] for key in ("transpose", "permute_dims")},
    "matrix_transpose": [(A,), (T,)],
    **{key: [(A,), (V,), (A, 0)] for key in ("flip",)},
    "rot90": [(A,), (A, 0), (A, 4)],
    **{key: [(A,), (V,), (N,), (V, A)] for key in ("atleast_1d", "atleast_2d", "atleast_3d")},
    **{key: [(A,), (V,), (Z,), (N,)] for key in ("real", "imag")},
    "nan_to_num": [(A,), (M,), (Z,)],
    **{key: [(A,), (M,), (V, 1)] for key in ("round", "around")},
    "select": [([A > 0, A > 1], [A, A]), ([V > 0], [V])],
    "take": [(A, K), (A, 0), (A, 0, 1)],
    "append": [(A, A), (V, V)],
    "take_along_axis": [(A, np.array([[0], [1], [2]]))],
    "vander": [(V,)],
    "where": [(A > 0, A, V), (A > 0, A, A), (N > 0, N, N)],
    **{key: [(A, A)] for key in ("vecdot",)},
    **dict.fromkeys(("tril_indices_from", "triu_indices_from"), MATRIX),
    "copy": [(A,), (V,), (N,)],
    "median": [(V,), (A,)],
    "ptp": [(A,)],
    "trapezoid": [(V,)],
    "fix": [(A,), (M,)],
    "angle": [(A,), (Z,)],
    **{key: [(A,), (V,), (A, None)] for key in ("sort", "argsort")},
    "unstack": [(A,)],
    "eigvals": MATRIX,
    "trim_zeros": [(V,)],
    **{key: [(A, A), (V, V)] for key in ("array_equal", "intersect1d", "setdiff1d", "setxor1d", "union1d")},
    **{key: [(V, V)] for key in ("convolve", "correlate", "digitize")},
    **{key: [(A, 30.0), (V, [10.0, 20.0])] for key in ("percentile", "nanpercentile")},
    **{key: [(A, 0.3), (V, [0.1, 0.2])] for key in ("quantile", "nanquantile")},
    "compress": [(V > 1, V), (V > 1, A, 0)],
    "delete": [(V, 1), (A, 1, 0), (V, [0, 1])],
    "extract": [(A > 0, A)],
    "insert": [(V, 1, 2.0), (A, 1, 2.0, 0)],
    "histogram": [(A,), (V, V)],
    "histogram_bin_edges": [(A,), (V, V)],
    "polyder": [(V,), (V, 0)],
    "polyint": [(V,), (V, 0)],
    "polyfit": [(V, V, 1)],
    "ravel_multi_index": [((K, K), (9, 9))],
    "unravel_index": [(K, (3, 3))],
}
BY_METHOD: dict[str, list[tuple[Any, ...]]] = {
    **{
        name: calls
        for name, calls in CALLS.items()
        if name not in ("matrix_transpose", "copy", "sort", "round", "diagonal", "where", "compress")
    },
    "copy": [(A,), (V,), (N,), (A.T,)],
    "astype": [
        (A, "float64"),
        (A, "float32"),
        (V, "float64", "K", "unsafe", True, False),
        (V, "float32", "K", "unsafe", True, False),
        (N, "float64"),
    ],
    **{key: [(A,), (Z,), (M,)] for key in ("conj", "conjugate")},
    "view": [(A,), (V,)],
    "flatten": [(A,), (V,)],
    "diagonal": [(A,)],
    "reshape": [(A, 9), (A, (3, 3)), (A, -1), (V, 3, 1)],
    "round": [(A,), (M,)],
    "sort": [],
    "compress": [(V, V > 1), (A, V > 1, 0)],
    "searchsorted": [(V, A)],
    "transpose": [(A,), (T, 2, 0, 1), (T, (0, 1, 2)), (V,)],
    "swapaxes": [(A, 0, 1), (A, 0, 0)],
    **{key: [(A, A), (A, V)] for key in ("dot", "repeat")},
    "repeat": [(A, 1), (V, 2)],
    "take": [(A, K)],
    "choose": [(K, A)],
    "clip": [(A, 0.0, 2.0)],
}
NOT_ASKED = {"shape", "size", "ndim", "iscomplexobj", "isrealobj", "result_type"}  # which give no arrays

FUNCTIONS = sorted(
    {key for key in DISPATCH if callable(key) and str(getattr(key, "__module__", "")).startswith("numpy")}
    | {key for key in DISPATCH if isinstance(key, np.ufunc)},
    key=lambda key: (str(getattr(key, "__module__", "")), key.__name__),
)


def calls_of(f: Any) -> list[tuple[Any, ...]]:
    """Arguments for a function: one matrix, where nothing else is said."""
    if isinstance(f, np.ufunc):
        kinds = f.types[0][0] if "d" not in "".join(f.types) else "d"
        operand = {"d": A, "?": A > 0, "b": K}.get(kinds, V)
        vector = {"d": V, "?": V > 0, "b": K}.get(kinds, V)
        return [(operand,) * f.nin, (vector,) * f.nin] if f.signature is None else [(A,) * f.nin]
    return [(V, V)] if f in (np.linalg.outer,) else CALLS.get(f.__name__, MATRIX)


def sharing(result: Any, given: list[Any]) -> list[str]:
    """How the arrays in what NumPy gives lie to those that were given: of each "shared", "apart" or "number"."""
    return [
        ("shared" if any(isinstance(x, np.ndarray) and np.may_share_memory(leaf, x) for x in given) else "apart")
        if isinstance(leaf, np.ndarray)
        else "number"
        for leaf in flattened(result)[0]
    ]


def seen_sharing(result: Any, given: list[Any]) -> list[str]:
    """The same of traced arrays, and "unsure"."""
    return [_seen(leaf, given) if leaf.ndim or leaf.is_0d is True else "number" for leaf in map(as_traced, flattened(result)[0])]


def as_traced(leaf: Any) -> Any:
    return leaf if isinstance(leaf, Variable) else Variable(ns.front.variable.as_variable(leaf).node)


def _seen(leaf: Any, given: list[Any]) -> str:
    while leaf.view_of is not None:
        if isinstance(leaf.view_of, UnsureView):
            return "unsure"
        if isinstance(leaf.view_of.fact, Assumption) and not any(leaf.view_of.base is x for x in given):
            return "unsure"
        leaf = leaf.view_of.base
    return "shared" if any(leaf is x for x in given) else "apart"


def traced_sharing(call: Callable[..., Any], args: tuple[Any, ...]) -> list[list[str]]:
    """What is known of the results of a call on arguments of a traced function: how they lie to these, and whether in C order."""
    leaves, structure = flattened(args)
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "bifc"]
    found: list[list[str]] = []

    def f(values: Any) -> Any:
        if np.sum(values[0]).real > -1e300:
            pass
        arguments = list(leaves)
        values = [value if value.ndim else np.array(value) for value in values]
        for k, value in zip(places, values, strict=False):
            arguments[k] = value
        result = call(*ns.front.tree.unflatten(structure, arguments))
        found.append(seen_sharing(result, list(values)))
        in_order = all(leaves[k].flags.c_contiguous for k in places)  # what is assumed of arguments, the call looks at
        found.append([str(leaf.is_c is True or (bool(leaf.is_c) and in_order)) for leaf in map(as_traced, flattened(result)[0])])
        return 0.0

    ns.jit(f, mode="python")([leaves[k] for k in places])
    return found[-2:]  # of one array twice it is traced once more


def is_refused(error: Exception) -> bool:
    """Whether an error says that a call is refused, and is none of the test's own."""
    return "truth value is no index" in str(error)


def agree(call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with np.errstate(all="ignore"):
        expected = call(*args)
    try:
        shared, order = traced_sharing(call, args)
    except (TypeError, ValueError) as error:
        if not is_refused(error):
            raise
        return
    given = [leaf for leaf in flattened(args)[0] if isinstance(leaf, np.ndarray)]
    leaves = flattened(expected)[0]
    assert all(one in ("unsure", other) for one, other in zip(shared, sharing(expected, given), strict=True)), (
        shared,
        sharing(expected, given),
    )
    for is_c, leaf in zip(order, leaves, strict=True):
        assert is_c == "False" or not isinstance(leaf, np.ndarray) or leaf.flags.c_contiguous or leaf.ndim == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of functions that NumPy is about to give up
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f"{f.__module__ if hasattr(f, '__module__') else 'ufunc'}.{f.__name__}")
def test_results_share_memory_as_numpys_do(f: Any) -> None:
    if f.__name__ not in NOT_ASKED:
        for args in calls_of(f):
            agree(f, args)


@pytest.mark.parametrize("name", sorted(name for name in {*METHODS, *PROPERTIES} if hasattr(np.ndarray, name) and not name.startswith("_")))
def test_results_of_methods_share_memory_as_numpys_do(name: str) -> None:
    if name in PROPERTIES:
        for x in (A, V, Z) if name not in ("shape", "size", "flat") else ():
            if name != "mT" or x.ndim > 1:
                agree(lambda x: getattr(x, name), (x,))
        return
    for args in BY_METHOD.get(name, MATRIX):
        agree(lambda x, *rest: getattr(x, name)(*rest), args)


INDICES = {
    "0-d array": np.array(1),
    "NumPy's integer": np.int64(1),
    "True": True,
    "None": None,
    "list": [1],
    "nothing": (),
    "ellipsis": ...,
    "slice": slice(1, None),
    "step": slice(None, None, 2),
    "backwards": slice(None, None, -1),
    "column": (slice(None), 0),
    "last": (..., 0),
    "one element": (1, 2),
    "0-d view": (1, 2, ...),
    "0-d array and slice": (np.array(1), slice(None)),
    "mask": np.array([True, False, True]),
    "block": (slice(0, 2), slice(1, 3)),
    "rows": slice(0, 2),
    "rows in all columns": (slice(0, 2), slice(None)),
    "new axes": (None, slice(1, None), None),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=list(INDICES))
def test_what_brackets_give_shares_memory_as_numpys_does(index: Any) -> None:
    agree(lambda x: x[index], (A,))
    agree(lambda x: x.T[index], (A,))


def test_a_traced_position_gives_a_view_of_a_row_unless_it_is_an_array() -> None:
    def f(x: Any, i: Any) -> Any:
        row = x[i] if i > 0 else x[0]
        row = x[i]
        row[1] = 7.0
        return x, x[i, 1]

    compare(f, A, 1)
    compare(f, A, np.int64(1))
    compare(f, A, np.array(1))


# writes through what operations give --------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Any], Any]] = {
    "x.T": lambda x: x.T,
    "x.ravel()": lambda x: x.ravel(),
    "np.ravel(x)": np.ravel,
    "x.reshape(-1)": lambda x: x.reshape(-1),
    "np.reshape(x, x.shape + (1,))": lambda x: np.reshape(x, (*x.shape, 1)),
    "x[...]": lambda x: x[...],
    "x[:]": lambda x: x[:],
    "x[::2]": lambda x: x[::2],
    "x[1:]": lambda x: x[1:],
    "x[..., 0]": lambda x: x[..., :1],
    "x[:, :1]": lambda x: x[:, :1] if x.ndim > 1 else x,
    "x[0]": lambda x: x[0] if x.ndim > 1 else x,
    "x[None]": lambda x: x[None] if x.ndim < 3 else x,
    "x + 1": lambda x: x + 1,
    "x * 1": lambda x: x * 1,
    "+x": lambda x: +x,
    "np.positive(x)": np.positive,
    "x.copy()": lambda x: x.copy(),
    "np.copy(x)": np.copy,
    "copy.copy(x)": copy.copy,
    "copy.deepcopy(x)": copy.deepcopy,
    "np.array(x)": np.array,
    "np.asarray(x)": np.asarray,
    "np.ascontiguousarray(x)": np.ascontiguousarray,
    "np.asfortranarray(x)": np.asfortranarray,
    "x.astype(float)": lambda x: x.astype(float),
    "x.astype(float, copy=False)": lambda x: x.astype(float, copy=False),
    "np.empty_like(x) and all of x": lambda x: np.zeros_like(x) + x,
    "np.zeros_like(x)": np.zeros_like,
    "x.real": lambda x: x.real,
    "x.conj()": lambda x: x.conj(),
    "np.squeeze(x)": np.squeeze,
    "np.flip(x)": np.flip,
    "x.flatten()": lambda x: x.flatten(),
    "np.split(x, 1)[0]": lambda x: np.split(x, 1)[0],
    "np.atleast_2d(x)": np.atleast_2d,
    "x.view()": lambda x: x.view(),
    "np.diff(x, n=0)": lambda x: np.diff(x, n=0),
    "np.where": lambda x: np.where(x > 1e9, x, x),
    "np.rot90": lambda x: np.rot90(x) if x.ndim > 1 else x,
}


def chain(rng: np.random.Generator, n_steps: int, place: str) -> tuple[Callable[..., Any], str]:
    """A function that makes arrays out of one another, writes into one of them, and returns all."""
    names = list(rng.choice(list(STEPS), n_steps))
    sources = [int(rng.integers(0, k + 1)) for k in range(n_steps)]
    target = int(rng.integers(0, n_steps + 1))

    def f(x: Any) -> Any:
        if np.sum(x) > -1e300:
            pass
        arrays = [x]
        for name, source in zip(names, sources, strict=False):
            arrays.append(STEPS[name](arrays[source]))
        one = arrays[target]
        if place == "plain":
            one[...] = one * 2 + 1
        elif place == "branch":
            if x.ravel()[1] > 2:
                one += 1
            else:
                one *= 3
        elif place == "one branch":
            if x.ravel()[1] > 2:
                one.fill(4.0)
        elif place == "loop":
            for k in range(20):
                one *= 0.5
                one += k
        else:
            k, n = 0, x.ravel()[1] + 1
            while k < n:
                one += k
                k += 1
        return [np.sum(np.ravel(one) * np.arange(1.0, one.size + 1)) for one in arrays]

    return f, f"{names} of {sources}, into {target}, {place}"


@pytest.mark.parametrize("place", ["plain", "branch", "one branch", "loop", "while"])
@pytest.mark.parametrize("seed", range(2))
def test_random_chains_of_views_and_copies_are_right_or_refused(seed: int, place: str) -> None:
    rng = np.random.default_rng(seed)
    n_right = 0
    for _ in range(5):
        f, what = chain(rng, int(rng.integers(1, 5)), place)
        for x in (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3).T, np.arange(6.0), np.arange(12.0)[::2], np.ones((1, 3))):
            try:
                n_right += right_or_refused(f, x)
            except (AssertionError, IndexError) as error:
                raise AssertionError(what) from error
    assert n_right > 8


# programs -----------------------------------------------------------------------------------------------------------------

X, Y = np.array([0.5, -1.5, 2.0, 0.25]), np.array([1.0, 2.0, -3.0, 0.5])


def accumulated(x: Any) -> Any:
    s = np.zeros(4)
    s += x
    s += x
    return s


def into_known(x: Any) -> Any:
    z = np.zeros(4)
    np.add(x, 1, out=z)
    np.multiply(z, x, z)
    w = np.add(z, x, out=z)
    w[0] = 9.0
    return z


def into_where(x: Any) -> Any:
    z = np.zeros(4)
    np.sqrt(x, out=z, where=x > 0)
    np.negative(x, out=z, where=x < -1)
    return z


def into_sums(A: Any) -> Any:
    z = np.zeros(A.shape[1])
    np.sum(A, axis=0, out=z)
    y = np.empty(A.shape[0])
    np.dot(A, z, out=y)
    return z, y


def into_argument(x: Any, z: Any) -> Any:
    np.exp(x, out=z)
    np.clip(z, 0.5, 2.0, out=z)
    return np.sum(z)


def made(x: Any, n: int) -> Any:
    if x[0] > 100:
        n = n
    return (
        *(np.ones(n), np.full(n, x[0]), np.full((n, 2), x[1]), np.eye(n), np.identity(n), np.linspace(x[0], x[1], n)),
        *(
            np.zeros_like(x),
            np.zeros((n, 2)),
            np.arange(n, n + 3),
            np.ones(n, np.int64),
            np.zeros(n, dtype=bool),
            np.ones_like(x, dtype=int),
        ),
        *(
            np.full(n, 2),
            np.full(n, 2, dtype="float32"),
            np.zeros((2, n), order="C"),
            np.tri(n),
            np.linspace(0, 1, n),
            np.logspace(0, 1, n),
        ),
    )


def by_masks(x: Any) -> Any:
    a = x.copy()
    a[a > 0] *= 2
    a[x < 0] += 1
    a[a > 3] = 0.0
    a[a == 0] **= 2
    A = np.outer(x, np.arange(3.0)) + np.zeros((2, 4, 3))
    A[0, x > 0] = 4.0
    A[:, x < 0, 1] += 1
    A[..., A[0, 1] > 0] *= 3
    A[1, :, :][A[1] > 0.9] = 0.5
    A[:, x < 0, 1:] -= 2
    return a, A


def by_places(x: Any, idx: Any) -> Any:
    a = x.copy()
    a[idx] += x[idx]
    b = x.copy()
    np.add.at(b, idx, 1.0)
    np.subtract.at(b, idx, x[idx])
    return a, b


def swapped(x: Any, i: int, j: int) -> Any:
    a = x.copy()
    a[i], a[j] = a[j], a[i]
    return a


def overlapping(x: Any) -> Any:
    a, b, c = x.copy(), x.copy(), x.copy()
    a[1:] += a[:-1]
    b[:-1] = b[1:]
    c[::-1] += c
    a[1:-1] += 1
    b[::2] = 5.0
    return a, b, c


def rows_and_columns(A: Any, v: Any) -> Any:
    B = A.copy()
    B[:, 0] = v
    B[1][2] = 7.0
    B[0][1:] += v[:2]
    B.T[2, :] -= 1.0
    B[:, 1] *= v
    return B


def methods_that_write(x: Any) -> Any:
    a, b = x.copy(), x.copy()
    a.fill(x[0])
    b.sort()
    c = np.zeros(3)
    c.fill(x[1])
    d = x.reshape(2, 2).copy()
    d.sort(axis=0)
    np.fill_diagonal(d, x[0])
    np.put(b, [0, 2], x[:2])
    b.put([1], x[3])
    return a, b, c, d


def functions_that_write(x: Any, y: Any) -> Any:
    a, b, c = x.copy(), np.zeros(4), x.copy()
    np.copyto(a, y, where=x > 0)
    np.copyto(b, x)
    np.putmask(c, c < 0, 0.0)
    np.place(c, c > 1, 3.0)
    d = x.reshape(2, 2).copy()
    np.put_along_axis(d, np.argmax(d, axis=1)[:, None], -1.0, axis=1)
    return a, b, c, d


def parts(x: Any) -> Any:
    a = x.copy()
    a.flat[1] = 8.0
    A = x.reshape(2, 2).copy()
    A.T.flat[1] = 3.0
    A.flat[2:] = 0.5
    z = x + 1j * x
    z.real = x[0]
    z.imag[1:] = 2.0
    z.real += 1.0
    a.real = a * 2
    a.flat = a + 1
    return a, A, z, A.flat[1:3]


def sorted_in_a_loop(x: Any) -> Any:
    a = x.copy()
    total = 0.0
    for k in range(20):
        a *= -1
        a.sort()
        a[0] += k * x[1]
        total += a[-1]
    return a, total


def in_a_branch(x: Any) -> Any:
    a, z = x.copy(), np.zeros(4)
    if x[0] > 0:
        a.fill(2.0)
        np.copyto(z, 3.0)
        np.add(z, 1.0, out=z)
    else:
        a.sort()
        z.fill(1.0)
        np.add.at(z, [1, 1], 1.0)
    return a, z


def integers(k: Any) -> Any:
    a = k.copy()
    a //= 2
    a <<= 1
    a |= 1
    a **= 2
    a %= 7
    b = k > 0
    b |= k < -1
    b &= k != 2
    b ^= True
    b[0] = 5
    return a, b


def one_or_the_other(x: Any) -> Any:
    a, b = np.ones(3), np.zeros(3)
    z = a if x[0] > 0 else b
    return z * 2


B2, I4 = np.array([[0.5, 1.0, 2.0], [1.5, -1.0, 0.25], [1.0, 1.0, 1.0]]), np.array([3, -2, 5, 2])
PROGRAMS = [
    *((f, (X,)) for f in (accumulated, into_known, into_where, by_masks, overlapping, methods_that_write, parts, sorted_in_a_loop)),
    *((f, (s * X,)) for f in (in_a_branch, one_or_the_other) for s in (1, -1)),
    (into_sums, (B2,)),
    (into_argument, (X, Y)),
    (functions_that_write, (X, Y)),
    (made, (X, 3)),
    (by_places, (X, np.array([1, 2, 1, 1]))),
    (swapped, (X, 1, 3)),
    (rows_and_columns, (B2, np.array([1.0, 2.0, 3.0]))),
    (integers, (I4,)),
]


@pytest.mark.parametrize("f, args", PROGRAMS, ids=lambda one: getattr(one, "__name__", None))
def test_programs_that_write_compute_what_they_compute_under_python(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    compare(f, *args)


@pytest.mark.parametrize("f, args", PROGRAMS[:3] + PROGRAMS[-4:], ids=lambda one: getattr(one, "__name__", None))
def test_programs_that_write_are_compiled(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    compare(f, *args, mode="numba")


@pytest.mark.parametrize(
    "f", [accumulated, into_known, into_where, by_masks, overlapping, methods_that_write, sorted_in_a_loop, in_a_branch]
)
def test_derivatives_go_through_writes(f: Callable[..., Any]) -> None:
    def cost(x: Any) -> Any:
        results = f(x)
        results = results if isinstance(results, tuple) else (results,)
        total = 0.0
        for result in results:
            total = total + np.sum(result * np.arange(1.0, result.size + 1).reshape(result.shape))
        return total

    differences = [(cost(X + e) - cost(X - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(ns.jit(ns.grad(cost), mode="python")(X), differences, rtol=1e-5, atol=1e-8)


# names of one array -------------------------------------------------------------------------------------------------------


def known_before_written(x: Any) -> Any:
    a, b = np.ones(3), np.zeros(3)
    z = a if x[0] > 0 else b
    a[0] = 5.0
    return z[0]


def known_chosen_and_written(x: Any) -> Any:
    a, b = np.ones(3), np.zeros(3)
    z = a if x[0] > 0 else b
    z[0] = 5.0
    return a + b


def known_chosen_and_moved(x: Any) -> Any:
    a, b = np.ones(3), np.zeros(3)
    if x[0] > 0:
        z = a
    else:
        z = b
    v = z[1:]
    b += 3
    return z + v[0]


def known_view_chosen(x: Any) -> Any:
    a = np.zeros(4)
    z = a[:2] if x[0] > 0 else a[2:]
    a[0] = 1.0
    a[3] = 2.0
    return z


def chosen_in_a_list(x: Any) -> Any:
    arrays = [np.ones(3), np.zeros(3)]
    z = arrays[0] if x[0] > 0 else arrays[1]
    arrays[0][0] = 5.0
    return z


def one_or_or(x: Any) -> Any:
    a, b = np.ones(1), np.zeros(1)
    z = (x[0] > 0 and a) or b if x[1] > -9 else a
    b[0] = 4.0
    return z


def only_names(x: Any) -> Any:
    if x[0] > 0:
        z = np.ones(3)
    else:
        z = np.zeros(3)
    z[0] = 5.0
    z += x[1]
    return z


def chosen_and_returned(x: Any) -> Any:
    a = np.ones(3)
    if x[0] > 0:
        return a
    return np.arange(3.0)


@pytest.mark.parametrize(
    "f", [known_before_written, known_chosen_and_written, known_chosen_and_moved, known_view_chosen, chosen_in_a_list, one_or_or]
)
def test_arrays_that_are_one_of_two_are_right_or_refused(f: Callable[..., Any]) -> None:
    for s in (1, -1):
        right_or_refused(f, s * X)


@pytest.mark.parametrize("f", [only_names, chosen_and_returned, one_or_the_other])
def test_an_array_that_only_one_variable_knows_may_be_written_behind_a_choice(f: Callable[..., Any]) -> None:
    for s in (1, -1):
        compare(f, s * X)


# arrays that a loop hands out ---------------------------------------------------------------------------------------------


def bound_in_a_loop(y: Any) -> Any:
    q = np.ones(2)
    for _ in range(30):
        d = q
        y = y * 0.9
    d[0] = 7.0
    return q, d, y


def only_read_behind(y: Any) -> Any:
    q, d = np.ones((30, 2)), np.zeros(2)
    for i in range(30):
        d = q[i]
        y = y * 0.9 + d[0]
    return d + 1, q, y


def new_in_a_while(y: Any) -> Any:
    x = np.zeros(3)
    while y > 0.5:
        x = x * 2 + y
        y = y * 0.9
    x[0] = 1.0
    return x, y


def bound_anew_in_a_loop(y: Any) -> Any:
    q, d = np.ones(2), np.zeros(2)
    for _ in range(30):
        d = q
        y = y * 0.9
    d[0] = 7.0
    return q, y


def row_bound_in_a_loop(y: Any) -> Any:
    q = np.ones((30, 2))
    for i in range(30):
        d = q[i]
        y = y * 0.9 + d[0]
    d[0] = 5.0
    return d, q, y


def two_names_in_a_loop(y: Any) -> Any:
    for _ in range(30):
        d = e = np.zeros(2)
        y = y * 0.9
    d[0] = 7.0
    return e, y


def bound_in_a_while(y: Any) -> Any:
    q, d = np.ones(2), np.zeros(2)
    while y > 0.5:
        d = q
        y = y * 0.9
    d[0] = 7.0
    return q


def without_a_pass(y: Any) -> Any:
    x = np.zeros(3)
    e = x
    while y > 5:
        x = x * 2 + y
        y = y * 0.9
    x[0] = 1.0
    return x, e


def element_bound_in_a_loop(y: Any) -> Any:
    s, q = [np.zeros(2)], np.ones(2)
    for _ in range(30):
        s[0] = q
        y = y * 0.9
    s[0][0] = 7.0
    return q, y


def bound_in_a_choice_in_a_loop(y: Any) -> Any:
    q, d = np.ones(2), np.zeros(2)
    for i in range(30):
        if i == 29:
            d = q
        y = y * 0.9
    d[0] = 7.0
    return q, y


OF_NUMPYS = np.ones(2)


def an_array_from_outside(y: Any) -> Any:
    d = np.zeros(2)
    for _ in range(30):
        d = OF_NUMPYS
        y = y * 0.9
    d[0] = 7.0
    return OF_NUMPYS + y


@pytest.mark.parametrize("f", [bound_in_a_loop, only_read_behind, new_in_a_while])
def test_a_loop_hands_out_arrays_of_numpys(f: Callable[..., Any]) -> None:
    compare(f, 1.25)


@pytest.mark.parametrize(
    "f",
    [
        *(bound_anew_in_a_loop, row_bound_in_a_loop, two_names_in_a_loop, bound_in_a_while, without_a_pass, element_bound_in_a_loop),
        *(bound_in_a_choice_in_a_loop, an_array_from_outside),
    ],
)
def test_an_array_of_numpys_that_a_loop_hands_out_is_not_written_unseen(f: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="copy it first"):
        ns.jit(f)(1.25)


# arrays of rank 0 ---------------------------------------------------------------------------------------------------------


def boxes(x: Any) -> Any:
    s = np.zeros(())
    t = s
    s += x[0]
    s[()] = s * 2
    t[...] = t + 1
    return s, t


def box_and_number(x: Any) -> Any:
    s = np.where(x[0] > 0, x[0], 1.0)
    t = s
    s += 1
    n = np.sum(x)
    m = n
    n += 1
    return s, t, n, m


def boxes_in_a_choice(x: Any) -> Any:
    s = np.zeros(())
    t = s
    if x[0] > 0:
        s += x[0]
    else:
        s[()] = 7.0
    return s, t


def boxes_in_a_loop(x: Any) -> Any:
    s = np.zeros(())
    t = s
    for v in x:
        s += v
    for k in range(30):
        s += k * x[0]
    return s, t


def box_of_a_view(x: Any) -> Any:
    a = x.copy()
    s = a[1, ...]
    s += 1
    b = a[:1].reshape(())
    b *= 3
    c = np.squeeze(a[2:3])
    c[()] = 9.0
    return a, s, b


def number_as_array(x: Any, v: Any) -> Any:
    s = np.asarray(v)
    t = s
    s += 1
    u = np.atleast_1d(v)
    u[0] = x[0]
    return s, t, u, v


def box_handed_from_pass_to_pass(x: Any) -> Any:
    y = 0.0
    s = 0.0
    for i in range(30):
        y += 1
        s = np.where(x[i % 4] > 0, y, s)
        y = s
        s += 2
    return s, y


def box_or_number(x: Any) -> Any:
    s = 0.0
    if x[0] > 0:
        s = np.where(x[1] > 0, x[1], 2.0)
    z = s
    s += 1
    return s, z


def known_box_or_number(x: Any) -> Any:
    s = np.zeros(())
    z = s if x[0] > 0 else x[1]
    z += 1
    return z, s


def box_of_one_name(x: Any) -> Any:
    s = 0.0
    if x[0] > 0:
        s = np.where(x[1] > 0, x[1], 2.0)
    s += 1
    for i in range(30):
        s += x[0]
        s = np.where(x[i % 4] > 0, s + 1, s)
    s *= 2
    return s


def a_number_is_not_written(x: Any) -> Any:
    n = np.sum(x)
    n[()] = 3.0
    return n


@pytest.mark.parametrize("f", [boxes, box_and_number, boxes_in_a_choice, boxes_in_a_loop, box_of_a_view])
def test_arrays_of_rank_0_are_arrays(f: Callable[..., Any]) -> None:
    for s in (1, -1):
        right_or_refused(f, s * X)
        compare(f, s * X)


@pytest.mark.parametrize("f", [box_handed_from_pass_to_pass, box_or_number, known_box_or_number])
def test_a_number_or_an_array_of_rank_0_is_right_or_refused(f: Callable[..., Any]) -> None:
    for s in (1, -1):
        right_or_refused(f, s * X)
        compare(box_of_one_name, s * X)


def test_numbers_do_not_change() -> None:
    compare(number_as_array, X, 2.0)
    compare(number_as_array, X, np.float64(2.0))
    compare(number_as_array, X, np.array(2.0))
    with pytest.raises(TypeError, match="number"):
        ns.jit(a_number_is_not_written, mode="python")(X)


def test_an_argument_of_rank_0_is_written_by_ns_jit_alone() -> None:
    def f(x: Any) -> Any:
        y = x
        y += 1
        return x * y

    for x in (2.0, np.float64(2.0)):
        assert ns.jit(f, mode="python")(x) == f(x)
        assert ns.jit(ns.grad(f), mode="python")(x) == 2 * x + 1
    compare(f, np.array(2.0))
    for g in (ns.jit(ns.grad(f), mode="python"), ns.grad(f), ns.value_and_grad(f)):
        with pytest.raises(ValueError, match=r"rank 0|an argument of"):
            g(np.array(2.0))


# arguments ----------------------------------------------------------------------------------------------------------------


def writes_first(a: Any, b: Any) -> Any:
    if a[0] > -100:
        a[1] += 1.0
    a *= 2
    return b * 1.0


def writes_both(a: Any, b: Any) -> Any:
    a[0] = b[1]
    b[0] = a[1] + 1.0
    return a + b


def reads_both(a: Any, b: Any) -> Any:
    return a + b if a[0] > 0 else a - b


def test_one_array_given_twice_is_one_array() -> None:
    for f in (writes_first, writes_both, reads_both):
        mine, theirs = X.copy(), X.copy()
        result = ns.jit(f, mode="python")
        np.testing.assert_array_equal(result(mine, mine), f(theirs, theirs))
        np.testing.assert_array_equal(mine, theirs)
        compare(f, X, Y)  # and two remain two
        np.testing.assert_array_equal(result(mine, mine), f(theirs, theirs))
        mine, theirs = [X.copy(), Y.copy()], [X.copy(), Y.copy()]
        np.testing.assert_array_equal(result(*mine), f(*theirs))
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x[1:], x[:-1]),
        lambda x: (x, x[::-1]),
        lambda x: (x, x.view()),
        lambda x: (x[:4], x[4:]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x[::-1][:4], x[:4]),
        lambda x: (x.reshape(2, 4)[:, 0], x[::4]),
        lambda x: (x.reshape(2, 4)[:, 0], x.reshape(2, 4)[:, 1]),
    ],
)
@pytest.mark.parametrize("f", [writes_first, writes_both, reads_both])
def test_arguments_that_overlap_are_right_or_refused(f: Callable[..., Any], views: Callable[..., Any]) -> None:
    mine, theirs = np.arange(8.0), np.arange(8.0)
    expected = f(*views(theirs))
    try:
        result = ns.jit(f, mode="python")(*views(mine))
    except ValueError as error:
        if "shares memory" not in str(error):
            raise
        np.testing.assert_array_equal(mine, np.arange(8.0))
        return
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(mine, theirs)


LAYOUTS = {
    "strided": lambda: np.arange(8.0)[::2],
    "backwards": lambda: np.arange(4.0)[::-1],
    "of a matrix": lambda: np.arange(12.0).reshape(4, 3)[:, 1],
    "not aligned": lambda: np.frombuffer(bytearray(33), np.float64, 4, 1),
    "byte-swapped": lambda: np.arange(4.0).astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_arguments_are_written_however_they_lie(layout: Callable[[], Any]) -> None:
    def f(x: Any, y: Any) -> Any:
        x[1:] += y[0]
        x[0] = 3.0 if y[0] > 0 else 4.0
        return x.sum()

    mine, theirs = layout(), layout()
    g = ns.jit(f, mode="python")
    for _ in range(2):
        np.testing.assert_array_equal(g(mine, Y), f(theirs, Y))
        np.testing.assert_array_equal(mine, theirs)


def test_matrices_are_written_however_they_lie() -> None:
    def f(x: Any, y: Any) -> Any:
        x[1] += y[:3]
        x[:, 0] = 3.0 if y[0] > 0 else 4.0
        return x.T @ y[:2]

    for make in (lambda: np.arange(6.0).reshape(3, 2).T, lambda: np.arange(24.0).reshape(4, 6)[::2, ::-2], lambda: np.ones((2, 3))):
        mine, theirs = make(), make()
        np.testing.assert_allclose(ns.jit(f, mode="python")(mine, Y), f(theirs, Y))
        np.testing.assert_array_equal(mine, theirs)


def test_what_may_not_be_written_is_refused_before_anything_changes() -> None:
    def f(x: Any, y: Any) -> Any:
        y[0] = 1.0
        x[0] = 5.0 if y[1] > 0 else 6.0
        return x

    frozen, y = X.copy(), Y.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ns.jit(f, mode="python")(frozen, y)
    with pytest.raises(ValueError, match=r"read-only|more than one|shares memory"):
        ns.jit(f, mode="python")(np.broadcast_to(1.0, 4), y)
    np.testing.assert_array_equal(y, Y)


# errors that are NumPy's too ----------------------------------------------------------------------------------------------


def half_into_integers(k: Any, x: Any) -> Any:
    if x[0] > 0:
        k += 0.5
    return k


def half_into_some(k: Any, x: Any) -> Any:
    k[k > 0] += 0.5
    return k


def divided_in_place(k: Any, x: Any) -> Any:
    k /= 2 if x[0] > 0 else 3
    return k


def out_of_another_kind(k: Any, x: Any) -> Any:
    np.add(x, 1.0, out=k)
    return k


def too_many(k: Any, x: Any) -> Any:
    a = k[:1] * 1
    a += k if x[0] > 0 else k * 2
    return a


def mask_of_another_length(k: Any, x: Any) -> Any:
    k[x[:1] > 0] = 3
    return k


def written_into_a_broadcast(k: Any, x: Any) -> Any:
    b = np.broadcast_to(k, (2, 4))
    b[0] = 1 if x[0] > 0 else 2
    return b


def imaginary_part_of_real(k: Any, x: Any) -> Any:
    x.imag[0] = x[0]
    return x


def diagonal_written(k: Any, x: Any) -> Any:
    d = np.diagonal(x.reshape(2, 2))
    d[0] = x[1]
    return x


@pytest.mark.parametrize(
    "f",
    [
        *(half_into_integers, half_into_some, divided_in_place, out_of_another_kind, too_many, mask_of_another_length),
        *(written_into_a_broadcast, imaginary_part_of_real, diagonal_written),
    ],
)
def test_what_numpy_refuses_is_refused(f: Callable[..., Any]) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as theirs:
        f(I4.copy(), X.copy())
    k, x = I4.copy(), X.copy()
    with pytest.raises((TypeError, ValueError, IndexError)) as ours:
        ns.jit(f, mode="python")(k, x)
    assert isinstance(theirs.value, (TypeError,)) == isinstance(ours.value, (TypeError,))
    np.testing.assert_array_equal(k, I4)
    np.testing.assert_array_equal(x, X)


def test_powers_of_integers() -> None:
    def power(i: Any, x: Any) -> Any:
        return 2**-i if x[0] > 0 else 2 ** (1 - i)

    def of_array(k: Any, i: Any) -> Any:
        return k ** (-i) if i > 0 else k

    compare(power, 0, X)
    for i in (3, np.int64(3)):
        with pytest.raises(ValueError, match="negative integer powers"):
            ns.jit(power, mode="python")(i, X)
    with pytest.raises(ValueError, match="negative integer powers"):
        ns.jit(of_array, mode="python")(I4, 2)


# other transforms ---------------------------------------------------------------------------------------------------------


def writes_its_argument(x: Any) -> Any:
    x[0] = 2.0 if x[1] > 0 else 3.0
    return np.sum(x * x)


def test_arguments_of_other_transforms_may_not_be_written() -> None:
    x = X.copy()
    for g in (
        *(ns.grad(writes_its_argument), ns.value_and_grad(writes_its_argument), ns.jacobian(writes_its_argument)),
        ns.hessian(writes_its_argument),
    ):
        with pytest.raises(ValueError, match="x is written"):
            g(x)
    for g in (ns.vmap(writes_its_argument), lambda A: ns.map(writes_its_argument, A)):
        with pytest.raises(ValueError, match="is written"):
            g(B2.copy())
    np.testing.assert_array_equal(x, X)


def test_a_state_may_be_written_and_sequences_and_others_may_not() -> None:
    W = np.ones(3)

    def of_state(row: Any, state: Any) -> Any:
        state[0] += row[0] if row[1] > 0 else 1.0
        state *= 0.5
        return state

    def of_row(row: Any, state: Any) -> Any:
        row[0] = 1.0 if state[0] > 0 else 2.0
        return state + row

    def of_other(row: Any, state: Any) -> Any:
        W[0] = row[0]
        return state + row

    initial, rows = np.zeros(3), np.arange(15.0).reshape(5, 3) - 4
    state, expected = initial.copy(), []
    for row in rows:
        state = of_state(row, state.copy())
        expected.append(state)
    result, _ = ns.scan(of_state, sequences=rows, outputs_info=initial, mode="python")
    np.testing.assert_allclose(result, expected)
    np.testing.assert_array_equal(initial, np.zeros(3))
    for step in (of_row, of_other):
        with pytest.raises(ValueError, match="copy it first"):
            ns.scan(step, sequences=rows, outputs_info=initial, mode="python")
    np.testing.assert_array_equal(W, np.ones(3))


OUTSIDE = np.ones(4)


def writes_outside(x: Any) -> Any:
    OUTSIDE[0] = x[0]
    return x * OUTSIDE


def writes_a_number_outside(x: Any) -> Any:
    if x[0] > 0:
        x = x * 2
    OUTSIDE[0] = 3.0
    return x * OUTSIDE


def writes_a_number_outside_without_choices(x: Any) -> Any:
    OUTSIDE[1:] += 3.0
    return x * OUTSIDE


@pytest.mark.parametrize("f", [writes_outside, writes_a_number_outside, writes_a_number_outside_without_choices])
def test_what_is_read_from_outside_may_not_be_written(f: Callable[..., Any]) -> None:
    OUTSIDE[:] = 1.0
    with pytest.raises(ValueError, match="outside"):
        ns.jit(f, mode="python")(X)


# lists and dicts ----------------------------------------------------------------------------------------------------------


def list_written_before_it_is_read(x: Any) -> Any:
    a, b = [1.0, x[1]], [2.0, x[0]]
    z = a if x[0] > 0 else b
    a[0] = 9.0
    return z[0]


def list_written_by_another_name(x: Any) -> Any:
    a, b = [1.0, x[1]], [2.0, x[0]]
    if x[0] > 0:
        z = a
    else:
        z = b
    z[0] = 9.0
    return a[0] + b[0]


def dict_written_by_another_name(x: Any) -> Any:
    a, b = {"k": x[0]}, {"k": x[1]}
    z = a if x[0] > 0 else b
    z.update(k=1.0)
    return a["k"] + b["k"]


def inner_list_written(x: Any) -> Any:
    inner = [1.0, x[0]]
    if x[0] > 0:
        z = [inner, 1]
    else:
        z = [[2.0, 2.0], 1]
    z[0][0] = 5.0
    return inner, z


def list_bound_anew_on_one_way(x: Any) -> Any:
    z = [x[0], 2.0]
    m = z
    if x[0] > 0:
        z = [1.0, 2.0]
    z[1] = 9.0
    return m, z


def lists_that_nobody_else_knows(x: Any) -> Any:
    if x[0] > 0:
        z = [x[0], [1.0, 2.0]]
    else:
        z = [x[1], [2.0, 3.0]]
    z[0] += 1
    z[1][0] = 7
    z.append(5.0)
    w = [1.0, x[1]] if x[1] > 0 else [2.0, x[0]]
    w[0] = 8.0
    return z, w


def list_that_stays_itself(x: Any) -> Any:
    z = [x[0], 2.0]
    m = z
    if x[0] > 0:
        z[0] = 3.0
        y = 1
    else:
        y = 2
    z[1] = 9.0
    return m, z, y


def dicts_that_are_read(x: Any) -> Any:
    a, b = {"k": x[0], "w": np.ones(4)}, {"k": x[1], "w": x}
    z = a if x[0] > 0 else b
    return a["k"] + b["k"] + z["k"] * z["w"]


class Body:
    place: Any


def attribute_written_in_a_loop(x: Any) -> Any:
    body = Body()
    body.place = np.zeros(4)
    other = body.place
    for _ in range(30):
        body.place += x * 0.1
        if body.place[0] > 1:
            body.place[0] = 0
    return other, body.place


def array_at_a_traced_place(x: Any) -> Any:
    arrays = [np.zeros(4) for _ in range(3)]
    arrays[(x[0] > 0) * 1][0] = x[1]
    return arrays


def row_of_a_known_array(x: Any) -> Any:
    W = np.arange(12.0).reshape(3, 4)
    row = W[(x[0] > 0) * 1]
    W[1] = 0
    return row


@pytest.mark.parametrize(
    "f",
    [
        *(list_written_before_it_is_read, list_written_by_another_name, dict_written_by_another_name, inner_list_written),
        *(list_bound_anew_on_one_way, array_at_a_traced_place, row_of_a_known_array),
    ],
)
def test_lists_that_are_one_of_two_are_right_or_refused(f: Callable[..., Any]) -> None:
    for s in (1, -1):
        right_or_refused(f, s * X)


@pytest.mark.parametrize("f", [lists_that_nobody_else_knows, list_that_stays_itself, dicts_that_are_read, attribute_written_in_a_loop])
def test_lists_and_objects_go_through_choices(f: Callable[..., Any]) -> None:
    for s in (1, -1):
        compare(f, s * X)


def added_to_slices(s: Any, y: Any, width: int) -> Any:
    for i in range(len(s) - width + 1):
        s[i : i + width] += y
    return s


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize(("width", "n"), [(1, 3), (3, 2), (4, 3)])
def test_values_that_do_not_fit_a_slice_are_refused(width: int, n: int, mode: str | None) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        added_to_slices(np.ones(40), np.ones(n), width)
    with pytest.raises(ValueError, match=r"broadcast|fit"):
        ns.jit(added_to_slices, mode=mode)(np.ones(40), np.ones(n), width)
    compare(added_to_slices, np.ones(40), np.ones(1), width, mode=mode)


@pytest.mark.parametrize("mode", [None, "python"])
def test_a_row_that_is_put_where_it_is_must_be_there(mode: str | None) -> None:
    def itself(b: Any) -> Any:
        for i in range(len(b) + 1):
            b[i, 1:] = b[i, 1:]
        return b

    with pytest.raises(IndexError):
        ns.jit(itself, mode=mode)(np.ones((40, 3)))
