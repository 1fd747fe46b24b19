"""Every card's loops give NumPy's values: with fixed dimensions, and with dimensions that only the run knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product, zip_longest
from typing import Any

import numpy as np
import pytest

import numbascan  # noqa: F401 - registers all cards
from numbascan.compile import Program
from numbascan.ir.graph import Graph, close
from numbascan.ir.node import Node, constant, new_input, outputs_of
from numbascan.modes import Mode
from numbascan.ops.card import CARDS, Card, apply
from numbascan.ops.lowering import Elementwise, Library
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

NUMBA = Mode()
TOGETHER = 6  # elementwise cards in one kernel
WITH_SAMPLES = [card for card in CARDS.values() if card.samples is not None]


def operands(sample: tuple[Any, ...], is_fixed: bool) -> list[Node]:
    """An input for each operand of a sample; Python numbers stay constants, as in the user's code."""
    nodes = []
    for value in sample:
        if isinstance(value, int | float | complex) and not isinstance(value, bool | np.generic):
            nodes.append(new_input(TensorType(np.asarray(value).dtype.name)))
            continue
        array = np.asarray(value)
        shape = tuple(dim if is_fixed or dim == 1 else None for dim in array.shape)
        nodes.append(new_input(TensorType(array.dtype.name, shape)))
    return nodes


def graph_of(cards: Sequence[Card], is_fixed: bool) -> tuple[Graph, list[Any], list[str]]:
    """One graph with the results of all samples of some cards; the arguments for it, and the card of each result."""
    inputs: list[Node] = []
    outputs: list[Node] = []
    arguments: list[Any] = []
    names: list[str] = []
    for card in cards:
        for sample, attrs in card.samples():
            nodes = operands(sample, is_fixed)
            results = outputs_of(apply(card, *nodes, **attrs))
            outputs += results
            names += [card.name] * len(results)
            inputs += nodes
            arguments += list(sample)
    return close(inputs, outputs), arguments, names


def cases() -> Iterator[Any]:
    """Elementwise cards some at a time: the kernel around their elements costs more than they do. Other cards each by itself. Known
    dimensions change loops around an element, not its text, nor routines that have no form for few rows: those have them with `--wide`."""
    elementwise = [card for card in WITH_SAMPLES if isinstance(card.lower, Elementwise)]
    for cards in zip_longest(*[iter(elementwise)] * TOGETHER):
        some = [card for card in cards if card is not None]
        name = f"{some[0].name} to {some[-1].name}"
        yield pytest.param(some, False, id=f"{name}-open dimensions")
        yield pytest.param(some, True, id=f"{name}-fixed dimensions", marks=pytest.mark.wide)
    by_itself = [card for card in WITH_SAMPLES if card not in elementwise]
    for card, is_fixed in product([*by_itself, CARDS["add"], CARDS["exp"], CARDS["where"]], (False, True)):
        is_the_same = isinstance(card.lower, Library) and card.lower.scalar is None
        marks = [pytest.mark.wide] * (is_fixed and is_the_same)
        yield pytest.param([card], is_fixed, id=f"{card.name}-{'fixed' if is_fixed else 'open'} dimensions", marks=marks)


@pytest.mark.parametrize("cards, is_fixed", list(cases()))
def test_compiled_code_equals_the_oracle(cards: Sequence[Card], is_fixed: bool) -> None:
    graph, arguments, names = graph_of(cards, is_fixed)
    expected = interpret(graph, arguments)
    found = Program(graph, NUMBA, f"card_{cards[0].name}", specialise=False)(arguments)
    for one, other, node, name in zip(found, expected, graph.outputs, names, strict=True):
        assert one.dtype == np.dtype(node.type.dtype), name
        tolerance = 2e-5 if one.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=name)


def test_every_card_has_samples() -> None:
    assert [card.name for card in CARDS.values() if card.samples is None] == []


def test_constants_fold_while_tracing() -> None:
    assert apply(CARDS["add"], constant(2.5), constant(4.0)) is constant(6.5)
