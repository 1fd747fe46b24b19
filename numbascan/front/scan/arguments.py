"""The arguments of scan: sequences, initial values and taps as nests flattened to leaves, keywords as Options.

`Arguments` reads in one pass, at every call that `quick_call` does not serve. So it does little: its result is the key under which
compiled code is found again.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypedDict

import numpy as np

from ...checkpoint import Checkpoint
from ...modes import Mode, as_mode
from ...ops.card import at_line
from ...progress import Show
from ...types import TensorType
from ..conversion import as_argument, is_number_list
from ..labels import axes_of, is_labelled, refuse_other_rows
from ..seeded import as_parts
from ..specialisation import LARGEST_FIXED, quick_key, small_type
from ..tree import LEAF, NONE, Nest, Structure, flatten, is_named_tuple, n_leaves
from ..variable import Variable

Sequences: TypeAlias = Nest
"""A sequence or a list of sequences, each a nest of arrays with rows, or dict(input=nest, taps=[…])."""
OutputsInfo: TypeAlias = Nest
"""An entry or a list with one for each output: a nest of initial values, dict(initial=nest, taps=[…]), or None."""
NonSequences: TypeAlias = Nest
"""A value or a list of values that the step gets unchanged."""
Steps: TypeAlias = int | np.integer[Any] | Variable


class ScanOptions(TypedDict, total=False):
    """The keywords of a decorator, and of a call of a ScanFunction, besides arguments; `ns.scan` describes them."""

    truncate_gradient: int
    go_backwards: bool
    mode: Mode | str | None
    name: str | None
    profile: bool | str
    allow_gc: bool | None
    strict: bool
    return_list: bool
    return_updates: bool
    keep_last: int | list[int | None] | None
    save_every: int
    checkpoint: int | str | Checkpoint | None


class ScanDefaults(ScanOptions, total=False):
    """The keywords of a decorator, arguments included."""

    sequences: Sequences
    outputs_info: OutputsInfo
    non_sequences: NonSequences
    n_steps: Steps | None
    progress: bool | Show


ARGUMENTS = ("sequences", "outputs_info", "non_sequences", "n_steps")

Taps = tuple[int, ...]
SeqKey = tuple[Structure, Taps]
_PORT_KEYS = ("input", "initial", "init", "taps")  # "init" is a common mistake for "initial"
OutKey = tuple[Structure | None, Taps, bool]  # structure, taps, whether the initial value has a leading axis; None: not recurrent
Key = tuple[tuple[SeqKey, ...], tuple[OutKey, ...] | None, tuple[Structure, ...], bool]
_LATEST: Taps = (-1,)
_HERE: Taps = (0,)
_NOT_RECURRENT: OutKey = (None, (), False)
_PLAIN_DTYPES = frozenset("?bhilqBHILQfdFD")  # dtype characters that need no conversion where the array is native and contiguous


class Arguments:
    """The structures of sequences, initial values and non-sequences, with all leaves in one list, in this order.

    `outs` is None if outputs_info was None or empty: then the step decides the number of outputs. `bare_out`: outputs_info was not a list.
    """

    __slots__ = ("bare_out", "leaves", "n_initial", "n_seq", "nons", "outs", "seqs")

    def __init__(self, sequences: Any, outputs_info: Any, non_sequences: Any, name: str = "scan") -> None:
        leaves: list[Any] = []
        self.leaves = leaves
        self.seqs: tuple[SeqKey, ...] = tuple([_sequence(item, k, leaves, name) for k, item in enumerate(items_of(sequences))])
        self.n_seq = len(leaves)
        items = items_of(outputs_info)
        self.bare_out = items is not outputs_info
        self.outs: tuple[OutKey, ...] | None = tuple([_output(item, k, leaves, name) for k, item in enumerate(items)]) or None
        self.n_initial = len(leaves) - self.n_seq
        self.nons: tuple[Structure, ...] = tuple([_flat(as_parts(item), leaves) for item in items_of(non_sequences)])
        self._normalise(name)

    def _normalise(self, name: str) -> None:
        leaves = self.leaves
        for k, leaf in enumerate(leaves):
            kind = type(leaf)
            if kind is float or (kind is np.ndarray and leaf.dtype.char in _PLAIN_DTYPES and leaf.dtype.isnative and _is_plain(leaf.flags)):
                continue
            if k < self.n_seq and is_labelled(leaf):
                rows = [next(iter(axes_of(leaf)), None) for leaf in leaves[k : self.n_seq]]
                refuse_other_rows([f"scan {name!r}: {self.label(j)}" for j in range(k, self.n_seq)], rows)
            leaves[k] = as_argument(leaf, f"scan {name!r}: {self.label(k)}")

    @property
    def key(self) -> Key:
        return self.seqs, self.outs, self.nons, self.bare_out

    def is_symbolic(self) -> bool:
        return any(isinstance(leaf, Variable) for leaf in self.leaves)

    def label(self, leaf: int) -> str:
        """The name of a leaf in messages: its list and position, as `sequences[0]`."""
        end = 0
        groups = (
            ("sequences", [tree for tree, _ in self.seqs]),
            ("outputs_info", [tree or NONE for tree, _, _ in self.outs or ()]),
            ("non_sequences", list(getattr(self, "nons", ()))),
        )
        for group, trees in groups:
            for k, tree in enumerate(trees):
                end += n_leaves(tree)
                if leaf < end:
                    return f"{group}[{k}]"
        return "an argument"

    def values(self, n_steps: int | None) -> list[Any]:
        """The inputs of compiled code: the number of steps, if it was given, then the leaves."""
        return self.leaves if n_steps is None else [n_steps, *self.leaves]

    def quick_key(self) -> tuple[Any, ...]:
        """A cheap key that decides the types of the leaves. The lengths of sequences are not in it."""
        n_seq = self.n_seq
        return tuple([_sequence_key(leaf) if k < n_seq else quick_key(leaf) for k, leaf in enumerate(self.leaves)])

    def types(self) -> list[TensorType]:
        """The types of the leaves. Small dimensions are fixed, except the lengths of sequences."""
        types = [small_type(leaf) for leaf in self.leaves]
        return [_any_length(type_) if k < self.n_seq else type_ for k, type_ in enumerate(types)]


def _sequence_key(leaf: Any) -> Any:
    if type(leaf) is np.ndarray and leaf.ndim:
        return leaf.dtype, (-1, *[dim if dim <= LARGEST_FIXED else -1 for dim in leaf.shape[1:]])
    return quick_key(leaf)


def _any_length(type_: TensorType) -> TensorType:
    return type_.with_shape((None, *type_.shape[1:])) if type_.shape else type_


def _is_plain(flags: Any) -> bool:
    return bool(flags.c_contiguous and flags.aligned)


def items_of(value: Any) -> Sequence[Any]:
    """`value` as a list of items: None is empty, a single item is a list of one. Named tuples are items."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)) and not is_named_tuple(value):
        return value
    return (value,)


