"""What Python asks of a value (its class, text, hash, truth in `any`) and lists that NumPy makes arrays of: as for numbers, or refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import reduce, singledispatch
from numbers import Real
from typing import Any

import numpy as np
import pytest

import numbascan as ns


@singledispatch
def kind(x: Any) -> str:
    return "another"


@kind.register
def _(x: float) -> str:
    return "a float"


def by_class(x: Any) -> Any:
    if isinstance(x, (int, float)):
        return x
    return -x


def by_match(x: Any) -> Any:
    match x:
        case float():
            return x
        case _:
            return -x


RIGHT: list[Callable[[Any], Any]] = [
    by_class,
    lambda x: x if isinstance(x, Real) else -x,
    lambda x: x if type(x) is float or isinstance(x, np.floating) else -x,
    lambda x: x if hasattr(x, "real") else -x,
    lambda x: getattr(x, "imag", 3.0) + getattr(x, "no_such", 2.0),
    lambda x: x if np.isscalar(x) else -x,
    lambda x: math.log(x, 2.0) + math.log(x),
    lambda x: math.hypot(x, -2.0, x),
    lambda x: math.fsum([x, 1.0, x]) + math.prod([x, 2.0, x]) + math.dist([x, 1.0], [2.0, x]),
    lambda x: 1.0 if math.isclose(x, 1.0 + 1e-12) else 2.0,
    lambda x: math.modf(-x)[0] + 10.0 * math.modf(x)[1],
    lambda x: reduce(lambda a, b: a if a > b else b, [x, 0.5, 2 * x]),
    lambda x: max(y for y in [x, 0.3, x * 2]) + min(map(abs, [x, -0.1])),
    lambda x: 1.0 if any(y > 2 for y in [x, 0.3, x * 2]) else 0.0,
    lambda x: 1.0 if all(y > 0.1 for y in [x, 0.3, x * 2]) else 0.0,
    lambda x: any(y > 0 for y in [-1, 1, None]) * x,  # Python stops at the one that holds
    lambda x: x if x in {1.0: 1} else -x,
    lambda x: np.nan_to_num([x, np.nan]),
    lambda x: np.reciprocal([int(x), 2]),
    lambda x: np.logical_and(True, [x > 0, x > 1.2]),
    lambda x: np.array([np.sum([x > 0, x > 1.2, True]), 3]),
    lambda x: np.mean([x, 2, 3]) + np.dot([x, 1.0], (2.0, x)) + np.interp(x, [0.0, x, 3.0], [x, 1, 2]),
    lambda x: np.array([(x > 0), 2]),
    lambda x: np.array([np.float32(2.0), np.array(x).astype("float32")]),
    lambda x: np.array([np.array(x).astype("int8"), 300]),
    lambda x: np.array([[x, 1], [2, x > 0]]),
    lambda x: np.concatenate([[x], [1.0, 2.0]]),
    lambda x: len(f"{3}{4:03}") * x + {"a34": 2.0}[f"a{34}"],
    lambda x: {2: x, 3: 1.0}[1 + 1],
]


@pytest.mark.parametrize("k", range(len(RIGHT)))
def test_what_python_asks_of_a_value_is_answered_as_for_a_number(k: int) -> None:
    for x in (1.0, 1.5):
        result = ns.jit(RIGHT[k], mode="python")(x)
        np.testing.assert_allclose(result, RIGHT[k](x), rtol=1e-14)
        assert np.asarray(result).dtype == np.asarray(RIGHT[k](x)).dtype


REFUSED: dict[str, Callable[[Any], Any]] = {
    "hash": lambda x: hash(x) * x,
    "an element of a set": lambda x: len({x, 1.0, 2.0}) * x,
    "set()": lambda x: len(set([x, x * 1.0])) * x,  # noqa: C405
    "a set comprehension": lambda x: len({y for y in [x, x * 1.0]}) * x,  # noqa: C416
    "a starred element": lambda x: len({*[x, x * 1.0]}) * x,
    "set.add": lambda x: [s := set(), s.add(x), s.add(x * 1.0), len(s) * x][-1],
    "dict.setdefault": lambda x: [d := {}, d.setdefault(x, 1), d.setdefault(x * 1.0, 1), len(d) * x][-1],
    "a dict": lambda x: len({x: 1, x * 1.0: 2}) * x,
    "a dict comprehension": lambda x: len({y: y for y in [x, x * 1.0]}) * x,
    "Counter": lambda x: len(Counter([x, x * 1.0])) * x,
    "dict.fromkeys": lambda x: len(dict.fromkeys([x, x * 1.0])) * x,
    "str": lambda x: len(str(x)) * x,
    "repr": lambda x: len(repr(x)) * x,
    "digits": lambda x: sum(int(d) for d in str(int(x))) * x,
    "an f-string": lambda x: len(f"{x}") * x,
    "part of an f-string": lambda x: len(f"a{x}b") * x,
    "an f-string in an f-string": lambda x: len(f"a{f'{x}'}b") * x,
    "a sum of texts": lambda x: len("a" + str(x) + "b") * x,
    "a key of text": lambda x: {"1.0": 2.0}.get(str(x), 5.0) * x,
    "equal texts": lambda x: x if str(x) == "1.0" else -x,
    "format": lambda x: len("{:.3f}".format(x)) * x,  # noqa: UP032 - the method is what is tested
    "per cent": lambda x: len("%s" % x) * x,  # noqa: UP031 - likewise
    "a class in match": by_match,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_the_run_knows_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"only the run knows|asks for the class"):
        ns.jit(REFUSED[name], mode="python")(1.0)


def test_text_of_traced_values_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(f"x is {x:.3f}, {x!r}", str(x), "{:.2f} {}".format(x, 3), "a" + str(x))  # noqa: UP032 - the method is what is tested
        return x

    assert ns.jit(f, mode="python")(1.0) == 1.0
    assert capsys.readouterr().out == "x is <x: float64[]>, <x: float64[]> <x: float64[]> <x: float64[]> 3 a<x: float64[]>\n"


def test_variables_of_a_graph_are_keys_as_before() -> None:
    x = ns.tensor.dscalar("x")
    assert {x: 1}[x] == 1
    s = ns.shared(1.0, "s")
    _, updates = ns.scan(lambda: (s * 2.0, {s: s + 1.0}), n_steps=3)
    assert s in updates


def test_a_truth_value_and_a_short_integer_meet_in_the_short_integer() -> None:
    def f(x: Any) -> Any:
        s = True if x.sum() > 0 else x[0]
        return s + x[1]

    x = np.array([3, -5], dtype="int32")
    assert ns.jit(f, mode="python")(x).dtype == f(x).dtype == np.int32


# text of traced numbers in a format of numbers, annotations -------------------------------------------------------------


def test_percent_formats_show_traced_numbers_by_name() -> None:
    def f(x: Any, k: Any) -> Any:
        if x[0] < 0:
            raise ValueError("should be positive, but is %e" % x[0])  # noqa: UP031 - the old way
        if k > 5:
            raise ValueError("%d of %5.2f is too many: %s" % (k, x[0], "so"))  # noqa: UP031 - the old way
        return x * k

    np.testing.assert_array_equal(ns.jit(f)(np.ones(2), 3), [3.0, 3.0])
    with pytest.raises(ValueError, match=r"of .* is too many: so"):
        ns.jit(f)(np.ones(2), 7)


def test_annotated_locals_in_branches_and_loops() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            y: float = 2 * x
        else:
            y = 0.0
        for k in range(20):
            part: float = y / (k + 1)
            y = y + part
        z: int
        z = 3
        return y * z

    for x in (2.0, -1.0):
        assert ns.jit(f)(x) == pytest.approx(f(x))


# tuples and lists that are compared -------------------------------------------------------------------------------------


def _orders(a: Any, b: Any, c: Any) -> Any:
    return (
        (a, b) < (b, c),
        (a, b) <= (a, b),
        (a, b) > (b,),
        (a, 1) != (1, b),
        [a, b] == [b, a],
        (a, b) >= (c, a),
        (a, (b, c)) == (c, (b, a)),
        (a, b) < (a, b, c),
        1 < a < 3,
    )


@pytest.mark.parametrize("args", [(1.0, 2.0, 3.0), (2.0, 2.0, 1.0), (3.0, 1.0, 3.0), (np.nan, 1.0, 1.0), (1.0, 1.0, 1.0)])
def test_tuples_of_traced_numbers_are_compared_as_in_python(args: tuple[float, ...]) -> None:
    assert [bool(one) for one in ns.jit(_orders, mode="python")(*args)] == [bool(one) for one in _orders(*args)]


def test_shapes_are_compared_and_the_least_tuple_is_kept() -> None:
    def f(p: Any, x: Any) -> Any:
        assert p.shape == x.shape
        if p.shape != (30, 2):
            return p.sum()
        best = (np.inf, -1)
        for i in range(len(x)):
            now = (abs(x[i, 0] - 0.3), i)
            if now < best:
                best = now
        return best[0] + best[1]

    rng = np.random.default_rng(0)
    for shape in ((30, 2), (29, 2)):
        p, x = rng.random(shape), rng.random(shape)
        assert ns.jit(f)(p, x) == pytest.approx(f(p, x))
    with pytest.raises(AssertionError):
        ns.jit(f)(np.ones((30, 2)), np.ones((29, 2)))


CONSTANT = np.arange(9.0).reshape(3, 3)


def test_methods_of_known_arrays_take_traced_arguments() -> None:
    def f(x: Any) -> Any:
        y = CONSTANT.dot(x)
        return y.sum() if y.dtype.kind == "f" else np.nan, y.max(), CONSTANT[0].clip(x.min(), 1.5), CONSTANT[0].take(x.argmax())

    x = np.array([0.5, 1.5, 0.2])
    for one, expected in zip(ns.jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(one, expected)


def test_item_is_the_number_of_an_array() -> None:
    def f(x: Any, a: Any) -> Any:
        total = np.asarray(a).item() + x.sum().item()
        return total, x.item(2), x.reshape(2, -1).item(1, 0), x[1:2].item() * 2

    for n in (4, 20):
        x = np.arange(float(n)) / 7
        assert [float(one) for one in ns.jit(f)(x, 2.5)] == pytest.approx(list(f(x, 2.5)))
    with pytest.raises(ValueError, match="reshape"):
        ns.jit(lambda x: x[: x.size - 1].item())(np.arange(20.0))
