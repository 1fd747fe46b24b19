"""Random Python loops over integer states: bisections, pairs of indices, nested `while`, in and out of bounds, held against Python.

python tests/random_loops.py 0 500      compares the functions of 500 seeds
"""

from __future__ import annotations

import copy
import linecache
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import numbascan as ns

STARTS = ("0", "1", "n - 1", "n", "-1", "m", "n // 2", "2")


class Writer:
    """Writes one function of an array, an integer and a number, which returns a sum and the states."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = ["i", "j", "k"][: self.random.choice([2, 2, 3])]

    def program(self) -> str:
        lines = ["def f(a, m, c):", "    n = len(a)", "    s = 0.0", "    z = 0"]
        lines += [f"    {name} = {self.random.choice(STARTS)}" for name in self.names]
        for _ in range(self.random.choice([1, 1, 2])):
            if self.random.random() < 0.8:
                lines += [f"    while {self.condition()}:", "        z += 1", "        if z > 40:", "            break"]
            else:
                lines.append(f"    for {self.random.choice(['t', self.names[0]])} in range({self.random.choice(['n', 'm', '1, n'])}):")
            lines += self.block("        ", 0)
            lines.append(f"    s += a[{self.place()}] if {self.condition(1)} else 0.0")
        return "\n".join([*lines, f"    return s, {', '.join(self.names)}"]) + "\n"

    def place(self) -> str:
        one, other = self.random.choice(self.names), self.random.choice(self.names)
        places = [f"({one} + {other}) // 2", f"2 * {one} + 1", f"{one} + {other}", f"n - 1 - {one}", f"{one} // 2"]
        return self.random.choice([one, one, f"{one} + 1", f"{one} - 1", *places])

    def condition(self, depth: int = 0) -> str:
        one, other = self.random.choice(self.names), self.random.choice(self.names)
        of_one = [f"{one} < n", f"{one} >= 0", f"2 * {one} + 1 < n", f"{one} > 0", f"{one} < m", f"{one} + 1 < n"]
        condition = self.random.choice([*of_one, f"{one} < {other}", f"{one} <= {other}", f"{one} != {other}", f"a[{self.place()}] > c"])
        if depth == 0 and self.random.random() < 0.5:
            return f"{condition} {self.random.choice(['and', 'and', 'or'])} {self.condition(1)}"
        return f"not ({condition})" if self.random.random() < 0.1 else condition

    def block(self, indent: str, depth: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(indent, depth)] or [f"{indent}s += 1.0"]

    def statement(self, indent: str, depth: int) -> list[str]:
        chance, name, inner = self.random.random(), self.random.choice(self.names), indent + "    "
        if chance < 0.3:
            return [f"{indent}s += a[{self.place()}]"]
        if chance < 0.7:
            moves = [f"{name} += 1", f"{name} -= 1", f"{name} += 2", f"{name} = min({name} + 1, n)", f"{name} = max({name} - 1, 0)"]
            return [indent + self.random.choice([*moves, f"{name} = {self.place()}", f"{name} = {self.place()}"])]
        if chance < 0.8 and depth < 2:
            lines = [f"{indent}if {self.condition()}:", *self.block(inner, depth + 1)]
            return [*lines, f"{indent}else:", *self.block(inner, depth + 1)] if self.random.random() < 0.6 else lines
        if chance < 0.85:
            return [f"{indent}a[{self.place()}] = s * 0.5"]
        if chance < 0.9 and depth == 1:
            return [f"{indent}break"]
        if chance >= 0.9 and depth < 1:
            ends = [f"{inner}z += 1", f"{inner}if z > 60:", f"{inner}    break"]
            return [f"{indent}while {self.condition()}:", *ends, *self.block(inner, depth + 1)]
        return []


def function(seed: int) -> Callable[..., Any]:
    """The function of a seed, whose source can be read."""
    text, name = Writer(seed).program(), f"<random loops {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]  # type: ignore[no-any-return]


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a function returns and leaves in the array; of an index that is out of bounds, the message."""
    args = copy.deepcopy(args)
    try:
        return *(np.asarray(one) for one in f(*args)), args[0]
    except IndexError as error:
        return ("out of bounds for axis 0" in str(error),)


def compare(seed: int) -> None:
    """Fails if the function of a seed, compiled, gives anything else than under Python, for some lengths."""
    f = function(seed)
    jitted, numbers = ns.jit(f), np.random.default_rng(seed)
    for n in (17, 20, 30, 18):
        args = numbers.normal(size=n), int(numbers.integers(-2, n + 2)), float(numbers.normal())
        got, wanted = outcome(jitted, args), outcome(f, args)
        assert len(got) == len(wanted), (seed, n, got, wanted)
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=f"seed {seed}, {n} elements")


if __name__ == "__main__":
    for number in range(*map(int, sys.argv[1:3])):
        compare(number)
