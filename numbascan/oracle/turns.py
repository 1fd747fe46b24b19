"""How many steps a call runs again because of checkpoints, told without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.graph import Graph, rebuild_with, toposort
from ..ir.node import ITEM, Node
from ..ir.ports import SCAN, loop_spec
from ..ops.schedule import NUMBERS, TURNS, steps_again
from .interpret import interpret


def steps_run_again(graph: Graph, values: Sequence[Any]) -> int:
    """The forward steps beyond the first run of each loop; for a loop that may end early, as many as there are if it does not."""
    total = 0
    for node in toposort(graph.outputs):
        kind = dict(loop_spec(node).notes).get(TURNS) if node.op is SCAN else None
        if isinstance(kind, str):
            spec = loop_spec(node)
            asked = [spec.n_steps, *(port.outer for port in spec.non_seqs[: NUMBERS[kind]])]
            steps, *numbers = map(int, interpret(Graph(graph.inputs, rebuild_with(asked, _at_most)), values))
            total += steps_again(kind, steps // 2, *numbers) if numbers else steps
    return total


def _at_most(node: Node) -> Node | None:
    """For the number of steps that a loop ran: the most it may run."""
    if node.op.name != "dim" or node.attr("axis") != 0:
        return None
    source = node.inputs[0]
    loop = source.inputs[0] if source.op is ITEM else source
    return loop_spec(loop).n_steps if loop.op is SCAN else None
