"""The stored run that `pytest benches --benchmark-compare` compares with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_last_stored_run_has_every_bench():
    pytest.importorskip("pytest_benchmark")
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "benches", "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    benches = {line for line in listed.stdout.splitlines() if "::" in line}
    (*_, last) = sorted((ROOT / "benches" / "results" / "pytest").glob("*/*.json"))
    stored = json.loads(last.read_text(encoding="utf-8"))
    assert {row["fullname"] for row in stored["benchmarks"]} == benches
    assert "node" not in stored["machine_info"]
