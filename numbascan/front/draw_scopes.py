"""Streams, and where a draw gets its key and number from: a state of its own in a graph, the step's counter in a step.

If a step draws k times, step t has the numbers first + k t, ..., first + k t + k - 1. They are a sequence of the loop, not a state, so that
draws do not make steps depend on each other. A scan within a step takes one number, and its own steps draw under a key made from that: k
must be known before the step runs.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.graph import free_inputs, substitute
from ..ir.node import Node, new_input
from ..ir.ports import NonSeq, Seq
from ..ops.random import DRAW_NUMBERS, RANDOM_BITS
from ..ops.runtime_attributes import sized
from ..types import TensorType
from .captures.guards import Guards
from .shared import STATES, SharedVariable, shared, shared_of
from .tracing import KEPT, current_mark, is_traced_in, is_tracing
from .variable import CAPTURE, METHODS, Variable, as_variable, at_line, op

Key = tuple[Variable, Variable]
_NUMBERING = threading.RLock()  # held while a state gets its number: two states of one number would draw the same
_WORD, _NUMBER = TensorType("uint64"), TensorType("int64")


class Stream:
    """A key, and states of draws that go on from call to call.

    A state is a shared variable of three words: the key, made of the seed and the number of the state, and the number of the next draw.
    A stream made in a step has no state: it belongs to the loop, each step draws anew, and each run of the loop repeats the numbers.

    scope: counts the draws of a stream that traced code makes, which begin anew each time that the code runs; None for other streams.
    is_carried: calls carry its state on.
    """

    scope: Scope | None
    is_carried: bool

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        self.trace = current_mark()
        self.is_local = bool(_SCOPES.stack) and isinstance(_SCOPES.stack[-1], StepDraws)
        if is_tracing() and not self.is_local:
            raise TypeError(f"a RandomStream is made in a function that is traced{at_line()}: it would be made once; make it outside")
        if self.is_local and seed is None:
            raise TypeError(
                f"a RandomStream without a seed is made in a step{at_line()}: it would be made once, and repeat its numbers in every run; "
                "give it a seed, or make it outside"
            )
        self.name, self.scope, self.is_carried = name or "random", None, True
        self._seed = _seed_of(seed)
        self.states = [] if self.is_local else [self._state(0)]
        self.pending: dict[SharedVariable, Variable] = {}

    @property
    def state(self) -> SharedVariable:
        """The state of immediate calls."""
        return self.states[0]

    def first(self) -> tuple[Key, Variable]:
        """Key and number of the next draw of an immediate call."""
        if self.is_local:
            return (as_variable(np.uint64(self._seed)), as_variable(np.uint64(0))), as_variable(np.int64(0))
        return parts(self.state)

    def _state(self, stream: int) -> SharedVariable:
        label = f"{self.name}_state{stream}" if stream else f"{self.name}_state"
        state = shared(np.array([self._seed, stream, 0], dtype=np.uint64), label)
        STATES.add(state.node)
        return state

    def new_state(self) -> SharedVariable:
        """A new state, for one more draw or loop of a graph. It has a number of its own in the key, so that no two share a draw."""
        with _NUMBERING:
            state = self._state(len(self.states))
            self.states.append(state)
        return state

    def seed(self, seed: int | None = None) -> None:
        """Resets all states to the first draw, under a new seed."""
        if self.is_local:
            raise TypeError(f"{self.name} was made in a step, and its seed stays as it is{at_line()}; make another stream")
        with _NUMBERING:
            self._seed = _seed_of(seed)
            states = list(self.states)
        for number, state in enumerate(states):
            state.set_value(np.array([self._seed, number, 0], dtype=np.uint64))

    def updates(self) -> dict[SharedVariable, Variable]:
        """The advance of all draws so far, for `ns.function(..., updates=stream.updates())`.

        A scan whose number of steps is itself a variable is not among them: its advance is in the updates that `ns.scan` returns.
        """
        pending = self.pending.copy()  # another thread may draw during the loop below
        return {state: new for state, new in pending.items() if all(shared_of(node) is not None for node in free_inputs([new.node]))}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: seed {self._seed}>"


def _seed_of(seed: Any) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"the seed of a RandomStream is {seed!r}; give an int, or None for one of the system's") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"the seed of a RandomStream is {number}; it must be at least 0 and below 2**64")
    return number


# scopes -------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Counter:
    """The draws of one stream in one step. Key and first number are inputs of the step; `count` is the number of draws."""

    key: Key
    first: Variable
    count: int = 0

    @property
    def reads(self) -> list[Node]:
        """The inputs of the step."""
        return [self.first.node, *(word.node for word in self.key)]


@dataclass(eq=False)
class StepDraws:
    """The draws of a step that is being traced. own: those of streams that the step makes, which begin anew in each step."""

    counters: dict[Stream, Counter] = field(default_factory=dict)
    own: CallDraws = field(default_factory=lambda: CallDraws())

    def take(self, stream: Stream) -> tuple[Key, Variable]:
        """Key and number of one draw."""
        if stream.scope is self:
            return self.own.take(stream)
        known = self.counters.get(stream)
        if known is None:
            words = [Variable(new_input(_WORD, f"{stream.name}_key{k}")) for k in range(2)]
            known = self.counters[stream] = Counter((words[0], words[1]), Variable(new_input(_NUMBER, f"{stream.name}_draw")))
        known.count += 1
        return known.key, known.first + (known.count - 1) if known.count > 1 else known.first

    def loop(self, stream: Stream, counter: Counter) -> LoopDraws:
        """The draws of a loop in the step, under a key made from one number: the step's count must not depend on the loop's length."""
        return self.own.loop(stream, counter) if stream.scope is self else _apart(self.take(stream), counter)


@dataclass(eq=False)
class CallDraws:
    """The draws of a function that is traced for immediate calls. They go on from the stream's own state, which `updates` advances.

    next: the number of the next draw, by stream.
    others: the streams that replace others, since these were seeded.
    is_part: the function was called within another trace, which must make its draws.
    first_step: the number of the first step, for loops that are the rest of a longer one.
    """

    next: dict[Stream, Variable] = field(default_factory=dict)
    others: dict[Stream, Stream] = field(default_factory=dict)
    is_part: bool = False
    first_step: Variable | None = None

    def take(self, stream: Stream) -> tuple[Key, Variable]:
        """Key and number of one draw."""
        key, number = self._now(stream)
        self.next[stream] = number + 1
        return key, number

    def loop(self, stream: Stream, counter: Counter) -> LoopDraws:
        """The draws of a loop: a number per draw of its steps. In a branch one in all: later numbers must not depend on the branch."""
        if CAPTURE.frame is not None:
            return _apart(self.take(stream), counter)
        key, first = self._now(stream)
        if self.first_step is not None:
            first = first + self.first_step * counter.count

        def after(steps: Any) -> dict[SharedVariable, Variable]:
            self.next[stream] = first + steps * counter.count
            return {}

        return LoopDraws(counter, key, first, after)

    def _now(self, stream: Stream) -> tuple[Key, Variable]:
        key, first = stream.first()
        return key, self.next.get(stream, first)

    def updates(self) -> dict[SharedVariable, Variable]:
        """The states after the call, of streams whose state calls carry on."""
        carried = {stream: number for stream, number in self.next.items() if stream.is_carried and not stream.is_local}
        return {stream.state: advanced(stream.state, number) for stream, number in carried.items()}


@dataclass(frozen=True)
class NoDraws:
    """The scope of a function that must not draw: it may run several times for one call, with other numbers each time."""

    what: str

    def take(self, stream: Stream) -> tuple[Key, Variable]:
        """Raises TypeError."""
        raise TypeError(f"{stream.name} draws in {self.what}{at_line()}; draw outside it, and pass the numbers as an argument")

    def loop(self, stream: Stream, counter: Counter) -> LoopDraws:
        """Raises TypeError."""
        self.take(stream)
        raise AssertionError


class DrawGuards(Guards):
    """Guards of a trace that draws. Made for immediate calls it does not hold in a trace, where no state may advance; nor vice versa."""

    def __init__(self, guards: Guards) -> None:
        self.guards, self.in_trace = guards, is_tracing()

    def hold(self) -> bool:
        """Whether the trace holds for a call here and now."""
        return self.in_trace == is_tracing() and self.guards.hold()

    def changed_number(self) -> tuple[str, Any, Any] | None:
        """As its guards say."""
        return self.guards.changed_number()

    def bytes_watched(self) -> int:
        """As its guards say."""
        return self.guards.bytes_watched()


Scope = StepDraws | CallDraws | NoDraws


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Scope] = []


_SCOPES = _Scopes()


def current_scope() -> Scope | None:
    """The scope that counts draws now; None outside traced code."""
    return _SCOPES.stack[-1] if _SCOPES.stack else None


def in_place_of(stream: Stream) -> Stream:
    """The stream that replaces `stream` in the code that is traced now; `stream` itself if none does."""
    for scope in reversed(_SCOPES.stack):
        if isinstance(scope, CallDraws) and stream in scope.others:
            return scope.others[stream]
    return stream


def keep_draws(_: tuple[Any, ...] = ()) -> Callable[[], None]:
    """A function that takes back all draws made from here on, for code that is traced again."""
    scope = current_scope()
    if isinstance(scope, CallDraws):
        return _kept_of_call(scope)
    if isinstance(scope, StepDraws):
        counts = {stream: counter.count for stream, counter in scope.counters.items()}
        own = _kept_of_call(scope.own)

        def take_back() -> None:
            own()
            scope.counters = {stream: scope.counters[stream] for stream in counts}
            for stream, count in counts.items():
                scope.counters[stream].count = count

        return take_back
    return lambda: None


def _kept_of_call(scope: CallDraws) -> Callable[[], None]:
    before, others = dict(scope.next), dict(scope.others)

    def take_back() -> None:
        scope.next, scope.others = before, others

    return take_back


KEPT.append(keep_draws)


@contextmanager
def step_draws() -> Iterator[StepDraws]:
    """A scope that counts the draws of a step while it is traced."""
    scope = StepDraws()
    with _within(scope):
        yield scope


@contextmanager
def call_draws() -> Iterator[CallDraws]:
    """A scope for a function that is traced for immediate calls. Within another trace its draws do not count: it is called once more."""
    scope = CallDraws()
    with _within(scope):
        yield scope
    scope.is_part = is_tracing() and bool(scope.next)


@contextmanager
def no_draws(what: str) -> Iterator[None]:
    """A scope in which draws raise TypeError."""
    with _within(NoDraws(what)):
        yield


@contextmanager
def steps_from(first: Variable) -> Iterator[None]:
    """A context for the rest of a longer loop, from step `first` on: loops made in it draw the same numbers as those steps."""
    scope = _SCOPES.stack[-1]
    assert isinstance(scope, CallDraws)
    scope.first_step = first
    try:
        yield
    finally:
        scope.first_step = None


def put_outside(back: dict[Node, Node]) -> None:
    """Rewrites the numbers of the next draws after a call on fresh inputs: in terms of what was given for these inputs, `back`."""
    scope = current_scope()
    call = scope.own if isinstance(scope, StepDraws) else scope
    if isinstance(call, CallDraws):
        call.next = {stream: Variable(substitute([number.node], back)[0]) for stream, number in call.next.items()}


@contextmanager
def _within(scope: Scope) -> Iterator[None]:
    _SCOPES.stack.append(scope)
    try:
        yield
    finally:
        _SCOPES.stack.pop()


def take(stream: Stream) -> tuple[Key, Variable]:
    """Key and number of one draw, here and now."""
    if stream.is_local and stream.trace and not is_traced_in(stream.trace):
        raise TypeError(f"{stream.name} was made in a step, and draws outside it{at_line()}; make it outside")
    if _SCOPES.stack:
        return _SCOPES.stack[-1].take(stream)
    if isinstance(stream.scope, CallDraws):
        return stream.scope.take(stream)
    state = stream.new_state()
    key, number = parts(state)
    if stream.is_carried:
        stream.pending[state] = advanced(state, number + 1)
    return key, number


def parts(state: SharedVariable) -> tuple[Key, Variable]:
    """A state's key, and the number of its next draw."""
    return (state[0], state[1]), METHODS["astype"](state[2], "int64")


