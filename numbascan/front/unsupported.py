"""What to write instead of functions without a counterpart here: NumPy's, and SciPy's that were given a traced value."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import takewhile
from types import FrameType, FunctionType
from typing import Any, NoReturn

import numpy as np

from ..errors import TracerError
from ..ops.card import at_line, is_library, is_users

_ORDER_STATISTIC = "np.sort and a fixed position, as np.sort(x)[k]"
_COUNTS = "np.bincount(k, minlength=n_bins), with k from np.searchsorted(edges, x)"
_TRANSFORM = "x @ W with the matrix of the transform, W = np.fft.fft(np.eye(n))"
_WRITTEN = "nt.set_subtensor(x[index], values), or np.where for a choice: a traced value is never written into"
_LOG_NORMAL = "-0.5 * ((x - loc) / scale)**2 - np.log(scale) - 0.5 * np.log(2 * np.pi)"
_UNIQUE = "np.unique(x, return_index=True, return_inverse=True, return_counts=True)"

INSTEAD = {
    "partition": _ORDER_STATISTIC,
    "argpartition": "np.argsort(x), whose first k are the places of the k least",
    **dict.fromkeys(("histogram2d", "histogramdd"), _COUNTS),
    **dict.fromkeys(("unique_values", "unique_counts", "unique_inverse", "unique_all"), _UNIQUE),
    **dict.fromkeys(("apply_along_axis", "apply_over_axes", "piecewise"), "ns.map(f, x), or np.where for a choice"),
    **dict.fromkeys(("copyto", "place", "put", "put_along_axis", "putmask"), _WRITTEN),
    **dict.fromkeys(("cho_factor", "cholesky_banded"), "L = np.linalg.cholesky(a), and nt.linalg.cho_solve((L, True), b)"),
    **dict.fromkeys(("vector_norm", "matrix_norm"), "np.linalg.norm"),
    "astype": "x.astype(dtype)",
    "loggamma": "scipy.special.gammaln(x) for x > 0",
    "lfilter": "ns.scan over the samples; dict(initial=…, taps=[-2, -1]) as sequence or output reads the rows before",
    "norm.pdf": f"np.exp({_LOG_NORMAL})",
    "norm.logpdf": _LOG_NORMAL,
    "norm.cdf": "scipy.special.ndtr((x - loc) / scale)",
    "norm.sf": "scipy.special.ndtr((loc - x) / scale)",
    "norm.logcdf": "scipy.special.log_ndtr((x - loc) / scale)",
    "norm.logsf": "scipy.special.log_ndtr((loc - x) / scale)",
    "norm.ppf": "loc + scale * scipy.special.ndtri(x)",
    "cumulative_prod": "np.cumprod",
    "cumulative_sum": "np.cumsum",
    "erfcinv": "-scipy.special.ndtri(0.5 * x) / np.sqrt(2)",
    "fill_diagonal": "x = nt.fill_diagonal(x, value), which gives the new array: a traced value is never written into",
    "geomspace": "np.exp(np.linspace(np.log(a), np.log(b), n))",
    "isneginf": "x == -np.inf",
    "nditer": "for v in x.ravel()",
    "isposinf": "x == np.inf",
    "tensorinv": "np.linalg.inv of the matrix that np.reshape makes",
    "tensorsolve": "np.linalg.solve of the matrix that np.reshape makes",
    "unstack": "x[0], x[1], …",
}
"""What does the same, or nearly, by the name in NumPy or SciPy; similar names would mislead.
Names that numbascan.tensor has need no entry."""

NO_ADVICE = "no supported function is near to it; write it in arithmetic, or compute it outside and hand it over as an argument"
INSTEAD_OF_METHODS = {
    "logaddexp.reduce": "write nt.logsumexp(x, axis=0)",
    "hypot.reduce": "write np.sqrt(np.sum(x**2, axis=0)), or np.linalg.norm(x, axis=0)",
    "subtract.reduce": "write x[0] - np.sum(x[1:], axis=0)",
    "divide.reduce": "write x[0] / np.prod(x[1:], axis=0)",
    "logical_xor.reduce": "write np.sum(x != 0, axis=0) % 2 == 1",
    "fmax.reduce": "write np.max(np.where(np.isnan(x), -np.inf, x), axis=0)",
    "fmin.reduce": "write np.min(np.where(np.isnan(x), np.inf, x), axis=0)",
    "matmul.reduce": "write np.linalg.multi_dot for a list of matrices, or ns.scan",
    "add.at": "write x = x[index].inc(y), which gives the new array",
    "subtract.at": "write x = x[index].inc(-y), which gives the new array",
    **{f"{name}.at": f"write x = x.at[index].{name}(y), which gives the new array" for name in ("multiply", "divide", "power")},
    "minimum.at": "write x = x.at[index].min(y), which gives the new array",
    "maximum.at": "write x = x.at[index].max(y), which gives the new array",
    "at": f"write {_WRITTEN}",
    "reduce": "write a loop, as ns.reduce; np.add, multiply, maximum, minimum, logical_and and logical_or have it",
    "accumulate": "write a loop, as ns.scan; np.add, multiply, maximum and minimum have it",
    "outer": "write the function of x[:, None] and y",
    "reduceat": "write the reduction of slices, as np.stack([np.sum(x[:2]), np.sum(x[2:])])",
}
"""What to write for methods of ufuncs, by "ufunc.method" or by the method alone."""
SPARSE = "write A.toarray() @ x for A @ x; or with A = A.tocoo() nt.inc_subtensor(nt.zeros(A.shape[0])[A.row], A.data * x[A.col])"
"""What to write instead of a sparse matrix."""


def refuse(func: Any) -> NoReturn:
    """Raises TypeError: `func` is not supported, with what to write instead."""
    refuse_in_libraries()
    name = getattr(func, "__name__", str(func))
    is_scipy = isinstance(func, np.ufunc) and getattr(np, name, None) is not func
    module = "scipy.special" if is_scipy else getattr(func, "__module__", None) or "numpy"
    raise TypeError(f"{module}.{name} is not supported on traced values{at_line()}; {_instead(module, name)}")


def refuse_in_libraries() -> None:
    """TracerError if a library function called by the user's code (SciPy's, or a ufunc of Numba's) asks for what a traced value lacks."""
    calls: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        calls.append(frame)
        frame = frame.f_back
    calls = [frame for frame in reversed(calls) if is_library(frame)]
    if calls and calls[0].f_globals["__name__"].startswith("numba."):  # a ufunc that Numba made
        raise TracerError(_compiled_by_numba(getattr(calls[0].f_locals.get("self"), "__name__", "f"), "leave the decorator out"))
    if calls:
        raise TracerError(given_to_library(calls))


