"""The loop tree: what a plan is. `plan/` makes it, `emit/` prints it as njit or as cuda.jit text.

Leaves are scalar expressions. An expression knows its dtype and how tightly its text binds, so that printing sets
parentheses only where Python needs them. Index arithmetic on fixed numbers folds at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Union

ATOM, POWER, UNARY, TIMES, PLUS, SHIFT, BIT_AND, BIT_XOR, BIT_OR, COMPARE, NOT, AND, OR, CHOICE = range(14, 0, -1)


@dataclass(frozen=True, slots=True)
class Expr:
    """A scalar expression; `dtype` is a NumPy name."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A number."""

    value: complex | float | int | bool


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A local."""

    name: str


@dataclass(frozen=True, slots=True)
class Load(Expr):
    """An element of an array that lives in memory."""

    array: str
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Length(Expr):
    """`array.shape[axis]`."""

    array: str
    axis: int


@dataclass(frozen=True, slots=True)
class Template:
    """Text with numbered places, how tightly it binds, and how tightly each place must."""

    text: str
    level: int = ATOM
    places: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A template with its places taken."""

    template: Template
    args: tuple[Index, ...]


Index = Union[Expr, int]  # noqa: UP007 - evaluated at run time by Load's and Apply's annotations

_ADD = Template("{0} + {1}", PLUS, (PLUS, TIMES))
_SUB = Template("{0} - {1}", PLUS, (PLUS, TIMES))
_MUL = Template("{0} * {1}", TIMES, (TIMES, UNARY))
_FLOOR_DIV = Template("{0} // {1}", TIMES, (TIMES, UNARY))
_MOD = Template("{0} % {1}", TIMES, (TIMES, UNARY))


def index_expr(template: Template, *args: Index) -> Apply:
    """Index arithmetic as an expression."""
    return Apply("int64", template, tuple(args))


def _parted(a: Index) -> tuple[Index, int]:
    """An index as something and a fixed number added to it."""
    if isinstance(a, int):
        return 0, a
    if isinstance(a, Apply) and a.template in (_ADD, _SUB) and isinstance(a.args[1], int):
        return a.args[0], a.args[1] if a.template is _ADD else -a.args[1]
    return a, 0


def _joined(a: Index, number: int) -> Index:
    if a == 0:
        return number
    if number == 0:
        return a
    return index_expr(_ADD, a, number) if number > 0 else index_expr(_SUB, a, -number)


def add(a: Index, b: Index) -> Index:
    """a + b, folded where both are known."""
    (first, m), (second, n) = _parted(a), _parted(b)
    if first == 0 or second == 0:
        return _joined(second if first == 0 else first, m + n)
    return _joined(index_expr(_ADD, first, second), m + n)


def sub(a: Index, b: Index) -> Index:
    """a - b, folded where both are known."""
    (first, m), (second, n) = _parted(a), _parted(b)
    if first == second:
        return m - n
    if second == 0:
        return _joined(first, m - n)
    if first == 0:
        return index_expr(_SUB, m - n, second)
    return _joined(index_expr(_SUB, first, second), m - n)


def mul(a: Index, b: Index) -> Index:
    """a * b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    if b == 1:
        return a
    return index_expr(_MUL, a, b)


def floor_div(a: Index, b: Index) -> Index:
    """a // b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a // b
    return a if b == 1 else index_expr(_FLOOR_DIV, a, b)


def mod(a: Index, b: Index) -> Index:
    """a % b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a % b
    return 0 if b == 1 else index_expr(_MOD, a, b)


def least(a: Index, b: Index) -> Index:
    """The smaller of two, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if a == b else index_expr(Template("min({0}, {1})"), a, b)


