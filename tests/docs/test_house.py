"""The house as docs/design.md draws it: what layers of folders cannot say, and `tox -e lint` does not see."""

from __future__ import annotations

import ast
from pathlib import Path

import numbascan

HOUSE = Path(numbascan.__file__).parent


def _modules() -> dict[str, Path]:
    """Each file of the package under its module's name."""
    parts = {path: (HOUSE.name, *path.relative_to(HOUSE).with_suffix("").parts) for path in HOUSE.rglob("*.py")}
    return {".".join(names[:-1] if names[-1] == "__init__" else names): path for path, names in parts.items()}


def _imports(module: str, modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports, in functions and for types alone, too."""
    package = module if modules[module].name == "__init__.py" else module.rpartition(".")[0]
    targets = set()
    for node in ast.walk(ast.parse(modules[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (above, node.module)))
            targets |= {f"{source}.{name.name}" if f"{source}.{name.name}" in modules else source for name in node.names}
        elif isinstance(node, ast.Import):
            targets |= {name.name for name in node.names}
    return (targets & modules.keys()) - {module}


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = imports[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached


def test_no_circle_of_imports_has_more_than_two_files() -> None:
    modules = _modules()
    imports = {module: _imports(module, modules) for module in modules}
    reached = {module: _reached(module, imports) for module in modules}
    circles = {frozenset(other for other in reached[module] if module in reached[other]) for module in modules}
    assert len(modules) > 200
    assert [sorted(circle) for circle in circles if len(circle) > 2] == []
