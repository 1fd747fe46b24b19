"""A ScanFunction as a function of one case: its arguments by the names of scan's, and by those of the step's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..front.scan.arguments import ARGUMENTS
from ..front.scan.scan import ScanFunction, scan
from .inputs import Grid

OPTIONS = tuple(name for name in inspect.signature(scan).parameters if name not in ("fn", *ARGUMENTS))


def by_name(f: ScanFunction, inputs: Any, in_axes: Any) -> tuple[Callable[..., Any], Any, Any]:
    """The function, inputs and axes of a batch of a ScanFunction.

    Options such as `keep_last` are set once. Names of the step's parameters mean its non-sequences; all else are arguments of a call.
    """
    if not isinstance(inputs, (dict, Grid)):
        return one_case_of(f, {}, ARGUMENTS), inputs, in_axes
    given: Mapping[str, Any] = inputs.axes if isinstance(inputs, Grid) else inputs
    options = {} if isinstance(inputs, Grid) else {name: given[name] for name in given if name in OPTIONS}
    if options:
        inputs = {name: value for name, value in given.items() if name not in options}
        in_axes = {name: axis for name, axis in in_axes.items() if name not in options} if isinstance(in_axes, dict) else in_axes
    return one_case_of(f, options, [name for name in given if name not in options]), inputs, in_axes


def one_case_of(f: ScanFunction, options: Mapping[str, Any], names: Any) -> Callable[..., Any]:
    """A call of `f` as a function of arguments with these names; `options` are set for all calls."""
    own = [name for name in names if name not in ARGUMENTS]

    def called(**values: Any) -> Any:
        arguments = {name: values[name] for name in values if name in ARGUMENTS}
        if own:
            arguments["non_sequences"] = _non_sequences(f, arguments, {name: values[name] for name in own})
        return f(**arguments, **options)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in (*ARGUMENTS, *own)]
    signature = inspect.Signature(parameters)

    @functools.wraps(f, updated=())
    def one_case(*args: Any, **kwargs: Any) -> Any:
        return called(**signature.bind(*args, **kwargs).arguments)

    one_case.__signature__ = signature  # type: ignore[attr-defined]
    return one_case


def _non_sequences(f: ScanFunction, arguments: Mapping[str, Any], named: Mapping[str, Any]) -> list[Any]:
    """The step's non-sequences in their order: those with names, the others as the call or the decorator gave them."""
    whole = {**f._arguments, **arguments}
    parameters = list(inspect.signature(f.__wrapped__).parameters)
    n_reads = sum(map(_reads_of_sequence, _items(whole.get("sequences")))) + sum(map(_reads_of_output, _items(whole.get("outputs_info"))))
    rest = parameters[n_reads:]
    for name in named:
        if name not in rest:
            raise TypeError(
                f"ns.batch: {name} is no non-sequence of {f.name}, which has {', '.join(rest) or 'none'}; "
                "give sequences= and outputs_info= for what else the step reads"
            )
    others = dict(zip(rest, _items(whole.get("non_sequences")), strict=False))
    missing = [name for name in rest if name not in named and name not in others]
    if missing:
        raise TypeError(f"ns.batch: {f.name} needs {', '.join(missing)} as well; give them by name, with None in in_axes for one value")
    return [named.get(name, others.get(name)) for name in rest]


def _items(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) and not hasattr(value, "_fields") else [value]


def _reads_of_sequence(item: Any) -> int:
    taps = item.get("taps", 0) if isinstance(item, dict) and "input" in item else 0
    return len(taps) if isinstance(taps, (list, tuple)) else 1


def _reads_of_output(item: Any) -> int:
    if item is None or (isinstance(item, dict) and (not item or ("taps" in item and item["taps"] is None))):
        return 0
    taps = item.get("taps", -1) if isinstance(item, dict) and "initial" in item else -1
    return len(taps) if isinstance(taps, (list, tuple)) else 1
