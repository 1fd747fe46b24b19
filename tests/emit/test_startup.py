"""What a process imports before it runs compiled code: facts, no timings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shortcuts_taken import needs_object_code

HEAVY = "print(sorted({name.split('.')[0] for name in sys.modules} & {'numba', 'llvmlite', 'scipy'}))"

SCAN = """
import sys
import numpy as np
import numbascan as ns

def step(x, s, w):
    return np.exp(-x) * s + w

run = ns.scan(step)
print(run(np.arange(3.0), np.ones(2), 0.5).tolist())
"""

FAILS = """
try:
    ns.scan(lambda x, y: x + y, name="both")([np.ones((4, 20)), np.ones((4, 30))])
except ValueError as error:
    print(error)
"""


def printed(script: str, folder: Path) -> list[str]:
    """What a script prints in a process of its own, line by line."""
    environment = {**os.environ, "NUMBASCAN_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_package_imports_nothing_heavy(tmp_path: Path) -> None:
    assert printed(f"import sys, numbascan; {HEAVY}", tmp_path) == ["[]"]


@needs_object_code
def test_a_second_process_runs_without_numba_and_a_third_that_has_it_does_too(tmp_path: Path) -> None:
    first = printed(SCAN + HEAVY, tmp_path)
    assert "numba" in first[1]
    assert printed(SCAN + HEAVY, tmp_path) == [first[0], "['llvmlite']"]
    assert printed("import numba\n" + SCAN, tmp_path) == first[:1]


@needs_object_code
def test_numba_works_after_machine_code_was_loaded_without_it(tmp_path: Path) -> None:
    printed(SCAN, tmp_path)
    script = """
import numba
@numba.njit
def doubled(x):
    if x[0] < 0:
        raise ValueError("negative", x[0])
    return x + x
print(doubled(np.ones(2)).tolist())
try:
    doubled(-np.ones(2))
except ValueError as error:
    print(error.args)
print(numba._dynfunc.Environment is type(doubled.overloads[doubled.signatures[0]].environment).__mro__[1])
print(run(np.arange(3.0), np.ones(2), 0.5).tolist())
"""
    scan, *others, again = printed(SCAN + script, tmp_path)
    assert others == ["[2.0, 2.0]", "('negative', -1.0)", "True"]
    assert again == scan


@needs_object_code
def test_errors_are_the_same_without_numba(tmp_path: Path) -> None:
    first, second = printed(SCAN + FAILS, tmp_path), printed(SCAN + FAILS, tmp_path)
    assert "20" in first[1]
    assert "30" in first[1]
    assert second == first


@needs_object_code
def test_another_processor_or_another_setting_of_numba_has_machine_code_of_its_own(tmp_path: Path) -> None:
    printed(SCAN, tmp_path)
    printed("import os; os.environ['NUMBA_BOUNDSCHECK'] = '1'" + SCAN, tmp_path)
    printed(SCAN, tmp_path)
    assert len(list(tmp_path.glob("*.code"))) == 2
