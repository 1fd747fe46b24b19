"""Where the source of a converted function comes from: it must be what was compiled."""

from __future__ import annotations

import linecache
import statistics
import traceback
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import numbascan as ns
from numbascan.front.converted import source
from numbascan.front.converted.source import converted, reason


def loaded(path: Path, name: str) -> Any:
    """A function of a file."""
    linecache.checkcache()
    space: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space[name]


def test_strings_of_several_lines_stay_as_they_are_in_a_function_that_is_indented() -> None:
    def words() -> str:
        return """one
            two
        three"""

    assert converted(words) is not words
    assert converted(words)() == words()


def test_a_function_may_hold_classes() -> None:
    def made() -> float:
        class Pair:
            left: float = 1.0

            def total(self) -> float:
                class Two:
                    right = 2.0

                return self.left + Two.right

        return Pair().total()

    assert converted(made) is not made
    assert converted(made)() == 3.0


def test_a_file_that_has_changed_since_is_not_the_source(tmp_path: Path) -> None:
    path = tmp_path / "changes.py"
    path.write_text("def f(x):\n    return x + 1\n")
    f = loaded(path, "f")
    path.write_text("def f(x):\n    return x + 2  # longer\n")
    linecache.checkcache()
    assert converted(f) is f
    assert "the file has changed since" in reason(f)


@pytest.mark.parametrize("change", ["x - 1", "x + 1.0", "x + True", "y + 1", "np.sin(x)", "(lambda: x + 2)()", "x + -0.0"])
def test_every_change_is_seen(tmp_path: Path, change: str) -> None:
    path = tmp_path / "changes.py"
    path.write_text(f"def f(x):\n    return {'(lambda: x + 1)()' if 'lambda' in change else 'x + 0.0' if '0.0' in change else 'x + 1'}\n")
    f = loaded(path, "f")
    path.write_text(f"def f(x):\n    return {change}  # {change}\n")
    linecache.checkcache()
    assert converted(f) is f


def test_equal_functions_of_two_files_have_tracebacks_of_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("def f(x):\n    return [1][x]\n")
        f = loaded(tmp_path / f"{name}.py", "f")
        with pytest.raises(IndexError) as error:
            converted(f)(3)
        assert any(frame.filename.endswith(f"{name}.py") for frame in traceback.extract_tb(error.tb))


def test_the_sources_of_libraries_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "is_of_library", lambda f: False)
    functions = [f for f in vars(statistics).values() if isinstance(f, FunctionType) and f.__module__ == "statistics"]
    found = {f.__name__: reason(f) for f in functions if converted(f) is f}
    assert set(found.values()) <= {"it is a generator, or asynchronous", "a walrus stands in the test of a while loop"}
    assert len(found) < len(functions) / 4


def test_what_a_function_became_can_be_read() -> None:
    def absolute(x: float) -> float:
        if x < 0:
            return -x
        return x

    text = ns.jit(absolute).source("python")
    assert "_ns_.choose(x < 0, _ns_part_1_, _ns_part_2_" in text
    compile(text, "text", "exec")
    assert ns.scan(absolute).source("python") == text == ns.grad(absolute).source("python")
    with pytest.raises(ValueError, match=r"source\('python'\): absolute is not converted: .*as_written"):
        ns.jit(ns.as_written(absolute)).source("python")


def test_a_refusal_says_why_a_function_is_not_converted() -> None:
    def halves(x: Any) -> Any:
        while x > 1:
            x = x / 2
            yield x

    with pytest.raises(
        ns.TracerBoolError, match=r"test_source\.py, line \d+\) in halves, which is not converted, since it is a generator.*np\.where"
    ):
        ns.jit(lambda x: sum(halves(x)), mode="python")(8.0)
    space: dict[str, Any] = {"__name__": "elsewhere"}
    exec(compile("def unseen(x):\n    return x if x > 0 else -x\n", "nowhere.py", "exec"), space)
    with pytest.raises(ns.TracerBoolError, match=r"^the source of unseen cannot be read, .*needs a concrete value"):
        ns.jit(space["unseen"], mode="python")(8.0)
