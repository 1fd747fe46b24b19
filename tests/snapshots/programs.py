"""Programs whose generated text is held, as kernels that are planned and not compiled: of the benches, of the guide, of random seeds."""

from __future__ import annotations

import contextlib
import doctest
import gc
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import numbascan as ns
from numbascan import compile as stages
from numbascan.emit.estimates import work_of
from numbascan.modes import Mode

ROOT = Path(__file__).parents[2]
PAGES = (
    *("first_steps", "scan", "until", "views", "gradients", "checkpoints", "memory", "random", "symbolic", "numpy", "recipes"),
    *("threads", "chains", "chunks", "wrong_elsewhere", "from_jax", "from_pytensor", "modes"),
)
SEEDS = range(80)
MOST_OF_PAGE = 7  # kernels
LARGEST = 20_000  # operations of an example that Python runs; a longer one gives no result, and what needs it is left out

ALIKE = {*(f"state of {n}" for n in (1, 8, 9, 12, 15, 17, 33)), *(f"tanh of {n}" for n in (3, 9, 12)), "sort of 100000", "median of 10000"}
"""Loops of the benches that differ from others in a size."""

Texts = dict[str, tuple[str, str]]
"""By the name of a program, its text for the CPU and for CUDA."""


class Recorded(Exception):
    """A kernel is known, and would run now."""


@contextlib.contextmanager
def recorded(runs: Callable[[Any, Any], Any] | None = None) -> Iterator[list[Any]]:
    """Inside, kernels are planned and kept, not compiled; `runs` gives their results, or raises."""
    gc.collect()  # equal nodes are one node for as long as they live: when garbage goes must not depend on what else Python has made
    gc.disable()
    kernels: list[Any] = []

    def loaded(kernel: Any, name: str) -> None:
        kernels.append(kernel)

    def run(kernel: Any, values: Any, out: Any = ()) -> Any:
        if runs is None:
            raise Recorded
        return runs(kernel, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages.Kernel, "_loaded", loaded)
        patch.setattr(stages.Kernel, "run", run)
        try:
            yield kernels
        finally:
            gc.enable()


def texts_of(kernel: Any) -> tuple[str, str]:
    """The text of a kernel for the CPU and for CUDA."""
    mode = kernel.mode
    cuda = Mode(target="cuda", fastmath=mode.fastmath, check_finite=mode.check_finite, without=mode.without)
    try:
        return kernel.text, stages.planned(stages.lean_graph(kernel.graph, cuda), cuda, kernel.plan.function.name, kernel._given)[1]
    except NotImplementedError as error:  # what has no code for a GPU
        return kernel.text, f"{error}\n"


def named(group: str, name: str, kernels: list[Any], known: Texts) -> None:
    """Takes kernels into `known` under names that tell which program they are of."""
    for kernel in kernels:
        texts = texts_of(kernel)
        if texts in known.values():
            continue
        base = f"{group}/{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"
        count = sum(re.sub(r"\.\d+$", "", other) == base for other in known)
        known[f"{base}.{count + 1}" if count else base] = texts


# benches ---------------------------------------------------------------------------------------------------------------


LONG = ("components", "value_iteration", "life", "means", "network", "lu_solve")  # plain programs that take a second to trace


def of_benches() -> Texts:
    """Workloads and their gradients, the loops at which others fall off a cliff, neural cells in lanes, and plain Python."""
    with _importing(ROOT / "benches"):
        import cells_data
        import cells_ours
        import cliffs
        import data
        import ours
        import plain_data

    known: Texts = {}
    patterns = {name: (function, arguments) for name, (function, _, arguments, _) in cliffs.PATTERNS.items() if name not in ALIKE}
    gradients = {f"{name}, gradient": (ns.grad(function), arguments) for name, (function, arguments, _) in cliffs.GRADIENTS.items()}
    for name in data.NAMES:
        with recorded() as kernels, contextlib.suppress(Recorded):
            ours.call(name, data.inputs(name))()
        named("benches", name, kernels, known)
    for name in (f"{cell}-32x32-vmap-grad" for cell in cells_data.CELLS):
        with recorded() as kernels, contextlib.suppress(Recorded):
            cells_ours.call(name, cells_data.inputs(name))()
        named("benches", f"cells {name}", kernels, known)
    for name, (function, arguments) in {**patterns, **gradients}.items():
        with recorded() as kernels, contextlib.suppress(Recorded):
            ns.jit(function)(*arguments)
        named("benches", f"cliffs {name}", kernels, known)
    for name, plain in plain_data.PROGRAMS.items():
        if name in LONG:
            continue
        with recorded() as kernels, contextlib.suppress(Recorded):
            ns.jit(plain)(*plain_data.inputs(name))
        named("benches", f"plain {name}", kernels, known)
    return known


@contextlib.contextmanager
def _importing(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


# random programs -------------------------------------------------------------------------------------------------------


def of_seeds() -> Texts:
    """Programs drawn at random."""
    from random_programs.compare import Run
    from random_programs.draw import draw_program
    from random_programs.generate import RandomChooser

    known: Texts = {}
    for seed in SEEDS:
        with (
            recorded() as kernels,
            warnings.catch_warnings(),
            contextlib.suppress(Exception),
        ):  # some are refused: those that are gone are told
            warnings.simplefilter("ignore")
            program = draw_program(RandomChooser(seed))
            run = Run(program)
            (run.called, run.jitted)[seed % 2]()
        named("random", f"{seed:03}", kernels[:1], known)
    return known


# the guide -------------------------------------------------------------------------------------------------------------


def of_guide() -> Texts:
    """Kernels of the examples on pages of the guide, in their order."""
    known: Texts = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for page in PAGES:
                kernels = _of_page((ROOT / f"docs/guide/{page}.md").read_text(encoding="utf-8"))
                if page == "threads":  # several threads plan them, in no order: by their text, so that the names do not depend on it
                    kernels = sorted(kernels, key=lambda kernel: str(kernel.plan.function))
                for kernel in kernels[:MOST_OF_PAGE]:
                    named("guide", f"{page} {kernel.plan.function.name}", [kernel], known)
        finally:
            os.chdir(before)
    return known


def _of_page(text: str) -> list[Any]:
    """The kernels of a page. What takes long in Python, and what needs its results, is passed over."""
    names: dict[str, Any] = {"__name__": "page"}
    with recorded(_result) as kernels, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            examples = doctest.DocTestParser().get_examples(block) if ">>>" in block else []
            for source in [example.source for example in examples] or [block]:
                if len(kernels) < MOST_OF_PAGE and not re.search(r"cuda|subprocess|dask|jax\.|urlopen|time\.", source):
                    with contextlib.suppress(Exception):
                        exec(compile(source, "page.py", "single" if examples else "exec"), names)
    return kernels


def _result(kernel: Any, values: Any) -> Any:
    """What a kernel gives, by the oracle; Recorded where that takes long."""
    function = kernel.plan.function
    if work_of(function, [*values, *kernel.plan.constants]).operations > LARGEST:
        raise Recorded
    return stages._by_numpy(kernel.graph, kernel.mode, values)


GROUPS = {"benches": of_benches, "random": of_seeds, "guide": of_guide}
"""What makes the programs whose names begin so."""


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        programs = GROUPS[sys.argv[1]]()
    print(json.dumps(programs))
