"""What is said of lengths holds for Python's integers, whatever they are: 0, 1, and numbers that nearly leave int64."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.emit.text import expression
from numbascan.ir.lengths import INT64, LONGEST_ARRAY, MOST_PARTS, Facts, number_of, written
from numbascan.ir.loops import (
    BROADCAST_DIM,
    DIFFERENCE,
    FLOOR_DIV,
    GREATEST,
    IN_ORDER,
    INDEX_DIFFERENCE,
    INDEX_PRODUCT,
    INDEX_SUM,
    LEAST,
    MOD,
    PRODUCT,
    Apply,
    Expr,
    Index,
    Length,
    Literal,
    Name,
    add,
    both,
    choice,
    compare,
    either,
    floor_div,
    greatest,
    least,
    mul,
    negated,
    sub,
)

X, Y = Length("int64", "x", 0), Length("int64", "y", 0)
P, Q = Name("int64", "p"), Name("int64", "q")
Values = dict[str, int]

# forms ------------------------------------------------------------------------------------------------------------------


class Left(Exception):
    """Index arithmetic has left int64, which it is never asked to."""


def wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def in_range(number: int) -> int:
    if not INT64[0] <= number <= INT64[1]:
        raise Left
    return number


def python_of(index: Index) -> str:
    """What the machine does, of Python's integers."""
    if isinstance(index, int | Literal):
        return f"({index.value if isinstance(index, Literal) else index})"
    if not isinstance(index, Apply):
        return f"values[{expression(index)!r}]"
    return f"{'wrapped' if index.template.wraps else 'in_range'}({index.template.text.format(*map(python_of, index.args))})"


@cache
def compiled(index: Index) -> Callable[[Values], int]:
    return eval(f"lambda values: {python_of(index)}", {"wrapped": wrapped, "in_range": in_range})  # type: ignore[no-any-return]


def value(index: Index, values: Values) -> int:
    return int(compiled(index)(values))


