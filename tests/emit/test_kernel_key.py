"""The key of a kernel: whatever its machine code is made of makes another key, and nothing else does."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numpy as np
import pytest
from llvmlite import binding
from shortcuts_taken import needs_object_code

import numbascan as ns
from numbascan.emit import cache, kernel_key
from numbascan.emit.inside import vector_forms
from numbascan.emit.kernel_key import Reached
from numbascan.emit.names import HELPERS as BY_MODULE
from numbascan.emit.names import ROUTINES
from numbascan.ops import incomplete, special
from numbascan.ops.elementwise import HELPERS

PACKAGE = Path(ns.__file__).parent
INTRINSICS = "from numbascan.emit.runtime.intrinsics import interrupted\n"
OF_CARDS = {name: f"from numbascan.emit.runtime.{module} import {name}\n" for module, names in BY_MODULE.items() for name in names}
OF_ROUTINES = {name: f"from numbascan.emit.runtime.routines import {name}\n" for name in ROUTINES}
KERNELS = {"intrinsics": INTRINSICS, **OF_CARDS, **OF_ROUTINES}
ON_GPU = """from numbascan.emit.runtime.cublas import by_cublas
from numbascan.emit.runtime.cuda import grid
from numbascan.emit.runtime.cuda_externals import kepler_0123456789abcdef
from numbascan.emit.runtime.cuda_functions import gpu_math as math
"""


@pytest.fixture(autouse=True)
def _afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Facts of this process are asked for anew, before and after; in a folder of its own, where no key holds what a test replaces."""
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path / "own"))
    facts = (kernel_key._machine, kernel_key._first_settings, kernel_key._file, kernel_key.scipy_version)
    for fact in facts:
        fact.cache_clear()
    yield
    monkeypatch.undo()
    for fact in facts:
        fact.cache_clear()


def key(text: str = INTRINSICS) -> str:
    kernel_key._machine.cache_clear()
    kernel_key._first_settings.cache_clear()
    return kernel_key.kernel_key(text)


def reached_by(text: str) -> Reached:
    reached = Reached()
    reached.module(kernel_key.COMPILES)
    reached.imports(kernel_key._imports(text, ""))
    for name in HELPERS.keys() & {text.split()[-1].removesuffix("_in_lanes")}:
        reached.helper(name)
    return reached


# what compiles -------------------------------------------------------------------------------------------------------

MACHINE: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "Python": lambda patch: patch.setattr(sys, "version", "3.12.99"),
    "NumPy": lambda patch: patch.setattr(np, "__version__", "2.99"),
    "SciPy": lambda patch: patch.setattr(kernel_key, "scipy_version", lambda: "1.99"),
    "Numba": lambda patch: patch.setattr(kernel_key, "numba_version", lambda: "0.68.99"),
    "llvmlite": lambda patch: patch.setattr(llvmlite, "__version__", "0.99"),
    "LLVM": lambda patch: patch.setattr(binding, "llvm_version_info", (99, 0, 0)),
    "system": lambda patch: patch.setattr(binding, "get_process_triple", lambda: "riscv64-unknown-linux-musl"),
    "processor": lambda patch: patch.setattr(binding, "get_host_cpu_name", lambda: "znver9"),
    "features": lambda patch: patch.setattr(binding, "get_host_cpu_features", lambda: binding.targets.FeatureMap(avx512f=True, sve=True)),
    "libmvec": lambda patch: patch.setattr(vector_forms, "present", lambda: frozenset({"_ZGVbN2v_exp"})),
    "a setting of Numba": lambda patch: patch.setenv("NUMBA_OPT", "1"),
    "another one": lambda patch: patch.setenv("NUMBA_BOUNDSCHECK", "1"),
    "Numba's file of settings": lambda patch: Path(kernel_key.SETTINGS).write_text("opt: 1\n"),
    "no shortcuts": lambda patch: patch.setenv("NUMBASCAN_SHORTCUTS", "none"),
    "one shortcut less": lambda patch: patch.setenv("NUMBASCAN_SHORTCUTS", "-lapack"),
}