def refuse_in_numba() -> NoReturn:
    """TracerError: a function compiled by Numba was given a traced value, whose type Numba asks for now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not hasattr(frame.f_locals.get("self"), "py_func"):
        frame = frame.f_back
    name = frame.f_locals["self"].py_func.__name__ if frame is not None else "f"
    raise TracerError(_compiled_by_numba(name, f"call {name}.py_func(x), the Python function"))


def _compiled_by_numba(name: str, instead: str) -> str:
    return f"{name}, a function compiled by Numba, was given a traced value{at_line()}; {instead}: what is traced is compiled in any case"


def given_to_library(calls: Sequence[FrameType], line: str | None = None) -> str:
    """The message for a SciPy function that was given a traced value. calls: the frames of the call, outermost first."""
    module, name = next(filter(None, map(_name_of_call, calls)), ("scipy", "a function"))
    label = f"{module}.{name}" if module != "scipy" else "a function of SciPy"
    return (
        f"{label} was given a traced value{at_line() if line is None else line}, and computes with numbers only; {_instead(module, name)}"
    )


def holds_traced(values: Iterable[Any], classes: tuple[type, ...], depth: int = 4) -> bool:
    """True if one of `values`, or an element of lists, tuples, dicts or object arrays among them, is of `classes`.

    Not searched: nests deeper than `depth`.
    """
    return any(isinstance(value, classes) or (depth and holds_traced(_parts(value), classes, depth - 1)) for value in values)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, np.ndarray):
        return value.flat if value.dtype == object else ()
    return value if isinstance(value, (list, tuple)) else ()


def _name_of_call(frame: FrameType) -> tuple[str, str] | None:
    """Public module and name of the function that runs in `frame`, as "scipy.stats", "norm.logpdf"; None if it has none."""
    parts = frame.f_globals["__name__"].split(".")
    public = [part.startswith("_") for part in [*parts, "_"]].index(True)
    module, function = ".".join(parts[:public]), frame.f_code.co_name
    names = sys.modules.get(module)
    owner = frame.f_locals.get("self")
    if owner is None:
        return (module, function) if callable(getattr(names, function, None)) else _decorated(frame)
    name = next((name for name, value in vars(names).items() if value is owner), type(owner).__name__)  # scipy.stats.norm, or a class
    return module, name if function.startswith("__") else f"{name}.{function}"


def _decorated(frame: FrameType) -> tuple[str, str] | None:
    """Public module and name of the function behind a decorator's wrapper that runs in `frame`; None if there is none."""
    for value in list(frame.f_locals.values()):
        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(value, FunctionType) and name is not None and str(module).startswith("scipy."):
            public = ".".join(takewhile(lambda part: not part.startswith("_"), str(module).split(".")))
            if callable(getattr(sys.modules.get(public), name, None)):
                return public, name
    return None


def _instead(module: str, name: str) -> str:
    if module.startswith(("numpy.fft", "scipy.fft")):
        return f"write np.fft.{name}" if hasattr(np.fft, name) else f"write {_TRANSFORM}"
    if module.startswith("scipy.sparse"):
        return SPARSE
    if ours := _of_ours(module, name):
        return f"write {ours}"
    if module == "numpy.linalg" and hasattr(np, name):  # np.linalg.trace, where np.trace is older and the same
        return f"write np.{name}"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    if module == "statistics":
        return f"write np.{name}" if hasattr(np, name) else "write NumPy's function (np.std(x, ddof=1) for stdev)"
    if module == "scipy.stats":
        return "write its formula; the functions of scipy.special that docs/ops.md lists take traced values"
    return NO_ADVICE


def _of_ours(module: str, name: str) -> str | None:
    """The function of numbascan.tensor with this name, as users write it; None if there is none."""
    if not module.startswith(("numpy", "scipy.special", "scipy.linalg")) or name in INSTEAD:
        return None
    tensor = import_module("numbascan.tensor")  # not at the top: it is above this module, and loaded with the package
    rooms = {"nt.linalg": tensor.linalg, "nt": tensor} if module.endswith("linalg") else {"nt": tensor}
    return next((f"{room}.{name}" for room, names in rooms.items() if callable(getattr(names, name, None))), None)
