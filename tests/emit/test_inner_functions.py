"""Lanes that are a function of their own become machine code once, as a part of the kernel that calls them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shortcuts_taken import needs

import numbascan as ns
from numbascan.emit import cache
from numbascan.emit.inside import object_code

X = np.arange(1.0, 7.0)


def picked(w: Any, k: Any) -> Any:
    """The sum of 50 elements of w: the k-th one, and every second one behind it, round about."""

    def step(s: Any, t: Any) -> Any:
        return s + w[t], (t + 2) % 6

    return ns.scan(step, outputs_info=[0.0, k], n_steps=50, return_updates=False)[0][-1]


def by_hand(w: np.ndarray, k: int) -> float:
    total = 0.0
    for _ in range(50):
        total, k = total + w[k], (k + 2) % 6
    return total


def lanes_of(path: Path) -> Any:
    """The function of lanes in the module of a kernel."""
    module = sys.modules[f"{cache.GENERATED}.{path.stem}"]
    (lanes,) = [function for name, function in vars(module).items() if "_lanes" in name and not name.startswith("_")]
    return lanes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path / "cache"))
    cache._loaded.clear()
    return tmp_path / "cache"


@needs("inner_functions")
def test_lanes_are_translated_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.codegen import JITCodeLibrary

    translated: list[str] = []
    finalised = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda self: (translated.append(self.name), finalised(self))[1])
    run = ns.vmap(lambda k: picked(X, k))
    np.testing.assert_array_equal(run(np.arange(6)), [by_hand(X, k) for k in range(6)])
    assert not any("_lanes" in name for name in translated)
    assert translated


@needs("inner_functions", "lowered", "one_pipeline")
@pytest.mark.parametrize(
    ("choice", "turns"), [("", {"kernel": 1}), ("-one_pipeline", {"kernel": 2}), ("-inner_functions", {"kernel": 1, "lanes": 1})]
)
def test_lowered_functions_are_optimised_once(choice: str, turns: dict[str, int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each shortcut by itself, and both: they replace the same function of Numba's."""
    from llvmlite.binding.newpassmanagers import ModulePassManager

    seen: list[str] = []
    optimised = ModulePassManager.run

    def run_passes(self: Any, module: Any, builder: Any) -> Any:
        if module.name.startswith("vmap"):  # the first kernel of a process compiles parts of Numba's own, too
            seen.append("lanes" if "_lanes" in module.name else "kernel")
        return optimised(self, module, builder)

    monkeypatch.setattr(ModulePassManager, "run", run_passes)
    monkeypatch.setenv("NUMBASCAN_SHORTCUTS", choice)
    run = ns.vmap(lambda k: picked(X, k))
    np.testing.assert_array_equal(run(np.arange(6)), [by_hand(X, k) for k in range(6)])
    assert {name: seen.count(name) for name in set(seen)} == turns


@needs("inner_functions")
def test_nobody_calls_them_from_python(folder: Path) -> None:
    ns.vmap(lambda k: picked(X, k))(np.arange(6))
    (path,) = folder.glob("*.py")
    lanes = lanes_of(path)
    (kind,) = lanes.overloads
    with pytest.raises((TypeError, KeyError)):
        lanes.overloads[kind].entry_point(*([0] * len(kind)))


@pytest.mark.parametrize("way", ["compiled", "by its object code", "by Numba's cache"])
def test_an_error_in_a_lane_is_told(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is put together with the environment of the function that it comes from."""
    run = ns.vmap(lambda k: picked(X, k))
    if way != "compiled":
        run(np.arange(6))
        cache._loaded.clear()
    if way == "by Numba's cache":
        monkeypatch.setattr(object_code, "load", lambda path: None)
    again = ns.vmap(lambda k: picked(X, k))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        again(np.array([1, 9, 2]))
    np.testing.assert_array_equal(again(np.arange(6)), [by_hand(X, k) for k in range(6)])
