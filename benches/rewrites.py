"""What each rewrite gains: times with all rewrites beside times without it, by turns: `python benches/rewrites.py [name …]`.

The workloads are steps as a user writes them; results with and without must agree to 1e-6. Time is that of the thread, so that other
work on the machine counts little; set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt

ROUNDS, SECONDS = 7, 0.1  # turns of both; of runs of one of them per turn
rng = np.random.default_rng(1)


def weights(count: int, n: int, m: int) -> tuple[Any, ...]:
    """Matrices that keep vectors about as long as they are."""
    return tuple(rng.normal(size=(n, m)) / n**0.5 / 2 for _ in range(count))


def scan(step: Callable[..., Any], *given: Any, **options: Any) -> Any:
    return ns.scan(step, *given, return_updates=False, **options)


# workloads: a function, its arguments, and those with respect to which it is differentiated ---------------------------


def read_out() -> tuple[Any, ...]:
    def cost(A, B, C, x, h):
        def step(x, h, A, B, C):
            h = np.tanh(x @ A + h @ B)
            return h, h @ C

        return (scan(step, x, [h, None], [A, B, C])[1] ** 2).sum()

    return cost, (*weights(3, 64, 64), rng.normal(size=(2000, 64)), np.zeros(64)), (0, 1, 2)


def layers() -> tuple[Any, ...]:
    def cost(A, B, C, D, x, h):
        def step(x, h, g, A, B, C, D):
            h = np.tanh(x @ A + h @ B)
            return h, np.tanh(h @ C + g @ D)

        return (scan(step, x, [h, h], [A, B, C, D])[1] ** 2).sum()

    return cost, (*weights(4, 64, 64), rng.normal(size=(1000, 64)), np.zeros(64)), (0, 1, 2, 3)


def lstm() -> tuple[Any, ...]:
    def cost(Wx, Wh, b, x, h, c):
        def step(x, h, c, Wx, Wh, b):
            z = x @ Wx + h @ Wh + b
            i, f, g, o = (z[k * 128 : (k + 1) * 128] for k in range(4))
            c = nt.sigmoid(f) * c + nt.sigmoid(i) * np.tanh(g)
            return nt.sigmoid(o) * np.tanh(c), c

        return scan(step, x, [h, c], [Wx, Wh, b])[0].sum()

    return cost, (*weights(2, 128, 512), rng.normal(size=512), rng.normal(size=(200, 128)), np.zeros(128), np.zeros(128)), (0, 1, 2)


def rotation() -> tuple[Any, ...]:
    """Implicit steps of a linear system: the matrix to be inverted is put together in the step."""

    def path(A, k, h):
        return (scan(lambda h, A, k: np.linalg.inv(np.eye(40) - k * (A - A.T)) @ h, None, h, [A, k], 2000) ** 2).sum()

    return path, (weights(1, 40, 40)[0], 0.1, rng.normal(size=40)), (0, 1)


def heat() -> tuple[Any, ...]:
    """Implicit steps of a heat equation: one matrix, another right-hand side at every step."""

    def path(A, h):
        return (scan(lambda h, A: np.linalg.solve(A, h + 0.1 * np.tanh(h)), None, h, A, 2000) ** 2).sum()

    n = 64
    return path, (np.eye(n) * 1.4 - 0.2 * (np.eye(n, k=1) + np.eye(n, k=-1)), rng.normal(size=n)), (0, 1)


def averages() -> tuple[Any, ...]:
    def product(a, b, x):
        one, other = (scan(lambda x, s, k: s + k * (x - s), x, 0.0, k)[-1] for k in (a, b))
        return one * other

    return product, (0.1, 0.2, rng.normal(size=100_000)), (0, 1)


def tangents() -> tuple[Any, ...]:
    def both(A, B, x):
        def total(A, B):
            return scan(lambda x, h, A, B: np.tanh(x @ A + h @ B), x, np.zeros(64), [A, B]).sum()

        value, tangent = ns.jvp(total, (A, B), (A, B))
        return value + tangent

    return both, (*weights(2, 64, 64), rng.normal(size=(1000, 64))), ()


def twice() -> tuple[Any, ...]:
    def path(x):
        h, g = scan(lambda x, h, g: (np.sin(h + x), np.sin(g + x)), x, [nt.constant(np.ones(200))] * 2)
        return (h[-1] * g[-1]).sum()

    return path, (rng.normal(size=(2000, 200)),), (0,)


def hebbian() -> tuple[Any, ...]:
    def end(x, y, S):
        return (scan(lambda a, b, S: S + np.outer(a, b), [x, y], S)[-1] ** 2).sum()

    return end, (*rng.normal(size=(2, 2000, 64)), *weights(1, 64, 64)), (0, 1)


def likelihood() -> tuple[Any, ...]:
    def garch(p, r):
        def step(r, v, p):
            return p[0] + p[1] * r * r + p[2] * v, np.log(v) + r * r / v

        return scan(step, r, [1e-4, None], p)[1].sum()

    return garch, (np.array([1e-6, 0.1, 0.85]), rng.normal(size=100_000) * 0.01), (0,)


CASES = {
    "merge_scans": (averages, tangents, read_out),
    "merge_inouts": (twice,),
    "remove_unused": (read_out, layers),
    "factor_once": (heat,),
    "push_out_non_seq": (rotation,),
    "push_out_seq": (read_out, lstm),
    "sum_in_loop": (likelihood,),
    "push_out_dot": (hebbian,),
    "push_out_output": (read_out, layers),
}


def compared(f: Callable[..., Any], arguments: tuple[Any, ...], without: str) -> tuple[float, float]:
    """Seconds with all rewrites, and without one."""
    candidates = [ns.jit(f, mode=ns.Mode(without=names)) for names in ((), (without,))]
    first, second = (candidate(*arguments) for candidate in candidates)
    for a, b in zip(leaves(first), leaves(second), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max())
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for k, candidate in enumerate(candidates):
            end = thread_time() + SECONDS
            while (start := thread_time()) < end:
                candidate(*arguments)
                best[k] = min(best[k], thread_time() - start)
    return best[0], best[1]


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, tuple | list):
        for part in result:
            yield from leaves(part)
    else:
        yield np.asarray(result)


def main(chosen: list[str]) -> None:
    print(f"{'rewrite':<18}{'workload':<24}{'with':>12}{'without':>12}{'ratio':>8}")
    for name, workloads in CASES.items():
        for make in workloads if not chosen or name in chosen else ():
            f, arguments, wrt = make()
            for title, g in ((make.__name__, f), (f"{make.__name__}, gradient", ns.value_and_grad(f, wrt).__wrapped__ if wrt else None)):
                if g is not None:
                    ours, other = compared(g, arguments, name)
                    print(f"{name:<18}{title:<24}{ours * 1e3:>9.3f} ms{other * 1e3:>9.3f} ms{ours / other:>8.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
