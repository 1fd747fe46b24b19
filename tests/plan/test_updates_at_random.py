"""Random steps that update their states in place: choices, inner loops and sets in a row, whatever else the step reads of the old rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

N, WIDTH, STEPS = 20, 3, 5  # rows of more numbers than locals hold, and of an open length
rng = np.random.default_rng(2)
PLACES, NUMBERS = rng.integers(-9, 9, (STEPS, 4)), rng.normal(size=STEPS)
ROW, MATRIX = rng.normal(size=N), rng.normal(size=(N, WIDTH))
Change = Callable[[], Any]


def put(x: Any, index: Any, value: Any) -> Any:
    return nt.set_subtensor(x[index], value)


def added(x: Any, index: Any, value: Any) -> Any:
    return nt.inc_subtensor(x[index], value)


class Changes:
    """Changes of an array by random choices. `x`: the array on the way; `y`: as the step met it, and `z`: another state's."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_of(self, *options: Change) -> Any:
        return options[self.random.randrange(len(options))]()

    def below(self, n: int) -> int:
        return self.random.randrange(n)

    def value(self, i: Any, u: Any, x: Any, y: Any, z: Any) -> Any:
        """What one place gets: a number, or a row of a matrix."""
        k = i[self.below(4)]
        return self.one_of(
            lambda: x[k] * 0.5 + u,
            lambda: y[k] - x[i[0]],
            lambda: z[k],
            lambda: np.tanh(x[2:5]).sum(axis=0),
            lambda: x[x.shape[0] - 1] * u,
            lambda: 0.3 * u,
        )

    def condition(self, i: Any, u: Any, x: Any, z: Any) -> Any:
        return self.one_of(lambda: u > 0, lambda: x[i[1]].sum() > z[0].sum(), lambda: i[2] % 2 == 0)

    def change(self, i: Any, u: Any, x: Any, y: Any, z: Any, depth: int = 2) -> Any:
        """The array with something changed."""
        k, first = i[self.below(4)], i[0] % 5
        options: list[Change] = [
            lambda: put(x, k, self.value(i, u, x, y, z)),
            lambda: added(x, k, self.value(i, u, x, y, z)),
            lambda: put(put(x, i[0], y[i[1]]), i[1], x[i[0]]),
            lambda: put(x, slice(3, 8), y[2:7] * 0.5 + x[3:8]),
            lambda: put(x, slice(first, first + 4), x[first + 1 : first + 5] + u),
            lambda: put(x, i, x[i] * 0.5 + y[0]),
            lambda: added(x, i[::-1], z[i]),
            lambda: np.where(self.condition(i, u, x, z), put(x, k, self.value(i, u, x, y, z)), x),
        ]
        if depth:
            options += [lambda: self.choice(i, u, x, y, z, depth), lambda: self.loop(i, u, x, y, z, depth)] * 4
        return self.one_of(*options)

    def choice(self, i: Any, u: Any, x: Any, y: Any, z: Any, depth: int) -> Any:
        """A choice between two changes, the array as it was, all of it changed, or another one."""
        sides: list[Change] = [lambda: self.change(i, u, x, y, z, depth - 1)] * 2
        sides += [lambda: x, lambda: x * 0.5 + u, lambda: put(x, i[1], z[i[0]]), lambda: z * u if self.below(3) == 0 else x + z]
        sides = self.random.sample(sides, len(sides))
        return nt.ifelse(self.condition(i, u, x, z), sides[0], sides[1])

    def loop(self, i: Any, u: Any, x: Any, y: Any, z: Any, depth: int) -> Any:
        """An inner loop that changes the array, which reads other arrays and parts of it, perhaps with a second state and an early end."""
        around = self.one_of(lambda: y, lambda: z, lambda: z[2:7], lambda: x, lambda: x[:5] * 2)
        rows = self.one_of(lambda: x[:3], lambda: x[4:7], lambda: y[1:4], lambda: z[:3])
        whole, second, ends, seed = self.below(5) == 0, self.below(3), self.below(4), self.below(10_000)

        def inner(k: Any, v: Any, w: Any, *others: Any) -> Any:
            a, changes = others[-1], Changes(seed)
            new = changes.one_of(
                *[lambda: changes.change(i + k, u, w, w, a if whole else w, depth - 1)] * 2,
                lambda: put(w, k, a[0] * v),
                lambda: put(w, k + 1, w[k] * 0.5 + v),
                lambda: put(w, i[0], a[k] * 0.5 + w[i[1]]),
                lambda: nt.ifelse(u > 0, put(w, i[k], v), w),
            )
            results = (new, others[0] * 0.9 + w[k]) if second == 0 else new
            return (results, ns.until(w[k].sum() > 1)) if ends == 0 else results

        start = [x, y[3] * 1.0] if second == 0 else x
        last = ns.scan(inner, [np.arange(3), rows], start, z if whole else around, keep_last=1, return_updates=False)
        return last[0] if second == 0 else last

    def changed(self, i: Any, u: Any, x: Any, z: Any) -> Any:
        y = x
        for _ in range(1 + self.below(3)):
            x = self.change(i, u, x, y, z)
        return x


def program(seed: int) -> Callable[..., Any]:
    """A loop of two such states in either order, with some further result, that may end early or keep other rows."""
    numbers = np.random.default_rng(seed + 1_000_000).integers(0, (2, 4, 4, 4, 2))
    n_states, end, further, keeps, turned = (int(n) for n in numbers)

    def step(i: Any, u: Any, x: Any, z: Any) -> Any:
        x, z = (z, x) if turned else (x, z)
        changes = Changes(seed)
        new = changes.changed(i, u, x, z)
        other = changes.changed(i, u, z, x) if n_states else z * 0.5 + x[i[0]].sum()
        extra = [x[i[0]].sum(), new[i[0]].sum() if further == 1 else x[1].sum(), (x * z).sum(), u][further]
        results = (other, new, extra) if turned else (new, other, extra)
        return (results, ns.until(x[i[3]].sum() > 1.5)) if end == 0 else results

    def run(i: Any, u: Any, x: Any, z: Any) -> Any:
        return ns.scan(step, [i, u], [x, z, None], return_updates=False, keep_last=1 if keeps or seed % 5 == 0 else None)

    return run


def assert_right(seed: int) -> None:
    """Compiled code gives what the interpreter gives, and writes into no argument."""
    run, x = program(seed), ROW if seed % 3 else MATRIX
    values = x, x[::-1] * 0.7
    if seed % 5 == 0:
        run, values = ns.vmap(run, in_axes=(None, None, 0, 0)), (np.stack([x, -x, x * x]), np.stack([x[::-1]] * 3))
    before = [value.copy() for value in values]
    compiled, plain = ns.jit(run), ns.jit(run, mode="python")
    for steps in (STEPS, 2):
        numbers = PLACES[:steps], NUMBERS[:steps]
        for one, other in zip(compiled(*numbers, *values), plain(*numbers, *values), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    for value, copy in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, copy)


@pytest.mark.parametrize("seed", wide(range(60), first=12))
def test_random_updates(seed: int) -> None:
    assert_right(seed)
