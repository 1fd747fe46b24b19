"""What a loop has found out of lengths says nothing where its counters and locals mean something else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.loops import If, Index, Length, Load, Name, add, walk
from numbascan.ir.names import Names
from numbascan.plan.builder import Builder

X, Y = Length("int64", "x", 0), Length("int64", "y", 0)

# what the builder knows -----------------------------------------------------------------------------------------------


def n_checks(builder: Builder) -> int:
    return sum(isinstance(stmt, If) for stmt in walk(builder.root.stmts))


def test_the_counter_of_the_next_loop_is_another_number() -> None:
    builder = Builder(Names())
    with builder.loop("t", X) as t:
        builder.same(add(t, 1), Y, "ValueError", "no")
        assert builder.representative(add(t, 1)) == Y
    with builder.loop("t", X) as again:
        assert again == t
        assert builder.representative(add(again, 1)) != Y
        builder.same(add(again, 1), Y, "ValueError", "no")
    assert n_checks(builder) == 2


def test_what_a_branch_has_checked_ends_with_it() -> None:
    builder = Builder(Names())
    with builder.branch() as stmts:
        builder.same(X, Y, "ValueError", "no")
        builder.same(Y, X, "ValueError", "no")
        assert builder.representative(X) == builder.representative(Y)
    assert builder.representative(X) != builder.representative(Y)
    assert len(stmts) == 1


def test_lengths_that_are_known_before_a_loop_are_equal_behind_it() -> None:
    builder = Builder(Names())
    with builder.loop("t", X):
        builder.same(X, Y, "ValueError", "no")
    builder.same(X, Y, "ValueError", "no")
    assert n_checks(builder) == 1


def test_elements_and_locals_that_move_are_equal_once() -> None:
    builder = Builder(Names())
    steps = builder.variable("steps", X, "int64")
    numbers: list[Index] = [steps, Load("int64", "n", (0,)), add(steps, 1)]
    for number in numbers:
        builder.same(number, X, "ValueError", "no")
        assert builder.representative(number) == number
    builder.stay([steps.name])
    builder.same(steps, X, "ValueError", "no")
    assert builder.representative(steps) == builder.representative(X)


def test_a_settled_number_stays_when_what_it_was_read_from_moves() -> None:
    builder = Builder(Names())
    steps = builder.variable("steps", X, "int64")
    assert builder.settled("length", steps) != steps
    length = builder.settled("length", add(steps, 1))
    assert (isinstance(length, Name), builder.settled("length", length), builder.settled("length", X)) == (True, length, X)


# programs -------------------------------------------------------------------------------------------------------------


def test_slices_of_a_later_loop_over_the_same_bounds() -> None:
    def f(a: Any, low: Any, high: Any, y: Any, k: Any) -> Any:
        bounds: dict[str, Any] = {"sequences": [low, high], "return_updates": False}
        first = ns.scan(lambda i, j, a, y: (a[i:j] + y).sum(), non_sequences=[a, y], n_steps=k, **bounds)
        return first, ns.scan(lambda i, j, a: (a[i:j] * 1.0).sum(), non_sequences=[a], **bounds)

    low, high = np.array([1, 2, 3, 0, 0]), np.array([4, 5, 6, 10, 5])
    first, second = ns.jit(f)(np.arange(10.0), low, high, np.zeros(3), 3)
    np.testing.assert_array_equal(first, [6, 9, 12])
    np.testing.assert_array_equal(second, [6, 9, 12, 45, 10])


def lengths_of_rows(n: Any, a: Any) -> Any:
    return ns.scan(lambda i, a: a[:i] * 2.0, sequences=[n], non_sequences=[a], return_updates=False).shape[1]


def test_how_long_rows_are_is_asked_of_all_of_them() -> None:
    a = np.arange(10.0)
    lengths = ns.jit(lengths_of_rows)
    assert lengths(np.array([3, 3, 3]), a) == 3
    with pytest.raises(ValueError, match="must have one shape"):
        lengths(np.array([3, 3, 4]), a)
    lengths(np.array([], dtype=int), a)  # not what happens to lie behind the sequence


Part = Callable[..., Any]  # of what a program is given; the results of one loop


def loop(step: Callable[..., Any], low: Any, high: Any, others: list[Any], **options: Any) -> Any:
    return ns.scan(step, sequences=[low, high], non_sequences=others, return_updates=False, **options)


def checked(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    return loop(lambda i, j, a, y: (a[i:j] + y).sum(), low, high, [a, y], n_steps=k)


def free(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    return loop(lambda i, j, a, b: (a[i:j] * 2.0 + b[i:j]).sum(), low, high, [a, b])


def chosen(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    def step(i: Any, j: Any, a: Any, y: Any) -> Any:
        return nt.ifelse(nt.eq(j - i, 3), lambda: (a[i:j] * y).sum(), lambda: (a[i:j] - 1.0).sum()) + (a[i:j] * a[i:j]).sum()

    return loop(step, low, high, [a, y])


def ended(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    return loop(lambda i, j, t, a, y, k: ((t + 1, (a[i:j] * y).sum()), ns.until(t + 1 >= k)), low, high, [a, y, k], outputs_info=[0, None])


def nested(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    def step(i: Any, j: Any, a: Any, b: Any) -> Any:
        inner = ns.scan(lambda x, s, b: s * 0.5 + x + b[i:j].sum(), a[i:j], 0.0, [b], return_updates=False)
        return (inner * a[i:j]).sum() + (b[i:j] * 1.0).sum()

    return loop(step, low, high, [a, b])


def nested_checked(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    def step(i: Any, j: Any, a: Any, y: Any) -> Any:
        return (ns.scan(lambda x, w: x * w, [a[i:j], y], return_updates=False) + y).sum()

    return loop(step, low, high, [a, y], n_steps=k)


def moved(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    def step(n: Any, a: Any, b: Any, y: Any) -> Any:
        return n + 1, (a[n : n + 3] + y).sum() + (b[:n] * a[:n]).sum()

    return ns.scan(step, outputs_info=[0, None], non_sequences=[a, b, y], n_steps=k, return_updates=False)


def counted(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    def step(i: Any, j: Any, a: Any, b: Any) -> Any:
        n = (a[i:j] > 3.0).sum()
        return (a[:n] * b[:n]).sum() + ns.scan(lambda s: s * 0.5 + 1.0, outputs_info=1.0, n_steps=n, return_updates=False).sum()

    return loop(step, low, high, [a, b])


def of_rows(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
    """Bounds are elements of a state that is a row in memory."""

    def step(i: Any, j: Any, p: Any, a: Any, b: Any) -> Any:
        return p + i, (a[p[0] : p[1]] * b[p[0] : p[1]]).sum() + (a[: p[2]] * 1.0).sum()

    first = np.array([0, 2, 3, *range(9)])
    return loop(step, low, high, [a, b], outputs_info=[first, None])[1]


PARTS: list[Part] = [checked, free, chosen, ended, nested, nested_checked, moved, counted, of_rows]
A, B, FIT = np.arange(10.0), np.cos(np.arange(10.0)), np.array([0.5, -1.0, 2.0])
LOW, HIGH = np.array([1, 2, 3, 0, 0, 4]), np.array([4, 5, 6, 10, 5, 4])


def program(seed: int) -> Callable[..., Any]:
    """Two loops in a row, or a step that holds two of them."""
    rng = random.Random(seed)
    parts = [rng.choice(PARTS), *rng.sample(PARTS, 2)][: rng.choice([2, 3])]

    def f(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
        return [part(a, b, y, low, high, k) for part in parts]

    def inside(a: Any, b: Any, y: Any, low: Any, high: Any, k: Any) -> Any:
        def step(shift: Any, s: Any, *given: Any) -> Any:
            a, *others = given
            return s + sum(nt.sum(nt.as_tensor_variable(x)) for x in leaves(f(a + shift, *others)))

        return ns.scan(step, np.arange(2.0), 0.0, [a, b, y, low, high, k], return_updates=False)

    return inside if rng.random() < 0.3 else f


def leaves(results: Any) -> list[Any]:
    return [leaf for part in results for leaf in leaves(part)] if isinstance(results, (list, tuple)) else [results]


@pytest.mark.parametrize("seed", wide(range(16), first=4))
def test_loops_over_slices_do_not_speak_of_each_other(seed: int) -> None:
    f = program(seed)
    given = (A, B, FIT, LOW, HIGH, 3)
    expected = leaves(ns.jit(f, mode="python")(*given))
    for one, other in zip(leaves(ns.jit(f)(*given)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    lanes = ns.vmap(f, in_axes=(None, None, None, 0, 0, None))(A, B, FIT, np.stack([LOW, LOW]), np.stack([HIGH, HIGH]), 3)
    for one, other in zip(leaves(lanes), expected, strict=True):
        np.testing.assert_allclose(one, np.stack([other, other]), rtol=1e-13)


@pytest.mark.parametrize("part", PARTS)
def test_slices_that_do_not_fit_are_refused_where_plain_numpy_refuses(part: Part) -> None:
    """Behind another loop over the same bounds, which they do fit for a while."""

    def f(*given: Any) -> Any:
        return checked(*given), part(*given[:-1], 4)

    outcomes = []
    for mode in ("python", None):
        try:
            outcomes.append(leaves(ns.jit(f, mode=mode)(A, B, FIT, LOW, HIGH, 3)))
        except (ValueError, IndexError) as error:
            outcomes.append(type(error).__name__)
    plain, compiled = outcomes
    assert isinstance(plain, str) == isinstance(compiled, str)
    if not isinstance(plain, str):
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