def _flat(value: Any, leaves: list[Any]) -> Structure:
    kind = type(value)
    if kind is np.ndarray or kind is float:
        leaves.append(value)
        return LEAF
    return flatten(value, leaves, is_number_list)


def _is_port(item: Any) -> bool:
    """True for a dict that describes a sequence or an output, not a nest. A near miss counts, so that a mistyped key is an error."""
    if not isinstance(item, dict):
        return False
    return not item or any(isinstance(key, str) and difflib.get_close_matches(key, _PORT_KEYS, cutoff=0.8) for key in item)


def _sequence(item: Any, k: int, leaves: list[Any], name: str) -> SeqKey:
    taps = _HERE
    if _is_port(item):
        where = f"scan {name!r}: sequences[{k}]"
        _check_keys(item, ("input", "taps"), where)
        if item.get("input") is None:
            raise ValueError(f"{where} is {_shown(item)} without 'input'; write dict(input=x, taps=[…])")
        taps = sequence_taps(item.get("taps"), where)
        item = item["input"]
    if item is None:
        raise ValueError(f"scan {name!r}: sequences[{k}] is None; give an array or a variable, or leave it out")
    return _flat(item, leaves), taps


def _output(item: Any, k: int, leaves: list[Any], name: str) -> OutKey:
    if item is None:
        return _NOT_RECURRENT
    taps = _LATEST
    if _is_port(item):
        where = f"scan {name!r}: outputs_info[{k}]"
        _check_keys(item, ("initial", "taps"), where)
        initial = item.get("initial")
        if initial is None:
            if item.get("taps") not in (None, [], ()):
                raise ValueError(f"{where} has taps={item['taps']} but no 'initial'; write dict(initial=x0, taps={item['taps']})")
            return _NOT_RECURRENT
        taps = output_taps(item.get("taps", _LATEST), where)
        if not taps:
            return _NOT_RECURRENT
        item = initial
    return _flat(item, leaves), taps, taps != _LATEST


