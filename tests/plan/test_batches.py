"""Products of a batch: BLAS does each item where items are large, whatever way their axes lie; loops do small ones."""

import numpy as np
import pytest
from wide import wide

import numbascan as ns

LENGTHS = {"b": 3, "c": 2, "i": 9, "j": 10, "k": 11}
BATCHES = [
    *("bji,bkj->bik", "bij,bjk->bki", "bcij,cjk->bcik", "bj,bjk->bk", "bij,bjk->bik", "ij,bjk->bik", "bij,kj->bik", "bcij,bcjk->bcik"),
    *("bij,cjk->bcik", "cbij,bcjk->bcik", "ibj,bjk->bik", "bij,bjk->ibk"),
]


@pytest.mark.parametrize("subscripts", wide(BATCHES, first=4))
def test_products_of_a_batch_are_numpys(subscripts):
    rng = np.random.default_rng(3)
    operands, result = subscripts.split("->")
    a, b = (rng.normal(size=[LENGTHS[axis] for axis in axes]) for axes in operands.split(","))

    def products(a, b):
        """Of arrays, of views of them, and of a state that is read while it is computed anew."""
        start = np.zeros([LENGTHS[axis] for axis in result])
        state = ns.scan(lambda s, a, b: s * 0.5 + np.einsum(subscripts, a, b), None, start, [a * 2, b], 2, return_updates=False)
        return np.einsum(subscripts, a, b), np.einsum(subscripts, a[::-1], b[::-1]), state[-1]

    one = np.einsum(subscripts, a, b)
    for mine, expected in zip(ns.jit(products)(a, b), (one, np.einsum(subscripts, a[::-1], b[::-1]), 3 * one), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-12)


def test_large_items_are_calls_and_small_ones_loops():
    def step(a, x):
        return ns.scan(lambda x, a: a @ x, None, x, a, 3, return_updates=False)[-1]

    for n, is_call in ((3, False), (40, True)):
        a = np.random.default_rng(n).normal(size=(5, n, n)) / n
        compiled = ns.jit(step)
        np.testing.assert_allclose(compiled(a, a), a @ (a @ (a @ a)), rtol=1e-10, atol=1e-13)
        assert ("np.dot(" in compiled.lower(a, a).source()) is is_call


def test_a_routine_reads_a_row_where_it_lies_also_one_that_the_step_changes():
    def step(u, s, table):
        place = np.searchsorted(table[s], u)
        return place, ns.tensor.set_subtensor(table[s], table[s] * 0.9 + 0.1)

    table, us = np.sort(np.random.default_rng(1).random((20, 19)), axis=1), np.random.default_rng(2).random(60)
    runs = [ns.scan(step, us, [0, table], return_updates=False, mode=mode) for mode in (None, "python")]
    for compiled, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(compiled, expected)

    def chain(us, table):
        return ns.scan(lambda u, s, table: np.searchsorted(table[s], u), us, 0, table, return_updates=False)[-1]

    assert "search_into(searchsorted, table_row" in ns.jit(chain).lower(us, table).source()
