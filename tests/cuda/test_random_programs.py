"""Random programs give on the GPU what a plain Python loop gives; what has no CUDA code is refused by name."""

from __future__ import annotations

from inspect import unwrap

import pytest
from random_programs.run import one, report

from numbascan.modes import Mode

NO_CODE = "has no CUDA code"
WAYS = ("python", "called", "symbolic", "at_once", "read", "checked")


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize("first", [90, *range(1000, 1080, 10)])  # 90: an element that a choice guards is read twice
@pytest.mark.parametrize("gradients", [False, True])
def test_random_programs(first: int, gradients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, *others) = unwrap(Mode.__init__).__defaults__ or ()
    monkeypatch.setattr(unwrap(Mode.__init__), "__defaults__", ("cuda", *others))
    ran = 0
    for seed in range(first, first + (3 if gradients else 10)):
        try:
            outcome = one(seed, () if gradients else WAYS, gradients)
        except NotImplementedError as error:
            if NO_CODE in str(error):
                continue
            raise
        if outcome.label == "different" and NO_CODE not in str(outcome.differences[0]):
            pytest.fail(report(seed, outcome, gradients, seconds=0))
        ran += outcome.label == "same"
    assert ran