def _check_keys(item: dict[Any, Any], known: tuple[str, str], where: str) -> None:
    for key in item:
        if key not in known:
            is_typo = isinstance(key, str) and difflib.get_close_matches(key, known)
            nest = "" if is_typo else f"; where {where.split()[-1]} is itself a dict of arrays, write dict({known[0]}={_shown(item)})"
            raise ValueError(f"{where} has the unknown key {key!r}; a dict here takes {known[0]!r} and {known[1]!r}{nest}")


def _shown(item: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{key!r}: …" for key in item) + "}"


def sequence_taps(taps: Any, where: str) -> Taps:
    """The taps of a sequence, distinct ints; 0 alone if `taps` is None."""
    if taps is None:
        return _HERE
    numbers = _ints(taps, where)
    if not numbers:
        raise ValueError(f"{where} has taps={taps}; give at least one, as taps=[0]")
    return numbers


def output_taps(taps: Any, where: str) -> Taps:
    """The taps of a recurrent output, distinct negative ints; empty if `taps` is None."""
    if taps is _LATEST:
        return _LATEST
    numbers = () if taps is None else _ints(taps, where)
    if any(tap >= 0 for tap in numbers):
        raise ValueError(f"{where} has taps={list(numbers)}; an output is only known at earlier steps: give negative taps, as taps=[-1]")
    return numbers


def _ints(taps: Any, where: str) -> Taps:
    listed = list(taps) if isinstance(taps, Iterable) else [taps]
    for tap in listed:
        if isinstance(tap, (bool, np.bool_)) or not isinstance(tap, (int, np.integer)):
            raise ValueError(f"{where} has taps={taps!r}; give an int or a list of ints")
    numbers = tuple(map(int, listed))
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{where} has duplicate taps {list(numbers)}; give each tap once")
    return numbers


def read_n_steps(value: Any, arguments: Arguments, name: str) -> int | Variable | None:
    """n_steps as an int, an integer scalar Variable, or None.

    ValueError for anything else, and for None without a sequence; OverflowError for 2**63 or more.
    """
    if value is None and not arguments.seqs:
        raise ValueError(
            f"scan {name!r}{at_line()}: without a sequence the number of steps is not known; give sequences=…, or n_steps=100 "
            "(with ns.until the most that there may be)"
        )
    if value is None or (type(value) is int and 0 <= value < 2**63):
        return value
    where = f"scan {name!r}: n_steps is {value!r}"
    if isinstance(value, Variable):
        if value.ndim or value.type.kind not in "iu":
            raise ValueError(f"scan {name!r}: n_steps is {value!r}; give an integer scalar, as n_steps.astype('int64') makes")
        return value
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{where}; give an int")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (float, np.floating)):
        raise ValueError(f"{where}; give an int" + (f": n_steps={int(value)}" if np.isfinite(value) and value == int(value) else ""))
    if not isinstance(value, (int, np.integer)):
        raise ValueError(f"{where} ({type(value).__name__}); give an int, an integer scalar variable, or None")
    if value >= 2**63:
        raise OverflowError(
            f"{where}, out of bounds for int64{at_line()}; give at most n_steps=2**63 - 1, with ns.until to end the loop "
            "and keep_last=1 to store its end alone"
        )
    if value < 0:
        raise ValueError(f"{where}; it must be 0 or more (go_backwards=True reads sequences from the end)")
    return int(value)


