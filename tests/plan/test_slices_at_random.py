"""Random loops that write and read parts of two tables, one after the other: right, whichever of them are written in place."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns

ROWS, COLUMNS = 7, 12
SPANS = {  # of columns, by their number
    3: ("i:i + 3", "i - 1:i + 2", ":3", "-3:", "-1:-4:-1", "j:j + 3"),
    6: ("::2", "1::2", "-1::-2", "6:", "5::-1"),
    10: ("2:", ":-2", "1:-1", "9::-1", "-1:1:-1"),
    12: (":", "::-1"),
}


class Writer:
    """The text of a function. i: the pass of the loop, from 2 on; j: that of a loop inside, or 1; v3 to v12: vectors that are kept."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def any_of(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def row(self) -> str:
        return f"{self.any_of('b', 'b', 'c')}[{self.any_of('i', 'i', 'i - 1', 'i - 1', 'i - 2', '0', '-1', 'i * 3 % 7', '6 - i', 'j')}"

    def element(self) -> str:
        return f"{self.row()}, {self.any_of('0', '3', '-1', 'i + 2', '11 - i', 'j')}]"

    def part(self, length: int) -> str:
        return f"{self.row()}, {self.any_of(*SPANS[length])}]"

    def number(self) -> str:
        return self.any_of(self.element(), f"{self.element()} - {self.element()}", "t", f"{self.vector(self.length(), 1)}.sum()")

    def length(self) -> int:
        return self.random.choice(list(SPANS))

    def vector(self, length: int, depth: int = 2) -> str:
        if not depth or self.chance(0.4):
            return self.any_of(*[self.part(length)] * 4, f"v{length}")
        one = self.vector(length, depth - 1)
        return self.any_of(f"({one} + {self.vector(length, depth - 1)})", f"({one} - {self.number()})", f"({one} * 3)", f"{one}[::-1]")

    def write(self) -> str:
        length = self.length()
        part, other, rows = self.part(length), self.part(length), self.any_of("i - 1 : i + 1", "0:2", "i : i - 2 : -1")
        return self.any_of(
            f"{part} {self.any_of('+=', '-=')} {self.vector(length)}",
            f"{part} = {self.vector(length)} - {part}",
            f"{part} *= 3",
            f"{part}, {other} = {other} + 1, {part} - {other}",
            f"{self.element()} {self.any_of('=', '+=')} {self.number()}",
            f"{self.any_of('b', 'c')}[i - 1 : i + 1, 1:] -= {self.any_of('b', 'c')}[{rows}, :-1]",
        )

    def statement(self, depth: int) -> list[str]:
        length = self.length()
        kinds = [[self.write()]] * 5 + [[f"t = {self.number()}"], [f"kept[i] = {self.number()}"]]
        kinds += [[f"v{length} = {self.vector(length)} * 1"]]
        if depth:
            condition = self.any_of(f"{self.element()} > {self.element()}", "i % 2 == 0", f"{self.number()} > 3")
            kinds += [[f"if {condition}:", *self.block(depth - 1), *(["else:", *self.block(depth - 1)] * self.chance(0.5))]]
            kinds += [[f"for j in range({self.any_of('i', '1, 4', '4, 0, -1')}):", *self.block(0)]]
        if depth == 1:
            kinds += [[f"if {self.number()} > 40:", f"    {self.any_of('break', 'continue')}"]]
        return self.random.choice(kinds)

    def block(self, depth: int) -> list[str]:
        return [f"    {line}" for _ in range(self.random.randint(1, 3)) for line in self.statement(depth)]

    def text(self) -> str:
        start = ["t, j, kept = 0, 1, np.zeros(7, np.int64)", *(f"v{length} = np.arange({length})" for length in SPANS)]
        result = self.any_of("b, c, t, kept, v3, v10", "b, c", "b[2].copy(), t, v6", "v12, kept")
        loop = [f"for i in {self.any_of('range(2, n)', 'range(n - 1, 1, -1)', 'range(2, n, 2)')}:", *self.block(2), *self.block(2)]
        return "\n    ".join(["def f(b, c, n):", *start, *loop, f"return {result}"]) + "\n"


def function_of(seed: int) -> Callable[..., Any]:
    """A random function, whose source Python's tools find."""
    text, name = Writer(seed).text(), f"<random slices {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space: dict[str, Any] = {"__name__": "random_slices", "np": np}
    exec(compile(text, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


@pytest.mark.parametrize("seed", wide(range(300), first=12))
def test_random_slices(seed: int) -> None:
    f, compiled = function_of(seed), ns.jit(function_of(seed))
    tables = np.random.default_rng(seed).integers(-3, 4, (2, ROWS, COLUMNS))
    mine, theirs = tables.copy(), tables.copy()
    with np.errstate(over="ignore"):  # integers that wrap, as compiled ones do
        expected = f(*theirs, ROWS)
    for one, other in zip([*compiled(*mine, ROWS), mine], [*expected, theirs], strict=True):
        np.testing.assert_array_equal(one, other)
