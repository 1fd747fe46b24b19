"""Effective samples per second of the Nile's local level model in PyMC: the likelihood by numbascan, and by PyTensor's own scan.

Not part of `tox`: it needs PyMC, nutpie and ArviZ (`pip install numbascan[pytensor] pymc nutpie`). `python benches/pymc_nile.py`
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.metadata import version

import arviz as az
import numpy as np
import nutpie
import pymc as pm
import pytensor
import pytensor.tensor as pt

import numbascan as ns
from numbascan.demo import nile

DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
NAMES = ("log_level", "log_observation")
FLOW = np.asarray(nile()[1])


def log_likelihood(log_level, log_observation):
    """The local level model by the Kalman filter, from a vague start."""

    def step(value, level, variance, level_variance, observation_variance):
        total = variance + observation_variance
        error, gain = value - level, variance / total
        term = -0.5 * (np.log(2 * np.pi * total) + error**2 / total)
        return [level + gain * error, variance * (1 - gain) + level_variance, term]

    fixed = np.exp(2 * log_level), np.exp(2 * log_observation)
    _, _, terms = ns.scan(step, FLOW, [FLOW[0], 1e5, None], fixed, return_updates=False)
    return terms.sum()


def by_pytensor(log_level, log_observation):
    """The same by PyTensor's scan."""

    def step(value, level, variance, level_variance, observation_variance):
        total = variance + observation_variance
        error, gain = value - level, variance / total
        term = -0.5 * (pt.log(2 * np.pi * total) + error**2 / total)
        return [level + gain * error, variance * (1 - gain) + level_variance, term]

    fixed = [pt.exp(2 * log_level), pt.exp(2 * log_observation)]
    start = [pt.constant(FLOW[0], dtype="float64"), pt.constant(1e5, dtype="float64"), None]
    rows = pytensor.scan(step, pt.constant(FLOW), start, fixed, return_updates=False)
    return rows[2].sum()


def model_with(likelihood):
    with pm.Model() as model:
        log_level = pm.Normal("log_level", 3.5, 1.0)
        log_observation = pm.Normal("log_observation", 4.8, 1.0)
        pm.Potential("flow", likelihood(log_level, log_observation))
    return model


def main() -> None:
    warnings.simplefilter("ignore")
    names = ("numbascan", "pymc", "pytensor", "nutpie", "numba", "numpy")
    print(", ".join(f"{name} {version(name)}" for name in names if name != "numbascan"))
    for label, likelihood in (("numbascan", ns.interop.pytensor.as_op(log_likelihood)), ("PyTensor's scan", by_pytensor)):
        start = time.perf_counter()
        compiled = nutpie.compile_pymc_model(model_with(likelihood))
        nutpie.sample(compiled, draws=20, tune=20, chains=1, cores=1, seed=1, progress_bar=False)
        made = time.perf_counter()
        trace = nutpie.sample(compiled, draws=DRAWS, tune=1000, chains=1, cores=1, seed=3, progress_bar=False)
        seconds = time.perf_counter() - made
        ess = az.ess(trace)
        least = min(float(ess[name]) for name in NAMES)
        means = [round(float(trace.posterior[name].mean()), 3) for name in NAMES]
        rate = f"{least:.0f} effective samples in {seconds:.2f} s: {least / seconds:.0f} a second"
        print(f"{label:16} compiled in {made - start:.1f} s; {rate}")
        print(f"{'':16} means {means}")


if __name__ == "__main__":
    main()
