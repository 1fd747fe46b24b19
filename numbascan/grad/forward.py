"""Forward mode: the tangents of results from those of inputs, as nodes of the same graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.graph import substitute, toposort
from ..ir.inner_graphs import bodies
from ..ir.loop_node import SCAN
from ..ir.node import ITEM, Node, new_input
from ..ops.algebra import is_float
from ..ops.card import Card
from ..ops.control import CUSTOM_VJP, IF_ELSE, PY_CALL, graph_of, rule_of
from ..ops.gradient_identities import DISCONNECTED
from ..ops.random import REJECTED
from .choice_rule import choice_tangents
from .reverse import drawn_results
from .rules import no_derivative, pushed


def tangents(
    outputs: Sequence[Node], wrt: Sequence[Node], along: Sequence[Node | None], constants: Collection[Node] = ()
) -> list[Node | None]:
    """The tangent of each output when the nodes in `wrt` move along `along`. None: it does not move.

    Raises NullGradientError where the way leads through an op that has no derivative.
    """
    # a tangent for each result of a node; a node that is not here does not move, and nothing is computed for its results
    moves: dict[Node, tuple[Node | None, ...]] = {
        node: (value,) for node, value in zip(wrt, along, strict=True) if value is not None and is_float(node.type)
    }
    # the walk stops at disconnected nodes: no op behind them can refuse to be differentiated
    disconnected = [node for node in toposort(outputs, stop=constants) if node.op is DISCONNECTED]
    order = toposort(outputs, stop=[*constants, *disconnected])
    # of several results of a loop or a choice, only those that are read get a tangent: each costs states in the loop
    read = {(node.inputs[0], node.attr("index")) for node in order if node.op is ITEM}
    for node in order:
        if node in moves or node in constants:
            continue
        if node.op is ITEM:
            index = node.number("index")
            of_all = moves.get(node.inputs[0])
            if of_all is not None and of_all[index] is not None:
                moves[node] = (of_all[index],)
            continue
        operands = [moves[parent][0] if parent in moves else None for parent in node.inputs]
        if all(value is None for value in operands):
            continue
        if any(map(is_float, node.types)):
            are_read = [len(node.types) == 1 or (node, k) in read for k in range(len(node.types))]
            results = _pushed(node, operands, are_read)
            if any(value is not None for value in results):
                moves[node] = tuple(value if is_float(type_) else None for value, type_ in zip(results, node.types, strict=True))
        elif bodies(node) and any(drawn_results(node, set(moves), set())):
            # integers have no tangent; but that of one drawn inside, with a parameter that moves, would be left out silently
            raise no_derivative(node, REJECTED)
    return [moves[output][0] if output in moves else None for output in outputs]


def _pushed(node: Node, operands: Sequence[Node | None], are_read: Sequence[bool]) -> Sequence[Node | None]:
    if isinstance(node.op, Card):
        return pushed(node, operands)
    if node.op is SCAN:
        from .scan_forward import scan_tangents

        return scan_tangents(node, operands, are_read, tangents)
    if node.op is IF_ELSE:
        return choice_tangents(node, operands, tangents)
    if node.op is CUSTOM_VJP:
        if rule_of(node).goes_forward:
            return rule_of(node).tangents(node, operands)
        raise no_derivative(node, f"{node.attr('rule')!r} has a rule for reverse mode only, ns.grad, ns.vjp and ns.jacobian use that")
    if node.op is PY_CALL:
        graph = graph_of(node)
        inputs = [new_input(parent.type, parent.name) for parent in node.inputs]
        values = tangents(substitute(graph.outputs, dict(zip(graph.inputs, inputs, strict=True))), inputs, operands)
        return [None if value is None else substitute([value], dict(zip(inputs, node.inputs, strict=True)))[0] for value in values]
    return [None] * len(node.types)
