"""`ns.scan`: a step function, traced once, becomes a loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..variable import Variable
from .arguments import Arguments, read_n_steps
from .options import make_options
from .scan_function import ARGUMENTS, ScanFunction, run_now, symbolic


def scan(
    fn: Callable[..., Any] | None = None,
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: bool | str = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
    *,
    keep_last: int | None = None,
    save_every: int = 1,
    checkpoint: Any = None,
) -> Any:
    """Runs `fn` over the rows of sequences and its own earlier results; the results of all steps, stacked along a new first axis.

    With a step alone (or none: `@ns.scan(n_steps=10)`) it is a decorator and gives a ScanFunction. With arrays and numbers it runs now and
    gives NumPy results. With anything symbolic it gives Variables.

    The step gets, in this order: for each sequence the rows at its taps; for each recurrent output its rows at its taps; the
    non-sequences as they are. It returns an output, a list or tuple of outputs, a dict of updates, `ns.until(condition)`, or
    `(outputs, updates)`, `(outputs, until)`, `(updates, until)`, `(outputs, updates, until)`.

    Arguments:
        fn: the step, ordinary NumPy code. It is called with Variables when it is traced, not once for each step.
        sequences: arrays of shape (rows, ...), or dict(input=x, taps=[-1, 0]); one alone or a list. The step reads x[t + tap].
        outputs_info: one entry for each output: its initial value (the step reads the latest result), dict(initial=x0, taps=[-2, -1])
            where x0 has a leading axis with the oldest row first, or None where the step does not read the output.
        non_sequences: what the step gets unchanged; one alone or a list. Arrays and variables that it merely uses are found without this.
        n_steps: how many steps, an int or an integer scalar variable; None: as many as the shortest sequence allows.
        truncate_gradient: derivatives go back through so many steps; -1: all.
        go_backwards: sequences are read from the end.
        mode: None or "numba" (compiled), "python" (one step at a time), "debug" (both, compared), "cuda", or an ns.Mode.
        name: for messages, graphs, profiles and generated code; the step's name if None.
        profile: measure tracing, compiling and running. allow_gc: False keeps work space between calls.
        strict: refuse a step that uses variables without being given them.
        return_list: outputs as a list also where there is one. return_updates: False leaves the updates out of what is returned.
        keep_last: only the last k rows; 1 drops the axis. save_every: only the rows k-1, 2k-1, ...
        checkpoint: how much of the path derivatives store: None, an int, or "auto".

    Any argument of the step may be a nest of tuples, lists and dicts; the step gets and returns it as such.

    Returns `(outputs, updates)`: one output or a list of them, and a dict from shared variables to their values after the last step.

    Raises ValueError for arguments that do not fit together, ScanTypeError (a TypeError and a ValueError) where initial value and result
    differ in type, TypeError for what is no array, MissingInputError under `strict`.

    >>> import numbascan as ns, numpy as np
    >>> total, updates = ns.scan(lambda x, s: s + x, sequences=np.array([1.5, 2.0, 4.0]), outputs_info=0)
    >>> total
    array([1.5, 3.5, 7.5])
    """
    given = {name: value for name, value in locals().items() if name != "fn"}
    return _scan(fn, given)


def _scan(fn: Callable[..., Any] | None, given: dict[str, Any]) -> Any:
    arguments = {name: given.pop(name) for name in ARGUMENTS}
    if fn is None:
        return lambda step: ScanFunction(step, _not_default({**arguments, **given}))
    if not callable(fn):
        raise TypeError(f"ns.scan: the step is {fn!r}, which cannot be called; write ns.scan(step, sequences=...)")
    if all(value is None for value in arguments.values()):
        return ScanFunction(fn, _not_default(given))
    if isinstance(fn, ScanFunction):
        fn = fn.__wrapped__
    options = make_options(fn, given)
    n_steps = arguments.pop("n_steps")
    read = Arguments(**arguments, name=options.name)
    steps = read_n_steps(n_steps, read, options.name)
    if not read.is_symbolic() and not isinstance(steps, Variable):
        results = run_now(fn, read, steps, options)
        if results is not None:
            return results[0]
    return symbolic(fn, read, steps, options)


_DEFAULTS = {parameter.name: parameter.default for parameter in inspect.signature(scan).parameters.values()}


def _not_default(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords that say something: a ScanFunction tells what was given from what was not."""
    return {key: value for key, value in keywords.items() if value is not _DEFAULTS[key]}
