"""What holds of the integer states of a loop at every step: guessed from what the loop asks, proved by induction.

    while lo < hi:                     0 <= lo, lo < hi, hi <= n in each step,
        mid = (lo + hi) // 2           so 0 <= mid < n, and the index of a[mid] needs no check
        if a[mid] < v: lo = mid + 1
        else: hi = mid

Candidates are what the loop asks before it goes on, and that a state is at least, or at most, an initial value. One is kept if it holds of
the initial values, and of the new ones whenever all candidates held of the old ones and the loop goes on. Those that fail go, until none
does. Where every way through a step adds fixed numbers to states, it is known without a proof how far they have come after t steps, and
which of their sums stay what they were. Behind the loop holds what is proved of new values whether or not the loop goes on.

The values of a step are read from the graph, as expressions over states and what is known around the loop; one way through its choices at a
time, with the conditions on that way. What is not integer arithmetic is a number of which nothing is known.

Not handled:
- states with several taps, of other dtypes than int64, or whose rows are kept
- steps with more than MOST_WAYS ways through their choices
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, count, product
from typing import TypeVar

from ...ir import loops as ir
from ...ir.lengths import Facts
from ...ir.node import CONSTANT, ITEM, Node, constant_value
from ...ir.ports import LoopSpec
from ...ops.card import Card
from ...ops.compare import WHERE
from ...ops.control import IF_ELSE, branches
from ...ops.dims import DIM
from ...ops.elementwise import IDENTITY
from ...ops.lowering import Elementwise
from ..casts import cast
from ..storage.states import LocalState, StateStorage
from ..storage.tensor_values import InLocals
from .scope import Scope

MOST_WAYS = 16
MOST_STATES = 6
SMALL_STEP = 4
FAR = 2**59
"""Counting in small steps goes no further: no machine makes 2**57 steps."""

_SIGNS = {template: sign for sign, template in ir.COMPARE_WITH.items()}
_OR_EQUAL = {"<": "<=", ">": ">="}
_KINDS = ("int64", "bool")
_Choice = tuple[Node, ...]  # a choice in the branches of others, the outermost first
_Decisions = Mapping[_Choice, bool]
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class IntegerState:
    """An integer that a loop carries from step to step in a local."""

    name: ir.Name
    initial: ir.Expr
    read: Node
    write: Node


def integer_states(storages: Sequence[StateStorage | None]) -> list[IntegerState]:
    """The states of which something may be found."""
    return [
        IntegerState(storage.lags[0][()], storage.starts[()], storage.state.reads[0], storage.state.write)
        for storage in storages
        if isinstance(storage, LocalState) and len(storage.lags) == 1 and not storage.type.rank and storage.type.dtype == "int64"
    ][:MOST_STATES]


class Invariants:
    """What holds of some integer states of a loop. Made in its body, before the first statement of a step.

    `at_start`: at the beginning of every step; `behind`: of the last values, also of a loop without steps.
    `outer`, `step`: the scopes around the loop and of its step, whose arguments are known.
    """

    def __init__(self, outer: Scope, step: Scope, spec: LoopSpec, states: Sequence[IntegerState], t: ir.Index) -> None:
        self.builder, self.spec, self.states = step.builder, spec, states
        self.names = {state.read: state.name for state in states} | dict(_non_seqs(outer, spec))
        self.ways = _ways(lambda decisions: self._way(step, decisions))
        asked = _ways(lambda decisions: self._asked(step, decisions)) or []
        first = _ways(lambda decisions: _more_than_none(outer, decisions, spec.n_steps)) or [[]]
        self.behind = self._counted(t)
        first_steps = [self._knowing(one) for one in first]
        self.at_start = self._inductive(self._candidates(asked), [facts for facts in first_steps if facts is not None])
        self.behind += self._of_last_values()

    def _way(self, step: Scope, decisions: _Decisions) -> _Way:
        """New values of the states, and whether the loop ends, on one way through the step."""
        reading = _Reading(step, self.names, decisions)
        new = {state.name: reading.of(state.write) for state in self.states}
        ends = ir.Literal("bool", False) if self.spec.until is None else reading.of(self.spec.until)
        return _Way(reading.conditions, new, ends)

    def _asked(self, step: Scope, decisions: _Decisions) -> list[ir.Expr]:
        """What holds if the loop goes on, said of the states: it is asked of their new values."""
        if self.spec.until is None:
            return []
        reading = _Reading(step, self.names | {state.write: state.name for state in self.states}, decisions)
        return [ir.negated(reading.of(self.spec.until)), *reading.conditions]

    def _counted(self, t: ir.Index) -> list[ir.Expr]:
        """Tells the block what follows where every way through a step adds fixed numbers to states; what of it holds behind the loop."""
        facts, added, most = self.builder.block.facts, self._added(), self.builder.block.steps
        behind, near = list[ir.Expr](), list[IntegerState]()
        for state, steps in added.items():
            start = _index(state.initial)
            lowest, highest = facts.lowest(facts.form(start)), facts.highest(facts.form(start))
            if lowest >= -FAR * 8 and highest <= FAR * 8:  # others may leave int64, and their sums with them
                near.append(state)
                low, high = lowest - FAR * (min(steps) < 0), highest + FAR * (max(steps) > 0)
                is_near = ir.both(ir.compare(">=", state.name, low), ir.compare("<=", state.name, high))
                self.builder.learn(ir.both(is_near, *_between(state.name, start, steps, t)))
                behind += [is_near, *(_between(state.name, start, [*steps, 0], most) if most is not None else ())]
        for few in (few for size in (2, 3) for few in combinations(near, size)):
            for signs in product((1, -1), repeat=len(few) - 1):
                terms = dict(zip(few, (1, *signs), strict=True))
                if not any(map(sum, zip(*([sign * step for step in added[state]] for state, sign in terms.items()), strict=True))):
                    behind.append(_as_it_was(terms))
                    self.builder.learn(behind[-1])
        return behind

    def _added(self) -> dict[IntegerState, list[int]]:
        """For the states to which every way adds a small fixed number: what, way by way."""
        added: dict[IntegerState, list[int]] = {}
        for state in self.states if self.ways else ():
            numbers = [_difference(way.new[state.name], state.name) for way in self.ways or ()]
            steps = [number for number in numbers if number is not None and abs(number) <= SMALL_STEP]
            if len(steps) == len(numbers):
                added[state] = steps
        return added

    def _candidates(self, asked: Sequence[Sequence[ir.Expr]]) -> list[ir.Expr]:
        ends = dict.fromkeys([ir.Literal("int64", 0), *(state.initial for state in self.states)])
        between = [ir.compare(sign, state.name, end) for state in self.states for end in ends for sign in (">=", "<=")]
        told = [part for conditions in asked for one in conditions for part in self.builder.block.facts.told(one)]
        return [one for one in dict.fromkeys([*between, *told]) if self._is_of_states(one)]

    def _is_of_states(self, condition: ir.Expr) -> bool:
        """True if a condition reads states, and else only what every step finds the same: not the counter, nor what a step reads at it."""
        names, states = {name for name, _ in ir.names_in(condition)}, {state.name.name for state in self.states}
        is_outer = all(self.builder.home_of(ir.Name("int64", name)) is not self.builder.block for name in names - states)
        return not names.isdisjoint(states) and is_outer and not _is_unknown(condition) and self.builder.is_steady(condition)

    def _inductive(self, candidates: list[ir.Expr], first: Sequence[Facts]) -> list[ir.Expr]:
        """The candidates that hold of initial values, and of new values if all of them hold of the old ones and the loop goes on."""
        initial = {state.name: state.initial for state in self.states}
        left = [one for one in candidates if all(facts.decided(_with(one, initial)) for facts in first)]
        while left:
            kept = self._holding_of_new(left, left, goes_on=True)
            if len(kept) == len(left):
                break
            left = kept
        return left

    def _holding_of_new(self, conditions: list[ir.Expr], assumed: Sequence[ir.Expr], goes_on: bool) -> list[ir.Expr]:
        """The conditions that hold of new values where `assumed` holds of old ones; `goes_on`: and the loop does not end."""
        for way in self.ways or ():
            facts = self._knowing([*assumed, *way.conditions, *([ir.negated(way.ends)] if goes_on else [])])
            if facts is not None:
                conditions = [one for one in conditions if facts.decided(_with(one, way.new))]
        return conditions if self.ways is not None else []

    def _knowing(self, conditions: Sequence[ir.Expr]) -> Facts | None:
        """What is known in the body where all of the conditions hold, too; None where they cannot."""
        facts = Facts(self.builder.block.facts)
        for condition in conditions:
            if facts.decided(condition) is False:
                return None
            facts.learn_of(self.builder.steady, condition)
        return facts

    def _of_last_values(self) -> list[ir.Expr]:
        around = self.builder.block.facts.around
        assert around is not None
        initial = {state.name: state.initial for state in self.states}
        candidates = [*self.at_start, *(one for condition in self.at_start for one in _weaker(condition)), *self._ends()]
        held = [one for one in candidates if around.decided(_with(one, initial))]
        return self._holding_of_new(held, self.at_start, goes_on=False)

    def _ends(self) -> Iterator[ir.Expr]:
        """For each state the least and the greatest number that may be left of it, as far as they are known."""
        around = self.builder.block.facts.around
        for state in self.states if around is not None and self.ways is not None else ():
            assert around is not None
            lowest, highest = around.lowest(around.form(state.initial)), around.highest(around.form(state.initial))
            for way in self.ways or ():
                facts = self._knowing([*self.at_start, *way.conditions])
                if facts is not None:
                    form = facts.form(way.new[state.name])
                    lowest, highest = min(lowest, facts.lowest(form)), max(highest, facts.highest(form))
            yield ir.compare(">=", state.name, lowest)
            yield ir.compare("<=", state.name, highest)


def _non_seqs(outer: Scope, spec: LoopSpec) -> Iterator[tuple[Node, ir.Expr]]:
    """The integers that a step reads and does not change, as they are known around the loop."""
    reading = _Reading(outer, {}, {})
    for non_seq in spec.non_seqs:
        if not non_seq.read.type.rank and non_seq.read.type.dtype == "int64":
            with suppress(_Undecided):
                number = reading.of(non_seq.outer)
                if not _is_unknown(number):
                    yield non_seq.read, number


@dataclass(frozen=True)
class _Way:
    """One way through the choices of a step: the conditions on it, the new values, whether the loop ends."""

    conditions: Sequence[ir.Expr]
    new: Mapping[ir.Name, ir.Expr]
    ends: ir.Expr


def _ways(made: Callable[[_Decisions], _Made]) -> list[_Made] | None:
    """What is made on every way through the choices that it meets; None where there are too many."""
    ways, left = list[_Made](), list[_Decisions]([{}])
    while left and len(ways) + len(left) <= MOST_WAYS:
        decisions = left.pop()
        try:
            ways.append(made(decisions))
        except _Undecided as choice:
            left += [{**decisions, choice.choice: side} for side in (False, True)]
    return None if left else ways


class _Undecided(Exception):
    def __init__(self, choice: _Choice) -> None:
        self.choice = choice


_UNKNOWN = "?"  # no name of a local begins so


def _is_unknown(expr: ir.Expr) -> bool:
    """True if an expression reads something of which nothing is known, in one reading alone."""
    return any(name.startswith(_UNKNOWN) for name, _ in ir.names_in(expr))


class _Reading:
    """Integers and conditions of a graph as expressions over what its scope knows, on one way through its choices."""

    def __init__(self, scope: Scope, names: Mapping[Node, ir.Expr], decisions: _Decisions) -> None:
        self.scope, self.decisions = scope, decisions
        self.conditions: list[ir.Expr] = []
        self._asked: set[_Choice] = set()
        self._numbers = count()
        self._graph = _Graph(exprs=dict(names))

    def of(self, node: Node) -> ir.Expr:
        """A number or a condition of the graph."""
        return self._of(node, self._graph)

    def taken(self, node: Node) -> ir.Expr:
        """The same of a number that may be a choice: what is on the side taken, even if a local holds the choice."""
        return self._of(node.inputs[1 if self._side(node, self._graph) else 2] if node.op is WHERE else node, self._graph)

    def _of(self, node: Node, graph: _Graph) -> ir.Expr:
        if node not in graph.exprs:
            expr = self._made(node, graph)
            is_known = expr is not None and expr.dtype == node.type.dtype and not any(is_element for _, is_element in ir.names_in(expr))
            graph.exprs[node] = expr if expr is not None and is_known else ir.Name(node.type.dtype, f"{_UNKNOWN}{next(self._numbers)}")
        return graph.exprs[node]

    def _made(self, node: Node, graph: _Graph) -> ir.Expr | None:
        """None of what is no integer arithmetic."""
        if node in graph.operands and graph.around is not None:
            return self._of(graph.operands[node], graph.around)
        if node.type.rank or node.type.dtype not in _KINDS:
            return None
        number = constant_value(node) if node.op is CONSTANT else None
        if number is not None:
            return ir.Literal(node.type.dtype, number.item())
        value = self.scope.env.get(node) if graph.around is None else None
        if isinstance(value, InLocals) and (node.type.dtype == "int64" or not node.inputs):
            return value.elements[()]
        index, choice = (node.number("index"), node.inputs[0]) if node.op is ITEM else (0, node)
        if choice.op is IF_ELSE:
            side = graph.branch(choice, self._side(choice, graph))
            return self._of(side.outputs[index], side)
        if node.op is WHERE:
            return self._of(node.inputs[1 if self._side(node, graph) else 2], graph)
        if node.op is DIM:
            return self._dim(node, graph)
        return self._computed(node, graph)

    def _side(self, choice: Node, graph: _Graph) -> bool:
        """Which side of a choice is taken on this way."""
        condition, key = self._of(choice.inputs[0], graph), (*graph.path, choice)
        if isinstance(condition, ir.Literal):
            return bool(condition.value)
        if key not in self.decisions:
            raise _Undecided(key)
        if key not in self._asked:
            self._asked.add(key)
            self.conditions.append(condition if self.decisions[key] else ir.negated(condition))
        return self.decisions[key]

    def _dim(self, node: Node, graph: _Graph) -> ir.Expr | None:
        measured = node.inputs[0]
        while measured in graph.operands and graph.around is not None:
            measured, graph = graph.operands[measured], graph.around
        value = self.scope.env.get(measured) if graph.around is None else None
        if value is None:
            return None
        dim = value.dims[node.number("axis")]
        return ir.Literal("int64", dim) if isinstance(dim, int) else dim

    def _computed(self, node: Node, graph: _Graph) -> ir.Expr | None:
        if not isinstance(node.op, Card) or not isinstance(node.op.lower, Elementwise):
            return None
        if any(parent.type.rank or parent.type.dtype not in _KINDS for parent in node.inputs):
            return None
        *dtypes, result = node.op.lower.loop(*(parent.type for parent in node.inputs))
        if not set(dtypes) | {result} <= set(_KINDS):
            return None
        operands = tuple(cast(self._of(parent, graph), dtype) for parent, dtype in zip(node.inputs, dtypes, strict=True))
        template = node.op.lower.code(*dtypes, result)
        return operands[0] if template is IDENTITY else ir.Apply(result, template, operands)


@dataclass
class _Graph:
    """The graph that is read, or a branch in it: what is read already, and what the arguments of a branch are in the graph around."""

    exprs: dict[Node, ir.Expr] = field(default_factory=dict)
    operands: Mapping[Node, Node] = field(default_factory=dict)
    outputs: Sequence[Node] = ()
    around: _Graph | None = None
    path: _Choice = ()
    inside: dict[Node, _Graph] = field(default_factory=dict)

    def branch(self, choice: Node, holds: bool) -> _Graph:
        """The side of a choice that is taken."""
        if choice not in self.inside:
            graph = branches(choice)[0 if holds else 1]
            operands = dict(zip(graph.inputs, choice.inputs[1:], strict=True))
            self.inside[choice] = _Graph(operands=operands, outputs=graph.outputs, around=self, path=(*self.path, choice))
        return self.inside[choice]


def _more_than_none(scope: Scope, decisions: _Decisions, n_steps: Node) -> list[ir.Expr]:
    """The conditions under which a loop has a step, on one way through the choices of its number of steps."""
    reading = _Reading(scope, {}, decisions)
    more = ir.compare(">", reading.taken(n_steps), 0)
    return [*reading.conditions, more]


def _weaker(condition: ir.Expr) -> Iterator[ir.Expr]:
    """The same of numbers that may be equal."""
    sign = _OR_EQUAL.get(_SIGNS.get(condition.template, "")) if isinstance(condition, ir.Apply) else None
    if isinstance(condition, ir.Apply) and sign is not None:
        yield ir.compare(sign, *condition.args)


def _between(state: ir.Expr, start: ir.Index, steps: Sequence[int], passes: ir.Index) -> list[ir.Expr]:
    """Where a state is after as many passes, each of which adds one of `steps`."""
    least, most = ir.add(start, ir.mul(passes, min(steps))), ir.add(start, ir.mul(passes, max(steps)))
    return [ir.compare(">=", state, least), ir.compare("<=", state, most)]


def _as_it_was(terms: Mapping[IntegerState, int]) -> ir.Expr:
    """That a sum of states, each with its sign, is the sum of their initial values."""
    left: ir.Index = 0
    right: ir.Index = 0
    for state, sign in terms.items():
        now, start = state.name, _index(state.initial)
        left, right = ir.add(left, now if sign > 0 else start), ir.add(right, start if sign > 0 else now)
    return ir.both(ir.compare(">=", left, right), ir.compare("<=", left, right))


def _difference(new: ir.Expr, state: ir.Name) -> int | None:
    """What is added to a state; None where it is no fixed number."""
    if new == state:
        return 0
    if isinstance(new, ir.Apply) and new.template in (ir.IN_ORDER, ir.DIFFERENCE):
        sign, (first, second) = 1 if new.template == ir.IN_ORDER else -1, new.args
        before = _difference(first, state) if isinstance(first, ir.Expr) else None
        if before is not None and isinstance(second, ir.Literal) and isinstance(second.value, int):
            return before + sign * second.value
    return None


def _index(number: ir.Expr) -> ir.Index:
    """A number in index arithmetic."""
    return number.value if isinstance(number, ir.Literal) and isinstance(number.value, int) else number


def _with(condition: ir.Expr, values: Mapping[ir.Name, ir.Expr]) -> ir.Expr:
    """A condition with values for the states in it."""
    result = ir.mapped(condition, lambda part: values.get(part) if isinstance(part, ir.Name) else None)
    assert isinstance(result, ir.Expr)
    return result
