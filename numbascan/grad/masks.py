"""Masks of cotangents: what np.where hides plays no part, whatever its values and slopes are.

A cotangent may carry a mask: it counts only where the mask holds, and elsewhere it may be NaN. So the derivative of
`np.where(x > 0, np.log(x), 0)` is 0 for x <= 0, not 0 * inf. A mask is carried through

- elementwise work of one shape,
- broadcasting that may turn out to be none,
- sums,
- ops that move elements, where each element of an operand has the cotangent of one element of the result.

It is applied before anything else. From there on the zeros hide: `hides` says that a cotangent of 0 stays 0 whatever slope it meets, up to
the input whose derivative is asked for.

Not handled: NaN in operands of a matrix product that are given to a step or a function, not computed, where zeros hide. To look at a matrix
of weights at every step would cost as much as to multiply it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any  # noqa: TID251 - a card's attributes are of any type

from ..ir.node import ARG, CONSTANT, INPUT, Node, constant_value
from ..ops.algebra import broadcast_to, call, cast, dims_of, expand, same_dims, sum_to, transpose, where
from ..ops.card import Card
from ..ops.contract import labels_of
from ..ops.lowering import Contract, Fold, Passes, View
from ..ops.shape import BROADCAST_TO
from ..ops.sum_to import SUM_TO
from .sparse_cotangents import summed


@dataclass(frozen=True)
class Cotangent:
    """A cotangent; with a mask (a bool of its shape, or a scalar) it is 0 where the mask does not hold.

    hides: a mask was applied to it, or to what it is made of: its zeros stay zeros.
    """

    value: Node
    mask: Node | None = None
    hides: bool = False

    def realised(self) -> Node:
        return self.value if self.mask is None else where(self.mask, self.value, 0)

    def applied(self) -> Cotangent:
        """The same with its mask applied."""
        return Cotangent(self.realised(), None, self.hides or self.mask is not None)


GIVEN = (ARG, INPUT, CONSTANT)

Reverse = Callable[[Sequence[Node], Sequence[Cotangent], Sequence[Node]], "list[Cotangent | None]"]
"""Reverse mode, as handed to rules of nodes with inner graphs: (outputs, their cotangents, nodes) to the cotangents of the nodes."""


def accumulated(terms: Sequence[Cotangent]) -> Cotangent:
    """The sum of cotangents of one node."""
    masks = list(dict.fromkeys(term.mask for term in terms))
    hides = any(term.hides for term in terms)
    if len(masks) == 1:
        return Cotangent(summed([term.value for term in terms]), masks[0], hides)
    there = [mask for mask in masks if mask is not None]
    mask = reduce(lambda a, b: call("logical_or", a, b), there) if len(there) == len(masks) else None
    return Cotangent(summed([term.realised() for term in terms]), mask, hides or mask is None)


def gated(node: Node, cotangent: Cotangent | None) -> Node:
    """The node with finite numbers for operands that go only into what is hidden: its rule multiplies zeros by them.

    Nodes other than products of matrices and nonlinear folds stay as they are.
    """
    assert isinstance(node.op, Card)
    mask = None if cotangent is None else cotangent.mask
    if isinstance(node.op.lower, Fold) and not node.op.linear and cotangent is not None and (cotangent.hides or mask is not None):
        return _without_lines(node, cotangent.realised())
    if cotangent is None or not isinstance(node.op.lower, Contract) or not node.type.rank:
        return node
    *labels, out = labels_of(node)
    if mask is not None and mask.type.rank:
        shown = [_shown(x, _whole(mask, node), own, out) for x, own in zip(node.inputs, labels, strict=True)]
    elif cotangent.hides:
        counts = call("not_equal", cotangent.realised(), 0)
        shown = [x if x.op in GIVEN else _shown(x, counts, own, out, is_value=True) for x, own in zip(node.inputs, labels, strict=True)]
    else:
        return node
    return node.op.rebuild(node, tuple(shown))


def _whole(mask: Node, node: Node) -> Node:
    """The mask, broadcast to the shape of its node."""
    return broadcast_to(mask, dims_of(node))


def _shown(operand: Node, mask: Node, own: tuple[int, ...], out: tuple[int, ...], is_value: bool = False) -> Node:
    """An operand of a product, 0 where the mask of the result hides everything that an element goes into. own, out: labels, one per axis.

    is_value: the mask holds where cotangents are not 0. They may be 0 by chance, so finite elements stay.
    """
    shared = [label for label in out if label in own]
    if not shared:
        return operand
    others = tuple(axis for axis, label in enumerate(out) if label not in own)
    is_shown = call("any", mask, axis=others, keepdims=False) if others else mask
    is_shown = transpose(is_shown, [shared.index(label) for label in own if label in shared])
    is_shown = expand(is_shown, [axis for axis, label in enumerate(own) if label not in shared])
    return where(call("logical_or", is_shown, call("isfinite", operand)) if is_value else is_shown, operand, 0)


def _without_lines(node: Node, cotangent: Node) -> Node:
    """A product or extreme over an axis, or a running one, with 1 in lines that are not finite and whose cotangents are all 0."""
    assert isinstance(node.op, Card)
    axes: Any = node.attr("axis")
    (x,) = node.inputs
    counts = call("not_equal", cotangent, 0)
    if x.type.rank == cotangent.type.rank:
        counts = call("any", counts, axis=axes, keepdims=True)
    else:
        counts = expand(counts, axes)
    is_line = call("logical_or", counts, call("all", call("isfinite", x), axis=axes, keepdims=True))
    return node.op.rebuild(node, (where(is_line, x, 1),))


def moved(node: Node, cotangents: Sequence[Cotangent | None]) -> list[Cotangent | None] | None:
    """The cotangents of the operands of a node that moves elements or adds them up.

    The mask goes along where each operand's element has the cotangent of one element; else it is applied. None for any other node, for a
    node of several results, and without a mask, or with a scalar mask of an array.
    """
    (cotangent, *others), card = cotangents, node.op
    assert isinstance(card, Card)
    mask = None if cotangent is None else cotangent.mask
    is_moving = isinstance(card.lower, View) or (bool(card.linear) and isinstance(card.lower, Fold | Passes))
    if card in (SUM_TO, BROADCAST_TO) or not is_moving or card.vjp is None:
        return None
    if others or cotangent is None or mask is None or bool(mask.type.rank) < bool(node.type.rank):
        return None
    whole = _whole(mask, node)
    plain, shown, applied = (card.vjp(node, one) for one in (cotangent.value, whole, cotangent.realised()))
    result: list[Cotangent | None] = []
    for operand, value, own, zeroed in zip(node.inputs, plain, shown, applied, strict=True):
        if value is None:
            result.append(None)
        elif _is_moved(own, whole):
            result.append(Cotangent(cast(value, operand.type.dtype), own, cotangent.hides))
        else:
            result.append(Cotangent(cast(zeroed, operand.type.dtype), None, True))
    return result


def _is_moved(value: Node, source: Node) -> bool:
    """True if `value`, a bool, is `source` through views alone, each element one of its elements. A constant stands for a constant."""
    while value is not source and not (constant_value(value) is not None and constant_value(source) is not None):
        card = value.op
        if not isinstance(card, Card) or not isinstance(card.lower, View) or card is SUM_TO:
            return False
        value = value.inputs[0]
    return value.type.kind == "b"


def scalar_mask(cotangents: Sequence[Cotangent | None]) -> Node | None:
    """The one scalar mask that all cotangents have, which holds for whatever is made of them; else None."""
    masks = {one.mask for one in cotangents if one is not None}
    mask = masks.pop() if len(masks) == 1 else None
    return mask if mask is not None and not mask.type.rank else None


def carried(mask: Node | None, operand: Node, result: Node) -> Node | None:
    """The mask of an elementwise result as a mask of its operand; None where the operand is surely broadcast.

    Open lengths may turn out equal, or 1 and many. So the mask holds where any result that uses the element counts.
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
