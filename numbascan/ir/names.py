"""Names in generated code and texts of errors, made of whatever a variable or a loop is called."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable

LONGEST = 80  # bytes: a file's name may have 255, and holds that of its function twice
WORD = r"[^\W\d]\w*"
"""A name in the text of generated code, as a regular expression: `identifier` gives no other."""
RESERVED = {"np", "math", "numba", "range", "min", "max", "abs", "int", "float", "bool", "complex", "round", "divmod", "pow", "len"}
RESERVED |= {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)}


class Names:
    """The names that a function of generated code uses."""

    def __init__(self, taken: Iterable[str] = (), beginnings: tuple[str, ...] = ()) -> None:
        """`taken`: names that others use; `beginnings`: of the names that they may make up."""
        self.used = {*RESERVED, *taken}
        self.counters: set[str] = set()  # names of loop indices; only other loops may use them again
        self.beginnings = beginnings

    def fresh(self, hint: str | None, fallback: str = "v", is_counter: bool = False) -> str:
        """A name that is not used, as near to `hint` as possible."""
        base = identifier(hint or fallback, fallback)
        while base.startswith(self.beginnings):
            base = f"{fallback}_{base}"
        name, count = base, 1
        while name in self.used or (name in self.counters and not is_counter):
            count += 1
            name = f"{base}_{count}" if not base[-1].isdigit() else f"{base}_v{count}"
        self.used.add(name)
        return name

    def copy(self) -> Names:
        """The same names, to which a pass adds its own."""
        names = Names(beginnings=self.beginnings)
        names.used, names.counters = set(self.used), set(self.counters)
        return names


def identifier(text: str, fallback: str) -> str:
    """The name nearest to `text` that may stand in generated code; two that Python takes for one are one."""
    letters = unicodedata.normalize("NFKC", text[:LONGEST])  # as Python does: µ (micro) is μ, x₁ is x1
    name = "".join(letter if re.match(r"\w", letter) and f"_{letter}".isidentifier() else "_" for letter in letters)
    name = name.encode()[:LONGEST].decode(errors="ignore").strip("_")
    if not name:
        return fallback
    return name if name.isidentifier() and not keyword.iskeyword(name) and not keyword.issoftkeyword(name) else f"{fallback}_{name}"


def verbatim(text: str) -> str:
    """`text` as part of a message into which numbers are put, in the places {0}, {1}, …"""
    return text.replace("{", "{{").replace("}", "}}")
