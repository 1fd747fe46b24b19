"""A scope: the values of one closed graph while its statements are made, one lowering after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any  # noqa: TID251 - a card's attributes are of any type

import numpy as np

from ...ir.graph import toposort, users
from ...ir.loop_node import SCAN, loop_spec
from ...ir.loops import ATOM, CALL, Apply, Expr, Index, Literal, Name, Template
from ...ir.names import verbatim
from ...ir.node import CONSTANT, ITEM, Node, constant_value
from ...ops.card import Card
from ...ops.control import IF_ELSE
from ...types import TensorType
from ..builder import Builder
from ..storage.placement import Place, placements
from ..storage.tensor_values import Indices, InLocals, Value, indices_of

if TYPE_CHECKING:
    from ..plan import Kernel
    from ..storage.states import Waiting

FIXED_LIMIT = 8  # elements of a constant array that stand in the text; a larger one is an argument


# What a float beyond an integer's range becomes is for the machine to say. This way it is what NumPy gives: -2.5 is 65534 as uint16.
_THROUGH_INT64 = {name: Template(f"np.{name}(np.int64({{0}}))") for name in ("int8", "int16", "uint8", "uint16", "uint32")}
_THROUGH_INT64["uint64"] = Template("float_to_uint64({0})", cost=CALL)

_AT_MOST_INT64 = Template("np.int64(min({0}, np.uint64(9223372036854775807)))")


def cast(expr: Expr, dtype: str) -> Expr:
    """`expr` in another dtype; nothing where it has it already."""
    if expr.dtype == dtype:
        return expr
    if isinstance(expr, Literal) and not (dtype == "bool" or expr.dtype == "bool"):
        is_real = dtype.startswith(("float", "complex")) and not isinstance(expr.value, complex)
        if is_real or (dtype.startswith("int") and isinstance(expr.value, int)):
            with np.errstate(over="ignore"):
                return Literal(dtype, np.array(expr.value).astype(dtype).item())  # as rounded: it may be cast again
    if dtype == "bool":
        return Apply("bool", Template("bool({0})"), (expr,))
    if expr.dtype.startswith("complex") and not dtype.startswith("complex"):
        expr = Apply("float64" if expr.dtype == "complex128" else "float32", Template("{0}.real", ATOM, (ATOM,)), (expr,))
    if expr.dtype.startswith("float") and dtype in _THROUGH_INT64:
        return Apply(dtype, _THROUGH_INT64[dtype], (expr,))
    return Apply(dtype, Template(f"np.{dtype}({{0}})"), (expr,))


class Scope:
    """Makes the statements of a closed graph in the builder's current block. `env` holds what is known of its arguments.

    `targets` names arrays that a value must be written into.
    """

    def __init__(
        self, kernel: Kernel, outputs: Sequence[Node], env: Mapping[Node, Value], targets: Mapping[Node, Sequence[Waiting]] | None = None
    ) -> None:
        self.kernel, self.builder = kernel, kernel.builder
        self.scan = self.builder.scan  # whose step this is; "" outside of loops
        self.outputs = tuple(outputs)
        self.readers = users(outputs)
        for output in outputs:
            self.readers[output] = [*self.readers[output], output]
        self.places = placements(outputs, users(outputs))
        self.env: dict[Node, Value] = dict(env)
        self.several: dict[Node, list[Value]] = {}
        self.prepared: dict[object, object] = {}  # what `lower_small` has made of matrices
        self.targets = dict(targets or {})
        self.rows_around: dict[Node, Waiting] = {}  # results of inner loops, and the row of the loop around that is to hold them
        self.placed: dict[Node, Waiting] = {}  # those of them that inner loops have written there

    def run(self, last: Collection[Node] = ()) -> None:
        """Makes every value but those that come `last`, which nothing reads."""
        for node in toposort(self.outputs, stop=list(self.env)):
            if node not in last:
                self.make(node)

    def make(self, node: Node) -> None:
        """Makes the value of one node."""
        from . import card as lower_card
        from . import choice as lower_choice
        from . import loop as lower_loop

        if node in self.env or node in self.several:
            return
        if node.op is CONSTANT:
            self.env[node] = self._constant(node)
        elif node.op is ITEM:
            index = node.attr("index")
            assert isinstance(index, int)
            self.env[node] = self.several[node.inputs[0]][index]
        elif node.op is SCAN:
            with self.builder.step_of(loop_spec(node).name):
                self._keep(node, lower_loop.lower(self, node))
        elif node.op is IF_ELSE:
            self._keep(node, lower_choice.lower(self, node))
        elif isinstance(node.op, Card):
            self._keep(node, lower_card.lower(self, node))
        else:
            raise TypeError(f"{node.op.name} ({node}) cannot be compiled; it runs in mode='python'")

    def _keep(self, node: Node, values: list[Value]) -> None:
        if len(node.types) == 1:
            (self.env[node],) = values
        else:
            self.several[node] = values

    def value(self, node: Node) -> Value:
        return self.env[node]

    def reads(self, node: Node) -> int:
        """How often the graph reads a node."""
        return len(self.readers.get(node, ()))

    def place(self, node: Node) -> Place:
        return self.places.get(node, Place.MEMORY)

    def _constant(self, node: Node) -> Value:
        array = constant_value(node)
        assert array is not None
        if array.size > FIXED_LIMIT:
            return self.kernel.constant_argument(node)
        elements: dict[tuple[int, ...], Expr] = {index: Literal(node.type.dtype, array[index].item()) for index in indices_of(array.shape)}
        return InLocals(node.type, tuple(array.shape), elements, self.builder, self.builder.root, node.name or "fixed")


class View:
    """A node as its card's lowering sees it (`ops.lowering.Operands`)."""

    def __init__(self, scope: Scope, node: Node) -> None:
        self.scope, self.node = scope, node

    @property
    def attrs(self) -> dict[str, Any]:
        return dict(self.node.attrs)

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(parent.type for parent in self.node.inputs)

    @property
    def out(self) -> TensorType:
        return self.node.types[0]

    def dims(self, k: int) -> Indices:
        return self.scope.value(self.node.inputs[k]).dims

    def at(self, k: int, index: Indices = (), dtype: str | None = None) -> Expr:
        element = self.scope.value(self.node.inputs[k]).at(tuple(index))
        return element if dtype is None else cast(element, dtype)

    def scalar(self, k: int) -> Index:
        element = self.at(k)
        if isinstance(element, Literal):
            return int(element.value.real)
        if element.dtype == "uint64":  # one beyond int64 stays beyond every axis, and does not count from the end
            return Apply("int64", _AT_MOST_INT64, (element,))
        return cast(element, "int64")

    def check(self, condition: Expr, error: str, message: str, *numbers: Index) -> None:
        self.scope.builder.check(condition, error, message + location(self.scope, self.node), *numbers)

    def same(self, a: Index, b: Index, error: str, message: str) -> None:
        self.scope.builder.same(a, b, error, message + location(self.scope, self.node))


def location(scope: Scope, node: Node) -> str:
    """The end of a check's message: the place in the user's code, and the loop in whose step it stands."""
    line = f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else ""
    step = f" in the step of scan {scope.scan!r}" if scope.scan else ""
    return verbatim(line + step)


def nest(builder: Builder, dims: Sequence[Index], body: Callable[[Indices], None], letters: str = "ijklmnpq") -> None:
    """Calls `body` inside a loop nest over `dims`, with the loops' indices."""
    if not dims:
        body(())
        return
    with builder.loop(letters[0], dims[0]) as index:
        nest(builder, dims[1:], lambda rest: body((index, *rest)), letters[1:] + letters[0] * (len(letters) == 1))


def scalar_name(expr: Expr) -> bool:
    """Does an expression cost nothing to read again?"""
    return isinstance(expr, Name | Literal)
