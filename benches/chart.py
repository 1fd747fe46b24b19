"""The chart of docs/performance.md: how many times numbascan's time the others take, workload by workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

MARKS = {"by hand": ("o", "#333333"), "JAX": ("s", "#0072b2"), "PyTensor": ("D", "#e69f00")}  # told apart without colour, too


def draw(figures: dict[str, Any], path: Path) -> None:
    """Writes the chart as SVG; the same figures give the same file."""
    rows = figures["rows"]
    figure = Figure(figsize=(8, 0.27 * len(rows) + 1.3), layout="constrained")
    axes = figure.subplots()
    for other, (marker, colour) in MARKS.items():
        points = [(row["times_ours"][other], k) for k, row in enumerate(rows) if other in row["times_ours"]]
        axes.plot(*zip(*points, strict=True), marker, color=colour, label=other, markersize=6, zorder=3)
    axes.axvline(1, color="#009e73", linewidth=2, label="numbascan")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time over numbascan's (left of the line: faster than numbascan)")
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "numbascan", "font.family": "sans-serif"}):
        figure.savefig(path, metadata={"Date": None})
