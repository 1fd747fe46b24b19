"""From a graph to a function of loops: the way in and out of `plan/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..ir.graph import Graph
from ..ir.loops import Argument, Expr, Function, Index, Length, Literal, Load, Name, Return, Stmt, Store, add, compare
from ..ir.node import Node, constant_value
from ..types import TensorType
from .builder import Builder
from .lower.scope import Scope, cast, nest
from .passes.ahead import drawn_ahead
from .passes.blocks import in_blocks
from .passes.fuse import fuse
from .passes.interchange import interchanged
from .passes.simd import for_simd
from .passes.stack import on_stack
from .passes.strips import in_strips
from .passes.tiles import in_tiles
from .storage.save_mem import may_end_early
from .storage.stores import copied
from .storage.tensor_values import Computed, Indices, InLocals, InMemory, Value


@dataclass
class Plan:
    """A function, and the arrays that it takes after the graph's inputs."""

    function: Function
    constants: list[npt.NDArray[np.generic]]


Watch = Callable[[str, Plan], None]


class Kernel:
    """The function in the making, and what every scope of it shares."""

    def __init__(
        self, graph: Graph, given: Sequence[bool], check_finite: bool = False, reserved: Sequence[str] = (), beginnings: Sequence[str] = ()
    ) -> None:
        self.check_finite = check_finite
        self.builder = Builder(tuple(reserved), tuple(beginnings))
        self.graph = graph
        self.arguments: list[Argument] = []
        self.constants: list[npt.NDArray[np.generic]] = []
        self._constant_names: dict[Node, InMemory] = {}
        inputs = {node: self._argument(node.type, node.name or "x") for node in graph.inputs}
        self.places: list[InMemory | None] = [None] * len(graph.outputs)  # the caller's arrays
        for k, (node, is_given) in enumerate(zip(graph.outputs, given, strict=True)):
            if is_given:
                value = self._argument(node.type, f"out_{k}" if len(graph.outputs) > 1 else "out", is_written=True)
                assert isinstance(value, InMemory)
                self.places[k] = value
        wanted = list(zip(graph.outputs, self.places, strict=True))
        self.given = {node: place for node, place in reversed(wanted) if place is not None}  # the first of equal results
        self.scope = Scope(self, graph.outputs, inputs)

    def _argument(self, type_: TensorType, hint: str, is_written: bool = False) -> Value:
        name = self.builder.fresh(hint, "x", self.builder.root)
        self.arguments.append(Argument(name, type_.dtype, type_.rank, is_written))
        if not type_.rank:
            return InLocals(type_, (), {(): Name(type_.dtype, name)}, self.builder, self.builder.root, name)
        dims: Indices = tuple(Length("int64", name, axis) if dim is None else dim for axis, dim in enumerate(type_.shape))
        return InMemory(type_, dims, name)

    def constant_argument(self, node: Node) -> Value:
        """A captured array: an argument of the function, never text."""
        if node not in self._constant_names:
            array = constant_value(node)
            assert array is not None
            value = self._argument(node.type, node.name or "fixed")
            assert isinstance(value, InMemory)
            self.constants.append(array)
            self._constant_names[node] = value
        return self._constant_names[node]

    def array_of(self, scope: Scope, value: Value, dtype: str) -> str:
        """The name of a C-contiguous array with the elements of `value`; copied only where it is not one already."""
        builder = self.builder
        if value.type.dtype != dtype or isinstance(value, Computed):
            array = builder.alloc(None, value.dims, dtype)
            place = InMemory(TensorType(dtype, value.type.shape), value.dims, array)
            nest(builder, value.dims, lambda index: builder.emit(_store(place, index, cast(value.at(index), dtype))))
            return array
        if isinstance(value, InLocals):
            return value.spilled()
        assert isinstance(value, InMemory)
        places, numbers = [f"{{{k}}}" for k in range(len(value.lead))], list(value.lead)
        has_less, is_end = self._less_than_array(value)
        if has_less:
            places.append(f"{{{len(numbers)}}}:" if is_end else f"{{{len(numbers)}}}:{{{len(numbers) + 1}}}")
            numbers += [value.offset] if is_end else [value.offset, add(value.dims[0], value.offset)]
        if not places:
            return value.array
        text = f"{value.array}[{', '.join(places)}]"
        return builder.alias(f"{value.array}_{'rows' if has_less else 'row'}", text, *numbers, arrays=(value.array,))

    def _less_than_array(self, value: InMemory) -> tuple[bool, bool]:
        """Whether memory holds more along the first free axis than the value, and if so, whether what it holds more comes first."""
        if not value.dims:
            return False, False
        stop, axis = self.builder.representative(add(value.dims[0], value.offset)), len(value.lead)
        shape = self.builder.shapes.get(value.array)
        length = Length("int64", value.array, axis) if shape is None else shape[axis]
        is_end = stop == self.builder.representative(length) or (shape is None and isinstance(stop, int))
        return value.offset != 0 or not is_end, is_end

    @staticmethod
    def text_of(expr: Expr) -> str:
        """A scalar as the argument of a routine, which must see its dtype."""
        if isinstance(expr, Name):
            return expr.name
        assert isinstance(expr, Literal)
        return repr(expr.value) if expr.dtype in ("bool", "int64", "float64", "complex128") else f"np.{expr.dtype}({expr.value!r})"

    def finish(self) -> list[Stmt]:
        """The statements of the whole function, results returned."""
        taken: set[str] = {argument.name for argument in self.arguments}
        names = [self._returned(node, place, taken) for node, place in zip(self.graph.outputs, self.places, strict=True)]
        self.builder.emit(Return(tuple(names)))
        return self.builder.root.stmts

    def _returned(self, node: Node, given: InMemory | None, taken: set[str]) -> str:
        """The name under which one result is returned: an array of its own, or a number. `given`: the caller's array for it."""
        value = self.scope.value(node)
        if not node.type.rank:
            expr = value.at(())
            if isinstance(expr, Name):
                return expr.name
            return self.builder.variable(node.name or "result", expr, node.type.dtype).name
        if given is not None:
            return self._into(node, value, given)
        if isinstance(value, InMemory) and not value.lead and value.array not in taken | self.builder.views:
            taken.add(value.array)
            return self._cut(value)
        array = self.builder.alloc(node.name or "result", value.dims, node.type.dtype)
        copied(self.scope, value, InMemory(node.type, value.dims, array))
        return array

    def _cut(self, value: InMemory) -> str:
        """The rows of `value` that hold results: behind the initial rows, up to the last step."""
        allocated = self.builder.shapes.get(value.array)
        rows = value.dims[0]
        is_whole = value.offset == 0 and (allocated is None or allocated[0] == rows)
        if is_whole:
            return value.array
        stop = add(rows, value.offset)
        is_end = allocated is not None and allocated[0] == stop
        text = f"{value.array}[{{0}}:]" if is_end else f"{value.array}[{{0}}:{{1}}].copy()"  # a copy: the rest may be long
        return self.builder.alias(value.array.removesuffix("_path"), text, value.offset, stop, arrays=(value.array,))

    def _into(self, node: Node, value: Value, given: InMemory) -> str:
        """The caller's array, written unless the loop has written it."""
        if isinstance(value, InMemory) and value.array == given.array:
            rows = value.dims[0]
            if self.builder.representative(rows) == self.builder.representative(given.dims[0]):
                return given.array
            return self._first_rows(given, rows)
        ends_early = may_end_early(node)
        for axis, (there, made) in enumerate(zip(given.dims, value.dims, strict=True)):
            message = f"out=: dimension {axis} is {{0}}, the result has {{1}}"
            if axis == 0 and ends_early:  # how many rows there are only the run knows
                self.builder.check(compare(">=", there, made), "ValueError", message, there, made)
            else:
                self.builder.same(there, made, "ValueError", message)
        copied(self.scope, value, replace(given, dims=value.dims))
        return self._first_rows(given, value.dims[0]) if ends_early else given.array

    def _first_rows(self, given: InMemory, rows: Index) -> str:
        return self.builder.alias(f"{given.array}_rows", f"{given.array}[:{{0}}]", rows, arrays=(given.array,))


