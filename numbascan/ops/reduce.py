"""Reductions over axes, and running sums and products. Functions made of these are in `front/`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from ..ir.loops import ACCUMULATE, IN_ORDER, OF_TWO_ALL, OF_TWO_ANY, PRODUCT, Apply, Expr, Literal, Template
from ..ir.node import Node
from ..types import Shape, TensorType
from .algebra import (
    along_last,
    broadcast_to,
    call,
    cast,
    counted,
    dims_of,
    div,
    expand,
    flip_axis,
    from_last,
    full_like,
    incremented,
    mul,
    taken,
    to_last,
    where,
    zeros_like,
)
from .card import Card, register
from .compare import MAXIMUM, MINIMUM
from .elementwise import by_kind, loop_card, points, ufunc_loop
from .lowering import Elementwise, Fold
from .recurrence import one_later, recurrence_back

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
_X = np.array([3.5, -1.25, 4.0, 0.5, -9.0, 2.75] * 4)[:24].reshape(2, 3, 4) * np.linspace(0.5, 1.5, 24).reshape(2, 3, 4)


def widened(dtype: str) -> str:
    """The dtype in which NumPy adds and multiplies: integers of at least 64 bits."""
    kind = np.dtype(dtype).kind
    return {"b": "int64", "i": "int64", "u": "uint64"}.get(kind, dtype)


def reduced_shape(shape: Shape, axis: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape after reducing axes; with keepdims they stay, of length 1."""
    return tuple(1 if k in axis else dim for k, dim in enumerate(shape) if keepdims or k not in axis)


def _reduced_type(result: Callable[[str], str]) -> Callable[..., TensorType]:
    def infer(x: TensorType, axis: tuple[int, ...], keepdims: bool) -> TensorType:
        return TensorType(result(x.dtype), reduced_shape(x.shape, axis, keepdims))

    return infer


def _same(dtype: str) -> str:
    return dtype


def _samples() -> Samples:
    kinds = [((1,), False), ((0, 2), True), ((0, 1, 2), False), ((2,), True), ((), False)]
    mixed: list[tuple[Any, tuple[int, ...], bool]] = [(_X, axis, keepdims) for axis, keepdims in kinds]
    mixed += [(_X.astype(dtype), (1,), False) for dtype in ("float32", "int8", "int64", "uint16", "bool", "complex64")]
    mixed += [(np.where(_X > 4.5, np.nan, _X), (2,), False), (_X[0, 0, 1], (), True)]
    return [((x,), {"axis": axis, "keepdims": keepdims}) for x, axis, keepdims in mixed]


def _binary(template: Template) -> Callable[[Expr, Expr], Expr]:
    return lambda accumulator, element: Apply(accumulator.dtype, template, (accumulator, element))


def _fold(name: str, function: Callable[..., Any], result: Callable[[str], str], lower: Fold, **facets: Any) -> Card:
    return register(Card(name, function, _reduced_type(result), lower, samples=facets.pop("samples", _samples), **facets))


# sums and products --------------------------------------------------------------------------------------------------


def _sum_loop(x: TensorType) -> str:
    """The dtype of the accumulator. Single precision is summed in double.

    A plain loop over 10⁶ elements would be off by a percent, where NumPy's pairwise sum is not.
    """
    return {"float32": "float64", "complex64": "complex128"}.get(x.dtype, widened(x.dtype))


def _starting(value: int) -> Callable[[str], Expr]:
    return _beginning(lambda dtype: value)


def _beginning(first: Callable[[str], Any]) -> Callable[[str], Expr]:
    return lambda dtype: Literal(dtype, first(dtype))


def _axes(node: Node) -> tuple[int, ...]:
    axes: Any = node.attr("axis")
    return tuple(axes)


def _summed_like(node: Node, value: Node) -> Node:
    """A value of the shape of a reduction's operand, summed over the reduced axes."""
    return call("sum", value, axis=_axes(node), keepdims=bool(node.attr("keepdims")))


def _kept(node: Node, value: Node) -> Node:
    """A value of the shape of a reduction's result, with the reduced axes back as axes of length 1."""
    return value if node.attr("keepdims") else expand(value, _axes(node))


def _spread(node: Node, cotangent: Node) -> tuple[Node]:
    return (broadcast_to(_kept(node, cotangent), dims_of(node.inputs[0])),)


