"""`ns.scan`, and ScanFunction, which it makes of a step alone."""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Unpack, overload

from ...checkpoint import Checkpoint
from ...ir.node import Node
from ...modes import Mode
from ...ops.card import at_line
from ...progress import Show, checked_progress
from ...tracebacks import shorten, with_entries
from ..converted.source import converted_text
from ..export import Exportable, export, njit_of
from ..methods import PerInstance, as_attribute, bound_to, is_function
from ..notebook import as_html
from ..shared import SharedVariable
from ..tracing import name_in_module, refuse_leaked
from ..tree import Nest
from ..variable import Variable, as_variable
from .arguments import (
    ARGUMENTS,
    KEYWORDS,
    Arguments,
    NonSequences,
    Options,
    OutputsInfo,
    ScanDefaults,
    ScanOptions,
    Sequences,
    Steps,
    make_options,
    read_n_steps,
    step_name,
)
from .compiled import CompiledScan, CompiledScans, QuickTable, missing_values, nested_outputs, quick_call
from .immediate import Given, Keywords, run_known, run_now
from .loop import LoopMaker
from .trace import StepTracer
from .updates import OrderedUpdates


@overload
def scan(fn: Callable[..., Any], **options: Unpack[ScanOptions]) -> ScanFunction: ...


@overload
def scan(fn: None = None, **defaults: Unpack[ScanDefaults]) -> Callable[[Callable[..., Any]], ScanFunction]: ...


@overload
def scan(
    fn: Callable[..., Any],
    sequences: Sequences = None,
    outputs_info: OutputsInfo = None,
    non_sequences: NonSequences = None,
    n_steps: Steps | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Mode | str | None = None,
    name: str | None = None,
    profile: bool | str = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
    *,
    keep_last: int | list[int | None] | None = None,
    save_every: int = 1,
    checkpoint: int | str | Checkpoint | None = None,
    progress: bool | Show = False,
) -> Any: ...


