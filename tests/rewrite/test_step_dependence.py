"""What is said to be safe before a loop of no steps makes no statement that can fail: asked of the plan of every card."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan  # noqa: F401 - registers all cards
from numbascan.ir.graph import close
from numbascan.ir.loops import Call, Fail, walk
from numbascan.ir.node import Node, new_input, outputs_of
from numbascan.ops.card import CARDS, Card, apply
from numbascan.ops.failing import may_raise
from numbascan.plan.cpu import CPU
from numbascan.plan.plan import plan
from numbascan.types import TensorType

CARDS_WITH_SAMPLES = [card for card in CARDS.values() if card.samples is not None]


def operand(value: Any, is_fixed: bool) -> Node:
    array = np.asarray(value)
    return new_input(TensorType(array.dtype.name, tuple(dim if is_fixed or dim == 1 else None for dim in array.shape)))


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("card", CARDS_WITH_SAMPLES, ids=lambda card: card.name)
def test_what_is_safe_cannot_fail(card: Card, is_fixed: bool) -> None:
    for sample, attrs in card.samples():
        inputs = [operand(value, is_fixed) for value in sample]
        results = outputs_of(apply(card, *inputs, **attrs))
        stmts = list(walk(plan(close(inputs, results), CPU, "card").function.body))
        fails = [stmt.message for stmt in stmts if isinstance(stmt, Fail) or (isinstance(stmt, Call) and stmt.message)]
        assert not fails or all(map(may_raise, results)), fails


def test_what_never_fails_is_known_to() -> None:
    x, a = operand(np.ones(30), False), operand(np.ones((30, 30)), False)
    exp, total, product = (CARDS[name] for name in ("exp", "sum", "multiply"))
    values = [
        apply(exp, x),
        apply(product, x, apply(exp, x)),
        apply(total, a, axis=(0,), keepdims=False),
        apply(CARDS["transpose"], a, axes=(1, 0)),
    ]
    assert [may_raise(value) for value in values] == [False] * 4
    assert may_raise(apply(product, x, operand(np.ones(30), False)))
