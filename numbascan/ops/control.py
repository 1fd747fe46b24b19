"""Ops that hold a graph or a function: a lazy choice, a function with its own derivative, a Python function called in mode="python"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np

from ..ir.graph import Graph, close, substitute, toposort
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.loops import Literal
from ..ir.names import verbatim
from ..ir.node import ITEM, Node, arg, constant, make, new_input, outputs_of
from ..types import TensorType
from .card import Card, apply, register
from .gradient_identities import LINKS
from .lowering import Indices, Operands, View


class _IfElse:
    """A lazy choice. Operands: the condition, then what the branches read. Both branches are closed graphs over the same arguments."""

    name = "ifelse"

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return if_else(inputs[0], inputs[1:], *branches(node))

    def __reduce__(self) -> str:
        return "IF_ELSE"


IF_ELSE = _IfElse()


def branches(node: Node) -> tuple[Graph, Graph]:
    """The two graphs of a choice: for a condition that holds, and for one that does not."""
    found = node.attr("branches")
    assert isinstance(found, tuple)
    return found


def if_else(condition: Node, operands: Sequence[Node], then: Graph, otherwise: Graph) -> Node:
    """The node of a lazy choice. The branches must agree in dtype and rank; a dimension they disagree on becomes unknown."""
    fitted = tuple(_fitted(branch, operands) for branch in (then, otherwise))
    types = tuple(_joined(a.type, b.type) for a, b in zip(fitted[0].outputs, fitted[1].outputs, strict=True))
    return make(IF_ELSE, (condition, *operands), types, (("branches", fitted),))


def if_else_outputs(condition: Node, operands: Sequence[Node], then: Graph, otherwise: Graph) -> tuple[Node, ...]:
    """The results of a lazy choice, one node each."""
    return outputs_of(if_else(condition, operands, then, otherwise))


def with_bodies(outputs: Sequence[Node], change: Callable[[Sequence[Node]], tuple[Node, ...]]) -> tuple[Node, ...]:
    """`outputs` with `change` applied to the results of every graph inside a node: steps of loops, branches of choices."""
    done: dict[Node, Node] = {}
    for node in toposort(outputs):
        inputs = tuple(done[parent] for parent in node.inputs)
        changed = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        if changed.op is SCAN:
            spec = loop_spec(changed)
            fresh = tuple(new_input(read.type, read.name) for read in spec.inner_inputs())
            writes = substitute(spec.inner_outputs(), dict(zip(spec.inner_inputs(), fresh, strict=True)))
            changed = scan_node(spec.with_inner(fresh, change(writes)))
        elif changed.op is IF_ELSE:
            graphs = [close(graph.inputs, change(graph.outputs)) for graph in branches(changed)]
            changed = if_else(changed.inputs[0], changed.inputs[1:], *graphs)
        changed.name, changed.origin = changed.name or node.name, changed.origin or node.origin
        done[node] = changed
    return tuple(done[node] for node in outputs)


class Rule(Protocol):
    """The vjp of a function: (node, cotangents of its results, the operands that need a cotangent) -> cotangents of the operands.

    If it `goes_forward`, `tangents` gives the tangents of the results from those of the operands, None for zero.
    """

    @property
    def goes_forward(self) -> bool: ...

    def __call__(self, node: Node, cotangents: Sequence[Node | None], needed: Collection[int]) -> list[Node | None]: ...

    def tangents(self, node: Node, moves: Sequence[Node | None]) -> list[Node]: ...

    def __hash__(self) -> int: ...


class _CustomVjp:
    """A function whose derivative is given by a rule, not by its graph. Operands: what the graph reads."""

    name = "custom_vjp"

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return custom_vjp_node(inputs, graph_of(node), rule_of(node))

    def __reduce__(self) -> str:
        return "CUSTOM_VJP"


CUSTOM_VJP = _CustomVjp()


def custom_vjp_node(operands: Sequence[Node], graph: Graph, rule: Rule) -> Node:
    """The node of a function with a rule. Rules are compared by equality, so that equal calls are one node."""
    fitted = _on_types(graph, operands)
    return make(CUSTOM_VJP, operands, [output.type for output in fitted.outputs], (("graph", (fitted,)), ("rule", rule)))


def graph_of(node: Node) -> Graph:
    """The graph that a node of `custom_vjp` or `py_call` holds."""
    found = node.attr("graph")
    assert isinstance(found, tuple)
    (graph,) = found
    assert isinstance(graph, Graph)
    return graph


def rule_of(node: Node) -> Rule:
    """The derivative rule of a node of `custom_vjp`."""
    rule: Any = node.attr("rule")
    return rule  # type: ignore[no-any-return]


def inlined(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` without what only derivatives need: functions with a rule become their graphs, identities become their operands.

    The bodies of loops and choices are left as they are.
    """
    done: dict[Node, Node] = {}
    results: dict[Node, tuple[Node, ...]] = {}
    for node in toposort(outputs):
        inputs = tuple(done.get(parent, parent) for parent in node.inputs)
        if node.op is CUSTOM_VJP:
            graph = graph_of(node)
            results[node] = substitute(inlined(graph.outputs), dict(zip(graph.inputs, inputs, strict=True)))
            if len(node.types) > 1:
                continue
            (changed,) = results[node]
        elif node.op is ITEM and node.inputs[0] in results:
            index: Any = node.attr("index")
            changed = results[node.inputs[0]][index]
        elif node.op in LINKS and not inputs[0].type.weak:
            changed = inputs[0]
        else:
            changed = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        changed.name, changed.origin = changed.name or node.name, changed.origin or node.origin
        done[node] = changed
    return tuple(done[node] for node in outputs)


