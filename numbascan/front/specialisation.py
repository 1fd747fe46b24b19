"""Kinds of arguments of a function of arrays, and the code for each, for `ns.jit` and ScanFunction.

A kind fixes dtypes, ranks and dimensions up to 16. A dimension is left open after eight lengths (`compile.FixedLengths`, which
`ns.function` uses, too), and if a scan runs over it: `sequence_axes` finds these after a trace, and the function is traced again.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ..compile import LARGEST_FIXED, MOST_LENGTHS, FixedLengths
from ..emit.runtime.device_array import DeviceArray
from ..errors import RecompilationWarning, TracerBoolError, TracerError
from ..ir.graph import substitute, toposort
from ..ir.inner_graphs import all_nodes
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import Node, new_input
from ..ops.card import is_users
from ..types import SUPPORTED_DTYPES, TensorType
from .captures.guards import Guards
from .conversion import as_argument, type_of

MANY_VALUES = 3
_NATIVE = frozenset(np.dtype(name) for name in SUPPORTED_DTYPES)

Axis = tuple[int, int]  # number of the argument, number of the dimension


def prepared(value: Any, label: str) -> Any:
    """`value` as compiled code takes it: a native C-contiguous array or a number. Raises as `as_argument`."""
    if type(value) is np.ndarray and value.dtype in _NATIVE and value.flags.c_contiguous:
        return value
    return as_argument(value, label)


def quick_key(value: Any) -> Any:
    """A cheap key for the kind of a prepared value: two values with one key have one `small_type`."""
    if isinstance(value, (np.ndarray, DeviceArray)):
        return value.dtype, tuple([dim if dim <= LARGEST_FIXED else -1 for dim in value.shape])
    return type(value)


def small_type(value: Any) -> TensorType:
    """The type of a prepared value, its small dimensions fixed."""
    type_ = type_of(value)
    return type_.with_shape(dim if dim is not None and dim <= LARGEST_FIXED else None for dim in type_.shape)


class Code(Protocol):
    """The code for one kind of arguments."""

    def is_current(self) -> bool:
        """Whether what the function read from outside has not changed since the trace."""
        ...


C = TypeVar("C", bound=Code)
Types = tuple[TensorType, ...]


class Specialisations(Generic[C]):
    """The code of one function by kind of argument, and the lengths that were seen of its arguments."""

    def __init__(self) -> None:
        self.latest: C | None = None  # for inspection; calls go by keys alone
        self.lowered: C | None = None  # the code that `lower` made last, for export
        self._quick: dict[Hashable, C] = {}
        self._by_types: dict[tuple[Hashable, Types], C] = {}
        self._lengths: dict[Hashable, FixedLengths] = {}
        self._open: dict[Hashable, set[Axis]] = {}
        self._made: dict[Hashable, list[Types]] = {}  # the types that code was made for, by signature
        self._fixed: Counter[str] = Counter()  # how often a number from outside had another value and code was made anew, by its name
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._by_types)

    def described(self) -> list[str]:
        """The kinds of arguments that have code, as text."""
        return [", ".join(map(str, types)) or "no arguments" for _, types in list(self._by_types)]

    def get(self, key: Hashable) -> C | None:
        """The code known for a key; None if there is none, or if what the function read from outside has changed."""
        code = self._quick.get(key)
        if code is None or not code.is_current():
            return None
        self.latest = code
        return code

    def add(
        self,
        key: Hashable,
        structure: Hashable,
        small: Types,
        build: Callable[[Types, bool, C | None], tuple[C | None, Types]],
        names: Callable[[], Sequence[str]],
        label: str,
    ) -> C | None:
        """The code for a new key: that of another key of the same kind, else built now. None if `build` gives none.

        build: (types to trace with, whether dimensions may be left open, code of an earlier trace) -> (code or None, its types).
        names: of the arguments. label: the name of the function in warnings, "" for no warnings.
        """
        with self._lock:
            types = self._types(structure, small)
            code = self._by_types.get((structure, types))
            if code is None or not code.is_current():
                try:
                    code, types = build(types, True, code)
                except TracerBoolError:
                    raise
                except TracerError:  # something that needs a fixed length, such as a Python loop over an array
                    if small == types:
                        raise
                    code, types = build(small, False, code)
                if code is None:
                    return None
                self._by_types[structure, types] = code
                if label:
                    self._note_length(structure, types, names, label)
            self._quick[key] = self.latest = code
        return code

    def to_export(self, label: str) -> tuple[Any, C]:
        """Structure and code of the kind that `lower` made last, else of the only kind. ValueError if there is no such kind."""
        code = self.latest if self.lowered is None else self.lowered
        if code is None:
            raise ValueError(f"{label} has not been compiled yet; call it, or {label}.lower(...), with arguments first")
        if self.lowered is None and len(self) > 1:
            raise ValueError(
                f"{label} is compiled for {len(self)} kinds of arguments, and one is exported; write {label}.lower(...) with arguments of "
                "that kind first"
            )
        structures = [structure for (structure, _), known in self._by_types.items() if known is code]
        if not structures or not code.is_current():
            raise ValueError(f"what {label} reads from outside has changed since it was compiled; call it, or {label}.lower(...), again")
        return structures[0], code

    def note_fixed(self, guards: Guards | None, label: str) -> None:
        """Warns when code is compiled for the third time because a number from outside, fixed in the code, has another value."""
        change = None if guards is None else guards.changed_number()
        if change is None:
            return
        name, before, now = change
        self._fixed[name] += 1
        if self._fixed[name] == MANY_VALUES - 1:
            warnings.warn(
                f"{label} is compiled for the {MANY_VALUES}rd time because {name}, which it reads outside, has another value "
                f"({now!r}, before {before!r}). Exponents, what decides a shape, an index or a number of steps, and whole numbers among "
                f"whole numbers are fixed in the code; pass {name} as an argument",
                RecompilationWarning,
                stacklevel=_depth_of_caller(),
            )

    def _note_length(self, structure: Hashable, types: Types, names: Callable[[], Sequence[str]], label: str) -> None:
        """Warns when code is compiled for the third time because an array has another length, which is fixed in the code."""
        made = self._made.setdefault(_signature(structure, types), [])
        if types in made:  # what the function reads from outside has changed
            return
        made.append(types)
        lengths = [(k, axis, [one[k].shape[axis] for one in made]) for k, type_ in enumerate(types) for axis in range(type_.rank)]
        changing = [one for one in lengths if None not in one[2] and len(set(one[2])) == MANY_VALUES]
        if len(made) != MANY_VALUES or not changing:
            return
        k, axis, seen = changing[0]
        before = " and ".join(map(str, seen[:-1]))
        warnings.warn(
            f"{label} is compiled for the {MANY_VALUES}rd time because {names()[k]} has another length ({seen[-1]} on axis {axis}, before "
            f"{before}). Lengths up to {LARGEST_FIXED} are fixed in the code, until there were {MOST_LENGTHS} of them; where many come, "
            "pad the array to one length, or above that",
            RecompilationWarning,
            stacklevel=_depth_of_caller(),
        )

    def _types(self, structure: Hashable, small: Types) -> Types:
        """The types to trace with: `small`, with dimensions left open where many lengths were seen or a scan runs over them."""
        signature = _signature(structure, small)
        lengths, axes = self._lengths.setdefault(signature, FixedLengths()), self._open.get(signature, set())

        def fixed(axis: Axis, dim: int | None) -> int | None:
            if axis in axes:
                return None
            return dim if dim is None or dim == 1 else lengths.fixed(axis, dim)  # 1 stays fixed, or it would not broadcast

        return tuple(type_.with_shape(fixed((k, axis), dim) for axis, dim in enumerate(type_.shape)) for k, type_ in enumerate(small))

    def leave_open(self, structure: Hashable, types: Types, axes: set[Axis]) -> None:
        """Leaves these dimensions open from now on, for arguments of this signature."""
        self._open.setdefault(_signature(structure, types), set()).update(axes)


def _depth_of_caller() -> int:
    """The `stacklevel` at which a warning of the caller names the user's code."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not is_users(frame):
        depth, frame = depth + 1, frame.f_back
    return depth