def _other_factors(node: Node) -> Node:
    """The product of all other elements, for each element of a product's operand. It does not divide, so zeros are like any number."""
    x = node.inputs[0]
    found: list[Node] = []
    for axis in _axes(node):
        line = to_last(x, axis)
        before = one_later(call("cumprod", line, axis=(line.type.rank - 1,)), 1)
        back = flip_axis(line, line.type.rank - 1)
        after = flip_axis(one_later(call("cumprod", back, axis=(line.type.rank - 1,)), 1), line.type.rank - 1)
        found.append(from_last(mul(before, after), axis))
        x = call("prod", x, axis=(axis,), keepdims=True)
    return reduce(mul, found) if found else full_like(x, 1)


def _product_back(node: Node, cotangent: Node) -> tuple[Node]:
    return (mul(_kept(node, cotangent), _other_factors(node)),)


def _product_tangent(node: Node, tangent: Node) -> Node:
    return _summed_like(node, mul(tangent, _other_factors(node)))


ADD_TO_SUM = loop_card(
    "accumulate",
    np.add,
    ufunc_loop(np.add),
    by_kind(b=OF_TWO_ANY, iuc=IN_ORDER, f=ACCUMULATE),
    samples=points((-1.7, 2.1), (0.3, 1.9), with_complex=True),
    partials=lambda out, total, x: (1, 1),
    is_cheap=True,
)
"""A term added to a sum over the steps of a loop; the order of the sum is free."""


def _add_to_sum(total: Expr, element: Expr) -> Expr:
    return Apply(total.dtype, ACCUMULATE if total.dtype.startswith("float") else IN_ORDER, (total, element))


SUM = _fold("sum", np.sum, widened, Fold(_sum_loop, _starting(0), _add_to_sum), linear=(0,), vjp=_spread)
PROD = _fold(
    *("prod", np.prod, widened, Fold(lambda x: widened(x.dtype), _starting(1), _binary(PRODUCT))),
    vjp=_product_back,
    jvp=_product_tangent,
)


def _truth(name: str, function: Callable[..., Any], start: bool, template: Template) -> Card:
    lower = Fold(lambda x: "bool", lambda dtype: Literal("bool", start), _binary(template))
    return _fold(name, function, lambda dtype: "bool", lower, no_gradient="the result is a truth value")


ALL = _truth("all", np.all, True, OF_TWO_ALL)
ANY = _truth("any", np.any, False, OF_TWO_ANY)


# extremes: NaN where there is one -----------------------------------------------------------------------------------


def lowest(dtype: str) -> complex | float | int | bool:
    """A value that no element is less than."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return False
    if kind in "iu":
        return int(np.iinfo(dtype).min)
    return complex(-np.inf, -np.inf) if kind == "c" else -np.inf


def highest(dtype: str) -> complex | float | int | bool:
    """A value that no element is greater than."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return True
    if kind in "iu":
        return int(np.iinfo(dtype).max)
    return complex(np.inf, np.inf) if kind == "c" else np.inf


def _code(card: Card, dtype: str) -> Template:
    assert isinstance(card.lower, Elementwise)
    types = (TensorType(dtype), TensorType(dtype))
    return card.lower.code(*card.lower.loop(*types))


def _better(better: Card) -> Callable[[Expr, Expr], Expr]:
    return lambda best, element: Apply(best.dtype, _code(better, best.dtype), (best, element))


def _extreme(name: str, function: Callable[..., Any], first: Callable[[str], Any], better: Card) -> Card:
    lower = Fold(lambda x: x.dtype, _beginning(first), _better(better), allow_empty=False)
    return _fold(name, function, _same, lower, vjp=_shared_out, jvp=_mean_of_best)


def _best(node: Node) -> tuple[Node, Node]:
    """A mask of the extreme elements, or of the NaNs if there are any; and their number, in the shape of the result."""
    x = node.inputs[0]
    here = call("logical_or", call("equal", x, _kept(node, node)), call("isnan", x))
    return here, _summed_like(node, cast(here, x.type.dtype))


def _shared_out(node: Node, cotangent: Node) -> tuple[Node]:
    """The cotangent, in equal shares for equal extreme elements."""
    here, count = _best(node)
    return (where(here, _kept(node, div(cotangent, count)), 0),)


def _mean_of_best(node: Node, tangent: Node) -> Node:
    here, count = _best(node)
    return div(_summed_like(node, where(here, tangent, 0)), count)


MAX = _extreme("max", np.max, lowest, MAXIMUM)
MIN = _extreme("min", np.min, highest, MINIMUM)