class Pool:
    """Random lengths of four atoms, of locals that are defined by others, and what is known of them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.is_large = seed % 4 == 0
        lengths, numbers = ([0, 1, 2, 4], [-2, 0, 1, 3])
        if self.is_large:
            lengths, numbers = [0, 1, 2, LONGEST_ARRAY], [*INT64, -1, 0, 1]
        self.atoms: list[Expr] = [X, Y, P, Q]
        names = [*map(expression, self.atoms)]
        self.assignments: list[Values] = [dict(zip(names, one, strict=True)) for one in product(lengths, lengths, numbers, numbers)]
        self.facts = [Facts()]
        self.facts += [Facts(self.facts[0])]
        self.exprs: list[Index] = [*self.atoms, 0, 1, 2]

    def sample(self) -> Index:
        return self.rng.choice(self.exprs if self.rng.random() < 0.7 else [*self.atoms, 0, 1, 2, 3])

    def condition(self) -> Expr:
        condition = compare(self.rng.choice([*COMPARE_SIGNS]), self.sample(), self.sample())
        if self.rng.random() < 0.2:
            return self.rng.choice([both, either])(condition, self.condition())
        return negated(condition) if self.rng.random() < 0.1 else condition

    def grow(self) -> None:
        a, b = self.sample(), self.sample()
        templates = (IN_ORDER, DIFFERENCE, BROADCAST_DIM, LEAST, GREATEST, INDEX_SUM, INDEX_DIFFERENCE)
        makers: list[Callable[[], Index]] = [
            lambda: add(a, self.rng.randint(-2, 2)),
            lambda: greatest(sub(a, self.rng.randint(0, 2)), self.rng.randint(0, 1)),
            lambda: least(a, b),
            lambda: greatest(a, b),
            lambda: sub(a, b),
            lambda: Apply("int64", self.rng.choice(templates), (a, b)),
            lambda: Apply("int64", FLOOR_DIV, (a, self.rng.randint(1, 3))),
            lambda: Apply("int64", MOD, (a, self.rng.randint(1, 3))),
            lambda: mul(a, self.rng.randint(-2, 3)),
            lambda: choice(self.condition(), a, b),
        ]
        if not self.is_large:  # lengths whose product leaves int64 count what is nowhere
            makers += [lambda: Apply("int64", self.rng.choice((PRODUCT, INDEX_PRODUCT)), (a, b)), lambda: floor_div(a, b) if b else 0]
        made = self.rng.choice(makers)()
        if len(expression(made)) < 120 and self.values(made):
            self.exprs.append(made)

    def values(self, index: Index) -> list[int]:
        """By assignment; those for which it leaves int64, or divides by 0, do not occur."""
        results, left = [], []
        for values in self.assignments:
            try:
                results.append(value(index, values))
                left.append(values)
            except (Left, ZeroDivisionError):
                pass
        if not left:
            return []
        self.assignments = left
        return results

    def define(self) -> None:
        """A local that is one of the expressions, known in either block."""
        defined = self.rng.choice(self.exprs)
        if isinstance(defined, Apply):
            local = Name("int64", f"local_{len(self.exprs)}")
            is_lasting = self.rng.random() < 0.8
            self.rng.choice(self.facts).define(local, defined, is_lasting)
            for values in self.assignments:
                values[local.name] = value(defined, values)
            self.exprs.append(local)

    def learn(self) -> None:
        condition = self.condition()
        if isinstance(condition, Literal) or not self.values(condition):
            return
        left = [values for values in self.assignments if value(condition, values)]
        if len(left) > 3:
            self.assignments = left
            self.rng.choice(self.facts).learn(condition, lambda part: len(expression(part)) % 3)


COMPARE_SIGNS = ("<", "<=", ">", ">=", "==", "!=")


@pytest.mark.parametrize("seed", range(60))
def test_what_has_one_form_is_one_number(seed: int) -> None:
    pool = Pool(seed)
    for _ in range(40):
        pool.rng.choice((pool.grow, pool.grow, pool.grow, pool.define, pool.learn))()
    facts = pool.facts[1]
    for expr in pool.exprs:
        pool.values(expr)
    numbers = {expr: tuple(value(expr, values) for values in pool.assignments) for expr in dict.fromkeys(pool.exprs)}
    by_form: dict[Any, Any] = {}
    for expr, values in numbers.items():
        form = facts.form(expr)
        assert by_form.setdefault(form, values) == values, expression(expr)
        assert min(values) >= facts.lowest(form)
        assert max(values) <= facts.highest(form)
        assert number_of(form) is None or set(values) == {number_of(form)}
        text = written(form)
        assert text is None or values == tuple(value(text, one) for one in pool.assignments), expression(expr)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_decided_of_a_condition_holds(seed: int) -> None:
    pool = Pool(seed)
    for _ in range(30):
        pool.rng.choice((pool.grow, pool.grow, pool.define, pool.learn))()
    facts = pool.facts[1]
    conditions = [pool.condition() for _ in range(60)]
    for condition in conditions:
        pool.values(condition)
    for condition in conditions:
        expected = [bool(value(condition, values)) for values in pool.assignments]
        answer = facts.decided(condition)
        assert answer is None or set(expected) == {answer}, expression(condition)
        assert expected == [bool(value(facts.simpler(condition), values)) for values in pool.assignments], expression(condition)


def n_decided(seed: int) -> int:
    pool = Pool(seed)
    for _ in range(30):
        pool.rng.choice((pool.grow, pool.grow, pool.define, pool.learn))()
    return sum(pool.facts[1].decided(pool.condition()) is not None for _ in range(60))


def test_the_random_conditions_are_often_decided() -> None:
    """Else the test in front of this one tested nothing."""
    assert sum(n_decided(seed) for seed in range(20)) > 20 * 60 / 4


def test_no_form_grows_without_end() -> None:
    facts, length = Facts(), Name("int64", "length_0")
    for k in range(60):
        facts.define(Name("int64", f"length_{k + 1}"), greatest(least(add(length, X), sub(length, k)), sub(Y, k)), True)
        length = Name("int64", f"length_{k + 1}")
        assert sum(len(one.terms) + 1 for choice_ in facts.form(length) for one in choice_) <= MOST_PARTS


def test_a_length_is_seen_through_names_and_facts() -> None:
    facts, steps = Facts(), Name("int64", "steps")
    facts.define(steps, greatest(sub(X, 1), 0), True)
    assert facts.form(add(steps, 1)) == facts.form(greatest(X, 1)) != facts.form(X)
    inside = Facts(facts)
    inside.learn(compare(">=", X, 1))
    assert inside.form(add(steps, 1)) == inside.form(X)
    assert facts.form(add(steps, 1)) != facts.form(X)


def test_what_broadcasts_is_no_length_of_one_for_sure() -> None:
    """A length that may be 1 becomes the other one then."""
    facts, common = Facts(), Apply("int64", BROADCAST_DIM, (X, Y))
    assert facts.form(common) not in (facts.form(X), facts.form(Y))
    facts.learn(compare(">", X, 1))
    assert facts.form(common) == facts.form(X)


def test_a_likelihood_of_whole_arrays_asks_for_no_lengths() -> None:
    def likelihood(theta: Any, r: Any) -> Any:
        h = ns.scan(lambda x, h: theta[0] + theta[1] * x**2 + theta[2] * h, r[:-1], np.var(r), return_updates=False)
        return np.sum(r[1:] ** 2 / h + np.log(h))

    theta, r = np.array([0.05, 0.1, 0.85]), np.random.default_rng(1).normal(size=20)
    f = ns.jit(ns.value_and_grad(likelihood))
    h = [np.var(r)]
    for x in r[:-1]:
        h.append(theta[0] + theta[1] * x**2 + theta[2] * h[-1])
    np.testing.assert_allclose(f(theta, r)[0], np.sum(r[1:] ** 2 / h[1:] + np.log(h[1:])), rtol=1e-13)
    assert "ERROR" not in f.source()
