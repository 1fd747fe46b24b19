"""`x[i:j] += y` in loops of plain Python: NumPy's values, whatever y reads of x, and nothing but the slice is written."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns

N, WIDTH = 70, 9  # rows of more numbers than locals hold, and of an open length
rng = np.random.default_rng(5)
VECTOR, MATRIX = rng.uniform(0.5, 1.5, N), rng.uniform(0.5, 1.5, (N, WIDTH)) + 3 * np.eye(N, WIDTH)


def elimination(b: Any) -> Any:
    for k in range(b.shape[1] - 1):
        for i in range(k + 1, len(b)):
            f = b[i, k] / b[k, k]
            b[i, k:] -= f * b[k, k:]
    return b


def row_after_row(b: Any) -> Any:
    for i in range(1, len(b)):
        b[i, 1:] += b[i - 1, :-1] * 0.5
    return b


def column_after_column(b: Any) -> Any:
    b = b.T.copy()
    for i in range(1, b.shape[1]):
        b[:, i] += b[:, i - 1] * 0.5
    return b


def same_place(s: Any) -> Any:
    for i in range(2, len(s) - 5):
        s[i : i + 3] += 1.0
    return s


def element_of_the_slice(s: Any) -> Any:
    for i in range(2, len(s)):
        s[i : i + 3] += s[i] * 0.25
    return s


def shifted_to_the_left(s: Any) -> Any:
    for i in range(2, len(s) - 5):
        s[i : i + 3] -= s[i - 1 : i + 2] * 0.5
    return s


def shifted_to_the_right(s: Any) -> Any:
    for i in range(2, len(s) - 5):
        s[i : i + 3] -= s[i + 1 : i + 4] * 0.5
    return s


def backwards(s: Any) -> Any:
    for i in range(2, len(s) - 5):
        s[i + 3 : i : -1] += s[i + 1 : i + 4] * 0.5
    return s


def multiples(s: Any) -> Any:
    for i in range(2, len(s)):
        s[2 * i :: i] += i
    return s


def in_a_choice(s: Any) -> Any:
    for i in range(2, len(s) - 5):
        if s[i] > 1:
            s[i : i + 3] *= 0.5
    return s


def through_a_row(b: Any) -> Any:
    for i in range(1, len(b)):
        row = b[i]
        row[2:] -= 0.5 * b[i - 1, 2:]
        row[:2] += row[2]
    return b


def through_a_column(b: Any) -> Any:
    for i in range(1, len(b)):
        c = b[:, 1]
        c[i : i + 3] += 1.0
    return b


def out_of_ufunc(b: Any) -> Any:
    for i in range(1, len(b)):
        np.add(b[i], b[i - 1] * 0.25, out=b[i])
    return b


def twice(b: Any) -> Any:
    for i in range(1, len(b)):
        b[i, 2:] *= 0.5
        b[i, 2:] += b[i - 1, 2:]
    return b


def twice_at_the_same_places(s: Any) -> Any:
    for i in range(2, len(s)):
        s[i:] *= 0.9
        s[i:] += 0.1 * s[i:] * s[i - 1]
    return s


def read_between(b: Any) -> Any:
    """Slices of the array as it was between two writes, read before the next one and behind it."""
    for i in range(1, len(b)):
        b[i, 1:] *= 0.5
        row, sums = b[i, :-1] * 2.0, b[i - 1 : i + 1].sum()
        b[i, 2:] -= 0.25 * row[1:]
        b[i - 1, 1:] += 0.1 * row + sums
        b[i, 0] = row[3] - b[i, 3]
    return b


def over_the_end(s: Any) -> Any:
    """The last slices have less than three elements, or none."""
    for i in range(2, len(s)):
        s[i : i + 3] *= 0.5
        s[2 * i : 2 * i + 3] += s[0] + s[i]
        s[i : i + 3] += s[i : i + 3] * s[2]
    return s


def backwards_and_forwards(b: Any) -> Any:
    for i in range(1, len(b)):
        b[i, ::-1] *= b[i - 1]
        b[i, :] += b[i, ::-1] * 0.5
        b[i - 1, -2:0:-2] += b[i, 1:-1:2]
    return b


def new_axes(s: Any) -> Any:
    for i in range(1, len(s) - 3):
        s[None, i : i + 2] *= np.array([[0.5, 0.25]])
    return s


IN_PLACE: dict[Callable[..., Any], Any] = {
    elimination: MATRIX,
    row_after_row: MATRIX,
    column_after_column: MATRIX,
    same_place: VECTOR,
    element_of_the_slice: VECTOR,
    shifted_to_the_left: VECTOR,
    shifted_to_the_right: VECTOR,
    multiples: VECTOR,
    in_a_choice: VECTOR,
    through_a_column: MATRIX,
    out_of_ufunc: MATRIX,
    new_axes: VECTOR,
    twice: MATRIX,
    twice_at_the_same_places: VECTOR,
    read_between: MATRIX,
    over_the_end: VECTOR,
    backwards_and_forwards: MATRIX,
}


def compare(f: Callable[..., Any], *args: Any) -> Any:
    """Results and arguments are those of the function itself, compiled and interpreted. Returns the compiled function."""
    theirs = copy.deepcopy(args)
    expected = f(*theirs)
    for mode in (None, "python"):
        mine, traced = copy.deepcopy(args), ns.jit(f, mode=mode)
        np.testing.assert_allclose(traced(*mine), expected, rtol=1e-11, atol=1e-13)
        for one, other in zip(theirs, mine, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-13)
    return ns.jit(f)


@pytest.mark.parametrize(("f", "x"), IN_PLACE.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_nothing_but_the_slice_is_written(f: Callable[..., Any], x: Any) -> None:
    source = compare(f, x).lower(x).source()
    assert "_rows" not in source
    assert "set_subtensor = np.empty((" not in source.replace("x.shape", "")  # no second matrix either


@pytest.mark.parametrize("f", [backwards, through_a_row], ids=lambda f: f.__name__)
def test_values_of_others(f: Callable[..., Any]) -> None:
    compare(f, MATRIX if f is through_a_row else VECTOR)


def rows_between(b: Any) -> Any:
    """What is read between two writes is kept for each pass, or taken along to the next one."""
    kept, last, total = np.zeros((len(b), 3)), np.zeros(3), 0.0
    for i in range(1, len(b)):
        b[i, 2:] *= 0.5
        kept[i] = b[i, 2:5] + last
        last = b[i, 2:5].copy()
        total += np.tanh((b[i] * b[i - 1]).sum())
        b[i, 2:] += b[i - 1, 2:]
        b[i, 0] = np.tanh((last * b[i, 2:5]).sum())
        last = last + b[i, :3]
    return kept, total, last


def of_two_arrays(b: Any) -> Any:
    c = b[::-1] * 0.5
    for i in range(1, len(b)):
        b[i, 2:] *= 0.5
        c[i, 1:] += b[i, 1:] + c[i - 1, 1:]
        b[i, 2:] += b[i - 1, 2:] * np.tanh(c[i, 2:])
        c[i, :-1] *= np.tanh(b[i - 1, 1:])
    return b, c


def without_a_pass(b: Any) -> Any:
    for i in range(len(b), 3):
        b[i, 2:] *= 0.5
        b[i, 2:] += b[i - 1, 2:]
    return b


def of_nothing_finite(b: Any) -> Any:
    b[2, 3], b[4, 2] = np.nan, np.inf
    return twice(b)


def of_one_memory(b: Any) -> Any:
    row, turned = b[5], b[::-1]
    for i in range(1, 9):
        row[2:] *= 0.5
        b[i, 2:] += row[2:] + turned[-6, 2:]
        turned[i, :-2] -= 0.1 * b[i, 2:]
        row[2:] += b[i - 1, 2:]
    return b


@pytest.mark.parametrize("f", [rows_between, of_two_arrays, without_a_pass, of_nothing_finite, of_one_memory], ids=lambda f: f.__name__)
def test_what_is_read_between_two_writes(f: Callable[..., Any]) -> None:
    for mode in (None, "python"):
        mine, theirs = MATRIX.copy(), MATRIX.copy()
        expected, result = f(theirs), ns.jit(f, mode=mode)(mine)
        for one, other in zip([*_leaves(expected), theirs], [*_leaves(result), mine], strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-11)


def _leaves(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


DIFFERENTIATED = (
    *(elimination, element_of_the_slice, shifted_to_the_left, shifted_to_the_right),
    *(in_a_choice, twice, read_between, over_the_end),
)


@pytest.mark.parametrize(
    "f",
    [
        same_place,
        *DIFFERENTIATED,
    ],
)
def test_lanes(f: Callable[..., Any]) -> None:
    x = MATRIX[:20, :6] if f in (elimination, twice, read_between) else VECTOR[:30]
    lanes = np.stack([x, x * 1.5, x + 0.25])
    expected = [f(lane.copy()) for lane in lanes]
    np.testing.assert_allclose(ns.jit(ns.vmap(lambda x: f(x.copy())))(lanes), expected, rtol=1e-11)


@pytest.mark.parametrize(
    "f",
    [
        row_after_row,
        backwards_and_forwards,
        *DIFFERENTIATED,
    ],
)
def test_gradients(f: Callable[..., Any]) -> None:
    x = (MATRIX[:12, :5] if IN_PLACE[f] is MATRIX else VECTOR[:20]) * 1.01
    weights = np.random.default_rng(1).normal(size=x.shape)

    def cost(x: Any) -> Any:
        return (f(x.copy()) * weights).sum()

    direction = np.random.default_rng(2).normal(size=x.shape)
    slope = (cost(x + 1e-6 * direction) - cost(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose((ns.jit(ns.grad(cost))(x) * direction).sum(), slope, rtol=1e-6)


class Statements:
    """Random loops that change slices of `s` and `b` by what they read of both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_of(self, *options: str) -> str:
        return self.random.choice(options)

    def bound(self) -> str:
        return self.one_of("i", "i + 1", "i + 2", "i - 1", "j", "2 * i", "-i", "3", "-2", "n", "")

    def span(self) -> str:
        """A slice of the vector's axis, of three places or of any number."""
        first = self.one_of("i", "j", "i + 1", "i - 2", "4")
        some = self.one_of(f"{first}:{first} + 3", f"{first} + 3:{first}:-1", f"{first}:{first} + 6:2")
        return some if self.random.random() < 0.7 else f"{self.bound()}:{self.bound()}:{self.one_of('', '1', '2', '-1', 'i', '-2')}"

    def place(self) -> str:
        return self.one_of("i", "j", "i - 1", "n - 1 - i", "0", "-1")

    def column(self) -> str:
        return self.one_of("i % w", "j % w", "0", "-1", "w - 1")

    def number(self) -> str:
        return self.one_of(
            f"s[{self.place()}]", f"b[{self.place()}, {self.column()}]", "u", f"b[{self.place()}].sum()", f"s[{self.span()}].sum()"
        )

    def row(self) -> tuple[str, str]:
        """A part of a row of the matrix, and another one as long."""
        k, first = self.place(), self.one_of("", "1:", "j % w:", ":-1", "::2", "::-1", "1:4")
        second = {"1:": ":-1", ":-1": "1:"}.get(first, first) if self.random.random() < 0.5 else first
        return f"b[{k}, {first or ':'}]", f"b[{self.place()}, {second or ':'}]"

    def change(self) -> str:
        """A statement; what is added or multiplied by is a tangent hyperbolic, so that numbers stay moderate."""
        kind = self.random.randrange(8)
        (one, other), number = self.row(), self.number()
        if kind == 0:
            return self.augmented(f"s[{self.span()}]", number)
        if kind == 1:
            span = self.span()
            return self.augmented(f"s[{span}]", f"s[{span}] * {number}")
        if kind == 2:
            a, b = self.one_of("i", "j", "i - 1"), self.one_of("i", "i + 1", "j", "i - 1")
            return f"if max({a}, {b}) + 3 <= n:\n            " + self.augmented(f"s[{a}:{a} + 3]", f"s[{b}:{b} + 3]")
        if kind == 3:
            return self.augmented(one, other)
        if kind == 4:
            return self.augmented(f"b[:, {self.column()}]", f"b[:, {self.column()}] + s[{self.place()}]")
        if kind == 5:
            return self.augmented(f"b[{self.one_of('1:', 'i:', ':i', '::2')}]", f"b[{self.place()}]")
        if kind == 6:
            return f"if {number} > 0.7:\n            " + self.augmented(one, f"{other} * {self.number()}")
        lines = self.augmented("b[k, k:]", f"b[{self.place()}, k:]"), self.augmented(f"s[k:{self.bound()}]", number)
        return "for k in range(w):\n            " + "\n            ".join(lines)

    def augmented(self, part: str, value: str) -> str:
        return f"{part} {self.one_of('+', '-', '*')}= np.tanh({value})"

    def function(self) -> str:
        body = "\n        ".join(self.change() for _ in range(self.random.randrange(1, 4)))
        loop = f"    for i in range(1, len(places)):\n        j = places[i]\n        {body}\n"
        return f"import numpy as np\n\n\ndef f(s, b, places, u):\n    n, w = b.shape\n{loop}    return s.sum() + b.sum()\n"


@pytest.mark.parametrize("seed", wide(range(150), first=30))
def test_random_statements(seed: int, tmp_path: Any) -> None:
    text, path, names = Statements(seed).function(), tmp_path / f"augmented_{seed}.py", dict[str, Any]()
    path.write_text(text, encoding="utf-8")
    exec(compile(text, str(path), "exec"), names)  # of a file, where the source is found
    places = np.random.default_rng(seed).integers(0, N, 20)
    compare(names["f"], VECTOR, MATRIX, places, 0.3)
