"""The size of the house: lines of code per room, as docs/design.md states them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import numbascan

PACKAGE = Path(numbascan.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "design.md"
STALE = 0.95  # of the stated number: below it the room has shrunk, and the page should say so


def lines_of_code(file: Path) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    text = file.read_text(encoding="utf-8")
    lines = {k for k, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def rooms() -> Counter[str]:
    found: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        found["/".join(file.relative_to(PACKAGE).parts[:-1]) or "numbascan"] += lines_of_code(file)
    return found


def stated() -> dict[str, int]:
    section = PAGE.read_text(encoding="utf-8").partition("## Size")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([\d,]+) \|", section, re.MULTILINE)
    return {room: int(number.replace(",", "")) for room, number in rows}


def test_no_room_is_larger_than_the_page_says() -> None:
    """A room that grows says so: raise its number in docs/design.md, with the reason in the commit."""
    found, known = rooms(), stated()
    assert found.keys() == known.keys()
    larger = {room: (lines, known[room]) for room, lines in found.items() if lines > known[room]}
    assert not larger
    smaller = {room: (lines, known[room]) for room, lines in found.items() if lines < STALE * known[room] - 10}
    assert not smaller


def test_comments_docstrings_and_blank_lines_are_no_code(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text('"""A module."""\n\n# a comment\nX = [\n    1,  # one\n\n]\n\n\ndef f():\n    """Nothing."""\n    return X\n')
    assert lines_of_code(file) == 5
