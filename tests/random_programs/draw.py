"""Draws a whole program: ports around a random step, options, and the condition that ends the loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from . import reference
from .generate import MOST_ELEMENTS, Choices, Chooser, Maker, Refused
from .streams import Stream
from .trees import Body, Expr, Port, Program
from .words import numbers

DIMS = ((4, 3), (3, 2), (2, 4), (1.5, 1), (2, 5), (2, 9), (1.2, 17), (0.8, 20), (0.5, 30), (1, 7))
THEMES = (
    (6, ("float64",)),
    (3, ("float32",)),
    (3, ("float64", "int64")),
    (2, ("float32", "float64")),
    (1.5, ("float32", "int32", "bool")),
    (1.5, ("int64", "int8", "uint8")),
    (1, ("int32", "uint16", "float64", "bool")),
    (0.7, ("complex128", "float64")),
    (0.3, ("complex64", "float32")),
    (0.5, ("uint64", "uint32", "int16", "float32")),
)
GRADIENT_THEMES = (
    (6, ("float64",)),
    (2, ("float64", "float64", "int64")),
    (1, ("float64", "float64", "int32", "bool")),
    (1, ("complex128", "float64")),
)
STEPS = ((0.4, 0), (0.8, 1), (1, 2), (2, 3), (2, 5), (2, 8), (1, 13), (0.6, 40))


class Drawing(Choices):
    """One program in the making. gradients: such that derivatives can be told from differences."""

    def __init__(self, chooser: Chooser, gradients: bool = False) -> None:
        super().__init__(chooser)
        self.gradients = gradients
        self.dims = sorted({self.weighted(DIMS) for _ in range(3)})
        self.dtypes = self.weighted(GRADIENT_THEMES if gradients else THEMES)
        self.steps = self.weighted(STEPS)
        self.arrays: list[tuple[str, str]] = []
        self.given: dict[str, Any] = {}  # their values
        self.env: dict[str, Any] = {}
        self.pool: list[Expr] = []
        self.ports: list[Port] = []
        self.params: list[str] = []
        self.written: list[Any] = []  # for each output the value that the step must give, None for a trace
        self.shared: list[str] = []

    def shape(self) -> tuple[int, ...]:
        rank = self.weighted(((3, 0), (4, 1), (2, 2), (0.4, 3)))
        return tuple(self.choice(self.dims) for _ in range(rank))

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        """Makes an array outside the step; in programs of gradients it may be one that is there already."""
        alike = [old for old, _ in self.arrays if self._is_alike(self.given[old], dtype, shape)] if self.gradients else []
        if alike and self.chance(0.15):
            self.arrays.append((name, self.choice(alike)))
            self.given[name] = self.given[self.arrays[-1][1]]
            return self.given[name]
        text = f"numbers({dtype!r}, {shape}, {self.integer(0, 999)})"
        self.arrays.append((name, text))
        self.given[name] = eval(text, {"numbers": numbers})
        return self.given[name]

    @staticmethod
    def _is_alike(value: Any, dtype: str, shape: tuple[int, ...]) -> bool:
        return np.asarray(value).dtype.name == dtype and np.shape(value) == shape

    def maker(self) -> Maker:
        return Maker(self.chooser, self.dims, self.env, self.pool, is_double=self.gradients)

    def leaf(self, text: str, value: Any, traced: bool = True) -> None:
        self.pool.append(Expr(text, (), value, traced=traced))

    def nest(self, name: str) -> list[str]:
        """The places of a nest's leaves: one leaf, two in a dict, or two in a tuple."""
        form = self.weighted(((8, "one"), (0.8, "dict"), (0.7, "tuple")))
        return {"one": [""], "dict": ["['a']", "['b']"], "tuple": ["[0]", "[1]"]}[form]

    def nested(self, places: list[str], values: list[Any]) -> Any:
        if places == [""]:
            return values[0]
        return {"a": values[0], "b": values[1]} if places[0] == "['a']" else (values[0], values[1])

    def nested_text(self, places: list[str], names: list[str]) -> str:
        if places == [""]:
            return names[0]
        return f"{{'a': {names[0]}, 'b': {names[1]}}}" if places[0] == "['a']" else f"({names[0]}, {names[1]})"

    # ports ----------------------------------------------------------------------------------------------------------

    def sequence(self, k: int, spare: int) -> None:
        places = self.nest(f"x{k}")
        taps = self.weighted(((5, [0]), (1, [-1, 0]), (0.6, [0, 2]), (0.5, [-3, -1]), (0.4, [1]), (0.4, [-2]), (0.3, [2, -1, 0])))
        rows = self.steps + max(0, *taps) - min(0, *taps) + spare
        label = [f"x{k}{place.strip('[]').strip(chr(39))}" for place in places]
        arrays = [self.array(name, self.choice(self.dtypes), (rows, *self.shape())) for name in label]
        text = self.nested_text(places, label)
        self.ports.append(Port(text if taps == [0] and self.chance(0.8) else f"dict(input={text}, taps={taps})", "seq"))
        for tap in taps:
            param = f"x{k}" + ("" if taps == [0] else f"_m{-tap}" if tap < 0 else f"_p{tap}")
            param = param if param not in label else param + "_t"
            sample = [array[max(0, -min(taps)) + tap] if self.steps else np.ones(array.shape[1:], array.dtype)[()] for array in arrays]
            self.parameter(param, places, sample)

    def parameter(self, name: str, places: list[str], values: list[Any]) -> None:
        self.params.append(name)
        self.env[name] = self.nested(places, values)
        for place, value in zip(places, values, strict=True):
            self.leaf(name + place, value)

    def state(self, k: int) -> None:
        if self.chance(0.15):
            number = self.choice(["0.5", "0", "1", "0.0"])
            self.ports.append(Port(number, "state"))
            self.parameter(f"y{k}", [""], [eval(number)])
            self.written.append((([""]), None))
            return
        places = self.nest(f"y{k}")
        taps = self.weighted(((6, None), (1, [-1]), (1, [-2, -1]), (0.7, [-3]), (0.6, [-1, -3]), (0.3, [-2])))
        label = [f"y{k}{place.strip('[]').strip(chr(39))}_start" for place in places]
        lead = () if taps is None or taps == [-1] else (-min(taps) + (1 if self.chance(0.1) else 0),)
        arrays = [self.array(name, self.choice(self.dtypes), (*lead, *self.shape())) for name in label]
        text = self.nested_text(places, label)
        self.ports.append(Port(text if taps is None else f"dict(initial={text}, taps={taps})", "state"))
        for tap in taps or [-1]:
            param = f"y{k}" + ("" if len(taps or [-1]) == 1 else f"_m{-tap}")
            sample = [array if not lead else array[-min(taps or [-1]) + tap] for array in arrays]
            self.parameter(param, places, [np.asarray(value)[()] for value in sample])
        self.written.append((places, [array if not lead else array[0] for array in arrays]))

    def trace(self) -> None:
        self.ports.append(Port("None", "trace"))
        self.written.append(None)

    def surroundings(self) -> None:
        """Non-sequences, captured arrays and numbers, shared variables."""
        for k in range(self.weighted(((5, 0), (3, 1), (1, 2)))):
            if self.chance(0.2):
                self.ports.append(Port("0.7", "non_seq"))
                self.params.append(f"w{k}")
                self.env[f"w{k}"] = 0.7
                self.leaf(f"w{k}", 0.7)
                continue
            places = self.nest(f"w{k}")
            label = [f"w{k}{place.strip('[]').strip(chr(39))}_given" for place in places]
            arrays = [self.array(name, self.choice(self.dtypes), self.shape()) for name in label]
            self.ports.append(Port(self.nested_text(places, label), "non_seq"))
            self.parameter(f"w{k}", places, arrays)
        for k in range(self.weighted(((4, 0), (3, 1), (1, 2)))):
            self.env[f"C{k}"] = self.array(f"C{k}", self.choice(self.dtypes), self.shape() or (self.choice(self.dims),))
            self.leaf(f"C{k}", self.env[f"C{k}"], traced=False)
        if self.gradients and self.chance(0.15):
            self.captured_again()
        if self.chance(0.3):
            self.env["srng"] = Stream(7)
        for k in range(self.weighted(((8, 0), (1.5, 1), (0.5, 2)))):
            value = self.array(f"s{k}", self.choice(self.dtypes), self.shape())
            self.arrays[-1] = (f"s{k}", f"ns.shared({self.arrays[-1][1]}, name='s{k}')")
            self.env[f"s{k}"] = value
            self.shared.append(f"s{k}")
            self.leaf(f"s{k}", value)

    def captured_again(self) -> None:
        """An array that is a sequence, an initial value or a non-sequence already."""
        whole = [name for name, _ in self.arrays if 0 < np.ndim(self.given[name]) < 4 and 0 < np.size(self.given[name]) <= MOST_ELEMENTS]
        if whole:
            self.arrays.append(("C_again", self.choice(whole)))
            self.env["C_again"] = self.given["C_again"] = self.given[self.arrays[-1][1]]
            self.leaf("C_again", self.env["C_again"], traced=False)

    # the whole ------------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        n_seqs = self.weighted(((3, 0), (4, 1), (2, 2), (0.7, 3)))
        spares = [self.choice([0, 0, 0, 1, 3]) for _ in range(n_seqs)]
        for k, spare in enumerate(spares):
            self.sequence(k, spare)
        n_states = self.weighted(((1.5, 0), (5, 1), (2.5, 2), (0.8, 3))) or (0 if n_seqs else 1)
        kinds = ["state"] * n_states + ["trace"] * self.weighted(((4, 0), (3, 1), (1, 2)))
        kinds = kinds or ["trace"]
        for k, kind in enumerate(sorted(kinds, key=lambda _: self.integer(0, 9))):
            if kind == "state":
                self.state(k)
            else:
                self.trace()
        self.surroundings()
        step = self.step()
        shortest = self.steps + min(spares, default=0)
        n_steps = None if n_seqs and shortest == self.steps and self.chance(0.6) else self.steps
        program = Program(tuple(self.arrays), step, tuple(self.ports), n_steps, self.options(n_seqs > 0))
        return self.ended(program)

    def options(self, has_seqs: bool) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if has_seqs and self.chance(0.2):
            options["go_backwards"] = True
        if self.chance(0.22):
            options["keep_last"] = self.choice([1, 1, 2, 3, 50]) if self.steps else 2
        elif self.chance(0.15):
            options["save_every"] = self.choice([2, 3, 7])
        if self.gradients and self.chance(0.12):
            options["truncate_gradient"] = self.choice([1, 2, 3, 5, 50])
        return options

    def step(self) -> Body:
        maker = self.maker()
        statements = maker.statements(self.weighted(((1, 0), (2, 1), (3, 2), (3, 4), (1, 7))), "v")
        outputs = tuple(self.output(maker, written) for written in self.written)
        updates = tuple((name, self.like(maker, self.env[name])) for name in self.shared if self.chance(0.8))
        form = self.choice(["list", "list", "tuple", "bare", "updates first"])
        return Body("step", tuple(self.params), tuple(statements), outputs, updates, None, form)

    def like(self, maker: Maker, value: Any) -> Expr:
        """An expression of the dtype and shape of `value` that stays within bounds."""
        dtype, shape = np.asarray(value).dtype, np.shape(value)
        for _ in range(6):
            expr = maker.damped(maker.fitted(dtype, shape, self.integer(1, 3)))
            if np.asarray(expr.value).dtype == dtype and np.shape(expr.value) == shape:
                return expr
        return maker.fitted(dtype, shape, 0)

    def output(self, maker: Maker, written: Any) -> Any:
        if written is None:
            if self.chance(0.1):
                return {"p": maker.tree(1), "q": maker.tree(2)}
            return maker.tree(self.integer(0, 3))
        places, values = written
        if values is None:
            return maker.damped(maker.tree(self.integer(1, 2)))
        return self.nested(places, [self.like(maker, value) for value in values])

    def ended(self, program: Program) -> Program:
        """The program with a condition that ends it, in some cases: chosen so that it holds at a certain step."""
        if not self.chance(0.25):
            return program
        maker = self.maker()
        quantity = maker.scalar("fi")
        probe = replace(
            program, ports=(*program.ports, Port("None", "trace")), options={**program.options, "keep_last": None, "save_every": 1}
        )
        probe = probe.with_step(outputs=(*program.step.outputs, quantity))
        try:
            path = np.asarray(reference_run(probe)[0][-1], "float64")
        except Exception as error:
            raise Refused(str(error)) from None
        if path.ndim != 1:
            raise Refused("the condition is no scalar")
        return program.with_step(until=Expr(f"{{0}} > {self.threshold(path)}", (quantity,)))

    def threshold(self, path: Any) -> float:
        """A number that `path` exceeds for the first time at a step drawn by chance, or never."""
        records = [t for t in range(len(path)) if t == 0 or path[t] > path[:t].max()]
        if not records or self.chance(0.2):
            return round(float(path.max(initial=0.0)) + 0.731, 4)
        t = self.choice(records)
        before = path[:t].max(initial=path[t] - 1.0)
        return float(np.round((before + path[t]) / 2, 12))


def reference_run(program: Program, noise: reference.Noise | None = None) -> tuple[list[Any], dict[str, Any]]:
    """What the program gives by the plain loop."""
    names = reference.namespace(noise)
    exec(program.setup(noisy=noise is not None), names)
    with np.errstate(all="ignore"):
        return reference.run(names["step"], **names["arguments"], **names["options"])


def draw_program(chooser: Chooser, gradients: bool = False) -> Program:
    """A random program; Refused where the choices lead to none."""
    return Drawing(chooser, gradients).program()
