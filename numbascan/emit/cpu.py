"""A plan as a Python module with one Numba function."""

from __future__ import annotations

import re

from ..ir.loops import Argument, Call, For, Function, If, Stmt
from .names import SCALARS, SPECIAL
from .text import statements

_TYPES = {"bool": "boolean"}


def module_text(function: Function, fastmath: bool = False) -> str:
    """The whole module: imports, signature, function. It needs nothing that is not written in it but named helpers of numbascan."""
    body = "\n".join(statements(function.body))
    signature = ", ".join(_argument_type(argument) for argument in function.arguments)
    arguments = ", ".join(argument.name for argument in function.arguments)
    options = ["cache=True", 'error_model="numpy"', "nogil=True", *(["fastmath=True"] if fastmath else [])]
    single = f"({signature},)" if len(function.arguments) == 1 else f"({signature})"
    lines = [
        *_imports(function, body),
        "",
        "",
        f"@njit({single}, {', '.join(options)})",
        f"def {function.name}({arguments}):",
        body,
        "",
    ]
    return "\n".join(lines)


def _argument_type(argument: Argument) -> str:
    name = f"types.{_TYPES.get(argument.dtype, argument.dtype)}"
    if not argument.rank:
        return name
    access = "" if argument.is_written else ", readonly=True"
    return f'types.Array({name}, {argument.rank}, "C"{access})'


def _imports(function: Function, body: str) -> list[str]:
    lines = ["import math"] if "math." in body else []
    lines += ["import numpy as np", "from numba import njit, types"]
    words = set(re.findall(r"[A-Za-z_]\w*", body))
    for module, names in (("scalars", SCALARS), ("special", SPECIAL)):
        used = sorted(words.intersection(names))
        if used:
            lines.append(f"from numbascan.emit.{module} import {', '.join(used)}")
    for routine in sorted(routines(function.body)):
        module, name = routine.rsplit(".", 1)
        lines.append(f"from numbascan.emit.routines.{module} import {name}")
    return lines


def routines(stmts: list[Stmt]) -> set[str]:
    """The library routines that a block calls, as "module.function"."""
    found: set[str] = set()
    for stmt in stmts:
        if isinstance(stmt, Call) and not stmt.routine.startswith("np."):
            found.add(stmt.routine)
        elif isinstance(stmt, For):
            found |= routines(stmt.body)
        elif isinstance(stmt, If):
            found |= routines(stmt.then) | routines(stmt.otherwise)
    return found
