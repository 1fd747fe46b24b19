"""Random Python functions, traced: each gives what it gives under Python, or is refused before anything is returned.

`python tests/plain/test_random_functions.py 0 2000` runs many, and says what differs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from random_functions import function_of
from wide import wide

import numbascan as ns

REFUSED = (TypeError, ns.TracerError, UnboundLocalError, RuntimeError)
"""How a function is refused; a ValueError is of arrays of which one of several is written, an IndexError of an index that is a float on
another way, and an error of Python's own is none."""
OF_SEVERAL = (
    "is one of",
    "goes from pass to pass",
    "handed from pass to pass",
    "is not known here",
    "in the first pass of a loop",
    "only integers, slices",
)
SIZES = (4, 20)  # lengths that are fixed, and that are open


def arguments(seed: int, size: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    return float(rng.normal()), float(rng.normal()), rng.normal(size=size), int(rng.integers(0, 5))


def called(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A call's number and array, with the array that it was given; or its error."""
    own = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    with np.errstate(all="ignore"):
        try:
            number, array = f(*own)
        except Exception as error:
            return error
    return np.asarray(number, float), np.asarray(array), own[2]


def outcome(seed: int, size: int, mode: str | None) -> str:
    """What came of a function: same, refused, both raise, or what is wrong."""
    f, args = function_of(seed), arguments(seed, size)
    expected, found = called(f, args), called(ns.jit(f, mode=mode), args)
    if isinstance(found, Exception):
        if isinstance(expected, Exception):
            return "both raise"
        is_refused = isinstance(found, REFUSED) or any(words in str(found) for words in OF_SEVERAL)
        return "refused" if is_refused else f"{type(found).__name__}: {found}"
    if isinstance(expected, Exception):
        return f"no error, in place of {expected!r}"
    for name, one, other in zip(("number", "array", "argument"), expected, found, strict=True):
        if one.shape != other.shape or not np.allclose(other, one, rtol=1e-8, atol=1e-9, equal_nan=True):
            return f"another {name}: {other} for {one}"
    return "same"


def slopes(seed: int) -> str:
    """Whether the gradient along one direction is that of differences, where these agree with each other."""
    f, (x, y, a, n) = function_of(seed), arguments(seed, 4)
    along = np.cos(np.arange(4.0) + seed)

    def number(x: Any, a: Any) -> Any:
        result, array = f(x, y, a, n)
        return result * 1.0 + array.sum()

    with np.errstate(all="ignore"):
        try:
            near, far = ((number(x + h, a + h * along) - number(x - h, a - h * along)) / (2 * h) for h in (1e-6, 3e-6))
        except Exception:
            return "both raise"
        try:
            found, found_along = ns.grad(number, argnums=(0, 1), disconnected_inputs="ignore")(x, a)
        except REFUSED:
            return "refused"
        except (ValueError, IndexError) as error:
            return "refused" if any(words in str(error) for words in OF_SEVERAL) else f"{type(error).__name__}: {error}"
        found += found_along @ along
    if not (np.isfinite([near, far]).all() and abs(near - far) <= 1e-4 * (1 + abs(near)) and abs(near) < 1e6):
        return "rough"
    return "same" if abs(found - near) <= 1e-3 * (1 + abs(near)) else f"slope {found} for {near}"


KNOWN = {"same", "refused", "both raise", "rough"}


@pytest.mark.parametrize("seed", wide(range(1000), 30))
def test_a_random_function_gives_what_python_gives(seed: int) -> None:
    assert {outcome(seed, size, "python") for size in SIZES} <= KNOWN


@pytest.mark.parametrize("seed", wide(range(200), 4))
def test_a_compiled_random_function_gives_what_python_gives(seed: int) -> None:
    assert {outcome(seed, size, None) for size in SIZES} <= KNOWN


@pytest.mark.parametrize("seed", wide(range(1000, 1400), 12))
def test_the_gradient_of_a_random_function_is_that_of_differences(seed: int) -> None:
    assert slopes(seed) in KNOWN


def test_most_random_functions_are_taken() -> None:
    tally = Counter(outcome(seed, 4, "python") for seed in range(12))
    assert tally["same"] >= 8


if __name__ == "__main__":
    all_of: Counter[str] = Counter()
    for one in range(int(sys.argv[1]), int(sys.argv[2])):
        runs = {
            f"{mode or 'compiled'} {size}": outcome(one, size, mode) for size in SIZES for mode in ("python", None)[: 1 + (one % 8 == 0)]
        }
        runs["slope"] = slopes(one)
        for way, label in runs.items():
            all_of[f"{way}: {label if label in KNOWN else 'WRONG'}"] += 1
            if label not in KNOWN:
                print(one, way, label[:300].replace("\n", " "), flush=True)
    print(dict(all_of))
