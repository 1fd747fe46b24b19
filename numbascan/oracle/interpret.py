"""The oracle: a graph computed by NumPy, node by node, and a loop one step at a time. Slow, plain, and right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import MissingInputError, ScanTypeError
from ..ir import messages
from ..ir.graph import Graph, toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import ARG, CONSTANT, INPUT, ITEM, Node, constant_value
from ..ir.ports import LoopSpec
from ..ops.algebra import dims_of
from ..ops.card import PLACE, Card, evaluate
from ..ops.control import CUSTOM_VJP, IF_ELSE, PY_CALL, branches, graph_of, py_call
from ..ops.lowering import Elementwise
from ..ops.raising import RAISING, as_own
from ..ops.random import DRAW_NUMBERS
from ..ops.runtime_attributes import filled
from ..progress import seldom, told, who_is_asked, who_is_told

MANY = 1 << 32  # steps, more than memory has room for

Watch = Callable[[Node, Any], None]


def interpret(graph: Graph, arguments: Sequence[Any], watch: Watch | None = None, loop: type[LoopRun] | None = None) -> list[Any]:
    """The values of the graph's outputs. `watch` is told every node and its value as it is computed; `loop` runs the Scans."""
    values: dict[Node, Any] = {}
    for node, value in zip(graph.inputs, arguments, strict=True):
        values[node] = value if isinstance(value, NumbersOfDraws) else np.asarray(value).astype(node.type.dtype, copy=False)
    with np.errstate(all="ignore"):
        for node in toposort(graph.outputs, stop=list(values)):
            if node not in values:
                values[node] = _compute(node, values, watch, loop or LoopRun)
                if watch is not None:
                    watch(node, values[node])
    return [values[node] for node in graph.outputs]


def _compute(node: Node, values: Mapping[Node, Any], watch: Watch | None, loop: type[LoopRun]) -> Any:
    if node.op is CONSTANT:
        return constant_value(node)
    if node.op in (INPUT, ARG):
        raise MissingInputError(f"the graph needs {node.name or node}, but no value was given for it")
    operands = [values[parent] for parent in node.inputs]
    if node.op is ITEM:
        return operands[0][node.attr("index")]
    if node.op is SCAN:
        return loop(loop_spec(node), operands, watch).run()
    if node.op is IF_ELSE:
        chosen = branches(node)[0 if operands[0] else 1]
        results: Any = interpret(chosen, operands[1:], watch, loop)
    elif node.op is CUSTOM_VJP:
        results = interpret(graph_of(node), operands, watch, loop)
    elif node.op is PY_CALL:
        results = py_call(node, operands)
    elif node.op is DRAW_NUMBERS and (numbers := NumbersOfDraws(node, operands)).shape[0] > MANY:
        results = (numbers,)
    else:
        assert isinstance(node.op, Card)
        results = _evaluated(node.op, node, operands)
    return results[0] if len(node.types) == 1 else tuple(results)


class NumbersOfDraws:
    """The numbers of the draws of each step, computed as steps read them: a loop that its condition ends may have up to 2**63 of them."""

    def __init__(self, node: Node, operands: Sequence[Any]) -> None:
        self.first, self.stride = int(operands[0]), node.number("stride")
        (count,) = filled(node.attr("shape"), iter(operands[1:]))
        self.shape = (max(int(count), 0),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, steps: Any) -> Any:
        if isinstance(steps, tuple):
            (steps,) = steps
        numbers = range(*steps.indices(len(self))) if isinstance(steps, slice) else steps
        return np.int64(self.first) + self.stride * np.asarray(numbers, "int64")


def _evaluated(card: Card, node: Node, operands: list[Any]) -> tuple[Any, ...]:
    """The results of a card. NumPy's complaint gets the place in the user's code and, about shapes, the op's name."""
    origin, step = PLACE.origin, PLACE.step
    PLACE.origin, PLACE.step = node.origin, ""
    try:
        return evaluate(card, node.types, tuple(parent.type for parent in node.inputs), operands, node.params)
    except Exception as error:
        if card is not RAISING and not isinstance(error, (ValueError, IndexError, ArithmeticError)):
            raise
        text = f"{card.name}: {error}".strip() if type(error) is ValueError and isinstance(card.lower, Elementwise) else str(error).strip()
        line = f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else ""
        text += "" if line in text else line
        raise as_own(type(error)(f"{text} in {step}" if step else text)) from error
    finally:
        PLACE.origin, PLACE.step = origin, step


