"""Traces a step function: it gets Variables for the rows of sequences and states; its results are matched with initial values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...ir.graph import substitute
from ...ir.node import Node, constant, new_input
from ...ir.ports import row_of
from ...types import TensorType
from ..captures.numbers import Numbers
from ..draw_scopes import Counter, DrawGuards, Stream, step_draws
from ..numpy.shape import broadcast_to
from ..repeats import Meaning, repeatable
from ..tracing import ITS_OWN, TraceResult, beside_threads, describe, held, in_mode, in_step, refuse_changed, trace
from ..tree import Structure, n_leaves, paths, unflatten
from ..variable import Variable, as_variable, number_as
from .arguments import Arguments, Options, Taps
from .returns import Returned, check_number, check_state, parse_returned

ATTEMPTS = 8  # traces until the types of numbers given as initial values are settled; two suffice unless the step's rank grows


@dataclass(slots=True)
class OuterLeaf:
    """One array of a sequence or an initial value: the outer node, the type of a row, and the step's reads, by tap.

    `number`: an initial value given as a Python number; `outer` and `row` then take the type of the step's result.
    """

    outer: Node
    row: TensorType
    label: str
    number: Variable | None = None
    reads: tuple[Node, ...] = ()


@dataclass(slots=True)
class Group:
    """One sequence or initial value: a nest of leaves with common taps. `has_axis`: its arrays have a leading axis of rows."""

    structure: Structure
    taps: Taps
    has_axis: bool
    leaves: list[OuterLeaf]


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A step after its last trace; `mark` is that of the first."""

    seqs: tuple[Group, ...]
    states: tuple[Group | None, ...]  # one for each output, None if it is not recurrent; empty if no output is
    non_seqs: tuple[Node, ...]
    returned: Returned
    trace: TraceResult
    mark: int
    draws: dict[Stream, Counter]


