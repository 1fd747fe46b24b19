"""Loops replaced by other loops: the beginning and end of every rewrite of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..ir.graph import toposort
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.node import ITEM, Node, named, outputs_of
from ..ir.ports import LoopSpec
from ..ir.respecialise import settled
from ..ops.card import PLACE
from ..ops.indexing import is_replaced_at_run_time
from ..ops.last_state import LAST_STATE

SMALL = 8  # elements up to which an array may live in locals on every target
Change = tuple[dict[Node, Sequence[Node]], dict[Node, Node]]  # replacements of the results of loops, and of nodes that read them


@contextmanager
def placed(node: Node) -> Iterator[None]:
    """Nodes made inside belong to the user's line of `node`."""
    outer, PLACE.origin = PLACE.origin, node.origin
    try:
        yield
    finally:
        PLACE.origin = outer


def loop_results(loop: Node, spec: LoopSpec) -> tuple[Node, ...]:
    """The results of the loop `spec`, which replaces `loop`."""
    node = scan_node(settled(spec))
    node.origin = node.origin or loop.origin
    return outputs_of(node)


def with_step(loop: Node, change: Callable[[Node, Mapping[Node, Node]], Node | None]) -> tuple[Node, ...]:
    """The results of a loop with nodes of its step replaced: `change(node, done)` gives a replacement or None. See `with_nodes`."""
    spec = loop_spec(loop)
    return loop_results(loop, spec.with_inner(spec.inner_inputs(), with_nodes(spec.inner_outputs(), change)))


def with_nodes(outputs: Sequence[Node], change: Callable[[Node, Mapping[Node, Node]], Node | None]) -> tuple[Node, ...]:
    """`outputs` with nodes replaced: `change(node, done)` gives a replacement or None. `done` maps earlier nodes, and this one, to new."""
    done: dict[Node, Node] = {}
    for node in toposort(outputs):
        inputs = tuple(done[parent] for parent in node.inputs)
        done[node] = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        done[node] = named(change(node, done) or done[node], node.name)
    return tuple(done[output] for output in outputs)


def is_in_memory(array: Node) -> bool:
    """True if an array has more elements than may live in locals, or parts of it are replaced at places known at run time only."""
    return array.type.size is None or array.type.size > SMALL or is_replaced_at_run_time(array)


def with_loops(outputs: Sequence[Node], change: Callable[[Node], Sequence[Node] | None]) -> tuple[Node, ...]:
    """`outputs` with the results of each loop replaced by those that `change` gives for it; None keeps them."""
    done: dict[Node, Node] = {}
    results: dict[Node, Sequence[Node]] = {}
    for node in toposort(outputs):
        if node.op is ITEM and node.inputs[0] in results:
            done[node] = _result(results[node.inputs[0]], node)
            continue
        inputs = tuple(done[parent] for parent in node.inputs)
        built = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        built.name, built.origin = built.name or node.name, built.origin or node.origin
        done[node] = built
        replacements = change(built) if built.op is SCAN else None
        if replacements is not None:
            results[node] = replacements
            if len(node.types) == 1:
                done[node] = replacements[0]
    return tuple(done[output] for output in outputs)


def with_results(outputs: Sequence[Node], results: Mapping[Node, Sequence[Node]], others: Mapping[Node, Node]) -> tuple[Node, ...]:
    """`outputs` with the results of loops, and some other nodes, replaced. `results`: for a loop, the replacement of each result."""
    done: dict[Node, Node] = dict(others)
    for node in toposort(outputs, stop=others):
        if node in done:
            continue
        if node in results:
            if len(node.types) == 1:
                done[node] = results[node][0]
            continue
        if node.op is ITEM and node.inputs[0] in results:
            done[node] = _result(results[node.inputs[0]], node)
            continue
        inputs = tuple(done[parent] for parent in node.inputs)
        done[node] = node if inputs == node.inputs else node.op.rebuild(node, inputs)
    return tuple(done[output] for output in outputs)


def changed_repeatedly(outputs: Sequence[Node], change: Callable[[tuple[Node, ...]], Change | None]) -> tuple[Node, ...]:
    """`outputs` after one change after another, until `change` gives None."""
    plain = tuple(outputs)
    while (replacements := change(plain)) is not None:
        plain = with_results(plain, *replacements)
    return plain


def reads_few_rows(reader: Node) -> bool:
    """True if a node reads only the last rows or every k-th one: `x[-1, …]`, `x[-k:, …]`, `x[s::k, …]`, the last state."""
    if reader.op is LAST_STATE:
        return True
    spec = reader.attr("spec") if reader.op.name == "index" and len(reader.inputs) == 1 else None
    first = spec[0] if isinstance(spec, tuple) and spec else None
    if not isinstance(first, tuple):
        return first == -1
    start, stop, step = first
    is_end = isinstance(start, int) and start < 0 and step in (None, 1)
    return stop is None and (is_end or (isinstance(step, int) and step > 1))


def _result(results: Sequence[Node], item: Node) -> Node:
    """The replacement of the result that `item` selects, under its name."""
    return named(results[item.number("index")], item.name)
