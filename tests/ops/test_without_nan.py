"""Reductions of what is not NaN, against NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

GAPS = np.array([[1.0, np.nan, 3.0, -2.0], [np.nan, np.nan, np.nan, np.nan], [4.0, 5.5, 6.0, np.nan]])
LONG = np.where(np.arange(60.0).reshape(20, 3) % 7 == 3, np.nan, np.sin(np.arange(60.0)).reshape(20, 3))
FUNCTIONS = [np.nanmax, np.nanmin, np.nanstd, np.nanvar, np.nanmedian, np.nanprod, np.nansum, np.nanmean, np.nanargmax, np.nanargmin]
RUNNING = [np.nancumsum, np.nancumprod]
ARRAYS = [GAPS, GAPS[0], GAPS[::2], GAPS.astype("float32"), np.arange(6).reshape(2, 3), LONG, GAPS[::2] * np.inf]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's of rows without a number
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": -1}, {"axis": 0, "keepdims": True}, {"axis": (0, 1)}, {"ddof": 1}])
@pytest.mark.parametrize("f", FUNCTIONS + RUNNING)
def test_results_are_numpys(f: Callable[..., Any], options: dict[str, Any]) -> None:
    for x in ARRAYS:
        try:
            expected = f(x, **options)
        except (TypeError, ValueError):
            continue  # no axis of that number, no parameter of that name; rows without a number are below
        result = ns.jit(lambda x: f(x, **options), mode="python")(x)
        np.testing.assert_allclose(result, expected, rtol=1e-6 if x.dtype == np.float32 else 1e-12)
        assert (result.dtype, result.shape) == (np.asarray(expected).dtype, np.shape(expected))


@pytest.mark.parametrize("f", [np.nanargmax, np.nanargmin])
def test_rows_without_a_number_have_no_place(f: Callable[..., Any]) -> None:
    for mode in ("python", None):
        with pytest.raises(ValueError, match="All-NaN slice"):
            ns.jit(lambda x: f(x, axis=1), mode=mode)(GAPS)


@pytest.mark.parametrize("f", [np.nanmax, np.nanmedian])
def test_complex_numbers_are_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="complex"):
        ns.jit(f, mode="python")(GAPS + 1j)


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if "arg" not in f.__name__])
def test_derivatives_and_compiled_code(f: Callable[..., Any]) -> None:
    np.testing.assert_allclose(ns.jit(lambda x: f(x, axis=0))(LONG), f(LONG, axis=0), rtol=1e-12)
    slope = ns.grad(lambda x: (f(x, axis=0) ** 2).sum())(LONG)
    steps = np.zeros_like(LONG)
    for place in np.ndindex(LONG.shape):
        d = np.zeros_like(LONG)
        d[place] = 1e-6
        steps[place] = ((f(LONG + d, axis=0) ** 2).sum() - (f(LONG - d, axis=0) ** 2).sum()) / 2e-6
    np.testing.assert_allclose(slope, np.where(np.isnan(LONG), 0, steps), atol=1e-7)


def test_rollaxis_is_a_view() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)

    def f(x: Any, axis: int, start: int) -> Any:
        view = np.rollaxis(x, axis, start)
        view[0] = -1.0
        return view + 0.0

    for axis in range(-3, 3):
        for start in range(-3, 4):
            mine, theirs = x.copy(), x.copy()
            result = ns.jit(lambda x, axis=axis, start=start: f(x, axis, start), mode="python")(mine)
            np.testing.assert_array_equal(result, f(theirs, axis, start))
            np.testing.assert_array_equal(mine, theirs)
