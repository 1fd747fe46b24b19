"""Reverse mode: the cotangents of nodes from those of results, as nodes of the same graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..ir.graph import substitute, toposort
from ..ir.inner_graphs import all_nodes, bodies
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import ITEM, Node, new_input
from ..ir.ports import LoopSpec
from ..ops.algebra import incremented, is_float, zeros_like
from ..ops.card import Card
from ..ops.control import CUSTOM_VJP, IF_ELSE, PY_CALL, branches, graph_of, rule_of
from ..ops.gradient_identities import DISCONNECTED, ZERO_GRAD
from ..ops.last_state import LAST_STATE, is_own_state
from ..ops.random import REJECTED
from .masks import Cotangent, accumulated, scalar_mask
from .mit_mots import without_mit_mots
from .rules import no_derivative, pulled

Terms = dict[Node, list[Cotangent]]


def cotangents(outputs: Sequence[Node], seeds: Sequence[Node], wrt: Sequence[Node], constants: Collection[Node] = ()) -> list[Node | None]:
    """The cotangent of each node in `wrt`, from `seeds`, the cotangents of `outputs`. None: no path leads there.

    `constants` lets nothing through. Integers and booleans carry nothing. Raises NullGradientError where a path leads through an op
    that has no derivative.
    """
    return values_of(pulled_back(outputs, [Cotangent(seed) for seed in seeds], wrt, constants))


def values_of(found: Sequence[Cotangent | None]) -> list[Node | None]:
    """The nodes of cotangents, masks applied."""
    return [None if one is None else one.realised() for one in found]


def pulled_back(
    outputs: Sequence[Node], seeds: Sequence[Cotangent], wrt: Sequence[Node], constants: Collection[Node] = ()
) -> list[Cotangent | None]:
    """The same of seeds that may have masks or hide; the results have their masks applied."""
    outputs = without_mit_mots(outputs, keep={*wrt, *constants})
    order = toposort(outputs, stop=constants)
    active = reaching(order, wrt, constants)
    terms: Terms = {}
    for output, value in zip(outputs, seeds, strict=True):
        if output in active:
            terms.setdefault(output, []).append(value)
    done: dict[Node, Cotangent] = {}
    sources = set(wrt)
    several: dict[Node, dict[int, Cotangent]] = {}
    for node in reversed(order):
        if node not in active:
            continue
        if len(node.types) > 1:
            above = several.pop(node, None)
            if above is not None:
                _pull(node, [above.get(k) for k in range(len(node.types))], active, terms)
            continue
        if node not in terms:
            continue
        cotangent = accumulated(terms.pop(node))
        if node in sources:
            done[node] = cotangent.applied()
        if node.op is ITEM:
            index = node.number("index")
            several.setdefault(node.inputs[0], {})[index] = cotangent
        elif node.op is LAST_STATE and node.inputs[1] in active - sources and is_own_state(node):
            terms.setdefault(node.inputs[1], []).append(_of_last_row(node, cotangent))
        elif node not in constants:
            _pull(node, [cotangent], active, terms)
    return [done.get(node) for node in wrt]


def _of_last_row(node: Node, cotangent: Cotangent) -> Cotangent:
    """The cotangent of a loop's result from that of its state after the last step. The rule of the loop takes it apart (`split_last`), and
    gives it to the initial value where there was no step."""
    one = cotangent.applied()
    return Cotangent(incremented(zeros_like(node.inputs[1]), one.value, (-1,)), None, one.hides)


def reaching(order: Sequence[Node], wrt: Collection[Node], constants: Collection[Node] = ()) -> set[Node]:
    """The nodes to which a path of real or complex values leads from `wrt`. `order`: inputs before users.

    Integers drawn with such a value as parameter are included, with what is computed from them: as constants, they would leave out their
    derivative silently.
    """
    active, _ = _reached(order, wrt, constants, ())
    return active


def over_all_steps(order: Sequence[Node], reads: Iterable[Node], recurrent: Sequence[tuple[tuple[Node, ...], Node]]) -> dict[Node, None]:
    """`reads` of a step that are real or complex, and those to which a path leads from them over the steps.

    recurrent: the reads and the write of each state. `order`: what the step computes, inputs before users.
    """
    result = dict.fromkeys(read for read in reads if is_float(read.type))
    while True:
        active = reaching(order, result)
        more = [read for reads, write in recurrent if write in active and is_float(write.type) for read in reads if is_float(read.type)]
        if set(more) <= set(result):
            return result
        result |= dict.fromkeys(more)


def _reached(
    order: Sequence[Node], wrt: Collection[Node], constants: Collection[Node], counts: Collection[Node]
) -> tuple[set[Node], set[Node]]:
    """(the nodes of `reaching`, those of them that come from a draw by rejection). `counts`: nodes known to come from one."""
    starts, blocked = set(wrt), set(constants)
    active, drawn = set(counts), set(counts)
    results: dict[Node, Sequence[bool]] = {}
    for node in order:
        is_open = node not in blocked and node.op is not DISCONNECTED
        is_behind = is_open and any(parent in active for parent in node.inputs)
        if (node in starts or is_behind) and any(map(is_float, node.types)):
            active.add(node)
        if is_open and node.op is not ZERO_GRAD and _is_drawn(node, active, drawn, results):
            drawn.add(node)
            active.add(node)
    return active, drawn


def _is_drawn(node: Node, active: set[Node], drawn: set[Node], results: dict[Node, Sequence[bool]]) -> bool:
    """True if a value comes from a draw whose parameters are `active`.

    `results`: answers for nodes with inner graphs, one per result, which this adds to.
    """
    if node.op is ITEM:
        index = node.number("index")
        return node.inputs[0] in results and results[node.inputs[0]][index]
    if active.isdisjoint(node.inputs):
        return False
    if isinstance(node.op, Card):
        return node.op.no_gradient.startswith(REJECTED) or not drawn.isdisjoint(node.inputs)
    results[node] = drawn_results(node, active, drawn)
    return len(node.types) == 1 and results[node][0]


def drawn_results(node: Node, active: set[Node], drawn: set[Node]) -> Sequence[bool]:
    """For each result of a loop, a choice or a function: whether it comes from a draw, inside it or before."""
    inside = all_nodes(output for body in bodies(node) for output in body.outputs)
    if drawn.isdisjoint(node.inputs) and not any(isinstance(one.op, Card) and one.op.no_gradient.startswith(REJECTED) for one in inside):
        return [False] * len(node.types)
    if node.op is SCAN:
        return _drawn_in_loop(node, active, drawn)
    if node.op is IF_ELSE and node.inputs[0] not in drawn:
        are_drawn = [False] * len(node.types)
        for graph in branches(node):
            pairs = list(zip(graph.inputs, node.inputs[1:], strict=True))
            counts = [inner for inner, outer in pairs if outer in drawn]
            _, behind = _reached(toposort(graph.outputs), [inner for inner, outer in pairs if outer in active], (), counts)
            are_drawn = [one or output in behind for one, output in zip(are_drawn, graph.outputs, strict=True)]
        return are_drawn
    return [True] * len(node.types)


def _drawn_in_loop(loop: Node, active: set[Node], drawn: set[Node]) -> Sequence[bool]:
    """For each result of a loop: whether it comes from a draw with `active` outer values, or from outer values that are `drawn`."""
    spec = loop_spec(loop)
    ports = [(seq.outer, read) for seq in spec.seqs for read in seq.reads] + [(port.outer, port.read) for port in spec.non_seqs]
    ports += [(state.initial, read) for state in spec.states for read in state.reads]
    ports += [(carry.shared, carry.read) for carry in spec.carries]
    starts, counts = {read for outer, read in ports if outer in active}, {read for outer, read in ports if outer in drawn}
    behind = drawn_writes(spec, starts, counts)
    return [output in behind for output in spec.inner_outputs()] if not spec.mit_mots else [False] * len(loop.types)


def drawn_writes(spec: LoopSpec, starts: set[Node], counts: set[Node]) -> set[Node]:
    """The values in a step that come from draws with `starts` as parameters, at any step, or from `counts`, which are drawn.

    Not handled: loops with buffers of cotangents, where it gives none.
    """
    if spec.mit_mots:
        return set()
    recurrences = [(state.reads, state.write) for state in spec.states] + [((carry.read,), carry.write) for carry in spec.carries]
    outputs = spec.inner_outputs()
    order = toposort(outputs)
    while True:
        inside, behind = _reached(order, starts, (), counts)
        more = {read for reads, write in recurrences if write in inside for read in reads} - starts
        counted = {read for reads, write in recurrences if write in behind for read in reads} - counts
        if not more and not counted:
            return behind
        starts, counts = starts | more, counts | counted


def refuse_drawn(writes: Sequence[Node], recurrences: Sequence[tuple[Sequence[Node], Node]]) -> None:
    """Raises NullGradientError where `writes`, which have cotangents in a loop, come from integers that earlier steps have drawn.

    recurrences: the reads and the write of each state that depends on what derivatives are asked for.
    """
    behind = differentiated(writes)
    for reads, write in recurrences:
        if not is_float(write.type) and not behind.isdisjoint(reads):
            raise no_derivative(write, REJECTED)


def differentiated(outputs: Sequence[Node]) -> set[Node]:
    """The nodes behind `outputs`, but for what is behind a node that is taken as a constant."""
    return set(toposort(outputs, stop=[node for node in toposort(outputs) if node.op in (DISCONNECTED, ZERO_GRAD)]))


def _pull(node: Node, above: Sequence[Cotangent | None], active: set[Node], terms: Terms) -> None:
    """Adds the cotangents of a node's operands to `terms`."""
    needed = [k for k, parent in enumerate(node.inputs) if parent in active]
    if not needed or all(one is None for one in above):
        return
    for k in needed:
        if not any(map(is_float, node.inputs[k].types)):
            raise no_derivative(node.inputs[k], REJECTED)
    for k, value in enumerate(_operand_cotangents(node, above, needed)):
        if value is not None and k in needed:
            terms.setdefault(node.inputs[k], []).append(value)


