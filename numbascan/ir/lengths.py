"""Lengths by their definitions: a normal form, which equal lengths have in common, and facts about them.

A form is the greatest of some least of some sums, each a few fixed multiples of atoms and a fixed number:

    max(n - 1, 0) + 1        {n, 1}, the greatest of both; {n} where n >= 1 is known
    min(1, n + 1)            {1}, as n is not negative
    steps + 1                {n, 1}, where steps was defined as max(n - 1, 0)

An atom is a number known by its least and greatest value alone: a length of an array, a local that is not defined by other lengths, a
quotient. Two numbers with one form are equal; two with different forms may be equal, too, and are then compared at run time.

- A local stands for its definition, if that can never change while the local is seen (`Facts.define`).
- Index arithmetic never leaves int64. A user's does, modulo 2**64: it is looked through where its result cannot leave int64.
- A form has at most MOST_PARTS parts. Where it would have more, the expression is an atom: so no form grows as 2**k.

Not handled: multiples of choices between lengths, equal remainders, conditions on more than one sum.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Set
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Union

from .loops import (
    AND,
    BROADCAST_DIM,
    CHOICE_BETWEEN,
    COMPARE_WITH,
    DIFFERENCE,
    FLOOR_DIV,
    GREATEST,
    IN_ORDER,
    INDEX_DIFFERENCE,
    INDEX_PRODUCT,
    INDEX_SUM,
    LEAST,
    MIRRORED,
    MOD,
    NOT,
    OF_BOTH,
    OF_EITHER,
    OR,
    PRODUCT,
    QUOTIENT,
    REMAINDER,
    Apply,
    Expr,
    Index,
    Length,
    Literal,
    Name,
    Template,
    add,
    both,
    choice,
    compare,
    either,
    joined,
    linear,
    names_in,
    negated,
    parts,
    sub,
)

MOST_PARTS = 24
MOST_CHOICES = 8  # least ones in a greatest, and sums in a least
MOST_FACTS = 16  # of sums of several atoms, in a block
FACTS_IN_A_ROW = 3  # as `k < j`, `j < i` and `i < n` for k < n
INT64 = (-(2**63), 2**63 - 1)
LONGEST_ARRAY = 2**57
"""More elements than a processor can address. An array without elements may have longer axes; no index arithmetic holds for these."""

_SUMS = {INDEX_SUM: 1, IN_ORDER: 1, INDEX_DIFFERENCE: -1, DIFFERENCE: -1}
_PRODUCTS = (INDEX_PRODUCT, PRODUCT)
_QUOTIENTS = (FLOOR_DIV, QUOTIENT)
_KEPT = (CHOICE_BETWEEN, FLOOR_DIV, MOD, BROADCAST_DIM, *_PRODUCTS, IN_ORDER, DIFFERENCE)  # operations that may be atoms, of forms


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on forms that is no sum, least or greatest: equal if its operands are."""

    template: Template
    operands: tuple[Form, ...]


Atom = Union[Expr, Operation]  # noqa: UP007 - Expr | Operation, evaluated at run time by Sum's annotations


@dataclass(frozen=True, slots=True)
class Sum:
    """Fixed multiples of atoms and a fixed number."""

    terms: frozenset[tuple[Atom, int]]
    number: int

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """self + factor * other."""
        terms = dict(self.terms)
        for atom, times in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * times
        return Sum(frozenset((atom, times) for atom, times in terms.items() if times), self.number + factor * other.number)

    def part(self, sign: int) -> Sum:
        """What is added, or with sign -1 what is taken off."""
        terms = frozenset((atom, times * sign) for atom, times in self.terms if times * sign > 0)
        return Sum(terms, max(self.number * sign, 0))


Form = frozenset[frozenset[Sum]]

NOTHING = Sum(frozenset(), 0)


def _of_sum(one: Sum) -> Form:
    return frozenset([frozenset([one])])


def fixed(number: int) -> Form:
    """The form of a number that is known."""
    return _of_sum(Sum(frozenset(), number))


def atom(one: Atom) -> Form:
    """The form of an atom."""
    return _of_sum(Sum(frozenset([(one, 1)]), 0))


def only_sum(form: Form) -> Sum | None:
    """The sum that a form is; None where it is a choice between several."""
    sums = [one for least in form for one in least]
    return sums[0] if len(sums) == 1 else None


def sum_of(index: Index) -> Form:
    """The form of an index that is written as a sum."""
    terms, number = linear(index)
    return _of_sum(Sum(frozenset((part, factor) for part, factor in terms.items() if isinstance(part, Expr)), number))


