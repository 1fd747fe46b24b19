"""Generated text of some 250 programs, held as it was when last read and found good: nothing is compiled.

`pytest tests/snapshots --update-snapshots` writes it anew. A text of more than LONG lines is held by its digest and by its size: lines,
loops, checks, arrays. Whole texts that were seen on this machine are kept in the folder of compiled code, so that differences of long ones
can be shown, too. Each group is planned in a process of its own: equal nodes are one node, which keeps the name that it got first. Folded
constants are held to FIGURES: NumPy's functions differ in last bits from processor to processor.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import kept_kernels
import pytest
from snapshots.programs import GROUPS, Texts

HELD = Path(__file__).parent / "texts"
LONG = 40  # lines
FIGURES = 5  # of a number
MOST_SHOWN = 12  # programs whose differences are shown
MACHINES = ("cpu", "cuda")


@pytest.mark.parametrize("group", GROUPS)
def test_programs_have_the_text_that_they_had(group: str, request: pytest.FixtureRequest) -> None:
    now = {name.removeprefix(f"{group}/"): held(texts) for name, texts in with_texts(made(group)).items()}
    if request.config.getoption("--update-snapshots"):
        update(group, now)
    before = {path.stem: path.read_text(encoding="utf-8") for path in (HELD / group).glob("*.txt")}
    changed = [name for name in sorted(now.keys() | before.keys()) if now.get(name) != before.get(name)]
    assert not changed, told(group, changed, before, now)


def made(group: str) -> Texts:
    """What `programs.py` makes of a group, without what other tests left in memory."""
    run = subprocess.run([sys.executable, "-m", "snapshots.programs", group], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {name: (rounded(cpu), rounded(cuda)) for name, (cpu, cuda) in json.loads(run.stdout).items()}


def rounded(text: str) -> str:
    return re.sub(r"\b\d+\.\d{6,}(?:e[-+]?\d+)?\b", lambda number: f"{float(number[0]):.{FIGURES}g}", text)


def with_texts(programs: Texts) -> Texts:
    """The programs, their texts kept for a later run that shows differences."""
    for text in {text for texts in programs.values() for text in texts if is_long(text)}:
        kept_kernels.kept("snapshots", digest(text), lambda text=text: text)
    return programs


def held(texts: tuple[str, str]) -> str:
    """What stands in the file of a program: sizes, and short texts."""
    return "\n".join(
        f"### {machine}: {sizes(text)}{f', digest {digest(text)}' if is_long(text) else chr(10) * 2 + text}"
        for machine, text in zip(MACHINES, texts, strict=True)
    )


def is_long(text: str) -> bool:
    return len(text.splitlines()) > LONG


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sizes(text: str) -> str:
    """What a reader sees grow."""
    counts = {
        "lines": len(text.splitlines()),
        "loops": len(re.findall(r"^ *(?:for|while) ", text, re.MULTILINE)),
        "checks": len(re.findall(r"(?<!^)ERROR_\d+\b", text, re.MULTILINE)),
        "arrays": len(re.findall(r"\b(?:np\.(?:empty|zeros)|small_array|array)\(", text)),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def update(group: str, now: dict[str, str]) -> None:
    """Writes the files of a group; those of programs that are no more go."""
    (HELD / group).mkdir(parents=True, exist_ok=True)
    for path in (HELD / group).glob("*.txt"):
        if path.stem not in now:
            path.unlink()
    for name, text in now.items():
        (HELD / group / f"{name}.txt").write_text(text, encoding="utf-8")


def told(group: str, changed: list[str], before: dict[str, str], now: dict[str, str]) -> str:
    """Which programs have another text, and where it differs."""
    lines = [f"{len(changed)} of {len(now)} programs have another text: {', '.join(f'{group}/{name}' for name in changed)}"]
    for name in changed[:MOST_SHOWN]:
        old, new = whole(before.get(name, "")), whole(now.get(name, ""))
        lines += unified_diff(old, new, f"{group}/{name} as it was", f"{group}/{name}", lineterm="")
    if len(changed) > MOST_SHOWN:
        lines.append(f"the differences of {len(changed) - MOST_SHOWN} more are not shown")
    return "\n".join([*lines, "If that is meant: pytest tests/snapshots --update-snapshots"])


def whole(text: str) -> list[str]:
    """The lines of what is held, with texts of which there is only a digest where this machine has seen them."""
    return list(_lines(text))


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield line
        match = re.search(r", digest (\w+)$", line)
        seen = kept_kernels.FOLDER / "snapshots" / match[1] if match else None
        if seen is not None and seen.exists():
            yield from json.loads(seen.read_text(encoding="utf-8")).splitlines()


def test_a_changed_text_is_named_and_its_difference_is_shown() -> None:
    before = held(("x = 1\ny = 2\n", "a = 1\n"))
    now = held(("x = 1\ny = 3\n", "a = 1\n"))
    lines = told("random", ["007", "gone"], {"007": before, "gone": before}, {"007": now}).splitlines()
    assert lines[0] == "2 of 1 programs have another text: random/007, random/gone"
    assert {"-y = 2", "+y = 3", "-a = 1", "+++ random/007"} <= set(lines)


def test_long_texts_are_held_by_their_sizes_and_shown_whole_where_they_were_seen() -> None:
    text = "".join(f"for k{k} in range(n):\n    x = np.empty(n)\n" for k in range(LONG))
    texts = (text, text.replace("k7", "j7"))
    with_texts({"one": texts})
    file = held(texts)
    assert file.splitlines()[0] == f"### cpu: {2 * LONG} lines, {LONG} loops, 0 checks, {LONG} arrays, digest {digest(text)}"
    assert len(file.splitlines()) == 2
    assert "for k7 in range(n):" in whole(file)
    assert "for j7 in range(n):" in whole(file)


def test_the_files_of_programs_that_are_no_more_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "HELD", tmp_path)
    update("random", {"001": "one", "002": "two"})
    update("random", {"002": "other"})
    assert {path.name: path.read_text() for path in (tmp_path / "random").iterdir()} == {"002.txt": "other"}
