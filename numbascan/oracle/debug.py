"""mode="debug": every step of every loop by NumPy and by compiled code, value by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DebugError
from ..ir.graph import Graph, close, toposort
from ..ir.node import ARG, CONSTANT, INPUT, Node
from ..ir.ports import LoopSpec
from ..ops.card import Card
from ..ops.random import DRAW_NUMBERS
from .interpret import LoopRun, NumbersOfDraws, Watch, interpret

_NONE = np.zeros(0, "int64")  # stands for an argument that no compared value reads
Compiled = Callable[[Graph, str], Callable[[Sequence[Any]], list[Any]]]
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4}  # relative and absolute: the most that rounding may differ after one step
DEFAULT_TOLERANCE = 1e-9


def debug_run(graph: Graph, arguments: Sequence[Any], compiled: Compiled, name: str) -> list[Any]:
    """The results of `graph` by NumPy, each step compared with `compiled` code.

    Raises DebugError at the first value that differs, or that becomes NaN from operands without one: it names the loop, the
    step, the variable and the line of the user's code.
    """

    class Compared(LoopRun):
        """A loop that compares as it runs."""

        def __init__(self, spec: LoopSpec, operands: Sequence[Any], watch: Watch | None = None) -> None:
            super().__init__(spec, operands, watch)
            self.t = 0
            unstored = {port.read for port, value in zip(spec.non_seqs, self.fixed, strict=True) if isinstance(value, NumbersOfDraws)}
            behind: set[Node] = set()  # values that depend on such numbers: there are more of them than an array holds
            for node in toposort(spec.inner_outputs()):
                if node in unstored or node.op is DRAW_NUMBERS or not behind.isdisjoint(node.inputs):
                    behind.add(node)
            every = [node for node in toposort(spec.inner_outputs()) if node not in behind]
            self.inner = [node for node in every if isinstance(node.op, Card) and len(node.types) == 1]
            self.program = compiled(close(spec.inner_inputs(), self.inner), f"{spec.name}_step") if self.inner else None

        def step(self, t: int) -> bool:
            values: dict[Node, Any] = dict(zip(self.spec.inner_inputs(), self.arguments(t), strict=True))
            interpret(Graph(self.spec.inner_inputs(), tuple(self.inner)), list(values.values()), values.__setitem__)
            if self.program is not None:
                results = self.program([_NONE if isinstance(value, NumbersOfDraws) else value for value in self.arguments(t)])
                for node, value in zip(self.inner, results, strict=True):
                    _compare(node, values, value, f"scan {self.spec.name!r}, step {t}")
            return super().step(t)

    values: dict[Node, Any] = dict(zip(graph.inputs, arguments, strict=True))
    results = interpret(graph, arguments, values.__setitem__, Compared)
    for node, value in zip(graph.outputs, compiled(graph, name)(arguments), strict=True):
        _compare(node, values, value, name)
    return results


def _compare(node: Node, values: dict[Node, Any], computed: Any, where: str) -> None:
    """Raises where the compiled value differs from the oracle's, or the oracle's is the first NaN."""
    expected = np.asarray(values.get(node, computed))
    if expected.dtype.kind in "fc" and np.isnan(expected).any() and not _has_nan_operand(node, values):
        raise DebugError(f"{where}: {_variable(node)} becomes NaN; its operands are {_operands(node, values)}")
    tolerance = TOLERANCE.get(node.types[0].dtype, DEFAULT_TOLERANCE)
    if expected.shape != np.shape(computed):
        raise DebugError(f"{where}: {_variable(node)} has shape {expected.shape} by NumPy and {np.shape(computed)} compiled")
    if not np.allclose(computed, expected, rtol=tolerance, atol=tolerance, equal_nan=True):
        raise DebugError(
            f"{where}: {_variable(node)} is {expected!r} by NumPy and {computed!r} compiled; operands {_operands(node, values)}"
        )


def _has_nan_operand(node: Node, values: dict[Node, Any]) -> bool:
    known = [np.asarray(values[parent]) for parent in node.inputs if parent in values]
    return any(value.dtype.kind in "fc" and bool(np.isnan(value).any()) for value in known)


def _variable(node: Node) -> str:
    label = node.name or f"the result of {node.op.name}"
    return f"{label} ({node.origin[0]}, line {node.origin[1]})" if node.origin else label


def _operands(node: Node, values: dict[Node, Any]) -> str:
    shown = [f"{parent.name or parent.op.name} = {values[parent]!r}" for parent in node.inputs if parent in values]
    return ", ".join(shown) if shown and node.op not in (INPUT, ARG, CONSTANT) else "none"
