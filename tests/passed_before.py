"""What has passed before and has not changed since: kernels compiled for a GPU, and tests under an older Numba. They need not run again.

Machine code follows from a kernel's text, from what this uses of numbascan (`emit/kernel_key.py`), and from what compiles. So where all
of these are the same, so is the outcome. The records lie in `tests/passed/`, are part of the repository, and are written by runs with
NUMBASCAN_RECORD=1, of what passes in them. With `--wide` none is read.

* `cuda.json`: of each kernel of tests/cuda what a thread takes on a device, as its compilation gave it.
* `numba-0.62.txt`: a digest of each test that passed under this Numba, with the kernels that it loads, behind a line of versions. Which
  kernels these are is known by a run under the Numba of today, on the same files (`--note-kernels FOLDER`, then `--unchanged FOLDER` under
  the older one). A test that loads no kernel is not noted, and runs.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import kept_kernels
import pytest

TESTS = Path(__file__).parent
HELD = TESTS / "passed"
CUDA = HELD / "cuda.json"

is_read = True
"""False with `--wide`."""


# kernels compiled for a GPU ---------------------------------------------------------------------------------------------

compiled: dict[str, list[list[int]]] = {}
"""What this run has asked for, by key."""


@cache
def known_for_cuda() -> dict[str, list[list[int]]]:
    return dict(json.loads(CUDA.read_text(encoding="utf-8"))) if is_read and CUDA.exists() else {}


def of_cuda(parts: Iterable[str], compile_: Callable[[], list[list[int]]]) -> list[list[int]]:
    """What a thread of a kernel takes: of one that has passed, what is recorded; else what its compilation gives, now or in a kept run.

    `parts`: all that its machine code follows from, but for Numba's settings.
    """
    from numbascan.emit import kernel_key

    key = kernel_key.digest([*kernel_key._settings(), *parts])
    rows = known_for_cuda().get(key)
    if rows is None:
        rows = kept_kernels.kept("cuda", key, compile_)
    if not kept_kernels.changed:
        compiled[key] = rows
    return rows


def write_cuda(rows: dict[str, list[list[int]]]) -> None:
    """One row a line, so that differences are short."""
    CUDA.write_text("{\n" + ",\n".join(f'"{key}": {json.dumps(rows[key])}' for key in sorted(rows)) + "\n}\n", encoding="utf-8")


# tests under an older Numba ---------------------------------------------------------------------------------------------


def record_of_numba() -> Path:
    """The record of the Numba that is installed."""
    import numba

    return HELD / f"numba-{'.'.join(numba.__version__.split('.')[:2])}.txt"


def noted_in(folder: Path) -> Path:
    """The file of a folder in which kernels of tests are noted: that of the files as they are now."""
    import numbascan
    from numbascan.emit.kernel_key import digest

    package = Path(numbascan.__file__).parent
    files = sorted(path for root in (package, TESTS) for path in root.rglob("*") if path.suffix in (".py", ".toml", ".csv"))
    return folder / digest(path.read_text(encoding="utf-8") for path in files)


class Notes:
    """Notes of the kernels that each test loads, by what they are made of."""

    def __init__(self, file: Path) -> None:
        from numbascan.emit import kernel_key

        self.file, self.now = file, set[str]()
        file.parent.mkdir(parents=True, exist_ok=True)
        made_of = kernel_key.made_of

        def noted(text: str, *compiles: str) -> list[str]:
            parts = made_of(text, *compiles)
            # with something else in the place of what compiles, it is like nothing that has passed
            self.now.add(kernel_key.digest([*kept_kernels.changed, *parts, text]))
            return parts

        kernel_key.made_of = noted

    def end(self, test: pytest.Item) -> None:
        """The test has run."""
        from numbascan.emit.kernel_key import digest

        if self.now:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{digest([test.nodeid, test.path.read_text(encoding='utf-8'), *sorted(self.now)])} {test.nodeid}\n")
        self.now.clear()


def digests(folder: Path) -> dict[str, set[str]]:
    """Of each test its digests, of as many runs as were noted."""
    known: dict[str, set[str]] = defaultdict(set)
    file = noted_in(folder)
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        of_test, _, test = line.partition(" ")
        known[test].add(of_test)
    return known


def compilers() -> str:
    """What runs tests besides numbascan, in a line."""
    import llvmlite
    import numba
    import numpy
    import scipy

    packages = (f"{one.__name__} {one.__version__}" for one in (llvmlite, numba, numpy, scipy))
    return ", ".join([*packages, f"Python {sys.version_info.major}.{sys.version_info.minor}"])


def passed_under_this_numba() -> set[str]:
    """The digests of the record, if it is of the same compilers."""
    record = record_of_numba()
    first, *others = record.read_text(encoding="utf-8").splitlines() if is_read and record.exists() else [""]
    return set(others) if first == compilers() else set()


def unchanged(folder: Path) -> set[str]:
    """The tests that have passed as they are now."""
    passed = passed_under_this_numba()
    return {test for test, known in digests(folder).items() if known <= passed}


class Recorder:
    """Writes the records when a run ends; a plugin of the process that all tests report to."""

    def __init__(self, noted: Path | None) -> None:
        self.noted, self.outcomes = noted, defaultdict[str, set[str]](set)
        self.compiled = dict[str, list[list[int]]]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.outcomes[report.nodeid].add(report.outcome)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.compiled.update(getattr(node, "workeroutput", {}).get("compiled", {}))

    def pytest_sessionfinish(self) -> None:
        self.compiled.update(compiled)
        if self.compiled:
            write_cuda(self.compiled)
        if self.noted:
            known, before = digests(self.noted), passed_under_this_numba()
            passed = {
                one
                for test, of_test in known.items()
                for one in of_test
                if (self.outcomes[test] == {"passed"} if self.outcomes[test] else one in before)
            }
            record_of_numba().write_text("\n".join([compilers(), *sorted(passed), ""]), encoding="utf-8")
