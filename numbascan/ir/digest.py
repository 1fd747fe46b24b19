"""A text that tells graphs apart by what they compute, the same in every process: names and lines of the user's code play no part."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

from ..types import TensorType
from .graph import Graph, toposort
from .loop_node import Body
from .node import Data, Node

NOTES = frozenset({"label", "texts", "rule"})  # attributes that say nothing about values: names, messages, rules for derivatives


def digest_of(graph: Graph) -> str:
    """The digest of a graph whose leaves are its inputs and constants.

    >>> from numbascan.ir.node import constant, new_input
    >>> x, y = (new_input(TensorType("float64"), name) for name in "xy")
    >>> digest_of(Graph((x,), (x, constant(2.0)))) == digest_of(Graph((y,), (y, constant(2.0))))
    True
    """
    order = toposort((*graph.inputs, *graph.outputs), stop=graph.inputs)
    place = {node: k for k, node in enumerate(order)}
    is_input = set(graph.inputs)
    total = hashlib.sha256()
    for node in order:
        operands = () if node in is_input else tuple(place[parent] for parent in node.inputs)
        attrs = () if node in is_input else tuple(f"{key}={_text(value)}" for key, value in node.attrs if key not in NOTES)
        total.update(repr(("input" if node in is_input else node.op.name, node.types, operands, attrs)).encode())
    total.update(repr([[place[node] for node in nodes] for nodes in (graph.inputs, graph.outputs)]).encode())
    return total.hexdigest()


def _text(value: Hashable) -> str:
    """An attribute, without names and addresses."""
    if isinstance(value, Data):
        return hashlib.sha256(repr((value.array.dtype.str, value.array.shape)).encode() + value.array.tobytes()).hexdigest()
    if isinstance(value, Graph):
        return digest_of(value)
    if isinstance(value, Body):
        *ports, has_until, _, truncated, _ = value.layout
        return f"{digest_of(value.graph)} {ports} {has_until} {truncated}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, (Node, TensorType)) or not callable(value):
        return repr(value)
    code = getattr(value, "__code__", None)
    return f"{getattr(value, '__qualname__', type(value).__name__)} {'' if code is None else code.co_code.hex()}"
