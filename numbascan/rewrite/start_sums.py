"""A sum over the steps of an inner loop goes on where the sum of the loop around it stands, not from zeros that are added to it.

    # total + inner(zeros, …)        # inner(total, …), where each step of `inner` adds something

Gradients of nested loops in what both read are such sums. An inner step adds to one element of an array; to fill that with zeros, and to
add all of it, would take the time of as many steps as it has elements.

Arithmetic: the order of the additions.

Not handled: numbers, which cost nothing; loops around whose steps wait for nothing but such sums, since they may run as lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import toposort, users
from ..ir.loop_node import carry_of, loop_spec
from ..ir.node import Node, owner_of
from ..ops.algebra import call, is_zero, terms_of, total
from ..ops.dims import DIM
from ..ops.indexing import INC_SUBTENSOR
from .replace_loops import loop_results, with_loops, with_results


def start_sums(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with the sums of inner loops started so, in the steps of all loops that wait for more than sums."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    if not (spec.states or spec.mit_mots or any(not _only_adds(carry.write, carry.read) for carry in spec.carries)):
        return None
    writes = spec.inner_outputs()
    while (other := _with_one_started(writes)) is not None:
        writes = other
    return None if writes == spec.inner_outputs() else loop_results(loop, spec.with_inner(spec.inner_inputs(), writes))


def _with_one_started(writes: Sequence[Node]) -> tuple[Node, ...] | None:
    """The results of a step with one sum of an inner loop started where another sum stands; None where there is none."""
    readers = users(writes)
    for node in toposort(writes):
        if node.op.name != "accumulate" or not node.type.rank:
            continue
        before, added = node.inputs
        terms = terms_of(added)
        for term in terms:
            is_read_here = len(readers[term]) == 1 and term not in writes
            if not _is_sum_from_zeros(term) or not is_read_here or term.type != before.type or owner_of(term)[0] in toposort([before]):
                continue
            rest = total([one for one in terms if one is not term])
            results = _started(term, before)
            value = results[owner_of(term)[1]]
            return with_results(writes, {owner_of(term)[0]: results}, {node: value if rest is None else call("accumulate", value, rest)})
    return None


def _started(node: Node, before: Node) -> tuple[Node, ...]:
    """The results of the loop whose sum a node is, with that started from `before`."""
    loop, index = owner_of(node)
    spec = loop_spec(loop)
    k = index - len(loop.types)  # carries are the last results
    carries = list(spec.carries)
    carries[k] = replace(carries[k], shared=before)
    return loop_results(loop, replace(spec, carries=tuple(carries)))


def _is_sum_from_zeros(node: Node) -> bool:
    """True if a node is the sum over the steps of a loop, from zeros on."""
    port = carry_of(node)
    return port is not None and is_zero(port.shared) and _only_adds(port.write, port.read)


def _only_adds(write: Node, read: Node) -> bool:
    """True if a step adds to what it carries, and does nothing else with it."""
    while write is not read:
        port = carry_of(write)
        if port is not None:
            if not _only_adds(port.write, port.read):
                return False
            inputs = list(owner_of(write)[0].inputs)
            inputs.remove(port.shared)
            before, others = port.shared, inputs
        elif write.op.name == "accumulate" or write.op is INC_SUBTENSOR:
            before, *others = write.inputs
        else:
            return False
        if _reads(others, read):
            return False
        write = before
    return True


def _reads(nodes: Sequence[Node], array: Node) -> bool:
    """True if values depend on an array, and not on its lengths alone."""
    measured = [node for node in toposort(nodes) if node.op is DIM and node.inputs[0] is array]
    return array in toposort(nodes, stop=measured)
