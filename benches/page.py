"""The figures as docs/performance.md shows them: tables, goals and a chart."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OTHERS = ("by hand", "JAX", "PyTensor")
START, END = "<!-- figures: written by benches/peers.py -->", "<!-- end of figures -->"

Figures = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """What was set, and what was measured; `where` names the workload that decided."""

    text: str
    wanted: float
    found: float
    where: str = ""
    at_most: bool = False
    unit: str = ""

    @property
    def is_met(self) -> bool:
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted


def geometric_mean(figures: Figures, other: str) -> float:
    """How many times numbascan's time another takes, over all workloads that it can do."""
    return statistics.geometric_mean(row["times_ours"][other] for row in figures["rows"] if other in row["times_ours"])


def goals(figures: Figures) -> list[Goal]:
    """What the project wants to reach, each beside what was measured."""
    ratios = {other: {row["name"]: row["times_ours"][other] for row in figures["rows"] if other in row["times_ours"]} for other in OTHERS}
    ours = {row["name"]: row["ns"]["numbascan"] for row in figures["rows"]}
    found = []
    for other, mean, worst in (("by hand", 1.0, 0.8), ("JAX", 4.0, 1.3), ("PyTensor", 15.0, 2.0)):
        found.append(Goal(f"time {other} over ours, geometric mean", mean, geometric_mean(figures, other)))
        found.append(_least(f"time {other} over ours, least", worst, ratios[other]))
    led = ("garch", "garch-grad", "hmm", "rnn", "lstm")
    found.append(_least(f"time by hand over ours, least of {', '.join(led)}", 1.3, {name: ratios["by hand"][name] for name in led}))
    costs = [ours[name] / ours[name.removesuffix("-grad")] for name in ours if name.endswith("-grad")]
    found.append(Goal("gradient over forward, geometric mean", 3.0, statistics.geometric_mean(costs), at_most=True))
    for cache, text, wanted in (("none", "without a cache", 1.0), ("warm", "from the disk cache", 2.0)):
        rows = {row["name"]: row["times_ours"] for row in figures["fresh"] if row["cache"] == cache}
        found.append(_least(f"fresh process to first result {text}, time of JAX over ours, least", wanted, rows))
    beyond = figures["call_us"]["numbascan"] - figures["call_us"]["by hand"]
    found.append(Goal("call on two small arrays, beyond that of the kernel by hand", 3.0, beyond, at_most=True, unit=" µs"))
    growth = figures["growth"] / 1e6
    found.append(Goal("memory of 1e7 steps of which the last is read, beyond 1e4", 1.0, growth, at_most=True, unit=" MB"))
    return found


def _least(text: str, wanted: float, ratios: dict[str, float]) -> Goal:
    where = min(ratios, key=ratios.__getitem__)
    return Goal(text, wanted, ratios[where], where)


def nanoseconds(value: float) -> str:
    """Three digits or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(header: tuple[str, ...], rows: list[list[str]], text_columns: int = 1) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * text_columns + "---:|" * (len(header) - text_columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _rows(figures: Figures) -> Iterator[list[str]]:
    for row in figures["rows"]:
        times = [nanoseconds(row["ns"][c]) if c in row["ns"] else row["faults"].get(c, "–") for c in ("numbascan", *OTHERS)]
        yield [row["name"], *times, *(f"{row['times_ours'][c]:.2f}" if c in row["times_ours"] else "–" for c in OTHERS)]
    yield ["**geometric mean**", "", "", "", "", *(f"**{geometric_mean(figures, other):.2f}**" for other in OTHERS)]


def _ahead(figures: Figures) -> Iterator[str]:
    for other in OTHERS:
        faster = [f"{row['name']} ({row['times_ours'][other]:.2f})" for row in figures["rows"] if row["times_ours"].get(other, 1.0) < 1.0]
        yield f"* {other}: {', '.join(faster) or 'none'}"


def text(figures: Figures, chart: str) -> str:
    """What stands between the two marks of the page."""
    machine, versions = figures["machine"], [", ".join(map(" ".join, packages.items())) for packages in figures["versions"].values()]
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}"
    lines = [f"{figures['date']}, {where}; {'; '.join(versions)}.", ""]
    lines += [f"![time of each candidate over numbascan's]({chart})", ""]
    header = ("ns per step", "numbascan", *OTHERS, *(f"{other} ÷ ours" for other in OTHERS))
    lines += _table(header, list(_rows(figures)))
    lines += ["Faster than numbascan (their time over ours):", "", *_ahead(figures), ""]
    calls = ", ".join(f"{candidate} {us:.1f} µs" for candidate, us in figures["call_us"].items())
    lines += [f"A call on two small arrays, with next to nothing to do: {calls}.", ""]
    lines += ["### A fresh process, to its first result", ""]
    starts = [
        [row["name"], row["cache"], *map(_seconds, map(row["seconds"].get, ("numbascan", "by hand", "JAX"))), f"{row['times_ours']:.2f}"]
        for row in figures["fresh"]
    ]
    lines += _table(("seconds", "cache on disk", "numbascan", "by hand", "JAX", "JAX ÷ ours"), starts, text_columns=2)
    lines += ["### Goals", ""]
    lines += _table(("goal", "wanted", "measured", "met"), [_goal(goal) for goal in goals(figures)])
    return "\n".join(lines)


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2f}"


def _goal(goal: Goal) -> list[str]:
    sign = "≤" if goal.at_most else "≥"
    where = f" ({goal.where})" if goal.where else ""
    return [goal.text, f"{sign} {goal.wanted:g}{goal.unit}", f"{goal.found:.2f}{goal.unit}{where}", "yes" if goal.is_met else "**no**"]


def write(figures: Figures, path: Path) -> None:
    """Puts the figures between the marks of the page at `path`, and the chart beside it."""
    import chart  # Matplotlib, which a reader of figures does not need

    picture = path.with_suffix(".svg")
    chart.draw(figures, picture)
    path.write_text(placed(path.read_text(encoding="utf-8"), text(figures, picture.name)), encoding="utf-8")


def placed(page: str, figures: str) -> str:
    """The page with `figures` between its two marks."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{figures}\n{END}{after}"
