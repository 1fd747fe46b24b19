"""Loops and their gradients, whole calls: `pytest benches/test_loops.py`. Numbers are checked before anything is timed."""

from __future__ import annotations

import pytest
from run import BY_HAND, FORWARD, STORED, pair


@pytest.mark.parametrize("name", [*BY_HAND, *FORWARD, *STORED])
def test_loop(benchmark, name):
    run, *_ = pair(name)
    benchmark(run)
