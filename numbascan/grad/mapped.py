"""One graph for many values of one of its inputs: a loop without recurrence."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import substitute, toposort
from ..ir.node import CONSTANT, ITEM, Node, new_input, outputs_of
from ..ir.ports import LoopSpec, NonSeq, Seq, Trace, row_of, scan_node
from ..ir.respecialise import settled
from ..ops.algebra import dims_of


def mapped(outputs: Sequence[Node], over: Node, values: Node) -> list[Node]:
    """For each row of `values` in place of `over`: the outputs, stacked. What does not depend on `over` is computed once, outside."""
    depending = {over}
    order = toposort(outputs)
    for node in order:
        if any(parent in depending for parent in node.inputs):
            depending.add(node)
    inside: dict[Node, Node] = {over: new_input(row_of(values.type), over.name)}
    non_seqs = []
    for node in dict.fromkeys(_boundary(order, depending, outputs)):
        inside[node] = new_input(node.type, node.name)
        non_seqs.append(NonSeq(node, inside[node]))
    writes = substitute(outputs, inside)
    spec = LoopSpec(
        n_steps=dims_of(values)[0],
        seqs=(Seq(values, (0,), (inside[over],)),),
        traces=tuple(map(Trace, writes)),
        non_seqs=tuple(non_seqs),
        name="rows",
    )
    return list(outputs_of(scan_node(settled(spec))))


def _boundary(order: Sequence[Node], depending: set[Node], outputs: Sequence[Node]) -> list[Node]:
    """The nodes from outside that the loop reads."""
    found = [output for output in outputs if output not in depending]
    for node in order:
        if node in depending and node.op is not ITEM:
            found += [parent for parent in node.inputs if parent not in depending]
    return [node for node in found if node.op is not CONSTANT or node.type.size != 1]
