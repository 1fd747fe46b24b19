"""What all tests share: compiled code in a folder that is kept between runs, the flag that writes golden files anew, and kernels that look
at what they are given."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from inspect import unwrap
from pathlib import Path

import kept_kernels
import kernel_arguments
import passed_before
import poison
import pytest
from hypothesis import settings

# The first run of a program compiles it: no deadline per example. All else as Hypothesis has it (on CI: the same examples every time).
settings.register_profile("compiled", parent=settings(), deadline=None)
settings.load_profile("compiled")

kept_kernels.use()

NOTES = pytest.StashKey[passed_before.Notes]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without",
        default="",
        help="rewrites and loop passes that every test leaves out where it does not choose itself: names, or all (rewrites)",
    )
    parser.addoption("--fresh", action="store_true", help=f"compiled code of earlier runs goes ({kept_kernels.FOLDER})")
    parser.addoption(
        "--poisoned", action="store_true", help="generated code fills the memory that it takes with NaN, and checks every index"
    )
    parser.addoption(
        "--compile-kernels", action="store_true", help="tests/cuda: kernels are compiled for sm_80 and sm_90, NumPy gives results"
    )
    parser.addoption("--check-plans", action="store_true", help="plans are held against the oracle after every pass; nothing else counts")
    parser.addoption(
        "--left-out",
        type=Path,
        help="with --check-plans: this file gets the tests of which Python has not run all kernels; with --poisoned: these tests alone run",
    )
    parser.addoption("--note-kernels", type=Path, help="a folder for notes of the kernels that each test loads")
    parser.addoption("--unchanged", type=Path, help="the folder with these notes: tests that have passed with the same kernels do not run")
    parser.addoption("--long", action="store_true", help="tests that take a minute or more run, too")
    parser.addoption("--wide", action="store_true", help="tests run with all their parameters, not only the first ones (see wide.py)")
    parser.addoption("--card", action="append", default=[], help="tests/ops/test_one_card.py: the cards that it compiles")
    parser.addoption("--update-golden", action="store_true", help="write the generated code that is seen now into tests/golden")
    parser.addoption("--update-snapshots", action="store_true", help="write the generated text that is seen now into tests/snapshots")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background: programs that tests start would not see Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--check-plans"):
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # Python runs generated code
    if config.getoption("--poisoned"):
        os.environ["NUMBA_BOUNDSCHECK"] = "1"
        os.environ["NUMBA_OPT"] = "1"  # indices and memory are looked at, not speed
        poison.fill_memory(pytest.MonkeyPatch())
        kept_kernels.hold_apart(poison.__file__)
    if config.getoption("--fresh") and not hasattr(config, "workerinput"):  # before there are workers
        shutil.rmtree(kept_kernels.FOLDER, ignore_errors=True)
    from numbascan.modes import LOOP_PASSES, Mode
    from numbascan.rewrite.pipeline import PASSES

    names = [rewrite.__name__ for rewrite in PASSES]
    without = names if config.getoption("--without") == "all" else list(filter(None, config.getoption("--without").split(",")))
    if not set(without) <= {*names, *LOOP_PASSES}:
        raise pytest.UsageError(
            f"--without={','.join(without)}: the rewrites are {', '.join(names)}, the loop passes {', '.join(LOOP_PASSES)}"
        )
    (*defaults, _, device) = unwrap(Mode.__init__).__defaults__
    unwrap(Mode.__init__).__defaults__ = (*defaults, tuple(without), device)
    kernel_arguments.hold()
    kept_kernels.hold()
    passed_before.is_read = not config.getoption("--wide")
    if config.getoption("--note-kernels"):
        config.stash[NOTES] = passed_before.Notes(passed_before.noted_in(config.getoption("--note-kernels")))
    if os.environ.get("NUMBASCAN_RECORD") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(passed_before.Recorder(config.getoption("--unchanged")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [word for word in ("wide", "long") if not config.getoption(f"--{word}")]
    beyond = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if config.getoption("--poisoned") and config.getoption("--left-out"):
        chosen = set(config.getoption("--left-out").read_text().splitlines())
        beyond += [item for item in items if item.nodeid not in chosen]
    if config.getoption("--unchanged"):
        passed = passed_before.unchanged(config.getoption("--unchanged"))
        beyond += [item for item in items if item.nodeid in passed]
    config.hook.pytest_deselected(items=beyond)
    items[:] = [item for item in items if item not in set(beyond)]


def pytest_collection_finish() -> None:
    """What stands in modules of tests stays: collections of garbage need not look at it again (5 % of the time of compiling)."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What a test's fixtures load counts as loaded by the test."""
    try:
        return (yield)
    finally:
        if NOTES in item.config.stash:
            item.config.stash[NOTES].end(item)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compiled"] = passed_before.compiled


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """With --check-plans a test fails if one of its plans is wrong. What else goes wrong when Python runs generated code is no fault."""
    if not item.config.getoption("--check-plans"):
        return (yield)
    from plan_checks import checked, two_ways

    other = ""
    with checked(two_ways) as checks:
        try:
            yield
        except Exception as error:
            other = type(error).__name__
    if checks.faults:
        raise checks.faults[0]
    if (checks.left_out or other) and item.config.getoption("--left-out"):  # after an error there may be kernels that did not run
        with item.config.getoption("--left-out").open("a") as file:
            file.write(f"{item.nodeid}\n")
    if other:
        pytest.skip(f"no plan is wrong, but {other}")


@pytest.fixture
def rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what rewrites achieve: all of them are on, whatever `--without` says."""
    from numbascan.modes import Mode

    (*defaults, _, device) = unwrap(Mode.__init__).__defaults__
    monkeypatch.setattr(unwrap(Mode.__init__), "__defaults__", (*defaults, (), device))


@pytest.fixture
def unconverted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are traced as they are written, as those are whose source cannot be read."""
    from numbascan.front import tracing

    monkeypatch.setattr(tracing, "converted", lambda f: f)


@pytest.fixture(autouse=True)
def _keys_of_their_own() -> Iterator[None]:
    """What a test compiles while it has changed what compiles is found by no other one."""
    yield
    kept_kernels.changed.clear()
