"""Linear algebra on matrices in the last two axes: systems, inverses, determinants, factors, eigenvalues, exponentials.

Values and errors are those of NumPy and SciPy; compiled code calls the routines of `numbascan.emit.runtime.routines`, or holds the scalar
statements of linalg_small.py; derivatives are in linalg_rules.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..ir.loops import least
from ..types import Shape, TensorType, show_shape
from . import linalg_small as small
from .card import Card, at_line, register
from .linalg_rules import RULES
from .lowering import Indices, Library, Operands, ScalarRoutine
from .runtime_attributes import must_equal

KNOWN_ROWS = 8  # up to this many rows there is a routine for each number of rows (SMALL in emit/runtime/routines/small.py)

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]


# types --------------------------------------------------------------------------------------------------------------


def float_dtype(*types: TensorType) -> str:
    """The dtype in which NumPy computes: single precision only where all operands have it, double for integers."""
    return np.result_type(*(type_.dtype if type_.kind in "fc" else "float64" for type_ in types)).name


def real_dtype(dtype: str) -> str:
    """The dtype of the real part."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def square_matrix(name: str, a: TensorType) -> int | None:
    """The number of rows; LinAlgError, as NumPy raises it, where `a` is no stack of square matrices."""
    if a.rank < 2:
        raise np.linalg.LinAlgError(f"{name} needs a matrix, not an array of shape {show_shape(a.shape)}{at_line()}")
    return _same(name, a.shape[-2], a.shape[-1], "matrices must be square, not {}", a)


def _same(name: str, n: int | None, m: int | None, rule: str, *types: TensorType) -> int | None:
    """The known one of two dimensions that must be equal."""
    if n is not None and m is not None and n != m:
        shapes = " and ".join(show_shape(type_.shape) for type_ in types)
        raise np.linalg.LinAlgError(f"{name}: {rule.format(shapes)}{at_line()}")
    return m if n is None else n


def _joined(name: str, a: TensorType, b: TensorType, core: int) -> Shape:
    """The leading axes of a matrix and of another operand with `core` axes of its own; `front/` has broadcast them."""
    rule = "leading axes of {} do not fit"
    return tuple(_same(name, n, m, rule, a, b) for n, m in zip(a.shape[:-2], b.shape[: b.rank - core], strict=True))


def _dtypes(*types: TensorType) -> tuple[str, ...]:
    return (float_dtype(*types),) * len(types)


# lowering -----------------------------------------------------------------------------------------------------------


def _routine(name: str) -> Callable[..., str]:
    """The routine, or its variant for a known, small number of rows."""

    def choose(a: TensorType, *others: TensorType) -> str:
        n = a.shape[-1]
        return f"{name}_{n}" if n is not None and n <= KNOWN_ROWS else name

    return choose


def _square_dims(view: Operands, name: str) -> Indices:
    dims = view.dims(0)
    must_equal(view, dims[-2], dims[-1], f"{name}: a matrix of {{0}} rows and {{1}} columns is not square")
    return dims


def _system_dims(name: str, core: int) -> Callable[[Operands], tuple[Indices, ...]]:
    """The dimensions of the solution of a system whose right-hand side has `core` axes of its own."""

    def dims(view: Operands) -> tuple[Indices, ...]:
        a, b = _square_dims(view, name), view.dims(1)
        must_equal(view, a[-1], b[len(b) - core], f"{name}: a matrix of {{0}} rows does not fit a right-hand side of {{1}} rows")
        for n, m in zip(a[:-2], b[: len(b) - core], strict=True):
            must_equal(view, n, m, f"{name}: leading axes of lengths {{0}} and {{1}} do not fit")
        return (b,)

    return dims


def _of_square(name: str, *drop: int) -> Callable[[Operands], tuple[Indices, ...]]:
    """The dimensions of results: for each number in `drop`, those of a square matrix without that number of last axes."""

    def dims(view: Operands) -> tuple[Indices, ...]:
        square = _square_dims(view, name)
        return tuple(square[: len(square) - count] for count in drop)

    return dims


# values -------------------------------------------------------------------------------------------------------------


