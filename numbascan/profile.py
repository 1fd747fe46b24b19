"""Where the time goes: from the first trace to the last step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

STAGES = ("trace", "rewrite", "generate", "compile", "run")


@dataclass
class Profile:
    """Seconds by stage, over all calls of one compiled object; the steps that its loops made; and what they computed and moved.

    trace: calling the Python function on symbolic values. rewrite: graphs from graphs. generate: from the graph to the text of a kernel.
    compile: from text to machine code, or from the disk cache. run: inside kernels, whose names and seconds are in `kernels`.

    operations: on floating-point and complex numbers, counted from the loops; a function such as exp counts as one. bytes: what the calls
    had to read and write at the least: arguments, results, and what is stored for each step. Rows that a loop works on stay in the cache
    and are not counted. loops: the outermost loops of the latest call, each with its line in the source, its passes and its operations;
    and `copied`: by array, how many numbers its passes only copy. A state that is updated in its own row is not copied.
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

    @property
    def steps_per_second(self) -> float:
        """Steps of the outermost loops in a second of running; 0 before the first."""
        return self.steps / self.run if self.run else 0.0

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.calls} calls, {self.steps:,} steps, {self.steps_per_second:,.0f} steps per second"]
        lines += [f"  {stage:<10}{getattr(self, stage):>12.6f} s" for stage in STAGES]
        lines += [f"  kernel {name}: {seconds:.6f} s" for name, seconds in self.kernels.items()]
        for loop in self.loops:
            lines.append(f"    {loop.line}: {loop.passes:,} passes, {loop.operations:,} operations")
            lines += [f"      {array}: {numbers:,} numbers copied" for array, numbers in loop.copied.items()]
        for what, amount in (("bytes", self.bytes), ("operations", self.operations)):
            lines += [f"  {what} {amount:,}: {amount / self.run / 1e9:.2f} billion a second"] if self.run else []
        return "\n".join(lines)
