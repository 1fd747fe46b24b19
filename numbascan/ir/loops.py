"""The loop tree: what a plan is. `plan/` makes it, `emit/` prints it as njit or as cuda.jit text.

Leaves are scalar expressions. An expression knows its dtype and how tightly its text binds, so that printing sets
parentheses only where Python needs them. Index arithmetic folds at once: sums are kept as fixed multiples and one fixed number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import Union

from .names import Names

PLAIN, DIVISION, FUNCTION, CALL = "plain", "division", "function", "call"
"""What an operation costs: an instruction or a few; the divider; a function of libm that has vector forms; any other call."""

ATOM, POWER, UNARY, TIMES, PLUS, SHIFT, BIT_AND, BIT_XOR, BIT_OR, COMPARE, NOT, AND, OR, CHOICE = range(14, 0, -1)


@dataclass(frozen=True, slots=True)
class Expr:
    """A scalar expression; `dtype` is a NumPy name."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A number. One that is printed otherwise is another one: -0.0 is not 0.0."""

    value: complex | float | int | bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (self.dtype, self.value, str(self.value)) == (other.dtype, other.value, str(other.value))

    def __hash__(self) -> int:
        return hash((self.dtype, self.value))


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A local."""

    name: str


@dataclass(frozen=True, slots=True)
class Load(Expr):
    """An element of an array that lives in memory; without an index the whole array, for a routine that reads it."""

    array: str
    index: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Length(Expr):
    """`array.shape[axis]`."""

    array: str
    axis: int


@dataclass(frozen=True, slots=True)
class Template:
    """Text with numbered places, how tightly it binds, and how tightly each place must.

    `wraps`: of int64 it is modulo 2**64, as values are; index arithmetic, which never leaves the range, is spared what that costs.
    `cost`: one of PLAIN, DIVISION, FUNCTION, CALL.
    `ahead`: the routine that makes many of a draw at once; of a function of one operand, many of it and the draw that this operand is.
    `rounds`: of floats it is rounded by itself on every machine: a GPU joins other products to sums.
    `raises`: it may fail, so it leaves no loop that may have no step.
    """

    text: str
    level: int = ATOM
    places: tuple[int, ...] | None = None
    wraps: bool = False
    cost: str = PLAIN
    ahead: str = ""
    rounds: bool = False
    raises: bool = False

    def writes(self, k: int) -> int:
        """How often what takes place k stands in the text."""
        return self.text.count(f"{{{k}}}")


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A template with its places taken."""

    template: Template
    args: tuple[Index, ...]


# A sum over many terms, in whatever order is fast: the SIMD unit adds them in several accumulators.
ACCUMULATE = Template("add_any_order({0}, {1})")
IN_ORDER = Template("{0} + {1}", PLUS, (PLUS, TIMES), wraps=True)
DIFFERENCE = Template("{0} - {1}", PLUS, (PLUS, TIMES), wraps=True)
PRODUCT = Template("{0} * {1}", TIMES, (TIMES, UNARY), wraps=True)
ROUNDED_PRODUCT = replace(PRODUCT, rounds=True)
BROADCAST_DIM = Template("{1} if {0} == 1 else {0}", CHOICE, (BIT_OR, OR))
CHOICE_BETWEEN = Template("{1} if {0} else {2}", CHOICE, (OR, OR, CHOICE))
LEAST, GREATEST = Template("min({0}, {1})"), Template("max({0}, {1})")
MIN_OR_NAN, MAX_OR_NAN = Template("min_or_nan({0}, {1})"), Template("max_or_nan({0}, {1})")
OF_TWO_ALL, OF_TWO_ANY = Template("{0} and {1}", AND, (AND, AND + 1)), Template("{0} or {1}", OR, (OR, OR + 1))
ANY_ORDER = (ACCUMULATE, LEAST, GREATEST, MIN_OR_NAN, MAX_OR_NAN)
COMPARE_WITH = {sign: Template(f"{{0}} {sign} {{1}}", COMPARE, (BIT_OR, BIT_OR)) for sign in ("<", "<=", ">", ">=", "==", "!=")}

