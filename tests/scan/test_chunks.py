"""A run cut into pieces is the run in one piece: final states are the next initial ones, streams go on, files hold all there is."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

ODD = (1, 7, 256, 300, 3, 90)
W = np.random.default_rng(0).normal(size=(12, 12)) / 4
RNG = np.random.default_rng(1)


@pytest.fixture
def srng():
    return nt.random.RandomStream(5, name="srng")


def in_pieces(step, initial, lengths, sequence=None, taps=(-1,), **options):
    """The rows of calls of these lengths, one after the other."""
    rows, state, start, depth = [], initial, 0, -min(taps)
    for length in lengths:
        given = None if sequence is None else sequence[start : start + length]
        info = state if taps == (-1,) else {"initial": state, "taps": list(taps)}
        rows.append(step(given, info, n_steps=length, **options))
        state = rows[-1][-1] if taps == (-1,) else np.concatenate([state, rows[-1]])[-depth:]
        start += length
    return np.concatenate(rows)


DRAWS = {
    "normal": (lambda s, x: 0.99 * x + s.normal(), np.float64(0)),
    "uniform": (lambda s, x: 0.9 * x + s.uniform(-1, 1, size=3), np.zeros(3)),
    "product": (lambda s, x: np.tanh(W @ x + s.normal(size=12)), np.zeros(12)),
    "rejection": (lambda s, x: 0.5 * x + s.gamma(1.5, size=2) + s.poisson(3.0), np.zeros(2)),
    "single": (lambda s, x: np.float32(0.5) * x + s.normal(size=3, dtype="float32"), np.zeros(3, "float32")),
    "growth": (lambda s, x: x * np.exp(0.01 * s.normal() - 5e-5), np.float64(1)),
    "counts": (lambda s, x: x + s.binomial(100, 0.1, size=5), np.zeros(5, "int64")),
    "choice": (lambda s, x: np.where(s.uniform() < 0.5, x * 0.5, np.sin(x) + 1), np.float64(0.3)),
}


FIRST = [*((name, "numba") for name in ("normal", "product", "rejection", "counts", "choice")), ("uniform", "python")]


@pytest.mark.parametrize("name, mode", wide(dict.fromkeys([*FIRST, *product(DRAWS, ("numba", "python"))]), first=len(FIRST)))
def test_steps_that_draw(srng, name, mode):
    draw, initial = DRAWS[name]
    step = ns.scan(lambda x: draw(srng, x), mode=mode)
    pieces = in_pieces(step, initial, ODD)
    srng.seed(5)
    np.testing.assert_array_equal(pieces, step(outputs_info=initial, n_steps=sum(ODD)))


SEQUENCES = {
    "sum": (lambda u, x: x + u, ODD),
    "state": (lambda u, x: np.tanh(x * 0.5 + u), ODD),
    "functions": (lambda u, x: 0.3 * x + np.exp(-u * u) / (1 + np.sin(u) ** 2) + np.log1p(u * u) + np.cbrt(u), ODD),
    "two functions": (lambda u, x: np.where(u > 0, x * np.exp(-u), x + np.log(1 + u * u)), ODD),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_steps_that_read_sequences(name):
    function, lengths = SEQUENCES[name]
    step, u = ns.scan(function), RNG.normal(size=sum(lengths))
    np.testing.assert_array_equal(in_pieces(step, np.float64(0), lengths, u), step(u, np.float64(0)))


def test_functions_of_draws_and_sequences(srng):
    step, u = ns.scan(lambda u, x: 0.9 * x + np.exp(srng.normal(size=3) + u)), RNG.normal(size=sum(ODD))
    pieces = in_pieces(step, np.zeros(3), ODD, u)
    srng.seed(5)
    np.testing.assert_array_equal(pieces, step(u, np.zeros(3)))


def test_states_with_taps(srng):
    step, initial = ns.scan(lambda a, b: 0.5 * a + 0.3 * b + srng.normal()), np.array([0.1, 0.2])
    pieces = in_pieces(step, initial, ODD, taps=(-2, -1))
    srng.seed(5)
    whole = {"initial": initial, "taps": [-2, -1]}
    np.testing.assert_array_equal(pieces, step(outputs_info=whole, n_steps=sum(ODD)))
    srng.seed(5)
    rows = step(outputs_info=whole, n_steps=50, keep_last=2)
    np.testing.assert_array_equal(step(outputs_info={"initial": rows, "taps": [-2, -1]}, n_steps=10), pieces[50:60])


def test_the_last_rows_alone_are_those_of_a_run_that_stores_all(srng):
    step, x = ns.scan(lambda x: 0.9 * x + np.exp(srng.normal(size=3))), np.zeros(3)
    pieces = []
    for length in ODD:
        x = step(outputs_info=x, n_steps=length, keep_last=1)
        pieces.append(x)
    srng.seed(5)
    np.testing.assert_array_equal(pieces, step(outputs_info=np.zeros(3), n_steps=sum(ODD))[np.cumsum(ODD) - 1])


def test_shared_variables_and_out(srng):
    w, path = ns.shared(1.0, "w"), np.empty(100)

    @ns.scan
    def step(x):
        return x * 0.5 + w, {w: w * 0.9 + srng.uniform()}

    whole = step(outputs_info=np.float64(0), n_steps=100)
    srng.seed(5)
    w.set_value(1.0)
    x = np.float64(0)
    for start, end in ((0, 1), (1, 60), (60, 100)):
        x = step(outputs_info=x, n_steps=end - start, out=path[start:end])[-1]
    np.testing.assert_array_equal(path, whole)


def test_functions_with_several_places_that_draw():
    def make(srng):
        x, n = nt.dscalar("x"), nt.lscalar("n")
        path, updates = ns.scan(lambda x: x + srng.normal(), outputs_info=x, n_steps=n)
        return ns.function([x, n], [path, srng.uniform(size=2)], updates={**updates, **srng.updates()})

    one, other = nt.random.RandomStream(5), nt.random.RandomStream(6)
    run, continued = make(one), make(other)
    run(0.0, 4)
    for state, stored in zip(other.states, [state.get_value() for state in one.states], strict=True):
        state.set_value(stored)
    for found, expected in zip(continued(1.0, 3), run(1.0, 3), strict=True):
        np.testing.assert_array_equal(found, expected)


SCRIPT = """
import os, sys
import numpy as np
import numbascan as ns, numbascan.tensor as nt