class StepTracer:
    """Traces a step function on given arguments."""

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, variables: Sequence[Variable], options: Options) -> None:
        self.fn, self.options = fn, options
        self.scan = f"scan {options.name!r}"
        self.where = f"{self.scan}: the step {describe(fn)}"
        self.outs = arguments.outs
        self.given = variables
        leaves = iter(variables)
        self.seqs = [self._sequence(k, structure, taps, leaves) for k, (structure, taps) in enumerate(arguments.seqs)]
        self.states = [
            None if structure is None else self._initial(k, structure, taps, has_axis, leaves)
            for k, (structure, taps, has_axis) in enumerate(arguments.outs or ())
        ]
        self.nons = [(structure, [next(leaves) for _ in range(n_leaves(structure))]) for structure in arguments.nons]
        self.names = self._parameter_names()

    def run(self, bind: bool = False, before: Numbers | None = None) -> TracedStep:
        """The traced step; traced again as long as a number among the initial values changes its type. `bind`, `before`: see `trace`."""
        marks = []
        # all traces share one input per captured array: the shape of an initial value may come from an earlier trace
        arrays: dict[Node, Any] = {}
        for _ in range(ATTEMPTS):
            traced, counters, reads = beside_threads(partial(repeatable, self.fn, partial(self._traced, bind, before, arrays)))
            arrays |= traced.arrays
            for leaf, of_leaf in zip(self._leaves(), reads, strict=True):
                leaf.reads = of_leaf
            marks.append(traced.mark)
            returned = parse_returned(traced.value, self.outs, self.where)
            if not self._numbers_changed(returned, counters):
                self._check_states(returned)
                if counters and traced.guards is not None:
                    traced = replace(traced, guards=DrawGuards(traced.guards))
                non_seqs = tuple(variable.node for _, variables in self.nons for variable in variables)
                return TracedStep(tuple(self.seqs), tuple(self.states), non_seqs, returned, traced, marks[0], counters)
        raise TypeError(
            f"{self.where} gives an output another type at each trace, and its initial value is a number that follows; "
            "give an array of the dtype and shape of the result"
        )

    def _traced(
        self, bind: bool, numbers: Numbers | None, arrays: dict[Node, Any]
    ) -> tuple[tuple[TraceResult, dict[Stream, Counter], list[tuple[Node, ...]]], Callable[[], Meaning]]:
        """One trace of the step, its draws by stream, and the reads of each leaf; and a function that gives the trace's meaning."""
        arrays = dict(arrays)
        arguments = self._fresh_arguments()
        first = len(arguments) - len(self.nons)
        before = held(arguments[first:])
        with in_mode(self.options.trace_mode()), in_step(self.fn, self.scan), step_draws() as draws:
            traced = trace(self.fn, arguments, bind=bind, placeholders=self._placeholders(bind), arrays=arrays, before=numbers)
        refuse_changed(self.where, self.names[first:], arguments[first:], before)
        reads = [leaf.reads for leaf in self._leaves()]
        own = [*self._placeholders(False), *(read for counter in draws.counters.values() for read in counter.reads)]

        def meaning() -> Meaning:
            returned = parse_returned(traced.value, self.outs, self.where)
            nodes = [node for _, nodes in returned.outputs for node in nodes] + [node for _, node in returned.updates]
            updated = [id(variable) for variable, _ in returned.updates]
            rest = [structure for structure, _ in returned.outputs], updated, [*map(id, draws.counters)], returned.until is None
            return Meaning(own, nodes if returned.until is None else [*nodes, returned.until], traced.arrays, rest)

        return (traced, draws.counters, reads), meaning

    def _placeholders(self, bind: bool) -> Iterator[Node]:
        """The inputs that belong to this trace alone: the step's reads; with `bind` (an immediate call) also the arguments."""
        yield from (read for leaf in self._leaves() for read in leaf.reads)
        if bind:
            yield from (variable.node for variable in self.given)

    # arguments ------------------------------------------------------------------------------------------------------

    def _sequence(self, k: int, structure: Structure, taps: Taps, variables: Iterator[Variable]) -> Group:
        leaves = []
        for label in paths(structure, f"sequences[{k}]"):
            variable = next(variables)
            if not variable.ndim:
                raise TypeError(
                    f"{self.scan}: {label} ({variable.name or variable.type}) is a scalar, without a leading axis to run over; "
                    f"give an array, or pass it in non_sequences{a_list('sequences', [variable])}"
                )
            leaves.append(OuterLeaf(variable.node, row_of(variable.type).strong(), label))
        return Group(structure, taps, True, leaves)

    def _initial(self, k: int, structure: Structure, taps: Taps, has_axis: bool, variables: Iterator[Variable]) -> Group:
        leaves = []
        for label in paths(structure, f"outputs_info[{k}]"):
            variable = next(variables)
            if not has_axis:
                leaves.append(OuterLeaf(variable.node, variable.type, label, variable if variable.type.weak else None))
                continue
            depth = -min(taps)
            _check_initial_axis(variable, taps, f"{self.scan}: {label}")
            # a longer one is read from its start: the first `depth` rows
            rows = variable if variable.type.shape[0] == depth else variable[:depth]
            leaves.append(OuterLeaf(rows.node, row_of(variable.type).strong(), label))
        return Group(structure, taps, has_axis, leaves)

    def _groups(self) -> list[Group]:
        return [*self.seqs, *(group for group in self.states if group is not None)]

    def _leaves(self) -> list[OuterLeaf]:
        return [leaf for group in self._groups() for leaf in group.leaves]

    def _parameter_names(self) -> list[str | None]:
        """A name for each argument of the step, from its signature (None for a builtin). TypeError if it does not take them."""
        labels = [f"sequence {k} at tap {tap}" for k, group in enumerate(self.seqs) for tap in group.taps]
        labels += [f"output {k} at tap {tap}" for k, group in enumerate(self.states) if group for tap in group.taps]
        labels += [f"non-sequence {k}" for k in range(len(self.nons))]
        try:
            signature = inspect.signature(self.fn)
        except (TypeError, ValueError):  # a builtin or a ufunc
            return [None] * len(labels)
        try:
            bound = signature.bind(*labels)
        except TypeError as error:
            listed = ", ".join(labels) or "none"
            outers = [Variable(leaf.outer) for group in self.states if group for leaf in group.leaves]
            hint = a_list("outputs", outers) if len(outers) > 1 else ""
            raise TypeError(f"{self.where} cannot take its arguments ({listed}): {error}{hint}") from None
        names: list[str | None] = []
        for name, value in bound.arguments.items():
            names += [f"{name}_{k}" for k in range(len(value))] if isinstance(value, tuple) else [name]
        return names

    def _fresh_arguments(self) -> list[Any]:
        """The step's arguments, made of new reads."""
        names = iter(self.names)
        arguments: list[Any] = []
        for group in self._groups():
            columns = []
            for _ in group.taps:
                labels = paths(group.structure, next(names) or "")
                columns.append([new_input(leaf.row, label or None) for leaf, label in zip(group.leaves, labels, strict=True)])
                arguments.append(unflatten(group.structure, [self._read(group, node) for node in columns[-1]]))
            for leaf, reads in zip(group.leaves, zip(*columns, strict=True), strict=True):
                leaf.reads = reads
        return arguments + [unflatten(structure, variables) for structure, variables in self.nons]

    def _read(self, group: Group, node: Node) -> Variable:
        """A row as the step gets it: a state's row is the step's own, a sequence's row may not be written."""
        row = Variable(node)
        is_state = any(group is state for state in self.states)
        row.home = ITS_OWN if is_state else f"a sequence of {self.scan}"
        return row

    # results --------------------------------------------------------------------------------------------------------

    def _recurrent(self, returned: Returned) -> Iterator[tuple[Group, OuterLeaf, Node]]:
        """Each leaf of a state, with the step's result for it."""
        for group, (_, writes) in zip(self.states, returned.outputs, strict=False):
            if group is not None:
                for leaf, write in zip(group.leaves, writes, strict=True):
                    yield group, leaf, write

    def _numbers_changed(self, returned: Returned, draws: dict[Stream, Counter]) -> bool:
        """Gives initial values that are numbers the type of the step's result. True if a type changed."""
        numbers = [(leaf, write) for _, leaf, write in self._recurrent(returned) if leaf.number is not None]
        news = [(leaf, write) for leaf, write in numbers if leaf.row not in (write.type, write.type.strong())]
        changes = [(leaf, write.type.strong(), self._number_as(leaf, write, draws)) for leaf, write in news]
        for leaf, row, outer in changes:
            leaf.row, leaf.outer = row, outer
        return bool(changes)

    def _number_as(self, leaf: OuterLeaf, write: Node, draws: dict[Stream, Counter]) -> Node:
        """The number with dtype and shape of `write`, in the graph around the loop."""
        assert leaf.number is not None
        check_number(leaf.number, write, leaf.reads[0].name, f"{self.scan}: {leaf.label}")
        cast = number_as(leaf.number, write.type.dtype)
        if not write.type.rank:
            return cast.node
        if write.type.size is not None:
            return broadcast_to(cast, write.type.shape).node
        numbers = {read: constant(0, read.type.dtype) for draw in draws.values() for read in draw.reads}
        (row,) = substitute((write,), self._rows_outside() | numbers)
        return broadcast_to(cast, Variable(row).shape).node

    def _rows_outside(self) -> dict[Node, Node]:
        """For each read a node of its shape in the graph around the loop. Zeros for rows: a sequence may have none."""
        rows: dict[Node, Node] = {}
        for group in self._groups():
            for leaf in group.leaves:
                outer = Variable(leaf.outer)
                if group.has_axis:
                    outer = broadcast_to(as_variable(np.zeros((), leaf.row.dtype)), outer.shape[1:])
                rows.update((read, outer.node) for read in leaf.reads)
        return rows

    def _check_states(self, returned: Returned) -> None:
        for group, leaf, write in self._recurrent(returned):
            check_state(leaf.row, write, group.has_axis, leaf.reads[0].name, f"{self.scan}: {leaf.label}", self.fn)


def a_list(kind: str, values: Sequence[Variable]) -> str:
    """A hint for messages: numbers in a list may have been meant as one array. Empty if none is a number."""
    if not any(value.type.weak for value in values):
        return ""
    return f"; a list means several {kind}: for one of numbers write np.array([...])"


def _check_initial_axis(variable: Variable, taps: Taps, where: str) -> None:
    """ValueError unless the initial value has a leading axis; also if it is known to be too short for the taps."""
    depth = -min(taps)
    if not variable.ndim:
        raise ValueError(
            f"{where} with taps {list(taps)} needs an initial value with a leading axis of {depth} rows, oldest first; it is a scalar "
            f"({variable.type}): write np.full({depth}, x0)"
        )
    rows = variable.type.shape[0]
    if rows is not None and rows < depth:
        raise ValueError(f"{where}: the initial value has {rows} rows along its leading axis, but taps {list(taps)} need {depth}")
