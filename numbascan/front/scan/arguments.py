"""The arguments of scan, read: what is a sequence, an initial value, a tap; nests taken apart into leaves.

One pass, on every call: so it does little, and what it gives is the key under which compiled code is found again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...types import TensorType
from ..conversion import as_argument, is_number_list
from ..specialisation import LARGEST_FIXED, quick_key, small_type
from ..tree import LEAF, NONE, Structure, flatten, is_named_tuple, n_leaves
from ..variable import Variable

Taps = tuple[int, ...]
SeqKey = tuple[Structure, Taps]
_PORT_KEYS = ("input", "initial", "taps")
OutKey = tuple[Structure | None, Taps, bool]  # structure, taps, whether the initial value has a leading axis; None: not recurrent
_LATEST: Taps = (-1,)
_HERE: Taps = (0,)
_NOT_RECURRENT: OutKey = (None, (), False)
_KINDS = frozenset("?bhilqBHILQfdFD")  # dtype characters that need no conversion where the array is native and contiguous


class Arguments:
    """Sequences, initial values and non-sequences as structures, with their leaves in one list, in this order.

    `outs` is None where no output is recurrent and their number is for the step to say; `bare_out` says that one output stood there
    without a list around it.
    """

    __slots__ = ("bare_out", "leaves", "n_initial", "n_seq", "nons", "outs", "seqs")

    def __init__(self, sequences: Any, outputs_info: Any, non_sequences: Any, name: str = "scan") -> None:
        leaves: list[Any] = []
        self.leaves = leaves
        self.seqs: tuple[SeqKey, ...] = tuple([_sequence(item, k, leaves, name) for k, item in enumerate(_items(sequences))])
        self.n_seq = len(leaves)
        items = _items(outputs_info)
        self.bare_out = items is not outputs_info
        self.outs: tuple[OutKey, ...] | None = tuple([_output(item, k, leaves, name) for k, item in enumerate(items)]) or None
        self.n_initial = len(leaves) - self.n_seq
        self.nons: tuple[Structure, ...] = tuple([_flat(item, leaves) for item in _items(non_sequences)])
        self._normalise(name)

    def _normalise(self, name: str) -> None:
        leaves = self.leaves
        for k, leaf in enumerate(leaves):
            kind = type(leaf)
            if kind is float or (kind is np.ndarray and leaf.dtype.char in _KINDS and leaf.dtype.isnative and _is_plain(leaf.flags)):
                continue
            leaves[k] = as_argument(leaf, f"scan {name!r}: {self.label(k)}")

    @property
    def key(self) -> tuple[Any, ...]:
        return self.seqs, self.outs, self.nons, self.bare_out

    def is_symbolic(self) -> bool:
        return any(isinstance(leaf, Variable) for leaf in self.leaves)

    def label(self, leaf: int) -> str:
        """How messages call a leaf: by its list and place, as `sequences[0]`."""
        counted = 0
        groups = (
            ("sequences", [tree for tree, _ in self.seqs]),
            ("outputs_info", [tree or NONE for tree, _, _ in self.outs or ()]),
            ("non_sequences", list(getattr(self, "nons", ()))),
        )
        for group, trees in groups:
            for k, tree in enumerate(trees):
                counted += n_leaves(tree)
                if leaf < counted:
                    return f"{group}[{k}]"
        return "an argument"

    def quick_key(self) -> tuple[Any, ...]:
        """What decides the types of the leaves, as cheaply as possible. The length of a sequence plays no part."""
        n_seq = self.n_seq
        return tuple([_sequence_key(leaf) if k < n_seq else quick_key(leaf) for k, leaf in enumerate(self.leaves)])

    def types(self) -> list[TensorType]:
        """The types of the leaves with small dimensions fixed, but for the lengths of sequences."""
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


def _items(value: Any) -> Sequence[Any]:
    """A list of items where one alone may stand without the list."""
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
    """Does a dict describe a sequence or an output, rather than nest values? One that nearly does too: a mistyped key is an error."""
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
            raise ValueError(f"{where} has the unknown key {key!r}; a dict here takes {known[0]!r} and {known[1]!r}")


def _shown(item: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{key!r}: …" for key in item) + "}"


def sequence_taps(taps: Any, where: str) -> Taps:
    """The taps of a sequence: ints, each once; 0 alone where none are given."""
    if taps is None:
        return _HERE
    found = _ints(taps, where)
    if not found:
        raise ValueError(f"{where} has taps={taps}; give at least one, as taps=[0]")
    return found


def output_taps(taps: Any, where: str) -> Taps:
    """The taps of a recurrent output: negative ints, each once; none where `taps` is None."""
    if taps is _LATEST:
        return _LATEST
    found = () if taps is None else _ints(taps, where)
    if any(tap >= 0 for tap in found):
        raise ValueError(f"{where} has taps={list(found)}; an output is only known at earlier steps: give negative taps, as taps=[-1]")
    return found


def _ints(taps: Any, where: str) -> Taps:
    given = [taps] if isinstance(taps, (int, np.integer)) else list(taps) if isinstance(taps, Iterable) else [taps]
    for tap in given:
        if isinstance(tap, (bool, np.bool_)) or not isinstance(tap, (int, np.integer)):
            raise ValueError(f"{where} has taps={taps!r}; give an int or a list of ints")
    found = tuple(map(int, given))
    if len(set(found)) != len(found):
        raise ValueError(f"{where} has duplicate taps {list(found)}; give each tap once")
    return found


def read_n_steps(value: Any, arguments: Arguments, name: str) -> int | Variable | None:
    """n_steps as an int, an integer scalar Variable, or None. ValueError for anything else, and for None where there is no sequence."""
    if value is None and not arguments.seqs:
        raise ValueError(f"scan {name!r}: without a sequence the number of steps is not known; give n_steps (the most, with ns.until)")
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
        raise OverflowError(f"{where}, out of bounds for int64")
    if value < 0:
        raise ValueError(f"{where}; it must be 0 or more (go_backwards=True reads sequences from the end)")
    return int(value)
