"""Every rewrite, in the order in which they are made. A name in `ns.Mode(without=[…])` leaves one out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..ir.graph import Graph
from ..ir.node import Node
from .merge_traces import merge_traces
from .sum_in_loop import sum_in_loop

PASSES: tuple[Callable[[Sequence[Node]], tuple[Node, ...]], ...] = (merge_traces, sum_in_loop)


def rewritten(graph: Graph, without: Collection[str] = ()) -> Graph:
    """An equal graph that costs less."""
    outputs = graph.outputs
    for rewrite in PASSES:
        outputs = outputs if rewrite.__name__ in without else rewrite(outputs)
    return Graph(graph.inputs, outputs)
