"""Reverse mode: the cotangents of nodes from those of results, as nodes of the same graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.graph import toposort
from ..ir.node import ITEM, Node
from ..ir.ports import SCAN, loop_spec
from ..ops.algebra import is_float
from ..ops.card import Card
from ..ops.control import CUSTOM_VJP, IF_ELSE, PY_CALL, rule_of
from ..ops.links import DISCONNECTED, ZERO_GRAD
from ..ops.random import REJECTED
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
    """The nodes to which a way leads from `wrt` on which every value is real or complex. `order`: inputs before users.

    And the whole numbers that are drawn with such a value as parameter, with what is computed from them: their derivative was left out
    silently if they counted as constants.
    """
    starts, blocked = set(wrt), set(constants)
    active: set[Node] = set()
    drawn: set[Node] = set()
    for node in order:
        is_open = node not in blocked and node.op is not DISCONNECTED
        is_behind = is_open and any(parent in active for parent in node.inputs)
        if (node in starts or is_behind) and any(map(is_float, node.types)):
            active.add(node)
            if isinstance(node.op, Card) and node.op.no_gradient.startswith(REJECTED):
                drawn.add(node)
        elif is_open and node.op is not ZERO_GRAD and (any(parent in drawn for parent in node.inputs) or _is_drawn_in_loop(node, active)):
            drawn.add(node)
            active.add(node)
    return active


def _is_drawn_in_loop(node: Node, active: set[Node]) -> bool:
    """Is a result of a loop, of whole numbers, drawn there with values from outside that are `active`?"""
    loop, place = (node.inputs[0], node.attr("index")) if node.op is ITEM else (node, 0)
    assert isinstance(place, int)
    if loop.op is not SCAN or active.isdisjoint(loop.inputs):
        return False
    spec = loop_spec(loop)
    if spec.mit_mots:
        return False
    recurrences = [(state.reads, state.write) for state in spec.states] + [((carry.read,), carry.write) for carry in spec.carries]
    found = {read for seq in spec.seqs if seq.outer in active for read in seq.reads}
    found |= {read for state in spec.states if state.initial in active for read in state.reads}
    found |= {carry.read for carry in spec.carries if carry.shared in active}
    found |= {port.read for port in spec.non_seqs if port.outer in active}
    outputs = spec.inner_outputs()
    order = toposort(outputs)
    while True:
        inside = reaching(order, found)
        more = {read for reads, write in recurrences if write in inside and is_float(write.type) for read in reads} - found
        if not more:
            return outputs[place] in inside
        found |= more


def refuse_drawn(writes: Sequence[Node], recurrences: Sequence[tuple[Sequence[Node], Node]]) -> None:
    """NullGradientError where `writes`, what has cotangents in a loop, come from whole numbers that earlier steps have drawn.

    recurrences: the reads and the new value of each state that depends on what derivatives are asked for.
    """
    behind = differentiated(writes)
    for reads, write in recurrences:
        if not is_float(write.type) and not behind.isdisjoint(reads):
            raise no_derivative(write, REJECTED)


def differentiated(outputs: Sequence[Node]) -> set[Node]:
    """The values that `outputs` come from, but for those that are taken as constants."""
    return set(toposort(outputs, stop=[node for node in toposort(outputs) if node.op in (DISCONNECTED, ZERO_GRAD)]))


def _pull(node: Node, given: Sequence[Cotangent | None], active: set[Node], terms: Terms) -> None:
    """Adds the cotangents of a node's operands to `terms`."""
    needed = [k for k, parent in enumerate(node.inputs) if parent in active]
    if not needed or all(one is None for one in given):
        return
    for k in needed:
        if not any(map(is_float, node.inputs[k].types)):
            raise no_derivative(node.inputs[k], REJECTED)
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
