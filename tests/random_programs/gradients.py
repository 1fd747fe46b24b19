"""Derivatives of random programs: against differences of the plain loop, and each kind of derivative against the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ops.random import REJECTED

from . import words
from .compare import OPEN, Difference, expected, quiet
from .costs import Cost, Plain, draw_cost, given
from .generate import Refused
from .slopes import Values, along, directions, moved, random_like, slope
from .trees import Program

CHECKPOINTS = False  # True once the gradient of a scan knows checkpoint=
ROUNDING = 1e-9

Known = Callable[[], bool]


class Traced:
    """A program as a graph over variables: its cost, and what that is made of. variable: one for an array of a name and value.

    stream: the one that it draws from, made outside; None: one of its own.
    """

    def __init__(self, program: Program, cost: Cost, variable: Callable[[str, Any], Any], stream: Any = None, **options: Any) -> None:
        self.program, self.definition = program, cost
        self.names: dict[str, Any] = {
            "np": np,
            "ns": ns,
            **{word: getattr(words, word) for word in ("as_updates", "ifelse", "inc", "numbers", "put", "slope", "stream")},
        }
        self.inputs: dict[str, Any] = {}
        self.shared: dict[str, Any] = {}
        values = given(program)
        for name, text in program.arrays:
            if name not in values:
                self.names[name] = self.names[text]
            elif text.startswith("ns.shared"):
                self.names[name] = self.shared[name] = ns.shared(values[name], name=name)
            else:
                self.names[name] = self.inputs[name] = variable(name, values[name])
        if stream is not None:
            self.names["stream"] = lambda seed: stream
        exec(compile(program.definition(), "<program>", "exec"), self.names)
        outputs, updates = self._scan(options)
        words.aligned(self.names.get("srng"))
        new = {name: updates[variable] for name, variable in self.shared.items() if variable in updates}
        self.results = [nt.as_tensor_variable(value) for value in cost.values(outputs, new)]
        self.cost = nt.as_tensor_variable(cost.of(self.results))
        variables = {name: self.inputs.get(name, self.shared.get(name)) for name in values}
        self.wrt = {name: variable for name, variable in variables.items() if variable.type.kind in "fc"}

    def _scan(self, options: dict[str, Any]) -> Any:
        return ns.scan(self.names["step"], **self.names["arguments"], return_list=True, **{**self.names["options"], **options})

    def gradient(self, cost: Any) -> list[Any]:
        found: list[Any] = ns.grad(cost, list(self.wrt.values()), disconnected_inputs="ignore")
        return found

    def push(self, results: list[Any], along_: list[Any]) -> list[Any]:
        found: list[Any] = ns.Rop(results, list(self.wrt.values()), along_, disconnected_outputs="ignore")
        return found

    def like_wrt(self, prefix: str) -> list[Any]:
        """A new input in the type of each variable that derivatives are taken with respect to."""
        return [nt.tensor(v.type.dtype, shape=v.type.shape, name=f"{prefix}_{name}") for name, v in self.wrt.items()]

    def function(self, outputs: list[Any], mode: Any, more: list[Any] | None = None) -> Callable[..., list[Any]]:
        """(values of the arrays, more values) -> outputs"""
        compiled = ns.function([*self.inputs.values(), *(more or [])], outputs, mode=mode, on_unused_input="ignore")

        def call(values: Values, *others: Any) -> list[Any]:
            for name, variable in self.shared.items():
                variable.set_value(values[name])
            return [np.asarray(value) for value in compiled(*(values[name] for name in self.inputs), *others)]

        return call


def inner(a: list[Any], b: list[Any]) -> Any:
    """<a, b> as a graph; of complex numbers, what a gradient says of a direction."""
    return sum(np.sum(np.real(x * y)) for x, y in zip(a, b, strict=True))


class Check:
    """The checks of one program. `tally` counts what was compared, and what was not because differences tell nothing there."""

    def __init__(self, program: Program, known: Known, tally: Counter[str]) -> None:
        self.program, self.tally = program, tally
        want = expected(program)
        self.plain = Plain(program, draw_cost(program, want))
        self.values = self.plain.values
        self.wrt = {name: value for name, value in self.values.items() if np.asarray(value).dtype.kind in "fc"}
        if not np.isfinite(self.plain.base) or not any(map(np.size, self.wrt.values())):
            raise Refused("nothing to differentiate")
        self.seed = len(program.setup())
        self.shapes = {name: tuple(n if known() else None for n in np.shape(value)) for name, value in self.values.items()}

    @cached_property
    def probes(self) -> list[tuple[Values, float, float]]:
        """Directions, the slopes of the cost along them, and how far these may be off."""
        plain = self.plain
        found = []
        for direction in directions(self.wrt, self.seed):
            value, margin = slope(lambda length, d=direction: plain.at(moved(self.values, d, length)), plain.noise)
            self.tally["slopes" if np.isfinite(margin) else "slopes skipped"] += 1
            if np.isfinite(margin):
                found.append((direction, float(value), float(margin)))
        if not found:
            raise Refused("no difference tells anything")
        if all(abs(value) <= margin for _, value, margin in found):
            self.tally["flat programs"] += 1
        return found

    def direction(self, seed: int) -> Values:
        rng = np.random.default_rng(self.seed + seed)
        return {name: random_like(value, rng) for name, value in self.wrt.items()}

    def traced(self, **options: Any) -> Traced:
        return Traced(self.program, self.plain.cost, self._variable, **options)

    def _variable(self, name: str, value: Any) -> Any:
        return nt.tensor(np.asarray(value).dtype.name, shape=self.shapes[name], name=name)

    @cached_property
    def is_open(self) -> bool:
        """Does the compiled program refuse a dimension that only the run knows to be 1? Then no derivative is promised."""
        graph = self.traced()
        try:
            with quiet():
                graph.function([graph.cost], None)(self.values)
        except ValueError as error:
            return OPEN.search(str(error)) is not None
        return False

    # reverse against differences --------------------------------------------------------------------------------------

    def reverse(self, way: str, mode: Any) -> Iterator[Difference]:
        probes, graph = self.probes, self.traced()
        found = graph.function([graph.cost, *graph.gradient(graph.cost)], mode)(self.values)
        yield from self._compared(way, found[0], dict(zip(graph.wrt, found[1:], strict=True)), probes)

    def _compared(self, way: str, cost: Any, gradient: Values, probes: list[tuple[Values, float, float]]) -> Iterator[Difference]:
        if not abs(cost - self.plain.base) <= 64 * self.plain.noise:
            yield Difference(way, f"cost is {cost}, the plain loop gives {self.plain.base} ± {64 * self.plain.noise:.2g}")
        for name, value in self.wrt.items():
            if np.shape(gradient[name]) != np.shape(value) or gradient[name].dtype != np.asarray(value).dtype:
                yield Difference(way, f"gradient of {name} has {gradient[name].dtype} {np.shape(gradient[name])}")
                return
        for direction, right, margin in probes:
            seen, size = along(gradient, direction)
            if not abs(seen - right) <= margin + ROUNDING * size:
                yield Difference(way, f"gradient along {_named(direction)} is {seen}, differences give {right} ± {margin:.2g}")
                return

    def called(self, way: str, mode: Any) -> Iterator[Difference]:
        """The transforms of functions: ns.value_and_grad and ns.jvp of a function that calls the scan."""
        graph = self.traced()
        if graph.shared:
            return
        stream = words.stream(7)
        places = tuple(k for k, name in enumerate(graph.inputs) if name in graph.wrt)

        def f(*arrays: Any) -> Any:
            given_ = dict(zip(graph.inputs, arrays, strict=True))
            return Traced(self.program, self.plain.cost, lambda name, value: given_[name], stream).cost

        values = [self.values[name] for name in graph.inputs]
        cost, found = ns.jit(ns.value_and_grad(f, places, disconnected_inputs="ignore"), mode=mode)(*values)
        gradient = {name: np.asarray(value) for name, value in zip(graph.wrt, found, strict=True)}
        yield from self._compared(way, float(cost), gradient, self.probes)

    # forward against reverse ------------------------------------------------------------------------------------------

    def forward(self, way: str, mode: Any) -> Iterator[Difference]:
        graph = self.traced()
        v = graph.like_wrt("v")
        weights = [nt.tensor("float64", shape=result.type.shape, name=f"w{k}") for k, result in enumerate(graph.results)]
        pushed = graph.push([graph.cost, *graph.results], v)
        pulled = ns.Lop(graph.results, list(graph.wrt.values()), weights, disconnected_inputs="ignore")
        outputs = [graph.cost, *pushed, *graph.gradient(graph.cost), *pulled]
        direction = self.direction(1)
        rng = np.random.default_rng(self.seed)
        w = [random_like(term.base.real, rng) for term in self.plain.cost.terms]
        n = len(graph.wrt)
        found = graph.function(outputs, mode, [*v, *weights])(self.values, *direction.values(), *w)
        cost, moved_cost, moved_results, gradient, back = found[0], found[1], found[2 : -2 * n], found[-2 * n : -n], found[-n:]
        self.tally["forward"] += 1
        yield from self._compared(way, cost, dict(zip(graph.wrt, gradient, strict=True)), self.probes)
        yield from _alike(way, "<gradient, v> and the cost's forward derivative", [*_terms(gradient, direction.values())], [moved_cost])
        yield from _alike(way, "<J'w, v> and <w, Jv>", [*_terms(back, direction.values())], [*_terms(w, moved_results)])

    # second order -------------------------------------------------------------------------------------------------------

    def second(self, way: str, mode: Any) -> Iterator[Difference]:
        graph = self.traced()
        u, v = graph.like_wrt("u"), graph.like_wrt("v")
        gradient = graph.gradient(graph.cost)
        pushed = nt.as_tensor_variable(graph.push([graph.cost], v)[0])
        kinds = {
            "reverse over reverse": graph.gradient(inner(gradient, v)),
            "forward over reverse": graph.push(gradient, v),
            "reverse over forward": graph.gradient(pushed),
        }
        twice = graph.push([pushed], u)
        n = len(graph.wrt)
        outputs = [*gradient, *twice, *(value for values in kinds.values() for value in values)]
        first, second = self.direction(2), self.direction(3)
        found = graph.function(outputs, mode, [*u, *v])(self.values, *first.values(), *second.values())
        of_kind = {kind: found[n + 1 + k * n :][:n] for k, kind in enumerate(kinds)}
        size = max((np.abs(value).max(initial=0) for values in (found[:n], *of_kind.values()) for value in values), default=0)
        base = of_kind["forward over reverse"]
        self.tally["second"] += 1
        for kind, values in of_kind.items():
            for name, a, b in zip(graph.wrt, values, base, strict=True):
                if a.shape != b.shape or not (np.abs(a - b) <= ROUNDING * max(size, 1e-3)).all():
                    yield Difference(way, f"second derivative {kind} of {name} is {_worst(a, b)} of forward over reverse")
                    return
        yield from _alike(way, "forward over forward and <u, H v>", [found[n]], [*_terms(base, first.values())])
        yield from self._against_differences(way, graph.function(gradient, mode), second, dict(zip(graph.wrt, base, strict=True)))

    def _against_differences(self, way: str, gradient: Callable[..., list[Any]], v: Values, second: Values) -> Iterator[Difference]:
        """H v against differences of the gradient along v."""

        def at(length: float) -> Any:
            return np.concatenate([np.ravel(value) for value in gradient(moved(self.values, v, length))])

        relative = self.plain.noise / max(abs(self.plain.base), 1e-300)
        noise = max(relative, 1e-15) * np.abs(at(0.0)).max(initial=0)
        right, margin = slope(at, noise)
        seen = np.concatenate([np.ravel(value) for value in second.values()])
        sure = np.isfinite(margin)
        self.tally["second slopes"] += int(sure.sum())
        self.tally["second slopes skipped"] += int((~sure).sum())
        wrong = sure & ~(np.abs(seen - right) <= np.where(sure, margin, 0) + ROUNDING * np.abs(seen))
        if wrong.any():
            k = int(np.argmax(wrong))
            yield Difference(
                way, f"second derivative [{k}] is {seen[k]}, differences give {right[k]} ± {margin[k]:.2g} ({wrong.sum()} differ)"
            )

    # checkpoints --------------------------------------------------------------------------------------------------------

    def checkpoints(self, way: str, mode: Any) -> Iterator[Difference]:
        """What is stored changes no derivative."""
        if not CHECKPOINTS:
            return
        graph = self.traced()
        right = graph.function(graph.gradient(graph.cost), mode)(self.values)
        for checkpoint in (1, 3, "auto"):
            other = self.traced(checkpoint=checkpoint)
            found = other.function(other.gradient(other.cost), mode)(self.values)
            size = max((np.abs(value).max(initial=0) for value in right), default=0)
            for name, a, b in zip(graph.wrt, found, right, strict=True):
                if a.shape != b.shape or not (np.abs(a - b) <= ROUNDING * max(size, 1e-3)).all():
                    yield Difference(way, f"gradient with checkpoint={checkpoint!r} of {name} is {_worst(a, b)} of that without")


def _terms(a: Any, b: Any) -> Iterator[Any]:
    for x, y in zip(a, b, strict=True):
        yield np.real(x * y)


def _alike(way: str, what: str, a: list[Any], b: list[Any]) -> Iterator[Difference]:
    """Do the sums of two lists of terms agree to rounding?"""
    totals = [sum(float(np.sum(term)) for term in terms) for terms in (a, b)]
    size = sum(float(np.abs(term).sum()) for term in (*a, *b))
    if not abs(totals[0] - totals[1]) <= ROUNDING * max(size, 1e-6):
        yield Difference(way, f"{what} differ: {totals[0]} and {totals[1]}")


def _worst(a: Any, b: Any) -> str:
    if a.shape != b.shape:
        return f"of shape {a.shape} instead of {b.shape}"
    k = np.unravel_index(np.argmax(np.nan_to_num(np.abs(a - b), nan=np.inf)), a.shape) if a.size else ()
    return f"{a[k]} at {list(map(int, k))} instead of {b[k]}"


def _named(direction: Values) -> str:
    if len(direction) > 1:
        return "all arrays"
    ((name, step),) = direction.items()
    places = np.argwhere(np.atleast_1d(step))
    return f"{name}{list(map(int, places[0]))}" if len(places) == 1 else name


WAYS = ("reverse", "forward", "second", "called", "checkpoints")


def gradient_differences(program: Program, ways: list[str], known: Known, tally: Counter[str] | None = None) -> Iterator[Difference]:
    """What is wrong with each of `ways`: one of WAYS, and "python" behind it for the interpreter of graphs."""
    check = Check(program, known, Counter() if tally is None else tally)
    is_truncated = "truncate_gradient" in program.options  # of reverse mode alone: the others have no such thing
    for way in ways:
        kind, *mode = way.split()
        if is_truncated and kind in ("forward", "second"):
            kind = "reverse"
            if " ".join([kind, *mode]) in ways:
                continue
        for difference in _found(check, kind, way):
            is_singular = ("nan" in str(difference) and check.plain.is_singular) or REJECTED in str(difference)
            difference.excuse = "open" if check.is_open else "singular" if is_singular else ""
            yield difference


def _found(check: Check, kind: str, way: str) -> list[Difference]:
    try:
        with quiet():
            return list(getattr(check, kind)(way, "python" if "python" in way else None))
    except Refused:
        raise
    except Exception as error:
        return [Difference(way, f"{type(error).__name__}: {error}")]
