"""Scalar functions that are written beside cards, compiled unchanged. Importing this imports Numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from numba import njit

from ...ir.loops import FUNCTION, PLAIN
from ...ops.elementwise import HELPERS, in_lanes
from . import vecmath
from .intrinsics import wrapping_mul


@cache
def _compiled(function: Callable[..., Any], lanes: bool) -> Any:
    """The function, compiled with those that it calls; none may call itself. lanes: with libm's functions for lanes."""
    names: dict[str, Any] = {**function.__globals__, "wrapping_mul": wrapping_mul}
    for name in function.__code__.co_names:
        module = HELPERS[name].module if name in HELPERS else ""
        if module == "vecmath":
            names[name] = getattr(vecmath, in_lanes(name) if lanes else name)
        elif module == "special":
            names[name] = getattr(import_module(".special", __package__), name)  # only where it is called: importing SciPy takes long
        elif isinstance(names.get(name), FunctionType):
            names[name] = _compiled(names[name], lanes)
    helper = HELPERS.get(function.__name__)
    is_inlined = helper is not None and helper.cost in (PLAIN, FUNCTION)  # a call would keep SIMD out of the loop around it
    return njit(error_model="numpy", forceinline=is_inlined)(
        FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    )


def __getattr__(name: str) -> Any:
    plain = name.removesuffix(in_lanes(""))
    helper = HELPERS.get(plain)
    if helper is None or helper.function is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _compiled(helper.function, plain != name)
