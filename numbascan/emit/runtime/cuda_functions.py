"""Scalar functions that CUDA kernels call, by their names in the code of cards. Importing this imports Numba.

On a GPU they are those of CUDA's libdevice, and the functions beside cards, compiled unchanged. On the host, and in Numba's simulator,
Python runs the same code on NumPy's scalars, with NumPy's functions in place of those of `math`, which raise where a GPU gives NaN or
infinity.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import textwrap
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...ops.elementwise import HELPERS
from ..inside import cuda_package
from . import random
from .gpu_names import OF_MATH, OTHER_NAMES, WRITTEN_FOR_GPU

cuda = cuda_package.cuda()
SIMULATED = cuda_package.is_simulated()


# what math lacks on a GPU, in arithmetic of the operand's own dtype -----------------------------------------------------------------------


def _trunc(x: Any) -> Any:
    return math.copysign(math.floor(abs(x)), x)


def _rint(x: Any) -> Any:
    whole = math.floor(x)
    rest = x - whole
    half = type(x)(0.5)
    if rest == half:
        is_even = whole == type(x)(2) * math.floor(half * whole)
        return math.copysign(whole if is_even else whole + type(x)(1), x)
    return math.copysign(whole if rest < half else whole + type(x)(1), x)


def _exp2(x: Any) -> Any:
    return math.pow(type(x)(2), x)


def _cbrt(x: Any) -> Any:
    return cuda.cbrt(x)


def _fma(a: Any, b: Any, c: Any) -> Any:
    return cuda.fma(a, b, c)


def _greater_or_nan(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


def _lesser_or_nan(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


def _greater(a: Any, b: Any) -> Any:
    return a if a > b or b != b else b


def _lesser(a: Any, b: Any) -> Any:
    return a if a < b or b != b else b


def _less(a: Any, b: Any) -> Any:
    return a < b


def _less_equal(a: Any, b: Any) -> Any:
    return a <= b


def _conj(z: Any) -> Any:
    return z.conjugate()


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _wrapping_add(a: Any, b: Any) -> Any:
    return np.int64(np.uint64(a) + np.uint64(b))


def _wrapping_sub(a: Any, b: Any) -> Any:
    return np.int64(np.uint64(a) - np.uint64(b))


def _wrapping_mul(a: Any, b: Any) -> Any:
    return np.int64(np.uint64(a) * np.uint64(b))


def _rounded_product(x: Any, y: Any) -> Any:
    return cuda.libdevice.dmul_rn(x, y)


def _rounded_product_single(x: Any, y: Any) -> Any:
    return cuda.libdevice.fmul_rn(x, y)


_WRITTEN: dict[str, Callable[..., Any]] = {
    "trunc": _trunc,
    "rint": _rint,
    "exp2": _exp2,
    "max_or_nan": _greater_or_nan,
    "min_or_nan": _lesser_or_nan,
    "fmax": _greater,
    "fmin": _lesser,
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "conj": _conj,
    "add_any_order": _sum,
    "wrapping_add": _wrapping_add,
    "wrapping_sub": _wrapping_sub,
    "wrapping_mul": _wrapping_mul,
    "fma": _fma,
    "rounded_product": _rounded_product,
    "rounded_product_single": _rounded_product_single,
}
_OF_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh"}
_OF_NUMPY |= {"atanh": "arctanh", "pow": "power", "max_or_nan": "maximum", "min_or_nan": "minimum", "add_any_order": "add"}
_OF_NUMPY |= {"rounded_product": "multiply", "rounded_product_single": "multiply"}


class Functions:
    """The functions by name, as attributes: for a GPU, or for Python on NumPy's scalars."""

    def __init__(self, is_for_gpu: bool) -> None:
        self._is_for_gpu = is_for_gpu
        self._beside_cards: dict[Callable[..., Any], Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        helper = HELPERS.get(name)
        function = self._table.get(OTHER_NAMES.get(name, name))
        if function is None and helper is not None and helper.function is not None:
            function = self._beside_card(helper.function)
        if function is None and helper is not None and helper.module == "random":
            function = self._draws[name]
        if function is None and helper is not None and not self._is_for_gpu:
            function = _of_cpu(helper.module, name)
        if function is None:
            raise AttributeError(f"{name} has no code for a GPU")
        setattr(self, name, function)
        return function

    @cached_property
    def _table(self) -> dict[str, Any]:
        """By name, the functions that are neither beside a card nor draws."""
        if not self._is_for_gpu:
            return _by_numpy()
        written = {name: _on_device(function) for name, function in _WRITTEN.items()}
        return {**{name: getattr(math, name) for name in OF_MATH}, **written, "cbrt": _on_device(_cbrt)}

    @cached_property
    def _draws(self) -> dict[str, Any]:
        return (
            random.functions_for(_on_device, {"np": self._modules[np], **_draw_primitives()}, _without_fma)
            if self._is_for_gpu
            else random.in_python()
        )

    @cached_property
    def gpu_math(self) -> ModuleType:
        """The module that generated text calls as `math`."""
        others = {other: self._table[name] for other, name in OTHER_NAMES.items()}
        return _module("math", {**vars(math), **self._table, **others})

    @cached_property
    def _modules(self) -> dict[Any, Any]:
        """What functions beside cards get in place of `np` and `math`. On a GPU: an `np` of NumPy's types, constants and these functions.
        In Python: a `math` that does not raise."""
        if not self._is_for_gpu:
            return {math: self.gpu_math}
        others = {other: self._table[name] for other, name in OTHER_NAMES.items()}
        return {
            np: _module("np", {**{name: one for name, one in vars(np).items() if isinstance(one, type | float)}, **self._table, **others})
        }

    def _beside_card(self, function: Callable[..., Any]) -> Any:
        """A function beside a card, with those that it calls; compiled if it is for a GPU."""
        if function not in self._beside_cards:
            names = {
                name: self._modules.get(one, one) if isinstance(one, ModuleType) else one for name, one in function.__globals__.items()
            }
            for name in function.__code__.co_names:
                if name in HELPERS or name in self._table:
                    names[name] = getattr(self, name)
                elif isinstance(names.get(name), FunctionType):
                    names[name] = self._beside_card(names[name])
            own = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
            self._beside_cards[function] = _on_device(own) if self._is_for_gpu else own
        return self._beside_cards[function]


def _module(name: str, members: dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update({member: value for member, value in members.items() if not member.startswith("__")})
    return module


def _by_numpy() -> dict[str, Any]:
    """The same functions by name, on NumPy's scalars."""
    from scipy import special

    names = {name: _OF_NUMPY.get(name, name) for name in (*OF_MATH, *_WRITTEN, "cbrt")}
    table = {name: getattr(np, of_numpy) for name, of_numpy in names.items() if hasattr(np, of_numpy)}
    of_scipy = {"erf": special.erf, "erfc": special.erfc, "gamma": special.gamma, "lgamma": special.gammaln}
    table |= {"maximum": np.maximum, "minimum": np.minimum}
    wrapping = {"wrapping_add": np.add, "wrapping_sub": np.subtract, "wrapping_mul": np.multiply}
    typed = {name: _on_int64(function) for name, function in wrapping.items()}
    return {**table, **of_scipy, **typed, "fma": _fma_in_python}


def _of_cpu(module: str, name: str) -> Callable[..., Any]:
    """The CPU's compiled function, for the host, where no GPU has one."""
    compiled = getattr(importlib.import_module(f".{module}", __package__), name)
    return lambda *args: type(args[-1])(compiled(*args))


def _fma_in_python(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    if not np.isfinite(a * b + c):
        return a * b + c
    return type(c)(float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))))


