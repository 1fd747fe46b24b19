"""A card by itself: `pytest tests/ops/test_one_card.py --card NAME` compiles it alone, at its samples and at its ends. In every run the
ends of a few, so that what is held here is held of some; all with `--wide`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ops.harness import ANY_ZERO, LOOSE, Compiled, assert_close, cards_on, elementwise_cards, n_operands, operands_of
from ops.test_compiled_cards import graph_of

from numbascan.compile import Program
from numbascan.modes import Mode
from numbascan.ops.card import CARDS, Card
from numbascan.ops.lowering import Elementwise
from numbascan.oracle.interpret import interpret

SOME = ("add", "sigmoid", "softplus")
ROUNDINGS = 64
# Slopes in a shape are integrals, which are not taken at infinity: NaN there, where they go to 0.
WITHOUT_LIMIT = {"gammainc_slope", "betainc_slope_a", "betainc_slope_b"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "card" in metafunc.fixturenames:
        names = metafunc.config.getoption("--card")
        unknown = sorted(set(names) - CARDS.keys())
        if unknown:
            raise pytest.UsageError(f"--card: no card is called {', '.join(unknown)}")
        rest = [pytest.param(card, marks=pytest.mark.wide) for name, card in CARDS.items() if name not in SOME]
        cards = [CARDS[name] for name in names] or [*(CARDS[name] for name in SOME), *rest]
        metafunc.parametrize("card", cards, ids=lambda card: card.name)


def test_compiled_alone_it_equals_the_oracle(card: Card) -> None:
    graph, arguments, _ = graph_of([card], False)
    found = Program(graph, Mode(), f"card_{card.name}", specialise=False)(arguments)
    for one, other in zip(found, interpret(graph, arguments), strict=True):
        assert one.dtype == other.dtype
        tolerance = 2e-5 if one.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def is_elementwise(card: Card) -> bool:
    return isinstance(card.lower, Elementwise) and card in elementwise_cards()


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_compiled_at_its_ends_it_equals_the_oracle(card: Card, dtype: str) -> None:
    """Infinities, NaN, zeros of both signs, the largest and the smallest numbers, in every combination."""
    dtypes = (dtype,) * n_operands(card)
    if not is_elementwise(card) or card not in cards_on(dtypes):
        pytest.skip(f"{card.name} does not compute element by element in {dtype}")
    operands = operands_of(dtypes)
    with np.errstate(all="ignore"):
        expected = np.asarray(card.evaluate(*operands))
    (found,) = Compiled([card], dtypes)(*operands)
    expected = expected.astype(found.dtype)  # of functions that SciPy has in double precision alone
    assert_close(found, expected, LOOSE.get(card.name, ROUNDINGS), card.name, signed_zeros=card.name not in ANY_ZERO)


def test_at_infinity_it_has_the_limit_that_it_goes_to(card: Card) -> None:
    """NaN at an infinity, where large numbers give one and the same, is the quotient or difference of two infinities."""
    if not is_elementwise(card) or card not in cards_on(("float64",) * n_operands(card)):
        pytest.skip(f"{card.name} does not compute element by element in float64")
    if card.name in WITHOUT_LIMIT:
        pytest.skip("an integral")
    assert without_limit(card) == []


def without_limit(card: Card) -> list[tuple[int, float, float]]:
    """Where a card gives NaN at an infinity, and one number before it: the operand, the sign of the infinity, that number."""
    places = []
    real = [operands for operands, _ in card.samples() if not any(map(np.iscomplexobj, operands))]
    for operands, sign in itertools.product(real[:3], (1.0, -1.0)):
        for place in range(len(operands)):
            values = [at(card, operands, place, sign * x) for x in (1e10, 1e15, 1e18)]
            goes_to_one = np.isfinite(values).all() and np.allclose(values, values[0], rtol=1e-8, atol=1e-8)
            if goes_to_one and np.isnan(at(card, operands, place, sign * np.inf)).any():
                places.append((place, sign, float(values[-1].flat[0])))
    return places


def test_a_quotient_of_infinities_is_found() -> None:
    """Compiled code and the oracle agree on it."""
    softsign = replace(CARDS["softplus"], evaluate=lambda x: x / (1 + np.abs(x)))
    assert without_limit(softsign) == [(0, 1.0, 1.0), (0, -1.0, -1.0)]
    assert without_limit(CARDS["sin"]) == without_limit(CARDS["tanh"]) == []


def at(card: Card, operands: tuple[Any, ...], place: int, x: float) -> np.ndarray:
    """The card's values where one operand is x."""
    given = [np.full(np.shape(value), x) if k == place else np.asarray(value, "float64") for k, value in enumerate(operands)]
    with np.errstate(all="ignore"):
        return np.asarray(card.evaluate(*given))
