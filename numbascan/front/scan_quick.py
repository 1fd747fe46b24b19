"""The short way of a call: arguments whose kind was seen before go straight to the compiled code.

Taken by arrays and floats that need no conversion, alone or in a flat list; everything else takes the long way, through `Arguments`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile import PLAIN, remember
from .scan_kind import CompiledScan


def quick_call(sequences: Any, outputs_info: Any, non_sequences: Any, n_steps: Any) -> tuple[Any, list[Any]] | None:
    """A key that decides the kind, and the values that compiled code takes, in order; None where the long way must be taken."""
    keys: list[Any] = [n_steps is None, sequences is None]
    values: list[Any] = []
    if n_steps is not None:
        if type(n_steps) is not int or n_steps < 0:
            return None
        values.append(n_steps)
    if sequences is not None and not _read(sequences, keys, values, True):
        return None
    keys.append(outputs_info is None)
    if outputs_info is not None and not _read(outputs_info, keys, values, False):
        return None
    keys.append(non_sequences is None)
    if non_sequences is not None and not _read(non_sequences, keys, values, False):
        return None
    return tuple(keys), values


def _read(given: Any, keys: list[Any], values: list[Any], are_rows: bool) -> bool:
    """Adds the key and the values of one array or number, or of a flat list of these; False for anything else."""
    for item in given if type(given) is tuple or type(given) is list else (given,):
        kind = type(item)
        if kind is np.ndarray:
            shape = item.shape
            if not shape or item.flags.num & PLAIN != PLAIN:
                return False
            keys.append(item.dtype)
            keys.append(shape[1:] if are_rows and shape[0] != 1 else shape)
        elif kind is float or (kind is int and -(2**63) <= item < 2**63):
            keys.append(kind)
        else:
            return False
        values.append(item)
    return True


class QuickTable:
    """Compiled code by the keys of `quick_call`, and a short key in place of each: a long one takes 0.2 us to look up."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[CompiledScan, object]] = {}
        self.get = self._known.get

    def add(self, key: Any, compiled: CompiledScan, given: list[Any], prepared: list[Any]) -> None:
        """Remembers the kind, if its arguments were taken as they stand."""
        if not compiled.symbolic and len(given) == len(prepared) and all(a is b for a, b in zip(given, prepared, strict=True)):
            remember(self._known, key, (compiled, object()))
