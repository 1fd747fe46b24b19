"""What is near a change: `python tests/near.py [--since COMMIT] [--card NAME …]`, or `tox -e near -- …`, in two minutes with a warm cache.

Ruff, import-linter, the snapshots, and the tests that `near.toml` names for the folders in which something has changed since a commit
(default: the last one; where nothing has, the one before). Cards that a change touches, and those of `--card`, are compiled each by itself,
at its ends, too (`ops/test_one_card.py`).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SNAPSHOTS, OF_CARD = "tests/snapshots", "tests/ops/test_one_card.py"
STYLE = (("ruff", "check"), ("ruff", "format", "--check"), ("lint-imports",))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT", help="what has changed since then is near")
    parser.add_argument("--card", action="append", default=[], metavar="NAME", help="a card to compile by itself")
    options = parser.parse_args()
    since, files = changed(options.since)
    cards = sorted({*options.card, *cards_in(difference(since))})
    tests = tests_of(files)
    print(f"since {since}: {len(files)} files have changed; cards: {', '.join(cards) or 'none'}; tests: {' '.join(tests)}", flush=True)
    pytest = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "--dist",
        "worksteal",
        *tests,
        *[OF_CARD] * bool(cards),
        *(f"--card={card}" for card in cards),
    )
    statuses = [
        subprocess.run([sys.executable, "-m", *command] if command[0] == "pytest" else command, cwd=ROOT).returncode
        for command in (*STYLE, pytest)
    ]
    return max(statuses)


def changed(since: str | None) -> tuple[str, list[str]]:
    """The commit that is meant, and the files that have changed since then; new ones, which git does not know yet, too."""
    for commit in [since] if since else ["HEAD", "HEAD~1"]:
        files = [*git("diff", "--name-only", commit), *git("ls-files", "--others", "--exclude-standard")]
        if files or since:
            break
    return commit, sorted(files)


def difference(since: str) -> str:
    """How cards' files differ, each place headed by the statement in which it is."""
    return "\n".join(git("diff", "--unified=0", since, "--", "numbascan/ops"))


def git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def table() -> dict[str, list[str]]:
    """By place, the tests to run."""
    return tomllib.loads((ROOT / "tests/near.toml").read_text(encoding="utf-8"))


def tests_of(files: Iterable[str]) -> list[str]:
    """The tests to run after a change of files."""
    tests = [SNAPSHOTS]
    for file in files:
        place = max((place for place in table() if file.startswith(place)), key=len, default="")
        tests += table()[place] if place else []
        if re.fullmatch(r"tests/.*/test_\w+\.py|README\.md|docs/.*\.md", file) and (ROOT / file).exists():
            tests.append(file)
    folders = [test for test in tests if not Path(test).suffix]
    return [test for test in dict.fromkeys(tests) if not any(test.startswith(f"{folder}/") for folder in folders)]


def cards_in(text: str) -> set[str]:
    """The cards that a difference of files names: in its lines, or in what stands around them."""
    import numbascan.tensor  # noqa: F401 - registers all cards
    from numbascan.ops.card import CARDS

    words = set(re.findall(r"\w+", "\n".join(line for line in text.splitlines() if re.match(r"@@|[-+](?![-+])", line))))
    functions = {word for word in words if word.islower()}
    return CARDS.keys() & {*functions, *(word.lower() for word in words if word.isupper())}


def markdown() -> str:
    """The table as docs/contributing.md shows it."""
    rows = [f"| `{place}` | {' '.join(f'`{test}`' for test in tests)} |" for place, tests in table().items()]
    return "\n".join(["| after a change in | `tox -e near` runs |", "|---|---|", *rows])


if __name__ == "__main__":
    sys.exit(main())
