"""The short way of a call: arguments whose kind was seen before go straight to the compiled code.

Taken by arrays and floats that need no conversion, alone or in a flat list; everything else takes the long way, through `Arguments`.
"""

from __future__ import annotations

from typing import Any

from ...compile import key_of, remember
from .compiled import CompiledScan

_LISTS = (list, tuple)


def quick_call(sequences: Any, outputs_info: Any, non_sequences: Any, n_steps: Any) -> tuple[Any, list[Any]] | None:
    """A key that decides the kind, and the values that compiled code takes, in order; None where the long way must be taken."""
    if n_steps is not None and (type(n_steps) is not int or not 0 <= n_steps < 2**63):
        return None
    # a list of items, where one alone may stand without the list; three times, since a call of a function takes 50 ns
    rows = sequences if type(sequences) in _LISTS else () if sequences is None else (sequences,)
    initial = outputs_info if type(outputs_info) in _LISTS else () if outputs_info is None else (outputs_info,)
    constant = non_sequences if type(non_sequences) in _LISTS else () if non_sequences is None else (non_sequences,)
    others = [*initial, *constant]
    kinds = key_of(others, rows)
    if kinds is None:
        return None
    return (n_steps is None, len(rows), len(initial), kinds), [*rows, *others] if n_steps is None else [n_steps, *rows, *others]


class QuickTable:
    """Compiled code by the keys of `quick_call`, and a short key in place of each: a long one takes 0.2 us to look up."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[CompiledScan, object]] = {}
        self.get = self._known.get

    def add(self, key: Any, compiled: CompiledScan, given: list[Any], prepared: list[Any]) -> None:
        """Remembers the kind, if its arguments were taken as they stand."""
        if len(given) == len(prepared) and all(a is b for a, b in zip(given, prepared, strict=True)):
            remember(self._known, key, (compiled, object()))
