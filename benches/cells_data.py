"""Neural cells as text for any module of arrays and any `lax.scan`, and their inputs.

A name is CELL-UNITSxSERIES-FORM-KIND, as gru-32x256-vmap-grad. Form `vmap` maps the loop of one series; in form `batch` the state has a row
for each series. Kind `value` is the cost, `grad` its gradient in all weights.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

STEPS = 100
CELLS = ("rnn", "gru", "lstm", "norm", "attention")
UNITS, SERIES = (8, 32, 128), (1, 32, 256)
FORMS, KINDS = ("vmap", "batch"), ("value", "grad")
MEMORIES = 16  # rows that an attention step looks at


def names(cells: tuple[str, ...]) -> list[str]:
    """All names of some cells."""
    sizes = product(cells, UNITS, SERIES, FORMS, KINDS)
    return ["{}-{}x{}-{}-{}".format(*size) for size in sizes]


def parts(name: str) -> tuple[str, int, int, str, str]:
    """Cell, units, series, form and kind of a name."""
    cell, size, form, kind = name.split("-")
    units, series = map(int, size.split("x"))
    return cell, units, series, form, kind


def inputs(name: str) -> tuple[np.ndarray, ...]:
    """The sequences (series, steps, units), then the weights."""
    cell, units, series, _, _ = parts(name)
    rng = np.random.default_rng(0)
    shapes: dict[str, list[tuple[int, ...]]] = {
        "rnn": [(units, units), (units, units), (units,)],
        "gru": [(units, units)] * 6 + [(units,)] * 3,
        "lstm": [(units, 4 * units), (units, 4 * units), (4 * units,)],
        "norm": [(units, units), (units, units), (units,), (units,)],
        "attention": [(units, units), (units, units), (MEMORIES, units)],
    }
    weights = [rng.normal(size=shape) / units**0.5 for shape in shapes[cell]]
    return rng.normal(size=(series, STEPS, units)), *weights


def step_of(cell: str, xp: Any) -> Callable[..., Any]:
    """(weights, state, row) -> state, what is seen of it."""

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + xp.exp(-x))

    def rnn(weights: Any, h: Any, x: Any) -> Any:
        W, U, b = weights
        h = xp.tanh(x @ W + h @ U + b)
        return h, h

    def gru(weights: Any, h: Any, x: Any) -> Any:
        Wz, Uz, Wr, Ur, Wh, Uh, bz, br, bh = weights
        z, r = sigmoid(x @ Wz + h @ Uz + bz), sigmoid(x @ Wr + h @ Ur + br)
        h = (1 - z) * h + z * xp.tanh(x @ Wh + (r * h) @ Uh + bh)
        return h, h

    def lstm(weights: Any, state: Any, x: Any) -> Any:
        W, U, b = weights
        h, c = state
        i, f, g, o = xp.split(x @ W + h @ U + b, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
        h = sigmoid(o) * xp.tanh(c)
        return (h, c), h

    def norm(weights: Any, h: Any, x: Any) -> Any:
        W, U, gain, b = weights
        a = x @ W + h @ U
        centred = a - a.mean(axis=-1, keepdims=True)
        h = xp.tanh(centred / xp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * gain + b)
        return h, h

    def attention(weights: Any, h: Any, x: Any) -> Any:
        Wq, Wo, memory = weights
        score = (h @ Wq + x) @ memory.T
        part = xp.exp(score - score.max(axis=-1, keepdims=True))
        h = xp.tanh((part / part.sum(axis=-1, keepdims=True)) @ memory @ Wo + x)
        return h, h

    return {"rnn": rnn, "gru": gru, "lstm": lstm, "norm": norm, "attention": attention}[cell]


def cost(name: str, xp: Any, scan: Any, vmap: Any) -> Callable[..., Any]:
    """The mean square of all states, as a function of the sequences and the weights."""
    cell, units, series, form, _ = parts(name)
    step = step_of(cell, xp)

    def states(xs: Any, rows: tuple[int, ...], weights: Any) -> Any:
        start = xp.zeros((*rows, units))
        return scan(lambda state, x: step(weights, state, x), (start, start) if cell == "lstm" else start, xs)[1]

    def mapped(xs: Any, *weights: Any) -> Any:
        return (vmap(lambda one: states(one, (), weights))(xs) ** 2).mean()

    def batched(xs: Any, *weights: Any) -> Any:
        return (states(xp.swapaxes(xs, 0, 1), (series,), weights) ** 2).mean()

    return mapped if form == "vmap" else batched
