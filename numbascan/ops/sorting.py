"""Sorting along the last axis, and places in sorted arrays. Stable, NaN last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import TensorType
from .card import Card, register
from .lowering import Indices, Library, Operands

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
_X = np.array([[3.5, -1.0, np.nan, 3.5, 0.25], [2.0, 7.5, 2.0, -4.0, 2.0]])
_LONG = np.sin(np.arange(90.0) ** 2).round(1)


def _routine(name: str) -> Callable[..., str]:
    return lambda x, *others: f"sorting.{name}_complex" if x.kind == "c" else f"sorting.{name}"


def _dims_of(k: int) -> Callable[[Operands], tuple[Indices, ...]]:
    return lambda view: (view.dims(k),)


def _samples() -> Samples:
    arrays = [_X, _LONG, _X[1].astype("int32"), _X[1] > 2, _X[:, ::2] + 1j * _X[:, :3], _X[1].astype("uint8"), _LONG.astype("float32")[:40]]
    return [((array,), {}) for array in arrays]


SORT = register(
    Card(
        "sort",
        lambda x: np.sort(x, axis=-1, kind="stable"),
        lambda x: x.strong(),
        Library(_routine("sort_into"), ((1,), (1,)), _dims_of(0)),
        samples=_samples,
    )
)

ARGSORT = register(
    Card(
        "argsort",
        lambda x: np.argsort(x, axis=-1, kind="stable"),
        lambda x: TensorType("int64", x.shape),
        Library(_routine("argsort_into"), ((1,), (1,)), _dims_of(0)),
        samples=_samples,
        no_gradient="positions are integers",
    )
)

SEARCHSORTED = register(
    Card(
        "searchsorted",
        lambda a, v, side: np.searchsorted(a, v, side),
        lambda a, v, side: TensorType("int64", v.shape),
        Library(_routine("search_into"), ((1, 1), (1,)), _dims_of(1), statics=lambda attrs: (attrs["side"] == "right",)),
        samples=lambda: [
            ((np.sort(x), np.asarray(v, x.dtype)), {"side": side})
            for side in ("left", "right")
            for x, v in ((_X[0], [3.5, np.nan, -9.0, 0.3]), (_X[1].astype(int), [2, -4, 9]))
        ],
        no_gradient="positions are integers",
    )
)
