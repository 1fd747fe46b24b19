"""Random loops of which every result is exact in the dtypes and products that are written: another dtype or order of products is seen.

Numbers are small and whole, or such numbers times 2**660 (`huge`, about 1e200) or 2**-660 (`tiny`). The float32 numbers of `wide` have a
sum that float64 holds and float32 does not. So a sum has one value in any order, but in its own dtype alone; huge times huge is infinite,
tiny times tiny is 0; and what cancels within a term is lost where the term is taken apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

import numbascan as ns

N = 3
HUGE, TINY = 2.0**660, 2.0**-660
DTYPES = ("float64", "float32", "complex128", "complex64", "int64", "int32", "int8")
Makers = list[Callable[[], Any]]


class ExactSteps:
    """A function of arrays with loops in it, drawn by a seed. With `slopes` all but `wide` are float64.

    arguments: what it takes. floats: the numbers of those that have slopes.
    """

    def __init__(self, seed: int, slopes: bool = False) -> None:
        self.seed, self.slopes = seed, slopes
        chance, rng = random.Random(seed), np.random.default_rng(seed)
        self.n_rows = chance.choice((2, 4, 5))
        y, z, V = ("float64" if slopes else chance.choice(DTYPES) for _ in range(3))
        wide = np.array([3 * 2**28, 1, 1, -3 * 2**28, 2])[: self.n_rows, None] * np.array([1, -1, 2])

        def whole(*shape: int, dtype: str = "float64") -> Any:
            return rng.integers(-3, 4, size=shape).astype(dtype)

        rows, square = (self.n_rows, N), (N, N)
        seqs = [HUGE * whole(*rows), TINY * whole(*rows), wide.astype("float32"), *(whole(*rows, dtype=one) for one in ("float64", y, z))]
        self.n_seqs = len(seqs)
        self.arguments = [*seqs, whole(*square), whole(*square, dtype=V), np.array(HUGE), np.array(-TINY)]
        self.floats = tuple(k for k, array in enumerate(self.arguments) if array.dtype == "float64")

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """The results: of each loop the ends of its sums, and what is read of its traces."""
        chance = random.Random(self.seed)
        return tuple(result for _ in range(chance.choice((1, 2))) for result in self._loop(chance, arguments))

    def cost(self, *arguments: Any) -> Any:
        """The sum of all results; every argument counts in it."""
        scales = [1 / np.abs(array).max(initial=1e-300) for array in self.arguments]
        terms = [np.sum(array * 2.0 ** np.round(np.log2(scale))) for array, scale in zip(arguments, scales, strict=True)]
        return sum((value.sum() for value in self(*arguments)), start=sum(terms, start=0.0))

    def _loop(self, chance: random.Random, arguments: Sequence[Any]) -> list[Any]:
        sums = [chance.choice(("float64", "float64", "float32", "complex128")) for _ in range(chance.choice((1, 2)))]
        sums = ["float64" for _ in sums] if self.slopes else sums
        starts = [np.ones(N), *(np.arange(N * N).reshape(N, N).astype(dtype) for dtype in sums)]
        body = chance.getrandbits(32)

        def step(*values: Any) -> tuple[list[Any], list[Any]]:
            return self._step(random.Random(body), values, sums)

        states, traces = self._rows(step, arguments[: self.n_seqs], starts, arguments[self.n_seqs :])
        ends: Sequence[Callable[[Any], Any]] = (lambda rows: rows[-1], lambda rows: rows[-1, 1:], lambda rows: rows[-1].sum())
        parts: Sequence[Callable[[Any], Any]] = (lambda rows: rows.sum(axis=0), lambda rows: rows.sum(), lambda rows: rows[-1])
        return [chance.choice(ends)(rows) for rows in states] + [chance.choice(parts)(rows) for rows in traces]

    def _step(self, chance: random.Random, values: Sequence[Any], sums: Sequence[str]) -> tuple[list[Any], list[Any]]:
        """The next states, a vector and the sums, and what is traced."""
        huge, tiny, wide, x, y, z, h, *totals, W, V, k_huge, k_tiny = values

        def one() -> Any:
            return chance.choice((x, y, z, h))

        products: Makers = [
            lambda: np.outer(one(), one()),
            lambda: one()[:, None] * one(),
            lambda: np.outer(huge, tiny),
            lambda: k_huge * np.outer(tiny, one()),
            lambda: k_tiny * (k_huge * np.outer(huge, tiny)),
            lambda: 2 * np.outer(one(), one()),
            lambda: np.outer(huge, x) + np.outer(-huge, x) + np.outer(one(), one()),
            lambda: np.outer(one() @ W, one()),
            lambda: np.einsum("si,sj->ij", np.stack([one(), one()]), np.stack([one(), x])),
        ]
        new = []
        for total, dtype in zip(totals, sums, strict=True):
            in_doubles: Makers = [lambda: np.outer(wide, one()), lambda: np.outer(wide, wide / wide)] if dtype != "float32" else []
            for term in [chance.choice([*products, *in_doubles])() for _ in range(chance.choice((1, 2, 3)))]:
                total = total + (term if dtype == "complex128" else term.real)
            new.append(total.astype(dtype))
        M = chance.choice((W, V))
        traces: Makers = [
            lambda: one() @ M,
            lambda: M @ one(),
            lambda: tiny @ (k_huge * W),
            lambda: (huge * k_tiny) @ M,
            lambda: np.outer(one(), one()),
            lambda: one() * one(),
            lambda: one() @ one(),
        ]
        return [np.clip((one() @ M).real + x, -2.0, 2.0), *new], [chance.choice(traces)() for _ in range(2)]

    def _rows(
        self, step: Callable[..., Any], seqs: Sequence[Any], starts: Sequence[Any], fixed: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """The rows of states and of traces. Arrays go through a loop of Python's, without numbascan."""
        if any(hasattr(array, "node") for array in (*seqs, *fixed)):  # traced
            infos = [*starts, None, None]
            outputs = ns.scan(lambda *values: [*chain(*step(*values))], list(seqs), infos, list(fixed), return_updates=False)
            return outputs[: len(starts)], outputs[len(starts) :]
        states, rows = starts, []
        for t in range(self.n_rows):
            states, traces = step(*(seq[t] for seq in seqs), *states, *fixed)
            rows.append(([np.asarray(state, start.dtype) for state, start in zip(states, starts, strict=True)], traces))
        return tuple([np.stack(one) for one in zip(*part, strict=True)] for part in zip(*rows, strict=True))
