"""Calls of kinds seen before take a short way: it gives what the long one gives, and what differs is still found out."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


def test_sequences_of_one_row_and_of_many() -> None:
    total = ns.scan(lambda x, s: s + x)
    for rows in (1, 1, 5, 1, 5, 0):
        x = np.arange(2.0 * rows).reshape(rows, 2)
        np.testing.assert_array_equal(total(x, np.ones(2)), 1 + x.cumsum(0))


def test_a_dimension_of_one_and_others() -> None:
    add = ns.jit(lambda a, b: a + b)
    for rows in (30, 1, 40, 1, 30):
        a, b = np.ones((rows, 20)), np.arange(20.0)
        np.testing.assert_array_equal(add(a, b), a + b)
        np.testing.assert_array_equal(add(a, b), a + b)


def test_another_dtype_layout_or_rank_of_the_same_shape() -> None:
    double = ns.scan(lambda s: 2 * s)
    start = np.arange(6.0).reshape(2, 3)
    for s in (
        start,
        start,
        start.astype("float32"),
        start.T,
        np.asfortranarray(start),
        start[:, ::2],
        start.astype(">f8"),
        start[0],
        start,
    ):
        for _ in range(2):
            found = double(outputs_info=s, n_steps=2)
            assert found.dtype == s.dtype.newbyteorder("=")
            np.testing.assert_array_equal(found, np.stack([2 * s, 4 * s]))


def test_numbers_of_several_kinds() -> None:
    half = ns.jit(lambda x: x * 0.5)
    for x in (3.0, 3.0, 3, 3, np.float32(3), True, np.uint64(2**63), 3.0):
        assert half(x) == x * 0.5
        assert half(x) == x * 0.5
        with pytest.raises(OverflowError, match="out of bounds for int64"):
            half(2**63)


def test_a_captured_array_that_changes() -> None:
    w = np.ones(2)
    step = ns.scan(lambda s: s * w)
    for factor in (1.0, 1.0, 3.0, 3.0):
        w[:] = factor
        np.testing.assert_array_equal(step(outputs_info=np.ones(2), n_steps=2)[-1], [factor**2] * 2)


def test_a_shared_variable_of_another_shape() -> None:
    w = ns.shared(np.ones(3))
    x = nt.dvector("x")
    add = ns.function([x], (w + x.sum()) * 1.0)
    for size in (3, 3, 7, 1, 3):
        w.set_value(np.arange(float(size)))
        np.testing.assert_array_equal(add(np.ones(2)), np.arange(float(size)) + 2)


def test_a_function_still_looks_at_its_arguments() -> None:
    x = nt.dvector("x")
    f = ns.function([x], x * 2)
    for _ in range(2):
        np.testing.assert_array_equal(f(np.ones(3)), [2, 2, 2])
    np.testing.assert_array_equal(f([1, 2]), [2, 4])
    np.testing.assert_array_equal(f(x=np.ones(1)), [2])
    np.testing.assert_array_equal(f(np.ones(6)[::2]), [2, 2, 2])
    with pytest.raises(TypeError):
        f(np.ones((2, 2)))


def test_options_of_a_call_are_kept_apart() -> None:
    total = ns.scan(lambda x, s: s + x)
    x = np.arange(4.0)
    for _ in range(2):
        np.testing.assert_array_equal(total(x, 0.0), [0, 1, 3, 6])
        assert total(x, 0.0, keep_last=1) == 6
        np.testing.assert_array_equal(total(x, 0.0, go_backwards=True), [3, 5, 6, 6])


def test_results_are_new_arrays_at_every_call() -> None:
    total = ns.scan(lambda x, s: s + x)
    first, second, third = (total(np.ones(2), 0.0) for _ in range(3))
    second[:] = 0
    np.testing.assert_array_equal(first, third)


@pytest.mark.parametrize("mode", [None, "python"])
def test_arrays_to_write_into_lie_in_one_piece(mode: str | None) -> None:
    double = ns.scan(lambda s: 2 * s, mode=mode)
    for out in (np.zeros((3, 4))[:, ::2], np.zeros((2, 3)).T, np.zeros((6, 2))[::2]):
        with pytest.raises(ValueError, match="out is not C-contiguous"):
            double(outputs_info=np.ones(2), n_steps=3, out=out)
