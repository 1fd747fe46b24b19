"""The default mode of a graph: that of the scans in it."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import Node
from ..modes import Mode


def mode_of(outputs: Sequence[Node], chosen: Mode | None, where: str) -> Mode:
    """`chosen`, else the mode that the scans of the graph were made with. ValueError if these have different modes."""
    names = _by_mode(outputs) if chosen is None else {chosen: where}
    if len(names) > 1:
        listed = " and ".join(f"scan {name!r} has mode {mode.target!r}" for mode, name in names.items())
        raise ValueError(f"{where}: a graph runs in one mode, but {listed}; give {where} a mode, or its scans the same")
    return next(iter(names), Mode())


def _by_mode(outputs: Sequence[Node]) -> dict[Mode, str]:
    """The modes of scans, also of those within steps, each with the name of one scan that has it."""
    names: dict[Mode, str] = {}
    for node in toposort(outputs):
        if node.op is SCAN:
            spec = loop_spec(node)
            mode = dict(spec.notes).get("mode")
            if isinstance(mode, Mode):
                names.setdefault(mode, spec.name)
            names = {**_by_mode(spec.inner_outputs()), **names}
    return names
