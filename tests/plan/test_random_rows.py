"""Random steps of rows that are updated in place, read each other, and are read for numbers, parts, views and conditions."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

N, STEPS = 12, 4


class Step:
    """A step of rows `a`, `b`, … and a number: the same for a seed, whatever it is called with."""

    def __init__(self, seed: int, may_end: bool = True) -> None:
        self.seed, self.may_end = seed, may_end
        self.n_rows = Random(seed).randint(2, 4)

    def __call__(self, *states: Any) -> Any:
        *rows, number = states
        self.random, self.rows, self.number = Random(self.seed + 1), rows, number
        self.at = nt.cast(np.abs(number) * 3, "int64") % N
        new = [self.row(row) for row in rows]
        if self.random.random() < 0.2:
            k, j = self.random.sample(range(len(rows)), 2)
            new[k] = rows[j]  # handed on
        seen = [self.random.choice([self.whole, self.one, self.part, self.view])() for _ in range(self.random.randint(2, 3))]
        found = [*new, 0.5 * number + 0.25 * self.one(), *seen]
        self.n_seen = len(seen)
        return (found, ns.until(self.one() > 2.0)) if self.random.random() < 0.3 and self.may_end else found

    def row(self, own: Any) -> Any:
        """A new row: mostly of the old one at its own place."""
        kind = self.random.random()
        if kind < 0.3:
            return self.replaced(own)
        if kind < 0.8:
            return 0.5 * own + 0.25 * self.whole()
        return self.whole()

    def replaced(self, own: Any) -> Any:
        where, length = self.random.choice([(self.at, 0), (3, 0), (-2, 0), (np.s_[2:6], 4), (np.s_[::3], 4)])
        value = self.random.choice([self.whole()[4 : 4 + length] if length else self.one(), self.one(), 0.5 * self.one() + 1.0])
        return self.random.choice([nt.set_subtensor, nt.inc_subtensor])(own[where], 0.5 * value)

    def whole(self) -> Any:
        """A row of N numbers."""
        row = self.random.choice(self.rows)
        kind = self.random.randrange(7)
        if kind == 0:
            return row[::-1]
        if kind == 1:
            return np.roll(row, 1)
        if kind == 2:
            return row * 0.5 + self.one()
        if kind == 3:
            return np.where(row > self.one(), row, 0.5 * self.random.choice(self.rows))
        if kind == 4:
            return nt.set_subtensor((0.5 * row)[1:3], self.one())
        return row if kind == 5 else 0.5 * row - 0.5 * self.whole()

    def part(self) -> Any:
        return self.random.choice(self.rows)[3:7]

    def view(self) -> Any:
        return self.random.choice([lambda row: row, lambda row: row.reshape((3, 4)).T, lambda row: row[::2]])(self.random.choice(self.rows))

    def one(self) -> Any:
        """A number."""
        row = self.random.choice(self.rows)
        kind = self.random.randrange(6)
        if kind < 2:
            return row[self.random.choice([0, 5, -1])]
        if kind == 2:
            return row[self.at]
        return row.sum() * 0.125 if kind == 3 else row.max() if kind == 4 else self.number


def asked(seed: int, mode: str | None) -> list[Any]:
    """What a program of a seed gives: some results whole, of some the last row, in a loop, in lanes, or in a loop around."""
    random = Random(seed)
    kind = random.randrange(4)
    step = Step(seed, may_end=kind != 0)  # lanes have one length
    start = np.round(np.random.default_rng(seed).normal(size=(step.n_rows, N)), 2)
    lasts = [random.random() < 0.7 for _ in range(step.n_rows + 4)]

    def loop(rows: Any, number: Any) -> list[Any]:
        states = [rows[k] for k in range(step.n_rows)]
        found = ns.scan(step, outputs_info=[*states, number, *traces], n_steps=STEPS, return_updates=False)
        return [one[-1] if is_last else one for one, is_last in zip(found, lasts, strict=False)]

    traces = [None] * _n_seen(step, start)
    if kind == 0:
        return list(ns.jit(ns.vmap(lambda *args: tuple(loop(*args))), mode=mode)(np.stack([start, start[::-1], -start]), np.arange(3.0)))
    if kind == 1:

        def around(rows: Any, number: Any) -> list[Any]:
            inner = loop(rows, number)
            first = inner[0] if lasts[0] else inner[0][-1]
            return [0.5 * rows + 0.5 * first, 0.5 * number + 0.25 * rows[0, 0]]

        return list(ns.scan(around, mode=mode, keep_last=1)(outputs_info=[start, 0.5], n_steps=3))
    return list(ns.jit(lambda *args: tuple(loop(*args)), mode=mode)(start, 0.5))


def _n_seen(step: Step, start: np.ndarray) -> int:
    step(*(nt.dvector() for _ in start), nt.dscalar())
    return step.n_seen


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_rows_are_those_of_the_interpreter(first: int, request: pytest.FixtureRequest) -> None:
    n_programs = 10 if request.config.getoption("--check-plans") else 3
    for seed in range(first, first + n_programs):
        for one, right in zip(asked(seed, None), asked(seed, "python"), strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-12, atol=1e-12, err_msg=f"program {seed}")