def _signature(structure: Hashable, types: Types) -> Hashable:
    return structure, tuple((type_.dtype, type_.rank, type_.weak) for type_ in types)


def without(types: Sequence[TensorType], axes: set[Axis]) -> tuple[TensorType, ...]:
    """The types, with the dimensions `axes` unknown."""
    return tuple(
        type_.with_shape(None if (k, axis) in axes else dim for axis, dim in enumerate(type_.shape)) for k, type_ in enumerate(types)
    )


def sequence_axes(inputs: Sequence[Node], outputs: Sequence[Node]) -> set[Axis]:
    """The fixed dimensions of `inputs` on which the number of rows of a scan's sequence depends, through any operations.

    Types tell: with such a dimension unknown, more sequences have an unknown number of rows.
    """
    fixed = {(k, axis) for k, node in enumerate(inputs) for axis, dim in enumerate(node.type.shape) if dim is not None}
    before = _fixed_lengths(outputs)
    if not before or not fixed:
        return set()
    reached = {k for k, node in enumerate(inputs) if node in set(toposort(outputs, stop=inputs))}
    return {axis for axis in sorted(fixed) if axis[0] in reached and _lengths_with(inputs, outputs, axis) < before}


def _fixed_lengths(outputs: Sequence[Node]) -> int:
    """The number of sequences, in scans of any depth, with a fixed number of rows."""
    scans = {node for node in all_nodes(outputs) if node.op is SCAN}
    return sum(seq.outer.type.shape[0] is not None for node in scans for seq in loop_spec(node).seqs)


def _lengths_with(inputs: Sequence[Node], outputs: Sequence[Node], axis: Axis) -> int:
    old = inputs[axis[0]]
    (type_,) = without([old.type], {(0, axis[1])})
    try:
        rebuilt = substitute(outputs, {old: new_input(type_, old.name)})
    except (TypeError, ValueError):  # an op that needs this dimension fixed
        return _fixed_lengths(outputs)
    return _fixed_lengths(rebuilt)
