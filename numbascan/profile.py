"""Where the time goes: from the first trace to the last step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

STAGES = ("trace", "rewrite", "generate", "compile", "run")


@dataclass
class Profile:
    """What `.profile` of a compiled object is that was made with `profile=True`.

    Seconds by stage, over all calls; the steps that its loops made; and what they computed and moved.

    trace: calling the Python function on symbolic values. rewrite: graphs from graphs. generate: from the graph to the text of a kernel.
    compile: from text to machine code, or from the disk cache. run: inside kernels, whose names and seconds are in `kernels`.

    operations: on floating-point and complex numbers, counted from the loops; a function such as exp counts as one. bytes: what the calls
    had to read and write at the least: arguments, results, and what is stored for each step. Rows that a loop works on stay in the cache
    and are not counted. loops: the outermost loops of the latest call, each with its line in the source, its passes, its operations, and
    the loops `inside`; and `copied`: by array, how many numbers its passes only copy. A state that is updated in its own row is not copied.

    >>> import numbascan as ns
    >>> halved = ns.scan(lambda x: 0.5 * x, profile=True, name="halved")
    >>> last = halved(outputs_info=8.0, n_steps=1000)[-1]
    >>> print(halved.profile)
    halved: 1 calls, 1,000 steps, ... steps per second
      trace ...
    """

    name: str
    trace: float = 0.0
    rewrite: float = 0.0
    generate: float = 0.0
    compile: float = 0.0
    run: float = 0.0
    calls: int = 0
    steps: int = 0
    operations: int = 0
    bytes: int = 0
    kernels: dict[str, float] = field(default_factory=dict)
    loops: tuple[Any, ...] = ()
    target: str = "cpu"

    @property
    def steps_per_second(self) -> float:
        """Steps of the outermost loops in a second of running; 0 before the first."""
        return self.steps / self.run if self.run else 0.0

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.calls} calls, {self.steps:,} steps, {self.steps_per_second:,.0f} steps per second"]
        lines += [f"  {stage:<10}{getattr(self, stage):>12.6f} s" for stage in STAGES]
        lines += [f"  kernel {name}: {seconds:.6f} s" for name, seconds in self.kernels.items()]
        for depth, loop in self._all_loops():
            indent = " " * (4 + 2 * depth)
            lines.append(f"{indent}{loop.line}: {loop.passes:,} passes, {loop.operations:,} operations")
            lines += [f"{indent}  {array}: {numbers:,} numbers copied" for array, numbers in loop.copied.items()]
        for what, amount in (("bytes", self.bytes), ("operations", self.operations)):
            lines += [f"  {what} {amount:,}: {amount / self.run / 1e9:.2f} billion a second"] if self.run else []
        return "\n".join(lines)

    def _all_loops(self) -> Iterator[tuple[int, Any]]:
        """Each loop behind the one that it is in, with how deep it is."""
        pending = [(0, loop) for loop in reversed(self.loops)]
        while pending:
            depth, loop = pending.pop()
            yield depth, loop
            pending += [(depth + 1, inner) for inner in reversed(loop.inside)]

    def plot(self, path: str | Path) -> Path:
        """The profile as a picture in `path`: seconds by stage, operations by loop, and how far the run is from what the machine can do.

        The machine's ceilings are measured when the picture is drawn, in a tenth of a second: the bytes a second of `np.copyto` on arrays
        that fit into no cache, and the operations a second of `np.dot` of large matrices, which may take all cores. A run below both
        waits for something else: for the step before, for divisions, for functions such as exp. A GPU's are not known.

        Needs Matplotlib: `pip install "numbascan[plot]"`. Raises ValueError before the first call.
        """
        if not self.run:
            raise ValueError(f"{self.name}.profile.plot: nothing has run yet; call {self.name} first")
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError('profile.plot needs Matplotlib; write `pip install "numbascan[plot]"`') from error
        loops = list(self._all_loops())
        figure = Figure(figsize=(9, 6.5 + 0.25 * len(loops)), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=(3, 1 + 0.25 * len(loops)))
        _draw_stages(figure.add_subplot(grid[0, 0]), self)
        if self.operations and self.target == "cpu":
            _draw_ceilings(figure.add_subplot(grid[0, 1]), self, *machine_ceilings())
        _draw_loops(figure.add_subplot(grid[1, :]), loops)
        figure.suptitle(f"{self.name}: {self.calls} calls, {self.steps:,} steps, {self.steps_per_second:,.0f} steps per second")
        figure.savefig(path)
        return Path(path)


def machine_ceilings() -> tuple[float, float]:
    """Bytes a second of `np.copyto`, read and written, and operations a second of `np.dot` in float64, as measured now."""
    source = np.ones(2**22)
    target = np.zeros_like(source)
    square = np.ones((512, 512))
    return 2 * source.nbytes / _least_seconds(np.copyto, target, source), 2 * 512**3 / _least_seconds(np.dot, square, square)


def _least_seconds(function: Any, *arguments: Any) -> float:
    """Of five calls the shortest."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def _draw_stages(axes: Any, profile: Profile) -> None:
    seconds = [getattr(profile, stage) for stage in STAGES]
    bars = axes.barh(STAGES, seconds, color=["#b8c4d0"] * (len(STAGES) - 1) + ["#2f7d4f"])
    axes.bar_label(bars, [f"{value:.3g} s" for value in seconds], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.25)
    axes.set(title="Stages, all calls", xlabel="seconds")


def _draw_ceilings(axes: Any, profile: Profile, bytes_a_second: float, operations_a_second: float) -> None:
    """The roofline of Williams, Waterman and Patterson (2009): operations a second over operations per byte."""
    rate, per_byte = profile.operations / profile.run, profile.operations / max(profile.bytes, 1)
    turn = operations_a_second / bytes_a_second
    x = np.geomspace(min(per_byte, turn) / 10, max(per_byte, turn) * 10, 100)
    axes.loglog(x, np.minimum(x * bytes_a_second, operations_a_second), color="black", label="np.copyto, np.dot here")
    ceiling = min(per_byte * bytes_a_second, operations_a_second)
    axes.plot([per_byte], [rate], "o", color="#2f7d4f", label=f"{profile.name}: {rate / ceiling:.0%} of the ceiling")
    axes.plot([per_byte, per_byte], [rate, ceiling], ":", color="#2f7d4f")
    axes.legend(loc="upper left", fontsize="small")
    axes.set_ylim(top=20 * operations_a_second)
    axes.set(title="Beside the machine", xlabel="operations per byte of arguments and results", ylabel="operations a second")


def _draw_loops(axes: Any, loops: list[tuple[int, Any]]) -> None:
    names = [f"{'↳ ' * depth}{loop.line}" for depth, loop in loops]
    bars = axes.barh(range(len(loops)), [loop.operations for _, loop in loops], color="#5b8db8")
    axes.bar_label(bars, [f"{loop.operations:,} in {loop.passes:,} passes" for _, loop in loops], padding=3)
    axes.set_yticks(range(len(loops)), names, family="monospace", fontsize="small")
    axes.invert_yaxis()
    axes.margins(x=0.6)
    axes.set(title="Loops of the last call; those inside are part of those around them", xlabel="operations")
