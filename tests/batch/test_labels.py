"""pandas and xarray: arrays go by position, other labels are refused, and the cases of a batch keep theirs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import numbascan as ns
from numbascan import lax

DAYS = pd.date_range("2026-01-01", periods=4)
RAIN = pd.Series([1.0, 2.0, 3.0, 4.0], index=DAYS, name="rain")
TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [5, 6, 7, 8]}, index=DAYS)
FIELD = xr.DataArray(np.arange(8.0).reshape(4, 2), dims=("time", "x"), coords={"time": DAYS})


def quiet(f: Any, inputs: Any, **options: Any) -> Any:
    return ns.batch(f, inputs, progress=False, **options)


def added(row: Any, total: Any) -> Any:
    return row + total


@pytest.mark.parametrize("given", [RAIN, TABLE, FIELD, FIELD.chunk(time=2), pd.Index([1.0, 2.0, 3.0])])
def test_sequences_and_arguments_are_arrays(given: Any) -> None:
    array = np.asarray(given, "float64")
    start = np.zeros(array.shape[1:])
    paths = [
        ns.scan(added, sequences=given, outputs_info=start, return_updates=False, mode="python"),
        lax.scan(lambda total, row: (total + row, total + row), start, given)[1],
    ]
    for path in paths:
        assert type(path) is np.ndarray
        np.testing.assert_array_equal(path, array.cumsum(axis=0))
    np.testing.assert_array_equal(ns.vmap(lambda x: x * 2)(given), 2 * array)


def test_cases_keep_an_index_of_pandas() -> None:
    product = quiet(lambda a, b: a * b, TABLE, chunk=3)
    pd.testing.assert_series_equal(product, pd.Series([5.0, 12.0, 21.0, 32.0], index=DAYS))
    for inputs in ((TABLE["a"], TABLE["b"]), {"b": TABLE["b"], "a": TABLE["a"]}, (TABLE["a"], TABLE["b"].to_numpy())):
        pd.testing.assert_series_equal(quiet(lambda a, b: a * b, inputs), product)
    nest = quiet(lambda a, b: {"pair": np.stack([a, b]), "cube": np.ones((2, 2)) * a, "number": [a]}, TABLE)
    pd.testing.assert_frame_equal(nest["pair"], pd.DataFrame(TABLE.to_numpy(), index=DAYS))
    pd.testing.assert_series_equal(nest["number"][0], TABLE["a"], check_names=False)
    assert (type(nest["cube"]), nest["cube"].shape) == (np.ndarray, (4, 2, 2))  # a DataFrame has two axes
    columns = quiet(lambda column: column.sum(), (TABLE,), in_axes=1)
    assert columns.to_dict() == {"a": 10.0, "b": 26.0}


def test_cases_keep_a_dimension_of_xarray() -> None:
    twice = quiet(lambda row: (row.sum(), row * 2), (FIELD.chunk(time=3),), chunk=2)
    xr.testing.assert_identical(twice[0], FIELD.sum("x"))
    assert twice[1].dims == ("time", "dim_1")
    np.testing.assert_array_equal(twice[1].values, 2 * FIELD.values)
    data = xr.Dataset({"p": ("case", [1.0, 2.0]), "scale": 3.0})
    scaled = quiet(lambda p, scale: p * scale, data)
    xr.testing.assert_identical(scaled, xr.DataArray([3.0, 6.0], dims="case"))


def test_a_scan_function_takes_a_table() -> None:
    @ns.scan(n_steps=3, keep_last=1)
    def grow(y: Any, r: Any) -> Any:
        return y * r

    table = pd.DataFrame({"outputs_info": [1.0, 2.0], "r": [2.0, 3.0]}, index=["first", "second"])
    assert quiet(grow, table).to_dict() == {"first": 8.0, "second": 54.0}


def test_what_has_labels_beside_cases_that_have_none() -> None:
    shared = quiet(lambda x, w: x + w.sum(), (np.ones(2), RAIN), shared="w")
    assert type(shared) is np.ndarray
    grid = quiet(lambda a, b: a * b, ns.grid(a=RAIN, b=[1.0, 2.0]))
    assert (type(grid), grid.shape) == (np.ndarray, (4, 2))


def test_failed_cases_and_stores(tmp_path: Any) -> None:
    table = pd.DataFrame({"a": [0.0, 2.0]}, index=["bad", "good"])
    results, errors = quiet(lambda a: np.linalg.inv(np.eye(1) * a)[0, 0], table, on_error="record")
    assert (results.isna().tolist(), results["good"], errors[0][0]) == ([True, False], 0.5, 0)
    stored = quiet(lambda a, b: a * b, TABLE, store=tmp_path / "a.zarr")
    assert stored[:].tolist() == [5.0, 12.0, 21.0, 32.0]


OTHER = RAIN.reset_index(drop=True)
X, Z = xr.DataArray(np.ones(4), dims="x"), xr.DataArray(np.ones(4), dims="z")
WORDS = "have different labels, and are computed with by position"


@pytest.mark.parametrize("one, other", [(RAIN, OTHER), (X, Z), (FIELD[:, 0], OTHER), (RAIN[1:], RAIN[:-1])])
def test_arrays_that_their_own_operators_would_pair_otherwise_are_refused(one: Any, other: Any) -> None:
    with pytest.raises(ValueError, match=rf"scan 'scan': sequences\[0\] and sequences\[1\] {WORDS}"):
        ns.scan(lambda a, b: a + b, sequences=[one, other], mode="python")
    with pytest.raises(ValueError, match=rf"scan 'scan': sequences\[0\]: its parts {WORDS}"):
        ns.scan(lambda row: row["a"] + row["b"], sequences=[{"a": one, "b": other}], mode="python")
    for made in (ns.jit(np.add, mode="python"), ns.vmap(np.add), ns.grad(lambda a, b: (a * b).sum())):
        with pytest.raises(ValueError, match=f" and .* {WORDS}"):
            made(one, other)
    with pytest.raises(ValueError, match=WORDS):
        ns.vjp(lambda a, b: a * b, one, other)
    with pytest.raises(ValueError, match=f"ns.batch: a and b {WORDS}"):
        quiet(lambda a, b: a + b, (one, other))
    assert quiet(lambda a, b: a + b, (one, other.to_numpy())).shape == one.shape


def test_labels_that_agree_as_far_as_both_go_are_taken() -> None:
    path = ns.scan(lambda a, b: a * b, sequences=[RAIN, TABLE["a"][:3]], return_updates=False, mode="python")
    assert path.tolist() == [1.0, 4.0, 9.0]
    np.testing.assert_array_equal(ns.jit(lambda x, y: x.T @ y, mode="python")(TABLE, RAIN), TABLE.T @ RAIN)
    with pytest.raises(ValueError, match=WORDS):  # columns
        ns.jit(np.multiply, mode="python")(TABLE, TABLE.rename(columns={"a": "c"}))


def test_columns_that_are_no_arguments_or_no_numbers_are_named() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'b'"):
        quiet(lambda a: a, TABLE)
    with pytest.raises(TypeError, match=r"name is a Series of dtype .*, not of numbers"):
        quiet(lambda a, name: a, pd.DataFrame({"a": [1.0], "name": ["x"]}))


def test_neither_package_is_imported() -> None:
    program = "import sys, numbascan as ns, numpy as np; ns.batch(lambda x: x + 1, (np.ones(3),), progress=False, mode='python')"
    program += "; ns.scan(lambda a: a, sequences=np.ones(3), mode='python'); print({'pandas', 'xarray'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
