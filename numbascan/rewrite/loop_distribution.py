"""Loop distribution: a loop becomes two. The first makes values that the second reads, and waits for none of the second's.

# before: h[t] = f(h[t-1], x[t]); g[t] = k(g[t-1], h[t] @ W)        # after: h[t] = f(h[t-1], x[t])
#                                                                   #        P = h @ W
#                                                                   #        g[t] = k(g[t-1], P[t])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..ir.graph import substitute, toposort
from ..ir.loop_node import scan_node
from ..ir.node import Node, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, Seq, State, Trace, row_of
from ..ir.respecialise import settled
from ..ops.algebra import dims_of
from ..ops.card import Card
from ..ops.lowering import Elementwise, Generate, View
from .row_products import RowProduct
from .step_dependence import Dependence, fixed_outside


def recurrent(spec: LoopSpec) -> list[State | Carry]:
    """The ports by which steps hand values on to later ones: states and carries."""
    return [*spec.states, *spec.carries]


def row_writes(spec: LoopSpec) -> list[Node]:
    """The writes of results that have a row for every step: states and traces."""
    return [*(state.write for state in spec.states), *(trace.write for trace in spec.traces)]


def reads_of(port: State | Carry) -> tuple[Node, ...]:
    """The inner inputs of a state or carry."""
    return port.reads if isinstance(port, State) else (port.read,)


def behind(spec: LoopSpec, nodes: Iterable[Node]) -> set[Node]:
    """The values of the step that `nodes` depend on, in this step or in earlier ones."""
    result = set(toposort(nodes))
    while more := [port.write for port in recurrent(spec) if port.write not in result and not result.isdisjoint(reads_of(port))]:
        result |= set(toposort(more))
    return result


def after(spec: LoopSpec, nodes: Collection[Node]) -> set[Node]:
    """The values of the step that depend on `nodes`, in this step or in later ones, these included."""
    waiting, order = set(nodes), toposort(spec.inner_outputs())
    while True:
        waiting |= {read for port in recurrent(spec) if port.write in waiting for read in reads_of(port)}
        size = len(waiting)
        for node in order:
            if not waiting.isdisjoint(node.inputs):
                waiting.add(node)
        if len(waiting) == size:
            return waiting


@dataclass
class Split:
    """A loop that may be split at products whose results only the second part reads."""

    spec: LoopSpec
    dependence: Mapping[Node, Dependence]
    products: Sequence[RowProduct]
    late: set[Node] = field(init=False)
    crossing: list[Node] = field(init=False)  # values that the first part hands over besides the operands of the products

    def __post_init__(self) -> None:
        self.late = after(self.spec, [product.node for product in self.products])
        self.crossing = self._crossing()

    def _crossing(self) -> list[Node]:
        outputs = [write for write in self.spec.inner_outputs() if write not in self.late]
        early = set(toposort([*outputs, *(product.changing for product in self.products)]))
        carried = {read for port in recurrent(self.spec) for read in reads_of(port)} - self.late
        stops = {product.node for product in self.products}
        values: list[Node] = []
        stack, seen = [write for write in self.spec.inner_outputs() if write in self.late], set(stops)
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in carried or (node in early and node not in self.late and not self._is_computed_again(node)):
                values.append(node)
            else:
                stack += node.inputs
        return values

    def _is_computed_again(self, node: Node) -> bool:
        """True if a value that both parts read is cheaper to recompute than to store."""
        if self.dependence[node] is Dependence.MOVING:
            return False
        cards = [one.op for one in toposort([node]) if one.inputs]
        return all(isinstance(card, Card) and isinstance(card.lower, Elementwise | View | Generate) for card in cards)

    # the two loops --------------------------------------------------------------------------------------------------

    def results(self) -> list[Node]:
        """The replacement of each result of the loop."""
        spec, is_late = self.spec, self.late.__contains__
        handed = list(dict.fromkeys([*(product.changing for product in self.products), *self.crossing]))
        stored = {state.write for state in spec.states} | {trace.write for trace in spec.traces}
        first = replace(
            spec,
            states=tuple(state for state in spec.states if not is_late(state.write)),
            traces=(
                *(trace for trace in spec.traces if not is_late(trace.write)),
                *(Trace(value) for value in handed if value not in stored),
            ),
            carries=tuple(carry for carry in spec.carries if not is_late(carry.write)),
        )
        results = outputs_of(scan_node(settled(first)))
        stacks = dict(zip(row_writes(first), results, strict=False))
        products = {
            product.node: product.of_rows(stacks[product.changing], fixed_outside(spec, product.fixed), spec.has_step)
            for product in self.products
        }
        rows = {**{value: stacks[value] for value in self.crossing}, **products}
        steps = spec.n_steps if spec.until is None else dims_of(next(iter(stacks.values())))[0]
        later = self._later(replace(spec, n_steps=steps, until=None), rows)
        carried = dict(zip([carry.read for carry in first.carries], results[len(first.states) + len(first.traces) :], strict=True))
        return [
            *(later.get(write) or stacks[write] for write in row_writes(spec)),
            *(later.get(carry.read) or carried[carry.read] for carry in spec.carries),
        ]

    def _later(self, spec: LoopSpec, rows: Mapping[Node, Node]) -> dict[Node, Node]:
        """The results of the second loop by their writes, those of carries by their reads. A product that is a result needs no loop."""
        reads = {value: new_input(row_of(outer.type), value.name) for value, outer in rows.items()}
        second = replace(
            spec,
            seqs=(*spec.seqs, *(Seq(outer, (0,), (reads[value],)) for value, outer in rows.items())),
            states=tuple(state for state in spec.states if state.write in self.late),
            traces=tuple(trace for trace in spec.traces if trace.write in self.late and trace.write not in rows),
            carries=tuple(carry for carry in spec.carries if carry.write in self.late),
        )
        named = [*row_writes(second), *(carry.read for carry in second.carries)]
        later = {trace.write: rows[trace.write] for trace in spec.traces if trace.write in rows and trace.write in self.late}
        if not named:
            return later
        new = second.with_inner(second.inner_inputs(), substitute(second.inner_outputs(), reads))
        used = set(toposort(new.inner_outputs()))
        new = replace(
            new,
            seqs=tuple(seq for seq in new.seqs if not used.isdisjoint(seq.reads)),
            non_seqs=tuple(port for port in new.non_seqs if port.read in used),
        )
        return {**later, **dict(zip(named, outputs_of(scan_node(settled(new))), strict=True))}
