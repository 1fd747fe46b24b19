"""Names of the scalar functions that generated code may call, known without importing Numba or SciPy."""

from __future__ import annotations

COUNTING = ("int_floor_divide", "int_remainder", "binomial_split", "fewest_slots", "thinned_stride")
"""Those of the next that sizes are computed with."""

SCALARS = (
    *("sign", "floor_divide", "remainder", "int_fmod", "int_square", "int_power", "int_reciprocal"),
    *("left_shift", "right_shift", "heaviside", "float_to_uint64"),
    *COUNTING,
    *("complex_square", "complex_divide", "complex_reciprocal", "complex_sign", "complex_power"),
    *("complex_sqrt", "complex_exp", "complex_exp2", "complex_expm1", "complex_log", "complex_log2", "complex_log10"),
    *("complex_sin", "complex_cos", "complex_tan", "complex_sinh", "complex_cosh", "complex_tanh"),
    *("complex_arcsin", "complex_arccos", "complex_arcsinh", "complex_arccosh"),
)
"""In `numbascan.emit.runtime.scalars`: plain arithmetic and math.*, for njit and cuda.jit."""

FUNCTIONS = (
    *("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "hypot"),
    *("sigmoid", "softplus", "logaddexp", "logaddexp2"),
)
"""Of real numbers, with vector forms."""


def in_lanes(name: str) -> str:
    """The function of that name whose bits are the same in every lane."""
    return f"{name}_in_lanes"


VECMATH = (*FUNCTIONS, *map(in_lanes, FUNCTIONS), "add_any_order")
"""In `numbascan.emit.runtime.vecmath`: vectorised in loops that can be."""

WRAPPING = ("wrapping_add", "wrapping_sub", "wrapping_mul")
"""Arithmetic of int64 modulo 2**64."""

INTRINSICS = ("small_array", "lanes", "in_threads", *WRAPPING)
"""In `numbascan.emit.runtime.intrinsics`: what generated code asks of LLVM."""

ROUTINES = ("draws", "linalg", "recurrences", "small", "sorting", "spectral", "triangles")
"""Modules in `numbascan.emit.runtime.routines`."""

SPECIAL = ("digamma", "polygamma", "erfinv", "betaln")
"""In `numbascan.emit.runtime.special`: SciPy's machine code, for the CPU."""

RANDOM = (
    *("random_bits", "random_normal", "uniform_of", "single_uniform_of", "exponential_of", "exact_log", "exact_exp", "exact_log1p"),
    *("cauchy_of", "laplace_of", "logistic_of", "normal_of"),
    *("random_gamma", "random_log_gamma", "random_poisson", "random_binomial", "random_below", "geometric_of"),
)
"""In `numbascan.emit.runtime.random`: random numbers, and functions whose last bit is the same everywhere."""
