"""What a place is checked for, and what is read there, is so where the element is asked for, and nowhere else.

Positions that come from an array are checked as they are read. Around such elements, in a pad, or in the rows that a gradient leaves at 0,
there are none, and what stands there in memory is no position. Python runs these plans, as they are built and as each pass leaves them, in
memory that is watched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.functions import flat, traced
from plan_checks import WAYS, check_plans

import numbascan as ns
import numbascan.tensor as nt
from numbascan import lax
from numbascan.compile import lean_graph
from numbascan.front.variable import Variable
from numbascan.ir.check import IllegalGraphError
from numbascan.ir.loops import Expr, Fail, If, Length, Let, Literal, Load, Name, Stmt, Store, both, choice, compare, sub
from numbascan.ir.names import Names
from numbascan.ops.card import CARDS, Card, apply
from numbascan.ops.lowering import Fold, Generate, Passes, View
from numbascan.oracle.interpret import interpret
from numbascan.plan.builder import Builder

W, M = np.sin(np.arange(11.0)) * 3, np.cos(np.arange(33.0)).reshape(11, 3) * 2
I, J, K = np.array([0, -3, 5, 10]), np.array([[2, 0], [1, -2], [3, 3]], "int32"), np.array([3, 1, 0, 2], "uint8")

Program = Callable[..., Any]


@ns.as_written  # a converted function would be told that a traced array is one of NumPy's
def is_traced(*values: Any) -> bool:
    return not all(isinstance(value, np.ndarray) for value in values)


def replaced(x: Any, region: Any, values: Any) -> Any:
    """x with other values in a region, of arrays as of variables."""
    if is_traced(x, values):
        return nt.set_subtensor(nt.as_tensor(x)[region], values)
    x = x.copy()
    x[region] = values
    return x


def increased(x: Any, region: Any, values: Any) -> Any:
    """x with values added in a region."""
    if is_traced(x, values):
        return nt.inc_subtensor(nt.as_tensor(x)[region], values)
    x = x.copy()
    np.add.at(x, region, values)
    return x


def rows_of(x: Any) -> Any:
    """A loop that reads rows one by one: each is computed as it is read."""
    if not is_traced(x):
        return np.cumsum(x, 0)
    return ns.scan(lambda row, total: total + row, x, [nt.zeros_like(x[0])], return_updates=False)


def path(x: Any, n: int = 90) -> Any:
    """The rows of a loop that starts at x."""
    if is_traced(x):
        return ns.scan(lambda row: 0.9 * row + 0.1 * np.sin(row), outputs_info=[x], n_steps=n, return_updates=False)
    rows = []
    for _ in range(n):
        rows.append(x := 0.9 * x + 0.1 * np.sin(x))
    return np.stack(rows)


def either(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    if is_traced(condition) and not isinstance(condition, np.bool_):
        return lax.cond(condition, yes, no)
    return yes() if condition else no()


def slope(cost: Program) -> Program:
    """The gradient of a cost with respect to its first argument; of arrays by a step along i, which no rounding spoils."""

    def gradient(x: Any, *others: Any) -> Any:
        if is_traced(x, *others):
            return nt.grad(cost(x, *others), x)
        steps = 1e-30j * np.eye(x.size).reshape(x.size, *x.shape)
        return np.array([np.imag(cost(x + step, *others)) / 1e-30 for step in steps]).reshape(x.shape)

    return gradient


PROGRAMS: dict[str, tuple[Program, tuple[Any, ...]]] = {
    "a pad": (lambda w, i: np.pad(w[i], 5) * 1.5, (W, I)),
    "a pad on one side": (lambda w, i: [np.pad(w[i], (0, 7)), np.pad(w[i], (7, 0), constant_values=2.5)], (W, I)),
    "a pad of several axes": (lambda m, i: np.pad(m[i], ((2, 3), (1, 0))) * 1.5, (M, I)),
    "a pad of positions of several axes": (lambda w, j: np.pad(w[j], ((2, 3), (1, 4)), constant_values=-1), (W, J)),
    "a pad of a pad": (lambda w, i: np.pad(np.pad(w[i], 3, constant_values=2)[1:], (0, 4)) * 2, (W, I)),
    "a pad of a gather of a gather": (lambda w, i, k: np.pad(w[i[k]], 3) + 1, (W, I, K)),
    "a gather of a pad of a gather": (lambda w, i, j: np.pad(w[i], 4)[j], (W, I, J)),
    "a pad of unsigned positions": (lambda w, k: np.pad(w[k], 3) + 1, (W, K)),
    "a pad of the edge": (lambda w, i: [np.pad(w[i], 3, mode=mode) for mode in ("edge", "wrap", "reflect", "symmetric")], (W, I)),
    "a reduction of a pad": (lambda w, i: np.sum(np.pad(w[i], (40, 0))), (W, I)),
    "slices of a pad": (lambda w, i: np.pad(w[i], 2)[2:] - 0.5 * np.pad(w[i], 2)[:-2], (W, I)),
    "a row that the run names in a pad": (lambda m, i, k: np.pad(m[:, k[0]][i], 5) * 1.0, (M, I, np.array([2]))),
    "a slice that the run bounds in a pad": (lambda w, i, k: np.pad(w[i][k[0] :], 5) * 1.0, (W, I, np.array([1]))),
    "take in a pad": (lambda w, i: np.pad(np.take(w, i), 3) + np.pad(np.take(w, i + 4, mode="wrap"), 3), (W, I)),
    "take along an axis in a pad": (lambda m: np.pad(np.take_along_axis(m, np.argsort(m, 1), 1), ((0, 0), (2, 2))) + 1, (M,)),
    "choose in a pad": (lambda w, k: np.pad(np.choose(k, [w[:4], w[1:5], w[2:6], 2 * w[:4]]), 3) + 1, (W, K)),
    "concatenated with zeros": (lambda w, i: np.concatenate([np.zeros(7), w[i], w[i][::-1]]) * 2, (W, I)),
    "stacked and rolled": (lambda w, i: np.roll(np.stack([w[i], 2 * w[i]]), 3, 1) + np.roll(np.pad(w[i], 1), -2)[1:-1], (W, I)),
    "where": (lambda w, i: np.pad(np.where(w[i] > 0, w[i], -w[i]), 3) + np.where(np.pad(w[i] > 0, 3), 1.0, 2.0), (W, I)),
    "a part replaced": (lambda w, i: replaced(np.zeros(12), np.s_[5:9], w[i]) * 2, (W, I)),
    "a part increased": (lambda w, i: increased(np.ones(12), np.s_[5:9], w[i]) * 2, (W, I)),
    "rows replaced": (lambda m, i: rows_of(replaced(np.zeros((300, 3)) + 0 * m[0], np.s_[100:104], m[i])), (M, I)),
    "rows increased": (lambda m, i: rows_of(increased(np.zeros((300, 3)) + m[0], np.s_[100:104], m[i])), (M, I)),
    "rows increased twice": (
        lambda m, i: rows_of(increased(increased(np.zeros((99, 3)) + m[0], np.s_[4:8], m[i]), np.s_[6:14:2], 2 * m[i] * m[i])),
        (M, I),
    ),
    "rows replaced in part": (lambda m, i: rows_of(replaced(np.zeros((90, 3)) + 0 * m[0], np.s_[10:14, 1:], m[i][:, 1:])), (M, I)),
    "rows of numbers": (lambda w, i: rows_of(increased(np.zeros(90) + 0 * w[0], np.s_[70:74], w[i] ** 2 * w[i])), (W, I)),
    "rows in a pad": (lambda m, i: rows_of(np.pad(m[i], ((4, 2), (0, 0)))), (M, I)),
    "rows that are gathered": (
        lambda m, i: rows_of(np.concatenate([m[:4], m[i]])) + rows_of(m[i][np.array([0, 1, 1, 2, 3, 0, 2, 3])]),
        (M, I),
    ),
    "part of a loop's rows times weights": (slope(lambda x, w, i: np.sum(path(x)[7:11, 0] * w[i])), (M[0], W, I)),
    "rows of a loop times rows of weights": (slope(lambda x, m, i: np.sum(path(x)[30:34] * m[i])), (M[0], M, I)),
    "two parts of a loop's rows": (
        slope(lambda x, m, i, k: np.sum(path(x)[3:7] * m[i]) + np.sum((path(x)[5:9] * m[k]) ** 2)),
        (M[0], M, I, K),
    ),
    "every third row of a loop": (slope(lambda x, m, i: np.sum(path(x)[2:14:3] ** 2 * m[i])), (M[0], M, I)),
    "gathered rows of a loop": (slope(lambda x, m, i, k: np.sum(path(x)[k + 6] ** 2 * m[i])), (M[0], M, I, K)),
    "weights of a part, in the loop": (slope(lambda m, i: np.sum(rows_of(np.pad(m[i], ((9, 1), (0, 0)))) ** 2)), (M, I)),
    "weights of a part that is replaced": (
        slope(lambda m, i: np.sum(rows_of(increased(np.zeros((90, 3)) + 0 * m[0], np.s_[50:54], m[i])) ** 2)),
        (M, I),
    ),
    "a gradient of a pad": (slope(lambda w, i: np.sum(np.pad(w[i] ** 2, 4)[2:] * np.pad(w[i], 3))), (W, I)),
    "one of two branches": (lambda w, i: either(w[0] > 5, lambda: np.pad(w[i + 40], 3), lambda: np.pad(w[i], 3) * 2), (W, I)),
}


@pytest.fixture(scope="module")
def faults() -> dict[str, str]:
    """Of each program what is wrong, in a process in which Python runs generated code."""
    tests = Path(__file__).parents[1]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    ran = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, str] = json.loads(ran.stdout)
    return found


CARDS_BY_ELEMENT = [
    name for name, card in sorted(CARDS.items()) if card.samples is not None and isinstance(card.lower, View | Generate | Passes | Fold)
]
"""Cards that ask for elements of their operands one by one. (An elementwise one asks for all.)"""


def on_gathers_of(name: str) -> str:
    return f"gathered operands of {name}"


@pytest.mark.parametrize("name", [*PROGRAMS, *map(on_gathers_of, CARDS_BY_ELEMENT)])
def test_an_element_is_checked_where_it_is_asked_for(name: str, faults: dict[str, str]) -> None:
    assert faults[name] == ""


def test_pads_of_gathered_elements_in_machine_code() -> None:
    for program in (lambda w, i: np.sum(np.pad(w[i], (1_000_000, 0))), lambda w, i: np.pad(w[i], 5) * 1.0):
        compiled = ns.jit(program)
        np.testing.assert_allclose(compiled(W, I), program(W, I), rtol=1e-13)
        with pytest.raises(IndexError, match=r"index 11 is out of bounds for axis 0 with size 11"):
            compiled(W, np.array([0, 11, 3, 1]))


def test_gradients_of_part_of_a_loop_in_machine_code() -> None:
    program, arrays = PROGRAMS["part of a loop's rows times weights"]
    compiled = ns.jit(program)
    np.testing.assert_allclose(compiled(*arrays), program(*arrays), rtol=1e-12)


# what the builder refuses ---------------------------------------------------------------------------------------------

T, LENGTH = Name("int64", "t"), Length("int64", "x", 0)
INSIDE = compare(">=", T, 5)
X = Load("int64", "x", (sub(T, 5),))


def side_of(make: Callable[[Builder], Any]) -> list[Stmt]:
    """The statements of an element one side of which is what `make` makes."""
    builder = Builder(Names())

    def side() -> Expr:
        make(builder)
        return X

    builder.chosen(INSIDE, side, lambda: Literal("int64", 0))
    return builder.root.stmts


def test_checks_and_locals_of_a_side_are_for_that_side_alone() -> None:
    (check,) = side_of(lambda builder: builder.check(compare("<", X, LENGTH), "IndexError", "no"))
    assert isinstance(check, If)
    assert check.condition == both(INSIDE, compare(">=", X, LENGTH))
    (local,) = side_of(lambda builder: builder.let("twice", X))
    assert isinstance(local, Let)
    assert local.value == choice(INSIDE, X, Literal("int64", 0))


def test_what_was_checked_for_a_side_holds_on_that_side_alone() -> None:
    builder = Builder(Names())

    def check(condition: Expr) -> Callable[[], Expr]:
        def side() -> Expr:
            builder.check(condition, "IndexError", "no")
            return X

        return side

    small, narrow = compare("<", T, LENGTH), compare("<", T, 3)
    builder.chosen(INSIDE, check(small), check(narrow))
    builder.chosen(INSIDE, check(small), check(small))
    assert len(builder.root.stmts) == 3
    builder.check(small, "IndexError", "no")
    builder.chosen(INSIDE, check(small), check(small))
    assert len(builder.root.stmts) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda builder: builder.emit(Store("y", (T,), X)),
        lambda builder: builder.emit(If(compare(">=", X, LENGTH), [Fail("IndexError", "no")])),
        lambda builder: builder.nest((LENGTH,), lambda index: builder.emit(Store("y", index, X))),
        lambda builder: builder.alloc("row", (X,), "float64"),
        lambda builder: builder.alias("row", "y", "[{0}]", X),
        lambda builder: builder.variable("sum", X, "int64"),
        lambda builder: builder.same(X, LENGTH, "ValueError", "no"),
    ],
)
def test_a_statement_that_would_run_on_both_sides_is_refused(make: Callable[[Builder], Any]) -> None:
    with pytest.raises(IllegalGraphError, match=r"where (its element is|they are) not"):
        side_of(make)


# programs, run by Python ----------------------------------------------------------------------------------------------


def as_plans(program: Program, arrays: tuple[Any, ...]) -> None:
    """Every plan of a program gives what NumPy gives, whether lengths are known or not."""
    expected = [np.asarray(result) for result in flat(program(*arrays))]
    for is_known in (True, False):
        graph, arguments = traced(program, arrays, is_known)
        assert check_plans(lean_graph(graph, ns.Mode()), arguments, ways=WAYS[:2]) > 0
        for found, right in zip(interpret(graph, arguments), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)


def on_gathers(card: Card) -> None:
    """Every plan of a card whose operands are gathered gives what the oracle gives; so do loops that read the result row by row."""
    for operands, attrs in card.samples():
        arrays = [np.asarray(operand) for operand in operands]
        axis = attrs.get("axis") if isinstance(attrs.get("axis"), int) else 0
        kept = [np.take(array, [0, *range(array.shape[axis])][::-1], axis) if array.ndim and array.size else array for array in arrays]
        places = [np.arange(array.shape[axis])[::-1] for array in arrays if array.ndim]

        def result(*inputs: Any, card: Card = card, arrays: Any = arrays, attrs: Any = attrs, axis: int = axis) -> Any:
            rest = iter(inputs[len(arrays) :])
            nodes = [(np.take(one, next(rest), axis) if array.ndim else one).node for one, array in zip(inputs, arrays, strict=False)]
            made = Variable(apply(card, *nodes, **attrs))
            is_read = made.node.type.rank and made.node.type.kind in "fc" and made.node.type.shape[0] is None
            return rows_of(made) if is_read else made

        for is_known in (True, False):
            graph, arguments = traced(result, (*kept, *places), is_known)
            check_plans(lean_graph(graph, ns.Mode()), arguments, ways=WAYS[:1])


def check_all() -> dict[str, str]:
    programs = {name: fault(as_plans, *program) for name, program in PROGRAMS.items()}
    return programs | {on_gathers_of(name): fault(on_gathers, CARDS[name]) for name in CARDS_BY_ELEMENT}


def fault(check: Callable[..., None], *arguments: Any) -> str:
    try:
        check(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    print(json.dumps(check_all()))
