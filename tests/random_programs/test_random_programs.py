"""Random programs give the same results by a plain Python loop, by the oracle and compiled. `run.py` here runs as many as one likes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from random_programs.compare import differences
from random_programs.draw import draw_program
from random_programs.generate import RandomChooser, Refused
from random_programs.run import known_of
from random_programs.shrink import shrunk

WAYS = (("called",), ("symbolic",), ("at_once",), ("out", "out python"), ("read", "read python"), ("jit",))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


# Hypothesis draws the seed alone: drawing every choice, it makes many programs out of parts of one. `shrunk` makes a failure short.
@settings(max_examples=60, derandomize=True, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1), st.sampled_from(WAYS))
def test_random_programs_give_what_a_plain_loop_gives(seed: int, ways: tuple[str, ...]) -> None:
    try:
        found = list(differences(draw_program(RandomChooser(seed)), ["python", *ways], known_of(seed)))
    except Refused:
        reject()
    real = [difference for difference in found if not difference.is_open]
    if real:
        source, text = shrunk(seed, real[0].way, known_of(seed), seconds=60)
        pytest.fail(f"the program of seed {seed} differs: {'; '.join(map(str, real))}\nmade short: {text}\n{source}")
