"""A step whose inner loops and choices read single rows of an array, as its derivative sees it.

    # for k in range(j): total += table[i, k] * table[j, k]        # i_row, j_row = table[i:i+1], table[j:j+1]
    #                                                              # for k in range(j): total += i_row[0, k] * j_row[0, k]

The backward step needs what these read, as it was before each step. That is a few rows then, not the whole table; and cotangents are added
to a few rows, also of an array that no step changes. A slice reads nothing that is not there: a loop without steps, or a branch that is
not taken, may name a row that is none.

Not handled: rows whose number the loop or the branch computes; arrays that it carries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.graph import close, substitute, toposort, users
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.node import CONSTANT, Node, constant, new_input, outputs_of
from ..ir.ports import LoopSpec, NonSeq
from ..ir.respecialise import settled
from ..ops.algebra import add, call, cast, dims_of, indexed, is_float, where
from ..ops.card import apply
from ..ops.control import IF_ELSE, branches, if_else_outputs
from ..ops.dims import DIM
from ..ops.index_entries import Spec
from ..ops.indexing import INDEX
from ..ops.runtime_attributes import HOLE

MOST_ROWS = 4  # that one loop or choice reads of an array


def reading_rows(spec: LoopSpec) -> LoopSpec:
    """The same loop, whose inner loops and choices are handed rows of its arrays, where they read nothing else of these."""
    reads = [read for state in spec.states for read in state.reads]
    reads += [*(carry.read for carry in spec.carries), *(port.read for port in spec.non_seqs)]
    tables = {read for read in reads if read.type.rank > 1 and is_float(read.type)}
    outputs = spec.inner_outputs()
    while tables and (change := _with_one_handed(outputs, tables)) is not None:
        outputs = substitute(outputs, change)
    return spec.with_inner(spec.inner_inputs(), outputs) if outputs != spec.inner_outputs() else spec


def _with_one_handed(outputs: Sequence[Node], tables: Collection[Node]) -> dict[Node, Node] | None:
    """The results of an inner loop or a choice, each with that of the one that is handed rows; None where there is none."""
    for node in toposort(outputs):
        results = _of_loop(node, tables) if node.op is SCAN else _of_choice(node, tables) if node.op is IF_ELSE else None
        if results is not None:
            return dict(zip(outputs_of(node), results, strict=True))
    return None


def _of_loop(node: Node, tables: Collection[Node]) -> Sequence[Node] | None:
    spec = loop_spec(node).opened()
    fixed = {port.read: port.outer for port in spec.non_seqs}
    for port in spec.non_seqs:
        handed = _handed(port.outer, [_Body(spec.inner_outputs(), port.read, fixed)]) if port.outer in tables else None
        if handed is not None:
            rows, ((reads, outputs),) = handed
            kept = [one for one in spec.non_seqs if one is not port]
            new = replace(spec, non_seqs=(*kept, *map(NonSeq, rows, reads)))
            return outputs_of(scan_node(settled(new.with_inner(new.inner_inputs(), tuple(outputs)))))
    return None


def _of_choice(node: Node, tables: Collection[Node]) -> Sequence[Node] | None:
    condition, *operands = node.inputs
    opened = [[new_input(one.type, one.name) for one in graph.inputs] for graph in branches(node)]
    for k, operand in enumerate(operands):
        if operand not in tables:
            continue
        sides = [
            substitute(graph.outputs, dict(zip(graph.inputs, inputs, strict=True)))
            for graph, inputs in zip(branches(node), opened, strict=True)
        ]
        bodies = [_Body(side, inputs[k], dict(zip(inputs, operands, strict=True))) for side, inputs in zip(sides, opened, strict=True)]
        handed = _handed(operand, bodies)
        if handed is not None:
            rows, sides_handed = handed
            graphs = [
                close((*inputs[:k], *inputs[k + 1 :], *reads), outputs)
                for inputs, (reads, outputs) in zip(opened, sides_handed, strict=True)
            ]
            return if_else_outputs(condition, (*operands[:k], *operands[k + 1 :], *rows), *graphs)
    return None


@dataclass
class _Body:
    """A step, or a branch. array: what stands for the array there. fixed: the values outside, by what stands for them."""

    outputs: Sequence[Node]
    array: Node
    fixed: Mapping[Node, Node]

    def reads(self) -> list[Node]:
        """The nodes that read the array."""
        return list(dict.fromkeys(users(self.outputs).get(self.array, ())))

    def reads_rows(self) -> bool:
        """True if only lengths of the array are read, and parts of rows whose number is known, or handed to the body."""
        return self.array not in self.outputs and all(node.op is DIM or self._is_of_row(node) for node in self.reads())

    def _is_of_row(self, node: Node) -> bool:
        if node.op is not INDEX or node.inputs[0] is not self.array or self.array in node.inputs[1:]:
            return False
        number = _number(node)
        return isinstance(number, int) or (number is not None and not number.type.rank and (number in self.fixed or number.op is CONSTANT))

    def key(self, node: Node) -> tuple[str, Node | int]:
        """What a node reads, in terms of the values outside."""
        if node.op is DIM:
            return "length", node.number("axis")
        number = _number(node)
        assert number is not None
        return "row", self.fixed.get(number, number) if isinstance(number, Node) else number


def _number(node: Node) -> Node | int | None:
    """The number of the row that an index reads a part of; None where it reads several rows."""
    entries = node.attr("spec")
    assert isinstance(entries, tuple)
    first = entries[0] if entries else None
    return node.inputs[1] if first == HOLE else first if isinstance(first, int) else None


Handed = tuple[list[Node], list[tuple[list[Node], Sequence[Node]]]]  # values; of each body what stands for them, and its results


def _handed(array: Node, bodies: Sequence[_Body]) -> Handed | None:
    """The rows and lengths of an array that some bodies read, and these with rows in the place of the array; None where they read more."""
    if not all(body.reads_rows() for body in bodies):
        return None
    keys = dict.fromkeys(body.key(node) for body in bodies for node in body.reads())
    if not 0 < sum(kind == "row" for kind, _ in keys) <= MOST_ROWS:
        return None
    values = [dims_of(array)[what] if kind == "length" and isinstance(what, int) else _row(array, what) for kind, what in keys]
    handed: list[tuple[list[Node], Sequence[Node]]] = []
    for body in bodies:
        stands_for = {key: new_input(value.type, value.name) for key, value in zip(keys, values, strict=True)}
        others = {node: _read(node, stands_for[body.key(node)]) for node in body.reads()}
        handed.append((list(stands_for.values()), substitute(body.outputs, others)))
    return values, handed


def _read(node: Node, handed: Node) -> Node:
    """What a node reads of an array, from a row of that."""
    if node.op is DIM:
        return handed
    entries = node.attr("spec")
    assert isinstance(entries, tuple)
    spec: Spec = (0, *entries[1:])
    return apply(INDEX, handed, *node.inputs[2 if entries[0] == HOLE else 1 :], spec=spec)


def _row(array: Node, number: Node | int) -> Node:
    """One row of an array, as an array of one row; of none where there is no such row."""
    place = cast(number, "int64") if isinstance(number, Node) else constant(number, "int64")
    first = where(call("less", place, 0), add(place, dims_of(array)[0]), place)
    return indexed(array, ((first, add(first, constant(1, "int64")), None),))