def _operand_cotangents(node: Node, above: Sequence[Cotangent | None], needed: Collection[int]) -> Sequence[Cotangent | None]:
    if isinstance(node.op, Card):
        return pulled(node, above, needed)
    mask = scalar_mask(above)
    applied = [None if one is None else one.applied() for one in above]
    if node.op is SCAN:
        from .scan_rule import scan_cotangents

        found = scan_cotangents(node, applied, needed, pulled_back)
    elif node.op is IF_ELSE:
        from .choice_rule import choice_cotangents

        found = choice_cotangents(node, applied, needed, pulled_back)
    elif node.op is CUSTOM_VJP:
        hides = any(one is not None and one.hides for one in applied)
        values = rule_of(node)(node, values_of(applied), needed)
        found = [None if value is None else Cotangent(value, None, hides) for value in values]
    elif node.op is PY_CALL:
        found = _of_graph(node, applied, needed)
    else:
        return [None] * len(node.inputs)
    return [None if one is None else Cotangent(one.value, mask, one.hides) for one in found]


def _of_graph(node: Node, above: Sequence[Cotangent | None], needed: Collection[int]) -> list[Cotangent | None]:
    """The cotangents of a node's operands by its graph, opened on fresh inputs: operands may depend on each other."""
    graph = graph_of(node)
    inputs = [new_input(parent.type, parent.name) for parent in node.inputs]
    outputs = substitute(graph.outputs, dict(zip(graph.inputs, inputs, strict=True)))
    pairs = [(output, value) for output, value in zip(outputs, above, strict=True) if value is not None]
    found = pulled_back([output for output, _ in pairs], [value for _, value in pairs], [inputs[k] for k in needed])
    result: list[Cotangent | None] = [None] * len(inputs)
    for k, one in zip(needed, found, strict=True):
        if one is not None:
            (value,) = substitute([one.value], dict(zip(inputs, node.inputs, strict=True)))
            result[k] = Cotangent(value, None, one.hides)
    return result
