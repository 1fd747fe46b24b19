"""What the text of a module with kernels tells."""

from __future__ import annotations

import re


def kernels(text: str) -> dict[str, str]:
    """The text of each kernel."""
    return {str(part.partition("def ")[2].partition("(")[0]): part.partition("\n\n\n")[0] for part in text.split("\n@kernel(")[1:]}


def loops_alone(text: str) -> list[str]:
    """The kernels of one thread that hold a loop."""
    return [name for name, kernel in kernels(text).items() if f"alone({name}," in text and re.search(r"\b(for|while)\b", kernel)]
