"""How generated code calls functions of `ns.external`, known without importing Numba."""

from __future__ import annotations

import re

EXTERNALS = "externals."
"""The prefix of such a function's name in the CPU's code."""

OF_THIS_PROCESS = "of_this_process_"
"""Part of the name of a function that reads what no text tells: kernels that call it are not kept on disk."""


def routine_of(function: str, digest: str, is_alone: bool) -> str:
    """The routine's name for a user's function: its own name, a mark if it is for this process alone, and the digest of all that it reads.

    >>> routine_of("<lambda>", "0123456789abcdef", True)
    'lambda_of_this_process_0123456789abcdef'
    """
    return f"{re.sub(r'[^a-zA-Z0-9_]', '_', function).strip('_') or 'external'}_{OF_THIS_PROCESS * is_alone}{digest}"


def function_of(routine: str) -> str:
    """The name of the user's function behind a routine; "" for other routines.

    >>> function_of("externals.kepler_0123456789abcdef")
    'kepler'
    """
    match = re.fullmatch(rf"externals\.(\w+?)_(?:{OF_THIS_PROCESS})?[0-9a-f]{{16}}", routine)
    return "" if match is None else match[1]