Index = Union[Expr, int]  # noqa: UP007 - evaluated at run time by Load's and Apply's annotations

REMAINDER = Template("int_remainder({0}, {1})", cost=CALL)  # a user's `a % b` of integers, 0 for b == 0
QUOTIENT = Template("int_floor_divide({0}, {1})", cost=CALL)  # a user's `a // b` of integers, 0 for b == 0
INDEX_SUM = Template("{0} + {1}", PLUS, (PLUS, TIMES))
INDEX_DIFFERENCE = Template("{0} - {1}", PLUS, (PLUS, TIMES))
INDEX_PRODUCT = Template("{0} * {1}", TIMES, (TIMES, UNARY))
FLOOR_DIV = Template("{0} // {1}", TIMES, (TIMES, UNARY))
MOD = Template("{0} % {1}", TIMES, (TIMES, UNARY))


def index_expr(template: Template, *args: Index) -> Apply:
    """Index arithmetic as an expression."""
    return Apply("int64", template, tuple(args))


def linear(a: Index) -> tuple[dict[Index, int], int]:
    """An index as fixed multiples of its parts that are not fixed, and a fixed number."""
    if isinstance(a, int):
        return {}, a
    if isinstance(a, Apply) and (
        a.template is INDEX_SUM or a.template is INDEX_DIFFERENCE
    ):  # a user's sum, of another dtype perhaps, is not taken apart
        return _combined(a.args[0], a.args[1], 1 if a.template is INDEX_SUM else -1)
    if isinstance(a, Apply) and a.template is INDEX_PRODUCT and isinstance(a.args[1], int):
        return {a.args[0]: a.args[1]}, 0
    return {a: 1}, 0


def _combined(a: Index, b: Index, sign: int) -> tuple[dict[Index, int], int]:
    """a + sign * b, taken apart."""
    terms, number = linear(a)
    others, other = linear(b)
    for term, factor in others.items():
        terms[term] = terms.get(term, 0) + sign * factor
    return {term: factor for term, factor in terms.items() if factor}, number + sign * other


def joined(terms: dict[Index, int], number: int) -> Index:
    """What is added, then what is taken off, then the fixed number; in front where nothing else is added."""
    added = [_times(term, factor) for term, factor in terms.items() if factor > 0]
    taken = [_times(term, -factor) for term, factor in terms.items() if factor < 0]
    if not added:
        added, number = [number], 0
    result = reduce(lambda a, b: index_expr(INDEX_SUM, a, b), added)
    result = reduce(lambda a, b: index_expr(INDEX_DIFFERENCE, a, b), taken, result)
    if number == 0:
        return result
    return index_expr(INDEX_SUM, result, number) if number > 0 else index_expr(INDEX_DIFFERENCE, result, -number)


def _times(a: Index, factor: int) -> Index:
    return a if factor == 1 else index_expr(INDEX_PRODUCT, a, factor)


def add(a: Index, b: Index) -> Index:
    """a + b, with known numbers folded and without terms that cancel."""
    return joined(*_combined(a, b, 1))


def sub(a: Index, b: Index) -> Index:
    """a - b, with known numbers folded and without terms that cancel."""
    return joined(*_combined(a, b, -1))


def mul(a: Index, b: Index) -> Index:
    """a * b, folded where both are known; fixed multiples of one thing, and a sum with its sign turned, stay sums."""
    if isinstance(a, int):
        a, b = b, a
    if not isinstance(b, int):
        return index_expr(INDEX_PRODUCT, a, b)
    terms, number = linear(a)
    if b == 0 or len(terms) <= 1 or b == -1:
        return joined({term: factor * b for term, factor in terms.items() if b}, number * b)
    return _times(a, b)


def slope_and_rest(a: Index, name: Expr) -> tuple[int, Index] | None:
    """(factor, rest) with a = factor * name + rest; None where `name` enters in another way."""
    terms, number = linear(a)
    factor = terms.pop(name, 0)
    rest = joined(terms, number)
    return None if any(Name(name.dtype, read) == name for read, _ in names_in(rest)) else (factor, rest)


