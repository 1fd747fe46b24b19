"""Every card's loops give NumPy's values: with fixed dimensions, and with dimensions that only the run knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import numbascan  # noqa: F401 - registers all cards
from numbascan.compile import Program
from numbascan.ir.graph import close
from numbascan.ir.node import Node, constant, new_input, outputs_of
from numbascan.modes import Mode
from numbascan.ops.card import CARDS, Card, apply
from numbascan.ops.lowering import Elementwise
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

NUMBA = Mode()
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


def graph_of(card: Card, is_fixed: bool) -> tuple[Any, list[Any]]:
    """One graph with the results of all samples, and the arguments for it."""
    assert card.samples is not None
    inputs: list[Node] = []
    outputs: list[Node] = []
    arguments: list[Any] = []
    for sample, attrs in card.samples():
        nodes = operands(sample, is_fixed)
        outputs += outputs_of(apply(card, *nodes, **attrs))
        inputs += nodes
        arguments += list(sample)
    return close(inputs, outputs), arguments


def cases() -> Iterator[Any]:
    """Each card by itself. Known dimensions change the loops around an element, not its text: elementwise cards have them with `--wide`."""
    for card in WITH_SAMPLES:
        yield pytest.param(card, False, id=f"{card.name}-open dimensions")
        marks = [pytest.mark.wide] if isinstance(card.lower, Elementwise) and card.name not in ("add", "exp", "where") else []
        yield pytest.param(card, True, id=f"{card.name}-fixed dimensions", marks=marks)


@pytest.mark.parametrize("card, is_fixed", list(cases()))
def test_compiled_code_equals_the_oracle(card: Card, is_fixed: bool) -> None:
    graph, arguments = graph_of(card, is_fixed)
    expected = interpret(graph, arguments)
    found = Program(graph, NUMBA, f"card_{card.name}", specialise=False)(arguments)
    for one, other, node in zip(found, expected, graph.outputs, strict=True):
        assert one.dtype == np.dtype(node.type.dtype)
        tolerance = 2e-5 if one.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_every_card_has_samples() -> None:
    assert [card.name for card in CARDS.values() if card.samples is None] == []


def test_constants_fold_while_tracing() -> None:
    assert apply(CARDS["add"], constant(2.5), constant(4.0)) is constant(6.5)
