"""The text of a function grows as the program that it was made of does, not as 2**k: no long expression is written out twice.

Of k times the program there may be about k times the text, and no line that is longer and longer. No text is compiled here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

Program = Callable[..., Any]

X, I = np.sin(np.arange(300.0)), np.arange(0, 200, 3)
SIZES = (4, 8, 16)
LONGEST_LINE = 1200


def path(x: Any) -> Any:
    return ns.scan(lambda row: 0.9 * row + 0.1 * np.sin(row), outputs_info=[x], n_steps=100, return_updates=False)


def rows_of(x: Any) -> Any:
    """A loop that reads rows one by one: each is computed as it is read."""
    return ns.scan(lambda row, total: total + row, x, [nt.zeros_like(x[0])], return_updates=False)


def again(change: Callable[[Any, int], Any]) -> Callable[[int], Program]:
    """k changes of x, one after the other."""

    def repeated(k: int) -> Program:
        def program(x: Any) -> Any:
            for number in range(k):
                x = change(x, number)
            return x

        return program

    return repeated


def slope(make: Callable[[int], Program]) -> Callable[[int], Program]:
    """The gradient of the sum of squares of what a program gives."""
    return lambda k: ns.grad(lambda x, *others: np.sum(make(k)(x, *others) ** 2))


def overlapping_parts(k: int) -> Program:
    def cost(x: Any) -> Any:
        rows = path(x)
        return sum(np.sum((rows[2 * i : 2 * i + 9] - 0.3) ** 2) for i in range(k))

    return ns.grad(cost)


def overlapping_gathers(k: int) -> Program:
    def cost(x: Any, places: Any) -> Any:
        rows = path(x)
        return sum(np.sum((rows[places % 70 + i] - 0.3) ** 2) for i in range(k))

    return ns.grad(cost)


def variogram(of: Program) -> Callable[[int], Program]:
    def of_lags(k: int) -> Program:
        def cost(x: Any) -> Any:
            rows = of(x)
            return sum(np.mean((rows[lag:] - rows[:-lag]) ** 2) for lag in range(1, k + 1))

        return ns.grad(cost)

    return of_lags


def spread(x: Any, _: int, mode: Any = "constant") -> Any:
    padded = np.pad(x, 1, mode=mode)
    return padded[2:] - 0.2 * padded[:-2] + x


def of_itself(k: int) -> Program:
    """Places of places: each reads the one before at a place that it reads there."""

    def program(w: Any, places: Any) -> Any:
        for _ in range(k):
            places = places[places % 50]
        return w[places] * 1.5

    return program


def of_places(k: int) -> Program:
    def program(w: Any, places: Any) -> Any:
        found = places
        for _ in range(k):
            found = places[found % 50]
        return w[found] * 1.5

    return program


def value_of_values(k: int) -> Program:
    """A part is increased by a value each step of which reads the one before twice."""

    def program(x: Any) -> Any:
        value = x[:50]
        for _ in range(k):
            value = value * value + value
        return rows_of(nt.inc_subtensor(x[10:60], value))

    return program


def in_a_loop(k: int) -> Program:
    return lambda x: ns.scan(again(spread)(k), outputs_info=[x], n_steps=5, return_updates=False)[-1]


PROGRAMS: dict[str, tuple[Callable[[int], Program], tuple[Any, ...]]] = {
    "a cost of overlapping parts": (overlapping_parts, (X,)),
    "a cost of overlapping gathers": (overlapping_gathers, (X, I)),
    "parts increased": (again(lambda x, i: nt.inc_subtensor(x[2 * i : 2 * i + 9], i + 1.0)), (X,)),
    "parts increased, read row by row": (lambda k: lambda x: rows_of(PROGRAMS["parts increased"][0](k)(x)), (X,)),
    "parts replaced by others": (again(lambda x, i: nt.set_subtensor(x[2 * i : 2 * i + 9], 0.5 * x[3 * i : 3 * i + 9])), (X,)),
    "a part that is increased by a long value": (value_of_values, (X,)),
    "a variogram": (variogram(lambda x: x), (X,)),
    "a variogram of a loop's rows": (variogram(path), (X,)),
    "pads and slices": (again(spread), (X,)),
    "pads and slices in a loop": (in_a_loop, (X,)),
    "gradients of pads and slices": (slope(again(spread)), (X,)),
    "gradients of pads of the edge": (slope(again(lambda x, i: spread(x, i, "edge"))), (X,)),
    "reflections": (again(lambda x, i: spread(x, i, "reflect")), (X,)),
    "rolls": (again(lambda x, i: np.roll(x, 3 + i) * 0.5 + x), (X,)),
    "gradients of rolls": (slope(again(lambda x, i: np.roll(x, 3) * 0.5 + x)), (X,)),
    "rolls of rolls": (again(lambda x, i: np.roll(x, 3 + i)), (X,)),
    "places of places": (of_itself, (X, I)),
    "places of places, one array": (of_places, (X, I)),
    "shapes of shapes": (again(lambda x, i: x.reshape((2, -1)).T.reshape((-1,))), (X,)),
    "neighbours": (again(lambda x, i: x[::-1][1:] + x[:-1]), (X,)),
    "gradients of neighbours": (slope(again(lambda x, i: x[::-1][1:] * x[:-1])), (X,)),
    "lengths of joined parts": (again(lambda x, i: np.concatenate([x, x[1:]])[: x.shape[0]] * 0.5), (X,)),
    "least lengths": (again(lambda x, i: np.minimum(x.shape[0], 9 + i) * x[: x.shape[0] - 1]), (X,)),
    "rows of pads": (lambda k: lambda x: rows_of(again(lambda x, i: np.pad(x, (1, 2)))(k)(x)), (X,)),
    "products with itself": (again(lambda x, i: np.square(x) * 1.01 + np.abs(x) * x), (X,)),
}


def lines(make: Callable[[int], Program], k: int, arrays: tuple[Any, ...]) -> list[str]:
    function = ns.jit(make(k))
    function.lower(*arrays)
    return function.source().splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_grows_as_its_program_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numbascan.backends.load", lambda text, name: None)
    texts = [lines(*PROGRAMS[name][:1], k, PROGRAMS[name][1]) for k in SIZES]
    few, more, most = (sum(map(len, text)) for text in texts)
    assert most - more < 2.7 * (more - few) + 1000
    assert max(map(len, texts[-1])) < LONGEST_LINE
