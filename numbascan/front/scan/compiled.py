"""A step compiled once for each kind of argument: the inputs and outputs of its code, and how a call finds it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...compile import key_of, laid_out, remember
from ...errors import MissingInputError
from ...ir.graph import Graph, close, free_inputs
from ...ir.names import Names
from ...ir.node import CONSTANT, Node, named, new_input
from ...modes import Mode
from ...progress import Show, shown
from ...types import TensorType, show_shape
from ..captures.numbers import Numbers
from ..captures.twins import Twin, read_by
from ..export import Exportable
from ..runner import Runner, as_captured, assembled
from ..shared import SeededContainer, shared_of
from ..specialisation import Specialisations, Types
from ..tree import LEAF, Structure, alike, describe, flatten, n_leaves, paths, unflatten
from ..variable import Variable
from .arguments import Arguments, Options
from .loop import LoopMaker, Results
from .trace import StepTracer

_STEPS = TensorType("int64")


def nested_outputs(results: Results, options: Options) -> Any:
    """The outputs as scan returns them, with rows thinned as asked: a single one without a list unless `return_list`, None for none."""
    each = options.keep_last if isinstance(options.keep_last, tuple) else (options.keep_last,) * len(results.outputs)
    if len(each) != len(results.outputs):
        raise ValueError(
            f"scan {options.name!r}: keep_last has {len(each)} {'entry' if len(each) == 1 else 'entries'}, but the number of outputs is "
            f"{len(results.outputs)}; give one entry for each output (None: all its rows), or one number for all"
        )
    kept = zip(results.outputs, each, strict=True)
    outputs = [unflatten(structure, [kept_rows(leaf, k, options.save_every) for leaf in leaves]) for (structure, leaves), k in kept]
    if options.return_list or len(outputs) > 1:
        return outputs
    return outputs[0] if outputs else None


def kept_rows(rows: Variable, keep_last: int | None, save_every: int) -> Variable:
    """The rows that `keep_last` and `save_every` leave."""
    if keep_last is not None:
        return rows[-1] if keep_last == 1 else rows[-keep_last:]
    return rows if save_every == 1 else rows[save_every - 1 :: save_every]


class CompiledScan:
    """A step compiled for one kind of argument. Inputs of its graph: n_steps (if given), leaves, captured arrays, shared variables."""

    def __init__(
        self,
        fn: Callable[..., Any],
        arguments: Arguments,
        types: Sequence[TensorType],
        has_n_steps: bool,
        options: Options,
        before: Numbers | None = None,
    ) -> None:
        start = time.perf_counter()
        steps = new_input(_STEPS, "n_steps")
        inputs = [new_input(type_) for type_ in types]
        tracer = StepTracer(fn, arguments, [Variable(node) for node in inputs], options)
        _name_inputs(tracer, arguments, inputs)
        traced = tracer.run(bind=True, before=before)
        maker = LoopMaker(traced, options)
        self.arrays = as_captured(traced.trace.arrays)
        self.guards, self.numbers = traced.trace.guards, traced.trace.numbers
        known = {*inputs, *traced.trace.arrays}
        shared = [variable for node in maker.captured if (variable := shared_of(node)) is not None]
        shared += [variable for variable, _ in maker.carries]
        known |= {node for node in maker.captured if node.op is CONSTANT or shared_of(node) is not None}
        self.symbolic = [node for node in maker.captured if node not in known and not _is_made_here(node, known, maker.step.mark)]
        self.shared = shared
        self.has_states = not all(isinstance(variable.container, SeededContainer) for variable in shared)  # they last from call to call
        self.read: object = None  # a copy of what the step read; None unless it was still the same after tracing
        if self.symbolic:
            return
        self._may_end = maker.step.returned.until is not None
        taps = [taps for structure, taps in arguments.seqs for _ in range(n_leaves(structure))]
        self._spans = None if has_n_steps else [max(0, *taps) - min(0, *taps) for taps in taps]
        results = maker.loop(maker.n_steps(Variable(steps) if has_n_steps else None))
        self._finish(results, [*([steps] if has_n_steps else []), *inputs, *traced.trace.arrays], options)
        profile = self.runner.program.profile
        if profile is not None:
            profile.trace += time.perf_counter() - start

    def _finish(self, results: Results, inputs: list[Node], options: Options) -> None:
        leaves: list[Any] = []
        self.structure: Structure = flatten(nested_outputs(results, options), leaves)
        self._assembled = assembled(self.structure)
        updates = results.updates
        nodes = [leaf.node for leaf in leaves] + [variable.node for variable in updates.values()]
        self.graph: Graph = close([*inputs, *(variable.node for variable in self.shared)], nodes, own_names=True)
        self.runner = Runner(self.graph, options.mode or Mode(), options.name, self.shared, tuple(updates), False, bool(options.profile))
        self.out_types = [leaf.type for leaf in leaves]
        self.options = options

    def run(self, values: list[Any], out: Any = None, key: Any = None, progress: bool | Show = False) -> Any:
        """The outputs as a nest of arrays. values: the inputs up to captured arrays; key: the key of their kind, if known."""
        if progress:
            if out is None:
                self.prepare(values)  # compiling must not count in the rate of steps
            with shown(progress, self.options.name, self._n_steps(values), self._may_end):
                return self.run(values, out, key)
        if out is None:
            results = self.runner.run([*values, *self.arrays] if self.arrays else values, None, key)
        else:
            arrays = self.checked_out(out)
            results = self.runner.run([*values, *self.arrays], arrays)
        return self._assembled(results)

    def to_export(self) -> Exportable:
        """The loop for a module of its own. Parameters: what the step takes, by its names, then the number of steps."""
        n_inputs = len(self.graph.inputs) - len(self.arrays) - len(self.shared)
        first = 1 if self._spans is None else 0
        order = [*range(first, n_inputs), *range(first)]
        parameters = [(self.graph.inputs[k].name or f"argument_{k}", LEAF) for k in order]
        return Exportable(self.runner, parameters, order, self.arrays, self.structure, True)

    def _n_steps(self, values: list[Any]) -> int:
        """The number of steps, at most."""
        if self._spans is None:
            return int(values[0])
        return max(min(len(rows) - span for rows, span in zip(values, self._spans, strict=False)), 0)

    def prepare(self, values: list[Any]) -> None:
        """Compiles, without running."""
        self.runner.prepare([*values, *self.arrays])

    def is_current(self) -> bool:
        """True if what the step read from outside has not changed since the trace."""
        return self.guards is None or self.guards.hold()

    def take_over(self, before: CompiledScan) -> bool:
        """Takes over the code of an earlier trace if both led to the same graph. False if they did not; True if one of them has no code."""
        if not self.symbolic and not before.symbolic and self.graph == before.graph and len(self.shared) == len(before.shared):
            runner = before.runner.reading(self.shared, self.runner.targets)
            self.runner = runner or self.runner
            return runner is not None
        return bool(self.symbolic or before.symbolic)

    def checked_out(self, out: Any) -> list[np.ndarray]:
        """The arrays to write into, one per leaf of the outputs. TypeError or ValueError if one cannot hold its result."""
        arrays: list[Any] = []
        where = f"scan {self.options.name!r}: out"
        structure = flatten(out, arrays)
        if not alike(structure, self.structure) and not (isinstance(out, tuple) and alike(flatten(list(out), []), self.structure)):
            raise ValueError(
                f"{where} is {describe(structure)}, but the outputs are {describe(self.structure)}; give arrays in the same structure"
            )
        for label, array, type_ in zip(paths(self.structure, where), arrays, self.out_types, strict=True):
            _check_out(label, array, type_)
        if any(np.shares_memory(array, other) for k, array in enumerate(arrays) for other in arrays[:k]):
            raise ValueError(f"{where} holds arrays that share memory, so one result would overwrite the other; give each output its own")
        return arrays


def _is_made_here(node: Node, known: Collection[Node], mark: int) -> bool:
    """True if the step made a node again that existed before: one of constants alone, or of arrays that an earlier trace captured."""
    return node.latest >= mark and not free_inputs([node], known)


def _check_out(label: str, array: Any, type_: TensorType) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{label} is a {type(array).__name__}; give a NumPy array to write into, as np.empty(shape, {type_.dtype!r})")
    if array.dtype != np.dtype(type_.dtype):
        raise TypeError(f"{label} has dtype {array.dtype}, but the result is {type_.dtype}; give np.empty(shape, {type_.dtype!r})")
    if not array.flags.writeable:
        raise ValueError(f"{label} is read-only; give an array that can be written")
    if array.ndim != type_.rank or any(known not in (None, seen) for known, seen in zip(type_.shape, array.shape, strict=True)):
        raise ValueError(
            f"{label} has shape {array.shape}, but the result has shape {show_shape(type_.shape)}; give an array of that shape"
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{label} is not C-contiguous, or not aligned; give an array of its own, as np.empty(shape, {type_.dtype!r})")


def _name_inputs(tracer: StepTracer, arguments: Arguments, inputs: list[Node]) -> None:
    """Names the graph's inputs after the step's parameters. A leaf of a nest never gets the name of a parameter."""
    names, parameters = iter(tracer.names), Names(name for name in tracer.names if name)
    nodes = iter(inputs)
    trees: list[tuple[Structure, int]] = [(structure, len(taps)) for structure, taps in arguments.seqs]
    trees += [(structure, len(taps)) for structure, taps, _ in arguments.outs or () if structure is not None]
    trees += [(structure, 1) for structure in arguments.nons]
    for structure, n_names in trees:
        (root, *_) = [next(names) for _ in range(n_names)]
        for path in paths(structure, root or ""):
            node = next(nodes)
            path = parameters.fresh(path) if structure != LEAF and path in tracer.names else path
            named(node, path or None)


def missing_values(compiled: CompiledScan, name: str) -> MissingInputError:
    """The error for a step that uses variables without values."""
    names = ", ".join(node.name or str(node.type) for node in compiled.symbolic)
    return MissingInputError(f"scan {name!r}: the step uses {names}, which has no value here; compile the result with ns.function")


class CompiledScans(Specialisations[CompiledScan]):
    """The compiled kinds of one step. It holds no reference to the step, so that an unused step can be freed.

    like: the kinds of a step that differs in numbers alone, weakly referenced. A kind with the same graph is not compiled again.
    """

    def __init__(self, like: CompiledScans | None = None) -> None:
        super().__init__()
        self._like = weakref.ref(self if like is None else like)

    def _before(self, structure: Structure, types: Types) -> CompiledScan | None:
        """The kind that the like step was compiled to."""
        like = self._like()
        return None if like is None else like._by_types.get((structure, types))

    def find(
        self, fn: Callable[..., Any], arguments: Arguments, has_n_steps: bool, options: Options, twin: Twin | None = None
    ) -> CompiledScan:
        """The compiled kind for these arguments; traced now if there is none, or if what the step read from outside has changed.

        twin: the step with a copy of what it read, taken before tracing.
        """
        structure = options, has_n_steps, arguments.key
        key = structure, arguments.quick_key()
        compiled = self.get(key)
        if compiled is not None:
            return compiled

        def build(types: Types, _: bool, before: CompiledScan | None) -> tuple[CompiledScan, Types]:
            before = before or self._before(structure, types)
            built = CompiledScan(fn, arguments, types, has_n_steps, options, None if before is None else before.numbers)
            if before is not None and not built.take_over(before):
                self.note_fixed(before.guards, options.name)
            if twin is not None and not (built.symbolic or built.has_states):
                built.read = read_by(fn, twin)
            return built, types

        small = tuple(arguments.types())
        label = "" if options.mode is not None and options.mode.target == "python" else options.name
        compiled = self.add(key, structure, small, build, lambda: [f"array {k} of its arguments" for k in range(len(small))], label)
        assert compiled is not None
        return compiled


# the short way of a call ----------------------------------------------------------------------------------------------

_LISTS = (list, tuple)


def quick_call(sequences: Any, outputs_info: Any, non_sequences: Any, n_steps: Any) -> tuple[Any, list[Any]] | None:
    """A key that decides the kind, and the inputs of compiled code, in order; None if the call must take the long way.

    The short way is for arrays and floats that need no conversion, alone or in a flat list: of a known kind, they go straight to the
    compiled code. Everything else takes the long way, through `Arguments`.
    """
    if isinstance(n_steps, np.integer):
        n_steps = int(n_steps)
    if n_steps is not None and (type(n_steps) is not int or not 0 <= n_steps < 2**63):
        return None
    # `items_of` written out three times: a function call takes 50 ns
    rows = sequences if type(sequences) in _LISTS else () if sequences is None else (sequences,)
    initial = outputs_info if type(outputs_info) in _LISTS else () if outputs_info is None else (outputs_info,)
    constant = non_sequences if type(non_sequences) in _LISTS else () if non_sequences is None else (non_sequences,)
    others: Sequence[Any] = [*initial, *constant]
    kinds = key_of(others, rows)
    if kinds is None:
        rows, others = laid_out(rows), laid_out(others)
        kinds = key_of(others, rows)
        if kinds is None:
            return None
    return (n_steps is None, len(rows), len(initial), kinds), [*rows, *others] if n_steps is None else [n_steps, *rows, *others]


def _is_same(value: Any, prepared: Any) -> bool:
    """True if the long way took this value unconverted. An array in another layout was copied by both ways, so it need not be identical."""
    if value is prepared:
        return True
    return type(value) is type(prepared) is np.ndarray and value.dtype == prepared.dtype and value.shape == prepared.shape


class QuickTable:
    """Compiled code by the keys of `quick_call`, with a short key for each: a lookup by a long one takes 0.2 us."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[CompiledScan, object]] = {}
        self.get = self._known.get

    def add(self, key: Any, compiled: CompiledScan, values: list[Any], prepared: list[Any]) -> None:
        """Remembers the kind if its arguments needed no conversion."""
        if len(values) == len(prepared) and all(map(_is_same, values, prepared)):
            remember(self._known, key, (compiled, object()))
