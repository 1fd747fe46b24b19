"""What a card says of its derivatives, applied to one node: dtypes, broadcasting and masks are seen to here, once.

A cotangent may carry a mask: it counts only where the mask holds, and what stands elsewhere may be NaN. `np.where(x > 0, np.log(x), 0)` so
gives 0 for x <= 0, not 0 * inf. The mask goes along with elementwise work of one shape, and with broadcasting that may turn out to be
none; it is applied before anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

from ..errors import NullGradientError
from ..ir.node import Node
from ..ops.algebra import broadcast_to, call, cast, dims_of, is_one, mul, neg, same_dims, sum_to, total, where, zeros_like
from ..ops.card import Card, Gate, at_line
from ..ops.lowering import Elementwise
from ..ops.shape import BROADCAST_TO
from ..ops.sum_to import SUM_TO
from .sparse_cotangents import summed


@dataclass(frozen=True)
class Cotangent:
    """A cotangent; with a mask (a bool of its shape, or a scalar) it is 0 where that does not hold."""

    value: Node
    mask: Node | None = None

    def realised(self) -> Node:
        return self.value if self.mask is None else where(self.mask, self.value, 0)


def accumulated(terms: Sequence[Cotangent]) -> Cotangent:
    """The sum of cotangents of one node."""
    masks = list(dict.fromkeys(term.mask for term in terms))
    if len(masks) == 1:
        return Cotangent(summed([term.value for term in terms]), masks[0])
    there = [mask for mask in masks if mask is not None]
    mask = reduce(lambda a, b: call("logical_or", a, b), there) if len(there) == len(masks) else None
    return Cotangent(summed([term.realised() for term in terms]), mask)


def no_derivative(node: Node, reason: str) -> NullGradientError:
    """The error for a node through which no derivative goes."""
    return NullGradientError(f"{node.op.name} has no derivative{_place(node)}: {reason}; nt.disconnected_grad(x) takes x as a constant")


def _place(node: Node) -> str:
    return f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else at_line()


# backwards ----------------------------------------------------------------------------------------------------------


def pulled(node: Node, cotangents: Sequence[Cotangent | None], needed: Collection[int]) -> list[Cotangent | None]:
    """The cotangents of a card's operands, of those in `needed`, from the cotangents of its results."""
    card = node.op
    assert isinstance(card, Card)
    if card.partials is not None:
        (cotangent,) = cotangents
        assert cotangent is not None
        return _pulled_elementwise(node, card, cotangent, needed)
    if card.vjp is None:
        raise no_derivative(node, card.no_gradient or "none is known")
    shared, is_elementwise = scalar_mask(cotangents), isinstance(card.lower, Elementwise) or card is BROADCAST_TO
    values: Sequence[Node | None] = card.vjp(node, *(None if one is None else one.realised() for one in cotangents))
    result: list[Cotangent | None] = []
    for k, (operand, value) in enumerate(zip(node.inputs, values, strict=True)):
        if value is None or k not in needed:
            result.append(None)
            continue
        mask = _carried(cotangents[0].mask, operand, node) if is_elementwise and cotangents[0] is not None else shared
        if card is SUM_TO and cotangents[0] is not None and cotangents[0].mask is not None:
            mask = broadcast_to(cotangents[0].mask, dims_of(operand))
        result.append(Cotangent(fitted(value, operand), mask))
    return result


def scalar_mask(cotangents: Sequence[Cotangent | None]) -> Node | None:
    """The mask of all cotangents, if it is one and a scalar: then it holds for whatever is made of them."""
    masks = {one.mask for one in cotangents if one is not None}
    mask = masks.pop() if len(masks) == 1 else None
    return mask if mask is not None and not mask.type.rank else None


