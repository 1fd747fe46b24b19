"""Loops as Python text: the part that cpu.py and cuda.py share.

Parentheses are written only where Python needs them. A result of a narrow dtype is cast back, because Numba widens int32 + int32 to int64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from ..ir import loops as ir

NARROW = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}  # dtypes that Numba's operators widen
WRAPPED = {"{0} + {1}": "wrapping_add", "{0} - {1}": "wrapping_sub", "{0} * {1}": "wrapping_mul"}  # int64; Numba's operators do not wrap
_PLACE = re.compile(r"\{(\d+)\}")
_CASTS = re.compile(r"np\.\w+\(\{0\}\)")


def expression(expr: ir.Index) -> str:
    """The text of a scalar expression."""
    return _text(expr)[0]


def _text(expr: ir.Index) -> tuple[str, int]:
    """The text of an expression, and how tightly it binds."""
    if isinstance(expr, int):
        return _integer(expr, "int64"), ir.ATOM if expr >= 0 else ir.UNARY
    if isinstance(expr, ir.Literal):
        return literal(expr)
    if isinstance(expr, ir.Name):
        return expr.name, ir.ATOM
    if isinstance(expr, ir.Length):
        return f"{expr.array}.shape[{expr.axis}]", ir.ATOM
    if isinstance(expr, ir.Load):
        return f"{expr.array}[{', '.join(map(expression, expr.index))}]" if expr.index else expr.array, ir.ATOM
    assert isinstance(expr, ir.Apply)
    if _wraps(expr):
        return _wrapped(expr.template.text, *map(expression, expr.args)), ir.ATOM
    text = filled(expr.template, expr.args)
    if expr.dtype in NARROW and not _CASTS.fullmatch(expr.template.text):
        return f"np.{expr.dtype}({text})", ir.ATOM
    return text, expr.template.level


def _wraps(expr: ir.Apply) -> bool:
    return expr.template.wraps and expr.dtype == "int64"


def _wrapped(text: str, *args: str) -> str:
    """The text of an int64 operation that wraps."""
    return f"{WRAPPED[text]}({', '.join(args)})"


def filled(template: ir.Template, args: tuple[ir.Index, ...]) -> str:
    """A template's text with arguments filled in; in parentheses if they bind less tightly than their place needs."""
    places = template.places or (0,) * len(args)

    def place(match: re.Match[str]) -> str:
        k = int(match[1])
        text, level = _text(args[k])
        return f"({text})" if level < places[k] else text

    return _PLACE.sub(place, template.text)


def literal(expr: ir.Literal) -> tuple[str, int]:
    """The text of a number in its dtype, and how tightly it binds."""
    value, dtype = expr.value, expr.dtype
    if dtype == "bool":
        return str(bool(value)), ir.ATOM
    if dtype.startswith("complex"):
        number = complex(value)
        text = f"complex({_real(number.real)}, {_real(number.imag)})"
        return (text if dtype == "complex128" else f"np.complex64({text})"), ir.ATOM
    if dtype.startswith("float"):
        text = _real(float(value.real))
        if dtype == "float64":
            return text, ir.UNARY if text.startswith("-") else ir.ATOM
        return f"np.{dtype}({text})", ir.ATOM
    number_text = _integer(int(value.real), dtype)
    if dtype == "int64" and int(value.real) > -(2**63):  # Numba would take 2**63, under the sign, as unsigned
        return number_text, ir.UNARY if number_text.startswith("-") else ir.ATOM
    return f"np.{dtype}({number_text})", ir.ATOM


def _integer(value: int, dtype: str) -> str:
    """The text of an integer. Raises OverflowError beyond 64 bits, which Numba does not take: folded sizes and indices have no limit."""
    if not -(2**63) <= value < (2**64 if dtype == "uint64" else 2**63):
        raise OverflowError(f"a size, a place or a number of steps is {value:,}, beyond 64 bits; make the arrays or bounds smaller")
    return str(value)


