"""A scope: the values of one closed graph while its statements are made, one lowering after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any  # noqa: TID251 - a card's attributes are of any type

import numpy as np

from ...ir.graph import toposort, users
from ...ir.loop_node import carry_of
from ...ir.loops import Apply, Expr, Index, Literal, Template, add, mul, names_in
from ...ir.names import verbatim
from ...ir.node import CONSTANT, ITEM, Node, constant_value
from ...ops.card import Card
from ...ops.lowering import View
from ...types import TensorType
from ..builder import Builder, Indices
from ..casts import cast
from ..storage.arguments import KernelArguments
from ..storage.placement import Placement, is_small, placements
from ..storage.save_mem import STATE_BEHIND, is_loop_rows
from ..storage.states import Destination, NextRow, ResultRows
from ..storage.stores import is_there, replaces_part, store
from ..storage.tensor_values import Computed, InLocals, InMemory, Value, indices_of
from ..target import Target

FIXED_LIMIT = 8  # elements of a constant array that stand in the text; a larger one is an argument

_AT_MOST_INT64 = Template("np.int64(min({0}, np.uint64(9223372036854775807)))")


@dataclass(frozen=True)
class FunctionContext:
    """What all scopes of one function share. `lower` makes the values of any node's results."""

    builder: Builder
    arguments: KernelArguments
    lower: Callable[[Scope, Node], list[Value]]
    check_finite: bool
    target: Target


class Scope:
    """Makes the statements of a closed graph in the builder's current block. `env` holds what is known of its arguments.

    `targets` names arrays that a value must be written into.
    """

    def __init__(
        self,
        context: FunctionContext,
        outputs: Sequence[Node],
        env: Mapping[Node, Value],
        targets: Mapping[Node, Sequence[Destination]] | None = None,
        out: Mapping[Node, InMemory] | None = None,
        stored: Set[Node] = frozenset(),
    ) -> None:
        self.context, self.builder, self.target = context, context.builder, context.target
        self.scan = self.builder.scan  # whose step this is; "" outside of loops
        self.outputs = tuple(outputs)
        self.readers = users(outputs)
        self.placements = placements(outputs, self.readers, self.target, stored)
        for output in outputs:
            self.readers[output] = [*self.readers[output], output]
        self.env: dict[Node, Value] = dict(env)
        self.several: dict[Node, list[Value]] = {}
        self.last: Collection[Node] = ()  # values that are made when all others have been
        self.prepared: dict[object, object] = {}  # factors of matrices, and extremes of columns, which several nodes may read
        self.targets = dict(targets or {})
        self.out = dict(out or {})  # the caller's arrays for results
        self.rows_around: dict[Node, Destination] = {}  # results of inner loops, and the row of the loop around that is to hold them
        self.placed: dict[Node, Destination] = {}  # those of them that inner loops have written there

    def inner(
        self,
        outputs: Sequence[Node],
        env: Mapping[Node, Value],
        targets: Mapping[Node, Sequence[Destination]] | None = None,
        stored: Set[Node] = frozenset(),
    ) -> Scope:
        """The scope of a closed graph inside this one: a step, or a branch. `stored`: values that are not computed where they are read."""
        return Scope(self.context, outputs, env, targets, stored=stored)

    def run(self, last: Collection[Node] = ()) -> None:
        """Makes every value but those that come `last`, which nothing reads."""
        self.last = last
        for node in toposort(self.outputs, stop=list(self.env)):
            if node not in last:
                self.make(node)

    def make(self, node: Node) -> None:
        """Makes the value of one node."""
        if node in self.env or node in self.several:
            return
        if node.op is CONSTANT:
            self.env[node] = self._constant(node)
        elif node.op is ITEM:
            index = node.attr("index")
            assert isinstance(index, int)
            self.env[node] = self.several[node.inputs[0]][index]
        elif len(node.types) == 1:
            (self.env[node],) = self.context.lower(self, node)
        else:
            self.several[node] = self.context.lower(self, node)

    def value(self, node: Node) -> Value:
        return self.env[node]

    def reads(self, node: Node) -> int:
        """How often the graph reads a node."""
        return len(self.readers.get(node, ()))

    def placement(self, node: Node) -> Placement:
        return self.placements.get(node, Placement.MEMORY)

    def _constant(self, node: Node) -> Value:
        array = constant_value(node)
        assert array is not None
        if array.size > FIXED_LIMIT:
            return _counted_out(node, array) or self.context.arguments.constant(node)
        elements: dict[tuple[int, ...], Expr] = {index: Literal(node.type.dtype, array[index].item()) for index in indices_of(array.shape)}
        return InLocals(node.type, tuple(array.shape), elements, self.builder, self.builder.root, node.name or "fixed")

    # where values are written ---------------------------------------------------------------------------------------

    def destinations(self, node: Node, dims: Indices) -> list[InMemory]:
        """The arrays that a value is to be written into, or a work row of its own."""
        targets = self.targets.get(node)
        if targets:
            return [target.place(dims) for target in targets]
        row = self._row_ahead(node)
        if row is not None:
            return [row.place(dims)]
        return [InMemory(node.type, dims, self.builder.alloc(node.name or node.op.name, dims, node.type.dtype))]

    def _row_ahead(self, node: Node) -> ResultRows | None:
        """The row of a result that is this value with parts of it replaced, one after the other, and nothing else reads it."""
        while node not in self.targets:
            readers = self.readers.get(node, ())
            if len(readers) != 1 or not replaces_part(readers[0], node):
                return None
            node = readers[0]
        (row, *others) = self.targets[node]
        return row if isinstance(row, ResultRows) and not others else None

    def row_updated(self, node: Node, before: Node) -> NextRow | None:
        """The row that `node` is to be made in, if `before` lies there."""
        rows = [target for target in self.targets.get(node, ()) if isinstance(target, NextRow)]
        return next((target for target in rows if is_there(self.value(before), target.row)), None)

    def left_behind(self, before: Node) -> InMemory | None:
        """The memory of a value, for its one reader to write into: whole, taken for the value here, and read for nothing else."""
        value = self.value(before)
        is_own = isinstance(before.op, Card) and not isinstance(before.op.lower, View) and not is_loop_rows(before)
        if before.op is STATE_BEHIND:  # the loop has ended, and nobody asks it for other rows of this state
            is_own = self.reads(before.inputs[0]) == 1
        elif carry_of(before) is not None:
            is_own = True
        if not is_own or before in self.targets or self.reads(before) > 1 or not isinstance(value, InMemory):
            return None
        return value if value.array in self.builder.shapes and not value.lead and value.offset == 0 else None

    def filled(self, node: Node, dims: Indices, element: Callable[[Indices], Expr]) -> InMemory:
        """The value in memory, written by one loop nest; into every array that is to hold it."""
        places = self.destinations(node, dims)

        def body(index: Indices) -> None:
            expr = element(index)
            if len(places) > 1:
                expr = self.builder.let(node.name, expr, hoist=False)
            for place in places:
                self.builder.emit(store(place, index, expr))

        if is_small(node, self.target) and node.type.rank <= 1:
            for index in indices_of(node.type.shape):
                body(index)
        else:
            self.builder.nest(dims, body)
        return places[0]