def floor_div(a: Index, b: Index) -> Index:
    """a // b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a // b
    return a if b == 1 else index_expr(FLOOR_DIV, a, b)


def mod(a: Index, b: Index) -> Index:
    """a % b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a % b
    return 0 if b == 1 else index_expr(MOD, a, b)


def are_other_remainders(a: Index, b: Index) -> bool:
    """True if two indices are different remainders of one known divisor, as (t + 1) % 3 and t % 3, for all values of their names.

    x % m == y % m only if m divides x - y, for a remainder of either sign; and it divides nothing between 0 and itself.
    """
    if not (isinstance(a, Apply) and isinstance(b, Apply) and a.template is MOD and b.template is MOD and a.args[1] == b.args[1]):
        return False
    divisor, distance = a.args[1], sub(a.args[0], b.args[0])
    return isinstance(divisor, int) and isinstance(distance, int) and 0 < abs(distance) < divisor


def least(a: Index, b: Index) -> Index:
    """The smaller of two, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if a == b else index_expr(LEAST, a, b)


def greatest(a: Index, b: Index) -> Index:
    """The larger of two, folded where both are known, and where one is 0 and the other a sum of lengths."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    terms, number = linear(a)
    if b == 0 and number >= 0 and all(isinstance(term, Length) and factor > 0 for term, factor in terms.items()):
        return a
    return a if a == b else index_expr(GREATEST, a, b)


def compare(sign: str, a: Index, b: Index) -> Expr:
    """`a sign b` as a condition."""
    if isinstance(a, int) and isinstance(b, int):
        value = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[sign]
        return Literal("bool", value)
    return Apply("bool", COMPARE_WITH[sign], (a, b))


OF_BOTH, OF_EITHER = Template("{0} and {1}", AND, (AND, NOT)), Template("{0} or {1}", OR, (OR, AND))
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_NEGATED = {COMPARE_WITH[sign]: COMPARE_WITH[opposite] for sign, opposite in _OPPOSITE.items()}


def negated(condition: Expr) -> Expr:
    """The opposite condition, as a person would write it."""
    if isinstance(condition, Literal):
        return Literal("bool", not condition.value)
    if isinstance(condition, Apply) and condition.template in _NEGATED:
        return Apply("bool", _NEGATED[condition.template], condition.args)
    return Apply("bool", Template("not {0}", NOT, (COMPARE,)), (condition,))


def both(*conditions: Expr) -> Expr:
    """All of the conditions."""
    if Literal("bool", False) in conditions:
        return Literal("bool", False)
    kept = [c for c in conditions if c != Literal("bool", True)]
    if not kept:
        return Literal("bool", True)
    result = kept[0]
    for condition in kept[1:]:
        result = Apply("bool", OF_BOTH, (result, condition))
    return result


def either(*conditions: Expr) -> Expr:
    """Any of the conditions."""
    kept = [c for c in conditions if c != Literal("bool", False)]
    if not kept:
        return Literal("bool", False)
    result = kept[0]
    for condition in kept[1:]:
        result = Apply("bool", OF_EITHER, (result, condition))
    return result


def choice(condition: Expr, yes: Index, no: Index, dtype: str = "int64") -> Index:
    """`yes if condition else no`; only the branch taken is evaluated."""
    if isinstance(condition, Literal):
        return yes if condition.value else no
    return Apply(dtype, CHOICE_BETWEEN, (condition, yes, no))


