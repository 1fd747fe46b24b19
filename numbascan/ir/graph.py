"""Graphs: inputs and outputs over interned nodes, and the walks that every pass shares."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .node import ARG, CONSTANT, INPUT, Node, arg, named

Part = TypeVar("Part", bound=Hashable)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Graph:
    """Outputs as functions of inputs. Closed when every leaf is an input or a constant."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def toposort(outputs: Iterable[Node], stop: Iterable[Node] = ()) -> list[Node]:
    """All nodes that `outputs` need, inputs before users, not looking behind `stop`. No recursion: graphs are deep."""
    done: set[Node] = set()
    blocked = set(stop)
    order: list[Node] = []
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(list(outputs))]
    while stack:
        node, expanded = stack.pop()
        if node in done:
            continue
        if expanded:
            done.add(node)
            order.append(node)
            continue
        stack.append((node, True))
        if node not in blocked:
            stack.extend((parent, False) for parent in reversed(node.inputs) if parent not in done)
    return order


def folded(root: Part, behind: Callable[[Part], Iterable[Part]], value: Callable[[Part, list[Result]], Result]) -> Result:
    """`value(root, results)`, `results` being the same fold of each part directly `behind` it. No recursion; each part is visited once."""
    results: dict[Part, Result] = {}
    stack: list[tuple[Part, list[Part] | None]] = [(root, None)]
    while stack:
        part, parts = stack.pop()
        if part in results:
            continue
        if parts is None:
            parts = list(behind(part))
            stack.append((part, parts))
            stack.extend((one, None) for one in reversed(parts) if one not in results)
        else:
            results[part] = value(part, [results[one] for one in parts])
    return results[root]


def leaves(root: Node, is_inner: Callable[[Node], bool]) -> list[Node]:
    """The leaves of the tree of nodes for which `is_inner` holds, from left to right. An inner node that is met again is a leaf."""
    met: set[Node] = set()
    result: list[Node] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in met and is_inner(node):
            met.add(node)
            stack.extend(reversed(node.inputs))
        else:
            result.append(node)
    return result


def free_inputs(outputs: Iterable[Node], bound: Iterable[Node] = ()) -> list[Node]:
    """The INPUT leaves behind `outputs` that are not in `bound`, in the order they are met."""
    known = set(bound)
    return [node for node in toposort(outputs, stop=known) if node.op is INPUT and node not in known]


def substitute(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> tuple[Node, ...]:
    """`outputs` with nodes replaced and all that depends on them rebuilt, types included."""
    return rebuild_with(outputs, lambda node: replacements.get(node))


def rebuild_with(outputs: Sequence[Node], rule: Callable[[Node], Node | None], own_names: bool = False) -> tuple[Node, ...]:
    """`outputs` rebuilt bottom-up; where `rule` gives a node it stands in for the original and what is behind it.

    own_names: rebuilt nodes have the names of their originals alone, even where an equal node of another graph was named before.
    """
    fixed: dict[Node, Node] = {}
    stop = []
    for node in toposort(outputs):
        replacement = rule(node)
        if replacement is not None:
            fixed[node] = replacement
            stop.append(node)
    done = dict(fixed)
    renamed = set(done.values())
    for node in toposort(outputs, stop=stop):
        if node in done:
            continue
        inputs = tuple(done[parent] for parent in node.inputs)
        if inputs == node.inputs:
            done[node] = node
            continue
        built = node.op.rebuild(node, inputs)
        if own_names and built not in renamed and built.op is not CONSTANT:
            renamed.add(built)
            built.name = None
        named(built, node.name)
        if built.origin is None or (node.origin is not None and built.op is node.op and built.inputs == inputs):
            built.origin = node.origin  # also on an equal node from elsewhere: messages name the line that was traced last
        done[node] = built
    return tuple(done[node] for node in outputs)


def close(inputs: Sequence[Node], outputs: Sequence[Node], own_names: bool = False) -> Graph:
    """The graph with its inputs replaced by numbered arguments: equal computations on inputs of equal names become equal graphs.

    own_names: no name comes from another program that computes the same, so the code of a program is always the same.
    """
    args = tuple(arg(k, node.type, node.name) for k, node in enumerate(inputs))
    return Graph(args, rebuild_with(outputs, dict(zip(inputs, args, strict=True)).get, own_names))


def is_closed(graph: Graph) -> bool:
    """True if every leaf is an input of the graph or a constant."""
    known = set(graph.inputs)
    return all(node.op not in (INPUT, ARG) or node in known for node in toposort(graph.outputs, stop=known))


def dependents(outputs: Iterable[Node], sources: Iterable[Node]) -> set[Node]:
    """The nodes behind `outputs` that depend on one of `sources`, these included."""
    result = set(sources)
    for node in toposort(outputs) if result else ():
        if not result.isdisjoint(node.inputs):
            result.add(node)
    return result


def users(outputs: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node behind `outputs`, the nodes that read it (once per reading input)."""
    result: dict[Node, list[Node]] = {}
    for node in toposort(outputs):
        result.setdefault(node, [])
        for parent in node.inputs:
            result[parent].append(node)
    return result
