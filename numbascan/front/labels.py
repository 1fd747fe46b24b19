"""Labels of pandas and xarray. Computation goes by position, so arrays that pandas or xarray would pair otherwise are refused."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Axis:
    """The labels of one axis. name: that of its dimension, None in pandas; index: a pandas.Index, None if it has no labels."""

    name: Any
    index: Any
    length: int

    def differs(self, other: Axis) -> bool:
        """Whether positions that both have stand for different labels."""
        if None not in (self.name, other.name) and self.name != other.name:
            return True
        if self.index is None or other.index is None:
            return False
        count = min(self.length, other.length)
        return not self.index[:count].equals(other.index[:count])


def axes_of(value: Any) -> list[Axis]:
    """The labels of each axis of a Series, DataFrame or DataArray; empty for what has none. Imports neither package."""
    pandas, xarray = sys.modules.get("pandas"), sys.modules.get("xarray")
    if pandas is not None and isinstance(value, (pandas.Series, pandas.DataFrame)):
        return [Axis(None, index, len(index)) for index in value.axes]
    if xarray is not None and isinstance(value, xarray.DataArray):
        return [Axis(dim, value.indexes.get(dim), length) for dim, length in zip(value.dims, value.shape, strict=True)]
    return []


def is_labelled(value: Any) -> bool:
    """Whether a value may have labels."""
    return type(value).__module__.partition(".")[0] in ("pandas", "xarray")


def refuse_other_rows(names: Sequence[str], rows: Iterable[Axis | None]) -> None:
    """ValueError if the first axes of arrays read side by side have different labels. `names` begin the message."""
    pairs = [(name, axis) for name, axis in zip(names, rows, strict=True) if axis is not None]
    for (first, one), (second, other) in itertools.combinations(pairs, 2):
        if one.differs(other):
            raise _refusal(first, second)


def refuse_other_labels(names: Sequence[str], values: Sequence[Any]) -> None:
    """ValueError if two arguments of a function of arrays have paired axes of one length with different labels.

    Paired are the first axes, and those that NumPy's broadcasting pairs.
    """
    labels = [(name, axes) for name, value in zip(names, values, strict=True) if is_labelled(value) and (axes := axes_of(value))]
    for (first, ones), (second, others) in itertools.combinations(labels, 2):
        if any(one.length == other.length and one.differs(other) for one, other in _met(ones, others)):
            raise _refusal(first, second)


def _met(ones: list[Axis], others: list[Axis]) -> Iterator[tuple[Axis, Axis]]:
    yield ones[0], others[0]
    yield from zip(reversed(ones), reversed(others), strict=False)


def _refusal(first: str, second: str) -> ValueError:
    pair = f"{first}: its parts" if first == second else f"{first} and {second.rpartition(': ')[2]}"
    return ValueError(
        f"{pair} have different labels, and are computed with by position; bring them together first, "
        "with a.align(b) of pandas or xr.align, or pass what .to_numpy() gives"
    )


def table(value: Any) -> dict[str, Any] | None:
    """The columns of a DataFrame, or the arrays of a Dataset, by name; None for anything else."""
    pandas, xarray = sys.modules.get("pandas"), sys.modules.get("xarray")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return dict(value.items())
    if xarray is not None and isinstance(value, xarray.Dataset):
        return dict(value.data_vars)
    return None


def with_rows(array: np.ndarray, rows: Axis) -> Any:
    """An array with these row labels: a DataArray, or a Series or DataFrame. An array of more than two axes stays plain in pandas."""
    if rows.name is not None:
        dims = (rows.name, *(f"dim_{k}" for k in range(1, array.ndim)))
        return sys.modules["xarray"].DataArray(array, dims=dims, coords={} if rows.index is None else {rows.name: rows.index})
    pandas = sys.modules["pandas"]
    return array if array.ndim > 2 else (pandas.Series if array.ndim == 1 else pandas.DataFrame)(array, index=rows.index)
