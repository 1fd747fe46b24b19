"""The names of functions that generated code may call, known without importing Numba or SciPy: those of cards, and the text's own."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from ..ir.loops import FUNCTION
from ..ops import (  # noqa: F401 - cards bring the names of their helpers
    block_size,
    checkpoint_schedule,
    compare,
    elementary,
    hidden_product,
    incomplete,
    random,
    special,
)
from ..ops.elementwise import HELPERS as OF_CARDS
from ..ops.elementwise import in_lanes

WRAPPING = ("wrapping_add", "wrapping_sub", "wrapping_mul")
"""Arithmetic of int64 modulo 2**64."""

LOOKS = ("interrupted", "interrupted_at", "new_watch", "stopped", "stopped_at")
"""Whether a call is to stop."""

INTRINSICS = ("small_array", "lanes", "in_threads", *LOOKS, *WRAPPING)
"""In `numbascan.emit.runtime.intrinsics`: operations that generated code asks LLVM for."""

ROUTINES = ("draws", "externals", "fourier", "linalg", "recurrences", "row_products", "small", "sorting", "spectral", "triangles")
"""Modules in `numbascan.emit.runtime.routines`."""

ANY_ORDER = ("add_any_order", "max_or_nan", "min_or_nan")
"""In `numbascan.emit.runtime.vecmath`: reductions that may be reassociated into several accumulators."""

HELPERS: dict[str, list[str]] = {"intrinsics": [*INTRINSICS], "random": [], "scalars": [], "special": [], "vecmath": [*ANY_ORDER]}
"""The names that text may call, by their module in `numbascan.emit.runtime`."""

for _name, _helper in OF_CARDS.items():
    HELPERS[_helper.module] += [_name, in_lanes(_name)] if _helper.cost == FUNCTION else [_name]


def has_gpu_code(name: str) -> bool:
    """True if a GPU kernel may call a function of numbers that stands beside a card: one that does not reach SciPy's machine code."""
    helper = OF_CARDS.get(name)
    if helper is None or helper.module != "scalars" or helper.function is None:
        return helper is None or helper.module != "special"
    return all(map(has_gpu_code, _called_by(helper.function.__code__, helper.function.__globals__)))


def _called_by(code: CodeType, names: dict[str, Any]) -> set[str]:
    """The helpers that a function calls, directly or through functions beside it."""
    called = {name for name in code.co_names if name in OF_CARDS}
    for name in set(code.co_names) - called:
        function = names.get(name)
        if isinstance(function, FunctionType) and function.__code__ is not code:
            called |= _called_by(function.__code__, function.__globals__)
    return called