def scan(
    fn: Callable[..., Any] | None = None,
    sequences: Sequences = None,
    outputs_info: OutputsInfo = None,
    non_sequences: NonSequences = None,
    n_steps: Steps | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Mode | str | None = None,
    name: str | None = None,
    profile: bool | str = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
    *,
    keep_last: int | list[int | None] | None = None,
    save_every: int = 1,
    checkpoint: int | str | Checkpoint | None = None,
    progress: bool | Show = False,
) -> Any:
    """Runs `fn` over the rows of sequences and its own earlier results; the results of all steps, stacked along a new first axis.

    With a step alone (or none: `@ns.scan(n_steps=10)`) it is a decorator and gives a ScanFunction. With arrays and numbers it runs now and
    gives NumPy results. With anything symbolic it gives Variables.

    The step gets, in this order: for each sequence the rows at its taps; for each recurrent output its rows at its taps; the
    non-sequences as they are. It returns an output, a list or tuple of outputs, a dict of updates, `ns.until(condition)`, or
    `(outputs, updates)`, `(outputs, until)`, `(updates, until)`, `(outputs, updates, until)`; several outputs stand in a list, or flat
    before updates and until.

    Arguments:
        fn: the step, ordinary NumPy code. It is called with Variables when it is traced, not once for each step.
        sequences: arrays of shape (rows, ...), or dict(input=x, taps=[-1, 0]); one alone or a list. The step reads x[t + tap].
        outputs_info: one entry for each output: its initial value (the step reads the latest result), dict(initial=x0, taps=[-2, -1])
            where x0 has a leading axis with the oldest row first, or None where the step does not read the output.
        non_sequences: what the step gets unchanged; one alone or a list. Arrays and variables that it merely uses are found without this.
        n_steps: how many steps, an int or an integer scalar variable; None: as many as the shortest sequence allows.
        truncate_gradient: the number of steps that derivatives go back through; -1: all.
        go_backwards: sequences are read from the end.
        mode: None or "numba" (compiled), "python" (one step at a time), "debug" (both, compared), "cuda", or an ns.Mode.
        name: for messages, graphs, profiles and generated code; the step's name if None.
        profile: measure tracing, compiling and running. allow_gc: accepted; work space costs a call nothing.
        strict: refuse a step that uses variables without being given them.
        return_list: outputs as a list also where there is one. return_updates: False gives the outputs alone; ValueError if there are
            updates. The advance of random streams is no such update: `stream.updates()` has it, too.
        keep_last: only the last k rows; 1 drops the axis. A list has one entry for each output, None for all its rows.
        save_every: only the rows k-1, 2k-1, ...
        checkpoint: how much of the path derivatives store: None, an int, or "auto".
        progress: True shows steps, rate and time left on the standard error while a loop runs; a function is called instead, with the
            number of steps done and of all, twice a second and at the end. It changes no result, and says nothing of symbolic loops.

    Any argument of the step may be a nest of tuples, lists and dicts; the step gets and returns it as such.

    Returns `(outputs, updates)`: one output or a list of them, and a dict from shared variables to their values after the last step.

    Raises ValueError for arguments that do not fit together, ScanTypeError (a TypeError and a ValueError) where initial value and result
    differ in type, TypeError for what is no array, MissingInputError under `strict`.

    >>> import numbascan as ns, numpy as np
    >>> total, updates = ns.scan(
    ...     lambda x, s: s + x, sequences=np.array([1.5, 2.0, 4.0]), outputs_info=0
    ... )
    >>> total
    array([1.5, 3.5, 7.5])
    """
    given = (sequences, outputs_info, non_sequences, n_steps)
    how = (truncate_gradient, go_backwards, mode, name, profile, allow_gc, strict, return_list, return_updates)
    keywords = (*how, keep_last, save_every, checkpoint)
    try:
        results = run_known(fn, given, keywords) if type(fn) is types.FunctionType and progress is False else None
        return _scan(fn, given, keywords, progress) if results is None else results[0]
    except Exception as error:
        shorten(error)
        raise


def _scan(fn: Callable[..., Any] | None, given: Given, values: Keywords, progress: Any) -> Any:
    keywords = dict(zip(KEYWORDS, values, strict=True))
    if fn is None or (all(value is None for value in given) and is_function(fn)):
        said = _not_default(dict(zip(ARGUMENTS, given, strict=True), progress=progress, **keywords))
        if isinstance(fn, ScanFunction):
            return ScanFunction(fn.__wrapped__, {**fn._defaults, **said})
        return ScanFunction(fn, said) if fn is not None else lambda step: ScanFunction(step, said)
    if not callable(fn):
        raise TypeError(f"ns.scan: the step is {fn!r}, which cannot be called; write ns.scan(step, sequences=...)")
    if isinstance(fn, ScanFunction):
        fn = fn.__wrapped__
    options = make_options(fn, keywords)
    arguments = Arguments(*given[:3], options.name)
    steps = read_n_steps(given[3], arguments, options.name)
    if not arguments.is_symbolic() and not isinstance(steps, Variable):
        results = run_now(fn, given, values, arguments, steps, options, checked_progress(progress, options.name))
        if results is not None:
            return results[0]
    return symbolic(fn, arguments, steps, options)


_DEFAULTS = {parameter.name: parameter.default for parameter in inspect.signature(scan).parameters.values()}