def _extreme_place(name: str, function: Callable[..., Any], first: Callable[[str], Any], better: Card, stays: str) -> Card:
    """The card of the position of the first extreme element, or of the first NaN, counted in the reduced axes together."""

    def evaluate(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if len(axis) == 1:
            return function(x, axis=axis[0], keepdims=keepdims)
        assert len(axis) == np.ndim(x)  # of one element, or of all
        return function(x, keepdims=keepdims)

    lower = Fold(lambda x: x.dtype, _beginning(first), _better(better), allow_empty=False, place_stays=stays)
    return _fold(name, evaluate, lambda dtype: "int64", lower, samples=_place_samples, no_gradient="a position is an integer")


def _place_samples() -> Samples:
    return [sample for sample in _samples() if len(sample[1]["axis"]) in (1, np.ndim(sample[0][0]))]


ARGMAX = _extreme_place("argmax", np.argmax, lowest, MAXIMUM, ">=")
ARGMIN = _extreme_place("argmin", np.argmin, highest, MINIMUM, "<=")


# running results ----------------------------------------------------------------------------------------------------


def _running(
    name: str,
    function: Callable[..., Any],
    result: Callable[[str], str],
    start: Callable[[str], Expr],
    step: Callable[[Expr, Expr], Expr],
    **facets: Any,
) -> Card:
    def evaluate(x: Any, axis: tuple[int, ...]) -> Any:
        return function(x, axis=axis[0])

    def infer(x: TensorType, axis: tuple[int, ...]) -> TensorType:
        return TensorType(result(x.dtype), x.shape)

    lower = Fold(lambda x: result(x.dtype), start, step, cumulative=True)
    return register(Card(name, evaluate, infer, lower, samples=_running_samples, **facets))


def _running_samples() -> Samples:
    arrays = [_X.astype(dtype) for dtype in ("float32", "int8", "uint16", "bool", "complex64")]
    return [((_X,), {"axis": (axis,)}) for axis in range(3)] + [((x,), {"axis": (1,)}) for x in arrays]


def _summed_behind(node: Node, cotangent: Node) -> tuple[Node]:
    (axis,) = _axes(node)
    return (flip_axis(call("cumsum", flip_axis(cotangent, axis), axis=(axis,)), axis),)


def _factors_back(node: Node, cotangent: Node) -> tuple[Node]:
    """The product of the elements before each one, times the weighted sum of products of the elements behind it."""
    (axis,) = _axes(node)
    behind = recurrence_back(to_last(node.inputs[0], axis), to_last(cotangent, axis))
    return (from_last(mul(behind, one_later(to_last(node, axis), 1)), axis),)


def _factors_tangent(node: Node, tangent: Node) -> Node:
    """out[k] = x[k] * out[k - 1], differentiated."""
    (axis,) = _axes(node)
    change = mul(to_last(tangent, axis), one_later(to_last(node, axis), 1))
    return from_last(call("recurrence", to_last(node.inputs[0], axis), change), axis)


CUMSUM = _running("cumsum", np.cumsum, widened, _starting(0), _binary(IN_ORDER), linear=(0,), vjp=_summed_behind)
CUMPROD = _running("cumprod", np.cumprod, widened, _starting(1), _binary(PRODUCT), vjp=_factors_back, jvp=_factors_tangent)


def _records(node: Node, line: Node) -> tuple[Node, ...]:
    """The index that takes the best elements so far of a line; of equal ones the first."""
    best = to_last(node, *_axes(node))
    last = best.type.rank - 1
    is_new = call("not_equal", best, one_later(best, 0))
    is_first = call("equal", counted(dims_of(best)[last]), 0)
    places = where(call("logical_or", is_new, is_first), counted(dims_of(best)[last]), 0)
    return along_last(line, call("cummax", places, axis=(last,)))


def _records_back(node: Node, cotangent: Node) -> tuple[Node]:
    (axis,) = _axes(node)
    line = to_last(node.inputs[0], axis)
    return (from_last(incremented(zeros_like(line), to_last(cotangent, axis), _records(node, line)), axis),)


def _records_tangent(node: Node, tangent: Node) -> Node:
    (axis,) = _axes(node)
    line = to_last(tangent, axis)
    return from_last(taken(line, _records(node, line)), axis)


def _running_extreme(name: str, function: Callable[..., Any], first: Callable[[str], Any], better: Card) -> Card:
    return _running(name, function, _same, _beginning(first), _better(better), vjp=_records_back, jvp=_records_tangent)


CUMMAX = _running_extreme("cummax", np.maximum.accumulate, lowest, MAXIMUM)
CUMMIN = _running_extreme("cummin", np.minimum.accumulate, highest, MINIMUM)
