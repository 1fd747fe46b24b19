"""Generated modules whose functions are lowered from their text. Importing this imports Numba.

    def scan_step(x):                        # what Numba sees
        return _scan_step_body(x)            # an intrinsic, whose code is made here

Generated text is a small part of Python: numbers whose types do not change, arrays in C order, loops over ranges, choices, errors. Types
follow from arguments in one walk (`types.py`), and code from types in another (`code.py`). Numba's own way takes ten walks. Its code counts
references to each array and copies each value, which LLVM has to remove: half to three quarters of a first call.

Numba types and lowers each operation and each call, so that the numbers are the same, bit by bit. All else raises Unknown, and Numba then
compiles the text as it stands.
"""

from __future__ import annotations

import ast
from copy import copy
from types import CodeType
from typing import Any

from numba.extending import intrinsic

from ..one_pipeline import note_lowered
from ..shortcuts import LOWERED as NUMBA
from .code import Code
from .text import Unknown
from .types import Types

_functions: dict[str, ast.FunctionDef] = {}


def is_unknown(error: BaseException | None) -> bool:
    """True if an error is caused by a text that is not lowered here."""
    while error is not None and not isinstance(error, Unknown):
        error = error.__cause__ or error.__context__
    return error is not None


def module_code(text: str, path: str) -> CodeType | None:
    """The code of a generated module whose functions only call intrinsics, lowered here. None if the shortcut is not taken."""
    if not NUMBA.is_taken():
        return None
    tree = ast.parse(text)
    stmts: list[ast.stmt] = ast.parse(f"from {__name__} import body as _body").body
    for stmt in tree.body:
        if isinstance(stmt, ast.FunctionDef):
            key, args = f"{path}:{stmt.name}", ", ".join(one.arg for one in stmt.args.args)
            _functions[key] = copy(stmt)
            stmts += ast.parse(f"_{stmt.name}_body = _body({key!r}, globals())").body
            stmt.body = ast.parse(f"return _{stmt.name}_body({args})").body
        stmts.append(stmt)
    tree.body = stmts
    return compile(ast.fix_missing_locations(tree), path, "exec")


def body(key: str, names: dict[str, Any]) -> Any:
    """The intrinsic that a module's function calls in place of its text. names: the module's globals."""
    function = _functions[key]
    arguments = ", ".join(["context", *(f"_{k}" for k in range(len(function.args.args)))])

    def typing(context: Any, *args: Any) -> Any:
        typed = Types(context, function, names, args)

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            note_lowered(context)
            return Code(context, builder, function, typed, values).returned()

        return NUMBA.signature(typed.returned, *args), emit

    made: dict[str, Any] = {"typing": typing}
    exec(f"def body({arguments}): return typing({arguments})", made)  # an intrinsic takes as many arguments as it names
    return intrinsic(made["body"])
