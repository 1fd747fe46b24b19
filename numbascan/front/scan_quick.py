"""The short way of a call: arguments whose kind was seen before go straight to the compiled code.

Taken by arrays and floats that need no conversion, alone or in a flat list; everything else takes the long way, through `Arguments`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .scan_kind import CompiledScan

PLAIN = 0x101  # flags.num: C-contiguous and aligned
MOST_KEYS = 4096  # large dimensions stand in the keys: a table that grows beyond this is emptied


def quick_call(sequences: Any, outputs_info: Any, non_sequences: Any) -> tuple[Any, list[Any]] | None:
    """A key that decides the kind, and the leaves in order; None where the long way must be taken."""
    leaves: list[Any] = []
    rows = None if sequences is None else _read(sequences, leaves, 1)
    states = None if outputs_info is None else _read(outputs_info, leaves, 0)
    others = None if non_sequences is None else _read(non_sequences, leaves, 0)
    if rows is False or states is False or others is False:
        return None
    return (rows, states, others), leaves


def _read(value: Any, leaves: list[Any], drop: int) -> Any:
    """The key of one array or number, or of a flat list of these; False for anything else."""
    keys: list[Any] = []
    for item in value if type(value) is tuple or type(value) is list else (value,):
        kind = type(item)
        if kind is np.ndarray:
            shape = item.shape
            if not shape or item.flags.num & PLAIN != PLAIN:
                return False
            keys.append(item.dtype)
            keys.append(shape[1:] if drop else shape)
        elif kind is float or (kind is int and -(2**63) <= item < 2**63):
            keys.append(kind)
        else:
            return False
        leaves.append(item)
    return tuple(keys)


class QuickTable:
    """Compiled code by the keys of `quick_call`."""

    def __init__(self) -> None:
        self._known: dict[Any, CompiledScan] = {}
        self.get = self._known.get

    def add(self, key: Any, compiled: CompiledScan, given: list[Any], prepared: list[Any]) -> None:
        """Remembers the kind, if its arguments were taken as they stand."""
        if compiled.symbolic or len(given) != len(prepared) or any(a is not b for a, b in zip(given, prepared, strict=True)):
            return
        if len(self._known) >= MOST_KEYS:
            self._known.clear()
        self._known[key] = compiled
