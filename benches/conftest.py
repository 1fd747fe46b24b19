"""`pytest benches --benchmark-compare`: the speed of this tree beside the stored run of the last release.

Runs are kept in results/pytest/, and compared by the fastest round, as other work on the machine only ever adds. They tell something
between runs on one machine alone; ratios to loops by hand, which say more elsewhere, are `benches/run.py`'s.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).parent
sys.path.insert(0, str(BENCHES))  # the modules of workloads beside this file


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    options = config.option
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError('the benches need pytest-benchmark: pip install "numbascan[bench]"')
    options.benchmark_storage = f"file://{BENCHES / 'results' / 'pytest'}"
    options.benchmark_columns = ["min", "median", "ops", "rounds"]
    options.benchmark_sort = "name"
    if options.benchmark_compare is not None:  # a table for each, with the stored run above
        options.benchmark_group_by = "fullname"


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """What is stored says what the machine is, not which."""
    machine_info["cpu"] = {name: machine_info["cpu"].get(name) for name in ("brand_raw", "count", "hz_advertised_friendly")}
    for name in ("node", "release"):
        machine_info.pop(name, None)


def pytest_benchmark_update_commit_info(config: pytest.Config, commit_info: dict[str, Any]) -> None:
    commit_info.clear()
