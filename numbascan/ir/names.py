"""Names in generated code and texts of errors, made of whatever a variable or a loop is called."""

from __future__ import annotations

import keyword
import re
import unicodedata

LONGEST = 80  # bytes: a file's name may have 255, and holds that of its function twice
WORD = r"[^\W\d]\w*"
"""A name in the text of generated code, as a regular expression: `identifier` gives no other."""


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
