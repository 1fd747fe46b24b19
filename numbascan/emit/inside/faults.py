"""The errors that a compiled function may raise, and whether it takes memory, as Numba's code for the CPU tells.

It is read from optimised code, which holds the functions that it calls, Numba's own among them, and no error that cannot occur: a division
by a number other than 0 raises nothing.
"""

from __future__ import annotations

import pickle
import re
from typing import Any

_RAISES = ".const.picklebuf."  # prefix of the constants that hold a function's errors; every `raise` names one
_ERROR = re.compile(r'^@"?\.const\.pickledata\..*? c"(.*?)"', re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")
_TAKES_MEMORY = re.compile(r"@NRT_(?:Allocate|MemInfo_(?:alloc|new|varsize))")

Fault = tuple[str, str]
"""The name of an error, and its first message."""


def takes_memory(function: Any) -> bool:
    """True if a compiled function takes memory for arrays, lists or text."""
    return any(_TAKES_MEMORY.search(text) for text in function.inspect_llvm().values())


def faults_of(function: Any) -> list[Fault]:
    """The errors that a compiled function may raise; a single one named "an error" if none can be read."""
    texts = [text for text in function.inspect_llvm().values() if _RAISES in text]
    found = [fault for text in texts for fault in map(_fault, _ERROR.findall(text)) if fault is not None]
    return found or [("an error", "")] * bool(texts)


def _fault(written: str) -> Fault | None:
    """An error from its pickle, as LLVM writes it; None for other data, such as the digest beside it."""
    try:
        kind, arguments, *_ = pickle.loads(_ESCAPED.sub(lambda byte: bytes([int(byte[1], 16)]), written.encode("latin-1")))
        return kind.__name__, str(arguments[0]) if arguments else ""
    except Exception:  # whatever comes of reading data that is no pickle
        return None
