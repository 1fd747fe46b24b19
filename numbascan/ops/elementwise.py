"""Elementwise ops: cards made from NumPy ufuncs, and arithmetic.

Value and dtype come from the ufunc itself; a card adds the text of one element. NumPy computes some functions of bool and
int8 in half precision; numbascan computes these in single.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy import multiply as wrapping_mul

from ..ir import loops as ir
from ..ir.node import Node, constant_value
from ..types import TensorType, broadcast_shapes, dtype_name
from .algebra import call as op
from .algebra import cast, conj, dims_of, div, is_one, mul, neg, power, same_dims, square, sub, where, zeros_like
from .card import Card, Gate, register, user_line
from .complex_functions import complex_divide, complex_power, complex_reciprocal, complex_sign, complex_sqrt, complex_square
from .lowering import Elementwise

Loop = Callable[..., tuple[str, ...]]
Code = ir.Template | dict[str, ir.Template] | Callable[..., ir.Template]
Samples = Callable[[], list[tuple[tuple[Any, ...], dict[str, Any]]]]
Partials = Callable[..., tuple[Any, ...]]

_WEAK = {"i": int, "u": int, "f": float, "c": complex}


def ufunc_loop(ufunc: np.ufunc) -> Loop:
    """The dtypes in which `ufunc` computes on operands of given types, results last; weak numbers give way as in NumPy 2."""

    @cache
    def resolve(*operands: tuple[str, bool]) -> tuple[str, ...]:
        asked: list[Any] = [_WEAK.get(np.dtype(dtype).kind, np.dtype(dtype)) if weak else np.dtype(dtype) for dtype, weak in operands]
        if all(weak for _, weak in operands):  # all Python numbers: as Python computes, in 64 bits
            asked = [np.dtype(dtype) for dtype, _ in operands]
        dtypes = ufunc.resolve_dtypes((*asked, *(None,) * ufunc.nout))
        if any(dtype == np.float16 for dtype in dtypes):
            dtypes = ufunc.resolve_dtypes((*(np.dtype("float32") for _ in asked), *(None,) * ufunc.nout))
        return tuple(dtype_name(dtype) for dtype in dtypes)

    def loop(*types: TensorType) -> tuple[str, ...]:
        try:
            return resolve(*((type_.dtype, type_.weak) for type_ in types))
        except TypeError as error:
            raise undefined(f"np.{ufunc.__name__}", types, f"{error}; x.astype(dtype) casts") from None

    return loop


def undefined(name: str, types: tuple[TensorType, ...], reason: str) -> TypeError:
    """The error for an op that is not defined for these dtypes."""
    origin = user_line()
    where = f" ({origin[0]}, line {origin[1]})" if origin else ""
    dtypes = " and ".join(type_.dtype for type_ in types)
    return TypeError(f"{name} is not defined for {dtypes}{where}: {reason}")


# texts --------------------------------------------------------------------------------------------------------------

IDENTITY = ir.Template("{0}", ir.ATOM, (ir.ATOM,))


@dataclass(frozen=True)
class Helper:
    """A function of numbers that generated code calls: its file in `emit/runtime/`, the number of its operands, its cost.

    One of cost FUNCTION also has a form `name_in_lanes`, for loops over elements. function: what `emit/runtime/scalars.py` compiles.
    """

    module: str
    arity: int
    cost: str
    function: Callable[..., Any] | None = None


HELPERS: dict[str, Helper] = {}
"""The helpers of all cards, by name."""


def in_lanes(name: str) -> str:
    """The helper of that name whose bits are the same in every lane."""
    return f"{name}_in_lanes"


def call(text: str, cost: str = ir.CALL) -> ir.Template:
    """A call of a function that Numba knows: `call("math.sqrt({0})", DIVISION)`. It binds as an atom and takes any operand."""
    return ir.Template(text, cost=cost)


def helper(
    module: str, name: str, arity: int = 1, cost: str = ir.CALL, function: Callable[..., Any] | None = None, raises: bool = False
) -> ir.Template:
    """A call of a function of `emit/runtime/`."""
    entry = Helper(module, arity, cost, function)
    if HELPERS.setdefault(name, entry) != entry:
        raise ValueError(f"two helpers are named {name!r}")
    return ir.Template(f"{name}({', '.join(f'{{{k}}}' for k in range(arity))})", cost=cost, raises=raises)


def libm(name: str, arity: int = 1) -> ir.Template:
    """A call of a function of libm; in loops that can be vectorised, of its vector form."""
    return helper("vecmath", name, arity, ir.FUNCTION)


def compiled(function: Callable[..., Any], cost: str = ir.CALL, raises: bool = False) -> ir.Template:
    """A call of a function that is written beside its card, and takes one number per operand.

    It is compiled as it stands, with the functions that it calls; `exp` and the like are those of `libm`. `type(x)(1)` is a 1 of the
    operand's dtype: single precision stays single. Cost FUNCTION: it has no branch that SIMD cannot take. raises: some operands raise.
    """
    return helper("scalars", function.__name__, function.__code__.co_argcount, cost, function, raises)


def infix(sign: str, level: int, wraps: bool = False, cost: str = ir.PLAIN) -> ir.Template:
    """A left-associative operator: the right operand must bind more tightly, as rounding is not associative."""
    return ir.Template(f"{{0}} {sign} {{1}}", level, (level, level + 1), wraps, cost)


def prefix(sign: str, level: int) -> ir.Template:
    """An operator before its operand."""
    return ir.Template(f"{sign}{{0}}", level, (level,))


def by_kind(**codes: ir.Template) -> dict[str, ir.Template]:
    """A text per NumPy kind letter: by_kind(iu=…, f=…); a dtype name stands for that dtype alone."""
    result: dict[str, ir.Template] = {}
    for kinds, code in codes.items():
        result.update({kinds: code} if kinds[-1].isdigit() else dict.fromkeys(kinds, code))
    return result


def _code(code: Code) -> Callable[..., ir.Template]:
    """The text as a function of a loop's dtypes: one text for all, one by name or NumPy kind of the first, or `code` as it is."""
    if isinstance(code, ir.Template):
        return lambda *loop: code
    if not isinstance(code, dict):
        return code

    def choose(*loop: str) -> ir.Template:
        return code.get(loop[0]) or code[np.dtype(loop[0]).kind]

    return choose


