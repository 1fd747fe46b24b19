"""The number of steps that a call runs again because of checkpoints, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.graph import Graph, rebuild_with, toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import Node, owner_of
from ..ops.checkpoint_schedule import NUMBERS, TURNS, steps_again
from .interpret import interpret


def steps_run_again(graph: Graph, values: Sequence[Any]) -> int:
    """The number of forward steps beyond the first run of each loop. A loop that may end early counts as if it did not.

    Not handled: loops within steps; steps of a gradient that its derivative runs again.
    """
    total = 0
    for node in toposort(graph.outputs):
        kind = dict(loop_spec(node).notes).get(TURNS) if node.op is SCAN else None
        if kind in NUMBERS:
            spec = loop_spec(node)
            outer = {port.read.name: port.outer for port in spec.non_seqs}
            names = NUMBERS[kind]
            if any(f"{TURNS}_{name}" not in outer for name in names):
                continue  # the derivative of such a loop
            asked = [spec.n_steps, *(outer[f"{TURNS}_{name}"] for name in names)]
            steps, *numbers = map(int, interpret(Graph(graph.inputs, rebuild_with(asked, _at_most)), values))
            total += steps_again(steps // 2, **dict(zip(names, numbers, strict=True))) if names else steps
    return total


def _at_most(node: Node) -> Node | None:
    """For the number of steps that a loop ran, the most that it may run; None for any other node."""
    if node.op.name != "dim" or node.attr("axis") != 0:
        return None
    source = node.inputs[0]
    loop = owner_of(source)[0]
    return loop_spec(loop).n_steps if loop.op is SCAN else None
