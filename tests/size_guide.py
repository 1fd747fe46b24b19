"""Files of the package stay within 400 lines, functions within 60. What is longer is listed here with its reason."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60

# "numbascan/file.py" or "numbascan/file.py:Class.function" -> why a split would make it harder to read
EXCEPTIONS: dict[str, str] = {}


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The qualified name and length of each function below ``node``."""
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, child.end_lineno - child.lineno + 1
        yield from functions(child, name)


def too_long(root: Path) -> dict[str, str]:
    """What is over its limit, by place."""
    found = {}
    for path in sorted(root.glob("numbascan/**/*.py")):
        place = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        if (lines := len(text.splitlines())) > FILE_LINES:
            found[place] = f"{lines} lines, over {FILE_LINES}"
        for name, length in functions(ast.parse(text, place)):
            if length > FUNCTION_LINES:
                found[f"{place}:{name}"] = f"{length} lines, over {FUNCTION_LINES}"
    return found


def complaints(found: dict[str, str], exceptions: dict[str, str]) -> list[str]:
    """What is too long without an exception, and exceptions without use or without a reason."""
    return [
        *(f"{place}: {what}" for place, what in found.items() if place not in exceptions),
        *(f"{place}: the exception is stale" for place in exceptions if place not in found),
        *(f"{place}: the exception gives no reason" for place, reason in exceptions.items() if not reason.strip()),
    ]


def main() -> int:
    """Print the complaints; 1 if there are any."""
    lines = complaints(too_long(Path(__file__).resolve().parent.parent), EXCEPTIONS)
    print("\n".join(lines) or "sizes: all within the guide")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