# samples for the tests ----------------------------------------------------------------------------------------------

_SHAPES = ((2, 3), (3,), (2, 1))


def points(*domains: tuple[float, float], with_complex: bool = False) -> Samples:
    """Samples: generic operands that broadcast, inside the given intervals, one per operand."""

    def samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        reals = tuple(_inside(low, high, shape, k) for k, ((low, high), shape) in enumerate(zip(domains, _SHAPES, strict=False)))
        operands: list[tuple[tuple[Any, ...], dict[str, Any]]] = [(reals, {})]
        if with_complex:
            operands.append((tuple(real + 1j * _inside(-0.6, 0.7, real.shape, k + 3) for k, real in enumerate(reals)), {}))
        return operands

    return samples


def integers(*domains: tuple[float, float], dtype: str = "int64") -> Samples:
    """Samples: operands of whole numbers inside the given intervals."""
    inner = points(*domains)
    return lambda: [(tuple(np.round(value).astype(dtype) for value in values), attrs) for values, attrs in inner()]


def _inside(low: float, high: float, shape: tuple[int, ...], seed: int) -> Any:
    fractions = (np.arange(1, 1 + np.prod(shape)) * 0.6180339887 + 0.23 * seed) % 1.0
    return (low + (high - low) * fractions).reshape(shape)


# cards --------------------------------------------------------------------------------------------------------------


OPERANDS = {1: "x", 2: "x1 x2", 3: "x1 x2 x3"}
"""The names of operands in the documentation."""


