"""Random scans in which there is something to rewrite: products with fixed matrices, traces that nobody or few read, equal loops."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt

FIXED = ("W", "V", "a", "k", "W")  # what a step is given at every step
N = 3  # the length of every vector; matrices are N x N, so that everything fits everything


class Steps:
    """A function of arrays with scans in it, drawn by a seed. `arguments` are what it takes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.n_rows = self.chance.choice((2, 3, 5))
        kinds = {"x": (self.n_rows + 3, N), "y": (self.n_rows + 3, N), "W": (N, N), "V": (N, N), "a": (N,), "b": (N,), "k": ()}
        self.arguments = [np.asarray(rng.normal(size=shape) / 2) for shape in kinds.values()]

    def __call__(self, x: Any, y: Any, W: Any, V: Any, a: Any, b: Any, k: Any) -> Any:
        """All results that somebody reads, as one number."""
        chance = random.Random(self.seed)
        total: Any = sum(value.sum() for value in (x, y, W, V, a, b, k)) / 10  # so that every slope is defined
        given = {"x": x, "y": y, "W": W, "V": V, "a": a, "b": b, "k": k}
        again = chance.getrandbits(32)  # some programs have the same loop twice, or loops that differ in little
        for _ in range(chance.choice((1, 1, 2, 3))):
            total = total + _scan(random.Random(again) if chance.random() < 0.3 else chance, given, self.n_rows)
        return total


def _scan(chance: random.Random, given: dict[str, Any], n_rows: int) -> Any:
    """What is read of the results of one scan."""
    seqs = [{"input": given[name], "taps": chance.sample((-1, 0, 1, 2), chance.choice((1, 1, 2)))} for name in ("x", "y")]
    seqs = seqs[: chance.choice((1, 1, 2))]
    stacked = np.stack([given["a"], given["b"]])
    infos = [
        chance.choice(
            (*(None, None, given["a"], given["b"], given["W"]), {"initial": stacked, "taps": [-2]}, {"initial": stacked, "taps": [-2, -1]})
        )
        for _ in range(chance.choice((1, 2, 3)))
    ]
    body, ends = chance.getrandbits(32), chance.random() < 0.2
    results = ns.scan(
        lambda *reads: _step(random.Random(body), reads, infos, ends),
        sequences=seqs,
        outputs_info=infos,
        non_sequences=[given[name] for name in FIXED],
        n_steps=n_rows if chance.random() < 0.6 else chance.choice((1, n_rows - 1, None)),
        go_backwards=chance.random() < 0.2,
        return_updates=False,
        return_list=True,
    )
    return sum((_read(chance, rows) for rows in results), start=0.0 * given["k"])


def _read(chance: random.Random, rows: Any) -> Any:
    readers: list[Callable[[Any], Any]] = [
        lambda rows: 0.0,
        lambda rows: rows[-1].sum(),
        lambda rows: (rows[-2:] ** 2).sum(),
        lambda rows: rows.sum(),
        lambda rows: np.sin(rows).sum(),
        lambda rows: rows[0].sum() + rows[::2].sum(),
        lambda rows: (rows[-1] * rows[0]).sum(),
    ]
    ends = [lambda rows: rows[-1].sum(), lambda rows: rows[-1, 0] @ rows[-1, 1]]
    return chance.choice(ends if rows.ndim == 3 and chance.random() < 0.5 else readers)(rows)


def _step(chance: random.Random, reads: tuple[Any, ...], infos: list[Any], ends: bool) -> Any:
    """A step over vectors, matrices and one number: values are combined until there are enough."""
    vectors = [read for read in reads if read.ndim == 1]
    matrices = [read for read in reads if read.ndim == 2]
    number = next(read for read in reads if read.ndim == 0)
    for _ in range(chance.choice((2, 4, 7))):
        v, w, M = chance.choice(vectors), chance.choice(vectors), chance.choice(matrices)
        makers: list[Callable[[], Any]] = [
            *(lambda v=v, M=M: v @ M, lambda v=v, M=M: M @ v) * 2,
            lambda v=v, w=w: np.tanh(v) + w,
            lambda v=v, w=w: v * w,
            lambda v=v, M=M: np.stack([v, 2 * v]) @ M @ np.ones(N)[:, None] @ np.ones((1, N)),
            lambda v=v: np.exp(number / 4) * v,
            lambda v=v: np.concatenate([v[1:], v[:1]]),
        ]
        made = chance.choice(makers)()
        vectors.append(made if made.ndim == 1 and chance.random() < 0.4 else np.tanh(made.reshape(-1, N)[0]))
        if chance.random() < 0.4:
            matrices.append(
                chance.choice((lambda M=M: M.T, lambda M=M: np.sin(M), lambda v=v, w=w: np.outer(v, w), lambda M=M, v=v: M + v))()
            )
    kind = len(vectors) % 3
    if kind == 1:
        vectors[-1] = np.linalg.solve(3 * np.eye(N) + np.tanh(reads[-1]), vectors[-1])
    elif kind == 2:
        v, w = vectors[-1], vectors[0]
        vectors[-1] = np.where(v[0] > w[0], nt.set_subtensor(v[1:], w[:2] * v[0]), v)
    own = list(reads[len(reads) - len(FIXED) - sum(map(_n_reads, infos)) :])
    outputs = [_output(chance, info, [own.pop(0) for _ in range(_n_reads(info))], vectors, matrices) for info in infos]
    traces = [k for k, info in enumerate(infos) if info is None]
    vector_states = [k for k, info in enumerate(infos) if k not in traces and (isinstance(info, dict) or info.ndim == 1)]
    if kind == 0 and traces and vector_states:
        outputs[vector_states[0]] = new = nt.set_subtensor(outputs[vector_states[0]][1], 0.1 * vectors[0][0])
        outputs[traces[0]] = outputs[traces[0]] + new[1] * new[2]
    return (outputs, ns.until(vectors[-1][0] > 0.6)) if ends else outputs


def _n_reads(info: Any) -> int:
    """How many values a step is given of an output."""
    return 0 if info is None else len(info["taps"]) if isinstance(info, dict) else 1


def _output(chance: random.Random, info: Any, own: list[Any], vectors: list[Any], matrices: list[Any]) -> Any:
    """A trace of anything, a vector that stays small, or a sum of products."""
    v, w = chance.choice(vectors), chance.choice(vectors)
    if info is None:
        return chance.choice((v, w, chance.choice(matrices), v @ w))
    if isinstance(info, dict) or info.ndim == 1:
        return np.tanh(v)
    return chance.choice((lambda: own[0] + np.outer(v, w), lambda: np.outer(v, w) + own[0] + w, lambda: np.tanh(own[0] + v)))()
