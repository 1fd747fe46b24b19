"""Names of the functions that generated code may call, known without importing Numba or SciPy: those of cards, and the text's own."""

from __future__ import annotations

from ..ir.loops import FUNCTION
from ..ops import checkpoint_schedule, compare, elementary, incomplete, random, special  # noqa: F401 - cards bring the names of their helpers
from ..ops.elementwise import HELPERS as OF_CARDS
from ..ops.elementwise import in_lanes

WRAPPING = ("wrapping_add", "wrapping_sub", "wrapping_mul")
"""Arithmetic of int64 modulo 2**64."""

INTRINSICS = ("small_array", "lanes", "in_threads", *WRAPPING)
"""In `numbascan.emit.runtime.intrinsics`: what generated code asks of LLVM."""

ROUTINES = ("draws", "linalg", "recurrences", "small", "sorting", "spectral", "triangles")
"""Modules in `numbascan.emit.runtime.routines`."""

ANY_ORDER = ("add_any_order", "max_or_nan", "min_or_nan")
"""In `numbascan.emit.runtime.vecmath`: what the SIMD unit may do in several accumulators."""

HELPERS: dict[str, list[str]] = {"intrinsics": [*INTRINSICS], "random": [], "scalars": [], "special": [], "vecmath": [*ANY_ORDER]}
"""What text may call, by its module in `numbascan.emit.runtime`."""

for _name, _helper in OF_CARDS.items():
    HELPERS[_helper.module] += [_name, in_lanes(_name)] if _helper.cost == FUNCTION else [_name]
