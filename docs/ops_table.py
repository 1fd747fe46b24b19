"""Writes docs/ops.md, the table of supported functions: `python docs/ops_table.py`. A test holds the page against the code.

What takes long, or another environment, is measured on its own and kept in docs/ops_measured.json: which loops LLVM made vectors of
(`python docs/ops_table.py --simd`, two minutes), and which names PyTensor has, too (`--pytensor`, where it is installed).
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ops_support

import numbascan.tensor as nt
from numbascan.front.variable import DISPATCH, METHODS

PAGE = Path(__file__).with_name("ops.md")
MEASURED = Path(__file__).with_name("ops_measured.json")
HEAD = """# Functions

What a traced value or a symbolic variable understands. Each function stands under NumPy's name where there is one (call it with
`np.`, or `scipy.special.`) and under its names in `numbascan.tensor` (with `nt.`, or as a method where `x.` stands); all are the same.
Names in **bold** are PyTensor's, too. Arguments are NumPy's; `where=` and `out=` may be given to elementwise functions.

Operators (`+ - * / // % ** @`, comparisons, `& | ^ ~ << >>`, `abs`, `divmod`) mean what they mean in NumPy, and `x[...]` takes
positions, slices, new axes, `...`, arrays of integers and masks. {methods} work as well.

What the last columns say was found by trying:

- *grad*: `ns.grad`, `ns.jvp` and the others go through it. *no*: its results are truth values, places or whole numbers.
- *CUDA*: it has code for `mode="cuda"`. *small*: for arrays whose lengths are fixed and small, as those of a step often are.
- *SIMD*: LLVM makes vectors of a loop over its elements (float64, x86-64 with AVX2; memory that is filled or
  copied is none). *BLAS*: it is a product of matrices, which BLAS makes.
  In the lanes of `ns.vmap` a loop over lanes lies around it, and goes by its own rules.

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


def functions() -> list[tuple[Callable[..., Any], list[str], list[str], list[str]]]:
    """Each function with NumPy's names, names in numbascan.tensor, and method names; in the order of the table."""
    ours: dict[int, tuple[Callable[..., Any], list[str], list[str], list[str]]] = {}
    for key, function in DISPATCH.items():
        name = numpy_name(key)
        if isinstance(key, tuple) or name is None:
            continue
        entry = ours.setdefault(id(function), (function, [], [], []))
        if name not in entry[1]:
            entry[1].append(name)
    for name, function in [*_public(nt, ""), *_public(nt.fft, "fft.")]:
        if "." in name and getattr(function, "__module__", "") != nt.fft.__name__:
            continue  # what that file imports
        is_ours = "." not in name and inspect.isfunction(function) and function.__module__.startswith("numbascan.front")
        if id(function) in ours or is_ours:
            ours.setdefault(id(function), (function, [], [], []))[2].append(name)
    for name, function in ((name, inspect.unwrap(function)) for name, function in METHODS.items()):
        if id(function) in ours and not name.startswith("_"):
            ours[id(function)][3].append(name)
    table = [(function, *map(sorted, names)) for function, *names in ours.values()]
    return sorted(table, key=lambda row: re.sub(r"[^a-z0-9]", "", (row[2] or row[1])[0].lower().replace("np.", "").replace("fft.", "")))


def _public(module: Any, prefix: str) -> list[tuple[str, Any]]:
    return [(prefix + name, getattr(module, name)) for name in sorted(dir(module)) if not name.startswith("_")]


def rows() -> list[tuple[str, ...]]:
    """The cells of each row."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    table = []
    for function, *names in functions():
        key = bare_name(names[0] + names[1])
        tried = (ops_support.derivatives(function, key), ops_support.cuda(function, key), measured["simd"][(names[0] + names[1])[0]])
        ours = [f"**`{name}`**" if name in measured["pytensor"] else f"`{name}`" for name in names[1]]
        ours += [f"`x.{name}`" for name in names[2]]
        table.append((_code(names[0]), ", ".join(ours), summary(function), *tried))
    return table


def bare_name(names: list[str]) -> str:
    """The first of a function's names, without the module."""
    return names[0].split(".")[-1]


def measure_simd() -> dict[str, str]:
    """Of every function, by its first name, what `ops_support.simd` says."""
    return {(names[0] + names[1])[0]: ops_support.simd(function, bare_name(names[0] + names[1])) for function, *names in functions()}


def measure_pytensor() -> list[str]:
    """The names of numbascan.tensor that PyTensor has, too."""
    from pytensor import tensor
    from pytensor.tensor import extra_ops, fft, linalg, math, special, subtensor

    theirs = {name for module in (tensor, extra_ops, linalg, math, special, subtensor) for name, _ in _public(module, "")}
    theirs |= {name for name, _ in _public(fft, "fft.")}
    return sorted(name for _, _, names, _ in functions() for name in names if name in theirs)


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """The text of docs/ops.md."""
    methods = sorted(numpy_name(key) for key in DISPATCH if isinstance(key, tuple))
    head = HEAD.format(methods=_code(methods))
    columns = "NumPy, SciPy", "`nt.`", "gives", "grad", "CUDA", "SIMD"
    lines = [head, ":::::{div} five-columns", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows()), ":::::"]) + "\n"


if __name__ == "__main__":
    known = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    known |= {"simd": measure_simd()} if "--simd" in sys.argv else {}
    known |= {"pytensor": measure_pytensor()} if "--pytensor" in sys.argv else {}
    MEASURED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
