"""A step that reads what it has just written into an array, as its derivative sees it.

    # m = set_subtensor(x, v, t), index(m, t)        # is v, where t is a place in x

The backward step would otherwise make the whole array again, and keep every row of it for that: its time and memory would grow with the
square of the number of steps.

Not handled: a place other than the one that was written last; slices and arrays of positions, where they were written.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import substitute, toposort
from ..ir.node import Node, constant
from ..ir.ports import LoopSpec
from ..ops.algebra import add, call, cast, dims_of
from ..ops.card import apply
from ..ops.index_entries import Spec
from ..ops.indexing import INC_SUBTENSOR, INDEX, SET_SUBTENSOR
from ..ops.raising import RAISING
from ..ops.runtime_attributes import HOLE


def reading_values(spec: LoopSpec) -> LoopSpec:
    """The same loop, whose step reads the values in place of what was written. It writes the arrays, and checks the places, as before."""
    outputs = spec.inner_outputs()
    written = {node for node in toposort(outputs) if node.op in (SET_SUBTENSOR, INC_SUBTENSOR)} & _behind_states(spec)
    while values := {node: value for node in toposort(outputs) if (value := _value(node)) is not None and node.inputs[0] in written}:
        outputs = substitute(outputs, values)
    return spec.with_inner(spec.inner_inputs(), outputs) if outputs != spec.inner_outputs() else spec


def _behind_states(spec: LoopSpec) -> set[Node]:
    """The arrays that the step hands on, and those that they were made of by writing: all of them are made in any case."""
    found, waiting = set[Node](), [*(state.write for state in spec.states), *(carry.write for carry in spec.carries)]
    while waiting:
        array = waiting.pop()
        if array not in found and array.op in (SET_SUBTENSOR, INC_SUBTENSOR):
            found.add(array)
            waiting.append(array.inputs[0])
    return found


def _value(node: Node) -> Node | None:
    """What was written at the place that `node` reads, or a part of it; None where it reads something else."""
    if node.op is not INDEX or node.inputs[0].op not in (SET_SUBTENSOR, INC_SUBTENSOR):
        return None
    (array, *here), (before, value, *there) = node.inputs, node.inputs[0].inputs
    read, written = _entries(node), _entries(array)
    rest, holes = read[len(written) :], here[len(there) :]
    is_place = all(entry == HOLE or isinstance(entry, int) for entry in written) and not any(hole.type.rank for hole in there)
    if not is_place or read[: len(written)] != written or here[: len(there)] != there or value.type.rank != array.type.rank - len(written):
        return None
    new = cast(value, array.type.dtype)
    new = add(apply(INDEX, before, *there, spec=written), new) if array.op is INC_SUBTENSOR else _checked(new, array, there)
    new = apply(INDEX, new, *holes, spec=rest) if rest else new
    return new if new.type == node.type else None


def _checked(value: Node, array: Node, there: Sequence[Node]) -> Node:
    """A value that was written at a place: an error where that is none."""
    holes = iter(there)
    for entry, length, fixed in zip(_entries(array), dims_of(array), array.type.shape, strict=False):
        if entry == HOLE or fixed is None:
            place = cast(next(holes), "int64") if entry == HOLE else constant(entry, "int64")
            is_there = call("logical_and", call("less", place, length), call("greater_equal", add(place, length), 0))
            value = apply(RAISING, value, is_there, error="IndexError", message="x[…] = y: the index is out of bounds")
    return value


def _entries(node: Node) -> Spec:
    """What stands between the brackets; a number that is computed is a hole."""
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    return spec
