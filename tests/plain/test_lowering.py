"""Converted functions, run by Python on known values: they compute what the functions that they are made of compute."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_functions import function_of
from wide import wide

import numbascan as ns
from numbascan.front.converted.source import converted, reason


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with np.errstate(all="ignore"):
        try:
            number, array = f(*[arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args])
        except Exception as error:
            return type(error)
    return float(number), array.tolist()


@pytest.mark.parametrize("seed", wide(range(400), 60))
def test_a_converted_function_computes_what_it_was_made_of(seed: int) -> None:
    f, rng = function_of(seed), np.random.default_rng(seed)
    assert converted(f) is not f, reason(f)
    for _ in range(3):
        args = float(rng.normal()), float(rng.normal()), rng.normal(size=4), int(rng.integers(0, 5))
        assert repr(outcome(f, args)) == repr(outcome(converted(f), args))


def countdown(n: int, *, by: int = 1) -> list[int]:
    return [n, *countdown(n - by, by=by)] if n > 0 else []


class Account:
    def __init__(self, start: float) -> None:
        self.__sum = start

    def put(self, amount: float) -> float:
        if amount > 0:
            self.__sum += amount
        return self.__sum


class Doubled(Account):
    def put(self, amount: float) -> float:
        for _ in range(2):
            total = super().put(amount)
        return total


def stepwise(n: int) -> tuple[list[int], int]:
    seen, steps = [], 0
    while True:
        n, steps = (n // 2, steps + 1) if n % 2 == 0 else (3 * n + 1, steps + 1)
        if n in seen or steps > 20:
            break
        seen.append(n)
    else:
        steps = -1
    return seen, steps


def named(value: int) -> str:
    match value:
        case 0:
            return "none"
        case 1 | 2:
            return "few"
        case k if k > 100:
            return "many"
    return "some"


def cleaned(values: list[float]) -> list[str]:
    log: list[str] = []
    for value in values:
        try:
            if value == 0:
                raise ZeroDivisionError
            log.append(f"{1 / value:.1f}")
        except ZeroDivisionError:
            continue
        finally:
            log.append("done")
    return log


def swapped(items: list[int], i: int, j: int) -> list[int]:
    items[i], items[j] = items[j], items[i]
    first, *rest = items
    total = last = first
    total += sum(rest)
    return [*items, total, last]


@pytest.mark.parametrize(
    "f, args",
    [
        (countdown, (4,)),
        (stepwise, (7,)),
        (swapped, ([3, 1, 2], 0, -1)),
        (cleaned, ([1.0, 0.0, 4.0],)),
        *((named, (value,)) for value in (0, 2, 5, 101)),
        (lambda x, y=2: x if 0 < x < y else (y if not x else -x), (1,)),
        (lambda x, y=2: x if 0 < x < y else (y if not x else -x), (0,)),
    ],
)
def test_what_python_has_means_the_same(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert converted(f) is not f, reason(f)
    copied = [list(arg) if isinstance(arg, list) else arg for arg in args]
    assert f(*args) == converted(f)(*copied)


def test_methods_keep_private_names_and_super() -> None:
    assert converted(Account(1.0).put)(2.0) == 3.0
    assert converted(Doubled(1.0).put)(2.0) == Doubled(1.0).put(2.0) == 5.0


def fails(values: list[int]) -> int:
    for value in values:
        if value > 1:
            return [][value]
    return 0


def test_tracebacks_show_the_lines_and_the_name_of_the_function() -> None:
    with pytest.raises(IndexError) as caught:
        converted(fails)([0, 5])
    last = [entry for entry in caught.traceback if entry.path.name == "test_lowering.py"][-1]
    assert (last.frame.code.name, str(last.statement).strip()) == ("fails", "return [][value]")


def test_what_stays_as_it_is_says_why() -> None:
    def numbers() -> Any:
        yield 1

    space: dict[str, Any] = {"__name__": "elsewhere"}
    exec("def unseen(x):\n    return x", space)
    assert converted(numbers) is numbers
    assert "generator" in reason(numbers)
    assert converted(space["unseen"]) is space["unseen"]
    assert re.search("cannot be (read|found)", reason(space["unseen"]))
    assert converted(np.linalg.norm) is np.linalg.norm
    as_is = ns.as_written(countdown)
    assert converted(as_is) is countdown
    del vars(countdown)["__numbascan_as_written__"]


def test_the_modules_of_python_and_numbascan_are_not_converted() -> None:
    for f in (sys.modules["textwrap"].dedent, ns.scan, ns.jit):
        assert converted(f) is f
