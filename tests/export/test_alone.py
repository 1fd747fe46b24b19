"""Modules in a process that has neither numbascan nor SciPy give the numbers of the original."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

rng = np.random.default_rng(8)
xs, weights, more_weights = rng.normal(size=(25, 30)), rng.normal(size=(40, 40)) / 8, rng.normal(size=(40, 30)) / 8


@ns.scan
def two(x0, x1, a2, a1, b):
    a = 0.3 * a2 - 0.2 * a1 + np.tanh(x0) * x1
    return [a, b + a, a * a], ns.until(b > 1.5)


@ns.scan(keep_last=1)
def last(y, k):
    return y * k


@ns.scan
def rows(x, total):
    return total + x, np.sum(x)


@ns.scan
def congruential(s):
    return s * 6364136223846793005 + 1442695040888963407


@ns.scan
def cell(x, h, W, U):
    return np.tanh(W @ h + U @ x)


def loss(parameters, xs):
    h = cell(sequences=xs, outputs_info=np.zeros(40), non_sequences=(parameters["W"], parameters["U"]))
    return np.sum(h[-1] ** 2)


slope = ns.value_and_grad(loss)


def hailstone(n):
    (_, count), _ = ns.scan(
        lambda n, count: ([np.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1], {}, ns.until(n == 1)), outputs_info=[n, 0], n_steps=500
    )
    return count[-1]


lanes = ns.vmap(hailstone)


@ns.jit(name="systems")
def systems(a, b):
    return {"x": np.linalg.solve(a, b), "det": np.linalg.det(a)}


stream = nt.random.RandomStream(3)


@ns.scan
def walk(y):
    return y + stream.normal()


@ns.scan
def sizes(y):
    return y + stream.gamma(0.7)


outside, factor, held = rng.normal(size=5), 2.5, ns.shared(np.arange(3.0), name="held")


@ns.jit(name="captures")
def captures(x):
    return x[:5] * outside * factor, [x, None]


gamma_slopes = ns.jit(lambda x: (nt.digamma(x), nt.polygamma(1, x)), name="gamma_slopes")
places = np.array([1e-3, 0.7, 1.4616, 3.0, 40.0, -0.5, -7.3] * 3)

v, n = nt.dvector("v"), nt.iscalar("n")
shares = ns.function([v, n], [v * held, n], name="shares")


@dataclass
class Model:
    """exact: results are the same bits. again: how the original makes the call that the module makes."""

    exported: Any
    arguments: tuple[Any, ...]
    again: Callable[[], Any]
    exact: bool = True


def model(exported: Any, arguments: tuple[Any, ...], exact: bool = True, **keywords: Any) -> Model:
    """A function, called as its module is; or a loop, with the keywords of its call."""
    call = partial(exported, **keywords) if keywords else partial(exported, *arguments)
    return Model(exported, arguments, call, exact)


pair, ones = np.array([0.1, 0.2]), np.ones(30)
system = rng.normal(size=(20, 20)), rng.normal(size=20)
MODELS = {
    "two": model(
        two,
        (xs[:, 0], pair, 0.5),
        sequences={"input": xs[:, 0], "taps": [-1, 0]},
        outputs_info=[{"initial": pair, "taps": [-2, -1]}, 0.5, None],
    ),
    "last": model(last, (ones, 0.9, 100), outputs_info=ones, non_sequences=0.9, n_steps=100),
    "no_steps": model(rows, (np.ones((0, 20)), np.zeros(20)), sequences=np.ones((0, 20)), outputs_info=[np.zeros(20), None]),
    "congruential": model(congruential, (12345, 50), outputs_info=np.int64(12345), n_steps=50),
    "slope": model(slope, ({"W": weights, "U": more_weights}, xs), exact=False),
    "lanes": model(lanes, (np.arange(1, 100),)),
    "systems": model(systems, system, exact=False),
    "gamma_slopes": model(gamma_slopes, (places,), exact=False),
    "walk": model(walk, (0.0, 100), outputs_info=0.0, n_steps=100),
    "sizes": model(sizes, (0.0, 9), outputs_info=0.0, n_steps=9),
    "captures": model(captures, (xs[0],)),
    "shares": model(shares, (np.ones(3), 7)),
}

ALONE = """
import pickle, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numbascan", "scipy"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
sys.path.insert(0, sys.argv[1])
results = {}
with open(sys.argv[1] + "/arguments", "rb") as file:
    for name, (function, arguments) in pickle.load(file).items():
        results[name] = getattr(__import__("module_" + name), function)(*arguments)
assert not {"numbascan", "scipy"} & set(sys.modules)
with open(sys.argv[1] + "/results", "wb") as file:
    pickle.dump(results, file)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What gives, by model, what the module gives alone, and what the original gave at its next call."""
    return cache(lambda: run_alone(tmp_path_factory.mktemp("alone")))


def run_alone(folder):
    wanted, calls = {}, {}
    for name, model in MODELS.items():
        model.again()
        text = model.exported.export(folder / f"module_{name}.py").read_text(encoding="utf-8")
        calls[name] = text.splitlines()[0][3:].partition("(")[0], model.arguments
        wanted[name] = model.again()
    (folder / "arguments").write_bytes(pickle.dumps(calls))
    done = subprocess.run([sys.executable, "-I", "-W", "error", "-c", ALONE, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    given = pickle.loads((folder / "results").read_bytes())
    return {name: (given[name], wanted[name]) for name in MODELS}


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.exact])
def test_a_module_gives_the_bits_of_the_original(results, name):
    given, wanted = results()[name]
    _assert_alike(given, wanted, np.testing.assert_array_equal)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if not model.exact])
def test_what_goes_by_other_ways_gives_the_numbers_of_the_original(results, name):
    given, wanted = results()[name]
    _assert_alike(given, wanted, lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12))


def _assert_alike(given, wanted, compare):
    """The same structure, dtypes and shapes, and leaves that compare."""
    assert type(given) is type(wanted)
    if isinstance(wanted, dict):
        assert list(given) == list(wanted)
        given, wanted = list(given.values()), list(wanted.values())
    if isinstance(wanted, list | tuple):
        assert len(given) == len(wanted)
        for one, other in zip(given, wanted, strict=True):
            _assert_alike(one, other, compare)
    elif wanted is not None:
        assert (given.dtype, given.shape) == (wanted.dtype, wanted.shape)
        compare(given, wanted)
