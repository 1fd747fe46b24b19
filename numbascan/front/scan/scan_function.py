"""ScanFunction: what `@ns.scan` makes of a step. Traced and compiled once per kind of argument."""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import TracerBoolError, TracerError
from ..shared import SharedVariable
from ..specialisation import Kinds
from ..tracing import refuse_leaked
from ..variable import Variable, as_variable
from .arguments import Arguments, read_n_steps
from .compiled import CompiledScan, missing_values, nested_outputs
from .loop import LoopMaker
from .options import Options, make_options, step_name
from .quick import QuickTable, quick_call
from .trace import StepTracer

ARGUMENTS = ("sequences", "outputs_info", "non_sequences", "n_steps")


class OrderedUpdates(dict[SharedVariable, Variable]):
    """From shared variables to their values after the last step, in the order in which the step gave them."""


def symbolic(fn: Callable[..., Any], arguments: Arguments, steps: int | Variable | None, options: Options) -> Any:
    """The scan as part of a graph: `(outputs, updates)`, or the outputs alone."""
    options = options.for_graph()
    tracer = StepTracer(fn, arguments, [as_variable(leaf) for leaf in arguments.leaves], options)
    maker = LoopMaker(tracer.run(), options)
    outside = [*maker.captured, *(variable.node for variable in tracer.given)]
    refuse_leaked(outside, f"scan {options.name!r}")
    one = type(steps) is int and steps == 1
    results = maker.one_step() if one else maker.loop(maker.n_steps(steps))
    outputs = nested_outputs(results, options)
    return (outputs, OrderedUpdates(results.updates)) if options.return_updates else outputs


class Cache:
    """The compiled kinds of one step. It does not hold the step itself, so that a step that nobody holds can go."""

    def __init__(self) -> None:
        self.latest: CompiledScan | None = None  # for those who look at it; calls go by keys alone
        self._quick: dict[Any, CompiledScan] = {}
        self._compiled: dict[Any, CompiledScan] = {}
        self._kinds = Kinds()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._compiled)

    def find(self, fn: Callable[..., Any], arguments: Arguments, has_n_steps: bool, options: Options) -> CompiledScan:
        """The compiled kind for these arguments; traced now if there is none, or if what the step read from outside has changed."""
        key = options, has_n_steps, arguments.key, arguments.quick_key()
        compiled = self._quick.get(key)
        if compiled is None or not compiled.is_current():
            with self._lock:
                compiled = self._quick[key] = self._compile(fn, arguments, has_n_steps, options)
        self.latest = compiled
        return compiled

    def _compile(self, fn: Callable[..., Any], arguments: Arguments, has_n_steps: bool, options: Options) -> CompiledScan:
        structure, small = (options, has_n_steps, arguments.key), arguments.types()
        fitted = self._kinds.types(structure, small)
        before = self._compiled.get((structure, fitted))
        if before is not None and before.is_current():
            return before
        try:
            compiled = CompiledScan(fn, arguments, fitted, has_n_steps, options)
        except TracerBoolError:
            raise
        except TracerError:  # something that needs a fixed length, such as a Python loop over an array
            if tuple(small) == fitted:
                raise
            fitted = tuple(small)
            compiled = CompiledScan(fn, arguments, fitted, has_n_steps, options)
        if before is not None:
            compiled.take_over(before)
        self._compiled[structure, fitted] = compiled
        return compiled


_IMMEDIATE: weakref.WeakKeyDictionary[Callable[..., Any], Cache] = weakref.WeakKeyDictionary()


def run_now(fn: Callable[..., Any], arguments: Arguments, steps: int | None, options: Options) -> tuple[Any] | None:
    """The results of an immediate call, in a tuple of one; None where the step uses symbolic or shared variables."""
    cache = _IMMEDIATE.setdefault(fn, Cache()) if isinstance(fn, types.FunctionType) else Cache()
    compiled = cache.find(fn, arguments, steps is not None, options)
    if compiled.symbolic or compiled.shared:
        return None
    outputs = compiled.run(arguments.leaves if steps is None else [steps, *arguments.leaves])
    return ((outputs, OrderedUpdates()),) if options.return_updates else (outputs,)


