"""Draws random programs. Every expression is evaluated by NumPy on the first rows as it is made, so its dtype and shape are known."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from . import reference
from .operations import GRADIENT_OPERATIONS, OPERATIONS
from .trees import Body, Expr, Statement

T = TypeVar("T")

DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128"}
LARGEST = {"f": 60.0, "c": 60.0}  # of a floating-point value on the first rows: larger ones tend to grow
MOST_ELEMENTS = 1500


class Refused(Exception):
    """An expression that NumPy does not compute, or whose values are of no use."""


class Chooser(Protocol):
    """Where random choices come from."""

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1."""
        ...


class RandomChooser:
    """Choices by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def below(self, n: int) -> int:
        return self.random.randrange(n)


class Choices:
    """Kinds of choices, all made of one."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser

    def integer(self, low: int, high: int) -> int:
        return low + self.chooser.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        return self.chooser.below(100) >= 100 - round(100 * probability)

    def choice(self, options: Sequence[T]) -> T:
        return options[self.chooser.below(len(options))]

    def weighted(self, options: Sequence[tuple[float, T]]) -> T:
        place = self.chooser.below(int(10 * sum(weight for weight, _ in options)))
        for weight, option in options:
            place -= int(10 * weight)
            if place < 0:
                return option
        return options[-1][1]


