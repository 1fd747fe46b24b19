"""What Numba's machine code for the CPU tells about a function: may it raise, does it take memory?

Optimised code is asked, in which functions are that it calls, Numba's own among them: a division by a number that is not 0 raises nothing.
"""

from __future__ import annotations

import pickle
import re
from typing import Any

_RAISES = ".const.picklebuf."  # where the errors of a function lie; every `raise` names one
_ERROR = re.compile(r'^@"?\.const\.pickledata\..*? c"(.*?)"', re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")
_TAKES_MEMORY = re.compile(r"@NRT_(?:Allocate|MemInfo_(?:alloc|new|varsize))")

Fault = tuple[str, str]
"""The name of an error, and its first message."""


def takes_memory(function: Any) -> bool:
    """Does a compiled function make arrays, lists or text that are taken from memory?"""
    return any(_TAKES_MEMORY.search(text) for text in function.inspect_llvm().values())


def faults_of(function: Any) -> list[Fault]:
    """The errors that a compiled function may raise; of one that cannot be read the name is "an error"."""
    texts = [text for text in function.inspect_llvm().values() if _RAISES in text]
    found = [fault for text in texts for fault in map(_fault, _ERROR.findall(text)) if fault is not None]
    return found or [("an error", "")] * bool(texts)


def _fault(written: str) -> Fault | None:
    """An error from its pickle, as LLVM writes it; None for other data, such as the digest beside it."""
    try:
        kind, arguments, *_ = pickle.loads(_ESCAPED.sub(lambda byte: bytes([int(byte[1], 16)]), written.encode("latin-1")))
        return kind.__name__, str(arguments[0]) if arguments else ""
    except Exception:  # whatever comes of reading what is no pickle
        return None
