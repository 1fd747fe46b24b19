"""A digest of what a graph computes, the same in every process.

Names and lines of the user's code do not count. Nor does it count whether a value that needs nothing of the step is computed inside it, or
outside because its node existed before the step was traced. So a non_seq has the digest of its outer value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from types import CodeType

from .graph import Graph, toposort
from .inner_graphs import bodies
from .loop_node import SCAN, Body, loop_spec
from .node import Data, Node
from .show import read_by

NOTES = frozenset({"label", "texts", "rule"})  # attributes that say nothing about values: names, messages, rules for derivatives


def digest_of(graph: Graph) -> str:
    """The digest of a graph whose leaves are its inputs and constants.

    >>> from numbascan.ir.node import constant, new_input
    >>> from numbascan.types import TensorType
    >>> x, y = (new_input(TensorType("float64"), name) for name in "xy")
    >>> digest_of(Graph((x,), (x, constant(2.0)))) == digest_of(
    ...     Graph((y,), (y, constant(2.0)))
    ... )
    True
    """
    inputs = {node: _digest("input", k, node.type) for k, node in enumerate(graph.inputs)}
    return _digest(list(inputs.values()), _digests(graph.outputs, inputs))


def _digests(outputs: Sequence[Node], known: Mapping[Node, str]) -> list[str]:
    done = dict(known)
    for node in toposort(outputs, stop=known):
        if node not in done:
            done[node] = _of_loop(node, done) if node.op is SCAN else _of_node(node, done)
    return [done[node] for node in outputs]


def _of_node(node: Node, done: Mapping[Node, str]) -> str:
    graphs = bodies(node)
    inner = [_digests(body.outputs, {a: done[b] for a, b in zip(body.inputs, read_by(body, node), strict=True)}) for body in graphs]
    own = node.inputs[: len(node.inputs) - max((len(body.inputs) for body in graphs), default=0)]
    attrs = [f"{key}={_text(value)}" for key, value in node.attrs if key not in NOTES]
    return _digest(node.op.name, [type_.dtype for type_ in node.types], [done[parent] for parent in own], attrs, inner)


def _of_loop(node: Node, done: Mapping[Node, str]) -> str:
    spec, level = loop_spec(node), _level(bodies(node)[0])  # nested loops have different levels, wherever they stand
    known = {port.read: done[port.outer] for port in spec.non_seqs}
    reads = [(seq.outer, seq.taps, seq.reads) for seq in spec.seqs]
    reads += [(mit_mot.outer, mit_mot.in_taps, mit_mot.reads) for mit_mot in spec.mit_mots]
    reads += [(state.initial, state.taps, state.reads) for state in spec.states]
    reads += [(carry.shared, (-1,), (carry.read,)) for carry in spec.carries]
    for port, (_, taps, nodes) in enumerate(reads):
        known |= {read: _digest("read", level, port, tap, read.type) for tap, read in zip(taps, nodes, strict=True)}
    layout = [len(spec.seqs), [one.out_taps for one in spec.mit_mots], [one.has_axis for one in spec.states], len(spec.traces)]
    outside = [(done[outer], taps) for outer, taps, _ in reads]
    end = spec.until is not None, spec.truncate_gradient
    return _digest("loop", done[spec.n_steps], outside, layout, end, _digests(spec.inner_outputs(), known))


def _level(graph: Graph) -> int:
    """How deep loops are nested in a graph."""
    return max(((node.op is SCAN) + _level(body) for node in toposort(graph.outputs) for body in bodies(node)), default=0)


def _text(value: Hashable) -> str:
    """An attribute as text, without addresses: arrays by content, functions by qualified name and code. Graphs are digested elsewhere."""
    if isinstance(value, Data):
        return f"{value.array.dtype.str} {value.array.shape} {hashlib.sha256(value.array.tobytes()).hexdigest()}"
    if isinstance(value, (Graph, Body)):
        return ""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        constants = [one for one in code.co_consts if not isinstance(one, CodeType)]
        return f"{getattr(value, '__qualname__', '')} {code.co_code.hex()} {code.co_names} {constants}"
    return str(getattr(value, "__qualname__", repr(value)))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
