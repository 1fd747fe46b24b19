"""A ScanFunction as a function of one case: its arguments have the names of scan's arguments, or of the step's parameters."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..front.scan.arguments import ARGUMENTS, Arguments, Key, OutKey, SeqKey, Taps, items_of
from ..front.scan.scan import ScanFunction, scan
from ..front.tracing import parameter_names
from .inputs import Grid

OPTIONS = tuple(name for name in inspect.signature(scan).parameters if name not in ("fn", *ARGUMENTS))


@dataclass(frozen=True)
class Place:
    """An item of a list of a call. `name`: the step's parameter that its first tap gives; None for an item that gives none."""

    group: str
    name: str | None
    taps: Taps
    has_taps: bool = False

    def item(self, value: Any) -> Any:
        """The item that holds a value: a dict where the item has taps."""
        return {"input" if self.group == "sequences" else "initial": value, "taps": list(self.taps)} if self.has_taps else value


def by_name(f: ScanFunction, inputs: Any, in_axes: Any, shared: Collection[str]) -> tuple[Callable[..., Any], Any, Any, Any]:
    """The function, inputs, axes and shared names of a batch of a ScanFunction.

    Options such as `keep_last` are set for all cases. `one_case_of` says what names of the step's parameters mean; all other names are
    arguments of a call.
    """
    if not isinstance(inputs, (dict, Grid)):
        return one_case_of(f, {}, ARGUMENTS), inputs, in_axes, shared
    given: Mapping[str, Any] = inputs.axes if isinstance(inputs, Grid) else inputs
    options = {} if isinstance(inputs, Grid) else {name: given[name] for name in given if name in OPTIONS}
    if options:
        inputs = {name: value for name, value in given.items() if name not in options}
        in_axes = {name: axis for name, axis in in_axes.items() if name not in options} if isinstance(in_axes, dict) else in_axes
        shared = [name for name in shared if name not in options]
    return one_case_of(f, options, [name for name in given if name not in options]), inputs, in_axes, shared


def one_case_of(f: ScanFunction, options: Mapping[str, Any], names: Sequence[str]) -> Callable[..., Any]:
    """A call of `f` as a function of arguments with these names; `options` are set for all calls.

    Names of the step's parameters are its non-sequences where `outputs_info` is given, by the decorator or among the names: then the call
    says which parameters come before them. Otherwise a state could be taken for a non-sequence. So the names then mean what they mean to
    `f.export`, by the kind of call that `f.lower` was given last. TypeError where there is none.
    """
    own = [name for name in names if name not in ARGUMENTS]
    is_said = "outputs_info" in names or f._arguments.get("outputs_info") is not None
    kind = None if is_said or not own else _kind_of(f, own)

    def called(**values: Any) -> Any:
        arguments = {name: values[name] for name in values if name in ARGUMENTS}
        if own:
            arguments |= _arguments_of(f, arguments, {name: values[name] for name in own}, kind)
        return f(**arguments, **options)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in (*ARGUMENTS, *own)]
    signature = inspect.Signature(parameters)

    @functools.wraps(f, updated=())
    def one_case(*args: Any, **kwargs: Any) -> Any:
        return called(**signature.bind(*args, **kwargs).arguments)

    one_case.__signature__ = signature  # type: ignore[attr-defined]
    return one_case


def _kind_of(f: ScanFunction, own: Sequence[str]) -> Key:
    """The kind of call that `f.export` would export. TypeError where there is none."""
    try:
        (_, _, kind), _ = f._compiled.to_export(f.name)
    except ValueError as error:
        raise TypeError(
            f"ns.batch: {', '.join(own)}: nothing says which parameters of {f.name} are states, and which stay the same. Give "
            f"outputs_info= to the decorator or in the inputs (None where the step reads no earlier result): then these names are "
            f"non-sequences. Or write {f.name}.lower(…) first, with arguments of one case: then they are what {f.name}.export calls so "
            f"({error})"
        ) from None
    return kind


def _arguments_of(f: ScanFunction, given: Mapping[str, Any], named: Mapping[str, Any], kind: Key | None) -> dict[str, Any]:
    """The lists of a call that hold values in `named`: these in their places, all others as the call or the decorator gave them."""
    whole = dict(zip(ARGUMENTS, f._filled(*(given.get(name) for name in ARGUMENTS)), strict=True))
    if kind is None:
        before = _places(f, *Arguments(whole["sequences"], whole["outputs_info"], None, f.name).key[:2])
        places = [place for place in before if place.group == "non_sequences"]
    else:
        places = _places(f, *kind[:3])
    _check_known(f, named, places, kind is None)
    lists: dict[str, Any] = {}
    for group in ARGUMENTS[:3]:
        of_group = [place for place in places if place.group == group]
        if any(place.name in named for place in of_group):
            lists[group] = _items(f, of_group, items_of(whole[group]), named)
    if kind is None:
        return lists
    if kind[3] and "outputs_info" in lists:  # one output, without a list around it
        (lists["outputs_info"],) = lists["outputs_info"]
    sequences, outputs_info, non_sequences = (lists.get(group, whole[group]) for group in ARGUMENTS[:3])
    seen = Arguments(sequences, outputs_info, non_sequences, f.name).key
    if _places(f, *seen[:3]) != places:
        raise TypeError(
            f"ns.batch: {f.name} is given other sequences, outputs or taps than {f.name}.lower(…) was, so the names {', '.join(named)} "
            "would be those of other arguments; give all by name, or none"
        )
    return lists


def _places(f: ScanFunction, seqs: Sequence[SeqKey], outs: Sequence[OutKey] | None, nons: Sequence[Any] | None = None) -> list[Place]:
    """The places of the items in the lists of a call, in the order of the step's parameters.

    nons: the non-sequences; None where their number is not known: then they are all parameters that the others leave.
    """
    ports = [("sequences", taps, taps != (0,)) for _, taps in seqs]
    ports += [("outputs_info", taps, has_axis) for _, taps, has_axis in outs or ()]
    n_reads = sum(len(taps) for _, taps, _ in ports)
    n_rest = max(len(inspect.signature(f.__wrapped__).parameters) - n_reads, 0) if nons is None else len(nons)
    ports += [("non_sequences", (0,), False)] * n_rest
    names = parameter_names(f.__wrapped__, n_reads + n_rest)
    firsts = itertools.accumulate((len(taps) for _, taps, _ in ports), initial=0)
    return [Place(group, names[k] if taps else None, taps, has_taps) for k, (group, taps, has_taps) in zip(firsts, ports, strict=False)]


def _check_known(f: ScanFunction, named: Mapping[str, Any], places: Sequence[Place], are_non_sequences: bool) -> None:
    known = [place.name for place in places if place.name]
    for name in named:
        if name not in known:
            raise TypeError(
                f"ns.batch: {name} is no {'non-sequence' if are_non_sequences else 'argument'} of {f.name}, which has "
                f"{', '.join(known) or 'none'}" + "; give sequences= and outputs_info= for what else the step reads" * are_non_sequences
            )


def _items(f: ScanFunction, places: Sequence[Place], others: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """A list of a call: the named values, and for items without one those in `others`."""
    missing = [place.name for k, place in enumerate(places) if place.name and place.name not in named and k >= len(others)]
    if missing:
        raise TypeError(f"ns.batch: {f.name} needs {', '.join(missing)} as well; give them by name, and name in shared= those of one value")
    return [
        None if place.name is None else place.item(named[place.name]) if place.name in named else others[k]
        for k, place in enumerate(places)
    ]
