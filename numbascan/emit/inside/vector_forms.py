"""glibc's libmvec, vector forms of the functions of libm: which there are, and the library where machine code finds it.

Known without importing Numba. Measured on x86-64 (docs/accuracy.md); other processors, and systems without the library, have no names here.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cache

from llvmlite import binding

LIBRARY = "libmvec.so.1"

ARITY = {
    **dict.fromkeys(("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt"), 1),
    **dict.fromkeys(("pow", "hypot", "atan2"), 2),
}
"""How many operands each function takes."""

REGISTERS = (("b", 16, "sse2"), ("c", 32, "avx"), ("d", 32, "avx2"), ("e", 64, "avx512f"))
"""Vector registers of x86-64: the letter in names of functions, the bytes, the feature that the processor must have. The best last."""


def vector_names(name: str, itemsize: int, features: Set[str]) -> dict[int, str]:
    """The vector form of a function for each number of lanes, on a processor with `features`; `itemsize` 4 for float, 8 for double."""
    arity, scalar = ARITY[name], name if itemsize == 8 else f"{name}f"
    named = {}
    for letter, size, feature in REGISTERS:
        if feature in features:
            named[size // itemsize] = f"_ZGV{letter}N{size // itemsize}{'v' * arity}_{scalar}"
    return named


@cache
def present() -> frozenset[str]:
    """The vector forms that this process can call. Loads the library, which compiled code from the disk needs as well."""
    try:
        binding.load_library_permanently(LIBRARY)
    except RuntimeError:
        return frozenset()
    return frozenset(symbol for symbol in _known() if binding.address_of_symbol(symbol))


def _known() -> Iterator[str]:
    """Every vector form there may be."""
    for name in ARITY:
        for itemsize in (4, 8):
            for _, _, feature in REGISTERS:
                yield from vector_names(name, itemsize, {feature}).values()
