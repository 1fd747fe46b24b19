"""What tests of pickles send, in a module that other processes can import."""

from __future__ import annotations

import numba
import numpy as np

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit import cache

X = np.array([0.5, 1.5, 2.5])


@ns.scan
def path(y, rate):
    return y * rate


@ns.jit
def decorated(x):
    return np.tanh(x).sum()


@ns.custom_vjp
def doubled(x):
    return 2 * x


@numba.njit
def tripled(x):
    return 3.0 * x


def tripled_vjp(x, g):
    return 3.0 * g


outside = ns.external(tripled, vjp=tripled_vjp)


@ns.py_step
def by_python(x):
    return x + 1.0


@ns.as_written
def as_it_is(x):
    return x + 1.0


def cost(x):
    return (x**3).sum()


def weighted(x):
    return (x * weights).sum()


def moving(x):
    return path(outputs_info=x, non_sequences=0.5, n_steps=4)


weights = ns.shared(np.arange(3.0), name="weights")
v = nt.dvector("v")
stream = nt.random.RandomStream(7)
rows, updates = ns.scan(lambda w: {w: w + 1.0}, non_sequences=[weights], n_steps=2)


def called(f, x):
    """What a function gives in this process, and how many kernels it compiled."""
    known = {path.name for path in cache.cache_folder().glob("*.code")}
    result = np.asarray(f(x)).tolist()
    return result, len({path.name for path in cache.cache_folder().glob("*.code")} - known)
