"""Valid names in generated code, and safe texts in messages, from any name of a variable or loop."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable

LONGEST = 80  # bytes: a file name may have 255, and holds the name of its function twice
WORD = r"[^\W\d]\w*"
"""Regular expression of a name in generated code: `identifier` gives no other."""
RESERVED = {"np", "math", "numba", "range", "min", "max", "abs", "int", "float", "bool", "complex", "round", "divmod", "pow", "len"}
RESERVED |= {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)}


class Names:
    """The names that a function of generated code uses."""

    def __init__(self, taken: Iterable[str] = (), beginnings: tuple[str, ...] = ()) -> None:
        """`taken`: names that others use; `beginnings`: prefixes left to names that others make up."""
        self.used = {*RESERVED, *taken}
        self.counters: set[str] = set()  # names of loop indices; only other loops may use them again
        self.beginnings = beginnings
        self._counts: dict[tuple[str, bool], int] = {}  # by hint and kind, the number of the latest name
        self._hints: dict[str, str] = {}  # by name

    def fresh(self, hint: str | None, fallback: str = "v", is_counter: bool = False) -> str:
        """A name that is not used, as near to `hint` as possible."""
        base = identifier(hint or fallback, fallback)
        while base.startswith(self.beginnings):
            base = f"{fallback}_{base}"
        count = self._counts.get((base, is_counter), 1)
        name = base if count == 1 else _numbered(base, count)
        while name in self.used or (name in self.counters and not is_counter):
            count += 1
            name = _numbered(base, count)
        self._counts[base, is_counter], self._hints[name] = count, base
        self.used.add(name)
        return name

    def copy(self) -> Names:
        """A copy, to which a pass adds its own names."""
        names = Names(beginnings=self.beginnings)
        names.used, names.counters = set(self.used), set(self.counters)
        names._counts, names._hints = dict(self._counts), dict(self._hints)
        return names

    def free(self, name: str) -> None:
        """Makes a name available again."""
        self.used.discard(name)
        for is_counter in (False, True):
            self._counts.pop((self._hints.get(name, name), is_counter), None)


def _numbered(base: str, count: int) -> str:
    return f"{base}_{count}" if not base[-1].isdigit() else f"{base}_v{count}"


def identifier(text: str, fallback: str) -> str:
    """The name nearest to `text` that is valid in generated code; texts that Python takes for one name give one name."""
    letters = unicodedata.normalize("NFKC", text[:LONGEST])  # as Python does: µ (micro) is μ, x₁ is x1
    name = "".join(letter if re.match(r"\w", letter) and f"_{letter}".isidentifier() else "_" for letter in letters)
    name = name.encode()[:LONGEST].decode(errors="ignore").strip("_")
    if not name:
        return fallback
    return name if name.isidentifier() and not keyword.iskeyword(name) and not keyword.issoftkeyword(name) else f"{fallback}_{name}"


def parameter_name(text: str) -> str:
    """`text` as the name of a parameter, normalised as Python does; the nearest valid name where it is none."""
    name = unicodedata.normalize("NFKC", text)
    return name if name.isidentifier() and not keyword.iskeyword(name) else identifier(text, "argument")


def verbatim(text: str) -> str:
    """`text` with its braces escaped, as part of a message with places {0}, {1}, … for numbers."""
    return text.replace("{", "{{").replace("}", "}}")
