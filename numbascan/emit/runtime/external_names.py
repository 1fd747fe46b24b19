"""How generated code calls functions of `ns.external`, known without importing Numba."""

from __future__ import annotations

import re

EXTERNALS = "externals."
"""What stands before the name of such a function where the CPU's code calls it."""

OF_THIS_PROCESS = "of_this_process_"
"""In the name of a function of which no text tells all that it reads: what calls it is not kept."""


def routine_of(function: str, digest: str, is_alone: bool) -> str:
    """The name for a function of the user's that is made of what the digest says.

    >>> routine_of("<lambda>", "0123456789abcdef", True)
    'lambda_of_this_process_0123456789abcdef'
    """
    return f"{re.sub(r'[^a-zA-Z0-9_]', '_', function).strip('_') or 'external'}_{OF_THIS_PROCESS * is_alone}{digest}"


def function_of(routine: str) -> str:
    """The name of the user's function that is called so; "" of a routine that is none.

    >>> function_of("externals.kepler_0123456789abcdef")
    'kepler'
    """
    match = re.fullmatch(rf"externals\.(\w+?)_(?:{OF_THIS_PROCESS})?[0-9a-f]{{16}}", routine)
    return "" if match is None else match[1]
