"""Builds the loop tree: blocks, fresh names, and where a statement belongs.

A statement goes to the outermost block in which everything it reads is defined: work rows are taken before the loops,
scalars that no step changes are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile

import numpy as np

from ..ir.check import IllegalGraphError
from ..ir.lengths import Facts, atom_of, number_of, sum_of, written
from ..ir.loops import (
    AND,
    CHOICE,
    CHOICE_BETWEEN,
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
    add,
    both,
    choice,
    chosen,
    compare,
    either,
    greatest,
    in_shape,
    linear,
    mul,
    names_in,
    negated,
    parts,
    written_parts,
)
from ..ir.names import Names

Indices = tuple[Index, ...]

LONGEST = 24  # parts of a length that is written out wherever it is read
SMALL, ROWS = 65536, 16  # an array is taken even if it may not be needed: up to these bytes, or rows of a length known at run time only


def _is_under(stmt: Stmt, guard: Expr) -> bool:
    """True if a statement does nothing unless the guard holds."""
    expr = stmt.value if isinstance(stmt, Let) else stmt.condition if isinstance(stmt, If) and not stmt.otherwise else None
    return isinstance(expr, Apply) and expr.template.level in (AND, CHOICE) and expr.args[0] == guard


def _value_if(condition: Expr, value: Expr) -> Expr:
    """The value where the condition holds, else 0."""
    return both(condition, value) if value.dtype == "bool" else chosen(condition, value, Literal(value.dtype, 0))


def _may_raise(value: Index) -> bool:
    """True if an expression may fail."""
    return any(isinstance(part, Apply) and part.template.raises for part in parts(value))


class Block:
    """Statements in the making. `is_branch`: runs only sometimes, so nothing that can fail leaves it.

    `steps`: the number of steps, for the body of a loop that may have none; None for other blocks. Code that can fail leaves such a body
    only under the condition that there is a step. `is_guarded`: a check has left it so, or holds by what is known in it alone, and the
    values that it checks must not be read outside of the loop unless there is a step.
    """

    def __init__(self, parent: Block | None, is_branch: bool = False, steps: Index | None = None) -> None:
        self.parent, self.is_branch, self.steps = parent, is_branch, steps
        self.is_guarded = False
        self.stmts: list[Stmt] = []
        self.memo: dict[Hashable, Expr] = {}  # elements that locals of the block hold
        self.facts: Facts = Facts(None if parent is None else parent.facts)  # what is known of lengths from here to the end of the block
        self.checked: set[Expr] = set()  # what holds from here to the end of the block
        self.checked_for_steps: list[tuple[list[Expr], Expr]] = []  # conditions that hold where loops have a step, and that they have one
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
        self.moving: set[str] = set()  # those that may still get others
        self.steady: set[str] = set()  # states among them, which keep their values until the end of the step that is made
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
                if is_element:  # a view has its elements where the array has, and is there itself
                    home = max(home, self.written.get(name, home), key=lambda block: block.depth)
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
        """Says that the loop in which names changed has ended: from here on they have their last values."""
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
        if isinstance(value, int):
            return Literal(dtype, value)
        if isinstance(value, Name | Literal):
            return value
        return self._leaving(hint, value) if hoist else self._held(hint, self._where_asked(value), self.block)

    def _leaving(self, hint: str | None, value: Expr) -> Expr:
        """A number, or a local for a value, in the outermost block that can hold it: one that holds it already, if there is one."""
        if value.dtype == "int64":
            number = self.representative(value)
            if isinstance(number, int | Name | Length):
                return Literal("int64", number) if isinstance(number, int) else number
            value = number
        elif value.dtype == "bool" and (holds := self.decided(value)) is not None:
            return Literal("bool", holds)
        asked = self._where_asked(value)
        local = self.held(asked) if self._is_lasting(asked) else None
        return local if isinstance(local, Name) else self._new_local(hint, value)

    def _new_local(self, hint: str | None, value: Expr) -> Name:
        """A local of its own for a value, in the outermost block that can hold it.

        If there may be no step, an element that may not be there is read where there is one, and so is computed what may fail.
        """
        asked = self._where_asked(value)
        block, steps = self._guarded_home(asked)
        is_read = any(is_element for _, is_element in names_in(value)) and any(one.is_guarded for one in self._left(block))
        if not (steps and (is_read or _may_raise(value))):
            return self._held(hint, asked, self._hoisted(asked))
        return self._held(hint, self._where_asked(_value_if(both(*steps), value)), block)

    def _held(self, hint: str | None, value: Expr, block: Block) -> Name:
        name = self.fresh(hint, "v", block)
        simpler, divisor = block.facts.remainder(value)
        self._put(block, Let(name, simpler))
        local = Name(value.dtype, name)
        if value.dtype == "int64":
            block.facts.define(local, value, self._is_lasting(value))
            if not self._is_lasting(value) and self.is_steady(value):
                block.facts.compute(local, value)
        elif value.dtype == "bool":
            block.facts.mean(local, value)
        if divisor is not None and self._is_lasting(divisor):
            block.facts.learn(compare(">=", local, 0))
            block.facts.learn(compare("<", local, divisor))
        if not any(read in self.moving for read, is_element in names_in(value) if not is_element):
            block.facts.hold(local, value)
        return local

    def held(self, value: Expr) -> Index | None:
        """A local or a number that is known to equal a value, in every block in which a new local for it would be known; else None."""
        outermost = self._hoisted(value).depth
        locals_ = (block.facts.held(value) for block in self.block.outwards() if block.depth <= outermost)
        return next((local for local in locals_ if local is not None), None)

    def settled(self, hint: str, number: Index) -> Index:
        """A number that stays what it is now: itself, or a local where it is long, reads elements or a local that may get other values."""
        if isinstance(number, int) or self._is_lasting(number):
            return self.short(hint, number)
        return self._new_local(hint, number)

    def short(self, hint: str | None, expr: Index) -> Index:
        """An expression to be written several times: itself, or a local if it is long. Otherwise texts would grow as 2**k."""
        return self._leaving(hint, expr) if isinstance(expr, Expr) and self._is_long(expr) else expr

    @staticmethod
    def _is_long(number: Index) -> bool:
        """True for an expression that is too long to be written out in other ones: expressions of expressions would grow without end."""
        return next(islice(written_parts(number), LONGEST, None), None) is not None

    def _is_lasting(self, *exprs: Index) -> bool:
        """True if facts about `exprs` hold to the end of the block in which all that they read is defined."""
        return not any(is_element or name in self.moving for expr in exprs for name, is_element in names_in(expr))

    def is_steady(self, *exprs: Index) -> bool:
        """True if what is known of `exprs` holds at least until the states of the step advance."""
        moving = self.moving - self.steady
        return not any(is_element or name in moving for expr in exprs for name, is_element in names_in(expr))

    def hold_steady(self, names: Iterable[str]) -> None:
        """Says that states keep their values from here on, until `advance`."""
        self.steady.update(names)

    def advance(self) -> None:
        """Says that the states of the step that is made get other values: what its block knows of them is dropped."""
        changing = {name for name in self.steady if self.home[name] is self.block}
        self.steady -= changing
        self.block.facts.forget(changing)

    def learn(self, condition: Expr) -> None:
        """Says that a condition holds to the end of the block, or until states advance."""
        self.block.facts.learn_of(self.steady, both(*(one for one in self.block.facts.told(condition) if self.is_steady(one))))

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
        """The outermost block in which a fact about `exprs` holds that is found here: within a branch, or a loop that may have no step, the
        fact may never be found."""
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
            if is_loop:  # to leave only a branch gains nothing
                chosen = block
        return chosen

    def _is_small(self, shape: Indices, dtype: str) -> bool:
        """True if an array costs next to nothing: a few bytes, or some rows no longer than an array that exists."""
        fixed = math.prod(dim for dim in shape if isinstance(dim, int))
        others = [dim for dim in shape if not isinstance(dim, int)]
        if not others:
            return fixed * np.dtype(dtype).itemsize <= SMALL
        return len(others) == 1 and fixed <= ROWS and self._is_in_order(others[0])

    def is_at_most_one(self, number: Index) -> bool:
        """True if a length is at most 1 by its definition, as that of `x[:1]`: the answer is the same in every block."""
        facts = self.block.facts.by_definition()
        return facts.highest(facts.form(number)) <= 1

    def alloc(self, hint: str | None, shape: Indices, dtype: str) -> str:
        """An array, taken before the loops that do not change its shape; only a small one leaves a branch, which may not be run. If a
        length may be negative or too large, nothing is taken for loops without steps, as far as that is known where the array is taken."""
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
        """True if a dimension is neither negative nor too large, with or without steps of the loops around, which may count rows."""
        counts = [block.steps for block in self.block.outwards() if block.steps is not None]
        return isinstance(dim, int) or self._is_in_order(dim, counts)

    def _is_in_order(self, dim: Index, counts: Sequence[Index] = ()) -> bool:
        """True if a dimension is neither negative nor too large by its definition, given that `counts` are not."""
        facts = self.block.facts.by_definition()
        for count in counts:
            facts.learn(compare(">=", count, 0))
        return facts.lowest(facts.form(dim)) >= 0 and facts.is_short(dim, ROWS, counts)

    def is_known(self, *exprs: Index) -> bool:
        """True if all that `exprs` read is defined in the current block or around it."""
        open_blocks = set(self.block.outwards())
        return all(self.home.get(name, self.root) in open_blocks for expr in exprs for name, _ in names_in(expr))

    def alias(self, hint: str | None, array: str, text: str, *args: Index) -> str:
        """A view of an array; `text` behind the array's name makes it, with {0}, {1}, … for `args`."""
        is_checked = Template(text) == in_shape(len(args))  # by NumPy, too: that the shape fits
        block = (self._holding if is_checked or any(map(_may_raise, args)) else self._hoisted)(*args, Name("array", array))
        name = self.fresh(hint, "row", block)
        self.written[name] = self.written.get(array, self.home.get(array, self.root))  # a view has its elements where the array has
        self._put(block, Alias(name, array, Template(text), args))
        return name

    def check(self, condition: Expr, error: str, message: str, *numbers: Index) -> None:
        """Fails at run time unless `condition` holds, where it is asked for; made as early as its operands are known, and once. Before a
        loop that may have no step it is made if there is one."""
        self._guard_reads(condition)
        guard, condition = self.guards[-1:], self.block.facts.simpler(condition)
        block, steps = self._guarded_home(*guard, condition, *numbers)
        if condition == Literal("bool", True):
            return
        holds = either(*map(negated, guard), condition)
        holds_before = either(*map(negated, steps), holds)
        if any(not {condition, holds}.isdisjoint(outer.checked) for outer in self.block.outwards()):
            return
        is_made = Literal("bool", False) in steps or any(holds_before in outer.checked for outer in block.outwards())
        if self._is_lasting(holds):
            known_in = self._holding(*guard, condition, *numbers)
            known_in.checked.add(holds)
            self._learn(known_in, None if guard else condition)
        if self._is_lasting(holds_before):
            block.checked.add(holds_before)
            if steps and not guard:
                block.checked_for_steps.append((steps, condition))
        if not is_made:
            self._put(block, If(both(*guard, both(*steps, negated(condition))), [Fail(error, message, numbers)]))

    def _guard_reads(self, condition: Expr) -> None:
        """Says that what a condition protects is not read outside of a loop that may have no step, unless the condition holds there, too.

        What decides it here may be known of the loop alone: that it has a step, and what holds at the start of each.
        """
        for one in self._left(self._guarded_home(*self.guards[-1:], condition)[0]):
            if one.parent is not None and not one.parent.facts.decided(condition):
                one.is_guarded = True

    def _learn(self, block: Block, condition: Expr | None) -> None:
        """Says that a condition holds to the end of a block. Of equal lengths the one that is known in more places stands for both."""
        if condition is not None and self._is_lasting(condition):
            block.facts.learn(condition, lambda part: self.home_of(part).depth)

    def _learn_of_steps(self, block: Block) -> None:
        """Says in the body of a loop what loops of as many steps in front of it have checked, each before its first step."""
        for outer in block.outwards():
            for steps, condition in outer.checked_for_steps:
                if block.facts.decided(condition) is None and all(block.facts.decided(step) for step in steps):
                    self._learn(block, condition)
                    block.is_guarded = True

    def same(self, a: Index, b: Index, error: str, message: str, unless: Expr | None = None) -> None:
        """Both dimensions must be equal: seen now, checked before, or checked at run time. They are one until the check's block ends.

        `unless`: where that holds they may differ, so they stay two.
        """
        if self.are_equal(a, b):
            return
        if unless is not None:
            self.check(either(unless, compare("==", a, b)), error, message, a, b)
            return
        if self.guards:
            raise IllegalGraphError("dimensions would count as equal where they are not compared")
        a, b = self.representative(a), self.representative(b)
        self.check(compare("==", a, b), error, message, a, b)

    def decided(self, condition: Expr) -> bool | None:
        """Whether a condition holds at every run, by the facts known here; None if only the run knows."""
        return self.block.facts.decided(condition)

    def are_equal(self, a: Index, b: Index) -> bool:
        """True if two numbers are equal at every run, by the facts known here."""
        return a == b or self.block.facts.form(a) == self.block.facts.form(b)

    def stretches(self, dim: Index, extent: Index) -> bool:
        """True if a dimension is at most 1, and not known to equal the one that it meets. Then its element, if any, stands for all."""
        return not self.are_equal(dim, extent) and self.is_at_most_one(dim)

    def broadcasts(self, dim: Index, extent: Index, error: str, message: str) -> None:
        """A dimension must be `extent`, or be at most 1 for sure and 1 at run time: seen now, or checked as by `same`."""
        if not self.stretches(dim, extent):
            self.same(extent, dim, error, message)
        elif extent != 0:  # none broadcasts to none
            is_one = compare("==", dim, 1)
            self.check(is_one if isinstance(extent, int) else either(is_one, compare("==", extent, 0)), error, message, extent, dim)

    def representative(self, a: Index) -> Index:
        """The expression that is written here for a length and for all equal to it: a number, an array's length, a local, a sum."""
        if isinstance(a, int):
            return a
        form = self.block.facts.form(a)
        number, one = number_of(form), atom_of(form)
        if number is not None:
            return number
        if not self._is_lasting(a):
            return self._taken(a)
        if isinstance(one, Name | Length):
            return one
        local = self.held(a)
        if local is not None:
            return local
        if form == sum_of(a):
            return a
        return written(form) or self._termwise(a)

    def _taken(self, a: Index) -> Index:
        """What a choice gives where it is known which side is taken; itself where it is not."""
        while isinstance(a, Apply) and a.template is CHOICE_BETWEEN:
            condition, yes, no = a.args
            holds = self.decided(condition) if isinstance(condition, Expr) else None
            if holds is None:
                break
            a = yes if holds else no
        return a

    def seen_from(self, block: Block, a: Index) -> Index:
        """The expression that is written for a length in another block."""
        here, self.block = self.block, block
        try:
            return self.representative(a)
        finally:
            self.block = here

    def _termwise(self, a: Expr) -> Index:
        """A sum with each term in the form of its representative."""
        terms, number = linear(a)
        if len(terms) == 1 and a in terms:
            return a
        result: Index = number
        for term, factor in terms.items():
            result = add(result, mul(self.representative(term), factor))
        return result

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
        self._learn(self.block, self.block.has_step)
        if may_be_none:
            self._learn_of_steps(self.block)
        name = self.fresh(hint, is_counter=True)
        self.names.counters.add(name)
        counter = Name("int64", name)
        if self._is_lasting(stop):
            self.block.facts.count(counter, stop)
        try:
            yield counter
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
        """Inside, code goes to the end of a block around the current one, without the guards of the current one."""
        outer, self.block, guards, self.guards = self.block, block, self.guards, []
        try:
            yield
        finally:
            self.block, self.guards = outer, guards

    @contextmanager
    def step_of(self, scan: str) -> Iterator[None]:
        """Inside, code belongs to the step of the loop of that name."""
        outer, self.scan = self.scan, scan
        try:
            yield
        finally:
            self.scan = outer

    def chosen(self, condition: Expr, yes: Callable[[], Expr], no: Callable[[], Expr]) -> Expr:
        """`yes()` where the condition holds, else `no()`: each side is read, computed and checked only where it is chosen."""
        condition = self.block.facts.simpler(condition)
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
        """Inside, code runs only where the condition holds, and all the conditions around it."""
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
        """A local that holds an element, made once for the block and the conditions around."""
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
