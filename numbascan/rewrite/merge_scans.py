"""ScanMerge: fusion of loops that run equally many steps and are independent of each other, where it pays.

It pays where they have a recurrence in common, or lanes a loop: the value of a cost, its gradient and its tangent all run through the same
states. It also pays where steps work on a few numbers: while one recurrence waits for its result the other goes on, and rows read by both
are loaded once.

Arithmetic: none is made.

Not handled: loops that may end early, unless by the same condition; large states, which would drive each other out of the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from ..ir.graph import toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import Node
from ..ir.ports import LoopSpec, Trace
from .loop_distribution import recurrent
from .merge_inouts import merged_ports, start_of
from .replace_loops import Change, changed_repeatedly, loop_results

FEW, MOST = 8, 32  # most elements of one result of a step, which lives in locals; of all, which about fit the registers


def merge_scans(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with loops fused where it pays."""
    return changed_repeatedly(outputs, _first_change)


def _first_change(outputs: Sequence[Node]) -> Change | None:
    loops = [node for node in toposort(outputs) if node.op is SCAN]
    for a, b in combinations(loops, 2):
        specs = loop_spec(a), loop_spec(b)
        if _may_merge(*specs) and a not in toposort(b.inputs) and b not in toposort(a.inputs):
            replacements = _merged(a, b)
            if replacements is not None:
                return replacements, {}
    return None


def _may_merge(a: LoopSpec, b: LoopSpec) -> bool:
    """True if two loops have the same number of steps and the same notes, and share a start or are small.

    Not handled: loops with buffers of cotangents; one with `until` and one without.
    """
    if a.n_steps is not b.n_steps or (a.until is None) != (b.until is None) or a.notes != b.notes or a.mit_mots or b.mit_mots:
        return False
    return _share(a, b) or _are_small(a, b) or _read_one_sequence(a, b)


def _share(a: LoopSpec, b: LoopSpec) -> bool:
    """True if a recurrence of one loop starts equal to one of the other."""
    return not {start_of(port) for port in recurrent(a)}.isdisjoint({start_of(port) for port in recurrent(b)})


def _read_one_sequence(a: LoopSpec, b: LoopSpec) -> bool:
    """True if both are lanes with loops, and read a sequence in common: they may have such a loop in common."""
    are_lanes = not a.waits and not b.waits and _n_loops(a.inner_outputs()) > 0 and _n_loops(b.inner_outputs()) > 0
    return are_lanes and not {seq.outer for seq in a.seqs}.isdisjoint({seq.outer for seq in b.seqs})


def _n_loops(outputs: Sequence[Node]) -> int:
    """How many loops a graph has."""
    return sum(node.op is SCAN for node in toposort(outputs))


def _are_small(a: LoopSpec, b: LoopSpec) -> bool:
    """True if both work on a few numbers, and both have recurrences or they read a common sequence."""
    waits = bool(recurrent(a) and recurrent(b)) or not {seq.outer for seq in a.seqs}.isdisjoint({seq.outer for seq in b.seqs})
    sizes = [node.type.size or 0 for spec in (a, b) for node in spec.inner_outputs() if node.type.size is not None]
    are_known = len(sizes) == len(a.inner_outputs()) + len(b.inner_outputs())
    return waits and are_known and max(sizes) <= FEW and sum(sizes) <= MOST


def _merged(a: Node, b: Node) -> dict[Node, Sequence[Node]] | None:
    """The replacements of two loops' results; None where fusion does not pay, or where one may end before the other."""
    one, other = loop_spec(a).opened(), loop_spec(b).opened()
    both = replace(
        one,
        seqs=one.seqs + other.seqs,
        states=one.states + other.states,
        traces=(*one.traces, *other.traces, *(() if other.until is None else (Trace(other.until),))),
        carries=one.carries + other.carries,
        non_seqs=one.non_seqs + other.non_seqs,
        name=one.name if one.name == other.name else f"{one.name}_{other.name}",
    )
    less, places = merged_ports(both)
    if not both.waits:
        less = less.with_inner(less.inner_inputs(), merge_scans(less.inner_outputs()))
    is_less = _n_loops(less.inner_outputs()) < _n_loops(one.inner_outputs()) + _n_loops(other.inner_outputs())
    if len(recurrent(less)) == len(recurrent(both)) and not is_less and not _are_small(one, other):
        return None
    if less.until is not None and less.traces[places[len(both.states) + len(both.traces) - 1] - len(less.states)].write is not less.until:
        return None
    merged = loop_results(a, less)
    results = [merged[place] for place in places]
    states, traces, carried = results[: len(both.states)], results[len(both.states) :], results[len(results) - len(both.carries) :]
    return {
        a: [*states[: len(one.states)], *traces[: len(one.traces)], *carried[: len(one.carries)]],
        b: [*states[len(one.states) :], *traces[len(one.traces) :][: len(other.traces)], *carried[len(one.carries) :]],
    }
