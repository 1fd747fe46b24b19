"""The patterns of cliffs.py that have a counterpart in JAX, each beside it: `python benches/cliffs_in_jax.py [pattern …]`.

JAX's program is one `jax.jit` around `lax.scan` in float64, of a gradient around `jax.grad`. Both must give the same numbers to 1e-6
before anything is timed. The two take turns; what counts is the median of the ratios.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import cliffs
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from timing import leaves, same

import numbascan as ns

jax.config.update("jax_enable_x64", True)


def last(step: Callable[..., Any], start: Any, xs: Any = None, length: int | None = None) -> Any:
    """The last state; `step(x, state)`, or `step(state)` where there are no sequences."""
    return lax.scan(lambda s, x: (step(s) if xs is None else step(x, s), None), start, xs, length)[0]


def best_path(moves, seen):
    def step(best, e):
        ways = best[:, None] + moves
        best = ways.max(axis=0) + e
        return best, (best, ways.argmax(axis=0))

    return lax.scan(step, jnp.zeros(256), seen)[1]


def diffused(x):
    def step(x):
        return jnp.concatenate([x[:1], jnp.sin(x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])), x[-1:]])

    return (last(step, x, length=2_000) ** 2).sum()


def on_a_ring(x):
    return last(lambda x: x + 0.1 * (jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)), x, length=cliffs.STEPS)


def on_a_sine_ring(x):
    return (last(lambda x: jnp.sin(x + 0.1 * (jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1))), x, length=2_000) ** 2).sum()


def embedded(E, W):
    return (last(lambda k, h: jnp.tanh(h @ W + E[k]), jnp.zeros(16), cliffs.TOKENS) ** 2).sum()


def learnt(q, ks, us):
    return last(lambda x, q: q.at[x[0]].set(q[x[0]] + 0.3 * (x[1] - q[x[0]])), q, (ks, us))


def set_slices(u, x):
    def step(given, x):
        part = lax.dynamic_slice(x, (given[0],), (10,))
        return lax.dynamic_update_slice(x, jnp.sin(part) * given[1], (given[0],))

    return (last(step, x, (cliffs.PLACES % 990, u)) ** 2).sum()


PATTERNS: dict[str, Callable[..., Any]] = {
    "tanh of 12": lambda us, x: last(lambda u, x: jnp.tanh(0.9 * x + u), x, us),
    "roll": on_a_ring,
    "swaps of two elements": lambda x, at, to: last(lambda p, x: x.at[p[0]].set(x[p[1]]).at[p[1]].set(x[p[0]]), x, (at, to)),
    "an element, perhaps": lambda x, us, at: last(lambda p, x: jnp.where(p[0] > 0, x.at[p[1]].set(p[0]), x), x, (us, at)),
    "one of four elements": learnt,
    "the best path": best_path,
    "batch of 16 x 16": lambda a, x: last(lambda x: a @ x, x, length=20),
    "batch of 64 x 64": lambda a, x: last(lambda x: a @ x, x, length=20),
    "one matrix, many systems": lambda x, a: last(lambda x: jnp.linalg.solve(a, x + 0.1 * jnp.tanh(x)), x, length=200),
    "softmax of 2,000,000": jax.nn.softmax,
    "sort of 1000": jnp.sort,
    "median of 10000": jnp.median,
}
GRADIENTS: dict[str, Callable[..., Any]] = {
    "rows of a table": embedded,
    "elements of a season": lambda p: last(lambda k, x: 0.99 * p[k % 365] * x + 0.01, 1.0, np.arange(20_000)),
    "a ring that is set": lambda u, x: (last(lambda g, x: x.at[g[0] % 5_000].set(g[1] * g[1]), x, (cliffs.PLACES, u)) ** 2).sum(),
    "rows that are set": lambda u, x: (last(lambda g, x: x.at[g[0]].set(g[1] * g[1]), x, (cliffs.ROW, u)) ** 2).sum(),
    "elements that are added": lambda u, x: (
        last(lambda g, x: x.at[g[0] % 5_000].add(g[1] * x[(7 * g[0]) % 5_000]), x, (cliffs.PLACES, u)) ** 2
    ).sum(),
    "slices that are set": set_slices,
    "a row that is pushed on": lambda u, x: (last(lambda u, x: jnp.concatenate([x[1:], jnp.tanh(x[:1]) + u * x[5:6]]), x, u) ** 2).sum(),
    "neighbours, by concatenate": diffused,
    "neighbours, by roll": on_a_sine_ring,
}


def beside(name: str, ours: Callable[..., Any], in_jax: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Prints the times of the two and how many times ours JAX takes."""
    given = tuple(map(jnp.asarray, arguments))

    def theirs(*_: Any) -> Any:
        return jax.block_until_ready(in_jax(*given))

    found = [[np.asarray(leaf) for leaf in leaves(run(*arguments))] for run in (ours, theirs)]
    if not same(*found):
        raise SystemExit(f"{name}: the numbers differ")
    mine, others, ratio = cliffs.by_turns(ours, theirs, arguments)
    print(f"{name:<45}{mine * 1e6:>10.1f} us{others * 1e6:>12.1f} us{1 / ratio:>9.2f}", flush=True)


def main(chosen: list[str]) -> None:
    print(f"{'pattern':<45}{'numbascan':>13}{'JAX':>15}{'JAX/ours':>9}")
    for name, in_jax in PATTERNS.items():
        ours, _, arguments, _ = cliffs.PATTERNS[name]
        if not chosen or name in chosen:
            beside(name, ns.jit(ours), jax.jit(in_jax), arguments)
    for name, in_jax in GRADIENTS.items():
        cost, arguments, _ = cliffs.GRADIENTS[name]
        wrt = tuple(range(len(arguments)))
        if not chosen or name in chosen:
            beside(f"{name}, gradient", ns.jit(ns.grad(cost, wrt)), jax.jit(jax.grad(in_jax, wrt)), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
