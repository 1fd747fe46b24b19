"""Casts: an expression in another dtype, with NumPy's result."""

from __future__ import annotations

import numpy as np

from ..ir.loops import ATOM, Apply, Expr, Literal, Template
from ..ops.elementary import FLOAT_TO_UINT64

# A float beyond an integer's range gives whatever the machine gives. Through int64 it gives NumPy's number: -2.5 is 65534 as uint16.
_THROUGH_INT64 = {name: Template(f"np.{name}(np.int64({{0}}))") for name in ("int8", "int16", "uint8", "uint16", "uint32")}
_THROUGH_INT64["uint64"] = FLOAT_TO_UINT64


def cast(expr: Expr, dtype: str) -> Expr:
    """`expr` cast to a dtype; unchanged if it has it already."""
    if expr.dtype == dtype:
        return expr
    if isinstance(expr, Literal) and not (dtype == "bool" or expr.dtype == "bool"):
        is_real = dtype.startswith(("float", "complex")) and not isinstance(expr.value, complex)
        if is_real or (dtype.startswith("int") and isinstance(expr.value, int)):
            with np.errstate(over="ignore"):
                return Literal(dtype, np.array(expr.value).astype(dtype).item())  # rounded to the dtype: it may be cast again
    if dtype == "bool":
        return Apply("bool", Template("bool({0})"), (expr,))
    if expr.dtype.startswith("complex") and not dtype.startswith("complex"):
        expr = Apply("float64" if expr.dtype == "complex128" else "float32", Template("{0}.real", ATOM, (ATOM,)), (expr,))
    if expr.dtype.startswith("float") and dtype in _THROUGH_INT64:
        return Apply(dtype, _THROUGH_INT64[dtype], (expr,))
    return Apply(dtype, Template(f"np.{dtype}({{0}})"), (expr,))