class ScanFunction:
    """A step function compiled to a loop. `__wrapped__` is the step.

    >>> import numbascan as ns, numpy as np
    >>> @ns.scan
    ... def decay(y, rate):
    ...     return y * rate
    >>> decay(outputs_info=np.array([8.0, 2.0]), non_sequences=0.5, n_steps=2)
    array([[4. , 1. ],
           [2. , 0.5]])
    """

    def __init__(self, fn: Callable[..., Any], defaults: dict[str, Any] | None = None) -> None:
        if not callable(fn):
            raise TypeError(f"ns.scan: the step is {fn!r}, which cannot be called")
        self.__name__ = self.__qualname__ = step_name(fn)
        functools.update_wrapper(self, fn)
        self.__wrapped__ = fn
        self._defaults = dict(defaults or {})
        self._arguments = {key: value for key, value in self._defaults.items() if key in ARGUMENTS}
        self._keywords = {key: value for key, value in self._defaults.items() if key not in ARGUMENTS}
        self._options = make_options(fn, self._keywords)
        self._cache = Cache()
        self._quick = QuickTable()
        self._tables: dict[Options, QuickTable] = {}  # of calls with options of their own

    @property
    def name(self) -> str:
        return self._options.name

    def __call__(
        self,
        sequences: Any = None,
        outputs_info: Any = None,
        non_sequences: Any = None,
        n_steps: Any = None,
        out: Any = None,
        **options: Any,
    ) -> Any:
        """The outputs alone. Arguments as for `ns.scan`; what is None or left out is as the decorator was given it.

        out: an array, or a nest of arrays as the outputs are, to write into. Called on Variables it is symbolic.
        """
        if self._arguments:
            sequences, outputs_info, non_sequences, n_steps = self._filled(sequences, outputs_info, non_sequences, n_steps)
        chosen = self._options if not options else self._chosen(options)
        quick = quick_call(sequences, outputs_info, non_sequences, n_steps)
        if quick is None:
            return self._call(Arguments(sequences, outputs_info, non_sequences, chosen.name), n_steps, chosen, out, options)[0]
        key, values = quick
        table = self._quick if not options else self._tables.setdefault(chosen, QuickTable())  # to hash options takes time
        known = table.get(key)
        if known is not None and known[0].is_current():
            self._cache.latest = known[0]
            return known[0].run(values, out, known[1])
        arguments = Arguments(sequences, outputs_info, non_sequences, chosen.name)
        result, compiled = self._call(arguments, n_steps, chosen, out, options)
        if compiled is not None:
            table.add(key, compiled, values if n_steps is None else values[1:], arguments.leaves)
        return result

    def _filled(self, *given: Any) -> list[Any]:
        """The arguments of a call, with those of the decorator in place of None."""
        return [self._arguments.get(key) if value is None else value for key, value in zip(ARGUMENTS, given, strict=True)]

    def _chosen(self, options: dict[str, Any]) -> Options:
        return make_options(self.__wrapped__, {**self._keywords, **options})

    def _call(
        self, arguments: Arguments, n_steps: Any, chosen: Options, out: Any, options: dict[str, Any]
    ) -> tuple[Any, CompiledScan | None]:
        """The long way: arguments of any form, symbolic ones too. The result, and the kind that gave it if it was run."""
        steps = read_n_steps(n_steps, arguments, chosen.name)
        if not (arguments.is_symbolic() or isinstance(steps, Variable)):
            compiled = self._cache.find(self.__wrapped__, arguments, steps is not None, chosen)
            if not compiled.symbolic:
                return compiled.run(arguments.leaves if steps is None else [steps, *arguments.leaves], out), compiled
        if out is not None:
            raise TypeError(f"scan {chosen.name!r}: out= takes the results of a run, but this call is symbolic; leave it out")
        return self._in_graph(arguments, steps, chosen, options.get("return_updates", self._keywords.get("return_updates"))), None

    def _in_graph(self, arguments: Arguments, steps: Any, options: Options, with_updates: bool | None) -> Any:
        """The outputs; with the updates if they are asked for. TypeError if there are some and nobody said what becomes of them."""
        outputs, updates = symbolic(self.__wrapped__, arguments, steps, replace(options, return_updates=True))
        if updates and with_updates is None:
            names = ", ".join(shared.name or repr(shared) for shared in updates)
            raise TypeError(
                f"scan {options.name!r} updates {names}, which a symbolic call cannot do by itself; pass return_updates=True for "
                "(outputs, updates), or return_updates=False to leave the shared variables as they are"
            )
        return (outputs, updates) if with_updates else outputs

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
        compiled = self._cache.find(self.__wrapped__, arguments, steps is not None, chosen)
        if compiled.symbolic:
            raise missing_values(compiled, chosen.name)
        compiled.prepare(arguments.leaves if steps is None else [steps, *arguments.leaves])
        return self

    @property
    def is_compiled(self) -> bool:
        """Whether some kind of argument was seen."""
        return self._cache.latest is not None

    def _latest(self) -> CompiledScan:
        compiled = self._cache.latest
        if compiled is None:
            raise ValueError(f"scan {self.name!r} has not been compiled yet; call it, or {self.__name__}.lower(...), with arguments first")
        return compiled

    def source(self, target: str = "cpu") -> str:
        """The generated code for the latest kind of argument."""
        return self._latest().runner.program.source(target)

    @property
    def graph(self) -> Any:
        """The graph of the latest kind of argument."""
        return self._latest().graph

    def memory(self) -> Any:
        """Bytes stored for results and work space, for the latest kind of argument."""
        return self._latest().runner.program.memory()

    @property
    def profile(self) -> Any:
        """Where the time went, for the latest kind of argument, with `profile=True`; None without."""
        compiled = self._cache.latest
        return None if compiled is None else compiled.runner.program.profile

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (ScanFunction, (self.__wrapped__, self._defaults))

    def __repr__(self) -> str:
        return f"<scan {self.name}: {len(self._cache)} kinds of arguments>"
