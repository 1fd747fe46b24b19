"""Code that stands behind a jump never runs: a `return` there ends no loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns


def return_behind_continue(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        if i >= 0:
            continue
            return s
    return s


def return_in_a_choice_behind_continue(x: Any) -> Any:
    s, z = 0.0, 0
    while x[0] > 0:
        z += 1
        if z > 4:
            break
        s += 1.0
        if x[1] > 0:
            continue
            if x[2] > 0:
                s += 1
            else:
                return s
    return s + 100


def return_behind_break(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        if x[i] > 0:
            break
            return s
    else:
        s = -1.0
    return s + 100


def break_behind_continue(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        continue
        break
    else:
        s += 50.0
    return s


def return_behind_two_ways_on(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        if x[i] > 2:
            continue
        else:
            s += 1.0
            continue
        return s
    return s


@pytest.mark.parametrize("n", [5, 30])
@pytest.mark.parametrize(
    "f",
    [
        return_behind_continue,
        return_in_a_choice_behind_continue,
        return_behind_break,
        break_behind_continue,
        return_behind_two_ways_on,
    ],
    ids=lambda f: f.__name__,
)
def test_a_jump_behind_a_jump_is_none(f: Callable[..., Any], n: int) -> None:
    x = np.arange(float(n)) + 1
    assert ns.jit(f, mode="python")(x) == f(x)


factor = 5.0


def bound_behind_return(x: Any) -> Any:
    y = x * factor  # noqa: F823 - what this is about
    return y
    factor = 3.0  # noqa: F841 - never runs


def run_over_behind_return(x: Any) -> Any:
    y = x * factor  # noqa: F823 - what this is about
    return y
    for factor in range(3):
        y += factor


def read_within_and_bound_behind_return(x: Any) -> Any:
    def inner() -> Any:
        return x * factor

    return inner()
    factor = 3.0


@pytest.mark.parametrize("f", [bound_behind_return, run_over_behind_return, read_within_and_bound_behind_return], ids=lambda f: f.__name__)
def test_a_name_bound_behind_a_jump_alone_is_local(f: Callable[..., Any]) -> None:
    """The variable of the module with this name is another one."""
    for called in (f, ns.jit(f, mode="python")):
        with pytest.raises(NameError, match="factor"):
            called(np.arange(3.0))
