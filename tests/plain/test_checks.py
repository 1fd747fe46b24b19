"""`assert` and `raise` that only the run decides: each function beside itself under Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.errors import TracerBoolError


def root(x: Any) -> Any:
    if x < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def halvings(tolerance: Any) -> Any:
    assert tolerance > 0, "the tolerance must be positive"
    error, n = 1.0, 0
    while error > tolerance:  # without the assertion it would never end
        error, n = error / 2, n + 1
    return n


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(30):
        if i * x > 50:
            break
        if x < 0:
            raise KeyError("negative")
        if x == 3:
            continue
        total += i
    else:
        if x == 0:
            raise ZeroDivisionError("zero")
        total = -total
    return total


def in_a_while(x: Any) -> Any:
    t = 0.0
    while t < x:
        if t > 3:
            if x > 100:
                raise OverflowError("both")
            t += 2
        else:
            t += 1
    return t


def by_cases(x: Any) -> Any:
    match x:
        case 1:
            return 10.0
        case 2:
            return 20.0
        case _:
            raise NotImplementedError


def several(x: Any) -> Any:
    if x < 0:
        raise ValueError("a")
    elif x < 1:
        raise TypeError("b")
    y = x * 2
    assert y < 100, "large"
    assert y != 50
    return y


def with_objects(x: Any) -> Any:
    holder, values = {"k": 0.0}, [1.0, 2.0]
    n = 5
    assert x > 0
    holder["k"] = x
    values[0] = x
    for i in range(n):
        values[0] += i
    return holder["k"] + values[0] + np.zeros(n).sum()


def with_views(x: Any) -> Any:
    z = np.zeros(3)
    v = z[1:]
    if x < 0:
        raise ValueError("negative")
    v[0] = x
    assert x < 9
    z[0] += 1
    return z


def positive(x: Any) -> Any:
    assert x > 0, "not positive"
    return x


def by_a_helper(x: Any) -> Any:
    positive(x)
    return positive(x + 1) + sum([positive(x) for _ in range(3)])


def in_a_branch(x: Any) -> Any:
    r = 0.0
    if x > 3:
        assert x < 5
        r = x
    return r + x


def on_the_other_side(x: Any) -> Any:
    if x > 0:
        y = 4.0
    else:
        y = 3.0
        raise RuntimeError("m")
    return y * x


CASES: list[tuple[Callable[[Any], Any], list[float]]] = [
    (root, [4.0, -4.0]),
    (halvings, [0.1, -1.0]),
    (in_a_loop, [1.0, -1.0, 0.0, 3.0, 9.0]),
    (in_a_while, [3.0, 50.0, 200.0]),
    (by_cases, [1.0, 2.0, 3.0]),
    (several, [-1.0, 0.5, 2.0, 25.0, 60.0]),
    (with_objects, [1.0, -1.0]),
    (with_views, [1.0, -1.0, 9.0]),
    (by_a_helper, [1.0, -1.0, -0.5]),
    (in_a_branch, [1.0, 4.0, 6.0]),
    (on_the_other_side, [1.0, -1.0]),
]


def outcome(f: Callable[[Any], Any], x: float) -> Any:
    try:
        return np.asarray(f(x)).tolist()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(("f", "values", "mode"), [(*case, "python") for case in CASES] + [(*CASES[k], None) for k in (1, 2, 5, 7)])
def test_errors_and_results_are_those_of_the_plain_function(f: Any, values: list[float], mode: str | None) -> None:
    compiled = ns.jit(f, mode=mode)
    assert [outcome(compiled, x) for x in values] == [outcome(f, x) for x in values]


@pytest.mark.parametrize(("f", "values"), [CASES[0], CASES[5]])
def test_lanes_fail_as_the_plain_function_does(f: Any, values: list[float]) -> None:
    good = [x for x in values if not isinstance(outcome(f, x), type)]
    lanes = ns.vmap(f)
    assert np.array_equal(lanes(np.array(good)), [f(x) for x in good])
    for x in set(values) - set(good):
        assert outcome(lanes, np.array([*good, x])) == outcome(f, x)  # type: ignore[arg-type]


def test_messages_are_the_users_with_the_line_and_the_loop() -> None:
    with pytest.raises(ValueError, match=r"^negative \(.*test_checks.py, line \d+\)$"):
        ns.jit(root)(-1.0)
    with pytest.raises(KeyError, match=r"negative \(.*test_checks.py, line \d+\) in the step of scan 'loop'"):
        ns.jit(in_a_loop)(-1.0)

    def shown(x: Any) -> Any:
        assert x < 5, f"{x} of {{5}}"
        return x

    with pytest.raises(AssertionError, match=r"<x: float64\[\]> of \{5\}"):
        ns.jit(shown)(6.0)


def test_steps_of_scans_raise() -> None:
    steps = ns.scan(lambda x: root(x) - 1.5, outputs_info=np.array(4.0), n_steps=1)[0]
    assert steps[0] == 0.5
    with pytest.raises(ValueError, match="negative"):
        ns.scan(lambda x: root(x) - 1.5, outputs_info=np.array(4.0), n_steps=3)
    with pytest.raises(AssertionError, match="not positive"):
        ns.lax.fori_loop(0, 3, lambda _, x: positive(x) - 1.0, 2.0)


def test_functions_within_functions_raise() -> None:
    @ns.jit
    def check(x: Any) -> None:
        assert x > 0, "checked"

    def stepping(x: Any) -> Any:
        assert x < 100, "outer"

        def step(s: Any) -> Any:
            check(s)
            return s - 1

        check(x + 3)
        return ns.scan(step, outputs_info=x, n_steps=3)[0][-1] + ns.vmap(positive)(np.array([1.0, 2.0]) + x).sum()

    compiled = ns.jit(stepping, mode="python")
    assert compiled(5.0) == 15.0
    for x, message in ((2.0, "checked"), (-4.0, "checked"), (101.0, "outer")):
        with pytest.raises(AssertionError, match=message):
            compiled(x)


def test_derivatives_raise_too() -> None:
    assert ns.grad(root)(4.0) == 0.25
    with pytest.raises(ValueError, match="negative"):
        ns.grad(root)(-4.0)
    linear = ns.grad(lambda x: 3 * positive(x))  # whose derivative needs no value of x
    assert linear(1.0) == 3.0
    with pytest.raises(AssertionError, match="not positive"):
        linear(-1.0)
    with pytest.raises(AssertionError, match="not positive"):
        ns.jvp(lambda x: 3 * positive(x), (-1.0,), (1.0,))


@pytest.mark.parametrize("returns", [True, False])
def test_arguments_stay_as_they_were_where_an_error_is_raised(returns: bool) -> None:
    def filled(x: Any, y: Any) -> Any:
        x[0] = y
        if y < 0:
            raise ValueError("negative")
        x[1] = y
        return x if returns else None

    compiled, x = ns.jit(filled), np.zeros(2)
    with pytest.raises(ValueError, match="negative"):
        compiled(x, -1.0)
    assert x.tolist() == [0.0, 0.0]
    compiled(x, 1.0)
    assert x.tolist() == [1.0, 1.0]


def test_known_conditions_are_pythons() -> None:
    def known(x: Any) -> Any:
        assert x.ndim == 1, "one axis"
        if len(x) != 2:
            raise LookupError("two")
        return x * 2

    assert ns.jit(known)(np.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError, match=r"^one axis$"):
        ns.jit(known)(np.ones((2, 2)))
    with pytest.raises(LookupError, match=r"^two$"):
        ns.jit(known)(np.ones(3))


class OwnError(Exception):
    pass


class WithTextError(ValueError):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class TwoPartsError(Exception):
    def __init__(self, what: str, number: float) -> None:
        super().__init__(f"{what} {number}")
        self.number = number


def own(x: Any) -> Any:
    if x < 0:
        raise OwnError("it is {negative}")
    if x > 5:
        raise WithTextError("it is large")
    if x == 2:
        raise OwnError
    if x == 3:
        raise np.linalg.LinAlgError("it is three")
    if x == 4:
        raise FloatingPointError("it is four")
    return x


def own_in_a_loop(x: Any) -> Any:
    total = 0.0
    for _ in range(30):
        total += x
        if total > 10:
            raise OwnError("too much")
    return total


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize(("f", "values"), [(own, [-1.0, 1.0, 2.0, 3.0, 4.0, 7.0]), (own_in_a_loop, [0.1, 1.0])])
def test_errors_of_the_users_own_classes(f: Any, values: list[float], mode: str | None) -> None:
    traced = ns.jit(f, mode=mode)
    for x in values:
        error = raised_by(f, x)
        if error is None:
            assert traced(x) == pytest.approx(f(x))
            continue
        with pytest.raises(type(error), match=r"test_checks\.py, line") as caught:
            traced(x)
        assert type(caught.value) is type(error)
        assert str(error) in str(caught.value)
        assert getattr(caught.value, "text", str(caught.value)) == str(caught.value)


def raised_by(f: Any, x: float) -> Exception | None:
    try:
        f(x)
    except Exception as error:
        return error
    return None


def test_classes_of_one_name_are_told_apart() -> None:
    def of_class(number: float) -> Any:
        class LocalError(Exception):
            pass

        def f(x: Any) -> Any:
            if x > 0:
                raise LocalError("it is positive")
            return x + number

        return ns.jit(f), LocalError

    for f, cls in [of_class(1.0), of_class(2.0)]:
        with pytest.raises(cls, match="positive"):
            f(1.0)


def test_own_errors_leave_arguments_as_they_were_and_go_through_derivatives_and_lanes() -> None:
    def f(x: Any) -> Any:
        x[0] = 3.0
        if x[1] < 0:
            raise OwnError("negative")

    x = np.array([1.0, -1.0])
    with pytest.raises(OwnError, match="negative"):
        ns.jit(f)(x)
    assert x[0] == 1.0
    with pytest.raises(OwnError):
        ns.grad(own)(-1.0)
    with pytest.raises(OwnError, match="step of scan"):
        ns.vmap(own)(np.array([1.0, -1.0]))


def with_number(x: Any) -> Any:
    if x < 0:
        raise TwoPartsError("negative", 1.0)
    return x


def two_parts(x: Any) -> Any:
    if x < 0:
        raise ValueError("a", 1)
    return x


def always(x: Any) -> Any:
    if x < 0:
        raise ValueError("a")
    else:
        raise TypeError("b")


def alone(x: Any) -> None:
    assert x > 0


@pytest.mark.parametrize("f", [with_number, two_parts, always, alone])
def test_what_compiled_code_cannot_raise_is_refused_while_tracing(f: Any) -> None:
    with pytest.raises(TracerBoolError, match="only the run decides"):
        ns.jit(f, mode="python")(1.0)


# errors of arithmetic that a `try` waits for ---------------------------------------------------------------------------


def _log_or(a: Any) -> Any:
    try:
        return math.log(a)
    except ValueError:
        return -99.0


def _quotient_or(a: Any, b: Any) -> Any:
    try:
        y = a // b
    except (KeyError, ZeroDivisionError):
        y = -99
    return y


def _updated_or(a: Any, b: Any) -> Any:
    y = a
    try:
        y /= b
    except Exception:
        y = 0.0
    return y


@pytest.mark.parametrize(("f", "args"), [(_log_or, (0.5,)), (_quotient_or, (5, 2)), (_updated_or, (1.0, 2.0))])
def test_an_error_of_a_number_that_a_try_waits_for_is_refused(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with pytest.raises(ns.TracerBoolError, match=r"a `try` waits for an error of a number that only the run knows .*ask before"):
        ns.jit(f)(*args)


def test_a_try_that_waits_for_something_else_or_for_known_numbers_is_python_s() -> None:
    def f(x: Any, table: Any) -> Any:
        try:
            y = x / table["scale"]  # an array gives inf, in Python as well
        except (KeyError, ZeroDivisionError):
            y = x
        try:
            z = math.sqrt(-1.0)
        except ValueError:
            z = 2.0
        try:
            return y[0] / y[1] + z
        except KeyError:
            return y

    x = np.array([1.0, 2.0])
    for table in ({}, {"scale": 4.0}):
        assert ns.jit(lambda x: f(x, table))(x) == f(x, table)  # noqa: B023 - called at once