class Maker(Choices):
    """Makes expressions out of a pool of values. `env` holds the value of each name on the first rows.

    is_double: no value is float32 or complex64, so that differences of results tell of derivatives.
    """

    refusal = Refused()

    def __init__(
        self, chooser: Chooser, dims: Sequence[int], env: dict[str, Any], pool: list[Expr], level: int = 0, is_double: bool = False
    ) -> None:
        super().__init__(chooser)
        self.dims, self.env, self.pool, self.level, self.is_double = dims, env, pool, level, is_double
        self.names: list[str] = []

    # values ---------------------------------------------------------------------------------------------------------

    def evaluate(self, template: str, *args: Expr) -> Any:
        """What NumPy gives. Refused where it gives nothing of use."""
        text = template
        for k in range(len(args)):
            text = text.replace(f"{{{k}}}", f"_{k}")
        names = {**reference.namespace(), **self.env, **{f"_{k}": arg.value for k, arg in enumerate(args)}}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = eval(text, names)
        except Exception as error:
            raise Refused(f"{text}: {error}") from None
        return self.usable(value)

    def usable(self, value: Any) -> Any:
        """The value, if a program may go on with it."""
        if self.is_double and np.asarray(value).dtype.name in ("float32", "complex64"):
            raise Refused("single precision")
        return usable(value)

    def call(self, template: str, *args: Expr, exact: bool = False) -> Expr:
        if any(type(arg.value) is bool for arg in args):  # ~True is -2 in Python
            raise Refused("a Python bool")
        traced = any(arg.traced for k, arg in enumerate(args) if f"{{{k}}}" in template)
        return Expr(template, args, self.evaluate(template, *args), exact, traced)

    @staticmethod
    def kind(a: Expr) -> str:
        return np.asarray(a.value).dtype.kind

    @staticmethod
    def shape_with_axes(a: Expr) -> tuple[int, ...]:
        shape = np.shape(a.value)
        if not shape:
            raise Refused("a scalar")
        return shape

    @staticmethod
    def broadcasts(a: tuple[int, ...], into: tuple[int, ...]) -> bool:
        try:
            return np.broadcast_shapes(a, into) == into
        except ValueError:
            return False

    # operands -------------------------------------------------------------------------------------------------------

    def pick(self, fits: Callable[[Expr], Any]) -> Expr:
        found = [expr for expr in self.pool if fits(expr)]
        if not found:
            raise Refused("nothing fits")
        return self.choice(found)

    def literal(self, kind: str) -> Expr:
        texts = ("2", "3", "1") if kind in "iub" else ("0.37", "1.3", "0.5", "2", "np.float32(0.7)")
        text = self.choice(texts)
        return Expr(text, (), eval(text, {"np": np}), traced=False)

    def partner(self, a: Expr) -> Expr:
        """Something that broadcasts with `a`."""
        if self.chance(0.12):
            return self.literal(self.kind(a))
        shape = np.shape(a.value)
        fitting = [b for b in self.pool if self.broadcasts(np.shape(b.value), shape) or self.broadcasts(shape, np.shape(b.value))]
        if not fitting:
            raise Refused("no partner")
        b = self.choice(fitting)
        return self.tree(1, b) if self.chance(0.3) else b

    def alike(self, a: Expr) -> Expr:
        """Another value of the same dtype and shape."""
        b = self.pick(lambda e: np.shape(e.value) == np.shape(a.value) and np.asarray(e.value).dtype == np.asarray(a.value).dtype)
        return b if b is not a else self.call("-{0}" if self.kind(a) in "fc" else "{0} ^ {0}", a)

    def condition(self, a: Expr) -> Expr:
        return self.compared(self.partner(a))

    def compared(self, b: Expr) -> Expr:
        texts = {"f": ("{0} > 0.1731", "{0} < -0.0531"), "b": ("{0}", "~{0}"), "c": ("np.abs({0}) > 0.7123",)}
        return self.call(self.choice(texts.get(self.kind(b), ("{0} > 2", "{0} % 2 == 0"))), b, exact=True)

    def scalar(self, kinds: str = "fiub") -> Expr:
        """A value without axes."""
        if self.chance(0.6):
            return self.pick(lambda e: np.ndim(e.value) == 0 and self.kind(e) in kinds and isinstance(e.value, np.generic))
        array = self.pick(lambda e: np.ndim(e.value) > 0)
        if self.kind(array) not in kinds:
            return self.call(self.choice(["np.argmax({0})", "({0} > 0.131).sum()", "np.argmin({0})"]), array, exact=True)
        place = ", ".join(str(self.integer(0, n - 1)) for n in np.shape(array.value))
        return self.call(self.choice([f"{{0}}[{place}]", "{0}.sum()", "{0}.max()"]), array)

    def scalar_condition(self) -> Expr:
        return self.compared(self.scalar())

    def of_shape(self, shape: tuple[int, ...]) -> Expr:
        return self.pick(lambda e: np.shape(e.value) == shape)

    # expressions ----------------------------------------------------------------------------------------------------

    def tree(self, depth: int, start: Expr | None = None) -> Expr:
        """A random expression, `depth` operations high."""
        recent = self.pool[-4:] if self.chance(0.55) else self.pool
        a = self.choice(recent) if start is None else start
        for _ in range(depth):
            a = self.grown(a)
        return a

    def grown(self, a: Expr) -> Expr:
        """One operation more; `a` itself where nothing comes of eight trials."""
        for _ in range(8):
            try:
                grown = self.weighted(GRADIENT_OPERATIONS if self.is_double else OPERATIONS)(self, a)
            except Refused:
                continue
            if not self.is_double or self.kind(grown) in "fc" or self.kind(a) not in "fc" or self.chance(0.4):
                return grown
        return a

    def fitted(self, dtype: Any, shape: tuple[int, ...], depth: int) -> Expr:
        """An expression of a dtype and shape."""
        for _ in range(10):
            a = self.tree(depth)
            if np.shape(a.value) == shape:
                break
        else:
            a = self._with_shape(a, shape)
        found = np.asarray(a.value).dtype
        if found.kind == "c" and np.dtype(dtype).kind != "c":
            a = self.call("{0}.real", a, exact=True)
        if np.dtype(dtype).kind == "f" and found.kind == "f" and np.abs(a.value).max(initial=0) > 2:
            a = self.call(self.choice(["np.tanh({0})", "np.sin({0})", "np.clip({0}, -1.5, 1.5)"]), a)
        if isinstance(a.value, (float, int)) and not isinstance(a.value, np.generic):  # a Python number has no methods
            a = self.call(f"np.{np.dtype(dtype).name.replace('bool', 'bool_')}(1) * {{0}}", a)
        if np.asarray(a.value).dtype == dtype:
            return a
        if np.dtype(dtype).kind == "b" and found.kind in "fc":  # whether a float is 0 may be a matter of rounding
            return self.call("({0}.real > 0.0731)" if found.kind == "c" else "({0} > 0.0731)", a, exact=True)
        return self.call(f"{{0}}.astype('{np.dtype(dtype).name}')", a, exact=np.dtype(dtype).kind in "iub")

    def _with_shape(self, a: Expr, shape: tuple[int, ...]) -> Expr:
        found = np.shape(a.value)
        if self.broadcasts(found, shape):
            return self.call(f"np.broadcast_to({{0}}, {shape})", a, exact=True)
        total = self.call("np.sum({0})" if self.kind(a) in "iub" else "np.mean({0})", a)
        like = [e for e in self.pool if np.shape(e.value) == shape and e.traced and self.kind(e) != "b"]
        if like and shape:
            return self.call("{0} + {1}", total, self.choice(like))
        return self.call(f"np.broadcast_to({{0}}, {shape})", total, exact=True) if shape else total

    def damped(self, a: Expr) -> Expr:
        """The value of a state for the next step: such that it stays within bounds."""
        kind, dtype = self.kind(a), np.asarray(a.value).dtype
        if kind == "f" and self.chance(0.75):
            return self.call(
                self.choice(["np.tanh({0})", "np.sin({0})", "np.clip({0}, -1.5, 1.5)", "0.6 * {0}", "{0} / (1 + np.abs({0}))"]), a
            )
        if kind in "iu" and self.chance(0.7):
            text = self.choice(["{0} % 13", "np.clip({0}, 0, 50)", "{0} % 7", "{0} & 31"])
            return self.call(text, a, exact=True)
        if kind == "c":
            return self.call(f"({{0}} / (1 + np.abs({{0}}))).astype('{dtype}')", a)
        return a

    def statements(self, count: int, prefix: str) -> list[Statement]:
        """Some named values, each in the pool of those after it."""
        made = []
        for k in range(count):
            expr = None
            if self.level < 2 and self.chance(0.13):
                expr = self._tried(lambda k=k: inner_scan(self, f"{prefix}step{k}"))
            expr = expr or self.tree(self.integer(1, 3))
            name = f"{prefix}{k}"
            made.append(Statement(name, expr))
            self.env[name] = expr.value
            self.pool.append(Expr(name, (), expr.value, traced=expr.traced))
        return made

    def _tried(self, make: Callable[[], Expr]) -> Expr | None:
        try:
            return make()
        except Refused:
            return None


