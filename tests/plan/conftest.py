"""Every plan that a test of plans makes is legal as it is built, and as each loop pass leaves it."""

from __future__ import annotations

from typing import Any

import pytest
from plan_checks import of_changes

from numbascan import compile as stages
from numbascan.ir.check_loops import check_loops
from numbascan.plan.plan import Plan


@pytest.fixture(autouse=True)
def legal_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = stages.plan

    def watched(*arguments: Any) -> Plan:
        return plan(*arguments, watch=of_changes(lambda word, stage: check_loops(stage.function)))

    monkeypatch.setattr(stages, "plan", watched)