def _not_default(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords that are not at their defaults: a ScanFunction holds only what was given."""
    return {key: value for key, value in keywords.items() if value is not _DEFAULTS[key]}


def symbolic(fn: Callable[..., Any], arguments: Arguments, steps: int | Variable | None, options: Options) -> Any:
    """The scan as part of a graph: `(outputs, updates)`, or the outputs alone."""
    options = options.for_graph()
    tracer = StepTracer(fn, arguments, [as_variable(leaf) for leaf in arguments.leaves], options)
    maker = LoopMaker(tracer.run(), options)
    if maker.carries and not options.return_updates:
        raise lost_updates(maker.carries, options.name)
    outside = [*maker.captured, *(variable.node for variable in tracer.given)]
    refuse_leaked(outside, f"scan {options.name!r}")
    one = type(steps) is int and steps == 1 and options.mode is None  # a mode needs a loop: it is a note of the loop
    results = maker.one_step() if one else maker.loop(maker.n_steps(steps))
    outputs = nested_outputs(results, options)
    return (outputs, OrderedUpdates(results.updates)) if options.return_updates else outputs


def lost_updates(carries: list[tuple[SharedVariable, Node]], name: str) -> ValueError:
    """The error for updates that would be lost."""
    names = ", ".join(shared.name or repr(shared) for shared, _ in carries)
    return ValueError(
        f"scan {name!r}: return_updates=False, but the step updates {names}, which would be lost; write outputs, updates = ns.scan(...) "
        "and ns.function(..., updates=updates), or call a ScanFunction (@ns.scan) with arrays, which applies them"
    )


Tables = tuple[CompiledScans, QuickTable, dict[Options, QuickTable]]


def _tables() -> Tables:
    """Empty tables: compiled kinds, quick calls, and quick calls by their own options."""
    return CompiledScans(), QuickTable(), {}


@with_entries(but=("__call__",))
class ScanFunction:
    """A step function compiled to a loop. `__wrapped__` is the step. In a class it is a method: the step gets `self` first.

    >>> import numbascan as ns, numpy as np
    >>> @ns.scan
    ... def decay(y, rate):
    ...     return y * rate
    >>> decay(outputs_info=np.array([8.0, 2.0]), non_sequences=0.5, n_steps=2)
    array([[4. , 1. ],
           [2. , 0.5]])
    """

    def __init__(self, fn: Callable[..., Any], defaults: dict[str, Any] | None = None) -> None:
        if not is_function(fn):
            raise TypeError(f"ns.scan: the step is {fn!r}, which cannot be called")
        self.__name__ = self.__qualname__ = step_name(fn)
        functools.update_wrapper(self, fn, updated=())
        self.__wrapped__ = fn
        self._defaults = dict(defaults or {})
        self._arguments = {key: value for key, value in self._defaults.items() if key in ARGUMENTS}
        self._keywords = {key: value for key, value in self._defaults.items() if key not in (*ARGUMENTS, "progress")}
        self._options = make_options(fn, self._keywords)
        self._progress = checked_progress(self._defaults.get("progress", False), self._options.name)
        self._methods: PerInstance[Tables] = PerInstance(_tables)
        self._use(_tables())

    def _use(self, tables: Tables) -> None:
        """Makes these the tables in which compiled code is looked up and stored."""
        self._compiled, self._quick, self._tables = tables

    def __get__(self, instance: Any, owner: type | None = None) -> ScanFunction:
        """The loop of the bound step. Each instance has its own compiled code, freed with the instance."""
        step = bound_to(self.__wrapped__, instance, owner)
        if not isinstance(step, types.MethodType) or step is self.__wrapped__:
            return self
        method = object.__new__(ScanFunction)
        vars(method).update(vars(self), __wrapped__=step)
        method._use(self._methods.of(step.__self__))
        return method

    @property
    def name(self) -> str:
        return self._options.name

    def __call__(
        self,
        sequences: Sequences = None,
        outputs_info: OutputsInfo = None,
        non_sequences: NonSequences = None,
        n_steps: Steps | None = None,
        out: Nest = None,
        progress: bool | Show | None = None,
        **options: Unpack[ScanOptions],
    ) -> Any:
        """The outputs alone. Arguments as for `ns.scan`; what is None or left out is as the decorator was given it.

        out: an array, or a nest of arrays as the outputs are, to write into. Called on Variables it is symbolic.

        Ctrl-C stops a loop that runs on the main thread within a second: KeyboardInterrupt, or what another handler of signals raises.
        Shared variables are then as they were, and `out` is as the steps that ran have left it.
        """
        try:
            if self._arguments:
                sequences, outputs_info, non_sequences, n_steps = self._filled(sequences, outputs_info, non_sequences, n_steps)
            chosen = self._options if not options else self._chosen(options)
            progress = self._progress if progress is None else checked_progress(progress, chosen.name)
            quick = quick_call(sequences, outputs_info, non_sequences, n_steps)
            if quick is None:
                return self._call(Arguments(sequences, outputs_info, non_sequences, chosen.name), n_steps, chosen, out, progress, options)[
                    0
                ]
            key, values = quick
            table = self._quick if not options else self._tables.setdefault(chosen, QuickTable())  # hashing options is slow
            known = table.get(key)
            if known is not None and known[0].is_current():
                self._compiled.latest = known[0]
                return known[0].run(values, out, known[1], progress)
            arguments = Arguments(sequences, outputs_info, non_sequences, chosen.name)
            result, compiled = self._call(arguments, n_steps, chosen, out, progress, options)
            if compiled is not None:
                table.add(key, compiled, values if n_steps is None else values[1:], arguments.leaves)
            return result
        except Exception as error:
            shorten(error)
            raise

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"scan {self.name!r}{at_line()}: ns.scan of a step alone makes a function, which has no results yet; call it, as "
            f"{self.__name__}(sequences=…), or give ns.scan sequences, outputs_info or n_steps"
        )

    def _filled(self, *values: Any) -> list[Any]:
        """The arguments of a call; those of the decorator replace None."""
        return [self._arguments.get(key) if value is None else value for key, value in zip(ARGUMENTS, values, strict=True)]

    def _chosen(self, options: ScanOptions | dict[str, Any]) -> Options:
        return make_options(self.__wrapped__, {**self._keywords, **options})

    def _call(
        self, arguments: Arguments, n_steps: Any, chosen: Options, out: Any, progress: bool | Show, options: ScanOptions
    ) -> tuple[Any, CompiledScan | None]:
        """The long way, for arguments of any form: the result, and the kind that computed it; None for a symbolic call."""
        steps = read_n_steps(n_steps, arguments, chosen.name)
        if not (arguments.is_symbolic() or isinstance(steps, Variable)):
            compiled = self._compiled.find(self.__wrapped__, arguments, steps is not None, chosen)
            if not compiled.symbolic:
                return compiled.run(arguments.values(steps), out, progress=progress), compiled
        if out is not None:
            raise TypeError(f"scan {chosen.name!r}: out= takes the results of a run, but this call is symbolic; leave it out")
        return self._in_graph(arguments, steps, chosen, options.get("return_updates", self._keywords.get("return_updates"))), None

    def _in_graph(self, arguments: Arguments, steps: Any, options: Options, with_updates: bool | None) -> Any:
        """The outputs if `with_updates` is None or False, else (outputs, updates). TypeError for updates if it is None."""
        result = symbolic(self.__wrapped__, arguments, steps, replace(options, return_updates=with_updates is not False))
        if with_updates is not None:
            return result
        outputs, updates = result
        if updates:
            names = ", ".join(shared.name or repr(shared) for shared in updates)
            raise TypeError(
                f"scan {options.name!r} updates {names}, which a symbolic call cannot do by itself; pass return_updates=True for "
                "(outputs, updates)"
            )
        return outputs

    # what was compiled ----------------------------------------------------------------------------------------------

    def lower(
        self, sequences: Any = None, outputs_info: Any = None, non_sequences: Any = None, n_steps: Any = None, **options: Any
    ) -> ScanFunction:
        """Itself, traced and compiled for arguments like these. Nothing runs."""
        chosen = self._chosen(options)
        sequences, outputs_info, non_sequences, n_steps = self._filled(sequences, outputs_info, non_sequences, n_steps)
        arguments = Arguments(sequences, outputs_info, non_sequences, chosen.name)
        steps = read_n_steps(n_steps, arguments, chosen.name)
        if arguments.is_symbolic() or isinstance(steps, Variable):
            raise TypeError(f"scan {chosen.name!r}: lower() needs arrays and numbers; for a variable give an array of its dtype and shape")
        compiled = self._compiled.find(self.__wrapped__, arguments, steps is not None, chosen)
        if compiled.symbolic:
            raise missing_values(compiled, chosen.name)
        compiled.prepare(arguments.values(steps))
        self._compiled.lowered = compiled
        return self

    @property
    def is_compiled(self) -> bool:
        """True once some kind of argument was compiled."""
        return self._compiled.latest is not None

    def _latest(self) -> CompiledScan:
        compiled = self._compiled.latest
        if compiled is None:
            raise ValueError(f"scan {self.name!r} has not been compiled yet; call it, or {self.__name__}.lower(...), with arguments first")
        return compiled

    def source(self, target: str = "cpu") -> str:
        """The generated code for the latest kind of argument; of target 'python' what the step became (`front/converted`)."""
        return converted_text(self.__wrapped__) if target == "python" else self._latest().runner.program.source(target)

    @property
    def graph(self) -> Any:
        """The graph of the latest kind of argument."""
        return self._latest().graph

    def memory(self) -> Any:
        """Bytes stored for results and work space, for the latest kind of argument."""
        return self._latest().runner.program.memory()

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Writes a Python module that needs NumPy and Numba alone, with this loop for one kind of argument.

        Its function takes what the step takes, by the names of the step's parameters: the sequence for its rows, the initial value for
        earlier results, nests leaf by leaf; the number of steps comes last, if it was given. The kind is that given to `lower` last, or the
        only one seen. What the step reads from outside, and the states of the streams that it draws from, are written in as they are now.
        Beside the function for Python stands `name_njit`, as `.njit` gives it.

        Returns the path. Raises ValueError where there is no kind, or one of several; NotImplementedError, before anything is written, for
        updates of shared variables and for operations that need SciPy, LAPACK or a GPU.

        >>> import numbascan as ns, numpy as np, tempfile
        >>> @ns.scan
        ... def decay(y, rate):
        ...     return y * rate
        >>> decay = decay.lower(outputs_info=np.array([8.0, 2.0]), non_sequences=0.5, n_steps=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = decay.export(f"{folder}/model.py").read_text()
        >>> [line for line in text.splitlines() if line.startswith("def decay(")]
        ['def decay(y, rate, n_steps):']
        """
        return export(self._exportable(), path)

    @property
    def njit(self) -> Any:
        """The function for code that Numba compiles, for one kind of argument as `export` takes it; it raises what `export` raises.

        It takes arrays and numbers of the step's dtypes, in the order of `export`, and gives a result or a tuple of results.

        >>> import numba, numbascan as ns, numpy as np
        >>> @ns.scan
        ... def decay(y, rate):
        ...     return y * rate
        >>> steps = decay.lower(outputs_info=1.0, non_sequences=0.5, n_steps=2).njit
        >>> @numba.njit
        ... def last(rate):
        ...     return steps(8.0, rate, 3)[-1]
        >>> last(0.5)
        1.0
        """
        return njit_of(self._exportable())

    def _exportable(self) -> Exportable:
        _, compiled = self._compiled.to_export(self.name)
        return compiled.to_export()

    @property
    def profile(self) -> Any:
        """Where the time went, for the latest kind of argument, with `profile=True`; None without."""
        compiled = self._compiled.latest
        return None if compiled is None else compiled.runner.program.profile

    def __reduce__(self) -> Any:
        return as_attribute(self) or name_in_module(self) or (ScanFunction, (self.__wrapped__, self._defaults))

    def __repr__(self) -> str:
        return f"<scan {self.name}: {len(self._compiled)} kinds of arguments>"

    def _repr_html_(self) -> str:
        return as_html(self, self.__wrapped__, self._compiled.described())