def elementwise(
    name: str,
    ufunc: np.ufunc,
    code: Code,
    *keys: Callable[..., Any] | str,
    domains: tuple[tuple[float, float], ...] = (),
    loop: Loop | None = None,
    **facets: Any,
) -> Card:
    """Registers the card of a ufunc with one result.

    keys: other functions of the same meaning. domains: where to sample. loop: the dtypes in which it computes; default: the ufunc's own.
    """
    domains = domains or ((-1.7, 2.1),) * ufunc.nin
    has_floats = any(types[0] in "fd" for types in ufunc.types)
    sample = points(*domains, with_complex=any(types[0] == "D" for types in ufunc.types)) if has_floats else integers(*domains)
    facets = {"samples": sample, "operands": OPERANDS[ufunc.nin], **facets}
    return loop_card(name, ufunc, loop or ufunc_loop(ufunc), code, ufunc, *keys, **facets)


OPERATORS = (
    *("add", "subtract", "multiply", "true_divide", "floor_divide", "remainder", "power", "negative", "positive"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"),
    *("less", "less_equal", "equal", "not_equal", "greater", "greater_equal"),
)
"""Python's operators, which on Python numbers give a Python number again. NumPy's other functions give strong scalars."""


def loop_card(
    name: str,
    evaluate: Callable[..., Any],
    loop: Loop,
    code: Code,
    *keys: Callable[..., Any] | str,
    partials: Partials | None = None,
    kind: type[Card] = Card,
    **facets: Any,
) -> Card:
    """Registers an elementwise card without attributes, from the dtypes it computes in, its text, and its derivatives."""

    def infer(*types: TensorType) -> TensorType:
        shape = broadcast_shapes(*(type_.shape for type_ in types))
        return TensorType(loop(*types)[-1], shape, name in OPERATORS and all(type_.weak for type_ in types))

    if partials is not None:
        partials = _on_computed_operands(loop, partials)
    return register(kind(name, evaluate, infer, Elementwise(loop, _code(code)), keys, partials=partials, **facets))


def _on_computed_operands(loop: Loop, partials: Partials) -> Partials:
    """`partials` on operands cast to the dtypes in which the card computes: in its own dtype, y - 1 of an unsigned 0 would wrap."""

    def on_computed(out: Node, *operands: Node) -> tuple[Any, ...]:
        dtypes = loop(*(operand.type for operand in operands))
        return partials(out, *(x if x.type.dtype == dtype else cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=False)))

    return on_computed


ADD = elementwise(
    "add",
    np.add,
    by_kind(b=infix("or", ir.OR), iufc=ir.IN_ORDER),
    partials=lambda out, x, y: (1, 1),
    hint="total",
    summary="x1 + x2",
    is_cheap=True,
)
SUB = elementwise(
    "subtract",
    np.subtract,
    ir.DIFFERENCE,
    partials=lambda out, x, y: (1, -1),
    hint="difference",
    summary="x1 - x2",
    aliases="sub",
    is_cheap=True,
)


