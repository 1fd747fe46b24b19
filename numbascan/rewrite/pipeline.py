"""Every rewrite, in the order in which they are made. A name in `ns.Mode(without=[…])` leaves one out."""

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
    push_out_dot,
    push_out_output,
    remove_unused,
)

REWRITES.update(dict.fromkeys(rewrite.__name__ for rewrite in PASSES))

MOVING = tuple(name for name in REWRITES if name != push_out_non_seq.__name__)
"""Those after which steps may have other results, or have them in other loops: `check_finite` reports those that were written."""


def rewritten(graph: Graph, without: Collection[str] = ()) -> Graph:
    """An equal graph that costs less."""
    return Graph(graph.inputs, _rewritten(graph.outputs, [rewrite for rewrite in PASSES if rewrite.__name__ not in without]))


def _rewritten(outputs: tuple[Node, ...], passes: Sequence[Pass]) -> tuple[Node, ...]:
    """`outputs` after all passes, the bodies of loops and choices first: what leaves an inner loop may leave the next one, too."""
    if any(_has_loops(body.outputs) for node in toposort(outputs) for body in bodies(node)):
        outputs = with_bodies(outputs, lambda inner: _rewritten(tuple(inner), passes))
    if _has_loops(outputs):
        for rewrite in passes:
            if any(map(is_misfit, toposort(outputs))):
                break  # a pass builds steps again, and this one cannot be built with the lengths that came to light
            outputs = rewrite(outputs)
    return outputs


def _has_loops(outputs: Sequence[Node]) -> bool:
    """Are there loops, or choices between loops?"""
    return any(node.op is SCAN or node.op is IF_ELSE for node in toposort(outputs))