srng = nt.random.RandomStream(int(sys.argv[2]))
w = ns.shared(np.ones(3), "w")

@ns.scan(keep_last=1)
def step(x, total):
    x = 0.9 * x + w * srng.gamma(2.0, size=3)
    return [x, total + x.sum()], {w: 0.5 * w + srng.uniform(size=3)}

states = [np.zeros(3), np.float64(0)]
if os.path.exists(sys.argv[1]):
    with np.load(sys.argv[1]) as stored:
        states = [stored["x"], stored["total"]]
        srng.state.set_value(stored["stream"])
        w.set_value(stored["w"])
for length in map(int, sys.argv[3:]):
    states = step(outputs_info=states, n_steps=length)
np.savez(sys.argv[1], x=states[0], total=states[1], stream=srng.state.get_value(), w=w.get_value())
"""


def test_a_run_goes_on_in_another_process(tmp_path):
    script, one, pieces = tmp_path / "run.py", tmp_path / "one.npz", tmp_path / "pieces.npz"
    script.write_text(SCRIPT)
    for arguments in ([one, 5, 700], [pieces, 5, 100, 1], [pieces, 6, 299, 300]):
        subprocess.run([sys.executable, script, *map(str, arguments)], check=True)
    with np.load(one) as whole, np.load(pieces) as parts:
        for name in ("x", "total", "stream", "w"):
            np.testing.assert_array_equal(parts[name], whole[name])
