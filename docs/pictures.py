"""The pictures of the front page, drawn when the pages are built: for light and for dark, from the code and the stored figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

HERE = Path(__file__).parent
FOLDER = HERE / "_build" / "pictures"
INKS = {"light": "#333333", "dark": "#dddddd"}
COLOURS = {"numbascan": "#009e73", "by hand": "#8a8a8a", "JAX": "#3d9be0", "PyTensor": "#e69f00"}
MARKS = {"by hand": "o", "JAX": "s", "PyTensor": "D"}  # told apart without colour, too


def draw_all() -> None:
    """Writes every picture in both inks into FOLDER."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, size, draw in (("epidemic", (7, 3.4), epidemic), ("speed", (7, 5.2), speed), ("first_call", (7, 2.6), first_call)):
        for ink, colour in INKS.items():
            _save(FOLDER / f"{name}-{ink}.svg", size, colour, draw)


def _save(path: Path, size: tuple[float, float], ink: str, draw: Callable[[Axes, str], None]) -> None:
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    with matplotlib.rc_context(dict.fromkeys(names, ink) | {"svg.fonttype": "none", "svg.hashsalt": "numbascan", "font.size": 11}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes, ink)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def front_page() -> dict[str, Any]:
    """The names that the script on the front page defines, run as it stands there."""
    text = (HERE / "index.md").read_text(encoding="utf-8")
    start = text.index("```python\n") + len("```python\n")
    code = "\n" * text[:start].count("\n") + text[start : text.index("```", start)]  # at its own lines: it is read from the page
    names: dict[str, Any] = {"__name__": "front_page"}
    exec(compile(code, str(HERE / "index.md"), "exec"), names)
    return names


def epidemic(axes: Axes, ink: str) -> None:
    """Who is ill, day by day, for five rates of contacts."""
    names = front_page()
    shades = matplotlib.colormaps["viridis"](np.linspace(0.25, 0.9, 5))
    for contacts, shade in zip(np.linspace(0.25, 0.45, 5), shades, strict=True):
        axes.plot(100 * names["epidemic"](contacts, 0.005), color=shade, linewidth=2, label=f"{contacts:.2f}")
    axes.axvline(40, color=ink, linewidth=0.8, linestyle=":")
    axes.annotate("vaccination", (42, 32), color=ink)
    axes.set(xlabel="day", ylabel="ill, per cent of all", xlim=(0, 179), ylim=(0, None))
    axes.legend(title="contacts a day", frameon=False)


def stored() -> dict[str, Any]:
    """The figures of the last measured run, those of docs/performance.md."""
    figures: dict[str, Any] = json.loads(max((HERE.parent / "benches" / "results").glob("*.json")).read_text(encoding="utf-8"))
    return figures


def speed(axes: Axes, ink: str) -> None:
    """How many times numbascan's time the others take, workload by workload."""
    rows = stored()["rows"]
    for other, mark in MARKS.items():
        points = [(row["times_ours"][other], k) for k, row in enumerate(rows) if other in row["times_ours"]]
        axes.plot(*zip(*points, strict=True), mark, color=COLOURS[other], label=other, markersize=6, zorder=3)
    axes.axvline(1, color=COLOURS["numbascan"], linewidth=2, label="numbascan")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time over numbascan's; left of the line: faster than numbascan")
    axes.grid(color=ink, alpha=0.2)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=4, frameon=False, columnspacing=1, handletextpad=0.3)


def first_call(axes: Axes, ink: str) -> None:
    """Seconds from the start of a fresh process to its first result, with and without machine code on the disk."""
    rows = stored()["fresh"]
    labels = {"none": "first run", "warm": "later process"}
    others = ("numbascan", "by hand", "JAX")
    for place, other in enumerate(others):
        points = [(k + 0.27 * (place - 1), row["seconds"][other]) for k, row in enumerate(rows) if other in row["seconds"]]
        bars = axes.bar(*zip(*points, strict=True), width=0.25, color=COLOURS[other], label=other)
        axes.bar_label(bars, fmt="%.1f", fontsize=9, color=ink)
    axes.set_xticks(range(len(rows)), [f"{row['name']},\n{labels[row['cache']]}" for row in rows], fontsize=9)
    axes.set_ylabel("seconds")
    axes.legend(frameon=False, loc="upper left")
