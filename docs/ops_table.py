"""Writes docs/ops.md, the table of supported functions: `python docs/ops_table.py`. A test holds the page against the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np

import numbascan.tensor as nt
from numbascan.front.unsupported import OF_UNKNOWN_LENGTH
from numbascan.front.variable import DISPATCH, METHODS

PAGE = Path(__file__).with_name("ops.md")
HEAD = """# Functions

What a traced value or a symbolic variable understands. Each function stands under NumPy's name where there is one (call it with
`np.`, or `scipy.special.`) and under its names in `numbascan.tensor` (call it with `nt.`); both are the same. *method* means that
`x.name(...)` works too. Arguments are NumPy's; `out=` and `where=` are refused.

Operators (`+ - * / // % ** @`, comparisons, `& | ^ ~ << >>`, `abs`, `divmod`) mean what they mean in NumPy, and `x[...]` takes
positions, slices, new axes, `...` and arrays of integers. {methods} work as well.

Known and refused, because the length of the result depends on values: {refused}.

<!-- Written by docs/ops_table.py. -->
"""


def numpy_name(key: object) -> str | None:
    """How a user reaches a key of DISPATCH: `np.tanh`, `np.linalg.solve`, `np.add.reduce`, `scipy.special.erf`."""
    if isinstance(key, str):
        return key
    if isinstance(key, tuple):
        return f"np.{key[0].__name__}.{key[1]}"
    name = getattr(key, "__name__", None)
    if name is None:
        return None
    if getattr(np, name, None) is key:
        return f"np.{name}"
    module = getattr(key, "__module__", "") or "scipy.special"
    return f"{module.replace('numpy', 'np', 1)}.{name}"


def summary(function: object) -> str:
    """The first sentence of a docstring, for a table."""
    paragraph = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    first = re.split(r"(?<=[.;:]) ", paragraph, maxsplit=1)[0].rstrip(".;:")
    return first.replace("|", r"\|").replace("*", r"\*").replace("_", r"\_")


def rows() -> list[tuple[str, str, str, str]]:
    """NumPy's names, names in numbascan.tensor, method names, summary: one row for each function."""
    ours: dict[int, tuple[object, list[str], list[str], list[str]]] = {}
    for key, function in DISPATCH.items():
        name = numpy_name(key)
        if isinstance(key, tuple) or name is None:
            continue
        entry = ours.setdefault(id(function), (function, [], [], []))
        if name not in entry[1]:
            entry[1].append(name)
    for name in sorted(name for name in dir(nt) if not name.startswith("_")):
        function = getattr(nt, name)
        if id(function) in ours or (inspect.isfunction(function) and function.__module__.startswith("numbascan.front")):
            ours.setdefault(id(function), (function, [], [], []))[2].append(name)
    for name, function in ((name, inspect.unwrap(function)) for name, function in METHODS.items()):
        if id(function) in ours and not name.startswith("_"):
            ours[id(function)][3].append(name)
    table = [(*map(_code, map(sorted, names)), summary(function)) for function, *names in ours.values()]
    return sorted(table, key=lambda row: re.sub(r"[^a-z0-9]", "", (row[1] or row[0]).lower().replace("np.", "")))


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """The text of docs/ops.md."""
    methods = sorted(numpy_name(key) for key in DISPATCH if isinstance(key, tuple))
    refused = sorted(map(numpy_name, OF_UNKNOWN_LENGTH))
    head = HEAD.format(methods=_code(methods), refused=_code(refused))
    lines = [head, "| NumPy, SciPy | `nt.` | method | gives |", "|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows()]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