def advanced(state: SharedVariable, number: Any) -> Variable:
    """A state's value when `number` is the next draw."""
    stacked: Any = np.stack([state[0], state[1], as_variable(number).astype("uint64")])
    return as_variable(stacked)


def word_of(key: Key, number: Variable, tag: int, position: Any) -> Variable:
    """The random word of a draw at `position`."""
    return op(RANDOM_BITS, *key, number, np.uint64(tag), position)


# loops --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoopDraws:
    """The draws of a stream in a loop: key, first number, and `after`: number of steps -> the updates of the stream's state."""

    counter: Counter
    key: Key
    first: Variable
    after: Callable[[Any], dict[SharedVariable, Variable]]

    def number_port(self, n_steps: Node) -> Seq:
        """The sequence of the steps' first numbers, which is computed, not stored."""
        numbers = sized(DRAW_NUMBERS, (self.first.node,), (n_steps,), stride=self.counter.count)
        return Seq(numbers, (0,), (self.counter.first.node,))

    def key_ports(self) -> tuple[NonSeq, ...]:
        return tuple(NonSeq(outer.node, inner.node) for outer, inner in zip(self.key, self.counter.key, strict=True))

    def first_step(self) -> dict[Node, Node]:
        """The values of the first step's inputs."""
        return {self.counter.first.node: self.first.node} | {port.read: port.outer for port in self.key_ports()}


def _apart(draw: tuple[Key, Variable], counter: Counter) -> LoopDraws:
    """The draws of a loop under a key of its own, made from the words of one draw."""
    key, number = draw
    inner = word_of(key, number, 1, np.uint64(0)), word_of(key, number, 1, np.uint64(1))
    return LoopDraws(counter, inner, as_variable(np.int64(0)), lambda steps: {})


def loop_draws(stream: Stream, counter: Counter, immediate: bool) -> LoopDraws:
    """The draws of a loop that is made here. immediate: calls carry the stream's own state on by themselves."""
    if _SCOPES.stack:
        return _SCOPES.stack[-1].loop(stream, counter)
    if isinstance(stream.scope, CallDraws):
        return stream.scope.loop(stream, counter)
    if stream.is_local:
        return LoopDraws(counter, *stream.first(), lambda steps: {})
    state = stream.state if immediate else stream.new_state()
    key, first = parts(state)

    def after(steps: Any) -> dict[SharedVariable, Variable]:
        if not stream.is_carried:
            return {}
        new = advanced(state, first + steps * counter.count)
        if not immediate:
            stream.pending[state] = new
        return {state: new}

    return LoopDraws(counter, key, first, after)