@pytest.mark.parametrize("what", MACHINE)
def test_other_compilers_settings_and_processors_have_keys_of_their_own(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = key(), kernel_key.key_of_modules([])
    MACHINE[what](monkeypatch)
    assert not {key(), kernel_key.key_of_modules([])} & set(before)


def test_a_setting_that_changes_while_the_process_runs_is_neither_the_first_nor_that_of_a_new_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Helpers that were compiled under the first one stay as they are."""
    first = key()
    monkeypatch.setenv("NUMBA_OPT", "1")
    meanwhile = kernel_key.kernel_key(INTRINSICS)
    assert len({first, meanwhile, key()}) == 3


def test_what_says_nothing_to_compilers_changes_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", "5MB")
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NUMBASCAN_SHORTCUTS", "all")
    assert key() == before


def test_scipys_version_is_known_without_importing_it() -> None:
    import scipy

    assert kernel_key.scipy_version() == scipy.__version__


# files ---------------------------------------------------------------------------------------------------------------


def with_line(monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """The file of a module has one line more."""
    text_of = kernel_key.text_of
    monkeypatch.setattr(kernel_key, "text_of", lambda module: text_of(module) + "x = 1\n" * (module == changed))
    kernel_key._file.cache_clear()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("room", ["emit/runtime", "emit/inside"])
def test_every_file_of_runtime_and_inside_counts_where_it_is_reached(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [INTRINSICS, *(OF_CARDS[names[-1]] for names in BY_MODULE.values()), OF_CARDS["erfc_integral"], *OF_ROUTINES.values(), ON_GPU]
    before = {text: key(text) for text in texts}
    for path in sorted((PACKAGE / room).rglob("[!_]*.py")):
        module = module_of(path)
        if module.rpartition(".")[2].startswith("portable"):  # whose texts are written into modules that stand alone
            continue
        with monkeypatch.context() as patch:
            with_line(patch, module)
            others = {text for text in texts if kernel_key.kernel_key(text) != before[text]}
        assert others, module
        assert others == {text for text in texts if module in reached_by(text).modules}, module


@pytest.mark.parametrize("module", ["emit.cpu.module", "emit.text", "emit.cuda.module", "plan.plan", "ops.special", "compile"])
def test_what_writes_text_is_in_no_key(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {text: key(text) for text in KERNELS.values()}
    with_line(monkeypatch, f"numbascan.{module}")
    assert {text: kernel_key.kernel_key(text) for text in KERNELS.values()} == before


def test_kernels_that_call_nothing_of_a_file_do_not_see_it_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: key(KERNELS[name]) for name in ("exprel", "linalg", "sorting", "draws", "exact_exp", "digamma")}
    with_line(monkeypatch, "numbascan.emit.runtime.routines.small")
    assert [name for name in before if kernel_key.kernel_key(KERNELS[name]) != before[name]] == ["linalg"]
    with_line(monkeypatch, "numbascan.ops.draw_methods")
    assert [name for name in before if kernel_key.kernel_key(KERNELS[name]) != before[name]] == ["linalg", "draws", "exact_exp"]


def test_no_import_is_overlooked() -> None:
    """Python's own parser finds no module of numbascan that the key does not."""
    known = {module for text in [*KERNELS.values(), ON_GPU] for module in reached_by(text).modules}
    for module in known:
        imported = set(kernel_key._file(module)[1])
        for node in ast.walk(ast.parse(kernel_key.text_of(module))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("numbascan") for alias in node.names), module
            elif isinstance(node, ast.ImportFrom):
                source = importlib.util.resolve_name("." * node.level + (node.module or ""), kernel_key._package_of(module))
                assert not source.startswith("numbascan") or (source, tuple(alias.name for alias in node.names)) in imported, module


def test_modules_that_are_imported_by_name_are_those_of_helpers() -> None:
    """`Reached.helper` takes the file of a helper: no other import may depend on a name that is known at run time alone."""
    dynamic = set()
    for path in [*(PACKAGE / "emit/runtime").rglob("*.py"), *(PACKAGE / "emit/inside").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_import = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
            if is_import and (not isinstance(node.args[0], ast.Constant) or node.args[0].value.startswith((".", "numbascan"))):
                dynamic.add(f"{path.stem}: {ast.unparse(node)}")
    assert (
        dynamic
        == {
            "cuda_package: importlib.import_module(name)",  # of Numba
            "object_code: importlib.import_module(name)",
            "shortcuts: importlib.import_module",
            "scalars: import_module('.special', __package__)",
            "cuda_functions: importlib.import_module(f'.{module}', __package__)",
        }
        & dynamic
    )
    assert len([one for one in dynamic if "__package__" in one]) == 2


def test_code_of_a_file_that_has_changed_meanwhile_is_for_this_process_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from numba import njit, types\n\n\n@njit((types.int64,), cache=True)\ndef twice(n):\n    return 2 * n\n"
    before = key(text)
    monkeypatch.setattr(kernel_key, "STARTED", 0.0)
    meanwhile = key(text)
    assert meanwhile != before
    monkeypatch.setattr(kernel_key, "_ALONE", "another process")
    assert key(text) not in {before, meanwhile}
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_key, "_changed", lambda module: 1.0 * bool(list(tmp_path.glob("*.py"))))  # while Numba compiles
    assert cache.load(text, "twice")(4) == 8
    assert cache.entries() == []


def test_where_no_file_can_be_read_no_other_process_has_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(kernel_key, "_root", lambda: tmp_path)
    kernel_key._file_of.cache_clear()
    kernel_key._file.cache_clear()
    kernel_key._is_module.cache_clear()
    assert key() != before
    here = key()
    monkeypatch.setattr(kernel_key, "_ALONE", "another process")
    kernel_key._file.cache_clear()
    assert key() != here
    kernel_key._file_of.cache_clear()
    kernel_key._is_module.cache_clear()


# functions beside cards ----------------------------------------------------------------------------------------------


def compiled_of(function: FunctionType, known: dict[int, FunctionType]) -> dict[int, FunctionType]:
    """What `emit/runtime/scalars.py` compiles of a function: itself, and the functions of Python that it calls."""
    if id(function) not in known:
        known[id(function)] = function
        for name in function.__code__.co_names:
            helper = HELPERS.get(name)
            called = function.__globals__.get(name)
            if isinstance(called, FunctionType) and (helper is None or helper.function is not None):
                compiled_of(called, known)
    return known


BESIDE_CARDS = [name for name, helper in HELPERS.items() if helper.function is not None]


@pytest.mark.parametrize("name", BESIDE_CARDS)
def test_every_function_that_a_helper_calls_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, function = OF_CARDS[name], HELPERS[name].function
    before = key(text)
    assert isinstance(function, FunctionType)
    for called in compiled_of(function, {}).values():
        code = called.__code__
        with monkeypatch.context() as patch:
            patch.setattr(called, "__code__", code.replace(co_consts=(*code.co_consts, 0.125)))
            assert kernel_key.kernel_key(text) != before, called
        for value, number in enumerate(code.co_names):
            table = called.__globals__.get(number)
            if isinstance(table, int | float | tuple | np.ndarray):
                with monkeypatch.context() as patch:
                    patch.setitem(called.__globals__, number, (table, value))
                    assert kernel_key.kernel_key(text) != before, number
    assert kernel_key.kernel_key(text) == before


def test_functions_and_tables_within_functions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """`betainc_slope_a` calls `betainc_slope`, that `log_beta_density`, and that reads numbers."""
    names = {function.__name__ for function in _reached_functions("betainc_slope_a")}
    assert {"betainc_slope_a", "betainc_slope", "log_beta_density"} <= names
    assert incomplete.betainc_slope.__name__ in names


def _reached_functions(name: str) -> list[FunctionType]:
    reached = Reached()
    reached.helper(name)
    return list(reached.functions.values())


def test_other_helpers_and_other_cards_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(OF_CARDS["exprel"])
    code = special.sigmoid.__code__
    monkeypatch.setattr(special.sigmoid, "__code__", code.replace(co_consts=(*code.co_consts, 0.125)))
    monkeypatch.setitem(HELPERS, "added", HELPERS["sigmoid"])
    assert key(OF_CARDS["exprel"]) == before
    assert key(OF_CARDS["sigmoid"]) != before


@pytest.mark.parametrize("field", [{"cost": "another"}, {"arity": 5}, {"module": "random"}])
def test_what_a_helper_is_declared_as_counts(field: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the cost it depends whether the function is inlined."""
    from dataclasses import replace

    before = key(OF_CARDS["exprel"])
    monkeypatch.setitem(HELPERS, "exprel", replace(HELPERS["exprel"], **field))
    assert key(OF_CARDS["exprel"]) != before


def test_every_value_that_is_reached_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is of a kind for which all cards would have to stand."""
    monkeypatch.setattr(Reached, "_whatever", None)
    for text in [*KERNELS.values(), ON_GPU]:
        assert key(text) == key(text)


def test_kernels_without_helpers_reach_no_card() -> None:
    assert not [
        module for module in reached_by(INTRINSICS).modules if module.startswith(("numbascan.ops", "numbascan.plan", "numbascan.emit.text"))
    ]


# other processes and checkouts ---------------------------------------------------------------------------------------

TOLD = """
import sys
from numbascan import compile
from numbascan.emit import kernel_key, names
for module, helpers in sorted(names.HELPERS.items()):
    for name in helpers:
        print(kernel_key.kernel_key(f"from numbascan.emit.runtime.{module} import {name}\\n"))
for name in names.ROUTINES:
    print(kernel_key.kernel_key(f"from numbascan.emit.runtime.routines import {name}\\n"))
print(sorted({"numba", "scipy"} & set(sys.modules)))
"""

PROGRAM = """
import numpy as np
import numbascan as ns
import numbascan.tensor as nt
a = np.eye(20)
print(ns.jit(lambda a, b: np.linalg.solve(a, nt.sigmoid(b)))(a, np.zeros(20))[0])
"""


def printed(script: str, package: Path, **settings: str) -> list[str]:
    """What a script prints, under the copy of numbascan in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(package), **settings}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=package, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a copy of numbascan."""
    shutil.copytree(PACKAGE, tmp_path / "checkout/numbascan", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "checkout"


def test_another_checkout_and_another_process_have_the_same_keys(checkout: Path) -> None:
    seeds = [printed(TOLD, checkout, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert seeds[0] == seeds[1] == [*(key(text) for name, text in _sorted_texts()), "[]"]


def _sorted_texts() -> list[tuple[str, str]]:
    named = [(name, OF_CARDS[name]) for _, names in sorted(BY_MODULE.items()) for name in names]
    return [*named, *OF_ROUTINES.items()]


@needs_object_code
def test_a_function_and_a_routine_that_have_changed_are_compiled_anew(checkout: Path, tmp_path: Path) -> None:
    """The text of the kernel is the same, and so is the file of the routine that it calls: what that calls is another one."""
    settings = {"NUMBASCAN_CACHE_DIR": str(tmp_path / "cache")}
    assert printed(PROGRAM, checkout, **settings) == ["0.5"]
    for file, old, new in [
        ("ops/special.py", "def sigmoid(", "def sigmoid(x):\n    return type(x)(3)\n\n\ndef sigmoid_before("),
        ("emit/runtime/routines/small.py", "x[j, i] = a[i, j]", "x[j, i] = 4 * a[i, j]"),
    ]:
        path = checkout / "numbascan" / file
        before = path.read_text()
        assert before.count(old) == 1, file
        path.write_text(before.replace(old, new))
    assert printed(PROGRAM, checkout, **settings) == ["12.0"]  # three, copied thrice; the matrix once
