"""Runs a program in every way and compares the results with those of the plain loop."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

import numbascan as ns
import numbascan.tensor as nt

from . import meetings, words
from .draw import reference_run
from .generate import Refused
from .reference import Noise, leaves, tree_map
from .trees import Program

NOISY_RUNS = 4
MARGIN = 64  # a difference may be so many times what rounding noise does to the plain loop
ROUNDINGS = 400  # and so many units in the last place of the largest element, in any case
CHAOTIC = {"f": 1e-5, "c": 1e-5}  # noise that grows beyond this share of the largest element: no use comparing
LARGEST = 1e6


@dataclass(frozen=True)
class Expected:
    """What a program gives, with how far each number may be from it."""

    outputs: list[Any]
    shared: dict[str, Any]
    margins: list[Any]
    largest: list[Any]  # outputs of all steps, where `until` ends the loop earlier


OPEN = re.compile(
    r"operands do not broadcast: dimension \d+ is (1 in one|\d+ in one and 1 in another)"
    r"|lengths \d+ and \d+ of the summed axes differ|broadcast_to: axis \d+ of the operand has length 1,"
    r"|: 1 values along an axis do not fit \d+ places|: dimension \d+ is 1 on entry and \d+ in its result"
)
"""A dimension that only the run knows turned out to be 1, and should have broadcast: documented to be an error."""


class Difference(Exception):
    """A way to run a program gives something else than the plain loop. `way` names it.

    excuse: "open" where a dimension that only the run knows turned out to be 1, "singular" where there is no derivative; else "".
    """

    def __init__(self, way: str, text: str) -> None:
        super().__init__(f"{way}: {text}")
        self.way = way
        self.excuse = "open" if OPEN.search(text) else ""


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def expected(program: Program) -> Expected:
    """What the plain loop gives. Refused where it fails, grows too large, or amplifies rounding noise."""
    try:
        with quiet():
            outputs, shared = reference_run(program)
            noisy = [reference_run(program, Noise(seed)) for seed in range(NOISY_RUNS)]
            largest = outputs if program.step.until is None else reference_run(program.with_step(until=None))[0]
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    found = leaves([outputs, shared])
    others = [leaves(list(one)) for one in noisy]
    return Expected(outputs, shared, [_margin(value, [other[k] for other in others]) for k, value in enumerate(found)], largest)


def _margin(value: Any, noisy: list[Any]) -> Any:
    """How far from `value` a right result may be. Refused where noise changes shapes, integers, or much of a float."""
    array = np.asarray(value)
    if any(np.shape(other) != array.shape or np.asarray(other).dtype != array.dtype for other in noisy):
        raise Refused("noise changes the shape")
    if array.dtype.kind not in "fc":
        if any((np.asarray(other) != array).any() for other in noisy):
            raise Refused("noise changes integers")
        return 0
    if not np.isfinite(array).all() or np.abs(array).max(initial=0) > LARGEST:
        raise Refused("not finite, or large")
    spread = max((np.abs(np.asarray(other) - array).max(initial=0.0) for other in noisy), default=0.0)
    largest = np.abs(array).max(initial=0.0)
    roundings = ROUNDINGS * np.finfo(array.dtype).eps
    if spread > (1e-3 if array.dtype.itemsize // (1 + (array.dtype.kind == "c")) == 4 else 1e-6) * max(largest, 1e-3):
        raise Refused("noise grows")
    return float(MARGIN * spread + roundings * max(largest, np.finfo(array.dtype).tiny))


class Run:
    """A program's names with numbascan's meaning, and the ways to run it."""

    def __init__(self, program: Program, mode: Any = None) -> None:
        self.names: dict[str, Any] = {
            "np": np,
            "ns": ns,
            **{word: getattr(words, word) for word in ("as_updates", "ifelse", "inc", "numbers", "put", "stream")},
        }
        exec(compile(program.setup(), "<program>", "exec"), self.names)
        self.step, self.arguments, self.options = (self.names[key] for key in ("step", "arguments", "options"))
        self.mode, self.program = mode, program
        self.stream: Any = self.names.get("srng")

    def shared(self) -> dict[str, Any]:
        return {name: value.get_value() for name, value in self.names.items() if isinstance(value, ns.SharedVariable)}

    def final(self) -> dict[str, Any]:
        """What a call left behind: the shared variables, and how many numbers the stream has drawn."""
        drawn = {} if self.stream is None else {"srng": max(state.get_value()[2] for state in self.stream.states)}
        return {**self.shared(), **drawn}

    def called(self) -> list[Any]:
        """As a decorated function."""
        result = ns.scan(self.step, mode=self.mode, return_list=True, **self.options)(**self.arguments)
        return list(result)

    def at_once(self) -> list[Any]:
        """By an immediate call; programs with shared variables or draws by a decorated one."""
        if self.final():
            return self.called()
        result, _ = ns.scan(self.step, **self.arguments, mode=self.mode, return_list=True, **self.options)
        return list(result)

    def into(self, like: list[Any]) -> list[Any]:
        """With out=, in arrays of the caller with room for all steps: `like`."""
        arrays = tree_map(lambda leaf: np.zeros(np.shape(leaf), np.asarray(leaf).dtype), like)
        found = ns.scan(self.step, mode=self.mode, return_list=True, **self.options)(**self.arguments, out=arrays)
        for given, result in zip(leaves(arrays), leaves(list(found)), strict=True):
            if np.size(result) and not np.shares_memory(given, result):
                raise Difference("out", "a result is not in the array that was given")
        return list(found)

    def jitted(self) -> list[Any]:
        """Inside ns.jit, as a function of the arrays."""
        values: list[Any] = []
        self.replaced(values.append)

        def f(*arrays: Any) -> Any:
            given = iter(arrays)
            outputs, _ = ns.scan(self.step, **self.replaced(lambda _: next(given)), return_list=True, **self.options)
            return outputs

        return list(ns.jit(f, mode=self.mode)(*values)) if not self.shared() else self.called()

    def replaced(self, replacement: Callable[[Any], Any]) -> dict[str, Any]:
        """The arguments with something else for each array."""

        def leaf(value: Any) -> Any:
            return replacement(value) if isinstance(value, (np.ndarray, np.generic)) else value

        return {key: self._ported(value, leaf) for key, value in self.arguments.items()}

    def symbolic(self, known: Callable[[], bool], read: Callable[[list[Any]], list[Any]] = list) -> list[Any]:
        """Through ns.function, on variables whose dimensions are unknown, but for those where `known()` holds. `read`: of the outputs."""
        inputs: list[Any] = []
        values: list[Any] = []

        def variable(value: Any) -> Any:
            shape = tuple(n if known() else None for n in np.shape(value))
            inputs.append(nt.tensor(np.asarray(value).dtype.name, shape=shape, name=f"in{len(inputs)}"))
            values.append(value)
            return inputs[-1]

        arguments = self.replaced(variable)
        if "n_steps" in arguments and known():
            inputs.append(nt.lscalar("n_steps"))
            values.append(arguments["n_steps"])
            arguments["n_steps"] = inputs[-1]
        outputs, updates = ns.scan(self.step, **arguments, return_list=True, **self.options)
        f = ns.function(inputs, read(outputs), updates=updates, mode=self.mode, on_unused_input="ignore")
        words.aligned(self.stream)
        return list(f(*values))

    @staticmethod
    def _ported(value: Any, variable: Callable[[Any], Any]) -> Any:
        """The argument list with arrays replaced, taps and numbers as they are."""
        if isinstance(value, list):
            return [
                {**item, key: tree_map(variable, item[key])}
                if isinstance(item, dict) and (key := next((key for key in ("input", "initial") if key in item), None))
                else None
                if item is None
                else tree_map(variable, item)
                for item in value
            ]
        return value


READERS = (
    "{0}[-1]",
    "{0}[-2:]",
    "{0}[-3:]",
    "{0}[::2]",
    "{0}[1::3]",
    "{0}[0]",
    "{0}[-1:]",
    "{0}[:2]",
    "{0}[::-1]",
    "{0}",
    "{0}[-1, ...]",
    "{0}[2::2]",
)


def readings(outputs: list[Any], key: int) -> list[str]:
    """What a graph may read of the rows of each output: texts with {k} for output k."""
    chance = random.Random(key)
    found = []
    for k, output in enumerate(outputs):
        count = min((np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in leaves(output)), default=0)
        texts = chance.sample(READERS, chance.choice((1, 1, 2, 3))) if count and not isinstance(output, (dict, tuple)) else ["{0}"]
        found += [text.format(f"out[{k}]") for text in texts]
    return found


def compare(way: str, found: list[Any], shared: dict[str, Any], want: Expected) -> None:
    """Raises Difference unless structure, dtype, shape and values are as expected."""
    changed = {name: shared[name] for name in want.shared}
    got, wanted = leaves([found, changed]), leaves([want.outputs, want.shared])
    if len(got) != len(wanted):
        raise Difference(way, f"{len(got)} results instead of {len(wanted)}")
    for k, (a, b, margin) in enumerate(zip(got, wanted, want.margins, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype:
            raise Difference(way, f"result {k} has dtype {a.dtype}, NumPy gives {b.dtype}")
        if a.shape != b.shape:
            raise Difference(way, f"result {k} has shape {a.shape}, NumPy gives {b.shape}")
        apart = (np.abs(a.astype("complex128") - b.astype("complex128")) > margin) | (a != a) if a.dtype.kind in "fc" else a != b
        if apart.any():
            place = tuple(int(i) for i in np.argwhere(np.atleast_1d(apart))[0])
            seen, right = np.atleast_1d(a)[place], np.atleast_1d(b)[place]
            raise Difference(way, f"result {k}{list(place)} is {seen!r}, NumPy gives {right!r} (margin {margin:.2g}, {apart.sum()} differ)")


def differences(program: Program, ways: list[str], known: Callable[[], bool] = lambda: False) -> Iterator[Difference]:
    """What is wrong with each of `ways`."""
    want = expected(program)
    for way in ways:
        try:
            run = Run(program, "python" if "python" in way else None)
            with quiet():
                if way.startswith("twice"):
                    _compare_twice(way, run, want)
                    continue
                found = _by_way(run, way, want, known)
            compare(way, found, run.final(), _read(program, want) if way.startswith("read") else want)
        except Difference as difference:
            yield difference
        except Exception as error:
            yield Difference(way, f"{type(error).__name__}: {error}")


def _read(program: Program, want: Expected) -> Expected:
    """What is expected of the readings."""
    texts = readings(want.outputs, crc32(program.setup().encode()))
    margins = dict(zip(range(len(want.outputs)), _nested(want.margins, want.outputs), strict=False))
    outputs = [eval(text, {"out": want.outputs}) for text in texts]
    of_each = [margin for text in texts for margin in margins[int(text.split("[")[1].split("]")[0])]]
    n_outputs = sum(len(part) for part in margins.values())
    return Expected(outputs, want.shared, of_each + want.margins[n_outputs:], [])


def _nested(margins: list[Any], outputs: list[Any]) -> list[list[Any]]:
    """The margins of each output's leaves."""
    given = iter(margins)
    return [[next(given) for _ in leaves(output)] for output in outputs]


