"""Discrete Fourier transforms along the last axis, without a factor: NumPy's own (pocketfft).

A transform is a product with a symmetric matrix, so it is its own adjoint under the pairing without conjugation that all rules use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.loops import Index, compare, floor_div, mul
from ..ir.loops import add as plus
from ..ir.loops import sub as minus
from ..ir.node import Node
from ..types import TensorType
from .algebra import call, cast, conj, dims_of, full_like, incremented, indexed, neg, on_axis
from .algebra import mul as times
from .card import Card, register
from .lowering import Indices, Library, Operands

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
NO_POINTS = "Invalid number of FFT data points ({0}) specified"
_X = np.cos(np.arange(24.0) ** 2).reshape(2, 12)


def complex_dtype(dtype: str) -> str:
    """The dtype of a transform."""
    return "complex64" if dtype in ("float32", "complex64") else "complex128"


def real_dtype(dtype: str) -> str:
    """The dtype of the parts of complex numbers."""
    return str(np.empty(0, dtype).real.dtype)


def _rows() -> list[Any]:
    """Rows of even and odd lengths, of length 1, of a prime length, of a length that pocketfft takes by convolution; both precisions."""
    long = np.sin(np.arange(211.0) ** 2)
    return [_X, _X[:, :5], _X[0, :1], _X[:, :2], long, _X.astype("float32"), _X[None, :, :7].astype("float32")]


def _complex(x: Any) -> Any:
    return x + x.dtype.type(1) * x[..., ::-1] * np.complex64(1j)


def _with_points(view: Operands, n: Index) -> None:
    view.check(compare(">", n, 0), "ValueError", NO_POINTS, n)


def _same_dims(view: Operands) -> tuple[Indices, ...]:
    dims = view.dims(0)
    _with_points(view, dims[-1])
    return (dims,)


FFT = register(
    Card(
        "fft",
        lambda x, inverse: np.fft.ifft(x, norm="forward") if inverse else np.fft.fft(x),
        lambda x, inverse: x.strong(),
        Library(lambda x: "fourier.fft_into", ((1,), (1,)), _same_dims, statics=lambda attrs: (attrs["inverse"],)),
        samples=lambda: [((_complex(x),), {"inverse": way}) for x in _rows() for way in (False, True)],
        linear=(0,),
        vjp=lambda node, w: (call("fft", w, inverse=node.attr("inverse")),),
    )
)


def _half_dims(view: Operands) -> tuple[Indices, ...]:
    *batch, n = view.dims(0)
    _with_points(view, n)
    return ((*batch, plus(floor_div(n, 2), 1)),)


def _half_adjoint(node: Node, w: Node) -> tuple[Node]:
    """The real part of the transform of the cotangent, padded with zeros behind it."""
    (x,) = node.inputs
    spec = on_axis((None, dims_of(w)[-1], None), x.type.rank - 1)
    padded = incremented(full_like(x, 0, node.type.dtype), w, spec)
    return (call("real", call("fft", padded, inverse=False)),)


RFFT = register(
    Card(
        "rfft",
        np.fft.rfft,
        lambda x: TensorType(complex_dtype(x.dtype), (*x.shape[:-1], None if x.shape[-1] is None else x.shape[-1] // 2 + 1)),
        Library(lambda x: "fourier.rfft_into", ((1,), (1,)), _half_dims),
        samples=lambda: [((x,), {}) for x in _rows()],
        linear=(0,),
        vjp=_half_adjoint,
    )
)


def _length(m: Any, is_odd: bool) -> Any:
    return 2 * (m - 1) + is_odd


def _whole_dims(view: Operands) -> tuple[Indices, ...]:
    *batch, m = view.dims(0)
    n = plus(mul(2, minus(m, 1)), int(view.attrs["is_odd"]))
    _with_points(view, n)
    return ((*batch, n),)


def _whole_adjoint(node: Node, w: Node) -> tuple[Node]:
    """The conjugate of the first half of the cotangent's transform; doubled except at the ends, which stand for one number each."""
    last = node.type.rank - 1
    half = conj(call("rfft", w))
    ends = [on_axis((None, 1, None), last), *([] if node.attr("is_odd") else [on_axis((-1, None, None), last)])]
    twice = times(half, 2.0)
    for end in ends:
        twice = incremented(twice, neg(indexed(half, end)), end)
    return (cast(twice, node.inputs[0].type.dtype),)


def _halves() -> Samples:
    return [((np.fft.rfft(x) + 0.25j,), {"is_odd": bool(x.shape[-1] % 2)}) for x in _rows()]


IRFFT = register(
    Card(
        "irfft",
        lambda x, is_odd: np.fft.irfft(x, _length(x.shape[-1], is_odd), norm="forward"),
        lambda x, is_odd: TensorType(real_dtype(x.dtype), (*x.shape[:-1], None if x.shape[-1] is None else _length(x.shape[-1], is_odd))),
        Library(lambda x: "fourier.irfft_into", ((1,), (1,)), _whole_dims),
        samples=_halves,
        linear=(0,),
        vjp=_whole_adjoint,
    )
)