class NodeOperands:
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

    def chosen(self, condition: Expr, yes: Callable[[], Expr], no: Callable[[], Expr]) -> Expr:
        return self.scope.builder.chosen(condition, yes, no)

    def short(self, number: Expr) -> Expr:
        local = self.scope.builder.short("place", number)
        assert isinstance(local, Expr)
        return local

    def known(self, number: Index) -> Index:
        return self.scope.builder.representative(number)

    def scalar(self, k: int) -> Index:
        element = self.at(k)
        if isinstance(element, Literal):
            return int(element.value.real)
        # one beyond int64 stays beyond every axis, and does not count from the end
        number = Apply("int64", _AT_MOST_INT64, (element,)) if element.dtype == "uint64" else cast(element, "int64")
        is_read = any(is_element for _, is_element in names_in(number))
        return self._read_once(k, number) if is_read else number

    def _read_once(self, k: int, number: Expr) -> Expr:
        """A number that is read from memory, in a local: a loop inside that stores would have to read it again."""
        builder, key = self.scope.builder, (self.scope, self.node, k)
        local = builder.block.lookup(key)
        if local is None:
            local = builder.let(self.node.inputs[k].name or "place", number)
            builder.home_of(local).memo[key] = local
        return local

    def check(self, condition: Expr, error: str, message: str, *numbers: Index) -> None:
        self.scope.builder.check(condition, error, message + location(self.scope, self.node), *numbers)

    def same(self, a: Index, b: Index, error: str, message: str, unless: Expr | None = None) -> None:
        self.scope.builder.same(a, b, error, message + location(self.scope, self.node), unless)

    def broadcasts(self, dim: Index, extent: Index, error: str, message: str) -> None:
        self.scope.builder.broadcasts(dim, extent, error, message + location(self.scope, self.node))

    def stretches(self, dim: Index, extent: Index) -> bool:
        return self.scope.builder.stretches(dim, extent)


def _counted_out(node: Node, array: np.ndarray) -> Computed | None:
    """Evenly spaced integers as what they are: computing one costs no more than loading it, and its bounds are known. None for others."""
    if array.dtype != np.int64 or array.ndim != 1 or len(set(np.diff(array).tolist())) > 1:
        return None
    first, step = int(array[0]), int(array[1]) - int(array[0])
    return Computed(node.type, array.shape, lambda index: as_int64(add(mul(index[0], step), first)))


def as_int64(number: Index) -> Expr:
    """An index as an expression."""
    return Literal("int64", number) if isinstance(number, int) else number


def is_made_in_place(write: Node) -> bool:
    """True if the lowering of `write` puts it into its targets.

    Others are copied: values that the step was given, results among several, and the rows that an inner loop kept.
    """
    return isinstance(write.op, Card) and len(write.types) == 1 and not is_loop_rows(write)


def location(scope: Scope, node: Node) -> str:
    """The end of a check's message: the place in the user's code, and the loop in whose step it stands."""
    line = f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else ""
    step = f" in the step of scan {scope.scan!r}" if scope.scan else ""
    return verbatim(line + step)
