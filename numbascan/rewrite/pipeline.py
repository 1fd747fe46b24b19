"""Every rewrite, in order. A name in `ns.Mode(without=[…])` leaves one out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..ir.graph import Graph, toposort
from ..ir.inner_graphs import bodies
from ..ir.loop_node import SCAN, is_misfit
from ..ir.node import Node
from ..modes import REWRITES
from ..ops.control import IF_ELSE, with_bodies
from .choose_parts import choose_parts
from .factor_once import factor_once
from .lane_blocks import lane_blocks
from .merge_inouts import merge_inouts
from .merge_scans import merge_scans
from .one_step import one_step
from .parts_in_branches import parts_in_branches
from .push_out_checks import push_out_checks
from .push_out_dot import push_out_dot
from .push_out_non_seq import push_out_non_seq
from .push_out_output import push_out_output
from .push_out_seq import push_out_seq
from .read_parts import read_parts
from .remove_unused import remove_unused
from .start_sums import start_sums
from .sum_in_loop import sum_in_loop

Pass = Callable[[Sequence[Node]], tuple[Node, ...]]

PASSES: tuple[Pass, ...] = (
    one_step,
    merge_scans,
    push_out_checks,
    merge_inouts,
    remove_unused,
    parts_in_branches,
    choose_parts,
    read_parts,
    factor_once,
    push_out_non_seq,
    push_out_seq,
    sum_in_loop,
    start_sums,
    push_out_dot,
    push_out_output,
    remove_unused,
)

REWRITES.update(dict.fromkeys([lane_blocks.__name__, *(rewrite.__name__ for rewrite in PASSES)]))  # lanes go into blocks as they are traced

MOVING = tuple(name for name in REWRITES if name != push_out_non_seq.__name__)
"""The rewrites that may change the results of steps, or their loops. `check_finite` goes without: it reports results as written."""


def rewritten(graph: Graph, without: Collection[str] = ()) -> Graph:
    """An equal graph that costs less."""
    return Graph(graph.inputs, _rewritten(graph.outputs, [rewrite for rewrite in PASSES if rewrite.__name__ not in without]))


def _rewritten(outputs: tuple[Node, ...], passes: Sequence[Pass]) -> tuple[Node, ...]:
    """`outputs` after all passes, inner graphs first: what leaves an inner loop may leave the loop around it, too."""
    if any(_has_loops(body.outputs) for node in toposort(outputs) for body in bodies(node)):
        outputs = with_bodies(outputs, lambda inner: _rewritten(tuple(inner), passes))
    if _has_loops(outputs):
        for rewrite in passes:
            if any(map(is_misfit, toposort(outputs))):
                break  # a pass rebuilds steps, and this one cannot be rebuilt: lengths that are known by now do not fit
            outputs = rewrite(outputs)
    return outputs


def _has_loops(outputs: Sequence[Node]) -> bool:
    """True if there are loops or choices."""
    return any(node.op is SCAN or node.op is IF_ELSE for node in toposort(outputs))