@contextmanager
def _named(name: str, text: str | None = None) -> Iterator[None]:
    """Puts the op's name before NumPy's message."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"{name}: {text or error}") from None


def _by_numpy(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def evaluate(*operands: Any, **attrs: Any) -> Any:
        with _named(name):
            result = function(*operands, **attrs)
        return tuple(result) if isinstance(result, tuple) else result

    return evaluate


def _solve_vector(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b[..., np.newaxis])[..., 0]


def _triangular(a: Any, b: Any, lower: bool, trans: int, unit: bool, name: str = "solve_triangular") -> Any:
    from scipy.linalg import solve_triangular

    x = np.empty(b.shape, np.result_type(a, b, np.float32 if a.dtype.kind in "fc" and b.dtype.kind in "fc" else np.float64))
    with _named(name, "Singular matrix"):
        for place in np.ndindex(a.shape[:-2]):
            x[place] = solve_triangular(a[place], b[place], trans, lower, unit, check_finite=False)
    return x


def _expm(a: Any) -> Any:
    from scipy.linalg import expm

    return expm(a)


def _qr(a: Any, complete: bool) -> Any:
    return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))


# samples: neither symmetric nor square where they need not be, with every kind of number ----------------------------


def _matrices(rows: int, dtype: str = "float64", *batch: int) -> Any:
    rng = np.random.default_rng(rows)
    a = rng.normal(size=(*batch, rows, rows)) + 1j * rng.normal(size=(*batch, rows, rows))
    a = (a if dtype.startswith("complex") else a.real) + 2 * rows**0.5 * np.eye(rows)
    return np.roll(a, 1, axis=-2).astype(dtype)  # off the diagonal, so that rows must be exchanged


def _single() -> Samples:
    found = [_matrices(3), _matrices(1) - 5, _matrices(4, "complex128"), _matrices(11), _matrices(2, "float32", 2, 3)]
    return [((a,), {}) for a in (*found, np.array([[2, 1], [5, -3]]))]


def _definite() -> Samples:
    return [((np.tril(a @ a.conj().swapaxes(-1, -2)) + np.triu(a, 1),), {}) for ((a,), _) in _single()]


def _triangles_of_hermitian() -> Samples:
    """Matrices of which one triangle counts; the other holds something else."""
    return [((a,), {"lower": lower}) for lower in (True, False) for ((a,), _) in _single()]


def _systems(core: int, choices: Sequence[dict[str, Any]] = ({},)) -> Samples:
    """Systems whose right-hand sides have `core` axes of their own, with attributes by turns."""
    rng = np.random.default_rng(7)
    samples: Samples = []
    for k, ((a,), _) in enumerate(_single()):
        b = rng.normal(size=(*a.shape[:-1], 3)).astype(real_dtype(a.dtype.name) if a.dtype.kind in "fc" else "float64")
        samples.append(((a, b if core == 2 else b[..., 0].copy()), dict(choices[k % len(choices)])))
    return samples


_TRIANGLES = [
    {"lower": True, "trans": 0, "unit": False},
    {"lower": False, "trans": 2, "unit": False},
    {"lower": False, "trans": 0, "unit": True},
    {"lower": True, "trans": 1, "unit": False},
]


def _triangles(core: int) -> Samples:
    """Systems with the large elements back on the diagonal, as rows are not exchanged here."""
    return [((np.roll(a, -1, axis=-2) if a.dtype.kind in "fc" else a, b), attrs) for (a, b), attrs in _systems(core, _TRIANGLES)]


def _rectangles() -> Samples:
    rng = np.random.default_rng(3)
    found = [rng.normal(size=(4, 3)), rng.normal(size=(2, 5)), rng.normal(size=(3, 4, 2)) + 1j, rng.normal(size=(3, 3)).astype("float32")]
    return [((a,), {"complete": complete}) for complete in (False, True) for a in found]


# cards --------------------------------------------------------------------------------------------------------------


def _system(
    name: str,
    card: str,
    core: int,
    evaluate: Callable[..., Any],
    routine: str,
    samples: Callable[[], Samples],
    scalar: ScalarRoutine,
    **facets: Any,
) -> Card:
    """The card of `a @ x = b` for a right-hand side with `core` axes of its own."""

    def infer(a: TensorType, b: TensorType, **attrs: Any) -> TensorType:
        n = square_matrix(name, a)
        rows = _same(name, n, b.shape[b.rank - core], "matrix and right-hand side, of shapes {}, do not fit", a, b)
        shape = (*_joined(name, a, b, core), rows, *b.shape[b.rank - core + 1 :])
        return TensorType(float_dtype(a, b), shape)

    shape = ((2, core), (core,))
    lower = Library(
        _routine(routine), shape, _system_dims(name, core), dtypes=_dtypes, scalar=scalar, message=f"{name}: Singular matrix", **facets
    )
    vjp, jvp = RULES[card]
    return register(Card(card, evaluate, infer, lower, samples=samples, vjp=vjp, jvp=jvp))


def _triangle_statics(attrs: dict[str, Any]) -> tuple[Any, ...]:
    return attrs["lower"], attrs["trans"], attrs["unit"]


SOLVE = _system("solve", "solve", 2, _by_numpy("solve", np.linalg.solve), "linalg.solve_into", lambda: _systems(2), small.SOLVE)
SOLVE_VECTOR = _system(
    "solve", "solve_vector", 1, _by_numpy("solve", _solve_vector), "linalg.solve_vector_into", lambda: _systems(1), small.SOLVE
)
TRIANGULAR = _system(
    *("solve_triangular", "solve_triangular", 2, _triangular, "triangles.triangular_into", lambda: _triangles(2)),
    small.TRIANGULAR,
    statics=_triangle_statics,
)
TRIANGULAR_VECTOR = _system(
    *("solve_triangular", "solve_triangular_vector", 1, _triangular, "triangles.triangular_vector_into", lambda: _triangles(1)),
    small.TRIANGULAR,
    statics=_triangle_statics,
)

SOLVE_FACTORS = _system(  # as SOLVE_FACTOR, for several right-hand sides, in place of SOLVE
    *("solve", "solve_factors", 2, functools.partial(_triangular, name="solve"), "triangles.triangular_into", lambda: _triangles(2)),
    small.TRIANGULAR,
    statics=_triangle_statics,
)
SOLVE_FACTOR = _system(  # with one of the LU factors of a matrix, in place of SOLVE_VECTOR with the matrix
    *("solve", "solve_factor", 1, functools.partial(_triangular, name="solve"), "triangles.triangular_vector_into", lambda: _triangles(1)),
    small.TRIANGULAR,
    statics=_triangle_statics,
)


def _matrix_card(
    name: str,
    evaluate: Callable[..., Any],
    routine: Callable[..., str],
    results: tuple[tuple[int, bool], ...],
    samples: Callable[[], Samples],
    statics: Callable[[dict[str, Any]], tuple[Any, ...]] = lambda attrs: (),
    scalar: ScalarRoutine | None = None,
    fails: str = "",
) -> Card:
    """The card of a function of square matrices. results: for each, how many of the last two axes it lacks, and whether it is real."""

    def infer(a: TensorType, **attrs: Any) -> Any:
        n = square_matrix(name, a)
        shape, dtype = (*a.shape[:-2], n, n), float_dtype(a)
        types = [TensorType(real_dtype(dtype) if is_real else dtype, shape[: a.rank - drop]) for drop, is_real in results]
        return tuple(types) if len(types) > 1 else types[0]

    drops = [drop for drop, _ in results]
    message = fails and f"{name}: {fails}"
    lower = Library(routine, ((2,), tuple(2 - drop for drop in drops)), _of_square(name, *drops), statics, _dtypes, scalar, message)
    vjp, jvp = RULES[name]
    return register(Card(name, _by_numpy(name, evaluate), infer, lower, samples=samples, vjp=vjp, jvp=jvp))


INV = _matrix_card("inv", np.linalg.inv, _routine("linalg.inv_into"), ((0, False),), _single, scalar=small.INV, fails="Singular matrix")
DET = _matrix_card("det", np.linalg.det, _routine("linalg.det_into"), ((2, False),), _single, scalar=small.DET)
SLOGDET = _matrix_card(
    "slogdet", np.linalg.slogdet, _routine("linalg.slogdet_into"), ((2, False), (2, True)), _single, scalar=small.SLOGDET
)
CHOLESKY = _matrix_card(
    *("cholesky", np.linalg.cholesky, _routine("triangles.cholesky_into"), ((0, False),), _definite),
    scalar=small.CHOLESKY,
    fails="Matrix is not positive definite",
)
EXPM = _matrix_card(
    *("expm", _expm, lambda a: "spectral.expm_single_into" if float_dtype(a) in ("float32", "complex64") else "spectral.expm_into"),
    *(((0, False),), _single),
    fails="Singular matrix",
)
EIGH = _matrix_card(
    *(
        "eigh",
        lambda a, lower: np.linalg.eigh(a, "L" if lower else "U"),
        lambda a: "spectral.eigh_into",
        ((1, True), (0, False)),
        _triangles_of_hermitian,
    ),
    statics=lambda attrs: (attrs["lower"],),
    fails="Eigenvalues did not converge",
)
EIGVALSH = _matrix_card(
    *(
        "eigvalsh",
        lambda a, lower: np.linalg.eigvalsh(a, "L" if lower else "U"),
        lambda a: "spectral.eigvalsh_into",
        ((1, True),),
        _triangles_of_hermitian,
    ),
    statics=lambda attrs: (attrs["lower"],),
    fails="Eigenvalues did not converge",
)


def _qr_shapes(a: Any, complete: bool, lesser: Any) -> tuple[Any, Any]:
    batch, m, n = tuple(a[:-2]), a[-2], a[-1]
    k = m if complete else lesser
    return (*batch, m, k), (*batch, k, n)


def _qr_infer(a: TensorType, complete: bool) -> tuple[TensorType, TensorType]:
    if a.rank < 2:
        raise np.linalg.LinAlgError(f"qr needs a matrix, not an array of shape {show_shape(a.shape)}{at_line()}")
    m, n = a.shape[-2:]
    q, r = _qr_shapes(a.shape, complete, None if m is None or n is None else min(m, n))
    return TensorType(float_dtype(a), q), TensorType(float_dtype(a), r)


def _qr_dims(view: Operands) -> tuple[Indices, ...]:
    dims = view.dims(0)
    return _qr_shapes(dims, view.attrs["complete"], least(dims[-2], dims[-1]))


QR = register(
    Card(
        "qr",
        _by_numpy("qr", _qr),
        _qr_infer,
        Library(lambda a: "spectral.qr_into", ((2,), (2, 2)), _qr_dims, dtypes=_dtypes),
        samples=_rectangles,
        vjp=RULES["qr"][0],
        jvp=RULES["qr"][1],
    )
)
