"""What does not fit is refused before anything runs, with the function, the leaf, both types and what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax

ROWS = np.ones((3, 2))
ARRAYS = np.ones(2), np.zeros(2)


class Pair(NamedTuple):
    a: Any
    b: Any


def kept(c: Any, x: Any) -> Any:
    return c, None


TYPES: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype of a carry": (
        lambda: lax.scan(lambda c, x: ({"a": (c["a"][0].astype("float32"),)}, x), {"a": (np.float64(0),)}, ROWS),
        r"lax\.scan: carry\['a'\]\[0\] is float64\[\], but <lambda> \(.*test_messages\.py, line \d+\) returns float32\[\].*'float64'",
    ),
    "shape of a carry": (
        lambda: lax.scan(lambda c, x: (Pair(c.a, c.b[:1]), x), Pair(0.0, np.ones(2)), ROWS),
        r"carry\.b is float64\[2\].*returns float64\[1\].*a result of shape \(2,\)",
    ),
    "shape of a number": (lambda: lax.scan(lambda c, x: (c + x, None), 0.0, ROWS), r"carry is float64\[\].*returns float64\[2\]"),
    "kind of a number": (lambda: lax.scan(lambda c, x: (1, None), 0.5, ROWS), r"carry is float64\[\].*returns int64\[\]"),
    "keys of a carry": (
        lambda: lax.while_loop(lambda c: c["a"] < 1, lambda c: {"a": c["a"]}, {"a": 0.0, "b": 1.0}),
        r"lax\.while_loop: carry is {'a': …, 'b': …}, but .* returns {'a': …} there",
    ),
    "a leaf that is a nest": (lambda: lax.scan(lambda c, x: ([c[0], (c[1],)], x), [0.0, 1.0], ROWS), r"carry\[1\] is an array.*\(…,\)"),
    "None in place of a leaf": (lambda: lax.fori_loop(0, 3, lambda i, c: (c[0], None), (0.0, 1.0)), r"carry\[1\] is an array.*None"),
    "another class": (lambda: lax.scan(lambda c, x: ((c.a, c.b), x), Pair(0.0, 1.0), ROWS), r"carry is Pair\(…, …\).* \(…, …\) there"),
    "no pair": (lambda: lax.scan(lambda c, x: c, 0.0, ROWS), r"returns an array; return a pair, as \(carry, y\)"),
    "three results": (lambda: lax.scan(lambda c, x: (c, x, x), 0.0, ROWS), r"returns \(…, …, …\); return a pair"),
    "condition of numbers": (
        lambda: lax.while_loop(lambda c: 3 - c, lambda c: c + 1, 0),
        r"cond <lambda>.*returns int64\[\].*boolean scalar",
    ),
    "condition of an array": (lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, np.zeros(2)), r"returns bool\[2\].*\.all\(\)"),
    "bounds of two types": (
        lambda: lax.fori_loop(np.int32(0), np.int64(3), kept, 0),
        r"lower is int32\[\], upper int64\[\].*astype\('int32'\)",
    ),
    "bounds that are floats": (lambda: lax.fori_loop(0, 3.0, kept, 0), r"lax\.fori_loop: a bound is float64\[\]; give integer scalars"),
    "bounds that are booleans": (lambda: lax.fori_loop(False, True, kept, 0), r"a bound is bool\[\]"),
    "bounds that are arrays": (lambda: lax.fori_loop(np.array([0]), 3, kept, 0), r"a bound is int64\[1\]"),
    "combined to another dtype": (lambda: lax.associative_scan(lambda a, b: a / b, np.ones(3, int)), r"elems is int64\[1\].*float64\[1\]"),
    "branches of two dtypes": (
        lambda: lax.cond(True, lambda x: x, lambda x: x.astype("int32"), 3.0),
        r"lax\.cond: result is float64\[\] from <lambda> .*, but int32\[\] from <lambda> .*dtype and shape must be the same",
    ),
    "branches of two numbers": (lambda: lax.cond(True, lambda: {"a": 1}, lambda: {"a": 1.5}), r"lax\.cond: result\['a'\] is int64\[\]"),
    "branches of two shapes": (lambda: lax.switch(0, [lambda: np.ones(2), lambda: np.ones(3)]), r"lax\.switch: result is .*\[2\].*\[3\]"),
    "a number beside an array": (lambda: lax.cond(True, lambda x: x, lambda x: 0.0, np.ones(2)), r"float64\[2\] .* but float64\[\]"),
    "branches of two nests": (
        lambda: lax.cond(True, lambda: (1, 2), lambda: [1, 2]),
        r"the result of <lambda> .* is \(…, …\), but .* \[…, …\]",
    ),
    "a third branch": (lambda: lax.switch(0, [lambda: 1, lambda: np.float32(1), lambda: np.int8(1)]), r"float32\[\] .* but int8\[\]"),
    "a condition that is an array": (lambda: lax.cond(np.ones(2) > 0, lambda: 1, lambda: 2), r"lax\.cond: pred is bool\[2\]; a scalar"),
    "an index that is a float": (lambda: lax.switch(1.0, [lambda: 1]), r"lax\.switch: index is float64\[\]; give an integer scalar"),
    "an index that is a boolean": (lambda: lax.switch(True, [lambda: 1]), r"index is bool\[\]"),
    "what is no function": (lambda: lax.cond(True, 1.0, lambda: 2), r"lax\.cond: 1\.0 cannot be called"),
    "values of two dtypes": (lambda: lax.select(True, 1, 2.0), r"on_true is int64\[\], on_false float64\[\].*np\.where"),
    "values of two shapes": (lambda: lax.select(np.ones(2) > 0, np.ones(2), 0.0), r"on_true is float64\[2\], on_false float64\[\]"),
    "a selection by numbers": (lambda: lax.select(np.ones(2), *ARRAYS), r"pred is float64\[2\].*pred != 0"),
    "a selection that would broadcast": (lambda: lax.select(np.ones(3) > 0, *ARRAYS), r"pred is bool\[3\], and the values float64\[2\]"),
    "sums of booleans": (lambda: lax.cumsum(np.ones(3) > 0), r"lax\.cumsum: the operand is bool\[3\]; give numbers"),
    "exponents that are integers": (lambda: lax.cumlogsumexp(np.arange(3)), r"the operand is int64\[3\]; give real floats"),
}

VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "no rows and no length": (lambda: lax.scan(kept, 0.0), r"lax\.scan: xs holds no array.*give xs, or length=100"),
    "no rows to map": (lambda: lax.map(lambda x: x, ()), r"lax\.map: xs holds no array.*give xs$"),
    "a scalar for rows": (lambda: lax.scan(kept, 0.0, {"t": 1.0}), r"lax\.scan: xs\['t'\] is float64\[\], without axis 0"),
    "another length": (lambda: lax.scan(kept, 0.0, np.ones(30), 40), r"lax\.scan: xs has length 30 along axis 0; it must have 40"),
    "rows of two lengths": (lambda: lax.scan(kept, 0.0, (np.ones(3), np.ones(4))), r"xs\[1\] has shape \(4,\).*it must have \(3,\)"),
    "long rows of two lengths": (lambda: lax.map(lambda x: x, (np.ones(30), np.ones(40))), r"lax\.map: xs\[1\] has length 40 .* 30"),
    "a negative length": (lambda: lax.scan(kept, 0.0, None, -1), r"lax\.scan: length is -1; give an int of 0 or more"),
    "a length that is a float": (lambda: lax.scan(kept, 0.0, None, 2.0), r"length is 2\.0"),
    "max_steps that is a boolean": (lambda: lax.while_loop(lambda s: s < 1, abs, 0, max_steps=True), r"max_steps is True"),
    "a loop of nothing": (lambda: lax.while_loop(lambda s: True, lambda s: s, None), r"lax\.while_loop: init is None, without an array"),
    "batches of no rows": (lambda: lax.map(abs, np.ones(3), 0), r"lax\.map: batch_size is 0; give an int of 1 or more"),
    "no branches": (lambda: lax.switch(0, []), r"lax\.switch: branches is empty"),
    "no elements": (lambda: lax.associative_scan(np.add, ()), r"elems holds no array"),
    "elements of two lengths": (lambda: lax.associative_scan(kept, (np.ones(3), np.ones(2))), r"elems\[1\] has shape \(2,\)"),
    "elements without the axis": (
        lambda: lax.associative_scan(np.add, np.ones(3), axis=1),
        r"lax\.associative_scan: axis 1 is out of bounds",
    ),
    "sums without the axis": (lambda: lax.cumsum(np.ones(3), 1), r"lax\.cumsum: axis 1 is out of bounds"),
}


@pytest.mark.parametrize("name", TYPES)
def test_other_types_are_refused(name: str) -> None:
    call, words = TYPES[name]
    with pytest.raises(TypeError, match=re.compile(words, re.DOTALL)):
        call()


@pytest.mark.parametrize("name", VALUES)
def test_other_values_are_refused(name: str) -> None:
    call, words = VALUES[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_a_number_too_large_for_the_dtype_that_it_takes_is_refused() -> None:
    with pytest.raises(OverflowError, match="out of bounds for int32"):
        ns.jit(lambda n: lax.scan(lambda c, x: (c + x, None), n, np.ones(3, "int32")), mode="python")(2**40)


def test_python_control_flow_names_the_line() -> None:
    @ns.as_written
    def body(s: Any) -> Any:
        return s + 1 if s > 0 else s

    with pytest.raises(ns.TracerBoolError, match=r"test_messages\.py.*in the step body of scan 'body'"):
        lax.while_loop(lambda s: s < 3, body, 0)
