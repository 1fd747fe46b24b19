"""Builds the loop tree: blocks, fresh names, and where a statement belongs.

A statement goes to the outermost block in which everything it reads is defined: work rows are taken before the loops,
scalars that no step changes are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile

import numpy as np

from ..ir.check import IllegalGraphError
from ..ir.graph import folded
from ..ir.loops import (
    AND,
    BROADCAST_DIM,
    CHOICE,
    COMPARE_WITH,
    DIFFERENCE,
    FLOOR_DIV,
    GREATEST,
    IN_ORDER,
    INDEX_DIFFERENCE,
    INDEX_PRODUCT,
    INDEX_SUM,
    LEAST,
    PRODUCT,
    Alias,
    Alloc,
    Apply,
    Expr,
    Fail,
    For,
    If,
    Index,
    Length,
    Let,
    Literal,
    Name,
    Stmt,
    Template,
    both,
    choice,
    chosen,
    compare,
    either,
    greatest,
    in_shape,
    names_in,
    negated,
    written_parts,
)
from ..ir.names import Names

Indices = tuple[Index, ...]

LONGEST = 24  # parts of a length that is written out wherever it is read
SMALL, ROWS = 65536, 16  # bytes of an array, and rows of one of a length that only the run knows, that are taken whether needed or not

# Of which operands it must hold, to hold of a result: that it is not negative; that it is bounded.
_NOT_NEGATIVE_IF = {**dict.fromkeys((INDEX_SUM, IN_ORDER, INDEX_PRODUCT, PRODUCT, LEAST, BROADCAST_DIM), all), GREATEST: any}
_BOUNDED_IF = {**dict.fromkeys((INDEX_SUM, IN_ORDER, INDEX_DIFFERENCE, DIFFERENCE, GREATEST), all), LEAST: any}
Quantifier = Callable[[Iterable[bool]], bool]
_MOST_OF = (LEAST, GREATEST, BROADCAST_DIM, INDEX_SUM, INDEX_DIFFERENCE, FLOOR_DIV)  # what says how much it is at most by its parts


def _is_count(number: Index) -> bool:
    if isinstance(number, Literal):
        return number.dtype == "int64" and number.value in (0, 1)
    return number >= 0 if isinstance(number, int) else isinstance(number, Length)


def _is_bounded_leaf(number: Index) -> bool:
    if isinstance(number, Literal | int):
        return abs(number.value if isinstance(number, Literal) else number) <= ROWS
    return isinstance(number, Length)


def _is_under(stmt: Stmt, guard: Expr) -> bool:
    """Does a statement do nothing unless the guard holds?"""
    expr = stmt.value if isinstance(stmt, Let) else stmt.condition if isinstance(stmt, If) and not stmt.otherwise else None
    return isinstance(expr, Apply) and expr.template.level in (AND, CHOICE) and expr.args[0] == guard


def _most(number: Index, most: list[int | None]) -> int | None:
    """What a number is at most, from what its parts are at most; None where that is not known."""
    if isinstance(number, Literal | int):
        return number if isinstance(number, int) else int(number.value.real)
    if isinstance(number, Name):
        return most[0] if most else None
    if not isinstance(number, Apply) or number.template not in _MOST_OF:
        return None
    if number.template is LEAST:
        return min((one for one in most if one is not None), default=None)
    first, second = most
    if first is None or second is None:
        return None
    if number.template in (GREATEST, BROADCAST_DIM):
        return max(first, second)
    if number.template is INDEX_SUM:
        return first + second
    other = number.args[1]
    if not isinstance(other, int):
        return None
    return first - other if number.template is INDEX_DIFFERENCE else first // other if other > 0 else None


def _value_if(condition: Expr, value: Expr) -> Expr:
    """The value where the condition holds, else 0."""
    return both(condition, value) if value.dtype == "bool" else chosen(condition, value, Literal(value.dtype, 0))


class Block:
    """Statements in the making. `is_branch`: runs only sometimes, so nothing that can fail leaves it.

    `steps`: of the body of a loop over steps that may have none, how many it has; None of other blocks. What can fail leaves it only as
    something that is asked for where there is a step. `is_guarded`: a check has left it so, and what the check is for must not be read
    outside of the loop unless there is a step.
    """

    def __init__(self, parent: Block | None, is_branch: bool = False, steps: Index | None = None) -> None:
        self.parent, self.is_branch, self.steps = parent, is_branch, steps
        self.is_guarded = False
        self.stmts: list[Stmt] = []
        self.memo: dict[Hashable, Expr] = {}  # elements that locals of the block hold
        self.lengths: dict[Expr, Name] = {}  # long ones, and their locals
        self.checked: set[Expr] = set()  # what holds from here to the end of the block
        self.equal: dict[Index, Index] = {}  # dimensions that were checked to be another one, to the end of the block
        self.depth: int = 0 if parent is None else parent.depth + 1

    def outwards(self) -> Iterator[Block]:
        """This block and those around it, the outermost last."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    @property
    def has_step(self) -> Expr | None:
        """Whether the loop has a step, where that is not known."""
        return None if self.steps is None else compare(">", self.steps, 0)

    def lookup(self, key: Hashable) -> Expr | None:
        """An element that this block or one around it already holds in a local."""
        return next((block.memo[key] for block in self.outwards() if key in block.memo), None)


