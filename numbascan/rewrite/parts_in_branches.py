"""Replacing a part moves into the branches of the lazy choice that alone reads it, and an array that a choice of several results updates
gets a choice of its own.

    # before: y = set_subtensor(x[i], u); ifelse(a, y, ifelse(b, y, x))    # after: ifelse(a, set_subtensor(x[i], u), ifelse(b, …, x))
    # before: ifelse(c, (set_subtensor(x[i], u), 1), (x, 0))               # after: ifelse(c, set_subtensor(x[i], u), x), ifelse(c, 1, 0)

A state can then be updated in its own row by the branch that is taken, at the cost of what is written. A place that does not exist is an
error where the part is replaced.

Arithmetic: none but elementwise work on numbers that two choices share, which each then does.

Not handled:
- arrays of few numbers, unless a place is computed
- parts that something else reads
- results that share more than such cheap work
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set

from ..ir.graph import Graph, close, dependents, substitute, toposort, users
from ..ir.inner_graphs import all_nodes
from ..ir.loop_node import loop_spec
from ..ir.node import ARG, INPUT, ITEM, Node, named, outputs_of, owner_of
from ..ops.card import Card
from ..ops.control import IF_ELSE, branches, if_else
from ..ops.indexing import INC_SUBTENSOR, SET_SUBTENSOR
from ..ops.lowering import Elementwise, Generate, View
from .loop_distribution import reads_of, recurrent
from .read_parts import reads_of_parts
from .replace_loops import is_in_memory, loop_results, with_loops, with_results

PARTS = (SET_SUBTENSOR, INC_SUBTENSOR)
Change = Callable[[Sequence[Node]], tuple[Node, ...]]


def parts_in_branches(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with parts replaced in branches and arrays chosen by themselves, in the steps of loops."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    writes = spec.inner_outputs()
    if not any(node.op is IF_ELSE for node in toposort(writes)):
        return None
    changing = [read for port in recurrent(spec) for read in reads_of(port)]
    made: Results = lambda node, outputs: _with_parts(node, _parts_for(node, outputs, dependents(outputs, changing)))  # noqa: E731 - short
    try:
        new = _apart(_with_choices(writes, made))
    except ValueError:  # lengths known by now do not fit in a branch: an error at run time, if that branch is taken
        return None
    return None if new == writes else loop_results(loop, spec.with_inner(spec.inner_inputs(), new))


Results = Callable[[Node, Sequence[Node]], tuple[Node, ...]]  # (a choice, the outputs that it is behind) to replacements of its results


def _with_choices(outputs: Sequence[Node], made: Results) -> tuple[Node, ...]:
    """`outputs` with each choice behind them replaced by what `made` gives for it, the last one first."""
    plain = tuple(outputs)
    done: set[Node] = set()
    while True:
        node = next((one for one in reversed(toposort(plain)) if one.op is IF_ELSE and one not in done), None)
        if node is None:
            return plain
        results = made(node, plain)
        done.update(owner_of(one)[0] for one in results)
        if results != outputs_of(node):
            plain = with_results(plain, {node: results}, {})


def _chosen(node: Node, operands: Sequence[Node], sides: Sequence[Sequence[Node]], inner: Change) -> tuple[Node, ...]:
    """`node`'s choice between the values in `sides`, which depend on `operands`, and on lengths of what these are made of. `inner`
    rewrites its branches."""
    read = dict.fromkeys(toposort([*sides[0], *sides[1]], stop=operands))
    measured = [one for one in read if one.op in (ARG, INPUT) and one not in operands]
    used = [one for one in (*operands, *measured) if one in read]
    then, otherwise = (close(used, side) for side in sides)
    one = if_else(node.inputs[0], used, Graph(then.inputs, inner(then.outputs)), Graph(otherwise.inputs, inner(otherwise.outputs)))
    named(one, node.name).origin = one.origin or node.origin
    return outputs_of(one)


# parts that are replaced in branches ---------------------------------------------------------------------------------


def _inside(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with parts replaced in the branches of the choices that alone read them, nested choices included."""
    return _with_choices(outputs, lambda node, outputs: _with_parts(node, _parts_for(node, outputs)))


