"""The arguments of a function under construction: the graph's inputs, the caller's arrays for results, and captured arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...ir.graph import Graph
from ...ir.loops import Argument, Length, Name
from ...ir.node import Node, constant_value
from ...types import TensorType
from ..builder import Builder, Indices
from .tensor_values import InLocals, InMemory, Value


class KernelArguments:
    """`inputs`: the values of the graph's inputs; `out`: for each result the caller's array, or None; `constants`: the captured arrays."""

    def __init__(self, builder: Builder, graph: Graph, is_given: Sequence[bool]) -> None:
        self.builder = builder
        self.declared: list[Argument] = []
        self.constants: list[npt.NDArray[np.generic]] = []
        self._constant_values: dict[Node, InMemory] = {}
        self.inputs = {node: self._argument(node.type, node.name or "x") for node in graph.inputs}
        self.out: list[InMemory | None] = [None] * len(graph.outputs)
        for k, node in enumerate(graph.outputs):
            if is_given[k]:
                self.out[k] = self._array(node.type, f"out_{k}" if len(graph.outputs) > 1 else "out", is_written=True)
        places = reversed(list(zip(graph.outputs, self.out, strict=True)))
        self.out_of = {node: array for node, array in places if array is not None}  # reversed, so the first of equal results wins

    def _argument(self, type_: TensorType, hint: str) -> Value:
        if type_.rank:
            return self._array(type_, hint)
        name = self._declare(type_, hint)
        return InLocals(type_, (), {(): Name(type_.dtype, name)}, self.builder, self.builder.root, name)

    def _array(self, type_: TensorType, hint: str, is_written: bool = False) -> InMemory:
        name = self._declare(type_, hint, is_written)
        return InMemory(type_, tuple(Length("int64", name, axis) if dim is None else dim for axis, dim in enumerate(type_.shape)), name)

    def _declare(self, type_: TensorType, hint: str, is_written: bool = False) -> str:
        name = self.builder.fresh(hint, "x", self.builder.root)
        self.declared.append(Argument(name, type_.dtype, type_.rank, is_written))
        return name

    def constant(self, node: Node) -> InMemory:
        """A captured array: an argument of the function, never text."""
        if node not in self._constant_values:
            array = constant_value(node)
            assert array is not None
            self._constant_values[node] = self._array(node.type, node.name or "fixed")
            self.constants.append(array)
        return self._constant_values[node]

    def is_input(self, array: str) -> bool:
        """True if an array is one of the graph's inputs."""
        return any(isinstance(value, InMemory) and value.array == array for value in self.inputs.values())

    def dims(self, array: str) -> Indices | None:
        """The dimensions of an array of the graph's inputs or the caller's results; None for other arrays."""
        values = (*self.inputs.values(), *self.out)
        return next((value.dims for value in values if isinstance(value, InMemory) and value.array == array), None)