class LoopRun:
    """One run of a Scan on concrete values."""

    def __init__(self, spec: LoopSpec, operands: Sequence[Any], watch: Watch | None = None) -> None:
        self.spec, self.watch = spec, watch
        values = iter(operands)
        self.n_steps = int(next(values))
        self.seqs = [next(values) for _ in spec.seqs]
        self.buffers = [np.array(next(values)) for _ in spec.mit_mots]
        self.histories = [self._history(state.has_axis, state.depth, next(values)) for state in spec.states]
        self.traces: list[list[Any]] = [[] for _ in spec.traces]
        self.carried = [next(values) for _ in spec.carries]
        self.fixed = [next(values) for _ in spec.non_seqs]
        self._check()

    @staticmethod
    def _history(has_axis: bool, depth: int, initial: Any) -> list[Any]:
        return [initial[k] if k < len(initial) else None for k in range(depth)] if has_axis else [initial]

    def _check(self) -> None:
        spec = self.spec
        if self.n_steps < 0:
            raise ValueError(messages.negative_steps(spec).format(self.n_steps))
        for seq, rows in zip(spec.seqs, self.seqs, strict=True):
            if len(rows) < self.n_steps + seq.span:
                raise ValueError(messages.short_sequence(spec, seq).format(len(rows), self.n_steps + seq.span, self.n_steps))
        for state, history in zip(spec.states, self.histories, strict=True):
            if any(row is None for row in history):
                raise ValueError(messages.short_initial(spec, state).format(sum(row is not None for row in history)))

    def run(self) -> Any:
        steps = 0
        show = seldom(who_is_told(), who_is_asked())
        outer, PLACE.step = PLACE.step, f"the step of scan {self.spec.name!r}"
        try:
            with told(None):  # loops inside say nothing
                while steps < self.n_steps:
                    stop = self.step(steps)
                    steps += 1
                    show(steps, self.n_steps)
                    if stop:
                        break
        finally:
            PLACE.step = outer
        results = [*self.buffers, *self._stacked(), *self.carried]
        return results[0] if len(results) == 1 else tuple(results)

    def arguments(self, t: int) -> list[Any]:
        """The values of the inner inputs at step t, in order."""
        spec = self.spec
        arguments = [rows[t + seq.before + tap] for seq, rows in zip(spec.seqs, self.seqs, strict=True) for tap in seq.taps]
        arguments += [buffer[t + tap] for port, buffer in zip(spec.mit_mots, self.buffers, strict=True) for tap in port.in_taps]
        arguments += [rows[tap] for state, rows in zip(spec.states, self.histories, strict=True) for tap in state.taps]
        return [*arguments, *self.carried, *self.fixed]

    def step(self, t: int) -> bool:
        """Runs step t; True if `until` holds after it."""
        spec = self.spec
        graph = Graph(spec.inner_inputs(), spec.inner_outputs())
        written = iter(interpret(graph, self.arguments(t), self.watch, type(self)))
        for port, buffer in zip(spec.mit_mots, self.buffers, strict=True):
            for tap, value in zip(port.out_taps, [next(written) for _ in port.writes], strict=True):
                buffer[t + tap] = value
        for k, history in enumerate(self.histories):
            history.append(self._same_shape(k, history[-1], next(written)))
        for rows in self.traces:
            rows.append(next(written))
        self.carried = [self._same_shape(k, old, next(written)) for k, old in enumerate(self.carried, len(self.histories))]
        return bool(next(written)) if spec.until is not None else False

    def _same_shape(self, position: int, before: Any, after: Any) -> Any:
        for axis, (old, new) in enumerate(zip(np.shape(before), np.shape(after), strict=True)):
            if old != new:
                raise ScanTypeError(messages.changed_shape(self.spec, position, axis).format(old, new))
        return after

    def _stacked(self) -> list[Any]:
        """Results of states and traces as arrays, with their true trailing shape even for 0 rows."""
        stacked = []
        for state, history in zip(self.spec.states, self.histories, strict=True):
            rows = history[state.depth :] if state.has_axis else history[1:]
            stacked.append(np.stack(rows) if rows else np.empty((0, *np.shape(history[-1])), state.write.type.dtype))
        for k, (trace, rows) in enumerate(zip(self.spec.traces, self.traces, strict=True)):
            self._check_rows(trace.write.name or "out", rows)
            stacked.append(np.stack(rows) if rows else np.empty((0, *self._trailing(k)), trace.write.type.dtype))
        return stacked

    def _check_rows(self, name: str, rows: Sequence[Any]) -> None:
        for row in rows:
            for axis, (first, later) in enumerate(zip(np.shape(rows[0]), np.shape(row), strict=True)):
                if first != later:
                    raise ValueError(messages.ragged_rows(self.spec.name, name, axis).format(first, later))

    def _trailing(self, k: int) -> tuple[int, ...]:
        """The shape of a row that was never computed: its type's, or that of a step on ones; 0 for lengths that such a step cannot give."""
        write = self.spec.traces[k].write
        if write.type.size is not None:
            return tuple(dim or 0 for dim in write.type.shape)
        rows = [np.shape(value)[1:] for seq, value in zip(self.spec.seqs, self.seqs, strict=True) for _ in seq.taps]
        rows += [np.shape(buffer)[1:] for port, buffer in zip(self.spec.mit_mots, self.buffers, strict=True) for _ in port.in_taps]
        rows += [np.shape(history[0]) for state, history in zip(self.spec.states, self.histories, strict=True) for _ in state.taps]
        ones = [np.ones(shape, node.type.dtype) for shape, node in zip(rows, self.spec.inner_inputs(), strict=False)]
        arguments = [*ones, *self.carried, *self.fixed]
        return tuple(self._length(dim, arguments) for dim in dims_of(write))

    def _length(self, dim: Node, arguments: Sequence[Any]) -> int:
        try:
            return max(int(interpret(Graph(self.spec.inner_inputs(), (dim,)), arguments)[0]), 0)
        except (ArithmeticError, LookupError, ValueError):
            return 0
