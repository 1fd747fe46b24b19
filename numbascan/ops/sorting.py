"""Sorting along the last axis, and places in sorted arrays. Stable, NaN last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.loops import Expr, compare
from ..ir.node import Node, constant
from ..types import TensorType
from . import sort_small as small
from .algebra import along_last, call, concatenate, dims_of, expand, incremented, indexed, on_axis, sub, taken, zeros_like
from .card import Card, register
from .lowering import Generate, Indices, Library, Operands

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
_X = np.array([[3.5, -1.0, np.nan, 3.5, 0.25], [2.0, 7.5, 2.0, -4.0, 2.0]])
_LONG = np.sin(np.arange(90.0) ** 2).round(1)
COUNTED = ("float64", "float32", "int64", "int32")  # dtypes whose long rows are put in order digit by digit
_NO_MIDDLE = "np.median: there are no elements along the axis"
_MANY = np.append((np.sin(np.arange(500.0) ** 2) * 1e3).round(), [-0.0, 0.0]) / 8
_DISTINCT = np.sin(np.arange(12.0) ** 2).reshape(3, 4)


def _routine(name: str) -> Callable[..., str]:
    return lambda x, *others: f"sorting.{name}_complex" if x.kind == "c" else f"sorting.{name}"


def _ordering(x: TensorType) -> str:
    return f"sorting.argsort_{x.dtype}_into" if x.dtype in COUNTED else _routine("argsort_into")(x)


def _dims_of(k: int) -> Callable[[Operands], tuple[Indices, ...]]:
    return lambda view: (view.dims(k),)


def _samples() -> Samples:
    arrays = [
        _X,
        _LONG,
        _DISTINCT,
        _DISTINCT + 1j * _DISTINCT[::-1],
        _X[1].astype("int32"),
        _X[1] > 2,
        _X[:, ::2] + 1j * _X[:, :3],
        _X[1].astype("uint8"),
        _LONG.astype("float32")[:40],
        *(_MANY.astype(dtype) for dtype in COUNTED),
        np.where(_MANY > 0.5, -0.0, np.where(_MANY < -0.9, np.nan, _MANY))[None, 5:],
    ]
    return [((array,), {}) for array in arrays]


def _order(x: Node) -> tuple[Node, ...]:
    """The index that sorts x."""
    return along_last(x, call("argsort", x))


def _sorted_back(node: Node, cotangent: Node) -> tuple[Node]:
    (x,) = node.inputs
    return (incremented(zeros_like(x), cotangent, _order(x)),)


SORT = register(
    Card(
        "sort",
        lambda x: np.sort(x, axis=-1, kind="stable"),
        lambda x: x.strong(),
        Library(_routine("sort_into"), ((1,), (1,)), _dims_of(0), scalar=small.SORT),
        samples=_samples,
        vjp=_sorted_back,
        jvp=lambda node, tangent: taken(tangent, _order(node.inputs[0])),
    )
)


def _middle_values(x: Any) -> Any:
    n = x.shape[-1]
    if n == 0:
        raise IndexError(_NO_MIDDLE)
    ordered = np.sort(x, axis=-1)
    middles = ordered[..., [(n - 1) // 2, n // 2]]
    return np.where(np.isnan(ordered[..., -1:]), ordered[..., -1:], middles) if x.dtype.kind in "fc" else middles


def _middle_dims(view: Operands) -> tuple[Indices, ...]:
    *batch, n = view.dims(0)
    view.check(compare(">", n, 0), "IndexError", _NO_MIDDLE)
    return ((*batch, 2),)


def _middle_places(x: Node) -> tuple[Node, ...]:
    """The index that takes the two elements in the middle."""
    n, order, last = dims_of(x)[-1], call("argsort", x), x.type.rank - 1
    places = [call("floor_divide", count, constant(2, "int64")) for count in (sub(n, constant(1, "int64")), n)]
    return along_last(x, concatenate([expand(indexed(order, on_axis(place, last)), (last,)) for place in places], axis=last))


MIDDLES = register(
    Card(
        "middles",
        _middle_values,
        lambda x: TensorType(x.dtype, (*x.shape[:-1], 2)),
        Library(_routine("middles_into"), ((1,), (1,)), _middle_dims, scalar=small.MIDDLES),
        samples=_samples,
        vjp=lambda node, cotangent: (incremented(zeros_like(node.inputs[0]), cotangent, _middle_places(node.inputs[0])),),
        jvp=lambda node, tangent: taken(tangent, _middle_places(node.inputs[0])),
    )
)

ARGSORT = register(
    Card(
        "argsort",
        lambda x: np.argsort(x, axis=-1, kind="stable"),
        lambda x: TensorType("int64", x.shape),
        Library(_ordering, ((1,), (1,)), _dims_of(0), scalar=small.ORDER),
        samples=_samples,
        no_gradient="positions are integers",
    )
)


def _place(view: Operands, index: Indices) -> Expr:
    ordered = [view.at(0, (k,)) for k in range(view.types[0].size or 0)]
    return small.place_of(ordered, view.at(1, index), view.attrs["side"] == "right")


def _is_short(calls_routines: bool, a: TensorType, v: TensorType) -> bool:
    return a.size is not None and 0 < a.size <= small.NUMBERS and a.kind != "c"


SEARCHSORTED = register(
    Card(
        "searchsorted",
        lambda a, v, side: np.searchsorted(a, v, side),
        lambda a, v, side: TensorType("int64", v.shape),
        Library(
            _routine("search_into"),
            ((1, 1), (1,)),
            _dims_of(1),
            statics=lambda attrs: (attrs["side"] == "right",),
            written_out=Generate(lambda view: view.dims(1), _place),
            is_written_out=_is_short,
        ),
        samples=lambda: [
            ((np.sort(x), np.asarray(v, x.dtype)), {"side": side})
            for side in ("left", "right")
            for x, v in ((_X[0], [3.5, np.nan, -9.0, 0.3]), (_X[1].astype(int), [2, -4, 9]))
        ],
        no_gradient="positions are integers",
    )
)