def chosen(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """The same of two expressions of one dtype."""
    if isinstance(condition, Literal):
        return yes if condition.value else no
    return Apply(yes.dtype, CHOICE_BETWEEN, (condition, yes, no))


def names_in(expr: Index) -> Iterator[tuple[str, bool]]:
    """Every local or array that an expression reads; True where it reads an array's elements."""
    for part in parts(expr):
        if isinstance(part, Name):
            yield part.name, False
        elif isinstance(part, Length | Load):
            yield part.array, isinstance(part, Load)


def written_parts(expr: Index) -> Iterator[Index]:
    """An expression and all that it is made of, each as often as it stands in the text."""
    yield expr
    if isinstance(expr, Load):
        for part in expr.index:
            yield from written_parts(part)
    elif isinstance(expr, Apply):
        for k, part in enumerate(expr.args):
            for _ in range(expr.template.writes(k)):
                yield from written_parts(part)


def parts(expr: Index) -> Iterator[Index]:
    """An expression and all that it is made of, outer parts first."""
    yield expr
    for part in expr.args if isinstance(expr, Apply) else expr.index if isinstance(expr, Load) else ():
        yield from parts(part)


def mapped(expr: Index, change: Callable[[Expr], Index | None]) -> Index:
    """An expression with parts replaced by those that `change` gives, outer parts first; if it gives None, the parts inside are asked."""
    if isinstance(expr, int):
        return expr
    other = change(expr)
    if other is not None:
        return other
    if isinstance(expr, Load) and expr.index:
        return Load(expr.dtype, expr.array, tuple(mapped(part, change) for part in expr.index))
    return Apply(expr.dtype, expr.template, tuple(mapped(part, change) for part in expr.args)) if isinstance(expr, Apply) else expr


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
    """An array, not initialised; `on_stack`: of a fixed shape, small, and not returned."""

    name: str
    shape: tuple[Index, ...]
    dtype: str
    on_stack: bool = False


@dataclass(slots=True)
class Alias(Stmt):
    """`name` stands for a view of an array: leading indices fixed, or a range of rows, or another shape. `text` comes behind the array."""

    name: str
    array: str
    text: Template
    args: tuple[Index, ...]

    @property
    def is_in_shape(self) -> bool:
        """True for the whole array in another shape, that of `args`."""
        return self.text == in_shape(len(self.args))


@cache
def in_shape(rank: int) -> Template:
    """The text of an alias in another shape."""
    return Template(f".reshape(({', '.join(f'{{{axis}}}' for axis in range(rank))}{',' * (rank == 1)}))")


@dataclass(slots=True)
class For(Stmt):
    """`for name in range(start, stop, step)`; a step that only the run knows is 1 or more.

    kind: sequential; time, over the steps of a scan; lanes, over steps none of which waits for another, memory taken outside for each of
    them but shared with none; rest, steps of a lane that was in a tile before, with the bits of the tile; simd, short passes that wait for
    nothing; tile, as many of these as a tile has lanes; threads, passes for as many threads; sums, passes between which nothing but sums
    and extremes goes, in any order; chunks, parts that have memory at once.
    """

    name: str
    start: Index
    stop: Index
    body: list[Stmt]
    step: Index = 1
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
    """A library routine on whole arrays: results first, then operands, then fixed values. With a `message`: False is an error.

    results: the arrays that it writes. turned: of a product, `routine(left, right, result)`, which operands are transposed; None of others.
    """

    routine: str
    args: tuple[str, ...]
    message: str = ""
    results: tuple[str, ...] = ()
    turned: tuple[bool, bool] | None = None


@dataclass(slots=True)
class Note(Stmt):
    """A comment for the reader of the generated code."""

    text: str


@dataclass(slots=True)
class Barrier(Stmt):
    """All threads of a grid wait for one another; what one has written the others see."""


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
    """A whole kernel: arguments with their types, and its body.

    names: all that its text uses. rings: of an array with rotating rows, the locals that tell which row is how old, newest first.
    """

    name: str
    arguments: tuple[Argument, ...]
    body: list[Stmt]
    names: Names = field(default_factory=Names)
    rings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def is_reduction(stmt: Let) -> bool:
    """True if a statement adds to a sum, or takes an extreme, in whatever order is fast."""
    value = stmt.value
    return isinstance(value, Apply) and value.template in ANY_ORDER and Name(value.dtype, stmt.name) in value.args


ROW, ROWS = Template("[{0}]"), Template("[{0}:{1}]")  # views: one row, and a range of rows


def expressions(stmt: Stmt) -> tuple[Index, ...]:
    """The expressions of a statement itself, not of those inside it."""
    if isinstance(stmt, Let):
        return (stmt.value,)
    if isinstance(stmt, Store):
        return (stmt.value, *stmt.index)
    if isinstance(stmt, For):
        return (stmt.start, stmt.stop) if isinstance(stmt.step, int) else (stmt.start, stmt.stop, stmt.step)
    if isinstance(stmt, If):
        return (stmt.condition,)
    if isinstance(stmt, Alloc):
        return stmt.shape
    if isinstance(stmt, Alias):
        return stmt.args
    return stmt.numbers if isinstance(stmt, Fail) else ()


def with_values(stmt: Stmt, change: Callable[[Index], Index]) -> Stmt:
    """A scalar, a store or a loop with its own expressions changed, and the loop with those inside it; other statements as they are."""
    if isinstance(stmt, Let):
        return Let(stmt.name, change(stmt.value), stmt.is_new)
    if isinstance(stmt, Store):
        return Store(stmt.array, tuple(map(change, stmt.index)), change(stmt.value), stmt.combine)
    if isinstance(stmt, For):
        body = [with_values(inner, change) for inner in stmt.body]
        return replace(stmt, start=change(stmt.start), stop=change(stmt.stop), body=body, step=change(stmt.step))
    return stmt


def with_expressions(stmts: Iterable[Stmt], change: Callable[[Index], Index]) -> list[Stmt]:
    """Statements with all their expressions changed, and those of the statements inside them."""

    def changed(stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, If):
            condition = change(stmt.condition)
            assert isinstance(condition, Expr)
            return [If(condition, rebuilt(stmt.then, changed), rebuilt(stmt.otherwise, changed))]
        if isinstance(stmt, For):
            return [replace(stmt, start=change(stmt.start), stop=change(stmt.stop), body=rebuilt(stmt.body, changed))]
        if isinstance(stmt, Alias):
            return [replace(stmt, args=tuple(map(change, stmt.args)))]
        if isinstance(stmt, Fail):
            return [replace(stmt, numbers=tuple(map(change, stmt.numbers)))]
        return [with_values(stmt, change)]

    return rebuilt(stmts, changed)


def with_blocks(stmt: Stmt, change: Callable[[list[Stmt]], list[Stmt]]) -> Stmt:
    """A statement with the blocks inside it changed."""
    if isinstance(stmt, For):
        return replace(stmt, body=change(stmt.body))
    return replace(stmt, then=change(stmt.then), otherwise=change(stmt.otherwise)) if isinstance(stmt, If) else stmt


def rebuilt(stmts: Iterable[Stmt], change: Callable[[Stmt], Iterable[Stmt] | None]) -> list[Stmt]:
    """Statements, each replaced by those that `change` gives for it; if it gives None, the statement stays and those inside are asked."""
    result: list[Stmt] = []
    for stmt in stmts:
        others = change(stmt)
        result += [with_blocks(stmt, lambda block: rebuilt(block, change))] if others is None else others
    return result


def walk(stmts: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement of a block, inner ones behind the loop or condition that holds them."""
    for stmt in stmts:
        yield stmt
        if isinstance(stmt, For):
            yield from walk(stmt.body)
        elif isinstance(stmt, If):
            yield from walk(stmt.then)
            yield from walk(stmt.otherwise)


def outermost_times(stmts: Iterable[Stmt]) -> Iterator[For]:
    """The loops over time that are in no other."""
    for stmt in stmts:
        if isinstance(stmt, For) and stmt.kind == "time":
            yield stmt
        elif isinstance(stmt, For):
            yield from outermost_times(stmt.body)
        elif isinstance(stmt, If):
            yield from outermost_times([*stmt.then, *stmt.otherwise])


def may_end(stmts: Iterable[Stmt]) -> bool:
    """True if a pass may end the loop with this body."""
    return any(isinstance(stmt, Break) or (isinstance(stmt, If) and may_end([*stmt.then, *stmt.otherwise])) for stmt in stmts)
