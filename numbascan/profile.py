"""Where the time goes: from the first trace to the last step."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Profile:
    """Seconds by stage, over all calls of one compiled object; and the steps that its loops made.

    trace: calling the Python function on symbolic values. generate: from the graph to the text of a kernel. compile: from text to
    machine code, or from the disk cache. run: inside kernels.
    """

    name: str
    trace: float = 0.0
    generate: float = 0.0
    compile: float = 0.0
    run: float = 0.0
    calls: int = 0
    steps: int = 0
    kernels: dict[str, float] = field(default_factory=dict)

    @property
    def steps_per_second(self) -> float:
        """Steps of the outermost loops in a second of running; 0 before the first."""
        return self.steps / self.run if self.run else 0.0

    def __str__(self) -> str:
        stages = "\n".join(f"  {stage:<10}{getattr(self, stage):>12.6f} s" for stage in ("trace", "generate", "compile", "run"))
        kernels = "\n".join(f"  kernel {name}: {seconds:.6f} s" for name, seconds in self.kernels.items())
        text = f"{self.name}: {self.calls} calls, {self.steps:,} steps, {self.steps_per_second:,.0f} steps per second\n{stages}"
        return f"{text}\n{kernels}" if kernels else text