def _on_int64(function: np.ufunc) -> Callable[..., Any]:
    return lambda a, b: function(np.int64(a), np.int64(b))


def _draw_primitives() -> dict[str, Any]:
    """The parts of draws that a GPU has instructions for."""
    libdevice = cuda.libdevice

    def multiply_wide(a: Any, b: Any) -> Any:
        return np.uint64(libdevice.umul64hi(a, b)), a * b

    def select(condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b

    def bits_of(x: Any) -> Any:
        return np.uint64(libdevice.double_as_longlong(np.float64(x)))

    def double_of(bits: Any) -> Any:
        return libdevice.longlong_as_double(np.int64(bits))

    primitives = {function.__name__: _on_device(function) for function in (multiply_wide, select, bits_of, double_of)}
    return {**primitives, "rounded_product": _on_device(_rounded_product)}


def _on_device(function: Callable[..., Any]) -> Any:
    return cuda.jit(function, device=True)


def _without_fma(function: Callable[..., Any]) -> CodeType:
    """The code of a function with every product rounded by itself: a GPU would fuse products with sums, and draws must have the same bits
    everywhere."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    module = compile(ast.fix_missing_locations(_RoundedProducts().visit(tree)), inspect.getfile(function), "exec")
    return next(one for one in module.co_consts if isinstance(one, CodeType))


class _RoundedProducts(ast.NodeTransformer):
    """x * y becomes rounded_product(x, y)."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        is_product = isinstance(node.op, ast.Mult)
        return ast.Call(ast.Name("rounded_product", ast.Load()), [node.left, node.right], []) if is_product else node


host = Functions(is_for_gpu=False)
_of_kernels = host if SIMULATED else Functions(is_for_gpu=True)


assert set(_WRITTEN) == set(WRITTEN_FOR_GPU)


def __getattr__(name: str) -> Any:
    return getattr(_of_kernels, name)
