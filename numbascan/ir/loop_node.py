"""A loop as one node of the graph: `scan_node` makes it of a LoopSpec, `loop_spec` reads it back.

Nobody else knows in which order the node keeps its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .graph import Graph, close
from .node import LOOP, Node, make, owner_of
from .ports import Carry, LoopSpec
from .respecialise import MISFIT, respecialised


@dataclass(frozen=True, slots=True)
class Body:
    """What a Scan node keeps besides its inputs: the closed step and the shape of the ports. Hashable by content."""

    graph: Graph
    ports: LoopSpec = field(compare=False, hash=False)
    layout: tuple[object, ...]


class _ScanOp:
    """The Op of a loop. Its ports are read with `loop_spec(node)`."""

    name = LOOP

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return scan_node(respecialised(loop_spec(node), inputs))

    def __reduce__(self) -> str:
        return "SCAN"


SCAN = _ScanOp()


def scan_node(spec: LoopSpec) -> Node:
    """The interned node of a loop. The step must be closed over its ports."""
    graph = close(spec.inner_inputs(), spec.inner_outputs(), own_names=True)
    closed = spec.with_inner(graph.inputs, graph.outputs)
    layout = (
        tuple(seq.taps for seq in spec.seqs),
        tuple((mit_mot.in_taps, mit_mot.out_taps) for mit_mot in spec.mit_mots),
        tuple((state.taps, state.has_axis) for state in spec.states),
        len(spec.traces),
        len(spec.carries),
        len(spec.non_seqs),
        *(spec.until is not None, spec.name, spec.truncate_gradient, spec.notes),
    )
    body = Body(graph, closed, layout)
    return make(SCAN, spec.outer_inputs(), spec.output_types(), (("body", body),), spec.name)


def loop_spec(node: Node) -> LoopSpec:
    """The ports of a Scan node, outer and inner sides."""
    body = node.attr("body")
    assert isinstance(body, Body)
    return body.ports.with_outer(node.inputs)


def carry_of(node: Node) -> Carry | None:
    """The carry of a loop that has `node` as its last value; None for other nodes."""
    loop, index = owner_of(node)
    if loop.op is not SCAN:
        return None
    spec = loop_spec(loop)
    k = index - (len(loop.types) - len(spec.carries))  # carries are the last outputs
    return spec.carries[k] if k >= 0 else None


def is_misfit(node: Node) -> bool:
    """True for a loop whose step has lengths that do not fit: it can only run no step."""
    return node.op is SCAN and any(key == MISFIT for key, _ in loop_spec(node).notes)