def _compare_twice(way: str, run: Run, want: Expected) -> None:
    """Two loops of one function, the second or the first of them with fewer steps."""
    steps = _steps(run.program, want)
    if run.final() or steps < 2:
        return
    fewer = steps - 1 - steps % 2
    try:
        want_fewer = expected(meetings.shorter(run.program, fewer))
    except Refused:
        return
    whole, short = meetings.twice(run, steps, fewer, is_first=steps % 3 == 0)
    compare(way, whole, {}, want)
    compare(f"{way}, the loop of {fewer} steps", short, {}, want_fewer)


def _steps(program: Program, want: Expected) -> int:
    """The number of steps that a program may run."""
    if program.n_steps is not None:
        return program.n_steps
    probe = replace(program, options={key: value for key, value in program.options.items() if key not in ("keep_last", "save_every")})
    return len(leaves(reference_run(probe.with_step(until=None))[0])[0])


WAYS = (
    "python",
    "called",
    "at_once",
    "jit",
    "out",
    "out python",
    "symbolic",
    "symbolic python",
    "read",
    "read python",
    "twice",
    "twice python",
    *meetings.WAYS,
)


def _by_way(run: Run, way: str, want: Expected, known: Callable[[], bool]) -> list[Any]:
    kind = way.split()[0]
    if kind == "read":
        texts = readings(want.outputs, crc32(run.program.setup().encode()))
        return run.symbolic(known, lambda outputs: [eval(text, {"out": outputs}) for text in texts])
    if kind == "out":
        return run.into(want.largest)
    if kind in meetings.WAYS:
        return meetings.WAYS[kind](run.arguments, run)
    return {"symbolic": lambda: run.symbolic(known), "jit": run.jitted, "at_once": run.at_once}.get(kind, run.called)()