def _with_parts(node: Node, parts: Collection[Node]) -> tuple[Node, ...]:
    """The results of a choice with `parts` moved into its branches."""
    operands = list(dict.fromkeys(one for part in (*node.inputs[1:], *parts) for one in (part.inputs if part in parts else (part,))))
    operands = [one for one in operands if one not in parts]
    sides = [substitute(graph.outputs, dict(zip(graph.inputs, node.inputs[1:], strict=True))) for graph in branches(node)]
    return _chosen(node, operands, sides, _inside)


def _parts_for(node: Node, outputs: Sequence[Node], changing: Set[Node] | None = None) -> dict[Node, None]:
    """The replaced parts that only the choice reads, or one another on the way to it. `changing`: values that change from step to step."""
    readers = users(outputs)
    found: dict[Node, None] = {}
    stack = list(node.inputs[:0:-1])
    while stack:
        part = stack.pop()
        is_part = part.op in PARTS and is_in_memory(part) and (changing is None or part.inputs[0] in changing)
        if is_part and part not in outputs and {node, *found}.issuperset(readers[part]):
            found[part] = None
            stack.append(part.inputs[0])
    return {part: None for part in found if _base(part, found) in node.inputs}  # else no side has the array as it was before


def _base(part: Node, parts: Collection[Node]) -> Node:
    """The array in which parts were replaced."""
    while part in parts:
        part = part.inputs[0]
    return part


# arrays that a choice updates ----------------------------------------------------------------------------------------


def _apart(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with updated arrays chosen by themselves, in the branches of choices first."""
    return _with_choices(outputs, lambda node, _: _one_by_one(node))


def _one_by_one(node: Node) -> tuple[Node, ...]:
    operands = node.inputs[1:]
    graphs = [Graph(graph.inputs, _read_before(_apart(graph.outputs))) for graph in branches(node)]
    plainer = if_else(node.inputs[0], operands, *graphs)
    alone = _updates(plainer) if len(node.types) > 1 else []
    groups = [[k for k in range(len(node.types)) if k not in alone], *([k] for k in alone)]
    sides = [substitute(graph.outputs, dict(zip(graph.inputs, operands, strict=True))) for graph in branches(plainer)]
    results: dict[int, Node] = {}
    for places in filter(None, groups):
        results |= dict(zip(places, _chosen(node, operands, [[side[k] for k in places] for side in sides], tuple), strict=True))
    return tuple(results[k] for k in range(len(node.types)))


def _read_before(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` that read the old arrays where they read new ones among them, as far as `reads_of_parts` can."""
    return reads_of_parts(outputs, outputs)


def _updates(node: Node) -> list[int]:
    """The numbers of the results that are an operand with parts replaced, on one side or both, and cheap to choose by themselves."""
    found = []
    for k, type_ in enumerate(node.types):
        roots = {_root(graph.outputs[k], graph.inputs) for graph in branches(node)}
        is_array = bool(type_.rank) and None not in roots and len(roots) == 1
        if is_array and any(graph.outputs[k] not in graph.inputs for graph in branches(node)) and _is_apart(node, k):
            found.append(k)
    return found


def _root(array: Node, inputs: Sequence[Node]) -> int | None:
    """The number of the argument that an array is, or was before parts were replaced; None where that is not one argument."""
    while array not in inputs:
        if array.op in PARTS and is_in_memory(array):
            array = array.inputs[0]
            continue
        choice, k = owner_of(array)
        if choice.op is not IF_ELSE:
            return None
        roots = {_root(graph.outputs[k], graph.inputs) for graph in branches(choice)}
        (root,) = roots if len(roots) == 1 else (None,)
        if root is None:
            return None
        array = choice.inputs[1 + root]
    return inputs.index(array)


def _is_apart(node: Node, k: int) -> bool:
    """True if all that a result shares with the others is cheap."""
    for graph in branches(node):
        others = set(toposort([output for place, output in enumerate(graph.outputs) if place != k]))
        shared = [one for one in toposort([graph.outputs[k]]) if one in others]
        if not all(map(_is_cheap, all_nodes(shared))):
            return False
    return True


def _is_cheap(node: Node) -> bool:
    kind = node.op.lower if isinstance(node.op, Card) else None
    is_number = isinstance(kind, Elementwise) and not node.type.rank
    return not node.inputs or is_number or isinstance(kind, View | Generate) or node.op in (IF_ELSE, ITEM)
