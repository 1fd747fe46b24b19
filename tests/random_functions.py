"""Random Python functions: choices, loops, early exits, writes in place, views, helpers. Running one is what it means."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

HELPER = """import numpy as np
def helper(z):
    if z > 1.0:
        return z * 0.5
    for _ in range(2):
        z = z + 0.25
        if z > 0.5:
            return -z
    return z
"""
KINDS = {"number": ("x", "y"), "array": ("a", "b")}


class Writer:
    """Writes one function of two numbers, an array and a count."""

    def __init__(self, seed: int) -> None:
        self.random, self.count = random.Random(seed), 0

    def program(self) -> str:
        """The text of `f(x, y, a, n)`, which returns a number and an array."""
        names = {name: kind for kind, own in KINDS.items() for name in own}
        start = ["    b = np.zeros_like(a)" if self.chance(0.3) else "    b = a * 0.5", "    a = a.copy()"]
        body = [*self.block(names, 0, False, 1), *self.block(names, 0, False, 1)]
        return "\n".join(["def f(x, y, a, n):", *start, *body, "    return x + y, a"]) + "\n"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one_of(self, names: dict[str, str], kind: str) -> str:
        return self.random.choice([name for name, known in names.items() if known == kind])

    def place(self, names: dict[str, str]) -> str:
        counters = [name for name, kind in names.items() if kind == "place"]
        return self.random.choice(counters) if counters and self.chance(0.6) else self.random.choice(["0", "1", "-1"])

    def number(self, names: dict[str, str], depth: int = 0) -> str:
        if depth > 2 or self.chance(0.3):
            return self.one_of(names, "number") if self.chance(0.75) else self.random.choice(["0.5", "-1.5", "2.0", "3", "1"])

        def one() -> str:
            return self.number(names, depth + 1)

        def array() -> str:
            return self.one_of(names, "array")

        kind = self.random.randrange(11)
        if kind == 9:
            return self.of_elements(names, depth)
        if kind == 10:
            return self.of_some(names, depth)
        if kind == 0:
            return f"{array()}[{self.place(names)}]"
        if kind == 1:
            return f"max({one()}, {one()})"
        if kind == 2:
            return f"({one()} if {self.condition(names, depth + 1)} else {one()})"
        if kind == 3:
            return f"{array()}.sum()"
        if kind == 4:
            return f"{self.random.choice(['np.sin', 'abs', 'helper', 'float'])}({one()})"
        return f"({one()} {self.random.choice('+-*')} {one()})"

    def of_elements(self, names: dict[str, str], depth: int) -> str:
        """A number made of the elements of an array, by a comprehension."""
        own = {**names, "v": "number"}
        element, items = self.number(own, depth + 1), self.one_of(names, "array")
        some = f" if {self.condition(own, depth + 2)}" if self.chance(0.5) else ""
        numbers = f"{element} for v in {items}{some}"
        return self.random.choice(
            [
                f"sum({numbers})",
                f"sum([{numbers}])",
                f"max(({numbers}), default={self.number(names, 3)})",
                f"min([{numbers}], default=0.5)",
                f"float(any({self.condition(own, depth + 1)} for v in {items}))",
                f"float(all({self.condition(own, depth + 1)} for v in {items}))",
                f"len([{numbers}])",
                f"max({items}, key=lambda v: {element})",
                f"min(range(len({items})), key=lambda k: {items}[k] * {self.number(names, 3)})",
            ]
        )

    def mask(self, names: dict[str, str]) -> str:
        """Which elements of arrays, all of one length, are taken."""
        one = f"{self.one_of(names, 'array')} {self.random.choice(['<', '>'])} {self.number(names, 3)}"
        return f"({one}) & ({self.one_of(names, 'array')} > {self.number(names, 3)})" if self.chance(0.2) else one

    def of_some(self, names: dict[str, str], depth: int) -> str:
        """A number made of the elements that a mask takes, or of a remainder."""
        some = f"{self.one_of(names, 'array')}[{self.mask(names)}]"
        place = self.place(names)
        return self.random.choice(
            [
                f"{some}.sum()",
                f"len({some})",
                f"max({some}, default=0.5)",
                f"sum(v * {self.number({**names, 'v': 'number'}, 3)} for v in {some})",
                f"np.flatnonzero({self.mask(names)}).sum()",
                f"np.count_nonzero(np.unique(np.round({some})))",
                f"np.percentile({self.one_of(names, 'array')}, 30)",
                f"{self.one_of(names, 'array')}[({place} + {self.random.choice([1, -1, 2, 7])}) % len(a)]",
            ]
        )

    def array(self, names: dict[str, str]) -> str:
        one, number = self.one_of(names, "array"), self.number(names, 1)
        return self.random.choice(
            [
                f"np.array([{self.number({**names, 'v': 'number'}, 1)} + 0.0 for v in {one}])",
                f"({one} * {number})",
                f"({one} + {self.one_of(names, 'array')})",
                f"{one}.copy()",
                f"{one}[::-1]",
                f"np.cos({one})",
                f"np.where({self.mask(names)}, {one}, {number})",
                f"np.roll({one}, {self.place(names)})",
                f"{one}[:]",
            ]
        )

    def condition(self, names: dict[str, str], depth: int = 0) -> str:
        a, b, c = (self.number(names, 3) for _ in range(3))
        if depth > 2 or self.chance(0.6):
            return f"{a} {self.random.choice(['<', '>', '<=', '>='])} {b}"
        if self.chance(0.25):
            return f"{a} < {b} < {c}"
        if self.chance(0.3):
            return f"not {self.condition(names, depth + 1)}"
        return f"({self.condition(names, depth + 1)} {self.random.choice(['and', 'or'])} {self.condition(names, depth + 1)})"

    def block(self, names: dict[str, str], depth: int, in_loop: bool, indent: int) -> list[str]:
        lines: list[str] = []
        names = dict(names)
        for _ in range(self.random.randint(1, 4)):
            lines += self.statement(names, depth, in_loop, indent)
        return lines

    def statement(self, names: dict[str, str], depth: int, in_loop: bool, indent: int) -> list[str]:
        pad, draw = "    " * indent, self.random.random()
        if draw < 0.25 or depth > 2:
            return [f"{pad}{self.one_of(names, 'number')} = {self.number(names)}"]
        if draw < 0.33:
            return [f"{pad}{self.one_of(names, 'number')} {self.random.choice(['+=', '-=', '*='])} {self.number(names)}"]
        if draw < 0.47:
            place = self.random.choice([self.place(names), "1:", ":-1", ":"])
            return [f"{pad}{self.one_of(names, 'array')}[{place}] {self.random.choice(['=', '+=', '*='])} {self.number(names)}"]
        if draw < 0.55:
            return [f"{pad}{self.one_of(names, 'array')} = {self.array(names)}"]
        if draw < 0.6:
            one, mask = self.one_of(names, "array"), self.mask(names)
            value = self.random.choice([self.number(names, 2), f"{self.one_of(names, 'array')}[{mask}] * 0.5"])
            return [f"{pad}m = {mask}", f"{pad}{one}[m] {self.random.choice(['=', '+=', '*='])} {value.replace(mask, 'm')}"]
        if draw < 0.78:
            return self.choice(names, depth, in_loop, indent)
        if depth < 2:
            kinds = [self.loop, self.loop, self.loop, self.best, self.bound, self.filled, self.counted, self.grown]
            return self.random.choice(kinds)(names, depth, indent)
        return [f"{pad}pass"]

    def best(self, names: dict[str, str], depth: int, indent: int) -> list[str]:
        """A variable that is None before a loop."""
        pad, name = "    " * indent, self.one_of(names, "number")
        self.count += 1
        found, own = f"best{self.count}", {**names, "v": "number"}
        compare = self.random.choice(["<", ">"])
        return [
            f"{pad}{found} = None",
            f"{pad}for v in {self.one_of(names, 'array')}.copy():",
            f"{pad}    if {self.condition(own, 1)} and ({found} is None or {self.number(own, 2)} {compare} {found}):",
            f"{pad}        {found} = {self.number(own, 1)}",
            f"{pad}if {found} is not None:",
            f"{pad}    {name} = {found} * 0.5",
        ]

    def bound(self, names: dict[str, str], depth: int, indent: int) -> list[str]:
        """A `while` whose test binds a name."""
        pad = "    " * indent
        self.count += 1
        count, own, compare = f"c{self.count}", {**names, f"w{self.count}": "number"}, self.random.choice(["<", ">"])
        return [
            f"{pad}{count} = 0",
            f"{pad}while (w{self.count} := {self.number(names, 1)}) {compare} {self.number(names, 2)} and {count} < n:",
            f"{pad}    {count} += 1",
            *self.block(own, depth + 1, True, indent + 1),
        ]

    def filled(self, names: dict[str, str], depth: int, indent: int) -> list[str]:
        """A list of as many elements as the run knows, written in a loop."""
        pad, name = "    " * indent, self.one_of(names, "number")
        self.count += 1
        k = self.count
        own = {**names, f"i{k}": "place"}
        return [
            f"{pad}l{k} = [{self.random.choice(['0.0', '1', '0.5'])}] * (len(a) + 1)",
            f"{pad}for i{k} in range(len(a)):",
            f"{pad}    l{k}[i{k} + 1] = l{k}[i{k}] * 0.5 + {self.number(own, 2)}",
            f"{pad}{name} = l{k}[-1] + sum(l{k}) + len(l{k})",
        ]

    def counted(self, names: dict[str, str], depth: int, indent: int) -> list[str]:
        """A list of a few numbers, written at places that the run knows; and a queue in an array."""
        pad, name = "    " * indent, self.one_of(names, "number")
        self.count += 1
        k = self.count
        own = {**names, "v": "number"}
        return [
            f"{pad}l{k} = [0.0, 1.0, {self.number(names, 2)}]",
            f"{pad}q{k}, t{k} = np.zeros(len(a) + 1), 0",
            f"{pad}for v in {self.one_of(names, 'array')}.copy():",
            f"{pad}    l{k}[int(abs(v) * 3) % 3] += {self.number(own, 2)}",
            f"{pad}    if {self.condition(own, 1)}:",
            f"{pad}        q{k}[t{k}] = l{k}[t{k} % 3]",
            f"{pad}        t{k} += 1",
            f"{pad}{name} = l{k}[0] - l{k}[2] + q{k}[:t{k}].sum() + q{k}[t{k} - 1]",
        ]

    def grown(self, names: dict[str, str], depth: int, indent: int) -> list[str]:
        """Lists of numbers and of arrays to which a loop of known length appends, read and written in the loop and behind it."""
        pad, name, row = "    " * indent, self.one_of(names, "number"), self.one_of(names, "array")
        self.count += 1
        k = self.count
        own = {**names, f"e{k}": "number"}
        element = self.random.choice(
            [self.number(own, 2), f"l{k}[-1] * 0.5 + {self.number(own, 3)}", f"l{k}[e{k}] * 0.5 + e{k}", f"len(l{k}) * 0.1"]
        )
        array = self.random.choice([row, f"{row}.copy()", self.array(own), f"r{k}[-1] * 0.5 + {self.number(own, 3)}"])
        behind = [
            f"{pad}r{k}[3][0] = {self.number(names, 3)}",
            f"{pad}l{k}[2] = {self.number(names, 3)}",
            f"{pad}{row} = {row} + np.array(r{k}).sum(axis=0) * 0.01",
            f"{pad}{row}[0] += {self.number(names, 3)}",
            f"{pad}l{k}.append({self.number(names, 3)})",
        ]
        return [
            f"{pad}l{k}, r{k} = [{self.number(names, 3)}], [{row} * 0.5]",
            f"{pad}for e{k} in range({self.random.choice([3, 18])}):",
            *(self.block(own, 3, False, indent + 1) if self.chance(0.5) else []),
            f"{pad}    l{k}.append({element})",
            f"{pad}    r{k}.append({array})",
            *self.random.sample(behind, self.random.randint(0, 3)),
            f"{pad}{name} = l{k}[3] - l{k}[-1] + np.array(l{k}).sum() + len(l{k}) + r{k}[-1][0] + r{k}[2][1]",
            f"{pad}{name} += sum(np.array(r{k})[1:, 1] * 0.1)",
        ]

    def choice(self, names: dict[str, str], depth: int, in_loop: bool, indent: int) -> list[str]:
        pad, inner = "    " * indent, "    " * (indent + 1)
        lines = [f"{pad}if {self.condition(names)}:", *self.block(names, depth + 1, in_loop, indent + 1)]
        if in_loop and self.chance(0.3):
            lines.append(inner + self.random.choice(["break", "continue"]))
        elif self.chance(0.15):
            lines.append(f"{inner}return {self.number(names)}, a")
        if self.chance(0.5):
            lines += [f"{pad}else:", *self.block(names, depth + 1, in_loop, indent + 1)]
        return lines

    def loop(self, names: dict[str, str], depth: int, indent: int) -> list[str]:
        pad, own = "    " * indent, dict(names)
        self.count += 1
        k = self.count
        if self.chance(0.3):
            lines = [f"{pad}c{k} = 0", f"{pad}while c{k} < n and {self.condition(names)}:", f"{pad}    c{k} += 1"]
        elif self.chance(0.3):
            own |= {f"i{k}": "place", f"e{k}": "number"}
            lines = [f"{pad}for i{k}, e{k} in enumerate(a.copy()):"]
        else:
            own[f"i{k}"] = "place"
            lines = [f"{pad}for i{k} in {self.random.choice(['range(n)', 'range(3)', 'range(len(a))', 'range(n - 1, -1, -1)'])}:"]
        lines += self.block(own, depth + 1, True, indent + 1)
        if self.chance(0.2):
            lines += [f"{pad}else:", *self.block(names, depth + 1, False, indent + 1)]
        return lines


def function_of(seed: int) -> Callable[..., Any]:
    """A random function, whose source Python's tools find."""
    text, name = HELPER + Writer(seed).program(), f"<random function {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space: dict[str, Any] = {"__name__": "random_functions"}
    exec(compile(text, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made
