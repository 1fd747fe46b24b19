"""What the page of an object says besides its docstring, from docs/api.md: the members of classes, the guide, and what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

from numbascan.tensor import random

_COMPILED = "source, graph, memory, profile, lower, export, njit"
_DRAWS = [name for name in dir(random.RandomStream) if not name.startswith("_") and getattr(random.RandomStream, name).__doc__]

MEMBERS = {
    "numbascan.ScanFunction": _COMPILED,
    "numbascan.Function": _COMPILED.replace("graph, ", ""),
    "numbascan.front.transforms.Jitted": _COMPILED,
    "numbascan.profile.Profile": "plot, steps_per_second",
    "numbascan.SharedVariable": "get_value, set_value",
    "numbascan.Variable": "dtype, ndim, name, owner",
    "numbascan.emit.runtime.device_array.DeviceArray": "copy_to_host",
    "numbascan.tensor.random.RandomStream": ", ".join(_DRAWS),
}
CALLED = ("numbascan.ScanFunction", "numbascan.Function", "numbascan.front.transforms.Jitted")


def see_also() -> dict[str, str]:
    """For each object of docs/api.md a paragraph, in reStructuredText, that leads to the guide and to the rest of its group."""
    paragraphs = {}
    for group in Path(__file__).with_name("api.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        names = [f"numbascan.{name}" for name in re.findall(r"^   ~?([\w.]+)$", group, re.MULTILINE)]
        guide = ", ".join(f":doc:`{title} </{page}>`" for title, page in re.findall(r"\[([^\]]+)\]\((guide/\w+)\.md\)", group))
        for name in names:
            others = ", ".join(f":obj:`~{other}`" for other in names if other != name)
            paragraphs[name] = f"**Guide:** {guide}." + (f" **See also:** {others}." if others else "")
    return paragraphs
