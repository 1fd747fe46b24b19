"""How a graph is run: `Mode` and the names that stand for one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

from .tracebacks import with_entries

TARGETS = ("numba", "python", "debug", "cuda")
OF_PYTENSOR = {"FAST_RUN": "numba", "FAST_COMPILE": "python"}
"""PyTensor's names of modes: results soon at each call, or soon at the first."""
REWRITES: dict[str, None] = {}
"""The names of rewrites that `without` takes, in their order. rewrite/pipeline.py, which stands above this module, puts its own in."""
LOOP_PASSES: dict[str, None] = {}
"""The names of loop passes that it takes, too. backends.py puts in those of its targets."""


@with_entries()
@dataclass(frozen=True, slots=True)
class Mode:
    """How to run a graph.

    target: "numba" (compiled, CPU), "python" (NumPy, one step at a time), "debug" (both, compared at every step), "cuda".
    fastmath: let the compiler reorder floating-point arithmetic.
    threads: the most threads for loops over lanes; None for as many as there are cores. Results do not depend on it.
    device: with target="cuda", the number of the GPU.
    check_finite: report the first NaN or infinity among what steps give: states, outputs, updates.
    without: names of rewrites and loop passes to leave out, of those in docs/rewrites.md.

    Raises ValueError for a target, a number of threads or of a device, or a rewrite that there is not, TypeError for those of another type.
    """

    target: str = "numba"
    fastmath: bool = False
    threads: int | None = None
    check_finite: bool = False
    without: tuple[str, ...] = ()
    device: int = 0

    def __init__(
        self,
        target: str = "numba",
        fastmath: bool = False,
        threads: int | None = None,
        check_finite: bool = False,
        without: Sequence[str] = (),
        device: int = 0,
    ) -> None:
        if target not in TARGETS:
            raise ValueError(f"mode {target!r} is not known; use None or one of {', '.join(map(repr, TARGETS))}")
        object.__setattr__(self, "target", target)
        for name, value in (("fastmath", fastmath), ("check_finite", check_finite)):
            object.__setattr__(self, name, _checked_flag(name, value))
        object.__setattr__(self, "threads", _checked_threads(threads))
        object.__setattr__(self, "device", checked_device(device, "ns.Mode"))
        if self.device and target != "cuda":
            raise ValueError(f"ns.Mode: device is {device} with target={target!r}; only target='cuda' runs on a device")
        object.__setattr__(self, "without", _checked_rewrites(without))


def checked_device(device: object, label: str) -> int:
    """The number of a GPU. `label` begins the messages."""
    instead = "give the number of a GPU, from 0"
    if isinstance(device, bool) or not isinstance(device, Integral):
        raise TypeError(f"{label}: device is {device!r}; {instead}")
    if int(device) < 0:
        raise ValueError(f"{label}: device is {device!r}; {instead}")
    return int(device)


def _checked_flag(name: str, value: object) -> bool:
    if value not in (True, False):
        raise TypeError(f"ns.Mode: {name} is {value!r}; give True or False")
    return bool(value)


def _checked_threads(threads: object) -> int | None:
    if threads is None:
        return None
    instead = "give an int of 1 or more, or None for as many as there are cores"
    if isinstance(threads, bool) or not isinstance(threads, Integral):
        raise TypeError(f"ns.Mode: threads is {threads!r}; {instead}")
    if int(threads) < 1:
        raise ValueError(f"ns.Mode: threads is {threads!r}; {instead}")
    return int(threads)


def _checked_rewrites(without: object) -> tuple[str, ...]:
    if isinstance(without, str) or not isinstance(without, Iterable):
        raise TypeError(f"ns.Mode: without is {without!r}; give a list of names of rewrites, as without=['sum_in_loop']")
    names = tuple(without)
    for name in names:
        if not isinstance(name, str) or name not in (*REWRITES, *LOOP_PASSES):
            known = f"the rewrites are {', '.join(REWRITES)}, the loop passes {', '.join(LOOP_PASSES)}"
            raise ValueError(f"ns.Mode: without holds {name!r}, which is neither a rewrite nor a loop pass; {known}")
    return names


def as_mode(mode: Mode | str | None) -> Mode:
    """The Mode that an argument `mode` means: a Mode, a target's name or one of PyTensor's, or None for the default."""
    if isinstance(mode, Mode):
        return mode
    if mode is None:
        return Mode()
    if not isinstance(mode, str):
        raise TypeError(f"mode is {mode!r}; give None, an ns.Mode, or one of {', '.join(map(repr, TARGETS))}")
    return Mode(target=OF_PYTENSOR.get(mode, mode))