def _pulled_elementwise(node: Node, card: Card, cotangent: Cotangent, needed: Collection[int]) -> list[Cotangent | None]:
    assert card.partials is not None
    partials = card.partials(node, *node.inputs, **node.params)
    result: list[Cotangent | None] = []
    for k, (operand, partial) in enumerate(zip(node.inputs, partials, strict=True)):
        if k not in needed or partial is None:
            result.append(None)
            continue
        if isinstance(partial, str):
            raise no_derivative(node, partial)
        mask = cotangent.mask
        if isinstance(partial, Gate):
            mask = _both(mask, _gate(partial))
            value = cotangent.value
        else:
            value = _scaled(cotangent.value, partial)
        carried = _carried(mask, operand, node)
        if mask is not None and carried is not mask:  # sums over axes must not see what the mask hides
            value = where(mask, value, 0)
        result.append(Cotangent(fitted(value, operand, node), carried))
    return result


def _carried(mask: Node | None, operand: Node, result: Node) -> Node | None:
    """The mask of an elementwise result as one of its operand: where the operand is used at all. None where it was broadcast for sure.

    Lengths that are not known yet may become 1 and many, or equal: then the mask is the same.
    """
    if mask is None or not mask.type.rank:
        return mask
    pairs = zip(operand.type.shape, result.type.shape, strict=False)
    if operand.type.rank != result.type.rank or any(mine == 1 and whole != 1 for mine, whole in pairs):
        return None
    if same_dims(result, dims_of(operand)):
        return mask
    uses = sum_to(broadcast_to(cast(mask, "int64"), dims_of(result)), operand)
    return call("not_equal", uses, 0)


def _gate(gate: Gate) -> Node:
    return gate.condition if gate.holds else call("logical_not", gate.condition)


def _both(mask: Node | None, gate: Node) -> Node:
    return gate if mask is None else call("logical_and", mask, gate)


def _scaled(value: Node, partial: Node | float) -> Node:
    if isinstance(partial, Node):
        return partial if is_one(value) and value.type.dtype == partial.type.dtype else mul(value, partial)
    if partial == 0:
        return zeros_like(value)
    return value if partial == 1 else neg(value) if partial == -1 else mul(value, partial)


def fitted(value: Node, operand: Node, result: Node | None = None) -> Node:
    """A cotangent in the dtype and shape of what it belongs to. A real value has a real cotangent."""
    if result is not None:
        value = sum_to(broadcast_to(value, dims_of(result)), operand)
    return cast(value, operand.type.dtype)


# forwards -----------------------------------------------------------------------------------------------------------


def pushed(node: Node, tangents: Sequence[Node | None]) -> tuple[Node | None, ...]:
    """The tangents of a card's results from those of its operands, None for zero."""
    card = node.op
    assert isinstance(card, Card)
    if card.jvp is not None:
        tangent = card.jvp(node, *tangents)
        results = tangent if isinstance(tangent, tuple) else (tangent,)
    elif card.linear:
        results = (_pushed_linear(node, card, tangents),)
    elif card.partials is not None:
        results = (_pushed_elementwise(node, card, tangents),)
    else:
        raise no_derivative(node, card.no_gradient or "none is known")
    return tuple(None if value is None else cast(value, type_.dtype) for value, type_ in zip(results, node.types, strict=True))


def _pushed_linear(node: Node, card: Card, tangents: Sequence[Node | None]) -> Node | None:
    if all(tangents[k] is None for k in card.linear):
        return None
    operands = list(node.inputs)
    for k in card.linear:
        tangent = tangents[k]
        operands[k] = zeros_like(operands[k]) if tangent is None else tangent
    return node.op.rebuild(node, tuple(operands))


def _pushed_elementwise(node: Node, card: Card, tangents: Sequence[Node | None]) -> Node | None:
    assert card.partials is not None
    partials = card.partials(node, *node.inputs, **node.params)
    terms: list[Node | None] = []
    for tangent, partial in zip(tangents, partials, strict=True):
        if tangent is None or partial is None or (not isinstance(partial, Node | Gate) and partial == 0):
            continue
        if isinstance(partial, str):
            raise no_derivative(node, partial)
        terms.append(where(_gate(partial), tangent, 0) if isinstance(partial, Gate) else _scaled(tangent, partial))
    value = total(terms)
    return None if value is None else broadcast_to(value, dims_of(node))