class _MultiplyCard(Card):
    """Rebuilt with ones that have the other operand's shape, as cotangents of sums may be, it is the other operand."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        product = Card.rebuilt(self, node, inputs)
        for ones, other in (inputs, inputs[::-1]):
            if is_one(ones) and other.type == product.type and product.type.kind == "f" and same_dims(other, dims_of(ones)):
                return other
        return product


MUL = elementwise(
    "multiply",
    np.multiply,
    by_kind(b=infix("and", ir.AND), iufc=ir.PRODUCT),
    partials=lambda out, x, y: (y, x),
    kind=_MultiplyCard,
    hint="product",
    summary="x1 * x2",
    aliases="mul",
    is_cheap=True,
)
ROUNDED_MUL = loop_card(
    "rounded_multiply",
    np.multiply,
    ufunc_loop(np.multiply),
    by_kind(b=infix("and", ir.AND), iufc=ir.ROUNDED_PRODUCT),
    partials=lambda out, x, y: (y, x),
    kind=_MultiplyCard,
    samples=points((-1.7, 2.1), (-1.7, 2.1)),
    operands=OPERANDS[2],
    hint="product",
    summary="x1 * x2, rounded by itself on a GPU, too, as draws have to be",
    is_cheap=True,
)
DIV = elementwise(
    "true_divide",
    np.true_divide,
    by_kind(f=infix("/", ir.TIMES, cost=ir.DIVISION), c=compiled(complex_divide)),
    np.divide,
    domains=((-1.7, 2.1), (0.4, 1.9)),
    # one division: a backward loop does not have `out`
    partials=lambda out, x, y: (div(1, y), neg(mul(mul(x, div(1, y)), div(1, y)))),
    hint="ratio",
    summary="x1 / x2; integers give floats",
    aliases="true_div divide",
    is_cheap=True,
)


def _power_partials(out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    return _power_by_base(x, y), _power_by_exponent(out, x, y)


def _power_by_base(x: Node, y: Node) -> Node:
    """y * x**(y - 1), and 0 for y == 0, where x == 0 would make it 0 * inf. Not y * out / x: that is 0 / 0 at 0, and x**y may overflow."""
    known = constant_value(y)
    exponent = None if known is None or known.ndim else known.item() - 1
    if exponent == 1:
        lower = x
    elif exponent in (0.5, 2):
        lower = op("sqrt" if exponent == 0.5 else "square", x)
    else:
        lower = power(x, sub(y, 1))
    slope = mul(y, lower)
    return slope if known is not None and known.all() else where(op("equal", y, 0), 0, slope)


def _power_by_exponent(out: Node, x: Node, y: Node) -> Node:
    """out * log(x), and its limit 0 where out is 0 and log(x) infinite.

    There -x**y', with y' just below y, stands for x**y * log(x): it is 0 as well, and its own derivatives are 0 just where those are.
    """
    known = constant_value(x)
    slope = mul(out, op("log", x))
    if known is not None and known.all():
        return slope
    below = power(x, mul(y, 1 - float(np.finfo(out.type.dtype).eps)))
    return where(op("equal", out, 0), neg(below), slope)


def int_power(x: Any, n: Any) -> Any:
    """x**n by squaring, modulo the width of x. Raises ValueError for n < 0."""
    if n < 0:
        raise ValueError("np.power: integers to negative integer powers are not allowed; cast the base to float64")
    one = np.uint64(1)  # beside a signed one, Numba makes uint64 operands float64
    result, left = type(x)(1), np.uint64(n)
    while left != 0:
        if left & one != 0:
            result = wrapping_mul(result, x)
        left >>= one
        x = wrapping_mul(x, x)
    return result


POW = elementwise(
    "power",
    np.power,
    by_kind(
        i=compiled(int_power, raises=True),  # a negative exponent raises ValueError, as in NumPy
        u=compiled(int_power),
        f=libm("pow", 2),
        c=compiled(complex_power),
    ),
    domains=((0.4, 2.3), (-1.3, 2.6)),
    partials=_power_partials,
)


def _remainder_partials(out: Node, x: Node, y: Node) -> tuple[Any, ...]:
    """1 and minus the whole quotient, from the remainder: x / y could round up to the next whole number."""
    return 1, op("rint", div(sub(out, x), y))


def floor_divide(x: Any, y: Any) -> Any:
    """The greatest whole number <= x / y, exact where x / y rounds up to a whole number."""
    if y == 0:
        return x / y
    rest = np.fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (y < 0) != (rest < 0):
        quotient -= type(x)(1)
    if quotient == 0:
        return math.copysign(type(x)(0), x / y)
    whole = np.floor(quotient)
    return whole + type(x)(1) if quotient - whole > 0.5 else whole


def int_floor_divide(x: Any, y: Any) -> Any:
    """x // y; 0 for y == 0, and the least integer divided by -1 stays itself."""
    if y == 0:
        return y
    return -x if y == -1 else x // y


