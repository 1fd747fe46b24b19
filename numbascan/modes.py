"""How a graph is run: `Mode` and the names that stand for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TARGETS = ("numba", "python", "debug", "cuda")


@dataclass(frozen=True, slots=True)
class Mode:
    """How to run a graph.

    target: "numba" (compiled, CPU), "python" (NumPy, one step at a time), "debug" (both, compared at every step), "cuda".
    fastmath: let the compiler reorder floating-point arithmetic.
    threads: at most so many threads for loops over lanes; None for as many as there are cores. Results do not depend on it.
    check_finite: report the first NaN or infinity.
    without: names of rewrites to leave out, of those in docs/rewrites.md.
    """

    target: str = "numba"
    fastmath: bool = False
    threads: int | None = None
    check_finite: bool = False
    without: tuple[str, ...] = ()

    def __init__(
        self,
        target: str = "numba",
        fastmath: bool = False,
        threads: int | None = None,
        check_finite: bool = False,
        without: Sequence[str] = (),
    ) -> None:
        if target not in TARGETS:
            raise ValueError(f"mode {target!r} is not known; use None or one of {', '.join(map(repr, TARGETS))}")
        for name, value in (("target", target), ("fastmath", fastmath), ("threads", threads), ("check_finite", check_finite)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "without", tuple(without))


def as_mode(mode: Mode | str | None) -> Mode:
    """The Mode that an argument `mode` means: a Mode, a target's name, or None for the default."""
    if isinstance(mode, Mode):
        return mode
    if mode is None:
        return Mode()
    if not isinstance(mode, str):
        raise TypeError(f"mode is {mode!r}; give None, an ns.Mode, or one of {', '.join(map(repr, TARGETS))}")
    return Mode(target=mode)
