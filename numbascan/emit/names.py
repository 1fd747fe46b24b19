"""Names of the scalar functions that generated code may call, known without importing Numba or SciPy."""

from __future__ import annotations

COUNTING = ("int_floor_divide", "int_remainder", "binomial_split", "fewest_slots", "thinned_stride")
"""Those of the next that sizes are computed with."""

SCALARS = (
    *("sign", "floor_divide", "remainder", "int_fmod", "int_power", "int_reciprocal"),
    *("left_shift", "right_shift", "heaviside", "float_to_uint64", "logaddexp", "logaddexp2", "softplus"),
    *COUNTING,
    *("complex_square", "complex_divide", "complex_reciprocal", "complex_sign", "complex_power"),
    *("complex_sqrt", "complex_exp", "complex_exp2", "complex_expm1", "complex_log", "complex_log2", "complex_log10"),
    *("complex_sin", "complex_cos", "complex_tan", "complex_sinh", "complex_cosh", "complex_tanh"),
    *("complex_arcsin", "complex_arccos", "complex_arcsinh", "complex_arccosh"),
)
"""In `numbascan.emit.scalars`: plain arithmetic and math.*, for njit and cuda.jit."""

SPECIAL = ("digamma", "polygamma", "erfinv", "betaln")
"""In `numbascan.emit.special`: SciPy's machine code, for the CPU."""
