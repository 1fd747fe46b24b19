"""Linear recurrences on contiguous arrays, for njit."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit
def recur_into(result: Any, factors: Any, terms: Any) -> None:
    """result[0] = terms[0], then result[k] = factors[k] * result[k - 1] + terms[k]."""
    if not len(terms):
        return
    last = terms[0]
    result[0] = last
    for k in range(1, len(terms)):
        last = factors[k] * last + terms[k]
        result[k] = last