def remainder(x: Any, y: Any) -> Any:
    """What floor_divide leaves, with the sign of y; NaN for y == 0."""
    rest = np.fmod(x, y)
    if y == 0:
        return rest
    if rest == 0:
        return math.copysign(rest, y)
    return rest + y if (y < 0) != (rest < 0) else rest


def int_remainder(x: Any, y: Any) -> Any:
    """x % y with the sign of y; 0 for y == 0."""
    return y if y == 0 else x % y


def int_fmod(x: Any, y: Any) -> Any:
    """x % y with the sign of x, as in C; 0 for y == 0."""
    if y == 0:
        return y
    rest = x % y
    return rest - y if rest != 0 and (rest < 0) != (x < 0) else rest


FLOOR_DIVIDE = elementwise(
    "floor_divide",
    np.floor_divide,
    by_kind(iu=compiled(int_floor_divide), f=compiled(floor_divide)),
    domains=((-7.3, 8.1), (1.1, 1.9)),
    partials=lambda out, x, y: (0, 0),
    summary="x1 // x2; 0 where an integer is divided by 0",
    aliases="int_div floor_div",
)
REMAINDER = elementwise(
    "remainder",
    np.remainder,
    by_kind(iu=compiled(int_remainder), f=compiled(remainder)),
    domains=((-7.3, 8.1), (1.1, 1.9)),
    partials=_remainder_partials,
    summary="x1 % x2, with the sign of x2; 0 where an integer is divided by 0",
    aliases="mod",
)
FMOD = elementwise(
    "fmod",
    np.fmod,
    by_kind(iu=compiled(int_fmod), f=call("np.fmod({0}, {1})")),
    domains=((-7.3, 8.1), (1.1, 1.9)),
    partials=_remainder_partials,
    summary="the remainder of x1 / x2 with the sign of x1",
)
NEG = elementwise("negative", np.negative, prefix("-", ir.UNARY), partials=lambda out, x: (-1,), summary="-x", aliases="neg", is_cheap=True)
ABS = elementwise(
    "absolute",
    np.absolute,
    by_kind(bu=IDENTITY, ifc=call("abs({0})", ir.PLAIN)),
    partials=lambda out, x: (conj(op("sign", x)),),
    summary="the absolute value; of complex numbers the modulus",
    aliases="abs",
    is_cheap=True,
)
NUMBER = register(
    Card(
        "python_number",
        np.asarray,
        lambda x: TensorType(x.dtype, x.shape, weak=True),
        Elementwise(lambda x: (x.dtype, x.dtype), lambda *_: IDENTITY),
        partials=lambda out, x: (1,),
        samples=points((-1.7, 2.1), with_complex=True),
    )
)
"""A value as a Python number, which gives way to other dtypes: the result of abs() and round() on Python numbers."""


def sign(x: Any) -> Any:
    """-1, 0 or 1; NaN for NaN."""
    if x > 0:
        return type(x)(1)
    if x < 0:
        return type(x)(-1)
    return x if x != x else type(x)(0)


def _sign_vjp(node: Node, cotangent: Node) -> tuple[Node]:
    """Zero for real numbers; a complex z / |z| turns with the part of dz that is perpendicular to z."""
    (z,) = node.inputs
    if z.type.kind != "c":
        return (zeros_like(z),)
    return (mul(mul(1j, conj(node)), div(op("imag", mul(cotangent, node)), op("absolute", z))),)


def _sign_jvp(node: Node, tangent: Node | None) -> Node | None:
    (z,) = node.inputs
    if z.type.kind != "c" or tangent is None:
        return None
    return mul(mul(1j, node), div(op("imag", mul(conj(node), tangent)), op("absolute", z)))


