"""`ns.interop` itself: what it imports, and when, and what it says where a package is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import numbascan as ns

PEERS = ("jax", "pytensor", "torch")


def test_importing_numbascan_imports_no_other_package():
    text = f"import sys, numbascan; numbascan.interop; print([name for name in {(*PEERS, 'numba')} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", PEERS)
def test_a_missing_package_is_named_with_the_line_that_installs_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf'pip install "numbascan\[{name}\]"'):
        ns.interop.__getattr__(name)


def test_other_names_are_no_bridges():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ns.interop.nonsense
    assert dir(ns.interop) == list(PEERS)
