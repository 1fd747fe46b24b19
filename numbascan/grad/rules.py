"""The derivatives of a card, applied to one node. Dtypes, broadcasting and masks are handled here, once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..errors import NullGradientError
from ..ir.node import Node
from ..ops.algebra import broadcast_to, call, cast, dims_of, is_one, mul, neg, sum_to, total, where, zeros_like
from ..ops.card import Card, Gate, apply, at_line
from ..ops.elementwise import MUL
from ..ops.hidden_product import HIDDEN_PRODUCT
from ..ops.lowering import Elementwise, Fold
from ..ops.shape import BROADCAST_TO
from ..ops.sum_to import SUM_TO
from .masks import Cotangent, carried, gated, moved, scalar_mask


def no_derivative(node: Node, reason: str) -> NullGradientError:
    """The error for a node that has no derivative."""
    return NullGradientError(f"{node.op.name} has no derivative{_place(node)}: {reason}; nt.disconnected_grad(x) takes x as a constant")


def _place(node: Node) -> str:
    return f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else at_line()


# backwards ----------------------------------------------------------------------------------------------------------


def pulled(node: Node, cotangents: Sequence[Cotangent | None], needed: Collection[int]) -> list[Cotangent | None]:
    """The cotangents of a card's operands in `needed`, from those of its results; None for the other operands."""
    card = node.op
    assert isinstance(card, Card)
    if card.partials is not None:
        (cotangent,) = cotangents
        assert cotangent is not None
        return _pulled_elementwise(node, card, cotangent, needed)
    if card.vjp is None:
        raise no_derivative(node, card.no_gradient or "none is known")
    shared, is_elementwise = scalar_mask(cotangents), isinstance(card.lower, Elementwise) or card is BROADCAST_TO
    of_view = moved(node, cotangents)
    if of_view is not None:
        return [one if k in needed else None for k, one in enumerate(of_view)]
    hides = card is HIDDEN_PRODUCT or any(one is not None and (one.hides or one.mask is not None) for one in cotangents)
    above = [None if one is None else one.realised() for one in cotangents]
    values: Sequence[Node | None] = card.vjp(gated(node, cotangents[0]), *above)
    result: list[Cotangent | None] = []
    for k, (operand, value) in enumerate(zip(node.inputs, values, strict=True)):
        if value is None or k not in needed:
            result.append(None)
            continue
        if hides and isinstance(card.lower, Fold) and value.op is MUL:  # the cotangents of the lines, and the other factors
            value = apply(HIDDEN_PRODUCT, *value.inputs)
        mask = carried(cotangents[0].mask, operand, node) if is_elementwise and cotangents[0] is not None else shared
        if card is SUM_TO and cotangents[0] is not None and cotangents[0].mask is not None:
            mask = broadcast_to(cotangents[0].mask, dims_of(operand))
        result.append(Cotangent(fitted(value, operand), mask, hides))
    return result


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
            value = _scaled(cotangent.value, partial, cotangent.hides)
        own, hides = carried(mask, operand, node), cotangent.hides
        if mask is not None and own is not mask:  # sums over axes must not see what the mask hides
            value, hides = where(mask, value, 0), True
        result.append(Cotangent(fitted(value, operand, node), own, hides))
    return result


def _gate(gate: Gate) -> Node:
    return gate.condition if gate.holds else call("logical_not", gate.condition)


def _both(mask: Node | None, gate: Node) -> Node:
    return gate if mask is None else call("logical_and", mask, gate)


def _scaled(value: Node, partial: Node | float, hides: bool = False) -> Node:
    if isinstance(partial, Node):
        if is_one(value) and value.type.dtype == partial.type.dtype:
            return partial
        return apply(HIDDEN_PRODUCT, value, partial) if hides else mul(value, partial)
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