SIGN = elementwise(
    "sign",
    np.sign,
    by_kind(iuf=compiled(sign), c=compiled(complex_sign)),
    vjp=_sign_vjp,
    jvp=_sign_jvp,
    summary="-1, 0 or 1; z / |z| for complex numbers",
    aliases="sgn",
    is_cheap=True,
)


def int_square(x: Any) -> Any:
    """x * x, modulo the width of x."""
    return wrapping_mul(x, x)


SQUARE = elementwise(
    "square",
    np.square,
    by_kind(
        iuf=ir.Template("{0}**2", ir.POWER, (ir.ATOM,)),
        int64=compiled(int_square),  # Numba's own does not wrap, and makes int64 of uint64
        uint64=compiled(int_square),
        c=compiled(complex_square),
    ),
    partials=lambda out, x: (mul(2, x),),
    summary="x * x",
    aliases="sqr",
    is_cheap=True,
)
SQRT = elementwise(
    "sqrt",
    np.sqrt,
    by_kind(f=call("math.sqrt({0})", ir.DIVISION), c=compiled(complex_sqrt)),
    domains=((0.2, 3.1),),
    partials=lambda out, x: (div(0.5, out),),
    summary="the square root; NaN for negative real numbers",
    is_cheap=True,
)
CBRT = elementwise(
    "cbrt", np.cbrt, libm("cbrt"), domains=((0.2, 3.1),), partials=lambda out, x: (div(1 / 3, square(out)),), summary="the cube root"
)


def _reciprocal(x: Any) -> Any:
    """NumPy's value; 0 for an integer 0, where NumPy leaves the value open."""
    if x.dtype.kind not in "iu":
        return np.reciprocal(x)
    return np.where(x == 0, 0, np.reciprocal(np.where(x == 0, 1, x)))


def int_reciprocal(x: Any) -> Any:
    """1 / x without its fraction. For 0 NumPy leaves the value open; here it is 0."""
    return x if x == 1 or x == -1 else type(x)(0)


RECIPROCAL = loop_card(
    "reciprocal",
    _reciprocal,
    ufunc_loop(np.reciprocal),
    by_kind(
        iu=compiled(int_reciprocal),
        float32=ir.Template("np.float32(1.0) / {0}", ir.TIMES, (ir.UNARY,), cost=ir.DIVISION),
        f=ir.Template("1.0 / {0}", ir.TIMES, (ir.UNARY,), cost=ir.DIVISION),
        c=compiled(complex_reciprocal),
    ),
    np.reciprocal,
    samples=points((0.4, 2.2), with_complex=True),
    partials=lambda out, x: (neg(square(out)),),
    summary="1 / x, in x's dtype",
    operands="x",
    is_cheap=True,
)
HYPOT = elementwise(
    "hypot",
    np.hypot,
    libm("hypot", 2),
    domains=((-1.7, 2.1), (0.3, 1.9)),
    partials=lambda out, x, y: (div(x, out), div(y, out)),
    summary="sqrt(x1**2 + x2**2) without overflow",
)
COPYSIGN = elementwise(
    "copysign",
    np.copysign,
    call("math.copysign({0}, {1})", ir.PLAIN),
    partials=lambda out, x, y: (mul(op("sign", x), op("copysign", 1.0, y)), 0),
    summary="|x1| with the sign of x2",
    is_cheap=True,
)
NEXTAFTER = elementwise(
    "nextafter",
    np.nextafter,
    call("np.nextafter({0}, {1})"),
    partials=lambda out, x, y: (1, 0),
    summary="the next number after x1 in the direction of x2",
)


def heaviside(x: Any, middle: Any) -> Any:
    """0 for x < 0, `middle` for x == 0, 1 for x > 0."""
    if x < 0:
        return type(x)(0)
    if x > 0:
        return type(x)(1)
    return middle if x == 0 else x


HEAVISIDE = elementwise(
    "heaviside",
    np.heaviside,
    compiled(heaviside),
    partials=lambda out, x, middle: (0, Gate(op("equal", x, 0))),
    summary="0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0",
)