class Builder:
    """The function in the making."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.root = Block(None)
        self.block = self.root
        self.home: dict[str, Block] = {}  # where a name is defined
        self.written: dict[str, Block] = {}  # where an array's elements have their values; an argument's: everywhere
        self.shapes: dict[str, Indices] = {}  # of the arrays taken here
        self.rings: dict[str, tuple[str, ...]] = {}  # of an array with rotating rows, the locals that tell which is how old, newest first
        self.views: set[str] = set()  # arrays whose memory belongs to another one
        self.spills: dict[tuple[int, int], tuple[object, str]] = {}
        self.sides: dict[Index, Indices] = {}  # of a dimension that a choice between branches tells, what each branch makes it
        self.fixed: dict[str, Index] = {}  # locals that get one value, and what it is
        self.moving: set[str] = set()  # those that may still get others
        self.guards: list[Expr] = []  # what is made is asked for only where the last of them holds, which implies the others
        self.scan = ""  # the name of the innermost loop whose step is made

    # names ----------------------------------------------------------------------------------------------------------

    def fresh(self, hint: str | None, fallback: str = "v", block: Block | None = None, is_counter: bool = False) -> str:
        """A name that is not taken, as near to `hint` as possible, defined in `block` (default: the current one)."""
        name = self.names.fresh(hint, fallback, is_counter)
        self.home[name] = self.block if block is None else block
        return name

    def home_of(self, *exprs: Index) -> Block:
        """The outermost block in which all that `exprs` read is defined. What a finished loop wrote is there once it has ended."""
        innermost = self.root
        open_blocks = set(self.block.outwards())
        for expr in exprs:
            for name, is_element in names_in(expr):
                home = self.home.get(name, self.root)
                if is_element:
                    home = self.written.get(name, home)
                while home not in open_blocks and home.parent is not None:
                    home = home.parent
                if home.depth > innermost.depth:
                    innermost = home
        return innermost

    def change_here(self, names: Iterable[str]) -> dict[str, Block]:
        """Says that `names` change in the current block, a loop's, so nothing read from them leaves it. Gives their homes, for its end."""
        homes = {name: self.home.get(name, self.root) for name in names}
        for name in homes:
            self.home[name] = self.written[name] = self.block
        return homes

    def loop_ended(self, homes: dict[str, Block]) -> None:
        """Says that the loop has ended in which names changed: they have their last values, from here on."""
        self.home.update(homes)
        self.written.update(dict.fromkeys(homes, self.block))
        self.stay(homes)

    # statements -----------------------------------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> None:
        self._put(self.block, stmt)

    def _put(self, block: Block, stmt: Stmt) -> None:
        """Every statement comes here. What is made for one side of a choice does nothing where the other side is taken."""
        if self.guards and not _is_under(stmt, self.guards[-1]):
            raise IllegalGraphError(f"{type(stmt).__name__} would run where its element is not asked for")
        block.stmts.append(stmt)

    def let(self, hint: str | None, value: Index, dtype: str = "int64", hoist: bool = True) -> Expr:
        """A local that holds `value`, in the outermost block that can hold it."""
        if isinstance(value, Name | Literal):
            return value
        if isinstance(value, int):
            return Literal(dtype, value)
        return self._leaving(hint, value) if hoist else self._held(hint, self._where_asked(value), self.block)

    def _leaving(self, hint: str | None, value: Expr) -> Name:
        """A local for a value, in the outermost block that can hold it. An element that may not be there is read where there is a step."""
        asked = self._where_asked(value)
        block, steps = self._guarded_home(asked)
        is_read = any(is_element for _, is_element in names_in(value))
        if not (steps and is_read and any(one.is_guarded for one in self._left(block))):
            return self._held(hint, asked, self._hoisted(asked))
        return self._held(hint, self._where_asked(_value_if(both(*steps), value)), block)

    def _held(self, hint: str | None, value: Expr, block: Block) -> Name:
        name = self.fresh(hint, "v", block)
        self.fixed[name] = value
        self._put(block, Let(name, value))
        return Name(value.dtype, name)

    def settled(self, hint: str, number: Index) -> Index:
        """A number that stays what it is now: itself, or a local where it is long, reads elements or a local that may get other values."""
        if isinstance(number, int) or self._is_lasting(number):
            return self.short(hint, number)
        value = self._where_asked(number)
        return self._held(hint, value, self._hoisted(value))

    def short(self, hint: str | None, expr: Index) -> Index:
        """What is written several times: itself, or a local where it is long. Otherwise texts would grow as 2**k."""
        if isinstance(expr, int) or not self._is_long(expr):
            return expr
        if not self._is_lasting(expr):
            return self._leaving(hint, expr)
        value = self._where_asked(expr)
        known = next((block.lengths[value] for block in self.block.outwards() if value in block.lengths), None)
        return known or self._length(hint, value)

    def _length(self, hint: str | None, number: Expr) -> Name:
        """A local for a long expression; equal ones are one local, so that they are seen to be equal."""
        block = self._hoisted(number)
        block.lengths[number] = self._held(hint, number, block)
        return block.lengths[number]

    @staticmethod
    def _is_long(number: Index) -> bool:
        """Would expressions of expressions, each written out in the next one, grow without end?"""
        return next(islice(written_parts(number), LONGEST, None), None) is not None

    def _is_lasting(self, *exprs: Index) -> bool:
        """Does what is known of `exprs` hold as long as the block does in which all that they read is defined?"""
        return not any(is_element or name in self.moving for expr in exprs for name, is_element in names_in(expr))

    def variable(self, hint: str | None, value: Index, dtype: str) -> Name:
        """A local of the current block that will be given other values later."""
        name = self.fresh(hint)
        self.moving.add(name)
        self.emit(Let(name, value))
        return Name(dtype, name)

    def assign(self, name: Name, value: Index) -> None:
        self.emit(Let(name.name, value, is_new=False))

    def stay(self, names: Iterable[str]) -> None:
        """Says that variables have their last values: the loop that changed them has ended."""
        self.moving.difference_update(names)

    def _hoisted(self, *exprs: Index) -> Block:
        """The home of `exprs`, or the nearest block around the current one that is no further out than a branch allows."""
        home = self.home_of(*exprs)
        block = self.block
        while block is not home and block.parent is not None and not block.is_branch:
            block = block.parent
        return block

    def _guarded_home(self, *exprs: Index) -> tuple[Block, list[Expr]]:
        """The outermost block for what can fail, and the conditions under which it is to be asked there: that the loops which it leaves
        have a step. It reads them, too, so that it stays where they are known."""
        home, block, steps = self.home_of(*exprs), self.block, list[Expr]()
        while block is not home and block.parent is not None and not block.is_branch:
            if block.has_step is not None:
                steps.append(block.has_step)
                home = max(home, self.home_of(block.has_step), key=lambda one: one.depth)
            block = block.parent
        return block, steps

    def _left(self, outer: Block) -> Iterator[Block]:
        """The blocks from the current one to one around it, without that one."""
        return takewhile(lambda block: block is not outer, self.block.outwards())

    def _holding(self, *exprs: Index) -> Block:
        """The outermost block in which a fact of `exprs` holds that is found here: a loop without steps finds none."""
        home, block = self.home_of(*exprs), self.block
        while block is not home and block.parent is not None and not block.is_branch and block.steps is None:
            block = block.parent
        return block

    def _alloc_block(self, shape: Indices, dtype: str) -> Block:
        """Where an array is taken: outside of the loops that do not change its shape. One that is not small stays in its branch."""
        home, block = self.home_of(*shape), self.block
        chosen, is_small = block, self._is_small(shape, dtype)
        while block is not home and block.parent is not None and (is_small or not block.is_branch):
            is_loop = not block.is_branch
            block = block.parent
            if is_loop:  # to leave a branch alone gains nothing
                chosen = block
        return chosen

    def _is_small(self, shape: Indices, dtype: str) -> bool:
        """Does an array cost next to nothing? A few bytes, or some rows that are no longer than an array that there is."""
        fixed = math.prod(dim for dim in shape if isinstance(dim, int))
        others = [dim for dim in shape if not isinstance(dim, int)]
        if not others:
            return fixed * np.dtype(dtype).itemsize <= SMALL
        return len(others) == 1 and fixed <= ROWS and self.is_not_negative(others[0]) and self.is_bounded(others[0])

    def is_at_most_one(self, number: Index) -> bool:
        """Is a length 0 or 1, whatever the run brings, as that of `x[:1]` is?"""
        most = folded(number, self._behind_length, _most)
        return most is not None and most <= 1

    def _behind_length(self, part: Index) -> tuple[Index, ...]:
        if isinstance(part, Name):
            return (self.fixed[part.name],) if part.name in self.fixed else ()
        return part.args if isinstance(part, Apply) and part.template in _MOST_OF else ()

    def is_bounded(self, number: Index) -> bool:
        """Is a number at most about the length of an array that there is?"""
        return self._holds(number, _BOUNDED_IF, _is_bounded_leaf)

    def is_not_negative(self, number: Index) -> bool:
        """Is a number 0 or more, as it is made of lengths, 0 and 1?"""
        return self._holds(number, _NOT_NEGATIVE_IF, _is_count)

    def _holds(self, number: Index, quantifiers: Mapping[Template, Quantifier], is_leaf: Callable[[Index], bool]) -> bool:
        """Does something hold of a number because it does of what the number is made of?"""

        def behind(part: Index) -> tuple[Index, ...]:
            if isinstance(part, Name):
                return (self.fixed[part.name],) if part.name in self.fixed else ()
            return part.args if isinstance(part, Apply) and part.template in quantifiers else ()

        def holds(part: Index, answers: list[bool]) -> bool:
            if isinstance(part, Apply):
                return bool(answers) and quantifiers[part.template](answers)
            return any(answers) or is_leaf(part)

        return folded(number, behind, holds)

    def alloc(self, hint: str | None, shape: Indices, dtype: str) -> str:
        """An array, taken before the loops that do not change its shape; in a branch that may not be taken only a small one. Of a length
        that may be negative, or too much, nothing is taken for loops without steps, as far as that is known where it is taken."""
        name = self.fresh(hint, "row")
        self.alloc_as(name, shape, dtype)
        return name

    def alloc_as(self, name: str, shape: Indices, dtype: str) -> None:
        """The same under a name that is taken already."""
        safe = [self._is_taken_safely(dim) for dim in shape]
        block, steps = (self._alloc_block(shape, dtype), []) if all(safe) else self._guarded_home(*shape)
        further = self._hoisted(*shape)
        if not all(safe) and further is not block:  # a loop around decides whether there is a step: what is taken for one serves all
            steps = [step for step in steps if self.home_of(step).depth <= further.depth]
            block, shape_taken = further, tuple(dim if is_safe else greatest(dim, 0) for dim, is_safe in zip(shape, safe, strict=True))
        else:
            shape_taken = tuple(shape)
        self.home[name] = block
        self.written[name] = self.block
        self.shapes[name] = shape
        taken = [dim if is_safe or not steps else choice(both(*steps), dim, 0) for dim, is_safe in zip(shape_taken, safe, strict=True)]
        self._put(block, Alloc(name, tuple(taken), dtype))

    def _is_taken_safely(self, dim: Index) -> bool:
        """Is a dimension neither negative nor too much, whether or not the loops around have a step? Rows of their steps are in order."""
        counts = {block.steps for block in self.block.outwards()}

        def holds(quantifiers: Mapping[Template, Quantifier], is_leaf: Callable[[Index], bool]) -> bool:
            return self._holds(dim, quantifiers, lambda number: number in counts or is_leaf(number))

        return isinstance(dim, int) or (holds(_NOT_NEGATIVE_IF, _is_count) and holds(_BOUNDED_IF, _is_bounded_leaf))

    def is_known(self, *exprs: Index) -> bool:
        """Is all that `exprs` read defined in the current block or around it?"""
        open_blocks = set(self.block.outwards())
        return all(self.home.get(name, self.root) in open_blocks for expr in exprs for name, _ in names_in(expr))

    def alias(self, hint: str | None, array: str, text: str, *args: Index) -> str:
        """A view of an array; `text` behind the array's name makes it, with {0}, {1}, … for `args`."""
        is_checked = Template(text) == in_shape(len(args))  # by NumPy, too: that the shape fits
        block = (self._holding if is_checked else self._hoisted)(*args, Name("array", array))
        name = self.fresh(hint, "row", block)
        self.written[name] = self.written.get(array, self.home.get(array, self.root))  # a view has its elements where the array has
        self._put(block, Alias(name, array, Template(text), args))
        return name

    def check(self, condition: Expr, error: str, message: str, *numbers: Index) -> None:
        """Fails at run time unless `condition` holds, where it is asked for; made as early as its operands are known, and once. Before a
        loop that may have no step it is made if there is one."""
        guard = self.guards[-1:]
        block, steps = self._guarded_home(*guard, condition, *numbers)
        if condition == Literal("bool", True) or self._is_count_check(condition):
            return
        for one in self._left(block):
            one.is_guarded = True
        holds = either(*map(negated, guard), condition)
        holds_before = either(*map(negated, steps), holds)
        if any(not {condition, holds}.isdisjoint(outer.checked) for outer in self.block.outwards()):
            return
        is_made = Literal("bool", False) in steps or any(holds_before in outer.checked for outer in block.outwards())
        if self._is_lasting(holds):
            self._holding(*guard, condition, *numbers).checked.add(holds)
        if self._is_lasting(holds_before):
            block.checked.add(holds_before)
        if not is_made:
            self._put(block, If(both(*guard, both(*steps, negated(condition))), [Fail(error, message, numbers)]))

    def _is_count_check(self, condition: Expr) -> bool:
        """Does a condition ask whether something is 0 or more that is made of lengths alone?"""
        if not isinstance(condition, Apply) or condition.template is not COMPARE_WITH[">="]:
            return False
        return condition.args[1] == 0 and self.is_not_negative(condition.args[0])

    def same(self, a: Index, b: Index, error: str, message: str) -> None:
        """Both dimensions must be equal: seen now, checked before, or checked at run time. They are one until the check's block ends."""
        a, b = self.representative(a), self.representative(b)
        if a == b:
            return
        if self.guards:
            raise IllegalGraphError("dimensions would count as equal where they are not compared")
        self.check(compare("==", a, b), error, message, a, b)
        block = self._holding(a, b)
        if isinstance(a, int) or (not isinstance(b, int) and self.home_of(a).depth < self.home_of(b).depth):
            a, b = b, a  # what is known in more places stands for both
        if not isinstance(a, int) and self._is_lasting(a, b):
            block.equal[a] = b

    def stretches(self, dim: Index, extent: Index) -> bool:
        """Is a dimension at most 1, and the one that it meets another one? Then its element, if there is one, stands for all."""
        return self.representative(dim) != self.representative(extent) and self.is_at_most_one(dim)

    def broadcasts(self, dim: Index, extent: Index, error: str, message: str) -> None:
        """A dimension must be `extent`, or be at most 1 for sure and 1 at run time: seen now, or checked as by `same`."""
        if not self.stretches(dim, extent):
            self.same(extent, dim, error, message)
        elif extent != 0:  # none broadcasts to none
            is_one = compare("==", dim, 1)
            self.check(is_one if isinstance(extent, int) else either(is_one, compare("==", extent, 0)), error, message, extent, dim)

    def representative(self, a: Index) -> Index:
        """What stands, here, for a dimension and all that are equal to it."""
        block: Block | None = self.block
        while block is not None:
            if a in block.equal:
                a, block = block.equal[a], self.block
            else:
                block = block.parent
        return a

    # nesting --------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, hint: str, stop: Index, kind: str = "sequential", always: bool = False) -> Iterator[Index]:
        """Statements made inside run once per index; a loop of one known pass leaves no loop unless `always`."""
        stop = self.representative(stop)
        if stop == 1 and not always:
            yield 0
            return
        outer = self.block
        may_be_none = kind in ("time", "lanes") and not (isinstance(stop, int) and stop > 0)
        self.block = Block(outer, steps=stop if may_be_none else None)
        name = self.fresh(hint, is_counter=True)
        self.names.counters.add(name)
        try:
            yield Name("int64", name)
        finally:
            body, self.block = self.block, outer
            self.names.free(name)  # the next loop may count with the same letter
        if body.stmts:
            self.emit(For(name, 0, stop, body.stmts, kind=kind))

    def nest(self, dims: Sequence[Index], body: Callable[[Indices], None], letters: str = "ijklmnpq") -> None:
        """Calls `body` inside a loop nest over `dims`, with the loops' indices."""
        if not dims:
            body(())
            return
        with self.loop(letters[0], dims[0]) as index:
            self.nest(dims[1:], lambda rest: body((index, *rest)), letters[1:] + letters[0] * (len(letters) == 1))

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """What is made inside belongs to the end of what is known of a block around the current one, whatever is chosen in this one."""
        outer, self.block, guards, self.guards = self.block, block, self.guards, []
        try:
            yield
        finally:
            self.block, self.guards = outer, guards

    @contextmanager
    def step_of(self, scan: str) -> Iterator[None]:
        """What is made inside belongs to the step of a loop of that name."""
        outer, self.scan = self.scan, scan
        try:
            yield
        finally:
            self.scan = outer

    def chosen(self, condition: Expr, yes: Callable[[], Expr], no: Callable[[], Expr]) -> Expr:
        """`yes()` where the condition holds, else `no()`: what is read, computed and checked for a side is so only where that is taken."""
        if isinstance(condition, Literal):
            return yes() if condition.value else no()
        condition = self._condition(condition)
        with self._under(condition):
            first = yes()
        with self._under(negated(condition)):
            second = no()
        return chosen(condition, first, second)

    @contextmanager
    def _under(self, condition: Expr) -> Iterator[None]:
        """What is made inside is asked for only where the condition holds, and all those around it."""
        guards = self.guards
        guard = both(*guards[-1:], condition)
        self.guards = []  # it asks by itself whether those around it hold
        guard = self._condition(guard)
        self.guards = [*guards, guard]
        try:
            yield
        finally:
            self.guards = guards

    def _condition(self, condition: Expr) -> Expr:
        """A condition that is written several times."""
        short = self.short("is_asked", condition)
        assert isinstance(short, Expr)
        return short

    def _where_asked(self, value: Expr) -> Expr:
        """A value as a local holds it: computed where it is asked for, else 0."""
        if not self.guards:
            return value
        return _value_if(self.guards[-1], value)

    def remembered(self, key: Hashable, hint: str | None, element: Callable[[], Expr]) -> Expr:
        """A local that holds an element, made once for the block and for what is asked there."""
        known = (self.block.lookup((key, guard)) for guard in (None, *self.guards))
        local = next((local for local in known if local is not None), None)
        if local is None:
            expr = element()
            local = expr if isinstance(expr, Length) else self.let(hint, expr)  # equal lengths are seen to be equal
            self.block.memo[key, self.guards[-1] if self.guards else None] = local
        return local

    @contextmanager
    def branch(self) -> Iterator[list[Stmt]]:
        """Statements made inside are collected for one side of an If."""
        outer = self.block
        self.block = Block(outer, is_branch=True)
        collected = self.block.stmts
        try:
            yield collected
        finally:
            self.block = outer