def _store(place: InMemory, index: Indices, expr: Expr) -> Store:
    load = place.at(index)
    assert isinstance(load, Load)
    return Store(load.array, load.index, expr)


PASSES: Mapping[str, Callable[[list[Stmt], Kernel], list[Stmt]]] = {
    "fuse": lambda body, kernel: fuse(body),
    "interchanged": lambda body, kernel: interchanged(body, kernel.builder),
    "in_tiles": lambda body, kernel: in_tiles(body, kernel.builder),
    "in_blocks": lambda body, kernel: in_blocks(body, kernel.builder),
    "in_strips": lambda body, kernel: in_strips(body, kernel.builder, kernel.arguments),
    "drawn_ahead": lambda body, kernel: drawn_ahead(body, kernel.builder),
    "for_simd": lambda body, kernel: for_simd(body),
    "on_stack": lambda body, kernel: on_stack(body),
}
"""What is done to the statements of a whole function, in this order."""


def plan(
    graph: Graph,
    name: str,
    given: Sequence[bool] | None = None,
    check_finite: bool = False,
    reserved: Sequence[str] = (),
    beginnings: Sequence[str] = (),
    watch: Watch | None = None,
) -> Plan:
    """The loops of a closed graph.

    `given`: which results are written into arrays of the caller, handed over after the inputs. `check_finite`: every step fails whose
    result is not finite. `reserved`: names that the text around the function uses; `beginnings`: of names that it makes up. `watch` is
    told the function as it is built, and as each pass leaves it; the next one may change its statements.
    """
    kernel = Kernel(graph, given or [False] * len(graph.outputs), check_finite, (name, *reserved), beginnings)
    kernel.scope.run()
    body = kernel.finish()
    result = Plan(Function(name, tuple(kernel.arguments), body), kernel.constants)
    for word, change in {"built": _unchanged, **PASSES}.items():
        result.function.body = change(result.function.body, kernel)
        if watch is not None:
            watch(word, result)
    return result


def _unchanged(body: list[Stmt], kernel: Kernel) -> list[Stmt]:
    return body
