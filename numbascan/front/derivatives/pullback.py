"""Pullbacks: the derivative of one call, at the values that it saw, whatever has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...ir.graph import free_inputs, substitute
from ...ir.node import Node, constant, new_input
from ...ops.algebra import is_float
from ...tracebacks import with_entries
from ..shared import shared_of
from ..specialisation import prepared, small_type
from ..tracing import in_mode
from ..transforms import Compiled, Jitted, Run
from ..tree import Structure, alike, describe, flatten, flattened, n_leaves
from ..variable import CAPTURE, Variable, as_variable
from .function_call import FunctionCall, without_static
from .of_variables import along, gradients

_WHAT = "ns.vjp"


def leaves_like(value: Any, structure: Structure, message: str) -> list[Any]:
    """The leaves of a nest. ValueError with `message` unless it has this structure."""
    leaves, seen = flattened(value)
    if not alike(seen, structure):
        raise ValueError(message.format(describe(structure), describe(seen)))
    return leaves


def pulled(call: FunctionCall, cotangent: Any) -> tuple[Any, ...]:
    """The cotangents of a call's arguments, as variables."""
    pairs = _leaves_given(cotangent, call)
    outputs = [node for node, _ in pairs]
    return tuple(call.nests(_gradients(call, outputs, [along(value, node, f"{_WHAT}: a cotangent") for node, value in pairs])))


def _leaves_given(cotangent: Any, call: FunctionCall) -> list[tuple[Node, Any]]:
    """The results that have derivatives, each with its cotangent."""
    values = leaves_like(cotangent, call.returned, f"{_WHAT}: the function returns {{0}}, the cotangent is {{1}}; give the same nest")
    return [(node, value) for node, value in zip(call.leaves, values, strict=True) if is_float(node.type)]


def _gradients(call: FunctionCall, outputs: Sequence[Node], seeds: Sequence[Node]) -> list[Node]:
    return gradients(outputs, seeds, call.wrt, _WHAT, (), "ignore", call.dependencies)


@with_entries(("__call__",))
class Pullback:
    """The pullback of a call that has run: cotangents of the results -> cotangents of the arguments, None for integers."""

    def __init__(self, function: Jitted, run: Run, has_aux: bool = False) -> None:
        call = _call_of(run)
        self.function, self.run, self.call = function, run, call.with_aux(_WHAT) if has_aux else call
        outputs = [node for node in self.call.leaves if is_float(node.type)]
        self.seeds = [new_input(node.type.strong(), f"cotangent_{k}") for k, node in enumerate(outputs)]
        outer = CAPTURE.array, CAPTURE.number
        CAPTURE.array = CAPTURE.number = None  # rules read from outside now: not captured, so it never changes
        try:
            with in_mode(function.mode):
                self.nodes = _gradients(self.call, outputs, self.seeds)
        finally:
            CAPTURE.array, CAPTURE.number = outer
        self._compiled: dict[Any, Compiled] = {}

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        pairs = _leaves_given(cotangent, self.call)
        if any(isinstance(value, Variable) for _, value in pairs):
            return self._in_graph([as_variable(value).node for _, value in pairs])
        values = [prepared(value, f"{_WHAT}: a cotangent") for _, value in pairs]
        types = tuple([small_type(value) for value in values])
        compiled = self._compiled.get(types)
        if compiled is None:
            inputs = tuple([new_input(type_, seed.name) for type_, seed in zip(types, self.seeds, strict=True)])
            compiled = self._compiled[types] = self._built(inputs)
        results: tuple[Any, ...] = compiled.replayed([*self.run.values, *values], self.run.seen)
        return results

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_compiled": {}}

    def _pulled(self, cotangents: Sequence[Node]) -> tuple[Node, ...]:
        """The cotangents of the arguments as nodes over the inputs of the call's graph."""
        outputs = [node for node in self.call.leaves if is_float(node.type)]
        pairs = zip(self.seeds, cotangents, outputs, strict=True)
        return substitute(self.nodes, {seed: along(Variable(node), output, f"{_WHAT}: a cotangent") for seed, node, output in pairs})

    def _built(self, cotangents: tuple[Node, ...]) -> Compiled:
        """The code for cotangents of these types."""
        traced, outputs = self.run.compiled.traced, self._pulled(cotangents)
        inputs = (*traced.inputs, *cotangents)
        shared = [shared_of(node) for node in free_inputs(outputs, bound=(*inputs, *traced.arrays))]
        structure = flatten(tuple(self.call.nests(outputs)), [])
        known = tuple([variable for variable in shared if variable is not None])
        backward = replace(traced, inputs=inputs, arrays=self.run.arrays, shared=known, outputs=outputs, updates={}, structure=structure)
        return self.function.compiled(replace(backward, guards=None), f"vjp_{self.function.name}")

    def _in_graph(self, cotangents: Sequence[Node]) -> tuple[Any, ...]:
        """The cotangents of the arguments as variables. The values that the call saw become constants."""
        run, traced = self.run, self.run.compiled.traced
        known = {node: as_variable(value).node for node, value in zip(traced.inputs, run.values, strict=True)}
        known |= {node: constant(array, node.type.dtype, node.type.weak) for node, array in run.arrays.items()}
        known |= {shared.node: constant(run.seen[shared.container]) for shared in traced.shared}
        return tuple(self.call.nests(substitute(self._pulled(cotangents), known)))


def _call_of(run: Run) -> FunctionCall:
    """A call that has run, as a FunctionCall on the inputs of its graph; None for integer leaves."""
    traced = run.compiled.traced
    assert not isinstance(run.structure, str)  # of (args, kwargs)
    nodes, (_, _, nests) = iter(traced.inputs), run.structure[2][0]
    arguments: list[tuple[Structure, list[Node | None]]] = []
    for nest in nests:
        group = [next(nodes) for _ in range(n_leaves(nest))]
        arguments.append((without_static(nest), [node if is_float(node.type) else None for node in group]))
    return FunctionCall(arguments, {}, traced.structure, list(traced.outputs))
