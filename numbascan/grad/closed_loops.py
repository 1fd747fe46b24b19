"""Loops made from graphs: what a graph mentions from outside becomes an input of the loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..ir.graph import dependents, substitute, toposort
from ..ir.loop_node import scan_node
from ..ir.node import CONSTANT, ITEM, Node, new_input, outputs_of
from ..ir.ports import OF_ONE_CASE, LoopSpec, NonSeq, Seq, Trace, row_of
from ..ir.respecialise import settled
from ..ops.algebra import dims_of
from ..ops.card import FOLD_LIMIT


def closed_loop(spec: LoopSpec) -> Node:
    """The loop of a step that mentions nodes from outside: they become non-sequences. What does not depend on the step stays outside."""
    outputs = spec.inner_outputs()
    inside = {node: new_input(node.type, node.name) for node in _boundary(outputs, dependents(outputs, spec.inner_inputs()))}
    non_seqs = tuple(NonSeq(node, read) for node, read in inside.items())
    closed = replace(spec, non_seqs=(*spec.non_seqs, *non_seqs))
    return scan_node(settled(closed.with_inner(closed.inner_inputs(), substitute(outputs, inside))))


def map_rows(outputs: Sequence[Node], over: Node, values: Node) -> list[Node]:
    """The outputs for each row of `values` in place of `over`, stacked. What does not depend on `over` is computed once, outside."""
    row = new_input(row_of(values.type), over.name)
    writes = substitute(outputs, {over: row})
    spec = LoopSpec(
        n_steps=dims_of(values)[0],
        seqs=(Seq(values, (0,), (row,)),),
        traces=tuple(map(Trace, writes)),
        name="rows",
        notes=((OF_ONE_CASE, True),),
    )
    return list(outputs_of(closed_loop(spec)))


def _boundary(outputs: Sequence[Node], depending: Collection[Node]) -> list[Node]:
    """The outer nodes that the nodes of the step (`depending`) read. Small constants stay in the step, where rules see them."""
    read = [output for output in outputs if output not in depending]
    for node in toposort(outputs):
        if node in depending and node.op is not ITEM:
            read += [parent for parent in node.inputs if parent not in depending]
    return [node for node in dict.fromkeys(read) if node.op is not CONSTANT or (node.type.size or 0) > FOLD_LIMIT]
