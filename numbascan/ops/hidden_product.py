"""The product of a cotangent or tangent and a slope. Zeros of the first hide the slope: 0, even if the slope is infinite or NaN.

    x * slope        0 * inf = NaN        hidden_product(x, slope)        0 * inf = 0

Its derivatives are those of the product: with respect to x the slope, also where x is 0, which may be by chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.loops import AND, PLAIN
from ..ir.node import Node
from .algebra import broadcast_to, call, dims_of, sum_to, total, where
from .elementwise import by_kind, compiled, infix, loop_card, points, ufunc_loop


def hidden_product(x: Any, slope: Any) -> Any:
    """The product, 0 where x is 0."""
    return x * slope if x != 0 else x


def _evaluate(x: Any, slope: Any) -> Any:
    return np.where(np.equal(x, 0), x, np.multiply(x, slope))


def _vjp(node: Node, cotangent: Node) -> tuple[Node, Node]:
    """For x the slope where it is finite or x is not 0; for the slope x, whose zeros hide again. Zeros of the cotangent hide both."""
    x, slope = node.inputs
    of_x = call("hidden_product", cotangent, _unless_hidden(slope, x))
    of_slope = call("hidden_product", _unless_hidden(x, cotangent), cotangent)
    return sum_to(of_x, x), sum_to(of_slope, slope)


def _unless_hidden(factor: Node, other: Node) -> Node:
    """A factor; 0 where it is not finite and the other one is 0."""
    return where(call("logical_or", call("not_equal", other, 0), call("isfinite", factor)), factor, 0)


def _jvp(node: Node, dx: Node | None, dslope: Node | None) -> Node | None:
    x, slope = node.inputs
    terms = [
        None if dx is None else call("hidden_product", dx, slope),
        None if dslope is None else call("hidden_product", x, dslope),
    ]
    value = total(terms)
    return None if value is None else broadcast_to(value, dims_of(node))


HIDDEN_PRODUCT = loop_card(
    "hidden_product",
    _evaluate,
    ufunc_loop(np.multiply),
    by_kind(b=infix("and", AND), iufc=compiled(hidden_product, PLAIN)),
    samples=points((-1.7, 2.1), (0.3, 1.9), with_complex=True),
    vjp=_vjp,
    jvp=_jvp,
    is_cheap=True,
)
