"""Shortcuts through Numba's inside: what they need may be missing, and they may be left out; results are right all the same."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from shortcuts_taken import needs
from wide import wide

import numbascan as ns
from numbascan.emit import cache
from numbascan.emit.inside import arrays, compiling, shortcuts
from numbascan.emit.inside.shortcuts import SHORTCUTS

PACKAGE = Path(ns.__file__).parent

REMOVED = '''
import os, sys, traceback
from pathlib import Path
import numba
import numpy as np
import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit import cache
from numbascan.emit.inside import shortcuts


def succeeds(function, *arguments):
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def delete(path):
    place = path.partition("(")[0]
    name = place.replace(":", ".").rpartition(".")[2]
    owner = shortcuts._looked_up(place[: -len(name) - 1])
    delattr(next(one for one in getattr(owner, "__mro__", [owner]) if name in vars(one)), name)


ALONE = """
import numpy as np
from numba import njit

@njit("float64[:](int64, float64[:, :])", cache=True)
def kernel(n, a):
    x = np.empty(n)
    for i in range(n):
        x[i] = 1.0 if i > 0 else a[0, 0]
    return x
"""


def libraries_work_without(path):
    delete(path)
    folder = Path(os.environ["NUMBASCAN_CACHE_DIR"])
    folder.mkdir(exist_ok=True)
    (folder / "numba_alone.py").write_text(ALONE)
    sys.path.insert(0, str(folder))
    from numba_alone import kernel
    np.testing.assert_array_equal(kernel(3, np.eye(3)), np.ones(3))
    for n in (5, 6):
        np.testing.assert_allclose(np.fft.irfft(np.fft.rfft(np.ones(n)), n), np.fft.fft(np.ones(n))[:1] / n)


def hide(path):
    lookup = shortcuts._looked_up

    def looked_up(asked, *module):
        if asked == path:
            raise AttributeError(asked)
        return lookup(asked, *module)

    shortcuts._looked_up = looked_up


def step(x, y, a):
    return np.tanh(a @ y) * x + np.concatenate([y[1:], y[:1]])


def loop(x, y, a):
    return ns.scan(step, sequences=x, outputs_info=y, non_sequences=a, return_updates=False)


def lanes(starts):
    return ns.vmap(lambda y: ns.scan(lambda y: y - 0.1 * y * y, outputs_info=y, n_steps=500, return_updates=False)[-1])(starts)


def by_hand(y):
    for _ in range(500):
        y = y - 0.1 * y * y
    return y


def by_numpy(program):
    return ns.jit(program, mode="python")


rng = np.random.default_rng(0)
solve, special = (lambda a, b: np.linalg.solve(a, b)), (lambda x: nt.digamma(x) + nt.erfinv(x / 9))
PROGRAMS = {
    "": (loop, by_numpy(loop), (np.arange(3.0), np.ones(12), rng.normal(size=(12, 12)) / 4)),
    "lapack": (solve, by_numpy(solve), (rng.normal(size=(12, 12)), np.ones(12))),
    "scipy_functions": (special, by_numpy(special), (rng.uniform(1, 2, 5),)),
    "threads": (lanes, by_hand, (rng.uniform(size=2_000),)),
    "np_dot": (lambda a, x: (a @ (a + 1)) @ x, lambda a, x: (a @ (a + 1)) @ x, (rng.normal(size=(40, 40)), np.ones(40))),
    "numpy_sorts": (lambda x: np.sort(x), np.sort, (rng.normal(size=100),)),
    "numpy_fft": (lambda x: np.fft.irfft(np.fft.fft(x)), lambda x: np.fft.irfft(np.fft.fft(x)), (rng.normal(size=100),)),
}


def run(name, path, remove):
    remove(path)
    assert not shortcuts.SHORTCUTS[name].is_taken(), path
    for key in {"", name} & set(PROGRAMS):
        program, plain, arguments = PROGRAMS[key]
        expected = plain(*arguments)
        for _ in range(2):  # compiled, then loaded
            np.testing.assert_allclose(ns.jit(program)(*arguments), expected, rtol=1e-9)
            cache._loaded.clear()


folder, places, *names = sys.argv[1:]
for name in names:
    for place, path in list(enumerate(shortcuts.SHORTCUTS[name].paths.values()))[slice(*map(int, places.split()))]:
        os.environ["NUMBASCAN_CACHE_DIR"] = numba.config.CACHE_DIR = f"{folder}/{name}_{place}"
        if not succeeds(run, name, path, delete):  # where Numba or NumPy itself needs it, it is removed from our sight alone
            assert not succeeds(libraries_work_without, path), path
            os.environ["NUMBASCAN_CACHE_DIR"] = numba.config.CACHE_DIR = f"{folder}/{name}_{place}_hidden"
            assert succeeds(run, name, path, hide), path
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="one process for each name is a fork of one that has imported Numba")
@pytest.mark.parametrize(  # all names take six minutes of one core
    ("places", "names"), wide([("0 1", tuple(SHORTCUTS)), *(("1 1000", (name,)) for name in SHORTCUTS)], first=1)
)
def test_any_private_name_may_be_missing(places: str, names: tuple[str, ...], tmp_path: Path) -> None:
    taken = [name for name in names if SHORTCUTS[name].is_taken()]
    if not taken:
        pytest.skip(f"not in force: {', '.join(names)}")
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", REMOVED, str(tmp_path), places, *taken]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_numbas_inside_is_imported_by_no_other_way() -> None:
    public = {"numba", "numba.extending", "llvmlite"}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            inside = {module for module in modules if module.split(".")[0] in ("numba", "llvmlite")} - public - {"llvmlite.binding"}
            assert not inside, file


@pytest.mark.parametrize(
    ("choice", "taken"),
    [
        ("", {"np_empty", "lapack", "threads"}),
        ("all", {"np_empty", "lapack", "threads"}),
        ("none", set()),
        ("lapack", {"lapack"}),
        ("lapack, threads", {"lapack", "threads"}),
        ("-lapack", {"np_empty", "threads"}),
        ("-lapack,-threads", {"np_empty"}),
    ],
)
@needs("np_empty", "lapack", "threads")
def test_shortcuts_are_chosen_by_name(choice: str, taken: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBASCAN_SHORTCUTS", choice)
    assert {name for name in ("np_empty", "lapack", "threads") if SHORTCUTS[name].is_taken()} == taken


def test_every_shortcut_is_in_force_where_nobody_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of a shortcut skip where it is not: this one says when that is a loss."""
    monkeypatch.delenv("NUMBASCAN_SHORTCUTS", raising=False)
    assert [name for name, shortcut in SHORTCUTS.items() if not shortcut.is_taken()] == []