def usable(value: Any) -> Any:
    """The value, if a program may go on with it."""
    array = np.asarray(value)
    if array.dtype.name not in DTYPES or array.ndim > 3 or not 0 < array.size <= MOST_ELEMENTS:
        raise Refused("dtype or shape")
    if array.dtype.kind in "fc" and not (np.isfinite(array).all() and np.abs(array).max() <= LARGEST["f"]):
        raise Refused("too large")
    if array.dtype.kind in "iu" and np.abs(array.astype("float64")).max() > 1e7:
        raise Refused("too large")
    return value


def inner_scan(g: Maker, name: str) -> Expr:
    """A scan inside the step, over the rows of an array or for a number of steps."""
    rows = g.pick(lambda e: np.ndim(e.value) >= 1 and e.traced)
    state = g.pick(lambda e: e.traced and g.kind(e) in "fi" and isinstance(e.value, (np.generic, np.ndarray)))
    n_rows = len(rows.value)
    has_rows, has_state = g.chance(0.7), g.chance(0.8)
    params, env, pool = [], dict(g.env), [e for e in g.pool if g.chance(0.5)]
    for given, label, value in ((has_rows, "row", rows.value[0]), (has_state or not has_rows, "state", state.value)):
        if given:
            params.append(f"{name}_{label}")
            env[params[-1]] = np.asarray(value)[()]
            pool.append(Expr(params[-1], (), env[params[-1]]))
    inner = Maker(g.chooser, g.dims, env, pool, g.level + 1, g.is_double)
    statements = inner.statements(g.integer(0, 2), f"{name}_v")
    recurrent = len(params) == 2 or not has_rows
    if recurrent:
        output = inner.damped(inner.fitted(np.asarray(state.value).dtype, np.shape(state.value), g.integer(1, 2)))
        if np.asarray(output.value).dtype != np.asarray(state.value).dtype:
            raise Refused("a state changes dtype")
    else:
        output = inner.tree(g.integer(1, 2))
    until = inner.scalar_condition() if g.chance(0.15) else None
    body = Body(name, tuple(params), tuple(statements), (output,), until=until, form="bare")
    return _inner_call(g, body, rows if has_rows else None, state if recurrent else None, n_rows, until is not None)


def _inner_call(g: Maker, body: Body, rows: Expr | None, state: Expr | None, n_rows: int, is_open: bool) -> Expr:
    args = [arg for arg in (rows, state) if arg is not None]
    parts = [f"{key}=[{{{args.index(arg)}}}]" for key, arg in (("sequences", rows), ("outputs_info", state)) if arg is not None]
    if rows is None or g.chance(0.2):
        most = n_rows if rows is not None else 4
        if g.chance(0.3):
            args.append(g.scalar("iu"))
            parts.append(f"n_steps={{{len(args) - 1}}} % {most} + 1")
            is_open = True
        else:
            parts.append(f"n_steps={g.integer(1, most)}")
    if rows is not None and g.chance(0.2):
        parts.append("go_backwards=True")
    call = f"ns.scan({body.name}, {', '.join(parts)}, return_updates=False)"
    endings = ["[-1]", ".sum(axis=0)", ".max(axis=0)"] if is_open else ["", "[-1]", ".sum(axis=0)", "[::-1]", "[-2:]", "[0]", "[1::2]"]
    template = call + g.choice(endings)
    names: dict[str, Any] = {**reference.namespace(), **g.env}
    exec("\n".join(body.lines()), names)
    text = template
    for k, arg in enumerate(args):
        text, names[f"_{k}"] = text.replace(f"{{{k}}}", f"_{k}"), arg.value
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = eval(text, names)
    except Exception as error:
        raise Refused(f"{text}: {error}") from None
    return Expr(template, tuple(args), g.usable(value), exact=True, body=body)