def _fitted(branch: Graph, operands: Sequence[Node]) -> Graph:
    """The branch on the types of its operands. If a length that these fix is an error in it: a branch that raises this error."""
    try:
        return _on_types(branch, operands)
    except (IndexError, ValueError) as error:
        inputs = tuple(arg(k, node.type, node.name) for k, node in enumerate(operands))
        kind = "IndexError" if isinstance(error, IndexError) else "ValueError"
        return Graph(inputs, tuple(_refused(output.type, inputs[0], kind, str(error)) for output in branch.outputs))


def _refused(type_: TensorType, operand: Node, kind: str, message: str) -> Node:
    """A value of this type, unknown lengths taken as 0, that raises an error. It reads `operand`: as a constant it would be folded."""
    value = constant(np.zeros([dim or 0 for dim in type_.shape], type_.dtype))
    refused = apply(REFUSED, value, operand, kind=kind, message=message)
    refused.origin = None  # the message has the line
    return refused


def _refuse(value: Any, operand: Any, kind: str, message: str) -> Any:
    if kind:
        raise IndexError(message) if kind == "IndexError" else ValueError(message)
    return value


def _refused_dims(view: Operands) -> Indices:
    view.check(Literal("bool", not view.attrs["kind"]), str(view.attrs["kind"]), verbatim(str(view.attrs["message"])))
    return view.dims(0)


REFUSED = register(
    Card(
        "refused",
        _refuse,
        lambda value, operand, kind, message: value.strong(),
        View(_refused_dims, lambda view, index: index),
        samples=lambda: [((np.array([0.5, 2.0]), np.bool_(True)), {"kind": "", "message": "a sample"})],
        linear=(0,),
        vjp=lambda node, cotangent: (cotangent, None),
    )
)
"""The result of a branch whose lengths do not fit: an error of this kind. Without a kind, the value."""


def _on_types(branch: Graph, operands: Sequence[Node]) -> Graph:
    if [node.type for node in branch.inputs] == [node.type for node in operands]:
        return branch
    fresh = tuple(new_input(node.type, old.name) for node, old in zip(operands, branch.inputs, strict=True))
    return close(fresh, substitute(branch.outputs, dict(zip(branch.inputs, fresh, strict=True))))


def _joined(a: TensorType, b: TensorType) -> TensorType:
    if a.dtype != b.dtype or a.rank != b.rank:
        raise TypeError(f"ifelse: the branches give {a} and {b}; they must agree in dtype and rank")
    return TensorType(a.dtype, tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)), a.weak and b.weak)


class _PyCall:
    """A Python function called with the actual values. Its graph, made by tracing it, gives the types and derivatives of its results."""

    name = "py_call"

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return py_call_node(node.attr("function"), inputs, graph_of(node))

    def __reduce__(self) -> str:
        return "PY_CALL"


PY_CALL = _PyCall()


def py_call_node(function: Any, operands: Sequence[Node], graph: Graph) -> Node:
    """The node of a call of `function` on the values of `operands`. It returns the results of `graph`: one array, or a flat tuple."""
    fitted = _on_types(graph, operands)
    types = [output.type.strong() for output in fitted.outputs]
    return make(PY_CALL, operands, types, (("graph", (fitted,)), ("function", function)))


def py_call(node: Node, values: Sequence[Any]) -> tuple[Any, ...]:
    """The results of calling the Python function of a node on actual values."""
    function: Any = node.attr("function")
    result = function(*values)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(value).astype(type_.dtype, copy=False) for value, type_ in zip(results, node.types, strict=True))