@pytest.mark.parametrize("depth", [1, 2])
def test_shortcuts_in_force_hide_no_other(depth: int) -> None:
    """Each is asked for while code is compiled, when functions of Numba stand replaced."""
    outside = {name: shortcut.is_taken() for name, shortcut in SHORTCUTS.items()}
    with ExitStack() as stack:
        for _ in range(depth):
            stack.enter_context(compiling.short_ways())
        assert {name: shortcut.is_taken() for name, shortcut in SHORTCUTS.items()} == outside


@pytest.mark.parametrize("version", ["0.61.2", "0.69.0", "1.0.0"])
def test_a_version_that_nobody_has_tried_takes_the_public_way(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "numba_version", lambda: version)
    assert not any(shortcut.is_taken() for shortcut in SHORTCUTS.values())


@needs("np_empty")
def test_a_function_with_other_parameters_is_as_good_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.np import arrayobj

    monkeypatch.setattr(arrayobj, "make_array", lambda array_type, layout: None)
    assert not SHORTCUTS["np_empty"].is_taken()
    assert not SHORTCUTS["stack"].is_taken()
    assert SHORTCUTS["threads"].is_taken()


@needs("np_empty")
def test_a_shortcut_that_fails_is_left_out_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("of another shape")

    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_loaded", {})
    monkeypatch.setattr(arrays, "_ask_for_large_pages", fail)
    with pytest.warns(RuntimeWarning, match="without its shortcuts: .*of another shape"):
        rows = ns.jit(lambda x: ns.scan(lambda x, s: s + x, sequences=x, outputs_info=0.0, return_updates=False))(np.arange(5.0))
    np.testing.assert_array_equal(rows, [0, 1, 3, 6, 10])
