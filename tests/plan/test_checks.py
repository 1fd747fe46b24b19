"""Checks at run time: none of what cannot be otherwise, none twice, all that a user's number may break."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.ir.loops import Expr, If, Index, Length, Literal, Load, Name, add, compare, greatest, least, sub, walk
from numbascan.ir.names import Names
from numbascan.plan.builder import Builder

X, Y = Length("int64", "x", 0), Length("int64", "y", 0)
N = Name("int64", "n")


def n_checks(builder: Builder) -> int:
    return sum(isinstance(stmt, If) for stmt in walk(builder.root.stmts))


def checks_of(*conditions: Expr) -> int:
    builder = Builder(Names())
    for condition in conditions:
        builder.check(condition, "ValueError", "no")
    return n_checks(builder)


@pytest.mark.parametrize("count", [X, add(X, Y), add(X, 3), least(X, Y), greatest(X, 4), 0])
def test_a_length_is_never_negative(count: Index) -> None:
    assert checks_of(compare(">=", count, 0)) == 0


@pytest.mark.parametrize("number", [N, sub(X, 1), sub(X, Y), add(X, N), least(X, N), -1])
def test_other_numbers_may_be(number: Index) -> None:
    assert checks_of(compare(">=", number, 0)) == 1


def test_a_length_that_has_a_name_is_still_one() -> None:
    builder = Builder(Names())
    builder.check(compare(">=", builder.let("n_steps", X), 0), "ValueError", "no")
    builder.check(compare(">=", builder.let("rest", sub(X, 1)), 0), "ValueError", "no")
    assert n_checks(builder) == 1


def test_a_condition_is_checked_once() -> None:
    assert checks_of(compare("==", X, Y), compare("==", X, Y), compare("<=", X, 3)) == 2
    assert checks_of(compare("==", X, Y), compare("<=", X, Y), compare(">", add(Y, 1), X)) == 1  # they follow


def test_a_check_in_a_branch_says_nothing_of_what_follows() -> None:
    builder = Builder(Names())
    with builder.branch() as stmts:
        builder.check(compare("==", X, Y), "ValueError", "no")
    builder.emit(If(Literal("bool", True), stmts))
    builder.check(compare("==", X, Y), "ValueError", "no")
    assert n_checks(builder) == 3


def test_a_check_before_a_loop_holds_inside_it() -> None:
    builder = Builder(Names())
    builder.check(compare("==", X, Y), "ValueError", "no")
    with builder.loop("t", X), builder.branch() as stmts:
        builder.check(compare("==", X, Y), "ValueError", "no")
    assert (n_checks(builder), stmts) == (1, [])


def test_what_may_change_is_checked_again() -> None:
    builder = Builder(Names())
    steps = builder.variable("steps", X, "int64")
    for element in (steps, Load("int64", "x", (0,))):
        for _ in range(2):
            builder.check(compare(">=", element, 0), "ValueError", "no")
            builder.assign(steps, N)
    assert n_checks(builder) == 4


def test_a_negative_number_of_the_user_is_still_refused() -> None:
    def f(x: Any, n: Any) -> Any:
        return ns.scan(lambda x: x * 2, outputs_info=x, n_steps=n, return_updates=False), x

    compiled = ns.jit(f)
    assert compiled(np.ones(30), 2)[0].shape == (2, 30)
    with pytest.raises(ValueError, match="n_steps is -1"):
        compiled(np.ones(30), -1)


def test_the_gradient_of_a_loop_over_a_sequence_checks_no_length() -> None:
    def cost(w: Any, x: Any) -> Any:
        return ns.scan(lambda x, s, w: s * w + x, x, outputs_info=0.5, non_sequences=w, return_updates=False)[-1]

    gradient = ns.grad(cost)
    gradient(0.5, np.ones(30))
    assert "negative dimensions" not in gradient.source()
