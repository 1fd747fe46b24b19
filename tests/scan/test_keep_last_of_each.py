"""keep_last with an entry for each output: the path of one and the end of another."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

XS = np.arange(24.0).reshape(12, 2) / 9
START = np.arange(40.0) / 7


def step(x: Any, u: Any, s: Any) -> Any:
    new = u[::-1] * 0.5 + x[0]
    return {"u": new}, s + x, new.sum()


def _infos(last: Any) -> list[Any]:
    return [{"u": START}, np.zeros(2), last]


def _run(**options: Any) -> Any:
    return ns.scan(lambda x, pair, s: step(x, pair["u"], s), XS, _infos(None), return_updates=False, **options)


@pytest.mark.parametrize("mode", [None, "python"])
def test_each_output_keeps_the_rows_that_its_entry_says(mode: str | None) -> None:
    u, s, total = _run(mode=mode)
    last, path, tail = _run(mode=mode, keep_last=[1, None, 3])
    np.testing.assert_array_equal(u["u"][-1], last["u"])
    np.testing.assert_array_equal(s, path)
    np.testing.assert_array_equal(total[-3:], tail)
    (alone,) = ns.scan(lambda s, x: s + x, None, 0.0, 2.0, 4, keep_last=[2], return_list=True, return_updates=False, mode=mode)
    np.testing.assert_array_equal([6.0, 8.0], alone)


def test_a_path_that_nobody_asked_for_is_not_stored() -> None:
    @ns.scan
    def walk(x: Any, u: Any, s: Any) -> Any:
        return u[::-1] * 0.5 + x[0], s + x

    u, s = walk(XS, [START, np.zeros(2)], keep_last=(1, None))
    assert walk.memory().per_step == 2 * 8
    whole = walk(XS, [START, np.zeros(2)])
    np.testing.assert_array_equal(whole[0][-1], u)
    np.testing.assert_array_equal(whole[1], s)
    out = [np.empty(40), np.empty((12, 2))]
    walk(XS, [START, np.zeros(2)], keep_last=[1, None], out=out)
    np.testing.assert_array_equal(u, out[0])
    by_decorator = pickle.loads(pickle.dumps(ns.scan(_pair, keep_last=[None, 2])))
    first, second = by_decorator(XS, [np.zeros(2), np.ones(2)])
    assert (first.shape, second.shape) == ((12, 2), (2, 2))
    assert [rows.shape for rows in by_decorator(XS, [np.zeros(2), np.ones(2)], keep_last=1)] == [(2,), (2,)]


def _pair(x: Any, a: Any, b: Any) -> Any:
    return a + x, b * x


def test_in_a_graph_and_in_lanes_it_means_the_same() -> None:
    xs = nt.dmatrix("xs")
    a, b = ns.scan(_pair, xs, [np.zeros(2), np.ones(2)], keep_last=[None, 1], return_updates=False)
    f = ns.function([xs], [a, b, ns.grad(a.sum() + b.sum(), xs)])
    seen = f(XS)
    np.testing.assert_allclose(seen[0], np.cumsum(XS, 0))
    np.testing.assert_allclose(seen[1], np.prod(XS, 0))
    lanes = ns.vmap(lambda xs: ns.scan(_pair, xs, [np.zeros(2), np.ones(2)], keep_last=[1, None], return_updates=False))
    ends, products = lanes(np.stack([XS, XS + 1]))
    np.testing.assert_allclose(ends[1], np.sum(XS + 1, 0))
    np.testing.assert_allclose(products[0], np.cumprod(XS, 0))
    one = ns.scan(_pair, xs, [np.zeros(2), np.ones(2)], n_steps=1, keep_last=[None, 1], return_updates=False)
    assert [value.ndim for value in one] == [2, 1]


@pytest.mark.parametrize(
    "keep_last, message",
    [
        ([None, 1], "keep_last has 2 entries, but the number of outputs is 3; give one entry for each output"),
        ([], "keep_last has 0 entries"),
        ([1, 0, None], r"keep_last is \[1, 0, None\]; give an int of 1 or more, or a list with one entry for each output"),
        ([1, [2], None], "give an int of 1 or more, or a list"),
        ({"u": 1}, "give an int of 1 or more, or a list"),
    ],
)
def test_what_is_no_such_list_is_refused(keep_last: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _run(keep_last=keep_last)
