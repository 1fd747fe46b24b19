"""Random programs give the same results by a plain Python loop, by the oracle and compiled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st

from random_programs.compare import differences
from random_programs.draw import draw_program
from random_programs.generate import Refused

WAYS = (("called",), ("symbolic",), ("at_once",), ("out", "out python"), ("read", "read python"), ("jit",))
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example]


class Drawn:
    """Choices that Hypothesis makes, and can make again."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def below(self, n: int) -> int:
        return int(self.draw(st.integers(0, n - 1)))


@st.composite
def programs(draw: Any) -> Any:
    """Programs, as source when a test fails."""
    try:
        return draw_program(Drawn(draw))
    except Refused:
        reject()


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@settings(max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=CHECKS)
@given(programs(), st.sampled_from(WAYS))
def test_random_programs_give_what_a_plain_loop_gives(program: Any, ways: tuple[str, ...]) -> None:
    note(program.source())
    try:
        found = list(differences(program, ["python", *ways]))
    except Refused:
        reject()
    assert [str(difference) for difference in found if not difference.is_open] == []
