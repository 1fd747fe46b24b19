"""Names of the functions that a kernel of a GPU may call as `math.f(x)`. Importing this does not import Numba."""

from __future__ import annotations

OF_MATH = (
    *(
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
    ),
    *("atanh", "atan2", "hypot", "pow", "erf", "erfc", "gamma", "lgamma", "sqrt", "isnan", "isinf", "isfinite", "copysign", "radians"),
    *("degrees", "floor", "ceil", "fmod", "nextafter", "fabs"),
)
"""Functions of Python's `math` that CUDA has."""

WRITTEN_FOR_GPU = (
    *("trunc", "rint", "exp2", "max_or_nan", "min_or_nan", "fmax", "fmin", "less", "less_equal", "greater", "greater_equal", "equal"),
    *("not_equal", "conj", "add_any_order", "wrapping_add", "wrapping_sub", "wrapping_mul", "fma"),
    *("rounded_product", "rounded_product_single"),
)
"""Functions that `numbascan.emit.runtime.cuda_functions` defines."""

OTHER_NAMES = {"arctan": "atan", "arctanh": "atanh", "abs": "fabs"}
"""NumPy's names for functions of `math`."""


OF_GPU = {*OF_MATH, *WRITTEN_FOR_GPU, *OTHER_NAMES, "cbrt"}
"""All names that a kernel of a GPU may call as `math.f(x)`."""

LARGE_PRODUCT = 2**18
"""Multiplications from which a matrix product is worth a call of cuBLAS, which splits a loop's one kernel: an estimate."""

MOST_NUMBERS = 8
"""The most numbers in the message of an error."""
