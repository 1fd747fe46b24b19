"""Residuals: values of the forward step that are kept in traces, so that the backward step does not recompute them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..ir.graph import toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import CONSTANT, INPUT, Node, owner_of
from ..ops.card import Card
from ..ops.contract import multiplications
from ..ops.dims import DIM
from ..ops.indexing import GATHER, INDEX
from ..ops.lowering import Contract, Elementwise, Library
from .row_shapes import FEW, as_row, entries_of, has_one_shape, width_of

MOST_RECOMPUTED = 64  # multiplications of a contraction that is recomputed: storing and loading its result costs as much


def residuals(
    backward: Sequence[Node], forward: Sequence[Node], inputs: Collection[Node], stored: Collection[Node], fixed: Collection[Node]
) -> list[Node]:
    """The contractions and factorisations of the forward step that the backward step reads, but for what is `stored` anyway.

    Where it reads several of them for one elementwise value alone, such as their sum, that value is kept in their place.

    inputs: of the step; fixed: those of them that do not change.
    """
    known = toposort(forward, stop=inputs)
    heavy = {node for node in known if _is_heavy(node) and has_one_shape(node, fixed)} - set(stored)
    values = [node for node in toposort(backward, stop={*heavy, *stored}) if node in heavy]
    while (join := _join(backward, values, stored, set(known))) is not None:
        value, parts = join
        values = [*(node for node in values if node not in parts), value]
    return values


def rows_of_loops(backward: Sequence[Node], inputs: Collection[Node], which: Callable[[Node], bool]) -> list[Node]:
    """The results of loops in the forward step that the backward step reads: they need not run again. `inputs`: of the forward step.

    which: whether a result is kept; it must have one shape at all steps.
    """
    forward: set[Node] = set(inputs)
    for node in toposort(backward):
        if node.inputs and forward.issuperset(parent for parent in node.inputs if parent.op is not CONSTANT):
            forward.add(node)
    results = {node for node in forward if _is_of_loop(node) and which(node)}
    return [node for node in toposort(backward, stop=results) if node in results]


def _is_of_loop(node: Node) -> bool:
    return len(node.types) == 1 and owner_of(node)[0].op is SCAN


def is_less_than_its_table(rows: Node, fixed: Collection[Node]) -> bool:
    """True if rows of a loop in the step are of lower rank than an array that the loop starts from, and that changes from step to step.

    To run the loop again would take that array as it was before each step: for a loop that fills one row of a table, the whole table.
    """
    spec = loop_spec(owner_of(rows)[0])
    starts = [*(state.initial for state in spec.states if not state.has_axis), *(carry.shared for carry in spec.carries)]
    tables = [start for start in starts if start.type.rank > rows.type.rank]
    changes = any(one.op is INPUT and one not in fixed for one in toposort(tables))
    return changes and has_one_shape(rows, fixed)


def parts_of_rows(
    backward: Sequence[Node], forward: Sequence[Node], reads: Collection[Node], stop: Collection[Node], fixed: Collection[Node]
) -> list[Node]:
    """The parts of state rows that the backward step reads, where it reads only parts and lengths: no whole rows need be kept then.

    Lengths are no parts here: no step changes them.

    backward: what it computes, down to `stop`, which is kept. reads: what stands for the rows in the forward step, `forward`.
    fixed: the inputs of the step that do not change.
    """
    readers: dict[Node, set[Node]] = {read: set() for read in reads}
    for node in toposort(backward, stop=stop):
        for parent in node.inputs if node not in stop else ():
            if parent in readers:
                readers[parent].add(node)
    known = set(toposort(forward, stop=reads))
    parts = {
        node
        for read, nodes in readers.items()
        if read not in backward and all(node.op is DIM or (node in known and _is_place(node, read, fixed)) for node in nodes)
        for node in nodes
        if node.op is not DIM
    }
    return [node for node in toposort(backward, stop=stop) if node in parts]


def _is_place(node: Node, row: Node, fixed: Collection[Node]) -> bool:
    """True for a part of `row` that a trace can keep: of fewer axes, at an array of positions, or in a short slice of a long row."""
    if node.op not in (INDEX, GATHER) or node.inputs[0] is not row or row in node.inputs[1:] or as_row(node, fixed) is None:
        return False
    if node.op is GATHER or node.type.rank < row.type.rank:
        return True
    is_long = row.type.size is None or row.type.size > 4 * FEW
    return is_long and any(width_of(entry) is not None for entry in entries_of(node))


def _join(
    backward: Sequence[Node], values: Sequence[Node], stored: Collection[Node], known: Collection[Node]
) -> tuple[Node, list[Node]] | None:
    """A value of the forward step, and the several `values` that the backward step reads for it alone; None where there is none."""
    readers: dict[Node, set[Node]] = {node: {node} if node in backward else set() for node in values}
    for node in toposort(backward, stop={*values, *stored}):
        for parent in node.inputs if node not in readers else ():
            if parent in readers:
                readers[parent].add(node)
    parts: dict[Node, list[Node]] = {}
    for node, nodes in readers.items():
        if len(nodes) == 1:
            parts.setdefault(next(iter(nodes)), []).append(node)
    fitting = (pair for pair in parts.items() if len(pair[1]) > 1 and pair[0] in known and _is_as_large(*pair))
    return next(fitting, None)


def _is_as_large(value: Node, parts: Sequence[Node]) -> bool:
    """True if a value is elementwise and has the type of each of its parts."""
    return isinstance(value.op, Card) and isinstance(value.op.lower, Elementwise) and all(value.type == part.type for part in parts)


def _is_heavy(node: Node) -> bool:
    if len(node.types) > 1:
        return False
    source = owner_of(node)[0]
    if not isinstance(source.op, Card):
        return False
    if isinstance(source.op.lower, Library):
        return True
    return isinstance(source.op.lower, Contract) and not multiplications(source) <= MOST_RECOMPUTED  # NaN (0 rows times open ones): heavy
