"""Loops of one recurrence become one loop: those that differ only in what they trace of it.

A gradient runs the forward loop with more traces than the cost does. Not handled: loops of different recurrences over one range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import toposort
from ..ir.node import Node, outputs_of
from ..ir.ports import SCAN, LoopSpec, Trace, loop_spec, scan_node
from .replace import with_results


def merge_traces(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such loops merged."""
    while True:
        group = _group(outputs)
        if group is None:
            return tuple(outputs)
        outputs = _replaced(outputs, group)


def _group(outputs: Sequence[Node]) -> list[Node] | None:
    """Several loops of one recurrence, None where there are none left."""
    found: dict[Node, list[Node]] = {}
    for node in toposort(outputs):
        if node.op is SCAN:
            spec = loop_spec(node)
            if spec.states or spec.carries:
                found.setdefault(scan_node(replace(spec, traces=())), []).append(node)
    return next((group for group in found.values() if len(group) > 1), None)


def _replaced(outputs: Sequence[Node], group: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with one loop, that traces everything, in the place of a group."""
    specs = [loop_spec(node) for node in group]
    traces = list(dict.fromkeys(trace.write for spec in specs for trace in spec.traces))
    whole = outputs_of(scan_node(replace(specs[0], traces=tuple(map(Trace, traces)))))
    stands: dict[Node, list[Node]] = {node: _results(spec, traces, whole) for node, spec in zip(group, specs, strict=True)}
    return with_results(outputs, stands, {})


def _results(spec: LoopSpec, traces: Sequence[Node], whole: Sequence[Node]) -> list[Node]:
    """The results of one loop among those of the loop that traces everything."""
    first = len(spec.mit_mots) + len(spec.states)
    own = [whole[first + traces.index(trace.write)] for trace in spec.traces]
    return [*whole[:first], *own, *whole[first + len(traces) :]]