def _real(value: float) -> str:
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def statements(stmts: Iterable[ir.Stmt], messages: Mapping[str, str], depth: int = 1) -> Iterator[str]:
    """The lines of a block. `messages`: by error text, the name that the module defines for it."""
    pad = "    " * depth
    for stmt in stmts:
        if isinstance(stmt, ir.For):
            yield f"{pad}for {stmt.name} in range({_range(stmt)}):"
            yield from statements(stmt.body, messages, depth + 1)
        elif isinstance(stmt, ir.If):
            yield from _if(stmt, messages, depth)
        elif isinstance(stmt, ir.Call) and stmt.message:
            yield f"{pad}if not {_call(stmt)}:"
            yield f"{pad}    raise np.linalg.LinAlgError({messages[stmt.message]})"
        else:
            yield pad + statement(stmt, messages)


def _range(loop: ir.For) -> str:
    if loop.start == 0 and loop.step == 1:
        return f"lanes({expression(loop.stop)})" if loop.kind == "simd" else expression(loop.stop)
    bounds = f"{expression(loop.start)}, {expression(loop.stop)}"
    return bounds if loop.step == 1 else f"{bounds}, {expression(loop.step)}"


def _if(stmt: ir.If, messages: Mapping[str, str], depth: int) -> Iterator[str]:
    pad = "    " * depth
    yield f"{pad}if {expression(stmt.condition)}:"
    yield from list(statements(stmt.then, messages, depth + 1)) or [f"{pad}    pass"]
    if stmt.otherwise:
        yield f"{pad}else:"
        yield from statements(stmt.otherwise, messages, depth + 1)


def statement(stmt: ir.Stmt, messages: Mapping[str, str]) -> str:
    """The line of a statement that has no statements inside."""
    if isinstance(stmt, ir.Let):
        return _assignment(stmt)
    if isinstance(stmt, ir.Store):
        target, value = expression(ir.Load("", stmt.array, stmt.index)), expression(stmt.value)
        if stmt.combine and isinstance(stmt.value, ir.Expr) and stmt.value.dtype == "int64":
            return f"{target} = {_wrapped(f'{{0}} {stmt.combine} {{1}}', target, value)}"
        return f"{target} {stmt.combine}= {value}"
    if isinstance(stmt, ir.Alloc):
        return f"{stmt.name} = {_array(stmt)}"
    if isinstance(stmt, ir.Alias):
        return f"{stmt.name} = {view_text(stmt)}"
    if isinstance(stmt, ir.Fail):
        numbers = "".join(f", {expression(number)}" for number in stmt.numbers)
        return f"raise {stmt.error}({messages[stmt.message]}{numbers})" if stmt.message else f"raise {stmt.error}"
    if isinstance(stmt, ir.Call):
        return _call(stmt)
    if isinstance(stmt, ir.Return):
        return f"return {', '.join(stmt.names)}" if stmt.names else "return"
    if isinstance(stmt, ir.Note):
        return f"# {stmt.text}"
    assert isinstance(stmt, ir.Break)
    return "break"


def _call(stmt: ir.Call) -> str:
    return f"{stmt.routine}({', '.join(handed(stmt))})"


def handed(stmt: ir.Call) -> tuple[str, ...]:
    """The texts of a routine's arguments."""
    turned = (*(stmt.turned or ()), *(False,) * len(stmt.args))
    return tuple(f"{arg}.T" if is_turned else arg for arg, is_turned in zip(stmt.args, turned, strict=False))


def view_text(stmt: ir.Alias) -> str:
    """The text of the expression that makes a view."""
    return stmt.array + filled(stmt.text, stmt.args)


def _array(stmt: ir.Alloc) -> str:
    """The text of the expression that allocates an array."""
    dtype = f"np.{'bool_' if stmt.dtype == 'bool' else stmt.dtype}"
    shape = ", ".join(expression(dim) for dim in stmt.shape)
    if stmt.on_stack:
        return f"small_array(({shape}{',' * (len(stmt.shape) == 1)}), {dtype})"
    return f"np.empty({shape if len(stmt.shape) == 1 else f'({shape})'}{'' if stmt.dtype == 'float64' else f', {dtype}'})"


def _assignment(stmt: ir.Let) -> str:
    """The text of an assignment; `s += x` if that is the same as `s = s + x`."""
    value = stmt.value
    if isinstance(value, ir.Apply) and value.template.text in WRAPPED and value.dtype not in NARROW and not _wraps(value):
        first = value.args[0]
        if isinstance(first, ir.Name) and first.name == stmt.name:
            sign = value.template.text[4]
            return f"{stmt.name} {sign}= {expression(value.args[1])}"
    return f"{stmt.name} = {expression(value)}"
