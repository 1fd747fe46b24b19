"""Reverse mode: the cotangents of nodes from those of results, as nodes of the same graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.graph import toposort
from ..ir.node import ITEM, Node
from ..ir.ports import SCAN
from ..ops.algebra import is_float
from ..ops.card import Card
from ..ops.control import CUSTOM_VJP, IF_ELSE, PY_CALL, rule_of
from ..ops.links import DISCONNECTED
from .mit_mots import without_mit_mots
from .rules import Cotangent, accumulated, no_derivative, pulled, scalar_mask

Terms = dict[Node, list[Cotangent]]


def cotangents(outputs: Sequence[Node], given: Sequence[Node], wrt: Sequence[Node], constants: Collection[Node] = ()) -> list[Node | None]:
    """The cotangent of each node in `wrt`: what `given`, the cotangents of `outputs`, become on the way back. None: no way leads there.

    `constants` lets nothing through. Integers and booleans carry nothing. Raises NullGradientError where the way leads through an op
    that has no derivative.
    """
    outputs = without_mit_mots(outputs, keep={*wrt, *constants})
    order = toposort(outputs, stop=constants)
    active = reaching(order, wrt, constants)
    terms: Terms = {}
    for output, value in zip(outputs, given, strict=True):
        if output in active:
            terms.setdefault(output, []).append(Cotangent(value))
    done: dict[Node, Node] = {}
    wanted = set(wrt)
    several: dict[Node, dict[int, Cotangent]] = {}
    for node in reversed(order):
        if node not in active:
            continue
        if len(node.types) > 1:
            found = several.pop(node, None)
            if found is not None:
                _pull(node, [found.get(k) for k in range(len(node.types))], active, terms)
            continue
        if node not in terms:
            continue
        cotangent = accumulated(terms.pop(node))
        if node in wanted:
            done[node] = cotangent.realised()
        if node.op is ITEM:
            index = node.attr("index")
            assert isinstance(index, int)
            several.setdefault(node.inputs[0], {})[index] = cotangent
        elif node not in constants:
            _pull(node, [cotangent], active, terms)
    return [done.get(node) for node in wrt]


def reaching(order: Sequence[Node], wrt: Collection[Node], constants: Collection[Node] = ()) -> set[Node]:
    """The nodes to which a way leads from `wrt` on which every value is real or complex. `order`: inputs before users."""
    starts, blocked = set(wrt), set(constants)
    active: set[Node] = set()
    for node in order:
        is_start = node in starts
        is_behind = node not in blocked and node.op is not DISCONNECTED and any(parent in active for parent in node.inputs)
        if (is_start or is_behind) and any(map(is_float, node.types)):
            active.add(node)
    return active


def _pull(node: Node, given: Sequence[Cotangent | None], active: set[Node], terms: Terms) -> None:
    """Adds the cotangents of a node's operands to `terms`."""
    needed = [k for k, parent in enumerate(node.inputs) if parent in active]
    if not needed or all(one is None for one in given):
        return
    for k, value in enumerate(_operand_cotangents(node, given, needed)):
        if value is not None and k in needed:
            terms.setdefault(node.inputs[k], []).append(value)


def _operand_cotangents(node: Node, given: Sequence[Cotangent | None], needed: Collection[int]) -> Sequence[Cotangent | None]:
    if isinstance(node.op, Card):
        return pulled(node, given, needed)
    mask = scalar_mask(given)
    plain = [None if one is None else one.realised() for one in given]
    if node.op is SCAN:
        from .scan_rule import scan_cotangents

        found = scan_cotangents(node, plain, needed, cotangents)
    elif node.op is IF_ELSE:
        from .choice_rule import choice_cotangents

        found = choice_cotangents(node, plain, needed, cotangents)
    elif node.op is CUSTOM_VJP:
        found = rule_of(node)(node, plain, needed)
    elif node.op is PY_CALL:
        raise no_derivative(node, "a Python function is called for real there")
    else:
        return [None] * len(node.inputs)
    return [None if value is None else Cotangent(value, mask) for value in found]