def number_of(form: Form) -> int | None:
    """The number that a form is at every run; None if that is not known."""
    one = only_sum(form)
    return one.number if one is not None and not one.terms else None


def atom_of(form: Form) -> Atom | None:
    """The atom that a form is; None for any other form."""
    one = only_sum(form)
    if one is None or one.number or len(one.terms) != 1:
        return None
    ((only, factor),) = one.terms
    return only if factor == 1 else None


def written(form: Form) -> Index | None:
    """A form that is one sum of locals and lengths, as an expression."""
    one = only_sum(form)
    if one is None or not all(isinstance(part, Name | Length) for part, _ in one.terms):
        return None
    return joined({part: factor for part, factor in sorted(one.terms, key=repr) if isinstance(part, Expr)}, one.number)


@cache
def _order(one: Sum) -> str:
    """Sums are gone through in an order that is the same in every process."""
    return repr((one.number, sorted(map(repr, one.terms))))


def _n_parts(form: Form) -> int:
    return sum(1 + sum(_n_parts_of_atom(part) for part, _ in one.terms) for least in form for one in least)


def _n_parts_of_atom(one: Atom) -> int:
    return 1 + sum(map(_n_parts, one.operands)) if isinstance(one, Operation) else 1


class Facts:
    """What is known of lengths in a block: definitions of locals, bounds, and which are equal. All of it holds until the block ends."""

    def __init__(self, around: Facts | None = None) -> None:
        self.around = around
        self.definitions: MutableMapping[str, Form] = {}
        self.ranges: MutableMapping[str, tuple[int, int]] = {}  # of locals whose definition does not last
        self._held: dict[Form, Index] = {}  # as of `_held_at`
        self._held_at = 0
        self._bounds: dict[Atom, tuple[int, int]] = {}
        self._not_negative: list[Sum] = []  # of several atoms
        self._equal: dict[Atom, Form] = {}
        self._equal_forms: dict[Form, Form] = {}
        self._meanings: dict[str, Expr] = {}  # conditions that locals hold
        self._sums: dict[str, Sum] = {}  # locals made of states, which stand for themselves outside of comparisons
        self._clock: list[int] = [0] if around is None else around._clock  # the time of the latest fact learned in any block
        self._forms: dict[Index, Form] = {}  # as of `_known_at`
        self._ranges: dict[Atom, tuple[int, int]] = {}
        self._proved: dict[tuple[Sum, int], bool] = {}
        self._known_at = 0

    def _outwards(self) -> Iterator[Facts]:
        facts: Facts | None = self
        while facts is not None:
            yield facts
            facts = facts.around

    # forms ------------------------------------------------------------------------------------------------------------

    def form(self, index: Index) -> Form:
        """The normal form of a number."""
        self._forget()
        if index not in self._forms:
            form = self._settled(self._form(index))
            self._forms[index] = next((facts._equal_forms[form] for facts in self._outwards() if form in facts._equal_forms), form)
        return self._forms[index]

    def _form(self, index: Index) -> Form:
        """The form, before it is known what is equal."""
        if isinstance(index, int):
            return fixed(index)
        if isinstance(index, Literal) and index.dtype == "int64" and isinstance(index.value, int):
            return fixed(index.value)
        if isinstance(index, Name):
            return next((facts.definitions[index.name] for facts in self._outwards() if index.name in facts.definitions), atom(index))
        if not isinstance(index, Apply) or index.dtype != "int64":
            return atom(index)
        if index.template == CHOICE_BETWEEN:
            condition, yes, no = index.args
            assert isinstance(condition, Expr)
            holds = self.decided(condition)
            if holds is not None:
                return self._form(yes if holds else no)
            return self._applied(CHOICE_BETWEEN, (atom(condition), self._form(yes), self._form(no))) or atom(index)
        operands = tuple(map(self._form, index.args)) if _is_of_int64(index) else ()
        return self._applied(index.template, operands) or atom(index)

    def _applied(self, template: Template, operands: tuple[Form, ...]) -> Form | None:
        """An operation on forms; None where it is none that is known, or would be too large."""
        form = self._computed(template, *operands) if operands and template in _ARITHMETIC else None
        if form is None and operands and template in _KEPT:
            form = atom(Operation(template, operands))
        return form if form is not None and _n_parts(form) <= MOST_PARTS else None

    def _computed(self, template: Template, first: Form, second: Form, third: Form = frozenset()) -> Form | None:
        if template is CHOICE_BETWEEN:
            return second if second == third else None
        number = number_of(second)
        if template in (LEAST, GREATEST):
            return self._extreme(template, first, second)
        if template is BROADCAST_DIM:
            return self._common(first, second)
        if template in _QUOTIENTS:
            return None if number is None or number < 1 else self._quotient(first, number)
        if template in _PRODUCTS:
            if number is None:
                first, second, number = second, first, number_of(first)
            form = None if number is None else self._times(first, number)
        elif template in _SUMS:
            negative = self._times(second, _SUMS[template])
            form = None if negative is None else self._plus(first, negative)
        else:
            return None
        if form is None or not template.wraps:
            return form
        return form if INT64[0] <= self.lowest(form) and self.highest(form) <= INT64[1] else None

    def _plus(self, first: Form, second: Form) -> Form | None:
        """max_i min_j a_ij + max_k min_l b_kl = max_ik min_jl (a_ij + b_kl)."""
        return self._pruned(frozenset(one.plus(other) for one in some for other in others) for some in first for others in second)

    def _times(self, form: Form, factor: int) -> Form | None:
        """A fixed multiple. -max_i min_j a_ij = min_i max_j -a_ij = max over all ways to take one a_ij of each i, of the min_i."""
        if factor == 0:
            return fixed(0)
        multiples = [[NOTHING.plus(one, factor) for one in sorted(least, key=_order)] for least in form]
        if factor > 0:
            return frozenset(map(frozenset, multiples))
        return None if prod(map(len, multiples)) > MOST_CHOICES else self._pruned(map(frozenset, product(*multiples)))

    def _extreme(self, template: Template, first: Form, second: Form) -> Form | None:
        if template is GREATEST:
            return self._pruned((*first, *second))
        return self._pruned(some | others for some in first for others in second)

    def _common(self, first: Form, second: Form) -> Form | None:
        """What two lengths broadcast to: the second one where the first is 1, else the first."""
        if first == second or number_of(second) == 1 or second in self._broadcast(first):
            return first
        if number_of(first) == 1:
            return second
        return first if self.lowest(first) > 1 or self.highest(first) < 1 else None

    def _broadcast(self, form: Form) -> Iterator[Form]:
        """What a length was broadcast from: if it is 1, all of these are."""
        yield form
        one = atom_of(form)
        if isinstance(one, Operation) and one.template is BROADCAST_DIM:
            for operand in one.operands:
                yield from self._broadcast(operand)

    def _quotient(self, form: Form, divisor: int) -> Form | None:
        """Rounding down keeps the order, so that the greatest quotient is that of the greatest."""
        return self._pruned(frozenset(self._divided(one, divisor) for one in least) for least in form)

    def _divided(self, one: Sum, divisor: int) -> Sum:
        whole = Sum(frozenset((part, factor // divisor) for part, factor in one.terms if factor % divisor == 0), one.number // divisor)
        rest = Sum(frozenset((part, factor) for part, factor in one.terms if factor % divisor), one.number % divisor)
        if not rest.terms:
            return whole
        return whole.plus(Sum(frozenset([(Operation(FLOOR_DIV, (_of_sum(rest), fixed(divisor))), 1)]), 0))

    def _pruned(self, leasts: Iterable[frozenset[Sum]]) -> Form | None:
        """The greatest of some least, without what others make needless; None where too many are left."""
        leasts, kept = [*leasts], list[frozenset[Sum]]()
        if len(leasts) == 1 and len(leasts[0]) == 1:
            return frozenset(leasts)
        for least in sorted((self._without_greater(one) for one in leasts), key=lambda least: sorted(map(_order, least))):
            if not any(self._is_at_most(least, other) for other in kept):
                kept = [other for other in kept if not self._is_at_most(other, least)] + [least]
        return frozenset(kept) if len(kept) <= MOST_CHOICES and all(len(least) <= MOST_CHOICES for least in kept) else None

    def _without_greater(self, least: frozenset[Sum]) -> frozenset[Sum]:
        kept = list[Sum]()
        for one in sorted(least, key=_order):
            if not any(self._is_not_negative(one.plus(other, -1)) for other in kept):
                kept = [other for other in kept if not self._is_not_negative(other.plus(one, -1))] + [one]
        return frozenset(kept)

    def _is_at_most(self, least: frozenset[Sum], other: frozenset[Sum]) -> bool:
        """Is one least at most another one? It is if every sum of the other has one of its own that is not greater."""
        return all(any(self._is_not_negative(its.plus(own, -1)) for own in least) for its in other)

    # bounds -----------------------------------------------------------------------------------------------------------

    def lowest(self, form: Form) -> int:
        """A number that a form is never below."""
        return max(min(self._bound(one, 0) for one in least) for least in form)

    def highest(self, form: Form) -> int:
        """A number that a form is never above."""
        return max(min(self._bound(one, 1) for one in least) for least in form)

    def _bound(self, one: Sum, side: int) -> int:
        return one.number + sum(factor * self._range(part)[side if factor > 0 else 1 - side] for part, factor in one.terms)

    def _is_not_negative(self, one: Sum, most: int = FACTS_IN_A_ROW) -> bool:
        """True if a sum is never negative: by the ranges of its atoms, or by those of what is left after up to `most` sums that are known
        to be not negative are subtracted."""
        one = self._spelled_out(one)
        if self._bound(one, 0) >= 0:
            return True
        if (one, most) not in self._proved:
            self._proved[one, most] = self._follows(one, most)
        return self._proved[one, most]

    def _follows(self, one: Sum, most: int) -> bool:
        multiple = _without_quotient(one)
        if multiple is not None and self._is_not_negative(multiple, most):
            return True
        signs = {(part, factor > 0) for part, factor in one.terms} if most else set()
        return any(
            self._is_not_negative(one.plus(fact, -1), most - 1)
            for facts in (self._outwards() if signs else ())
            for fact in facts._not_negative
            if any((part, factor > 0) in signs for part, factor in fact.terms)
        )

    def _spelled_out(self, one: Sum) -> Sum:
        """A sum with the sums that locals are in their places."""
        names = [(part, factor) for part, factor in one.terms if isinstance(part, Name)]
        for facts in self._outwards() if names else ():
            for part, factor in names if facts._sums else ():
                if part.name in facts._sums:
                    one = one.plus(Sum(frozenset([(part, 1)]), 0), -factor).plus(facts._sums[part.name], factor)
        return one

    def _range(self, one: Atom) -> tuple[int, int]:
        """The least and the greatest number that an atom may be."""
        self._forget()
        known = self._ranges.get(one)
        if known is not None:
            return known
        least, greatest = self._range_by_kind(one)
        for facts in self._outwards():
            if one in facts._bounds:
                low, high = facts._bounds[one]
                least, greatest = max(least, low), min(greatest, high)
        self._ranges[one] = least, greatest
        return least, greatest

    def _forget(self) -> None:
        """Forgets what was found before something was learned."""
        if self._known_at != self._clock[0]:
            self._forms, self._ranges, self._proved, self._known_at = {}, {}, {}, self._clock[0]

    def _range_by_kind(self, one: Atom) -> tuple[int, int]:
        if isinstance(one, Length):
            return 0, LONGEST_ARRAY
        if isinstance(one, Name):
            return next((facts.ranges[one.name] for facts in self._outwards() if one.name in facts.ranges), INT64)
        if not isinstance(one, Operation):
            return INT64
        *_, first, second = one.operands
        if one.template is BROADCAST_DIM or one.template is CHOICE_BETWEEN:
            return min(self.lowest(first), self.lowest(second)), max(self.highest(first), self.highest(second))
        least, divisor = self.lowest(first), number_of(second)
        if one.template is FLOOR_DIV and divisor is not None and divisor > 0:
            return least // divisor, self.highest(first) // divisor
        if one.template is MOD and divisor is not None and divisor > 0:
            return 0, divisor - 1
        if one.template is FLOOR_DIV or one.template is MOD:
            return (0, INT64[1]) if least >= 0 and self.lowest(second) > 0 else INT64
        if one.template in (*_PRODUCTS, IN_ORDER) and all(self.lowest(each) >= 0 and _is_of_lengths(each) for each in one.operands):
            return 0, INT64[1]
        return INT64

    def is_short(self, number: Index, most: int, counts: Iterable[Index] = ()) -> bool:
        """Is a number at most about the length of an array that there is: of a few arrays, and `most` elements? `counts` are as short."""
        short = {atom_of(self.form(count)) for count in counts}

        def is_short(one: Sum) -> bool:
            parts = (self._range(part)[0] >= 0 if factor < 0 else factor == 1 and is_short_atom(part) for part, factor in one.terms)
            return one.number <= most and all(parts)

        def is_short_atom(one: Atom) -> bool:
            if isinstance(one, Operation) and one.template in (BROADCAST_DIM, FLOOR_DIV):
                return self._range(one)[0] >= 0 and all(map(is_short_form, one.operands))
            return isinstance(one, Length) or one in short

        def is_short_form(form: Form) -> bool:
            return all(any(map(is_short, least)) for least in form)

        return is_short_form(self.form(number))

    # conditions -------------------------------------------------------------------------------------------------------

    def decided(self, condition: Expr) -> bool | None:
        """Whether a condition holds at every run; None if only the run knows."""
        if isinstance(condition, Literal):
            return bool(condition.value)
        if isinstance(condition, Name):
            meaning = self._meaning(condition)
            return None if meaning is None else self.decided(meaning)
        if not isinstance(condition, Apply):
            return None
        if condition.template.level == NOT and condition.dtype == "bool" and len(condition.args) == 1:
            answer = self.decided(condition.args[0]) if isinstance(condition.args[0], Expr) else None
            return None if answer is None else not answer
        if condition.template.level in (AND, OR):
            is_any = condition.template.level == OR
            answers = [self.decided(part) for part in condition.args if isinstance(part, Expr)]
            return is_any if is_any in answers else None if None in answers else not is_any
        sign = _SIGNS.get(condition.template)
        if sign is None or not _is_of_int64(condition):
            return None
        return self._compared(sign, *map(self.form, condition.args))

    def _compared(self, sign: str, a: Form, b: Form) -> bool | None:
        if sign in (">", "<", "!="):
            answer = self._compared({">": "<=", "<": ">=", "!=": "=="}[sign], a, b)
            return None if answer is None else not answer
        if sign == "<=":
            a, b = b, a
        if sign == "==":
            if a == b:
                return True
            return False if self._is_less(a, b) or self._is_less(b, a) else None
        if self.is_at_least(a, b):
            return True
        return False if self._is_less(a, b) else None

    def simpler(self, condition: Expr) -> Expr:
        """A condition without what holds anyway, and without what both sides of a comparison have; itself where that is not shorter."""
        answer = self.decided(condition)
        if answer is not None:
            return Literal("bool", answer)
        if not isinstance(condition, Apply):
            return condition
        if condition.template in (OF_BOTH, OF_EITHER):
            joined_by = both if condition.template == OF_BOTH else either
            return joined_by(*(self.simpler(part) for part in condition.args if isinstance(part, Expr)))
        shorter = self._shorter(condition)
        return condition if shorter is None else shorter

    def _shorter(self, condition: Apply) -> Expr | None:
        """A comparison of two sums without the terms that they have in common, unless that could leave int64."""
        sign = _SIGNS.get(condition.template)
        if sign is None or not _is_of_int64(condition):
            return None
        first, second = (only_sum(self.form(side)) for side in condition.args)
        if first is None or second is None:
            return None
        difference = first.plus(second, -1)
        left, right = difference.part(1), difference.part(-1)
        if not all(self._is_in_range(one) for one in (left, right)):
            return None
        a, b = written(_of_sum(left)), written(_of_sum(right))
        if a is None or b is None:
            return None
        result = compare(sign, a, b) if isinstance(a, Expr) else compare(MIRRORED[sign], b, a)
        return result if _size(result) < _size(condition) else None

    def _is_in_range(self, one: Sum) -> bool:
        return INT64[0] <= self._bound(one, 0) and self._bound(one, 1) <= INT64[1]

    def is_at_least(self, a: Form, b: Form) -> bool:
        """True if a >= b at every run, as far as that is known."""
        return all(any(self._is_at_most(least, other) for other in a) for least in b)

    def _is_less(self, a: Form, b: Form) -> bool:
        return self.is_at_least(b, frozenset(frozenset(one.plus(Sum(frozenset(), 1)) for one in least) for least in a))

    def remainder(self, value: Index) -> tuple[Index, Index | None]:
        """A user's remainder without a division, where the number is near the divisor (`(i + 1) % n`); and the divisor, if
        the result is 0 or more and less than that. Other values come back as they are.
        """
        if not (isinstance(value, Apply) and value.template == REMAINDER and _is_of_int64(value)):
            return value, None
        (a, n), zero = value.args, fixed(0)
        number, divisor = self.form(a), self.form(n)
        if not self.is_at_least(divisor, fixed(1)):
            return value, None
        is_positive, is_below = self.is_at_least(number, zero), self._is_less(number, divisor)
        above, twice = self._plus(number, divisor), self._plus(divisor, divisor)
        if is_positive and is_below:
            return a, None
        if is_positive and twice is not None and self._is_less(number, twice):
            value = choice(compare(">=", a, n), sub(a, n), a)
        elif is_below and above is not None and self.is_at_least(above, zero):
            value = choice(compare("<", a, 0), add(a, n), a)
        return value, n

    # what is learned --------------------------------------------------------------------------------------------------

    def compute(self, local: Name, value: Expr) -> None:
        """Says which sum of locals, lengths and their quotients a local of this block is, until a state in it moves on."""
        one = only_sum(self.form(value))
        if one is not None and all(isinstance(part, Name | Length) or _is_quotient(part) for part, _ in one.terms):
            self._sums[local.name] = self._spelled_out(one)
            self._clock[0] += 1

    def mean(self, local: Name, condition: Expr) -> None:
        """Says which condition a local of this block holds."""
        self._meanings[local.name] = condition

    def _meaning(self, local: Name) -> Expr | None:
        return next((facts._meanings[local.name] for facts in self._outwards() if local.name in facts._meanings), None)

    def told(self, condition: Expr, holds: bool = True) -> Iterator[Expr]:
        """The comparisons that hold if a condition does, or does not."""
        meaning = self._meaning(condition) if isinstance(condition, Name) else None
        if meaning is not None:
            yield from self.told(meaning, holds)
        if not isinstance(condition, Apply) or condition.dtype != "bool":
            return
        parts_ = [part for part in condition.args if isinstance(part, Expr) and part.dtype == "bool"]
        if condition.template.level == NOT and len(parts_) == 1:
            yield from self.told(parts_[0], not holds)
        elif condition.template.level in (AND, OR) and len(parts_) == len(condition.args):
            for part in parts_ if (condition.template.level == AND) == holds else ():
                yield from self.told(part, holds)
        elif condition.template in _SIGNS:
            yield condition if holds else negated(condition)

    def hold(self, local: Name, value: Expr) -> None:
        """Says that a local of this block holds `value`."""
        self._held.setdefault(self.form(value), local)

    def define(self, local: Name, value: Expr, is_lasting: bool) -> None:
        """Says what a local of this block is; `is_lasting`: nothing of it changes as long as the local is seen."""
        form = self.form(value)
        if is_lasting:
            self.definitions[local.name] = form
        else:
            self.ranges[local.name] = self.lowest(form), self.highest(form)

    def count(self, counter: Name, stop: Index) -> None:
        """Says that the block is the body of a loop whose counter goes from 0 to `stop`, without that."""
        self.learn(compare(">", stop, 0))
        self.ranges[counter.name] = 0, self.highest(self.form(stop)) - 1
        self.learn(compare("<", counter, stop))

    def held(self, value: Expr) -> Index | None:
        """The local of this block that holds a value, or what was found to be equal to it."""
        form = self.form(value)
        if self._held_at != self._clock[0]:
            self._held, self._held_at = {self._settled(one): local for one, local in reversed(self._held.items())}, self._clock[0]
        return self._held.get(form)

    def forget(self, names: Set[str]) -> None:
        """Drops what this block knows of locals that get other values."""

        def is_left(*known: Form | Atom | Expr) -> bool:
            return not any(_reads(one, names) for one in known)

        self.definitions = {name: form for name, form in self.definitions.items() if is_left(form)}
        self.ranges = {name: ends for name, ends in self.ranges.items() if name not in names}
        self._held = {form: local for form, local in self._held.items() if is_left(form) and (isinstance(local, int) or is_left(local))}
        self._bounds = {part: ends for part, ends in self._bounds.items() if is_left(part)}
        self._not_negative = [one for one in self._not_negative if is_left(_of_sum(one))]
        self._equal = {part: form for part, form in self._equal.items() if is_left(part, form)}
        self._equal_forms = {form: other for form, other in self._equal_forms.items() if is_left(form, other)}
        self._sums = {name: one for name, one in self._sums.items() if is_left(_of_sum(one))}
        self._meanings = {name: condition for name, condition in self._meanings.items() if is_left(condition)}
        self._clock[0] += 1

    def by_definition(self) -> Facts:
        """The facts that follow from definitions alone: they are the same in every block in which a local is seen."""
        facts = Facts()
        facts.definitions = ChainMap(*(one.definitions for one in self._outwards()))
        facts.ranges = ChainMap(*(one.ranges for one in self._outwards()))
        return facts

    def learn(self, condition: Expr, depth: Callable[[Expr], int] = lambda part: 0) -> None:
        """Says that a condition holds. Of equal atoms that of the greatest depth is replaced."""
        for one in self.told(condition):
            if isinstance(one, Apply) and _is_of_int64(one):
                self._learn(one, depth)

    def learn_of(self, states: Set[str], condition: Expr) -> None:
        """The same of integers that a loop changes: what is known of one bounds the others. Equal ones stay two, as one may move on."""
        for one in self.told(condition):
            if isinstance(one, Apply) and _is_of_int64(one) and one.template != COMPARE_WITH["=="]:
                before = len(self._not_negative)
                self._learn(one, lambda part: 0)
                for sum_ in self._not_negative[before:]:
                    self._bound_each(sum_, states)

    def _learn(self, condition: Apply, depth: Callable[[Expr], int]) -> None:
        """The same of a comparison."""
        sign, (a, b) = _SIGNS.get(condition.template), map(self.form, condition.args)
        if sign == "==":
            self._learn_equal(a, b, depth)
            self._held.setdefault(self.form(condition.args[1]), condition.args[1])
        elif sign in (">", ">="):
            self._learn_at_least(a, b, int(sign == ">"))
        elif sign in ("<", "<="):
            self._learn_at_least(b, a, int(sign == "<"))

    def _learn_at_least(self, a: Form, b: Form, more: int = 0) -> None:
        """a - b - more is not negative: so is each sum of the one least that can be the greatest."""
        negative = self._times(b, -1)
        form = None if negative is None else self._plus(a, negative)
        left = [] if form is None else [least for least in form if min(self._bound(one, 1) for one in least) >= more]
        for one in left[0] if len(left) == 1 else ():
            self._learn_not_negative(one.plus(Sum(frozenset(), -more)))

    def _learn_not_negative(self, one: Sum) -> None:
        one = self._spelled_out(one)
        if self._is_not_negative(one):
            return
        if len(one.terms) > 1:
            self._not_negative = [*self._not_negative, one][-MOST_FACTS:]
            self._clock[0] += 1
        else:
            self._bound_each(one, None)

    def _bound_each(self, one: Sum, names: Set[str] | None) -> None:
        """Bounds the atoms of a sum that is not negative, if there are `names` those locals alone, by what the others are at most."""
        for part, factor in sorted(one.terms, key=repr):
            if names is not None and not (isinstance(part, Name) and part.name in names):
                continue
            least, greatest = self._range(part)
            others = self._bound(one, 1) - factor * (greatest if factor > 0 else least)  # factor * part + others >= 0, rounded inwards
            self._bounds[part] = (max(least, -(others // factor)), greatest) if factor > 0 else (least, min(greatest, others // -factor))
            self._clock[0] += 1
            self._learn_of_wrapping(part)

    def _learn_of_wrapping(self, one: Atom) -> None:
        """A sum or difference of a user's that is far enough from where it would come out had it left int64 has not left it."""
        if not isinstance(one, Operation) or not (one.template.wraps and one.template in _SUMS) or one in self._equal:
            return
        first, number = one.operands[0], number_of(one.operands[1])
        if number is None:
            return
        added = number * _SUMS[one.template]
        least, greatest = self._range(one)
        if (added >= 0 and least >= INT64[0] + added) or (added < 0 and greatest <= INT64[1] + added):
            total = self._plus(first, fixed(added))
            if total is not None:
                self._equal[one] = total
                self._clock[0] += 1
                self._learn_at_least(total, fixed(least))
                self._learn_at_least(fixed(greatest), total)

    def _learn_equal(self, a: Form, b: Form, depth: Callable[[Expr], int]) -> None:
        if a == b:
            return
        ways = list(_solved(a, b))
        if ways:
            part, form = max(ways, key=lambda way: depth(way[0]))
            self._equal[part] = form
            self._clock[0] += 1
            least, greatest = self._range(part)
            self._learn_at_least(form, fixed(least))
            self._learn_at_least(fixed(greatest), form)
            return
        self._learn_at_least(a, b)
        self._learn_at_least(b, a)
        a, b = self._settled(a), self._settled(b)
        if a != b:
            self._equal_forms[a] = b
            self._clock[0] += 1

    def _settled(self, form: Form) -> Form:
        """A form with equal atoms replaced, and without what is known now to be needless."""
        for _ in range(4):  # what is equal to what is equal
            replaced = self._replaced(form)
            if replaced is None or replaced == form:
                break
            form = replaced
        return self._pruned(form) or form

    def _replaced(self, form: Form) -> Form | None:
        if not any(facts._equal for facts in self._outwards()):
            return form
        result: Form | None = None
        for least in form:
            smallest: Form | None = None
            for one in least:
                total: Form | None = fixed(one.number)
                for part, factor in one.terms:
                    times = self._times(self._replaced_atom(part), factor)
                    total = None if total is None or times is None else self._plus(total, times)
                if total is None:
                    return None
                smallest = total if smallest is None else self._extreme(LEAST, smallest, total)
                if smallest is None:
                    return None
            assert smallest is not None
            result = smallest if result is None else self._extreme(GREATEST, result, smallest)
            if result is None:
                return None
        return result if result is not None and _n_parts(result) <= MOST_PARTS else None

    def _replaced_atom(self, one: Atom) -> Form:
        equal = next((facts._equal[one] for facts in self._outwards() if one in facts._equal), None)
        if equal is not None or not isinstance(one, Operation):
            return equal or atom(one)
        operands = [self._replaced(operand) for operand in one.operands]
        known = tuple(operand for operand in operands if operand is not None)
        if known == one.operands:  # applied anew it might be another form, of which nothing has been learned
            return atom(one)
        return (self._applied(one.template, known) if len(known) == len(operands) else None) or atom(one)


_ARITHMETIC = (CHOICE_BETWEEN, *_SUMS, *_PRODUCTS, LEAST, GREATEST, BROADCAST_DIM, *_QUOTIENTS)
_SIGNS = {template: sign for sign, template in COMPARE_WITH.items()}


def _size(expr: Expr) -> int:
    return sum(1 for _ in parts(expr))


def _is_of_int64(expr: Apply) -> bool:
    """Has an operation two operands, of int64? Others are no lengths, and wrap elsewhere."""
    return len(expr.args) == 2 and all(isinstance(part, int) or part.dtype == "int64" for part in expr.args)


def _is_of_lengths(form: Form) -> bool:
    """Is a number made of lengths of arrays alone? Sums and products of these do not leave int64: all that they count is somewhere."""
    return all(
        isinstance(part, Length) or (isinstance(part, Operation) and all(map(_is_of_lengths, part.operands)))
        for least in form
        for one in least
        for part, _ in one.terms
    )


def _solved(a: Form, b: Form) -> Iterator[tuple[Expr, Form]]:
    """The atoms that follow from two equal forms, each with its form."""
    lone = [(part, form) for part, form in ((atom_of(a), b), (atom_of(b), a)) if isinstance(part, Expr) and not _mentions(form, part)]
    yield from lone
    first, second = only_sum(a), only_sum(b)
    if lone or first is None or second is None:
        return
    difference = first.plus(second, -1)
    for part, factor in sorted(difference.terms, key=repr):
        rest = _of_sum(Sum(frozenset([(part, 1)]), 0).plus(difference, -factor))
        if isinstance(part, Expr) and abs(factor) == 1 and not _mentions(rest, part):
            yield part, rest


def _is_quotient(one: Atom) -> bool:
    return isinstance(one, Operation) and one.template in _QUOTIENTS


def _without_quotient(one: Sum) -> Sum | None:
    """A multiple of a sum in which a quotient is gone: if it is not negative, neither is the sum. None where no quotient is.

    With q = f // d, d * q is at least f - (d - 1) and at most f, and a whole number is not negative if d times it is above -d.
    """
    for part, factor in sorted(((part, factor) for part, factor in one.terms if _is_quotient(part)), key=repr):
        if isinstance(part, Operation) and abs(factor) == 1:
            dividend, divisor = only_sum(part.operands[0]), number_of(part.operands[1])
            if dividend is not None and divisor is not None and divisor > 0:
                rest = NOTHING.plus(one.plus(Sum(frozenset([(part, 1)]), 0), -factor), divisor)
                return rest.plus(dividend, factor).plus(Sum(frozenset(), divisor - 1 if factor < 0 else 0))
    return None


def _reads(known: Form | Atom | Expr, names: Set[str]) -> bool:
    """Does what is known read one of these locals?"""
    if isinstance(known, frozenset):
        return any(_reads(part, names) for least in known for one in least for part, _ in one.terms)
    if isinstance(known, Operation):
        return any(_reads(operand, names) for operand in known.operands)
    return any(name in names for name, _ in names_in(known))


def _mentions(form: Form, one: Expr) -> bool:
    parts = (part for least in form for each in least for part, _ in each.terms)
    return any(part == one or (isinstance(part, Operation) and any(_mentions(operand, one) for operand in part.operands)) for part in parts)
