"""Random programs give the same results by a plain Python loop, by the oracle and compiled. `run.py` here runs as many as one likes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from wide import wide

from random_programs.run import one, report

PARTS, LARGEST = 8, 2**29 - 1  # parts run side by side, each on seeds of its own

WAYS = (
    *(("called",), ("symbolic",), ("at_once",), ("out", "out python"), ("read", "read python"), ("jit",)),
    *(("odd", "odd python"), ("replaced", "replaced python"), ("twice", "twice python"), ("threads",), ("checked",)),
)


# Hypothesis draws the seed alone: drawing every choice, it makes many programs out of parts of one. `shrunk` makes a failure short.
fixed = settings(
    max_examples=15, derandomize=True, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("part", wide(range(PARTS), first=2))
@fixed
@given(seed=st.integers(0, LARGEST), ways=st.sampled_from(WAYS))
def test_random_programs_give_what_a_plain_loop_gives(part: int, seed: int, ways: tuple[str, ...]) -> None:
    _runs_without_a_difference(part * LARGEST + seed, ("python", *ways), gradients=False)


@pytest.mark.parametrize("part", wide(range(PARTS), first=2))
@settings(fixed, max_examples=7)
@given(seed=st.integers(0, LARGEST))
def test_random_programs_have_the_derivatives_that_differences_give(part: int, seed: int) -> None:
    _runs_without_a_difference(part * LARGEST + seed, (), gradients=True)


def _runs_without_a_difference(seed: int, ways: tuple[str, ...], gradients: bool) -> None:
    outcome = one(seed, ways, gradients)
    if outcome.label == "refused":
        reject()
    if outcome.label == "different":
        pytest.fail(report(seed, outcome, gradients, seconds=60))
