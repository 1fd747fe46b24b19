"""What np.where hides plays no part: whatever its values and slopes are, derivatives are those of any other numbers in its place."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.variable import op
from numbascan.ops.card import CARDS, Card
from numbascan.ops.lowering import Elementwise

SHAPE = (4, 3)
SHOWN = np.array([[True, True, True], [True, False, True], [False, False, True], [False, True, True]])
GOOD = np.random.default_rng(22).uniform(1.1, 1.9, size=SHAPE)
BAD = GOOD.copy()
BAD[~SHOWN] = 0.0, -1.0, np.inf, np.nan
Pair = tuple[Any, Any]


@ns.custom_vjp
def doubled(x: Any) -> Any:
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, cotangent: (2 * cotangent,))

SLOPES: list[Callable[[Any], Any]] = [
    np.sqrt,
    np.log,
    lambda x: 1 / x,
    lambda x: x**0.3,
    np.arccosh,
    lambda x: np.sqrt(x) / (x - np.sqrt(x)),
]
"""Without a finite slope, or a value, at some of 0, -1, infinity and NaN."""


def twice(ndim: int) -> Any:
    """Ones that repeat along a new axis 1."""
    return np.ones((2, *(1 for _ in range(ndim - 1))))


def run(x: Any, shown: Any, checkpoint: Any = None) -> Pair:
    """A state that adds up rows, a bad one of which spoils all later ones."""
    start = np.ones_like(x[0])
    rows = ns.scan(lambda row, s: 0.5 * s * np.sqrt(row) + row, x, start, checkpoint=checkpoint, return_updates=False)
    return rows, np.cumsum(np.where(shown, 0, 1), axis=0) == 0


def within(x: Any, shown: Any) -> Pair:
    """Rows that are hidden in the step itself, beside a state that is."""

    def step(row: Any, is_shown: Any, s: Any) -> Any:
        return 0.5 * np.where(is_shown, np.sqrt(row), 0.0) + np.where(s > 0.3, s**1.5, 0.2)

    return ns.scan(step, [x, shown], 0.5 * np.ones_like(x[0]), return_updates=False), np.ones_like(shown)


MOVES: dict[str, Callable[[Any, Any], Pair]] = {
    "new axis": lambda x, shown: (x[:, None] * twice(x.ndim), shown[:, None] & (twice(x.ndim) > 0)),
    "reshape": lambda x, shown: (np.reshape(x, (-1, 1)), np.reshape(shown, (-1, 1))),
    "ravel": lambda x, shown: (np.ravel(x)[:, None], np.ravel(shown)[:, None]),
    "transpose": lambda x, shown: (x.T, shown.T),
    "flip": lambda x, shown: (x[::-1], shown[::-1]),
    "part": lambda x, shown: (x[-3:], shown[-3:]),
    "gather": lambda x, shown: (x[np.array([-1, 0, -1])], shown[np.array([-1, 0, -1])]),
    "broadcast": lambda x, shown: (np.broadcast_to(x, (2, *x.shape)), np.broadcast_to(shown, (2, *shown.shape))),
    "roll": lambda x, shown: (np.roll(x, 1, axis=0), np.roll(shown, 1, axis=0)),
    "repeat": lambda x, shown: (np.repeat(x, 2, axis=0), np.repeat(shown, 2, axis=0)),
    "concatenate": lambda x, shown: (np.concatenate([x, x[:1]]), np.concatenate([shown, shown[:1]])),
    "stack": lambda x, shown: (np.stack([x, 2 * x]), np.stack([shown, shown])),
    "sum": lambda x, shown: (x.sum(axis=-1, keepdims=True), shown.all(axis=-1, keepdims=True)),
    "product": lambda x, shown: (np.prod(x, axis=-1, keepdims=True), shown.all(axis=-1, keepdims=True)),
    "largest": lambda x, shown: (np.max(x, axis=0), shown.all(axis=0)),
    "running sum": lambda x, shown: (np.cumsum(x, axis=0), np.cumsum(np.where(shown, 0, 1), axis=0) == 0),
    "product of matrices": lambda x, shown: (x @ np.ones((x.shape[-1], 2)), shown.all(axis=-1)[..., None] & np.array([True, True])),
    "squares of rows": lambda x, shown: (np.einsum("...i,...i->...", x, x)[..., None], shown.all(axis=-1, keepdims=True)),
    "part replaced": lambda x, shown: (nt.set_subtensor(x[-2:], 2 * x[-2:]), shown),
    "a rule of one's own": lambda x, shown: (doubled(x), shown),
    "map": lambda x, shown: (ns.map(lambda row: np.sin(row) + np.sqrt(row), x, return_updates=False), shown),
    "lanes": lambda x, shown: (ns.vmap(lambda row: np.sqrt(row) * row)(x), shown),
    "states": run,
    "in steps": within,
    "choice": lambda x, shown: (nt.ifelse(nt.as_tensor_variable(2.0) > 1, np.sqrt(x), 2 * x), shown),
    "initial values": lambda x, shown: (ns.scan(np.sqrt, outputs_info=x, n_steps=2, return_updates=False)[-1], shown),
}


def smaller(shown: Any, chance: random.Random) -> Any:
    """A mask that hides as much or more, of the same shape or one that broadcasts to it."""
    return chance.choice((shown, shown, shown.all(axis=-1, keepdims=True), shown.all(axis=0)))


def program(moves: list[str], seed: int) -> Callable[[Any, Any], Any]:
    """The sum of what is shown of a value that has gone through moves, with slopes between them; hidden twice, and moved again."""

    def f(x: Any, shown: Any) -> Any:
        chance = random.Random(seed)
        x = chance.choice(SLOPES)(x)
        for k, move in enumerate(moves):
            x, shown = MOVES[move](x, shown)
            x = chance.choice((np.sqrt, np.tanh, lambda x: x / (1 + x), lambda x: 1 / x))(x)
            if k == len(moves) // 2:
                x = np.where(smaller(shown, chance), x, 0.3)
                x, shown = np.flip(x, axis=0) * np.linspace(0.5, 1.5, x.shape[-1]), np.ones_like(x) > 0
        return np.sum(np.where(smaller(shown, chance), (np.cos(x) * np.sin(x)).T.T, 0.0))

    return f


def assert_hidden(f: Callable[[Any, Any], Any], mode: str | None, ways: int) -> None:
    """The gradient, its gradient and its tangent, the first ones of these, do not see what is hidden."""
    along = np.linspace(0.5, 1.5, 12).reshape(SHAPE)

    def derivatives(x: Any, shown: Any) -> Any:
        slope = ns.grad(lambda x: f(x, shown))
        second = (ns.jvp(slope, (x,), (along,))[1],) if ways > 2 else ()
        second += (ns.grad(lambda x: np.sum(along * slope(x)))(x),) if ways > 1 else ()
        return (slope(x), *second)

    g = ns.jit(derivatives, mode=mode)
    for found, wanted in zip(g(BAD, SHOWN), g(GOOD, SHOWN), strict=True):
        assert np.isfinite(wanted).all()
        np.testing.assert_array_equal(wanted[~SHOWN], 0.0)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("move", MOVES)
def test_what_is_hidden_behind_a_move_plays_no_part(move: str) -> None:
    f = program([move], 0)
    assert_hidden(f, "python", ways=3 if move != "a rule of one's own" else 2)
    assert ns.jit(ns.grad(f), mode="python")(GOOD, SHOWN).any()


@pytest.mark.parametrize("seed", wide(range(400), first=12))
def test_what_is_hidden_behind_any_moves_plays_no_part(seed: int) -> None:
    chance = random.Random(seed)
    assert_hidden(program(chance.sample(list(MOVES), 3), seed), "python", ways=1 + (seed % 4 == 0))


def linear_cards() -> list[str]:
    """The cards that are linear in some operand, and move or add up its elements."""
    return [name for name, card in CARDS.items() if card.linear and card.samples is not None and not isinstance(card.lower, Elementwise)]


@pytest.mark.parametrize("name", linear_cards())
def test_what_is_hidden_behind_a_linear_card_plays_no_part(name: str) -> None:
    card, rng = CARDS[name], np.random.default_rng(5)
    assert card.samples is not None
    n_tried = 0
    for operands, attrs in card.samples():
        for k in card.linear:
            if np.ndim(operands[k]) and np.asarray(operands[k]).dtype in ("float64", "complex128"):
                n_tried += 1
                assert_hidden_behind(card, operands, attrs, k, rng)
    assert n_tried


def assert_hidden_behind(card: Card, operands: tuple[Any, ...], attrs: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    """Square roots as operand k, some of them of 0 and -1; what comes of these is hidden."""
    good = rng.uniform(1.1, 1.9, size=np.shape(operands[k]))
    spoilt = rng.random(good.shape) < 0.3
    bad = np.where(spoilt, rng.choice([0.0, -1.0], size=good.shape), good)

    is_complex = np.iscomplexobj(operands[k])

    def value(x: Any) -> Any:
        result = op(card, *operands[:k], x * (1 + 0.5j) if is_complex else x, *operands[k + 1 :], **attrs)
        return np.real(result) + np.imag(result) if result.dtype == "complex128" else result

    shown = ~np.isnan(ns.jit(lambda x: value(x) + 0.0, mode="python")(np.where(spoilt, np.nan, good)))

    @ns.jit(mode="python")
    def slope(x: Any, shown: Any) -> Any:
        hidden = ns.grad(lambda x: np.sum(np.where(shown, np.sin(value(np.sqrt(x))), 0.0)) + 0.0 * np.sum(x))  # some do not depend on x
        return hidden(x)

    found, wanted = slope(bad, shown), slope(good, shown)
    assert np.isfinite(found).all(), (operands, attrs, k)
    np.testing.assert_allclose(found, np.where(spoilt, 0.0, wanted), rtol=1e-12, err_msg=str(attrs))


@pytest.mark.parametrize("seed", wide(range(1000, 1030), first=2))
def test_compiled_gradients_do_not_see_it_either(seed: int) -> None:
    chance = random.Random(seed)
    assert_hidden(program(chance.sample(list(MOVES), 2), seed), None, ways=1)


@pytest.mark.parametrize("checkpoint", [2, "auto"])
def test_steps_under_checkpoints_hide_what_they_read(checkpoint: Any) -> None:
    def f(x: Any, shown: Any) -> Any:
        rows, shown = run(x, shown, checkpoint)
        return np.sum(np.where(shown, rows, 0.0))

    assert_hidden(f, "python", ways=1)


def test_missing_data_are_no_part_of_a_fit() -> None:
    """Rows that are not there, with NaN in them, beside a product of matrices."""
    data, y = np.vstack([GOOD, np.full((2, 3), np.nan)]), np.array([1.0, 0.5, -0.3, 0.2, np.nan, 1.0])

    def cost(beta: Any, data: Any, y: Any) -> Any:
        is_there = np.arange(6) < 4
        return np.sum(np.where(is_there[:, None], (y - data @ beta)[:, None], 0.0) ** 2)

    found = ns.grad(cost)(np.ones(3), data, y)
    np.testing.assert_allclose(found, -2 * GOOD.T @ (y[:4] - GOOD @ np.ones(3)), rtol=1e-12)


def test_a_zero_by_chance_hides_no_second_derivative() -> None:
    """(x**3 - 1)**2 at 1, behind a mask and a gather: the cotangent of x**3 is 0 there, its derivative is not."""

    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, ((x**3 - 1.0) ** 2)[np.array([1, 0])], 0.0))

    for second in (ns.hessian(f), ns.jacobian(ns.grad(f))):
        np.testing.assert_allclose(ns.jit(second, mode="python")(np.array([1.0, 1.0])), 18 * np.eye(2))


def test_the_branch_of_ifelse_that_is_not_taken_hides_what_only_it_reads() -> None:
    @ns.grad
    def slope(x: Any) -> Any:
        root = np.sqrt(x)
        return nt.ifelse(x[0] > 0, root[0], x[1])

    assert slope(np.array([0.0, 2.0])).tolist() == [0.0, 1.0]


def test_masks_that_broadcast_go_through_views() -> None:
    """A mask of rows, and one of columns, on a matrix that was transposed, reshaped and got an axis."""

    def f(x: Any, rows: Any, columns: Any) -> Any:
        root = np.sqrt(x)
        by_row = np.where(rows, root.T[:, :, None], 0.0)
        by_column = np.where(columns, np.reshape(root.T, (4, 3)), 0.0)
        return np.sum(by_row * np.arange(1.0, 4.0)[:, None, None]) + np.sum(by_column**2)

    rows, columns = np.array([True, True, False, True])[:, None], np.array([True, False, True])
    bad = GOOD.copy()
    hidden_by_both = np.zeros((3, 4), bool)
    hidden_by_both.reshape(4, 3)[:, 1] = True
    spoilt = hidden_by_both.T & ~rows
    assert spoilt.any()
    bad[spoilt] = 0.0
    slope = ns.jit(ns.grad(f), mode="python")
    np.testing.assert_allclose(slope(bad, rows, columns), slope(GOOD, rows, columns), rtol=1e-12)


def test_an_input_that_a_masked_derivative_depends_on_no_more_is_not_missing() -> None:
    """The slope of sqrt(x) * w, masked and in another shape, has w in it alone: its derivative with respect to x is 0."""

    def f(x: Any, w: Any) -> Any:
        return np.sum(np.where(w[:, None] > 0, (x * w)[:, None], 0.0))

    second = ns.grad(lambda x, w: np.sum(np.where(w[:, None] > 0, ns.grad(f)(x, w)[:, None], 0.0)), argnums=(0, 1))
    for found, wanted in zip(second(np.ones(2), np.array([1.0, -1.0])), ([0.0, 0.0], [1.0, 0.0]), strict=True):
        np.testing.assert_array_equal(found, wanted)