def greatest(a: Index, b: Index) -> Index:
    """The larger of two, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if a == b else index_expr(Template("max({0}, {1})"), a, b)


def compare(sign: str, a: Index, b: Index) -> Expr:
    """`a sign b` as a condition."""
    if isinstance(a, int) and isinstance(b, int):
        value = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[sign]
        return Literal("bool", value)
    return Apply("bool", Template(f"{{0}} {sign} {{1}}", COMPARE, (BIT_OR, BIT_OR)), (a, b))


def both(*conditions: Expr) -> Expr:
    """All of the conditions."""
    kept = [c for c in conditions if c != Literal("bool", True)]
    if not kept:
        return Literal("bool", True)
    result = kept[0]
    for condition in kept[1:]:
        result = Apply("bool", Template("{0} and {1}", AND, (AND, NOT)), (result, condition))
    return result


def either(*conditions: Expr) -> Expr:
    """Any of the conditions."""
    kept = [c for c in conditions if c != Literal("bool", False)]
    if not kept:
        return Literal("bool", False)
    result = kept[0]
    for condition in kept[1:]:
        result = Apply("bool", Template("{0} or {1}", OR, (OR, AND)), (result, condition))
    return result


def choice(condition: Expr, yes: Index, no: Index, dtype: str = "int64") -> Index:
    """`yes if condition else no`; only the branch taken is evaluated."""
    if isinstance(condition, Literal):
        return yes if condition.value else no
    return Apply(dtype, Template("{1} if {0} else {2}", CHOICE, (OR, OR, CHOICE)), (condition, yes, no))


def names_in(expr: Index) -> Iterator[tuple[str, bool]]:
    """Every local or array that an expression reads; True where it reads an array's elements."""
    if isinstance(expr, Name):
        yield expr.name, False
    elif isinstance(expr, Length):
        yield expr.array, False
    elif isinstance(expr, Load):
        yield expr.array, True
        for index in expr.index:
            yield from names_in(index)
    elif isinstance(expr, Apply):
        for part in expr.args:
            yield from names_in(part)


# Statements ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stmt:
    """A statement of the loop tree."""


@dataclass(slots=True)
class Let(Stmt):
    """A local scalar; `is_new` is False where a local is given another value."""

    name: str
    value: Index
    is_new: bool = True


@dataclass(slots=True)
class Store(Stmt):
    """Writes one element of an array."""

    array: str
    index: tuple[Index, ...]
    value: Index
    combine: str = ""  # "+" adds to what is there


@dataclass(slots=True)
class Alloc(Stmt):
    """An array taken from the heap, not initialised; `fill` writes one value everywhere."""

    name: str
    shape: tuple[Index, ...]
    dtype: str
    fill: Index | None = None


@dataclass(slots=True)
class Alias(Stmt):
    """`name` stands for a view of an array: leading indices fixed, or a range of rows, or another shape."""

    name: str
    text: Template
    args: tuple[Index, ...]


@dataclass(slots=True)
class For(Stmt):
    """`for name in range(start, stop, step)`. `kind`: sequential, simd, thread, reduction."""

    name: str
    start: Index
    stop: Index
    body: list[Stmt]
    step: int = 1
    kind: str = "sequential"


@dataclass(slots=True)
class If(Stmt):
    """One of two blocks."""

    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt] = field(default_factory=list)


@dataclass(slots=True)
class Break(Stmt):
    """Leaves the innermost loop."""


@dataclass(slots=True)
class Fail(Stmt):
    """Raises; the message has {0}, {1}, … for the numbers seen, filled in by the caller of the kernel."""

    error: str
    message: str
    numbers: tuple[Index, ...] = ()


@dataclass(slots=True)
class Call(Stmt):
    """A library routine on whole arrays: results first, then operands, then fixed values."""

    routine: str
    args: tuple[str, ...]


@dataclass(slots=True)
class Note(Stmt):
    """A comment for the reader of the generated code."""

    text: str


@dataclass(slots=True)
class Return(Stmt):
    """Ends the function with its results."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a kernel: a number (rank 0) or a C-contiguous array."""

    name: str
    dtype: str
    rank: int
    is_written: bool = False


@dataclass(slots=True)
class Function:
    """A whole kernel: arguments with their types, and its body."""

    name: str
    arguments: tuple[Argument, ...]
    body: list[Stmt]
