"""A scalar made of a program's results, and its value by the plain loop for any values of the arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from . import reference
from .compare import Expected, quiet, readings
from .generate import Refused
from .reference import leaves
from .trees import Program
from .words import numbers

FORMS = ("{0}", "{0}", "{0}", "np.sin({0})", "{0} ** 2")


@dataclass(frozen=True)
class Term:
    """One array of the cost: `part` of a result, with weights in the shape of `base`, its value where the arrays are as given."""

    text: str
    leaf: int
    part: str  # "{0}", or the real or imaginary part of a complex result
    form: str
    base: Any
    seed: int

    def value(self, outputs: list[Any], new: dict[str, Any]) -> Any:
        result = leaves(eval(self.text, {"out": outputs, "new": new}))[self.leaf]
        return eval(self.part.format("_"), {"np": np, "_": result})

    def weights(self) -> Any:
        return numbers("float64", np.shape(self.base), self.seed)

    def cost(self, value: Any) -> Any:
        return np.sum(self.weights() * eval(self.form.format("_"), {"np": np, "_": value}))

    def show(self) -> str:
        inner = self.form.format(self.part.format(f"leaves({self.text})[{self.leaf}]"))
        return f"np.sum(numbers('float64', {np.shape(self.base)}, {self.seed}) * {inner})"


@dataclass(frozen=True)
class Cost:
    """A weighted sum of elements of the results, or of sines and squares of them."""

    terms: tuple[Term, ...]

    def values(self, outputs: list[Any], new: dict[str, Any]) -> list[Any]:
        """The arrays that the cost is made of."""
        return [term.value(outputs, new) for term in self.terms]

    def of(self, values: list[Any]) -> Any:
        return sum(term.cost(value) for term, value in zip(self.terms, values, strict=True))

    def show(self) -> str:
        return "cost = " + " + ".join(term.show() for term in self.terms)


def draw_cost(program: Program, want: Expected) -> Cost:
    """A cost for a program that gives `want`. Refused where nothing of that is real or complex."""
    key = crc32(program.setup().encode())
    chance = random.Random(key)
    texts = [*readings(want.outputs, key), *(f"new[{name!r}]" for name in want.shared)]
    terms = []
    for text in chance.sample(texts, max(1, len(texts) - chance.choice((0, 0, 1, 2)))):
        for k, leaf in enumerate(leaves(eval(text, {"out": want.outputs, "new": want.shared}))):
            parts = {"f": ("{0}",), "c": ("np.real({0})", "np.imag({0})")}.get(np.asarray(leaf).dtype.kind, ())
            terms += [Term(text, k, part, chance.choice(FORMS), leaf, chance.randrange(1000)) for part in parts]
    if not terms:
        raise Refused("no result has a derivative")
    return Cost(tuple(terms))


class Plain:
    """The cost of a program by the plain loop."""

    def __init__(self, program: Program, cost: Cost) -> None:
        self.program, self.cost = program, cost
        self.code, self.noisy = (compile(program.definition(noisy), "<program>", "exec") for noisy in (False, True))
        self.values = given(program)
        self.is_singular = False
        self.loop: Callable[..., reference.Loop] = self._loop()
        base = self.at(self.values)
        self.base, terms = base, [term.cost(value) for term, value in zip(cost.terms, self._results(self.values), strict=True)]
        others = [self.at(self.values, reference.Noise(seed)) for seed in range(4)]
        self.noise = max(abs(other - base) for other in others) + float(np.finfo("float64").eps) * sum(map(abs, terms))

    def _loop(self) -> Callable[..., reference.Loop]:
        """With truncate_gradient: what the steps before the last few give counts as constant."""
        last = self.program.options.get("truncate_gradient", -1)
        if last == -1:
            return reference.Loop
        runs: list[reference.Recorded] = []
        self._run(self.values, lambda *args: runs.append(reference.Recorded(*args)) or runs[-1])
        (run,) = runs
        return partial(reference.Truncated, run.record, run.ran - last)

    def _run(self, values: dict[str, Any], make: Callable[..., Any], noise: reference.Noise | None = None) -> Any:
        names = reference.namespace(noise)
        for name, text in self.program.arrays:
            is_shared = text.startswith("ns.shared")
            names[name] = names[text] if text in names else reference.Shared(values[name], name) if is_shared else values[name]
        names["np"] = Watched(self)
        exec(self.noisy if noise else self.code, names)
        with quiet():
            return reference.run(names["step"], **names["arguments"], **names["options"], make=make)

    def _results(self, values: dict[str, Any], noise: reference.Noise | None = None) -> list[Any]:
        return self.cost.values(*self._run(values, self.loop, noise))

    def at(self, values: dict[str, Any], noise: reference.Noise | None = None) -> float:
        """The cost; NaN where a result has another shape than at first."""
        results = self._results(values, noise)
        if any(np.shape(result) != np.shape(value) for result, value in zip(results, self._shapes(), strict=True)):
            return float("nan")
        return float(self.cost.of(results))

    def _shapes(self) -> list[Any]:
        return [term.base for term in self.cost.terms]


class Watched:
    """NumPy, which tells `plain` of roots of 0: there is no derivative."""

    def __init__(self, plain: Plain, module: Any = np) -> None:
        self._plain, self._module = plain, module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name == "linalg":
            return Watched(self._plain, found)
        return partial(self._watched, found) if name in ("std", "norm", "hypot", "cbrt", "abs") else found

    def _watched(self, function: Callable[..., Any], x: Any, *others: Any, **options: Any) -> Any:
        result = function(x, *others, **options)
        is_root = function is not np.abs or np.asarray(x).dtype.kind == "c"
        self._plain.is_singular |= is_root and bool((np.asarray(result) == 0).any())
        return result


def given(program: Program) -> dict[str, Any]:
    """The values of a program's arrays by name; an array that is another one under a second name stands under the first alone."""
    names = reference.namespace()
    found = {}
    for name, text in program.arrays:
        is_again = text in names
        names[name] = eval(text, names)
        if not is_again:
            found[name] = names[name].value if isinstance(names[name], reference.Shared) else names[name]
    return found
