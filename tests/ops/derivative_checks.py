"""What the tests of derivatives share: a card's derivatives, computed by NumPy, against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbascan.grad.rules import Cotangent, pulled, pushed
from numbascan.ir.graph import Graph
from numbascan.ir.node import Node, new_input, outputs_of
from numbascan.ops.card import Card, apply
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

STEP = {"float64": 1e-5, "complex128": 1e-5}


class Point:
    """A card at operands: its value, its derivatives along directions, as numbers."""

    def __init__(self, card: Card, operands: tuple[Any, ...], attrs: dict[str, Any]) -> None:
        self.values = [np.asarray(value) for value in operands]
        self.inputs = [new_input(TensorType(value.dtype.name, value.shape)) for value in self.values]
        self.node = apply(card, *self.inputs, **attrs)
        self.outputs = outputs_of(self.node)
        self.active = [k for k, value in enumerate(self.values) if value.dtype.kind in "fc"]
        rng = np.random.default_rng(len(self.values) + sum(value.size for value in self.values))
        self.directions = {k: random_like(rng, self.values[k]) for k in self.active}
        self.weights = [random_like(rng, value) if value.dtype.kind in "fc" else None for value in self.value_at(self.values)]

    def value_at(self, values: list[Any]) -> list[Any]:
        return interpret(Graph(tuple(self.inputs), self.outputs), values)

    def evaluated(self, nodes: list[Node | None], more: dict[Node, Any]) -> list[Any]:
        """The values of nodes over the inputs and some more; 0 for None."""
        there = [node for node in nodes if node is not None]
        found = iter(interpret(Graph((*self.inputs, *more), tuple(there)), [*self.values, *more.values()]))
        return [0.0 if node is None else next(found) for node in nodes]

    def differences(self) -> list[Any]:
        """The tangents of the results by central differences."""
        step = 1e-5
        ahead = [value + step * self.directions[k] if k in self.directions else value for k, value in enumerate(self.values)]
        behind = [value - step * self.directions[k] if k in self.directions else value for k, value in enumerate(self.values)]
        return [(a - b) / (2 * step) for a, b in zip(self.value_at(ahead), self.value_at(behind), strict=True)]

    def tangents(self) -> list[Any]:
        """The tangents of the results by the card."""
        given = {new_input(self.inputs[k].type): direction for k, direction in self.directions.items()}
        by_place = dict(zip(self.directions, given, strict=True))
        return self.evaluated(list(pushed(self.node, [by_place.get(k) for k in range(len(self.inputs))])), given)

    def cotangents(self) -> dict[int, Any]:
        """The cotangents of the operands by the card, for the weights as cotangents of the results."""
        given = {new_input(out.type): weight for out, weight in zip(self.outputs, self.weights, strict=True) if weight is not None}
        fed = iter(given)
        places = [None if weight is None else Cotangent(next(fed)) for weight in self.weights]
        found = pulled(self.node, places, self.active)
        nodes = [None if found[k] is None else found[k].realised() for k in self.active]
        return dict(zip(self.active, self.evaluated(nodes, given), strict=True))


def random_like(rng: Any, value: Any) -> Any:
    drawn = rng.normal(size=value.shape)
    return (drawn + 1j * rng.normal(size=value.shape) if value.dtype.kind == "c" else drawn).astype(value.dtype)


def pairing(weights: Any, values: Any) -> float:
    """The real pairing Re(sum(w * v)) of which cotangents are the one side and tangents the other."""
    return float(np.sum(weights * values).real)


def check_card(card: Card, operands: tuple[Any, ...], attrs: dict[str, Any], rtol: float = 1e-6) -> None:
    """Asserts: tangents equal central differences, and <w, J v> = <J' w, v>."""
    operands = tuple(widened(value) for value in operands)
    point = Point(card, operands, attrs)
    tangents = point.tangents()
    for found, expected, weight in zip(tangents, point.differences(), point.weights, strict=True):
        if weight is not None:
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * (1 + np.max(np.abs(expected), initial=0)))
    ahead = sum(pairing(w, t) for w, t in zip(point.weights, tangents, strict=True) if w is not None)
    back = sum(pairing(c, point.directions[k]) for k, c in point.cotangents().items())
    np.testing.assert_allclose(back, ahead, rtol=1e-9, atol=1e-9)


def widened(value: Any) -> Any:
    """A float or complex value in double precision: differences need it."""
    value = np.asarray(value)
    return value.astype({"f": "float64", "c": "complex128"}.get(value.dtype.kind, value.dtype))
