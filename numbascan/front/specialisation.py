"""Kinds of arguments: what of them is fixed when a function of arrays is traced. For `ns.jit` and for ScanFunction.

Fixed are dtypes, ranks and dimensions up to 16; after 8 values a dimension is left open, and so is every dimension that a scan runs over.
Use: `Kinds.types(structure, types)` before tracing, `sequence_axes(inputs, outputs)` after it, `Kinds.leave_open` with what was found, then
trace again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..ir.graph import substitute, toposort
from ..ir.inner_graphs import all_nodes
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import Node, new_input
from ..types import SUPPORTED_DTYPES, TensorType
from .conversion import as_argument, type_of

LARGEST_FIXED = 16
MOST_VALUES = 8
_NATIVE = frozenset(np.dtype(name) for name in SUPPORTED_DTYPES)

Axis = tuple[int, int]  # of which argument, which dimension


def prepared(value: Any, label: str) -> Any:
    """`value` as compiled code takes it: a native C-contiguous array or a number. Raises as `as_argument`."""
    if type(value) is np.ndarray and value.dtype in _NATIVE and value.flags.c_contiguous:
        return value
    return as_argument(value, label)


def quick_key(value: Any) -> Any:
    """What decides the kind of a prepared value, as cheaply as possible: two values with one key have one `small_type`."""
    if isinstance(value, np.ndarray):
        return value.dtype, tuple([dim if dim <= LARGEST_FIXED else -1 for dim in value.shape])
    return type(value)


def small_type(value: Any) -> TensorType:
    """The type of a prepared value, its small dimensions fixed."""
    type_ = type_of(value)
    return type_.with_shape(dim if dim is not None and dim <= LARGEST_FIXED else None for dim in type_.shape)


class Kinds:
    """The dimensions seen so far of one function's arguments."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, dict[Axis, set[int]]] = {}
        self._open: dict[Hashable, set[Axis]] = {}

    def types(self, structure: Hashable, small: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types to trace with: those of `small`, with dimensions left open where many values were seen or a scan runs."""
        signature = _signature(structure, small)
        seen, opened = self._seen.setdefault(signature, {}), self._open.get(signature, set())
        result = []
        for k, type_ in enumerate(small):
            dims = [None if (k, axis) in opened else _noted(seen, (k, axis), dim) for axis, dim in enumerate(type_.shape)]
            result.append(type_.with_shape(dims))
        return tuple(result)

    def leave_open(self, structure: Hashable, types: Sequence[TensorType], axes: set[Axis]) -> tuple[TensorType, ...]:
        """From now on these dimensions are never fixed for arguments of this signature. The types without them."""
        self._open.setdefault(_signature(structure, types), set()).update(axes)
        return without(types, axes)


def _signature(structure: Hashable, types: Sequence[TensorType]) -> Hashable:
    return structure, tuple((type_.dtype, type_.rank, type_.weak) for type_ in types)


def _noted(seen: dict[Axis, set[int]], axis: Axis, dim: int | None) -> int | None:
    """The dimension, None once too many values were seen. 1 stays fixed, or it would not broadcast."""
    if dim is None or dim == 1:
        return dim
    values = seen.setdefault(axis, set())
    if dim not in values and len(values) >= MOST_VALUES:
        return None
    values.add(dim)
    return dim


def without(types: Sequence[TensorType], axes: set[Axis]) -> tuple[TensorType, ...]:
    """The types with some dimensions unknown."""
    return tuple(
        type_.with_shape(None if (k, axis) in axes else dim for axis, dim in enumerate(type_.shape)) for k, type_ in enumerate(types)
    )


def sequence_axes(inputs: Sequence[Node], outputs: Sequence[Node]) -> set[Axis]:
    """The fixed dimensions of `inputs` that decide how many rows a scan's sequence has, whatever lies between.

    Found by asking the types: with such a dimension unknown, more sequences have an unknown number of rows.
    """
    fixed = {(k, axis) for k, node in enumerate(inputs) for axis, dim in enumerate(node.type.shape) if dim is not None}
    before = _fixed_lengths(outputs)
    if not before or not fixed:
        return set()
    reached = {k for k, node in enumerate(inputs) if node in set(toposort(outputs, stop=inputs))}
    return {axis for axis in sorted(fixed) if axis[0] in reached and _lengths_with(inputs, outputs, axis) < before}


def _fixed_lengths(outputs: Sequence[Node]) -> int:
    """How many sequences, in scans of any depth, have a fixed number of rows."""
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
