"""What to write instead of a NumPy function that has no counterpart here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from ..ops.card import at_line

_ORDER_STATISTIC = "np.sort and a fixed position, as np.sort(x)[k]"
_COUNTS = "nt.inc_subtensor(nt.zeros(n_bins)[k], 1), with k from np.searchsorted(edges, x)"
_TAPS = "ns.scan with taps, sequences=dict(input=x, taps=[-1, 0])"
_LENGTH = "np.where(mask, x, other), since how long a result is must not depend on its values"
_TRANSFORM = "x @ W with the matrix of the transform, W = np.fft.fft(np.eye(n))"

INSTEAD = {
    **dict.fromkeys(("percentile", "quantile", "nanpercentile", "nanquantile", "partition", "argpartition"), _ORDER_STATISTIC),
    **dict.fromkeys(("histogram", "histogram2d", "histogramdd", "bincount"), _COUNTS),
    **dict.fromkeys(("convolve", "correlate"), _TAPS),
    **dict.fromkeys(("union1d", "intersect1d", "setdiff1d", "setxor1d"), _LENGTH),
    **dict.fromkeys(("apply_along_axis", "apply_over_axes", "piecewise"), "ns.map(f, x), or np.where for a choice"),
    "digitize": "np.searchsorted(edges, x)",
    "gradient": "np.diff",
    "polyfit": "np.linalg.solve on the normal equations",
}
"""Where the likeness of names would lead astray. By name, as NumPy spells it."""


def refuse(func: Any, supported: Iterable[Any]) -> NoReturn:
    """Raises TypeError: `func` is not supported, and what comes nearest to it among the `supported` functions."""
    name = getattr(func, "__name__", str(func))
    is_scipy = isinstance(func, np.ufunc) and getattr(np, name, None) is not func
    module = "scipy.special" if is_scipy else getattr(func, "__module__", None) or "numpy"
    raise TypeError(f"{module}.{name} is not supported on traced values{at_line()}; {_nearest(module, name, supported)}")


def _nearest(module: str, name: str, supported: Iterable[Any]) -> str:
    if module.startswith("numpy.fft"):
        return f"write {_TRANSFORM}"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    names = sorted({getattr(key, "__name__", "") for key in supported} - {""})
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
    return f"the nearest supported function is {close[0] if close else 'none'}"
