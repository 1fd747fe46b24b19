"""While a first call compiles for more than a second, somebody who watches reads so."""

import io
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

import numbascan as ns
from numbascan import compile as stages
from numbascan import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def slow(monkeypatch):
    """Compiling that takes longer than patience lasts."""

    class Slow(stages.Kernel):
        def __init__(self, *arguments):
            time.sleep(0.2)
            super().__init__(*arguments)

    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(stages, "Kernel", Slow)
    monkeypatch.delenv("NUMBASCAN_QUIET", raising=False)


def watched(monkeypatch, stream, modules=()):
    """`stream` in the place of the standard error; not sys.stderr itself, which pytest captures."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, modules=modules))
    return stream


@pytest.fixture
def terminal(monkeypatch):
    return watched(monkeypatch, Terminal())


def doubled(x):
    return 2 * x


def test_a_slow_first_call_says_so_and_how_long_it_took(slow, terminal):
    f = ns.jit(doubled)
    f(np.ones(40))
    assert re.fullmatch(r"(numbascan: compiling doubled … \d+\.\d s\n)+", terminal.getvalue())
    said = terminal.getvalue()
    f(np.ones(50))  # compiled already
    assert terminal.getvalue() == said


def test_tracing_counts_too(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.delenv("NUMBASCAN_QUIET", raising=False)

    def traced_slowly(x):
        time.sleep(0.2)
        return x + 1

    ns.jit(traced_slowly)(np.ones(40))
    assert terminal.getvalue().count("numbascan: compiling traced_slowly …") >= 1


def test_a_log_is_left_alone(slow, monkeypatch):
    log = watched(monkeypatch, io.StringIO())
    ns.jit(doubled)(np.ones(40))
    assert log.getvalue() == ""


def test_a_notebook_is_told(slow, monkeypatch):
    cell = watched(monkeypatch, io.StringIO(), {"ipykernel": None})
    ns.jit(doubled)(np.ones(40))
    assert cell.getvalue().startswith("numbascan: compiling doubled …")


def test_quiet_is_quiet(slow, terminal, monkeypatch):
    monkeypatch.setenv("NUMBASCAN_QUIET", "1")
    ns.jit(doubled)(np.ones(40))
    assert terminal.getvalue() == ""


def test_a_quick_call_says_nothing(terminal, monkeypatch):
    monkeypatch.delenv("NUMBASCAN_QUIET", raising=False)
    ns.jit(doubled)(np.ones(40))
    assert terminal.getvalue() == ""


def test_a_line_that_has_begun_ends_where_compiling_fails(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.delenv("NUMBASCAN_QUIET", raising=False)

    def failing():
        with progress.compiling("f"):
            time.sleep(0.1)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert terminal.getvalue().startswith("numbascan: compiling f … ")
    assert terminal.getvalue().endswith(" s\n")
    assert not progress._compiling


def test_what_is_compiled_within_is_part_of_the_line(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.delenv("NUMBASCAN_QUIET", raising=False)
    with progress.compiling("outer"), progress.compiling("inner"):
        time.sleep(0.1)
    assert "inner" not in terminal.getvalue()
