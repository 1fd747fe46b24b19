"""What to write instead of a NumPy function that has no counterpart here."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..ops.card import at_line

_ORDER_STATISTIC = "np.sort and a fixed position, as np.sort(x)[k]"
_COUNTS = "np.bincount(k, minlength=n_bins), with k from np.searchsorted(edges, x)"
_TAPS = "ns.scan with taps, sequences=dict(input=x, taps=[-1, 0])"
_LENGTH = "np.where(mask, x, other), since how long a result is must not depend on its values"
_TRANSFORM = "x @ W with the matrix of the transform, W = np.fft.fft(np.eye(n))"
_SINGULAR_VALUES = "np.linalg.eigh(x.T @ x), whose eigenvalues are the squares of the singular values"
_NORMAL_EQUATIONS = "np.linalg.solve(a.T @ a, a.T @ b), the normal equations"
_WRITTEN = "nt.set_subtensor(x[index], values), or np.where for a choice: a traced value is never written into"
_WITHOUT_NAN = "np.where(np.isnan(x), other, x) and the function without nan in its name"
_UNIQUE = "nt.unique(x, size=n), whose result has n elements"

OF_UNKNOWN_LENGTH: dict[Any, str] = {
    **dict.fromkeys((np.compress, np.extract, np.nonzero, np.flatnonzero, np.argwhere), "np.where(mask, x, other)"),
    np.unique: _UNIQUE,
}
"""What to write instead of functions whose result is as long as the values make it."""

INSTEAD = {
    **dict.fromkeys(("percentile", "quantile", "nanpercentile", "nanquantile", "partition", "argpartition"), _ORDER_STATISTIC),
    **dict.fromkeys(("histogram", "histogram2d", "histogramdd"), _COUNTS),
    **dict.fromkeys(("convolve", "correlate"), _TAPS),
    **dict.fromkeys(("union1d", "intersect1d", "setdiff1d", "setxor1d", "trim_zeros"), _LENGTH),
    **dict.fromkeys(("unique_values", "unique_counts", "unique_inverse", "unique_all"), _UNIQUE),
    **dict.fromkeys(("apply_along_axis", "apply_over_axes", "piecewise"), "ns.map(f, x), or np.where for a choice"),
    **dict.fromkeys(("copyto", "place", "put", "put_along_axis", "putmask"), _WRITTEN),
    **dict.fromkeys(("delete", "insert"), "np.concatenate of the parts"),
    **dict.fromkeys(("nanmax", "nanmin", "nanargmax", "nanargmin", "nanprod", "nancumsum", "nancumprod", "nanmedian"), _WITHOUT_NAN),
    **dict.fromkeys(("nanvar", "nanstd"), "np.nanmean((x - np.nanmean(x))**2), and np.sqrt of it"),
    **dict.fromkeys(("svd", "svdvals", "matrix_rank"), _SINGULAR_VALUES),
    **dict.fromkeys(("lstsq", "pinv", "polyfit"), _NORMAL_EQUATIONS),
    **dict.fromkeys(("eig", "eigvals"), "np.linalg.eigh where the matrix is symmetric; nothing near it is supported for others"),
    **dict.fromkeys(("vector_norm", "matrix_norm"), "np.linalg.norm"),
    "array_equal": "(a == b).all()",
    "astype": "x.astype(dtype)",
    "beta": "np.exp(scipy.special.betaln(a, b))",
    "cond": "np.linalg.norm(x) * np.linalg.norm(np.linalg.inv(x)), the condition in that norm",
    "cumulative_prod": "np.cumprod",
    "cumulative_sum": "np.cumsum",
    "digitize": "np.searchsorted(edges, x)",
    "erfcinv": "-scipy.special.ndtri(0.5 * x) / np.sqrt(2)",
    "fill_diagonal": "x = nt.fill_diagonal(x, value), which gives the new array: a traced value is never written into",
    "geomspace": "np.exp(np.linspace(np.log(a), np.log(b), n))",
    "gradient": "np.diff",
    "isneginf": "x == -np.inf",
    "isposinf": "x == np.inf",
    "loggamma": "scipy.special.gammaln",
    "rollaxis": "np.moveaxis",
    "tensorinv": "np.linalg.inv of the matrix that np.reshape makes",
    "tensorsolve": "np.linalg.solve of the matrix that np.reshape makes",
    "unstack": "x[0], x[1], …",
}
"""What does the same, or nearly: likeness of names would lead astray. By name, as NumPy and SciPy spell it."""


def refuse(func: Any) -> NoReturn:
    """Raises TypeError: `func` is not supported, and what to write instead."""
    name = getattr(func, "__name__", str(func))
    if func in OF_UNKNOWN_LENGTH:
        instead = OF_UNKNOWN_LENGTH[func]
        raise TypeError(
            f"np.{name}: how long the result is only its values say{at_line()}, and shapes are fixed by shapes; write {instead}"
        )
    is_scipy = isinstance(func, np.ufunc) and getattr(np, name, None) is not func
    module = "scipy.special" if is_scipy else getattr(func, "__module__", None) or "numpy"
    raise TypeError(f"{module}.{name} is not supported on traced values{at_line()}; {_instead(module, name)}")


def _instead(module: str, name: str) -> str:
    if module.startswith("numpy.fft"):
        return f"write {_TRANSFORM}"
    if module == "numpy.linalg" and hasattr(np, name):  # np.linalg.trace, where np.trace is older and the same
        return f"write np.{name}"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    return "no supported function is near to it; write it in arithmetic, or compute it outside and hand it over as an argument"
