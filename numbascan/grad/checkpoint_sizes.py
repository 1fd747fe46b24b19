"""The schedules of checkpoints as nodes: the number of stored states, and the number of steps undone at once (a block).

All memory is used: what the stored states leave holds the steps of a block. The binomial schedule stores the fewest states that leave
blocks long enough; where no number of states does, blocks have one step. So it runs the fewest forward steps possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..checkpoint import Checkpoint
from ..ir.graph import folded, substitute, toposort
from ..ir.node import Node, constant, constant_value, named
from ..ops.algebra import add, broadcast_to, call, cast, dims_of, mul, sub, total, where
from ..ops.card import Card, apply
from ..ops.checkpoint_schedule import BINOMIAL_SPLIT, FEWEST_SLOTS, THINNED_STRIDE
from ..ops.dims import DIM
from ..ops.lowering import Contract
from .recurrence import Recurrence

ROOT = "root"  # the schedule of a backward loop under checkpoints that is differentiated itself: a stack at every √n-th turn


def int_node(value: int) -> Node:
    """A number as a node."""
    return constant(value, "int64")


def as_int(value: Node) -> Node:
    """A number of steps as int64, no longer weak."""
    known = constant_value(value)
    return cast(value, "int64") if known is None else int_node(int(known))


def least(a: Node, b: Node) -> Node:
    """The smaller of two numbers."""
    return call("minimum", a, b)


def greatest(a: Node, b: Node) -> Node:
    """The larger of two numbers."""
    return call("maximum", a, b)


def ceil_div(a: Node, b: Node) -> Node:
    """a / b, rounded up."""
    return call("floor_divide", sub(add(a, b), int_node(1)), b)


def shifted(a: Node, number: int) -> Node:
    """`a` plus a fixed number."""
    return add(a, int_node(number)) if number else a


@dataclass(frozen=True)
class Schedule:
    """How many states are stored, and how many steps are undone at once.

    slots: states stored at a time. block: steps undone at once, at most. stride: steps between stored states, where they are fixed.
    found: online, the most states that the loop's own run stores.
    """

    kind: str
    slots: Node
    block: Node
    stride: Node | None = None
    found: Node | None = None

    def fields(self) -> dict[str, Node]:
        """Its numbers by name."""
        numbers = {"slots": self.slots, "block": self.block, "stride": self.stride, "found": self.found}
        return {name: named(node, name) for name, node in numbers.items() if node is not None}

    def on(self, numbers: Mapping[str, Node]) -> Schedule:
        """The same schedule with other nodes for its numbers."""
        return Schedule(self.kind, numbers["slots"], numbers["block"], numbers.get("stride"), numbers.get("found"))

    def turn(self, apart: Node, free: Node) -> tuple[Node, Node]:
        """(whether to store a state, how many steps to advance first), `apart` steps before the end, with `free` places on the stack."""
        is_near = call("less_equal", apart, self.block)
        if self.stride is not None:
            is_stored, ahead = call("greater", apart, self.stride), self.stride
        else:
            blocks = ceil_div(apart, self.block)
            behind = sub(blocks, apply(BINOMIAL_SPLIT, blocks, add(free, int_node(1))))
            is_stored = call("logical_and", call("logical_not", is_near), call("greater", free, int_node(0)))
            ahead = sub(apart, mul(behind, self.block))
        ahead = where(is_near, int_node(0), where(is_stored, ahead, sub(apart, self.block)))
        return named(is_stored, "is_stored"), named(ahead, "ahead")


def schedule_for(note: object, steps: Node, at_most: Node, state: Node, row: Node) -> Schedule:
    """The schedule that a scan's `checkpoint` asks for, to undo `steps` steps.

    at_most: the most steps that the loop could have run. state, row: bytes of a stored state, and of a step in a block.
    """
    some = greatest(steps, int_node(1))
    if note == ROOT:
        root = cast(call("ceil", call("sqrt", cast(some, "float64"))), "int64")
        return Schedule(ROOT, ceil_div(some, root), root, root)
    if isinstance(note, int):
        return Schedule("periodic", ceil_div(some, int_node(note)), least(int_node(note), some), int_node(note))
    assert isinstance(note, Checkpoint)
    memory = greatest(int_node(min(note.bytes, 2**62)), state)
    states = call("floor_divide", memory, state)

    def longest(slots: Node) -> Node:
        """The longest block that fits beside `slots` states; the states at its two ends take no memory of their own."""
        return add(call("floor_divide", sub(memory, mul(slots, state)), row), int_node(2))

    if note.schedule == "online":
        many = greatest(at_most, int_node(1))
        online = least(greatest(call("floor_divide", states, int_node(2)), int_node(1)), many)
        is_whole = call("less_equal", apply(THINNED_STRIDE, many, online), longest(online))  # a segment is one block, whatever the length
        slots = where(is_whole, online, least(states, many))
        return Schedule("online", slots, least(apply(THINNED_STRIDE, steps, online), longest(slots)), found=online)
    fewest = apply(FEWEST_SLOTS, steps, memory, state, row)
    is_enough = call("greater", fewest, int_node(0))
    if note.schedule == "periodic":
        slots = where(is_enough, fewest, ceil_div(states, int_node(2)))
        stride = ceil_div(some, slots)
        return Schedule("periodic", slots, least(stride, longest(slots)), stride)
    slots = where(is_enough, fewest, least(states, some))
    return Schedule("binomial", slots, where(is_enough, least(longest(slots), some), int_node(1)))


# bytes --------------------------------------------------------------------------------------------------------------


def bytes_of(recurrences: Sequence[Recurrence], residuals: Sequence[Node], rows: Mapping[Node, Node]) -> tuple[Node, Node]:
    """The bytes of a stored state, and of what each step of a block stores.

    residuals: values of the step of which a block keeps a row per step. rows: inner inputs of the step, each with an outer value of its
    shape.
    """
    sizes = [mul(product(row_dims(one)), int_node(_itemsize(one.write))) for one in recurrences]
    states = [size if one.depth == 1 else mul(size, int_node(one.depth)) for one, size in zip(recurrences, sizes, strict=True)]
    sizes += [mul(_elements(value, rows), int_node(_itemsize(value))) for value in residuals]
    state, row = (greatest(total(terms) or int_node(0), int_node(1)) for terms in (states, sizes))
    return named(state, "state_bytes"), named(row, "row_bytes")


def _itemsize(node: Node) -> int:
    return int(np.dtype(node.type.dtype).itemsize)


def row_dims(one: Recurrence) -> tuple[Node, ...]:
    """The dimensions of one row of a state: fixed numbers where its step makes them so."""
    dims = dims_of(one.initial)[one.has_axis :]
    return tuple(dim if known is None else int_node(known) for known, dim in zip(one.write.type.shape, dims, strict=True))


def row_like(x: Node) -> Node:
    """Zeros of the shape of one row of `x`: only ever measured."""
    return broadcast_to(constant(0, x.type.dtype), dims_of(x)[1:])


def product(dims: Sequence[Node]) -> Node:
    """The product of dimensions."""
    return reduce(mul, map(as_int, dims)) if dims else int_node(1)


def _elements(node: Node, rows: Mapping[Node, Node]) -> Node:
    """The number of elements of a value of the step; where its dimensions take the value itself, that of its largest operand."""

    def dims(one: Node) -> list[Node]:
        return [dim for axis in range(one.type.rank) if (dim := _dim(one, axis, rows)) is not None]

    def behind(one: Node) -> tuple[Node, ...]:
        return () if len(dims(one)) == one.type.rank else one.inputs

    def count(one: Node, counts: list[Node]) -> Node:
        return reduce(greatest, counts) if counts else product(dims(one))

    return folded(node, behind, count)


def _dim(node: Node, axis: int, rows: Mapping[Node, Node]) -> Node | None:
    """A dimension of a value of the step as an outer node; None where only the value itself tells it."""
    while isinstance(node.op, Card) and isinstance(node.op.lower, Contract):
        labels = node.attr("labels")
        assert isinstance(labels, tuple)
        label = labels[2][axis]
        node, own = next((operand, own) for operand, own in zip(node.inputs, labels, strict=False) if label in own)
        axis = own.index(label)
    dim = dims_of(node)[axis]
    asked = [part.inputs[0] for part in toposort([dim], stop=rows) if part.op is DIM]
    return substitute([dim], rows)[0] if all(source in rows for source in asked) else None