@dataclass(frozen=True)
class Options:
    """How to run a scan and which rows to keep. `in_graph`: the loop is part of a larger graph, and notes its mode there."""

    truncate_gradient: int = -1
    go_backwards: bool = False
    mode: Mode | None = None
    name: str = "scan"
    profile: bool | str = False
    allow_gc: bool | None = None
    strict: bool = False
    return_list: bool = False
    return_updates: bool = True
    keep_last: int | tuple[int | None, ...] | None = None  # of all outputs, or of each
    save_every: int = 1
    checkpoint: Any = None
    in_graph: bool = False

    def notes(self) -> tuple[tuple[str, object], ...]:
        """The notes of the loop for later stages: its checkpoint and, in a graph, its mode, if given."""
        notes = [("checkpoint", self.checkpoint)] if self.checkpoint is not None else []
        if self.mode is not None and self.in_graph:
            notes.append(("mode", self.mode))
        return tuple(notes)

    def trace_mode(self) -> Mode | None:
        """The mode in which the step will run; None if the graph around it decides."""
        return self.mode if self.in_graph else self.mode or Mode()

    def for_graph(self) -> Options:
        return replace(self, in_graph=True)


KEYWORDS = tuple(field.name for field in fields(Options) if field.name != "in_graph")


def make_options(fn: Callable[..., Any], keywords: dict[str, Any]) -> Options:
    """The options that the keywords set. TypeError for an unknown keyword, ValueError for a value that its keyword does not take."""
    unknown = [key for key in keywords if key not in KEYWORDS]
    if unknown:
        raise TypeError(f"scan got an unexpected keyword argument {unknown[0]!r}; it takes {', '.join((*ARGUMENTS, *KEYWORDS))}, progress")
    values = dict(keywords)
    name = values["name"] = step_name(fn) if values.get("name") is None else str(values["name"])
    where = f"scan {name!r}"
    values["mode"] = None if values.get("mode") is None else _mode(values["mode"], where)
    values["truncate_gradient"] = _truncate(values.get("truncate_gradient", -1), where)
    values["keep_last"], values["save_every"] = _kept_rows(values.get("keep_last"), values.get("save_every", 1), where)
    values["checkpoint"] = _checkpoint(values.get("checkpoint"), where)
    for key in ("go_backwards", "strict", "return_list", "return_updates"):
        if key in values:
            values[key] = bool(values[key])
    return Options(**values)


def _mode(value: Any, where: str) -> Mode:
    try:
        return as_mode(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def step_name(fn: Callable[..., Any]) -> str:
    """The default name of a scan: that of its step if it is an identifier, else "scan"."""
    name = getattr(getattr(fn, "func", fn), "__name__", "scan")
    return name if name.isidentifier() else "scan"


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)) and int(value) >= 1


def _truncate(value: Any, where: str) -> int:
    if value is None or value == -1:
        return -1
    if not _is_count(value):
        raise ValueError(f"{where}: truncate_gradient is {value!r}; give the number of steps to go back, or -1 for all")
    return int(value)


def _kept_rows(keep_last: Any, save_every: Any, where: str) -> tuple[int | tuple[int | None, ...] | None, int]:
    is_each = isinstance(keep_last, (list, tuple))
    entries = list(keep_last) if is_each else [keep_last]
    for entry in entries:
        if entry is not None and not _is_count(entry):
            what = "an int of 1 or more, or a list with one entry for each output (None: all its rows)"
            raise ValueError(f"{where}: keep_last is {keep_last!r}; give {what}")
    if not _is_count(save_every):
        raise ValueError(f"{where}: save_every is {save_every!r}; give an int of 1 or more")
    if keep_last is not None and save_every != 1:
        raise ValueError(f"{where}: keep_last={keep_last} and save_every={save_every} exclude each other; give one")
    counts = tuple(None if entry is None else int(entry) for entry in entries)
    return counts if is_each else counts[0], int(save_every)


def _checkpoint(value: Any, where: str) -> Any:
    if value is None or isinstance(value, Checkpoint):
        return value
    if isinstance(value, str) and value == "auto":
        return Checkpoint(_half_of_free_memory())
    if not _is_count(value):
        raise ValueError(f"{where}: checkpoint is {value!r}; give None, an int of 1 or more, 'auto', or ns.Checkpoint(memory=...)")
    return int(value)


def _half_of_free_memory() -> int:
    """Half of the free memory in bytes, rounded down to a power of two, so that generated code does not change with every reading."""
    pages = os.sysconf("SC_AVPHYS_PAGES") if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names else 2**18
    free = pages * (os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096)
    return 1 << max((free // 2).bit_length() - 1, 20)
