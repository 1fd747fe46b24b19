"""Loops whose elements come from elsewhere at the edges are cut there: the same numbers, and no question is left inside."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

rng = np.random.default_rng(5)
X = rng.normal(size=300)
FAR = [0, 1, -1, 7, -70, 2**62, 2**63 - 1, -(2**63)]


def neighbours(x, shift):
    return np.roll(x, 1) + 2 * np.roll(x, -1) + np.cumsum(np.roll(x, -2))


def far_neighbours(x, shift):
    return np.roll(x, 37) - np.roll(x, -70) + np.roll(np.roll(x, 3) * x, -1) + np.roll(x, -1).sum()


def shifts_of_the_run(x, shift):
    return np.roll(x, shift) - 2 * np.roll(x, -1) * np.roll(x, shift - 3)


def questions(x, shift):
    i = nt.arange(x.shape[0])
    return np.where(i < shift, x, -x) + np.where(shift + 1 > i, 1.0, 2.0) * np.where(3 - i >= shift, 5.0, x[::-1])


def padded(x, shift):
    ends = np.pad(x, 2)[:-4] * np.pad(x, 1)[2:] + np.pad(x, (2, 1), mode="edge")[:-3] + np.pad(x, (0, 3), mode="reflect")[3:]
    return ends + np.pad(x, (90, 1), mode="wrap")[91:] * np.pad(x, (3, 3), mode="symmetric")[6:]


@pytest.mark.parametrize("program", [neighbours, far_neighbours, shifts_of_the_run, questions, padded])
@pytest.mark.parametrize("lengths", [(0,), (2,), (65, 66, 300, 17)])
def test_every_length_and_shift(program, lengths):
    compiled, plain = ns.jit(program), ns.jit(program, mode="python")
    for n in lengths[program is padded and lengths == (0,) :]:
        for shift in FAR if program in (shifts_of_the_run, questions) else FAR[:1]:
            expected = plain(X[:n], np.int64(shift))
            np.testing.assert_allclose(compiled(X[:n], np.int64(shift)), expected, rtol=1e-13, atol=1e-13, err_msg=f"{n}, {shift}")


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 40), (40, 17)])
def test_several_axes_and_their_gradients(shape):
    m = rng.normal(size=shape)

    def cost(m):
        around = np.roll(m, 1, 0) * np.roll(m, (3, -5), (0, 1)) + m[::-1, ::-1]
        return np.sum((around + np.pad(m, ((2, 1), (1, 4)), mode="wrap")[2:-1, :-5] + framed(m)) ** 2)

    def framed(m):
        return np.pad(m, 1, mode="edge")[2:, 1:-1] * np.pad(m, ((0, 1), (2, 1)), constant_values=0.3)[1:, 1:-2]

    value, slope = ns.value_and_grad(cost)(m)
    np.testing.assert_allclose(value, cost(m), rtol=1e-12)
    way = rng.normal(size=shape)
    np.testing.assert_allclose(np.sum(slope * way), (cost(m + 1e-6 * way) - cost(m - 1e-6 * way)) / 2e-6, rtol=1e-5, atol=1e-6)


def test_pads_of_nothing_are_refused():
    for mode in (None, "python"):
        with pytest.raises(ValueError, match="has none to repeat"):
            ns.jit(lambda x: np.pad(x, 1, mode="wrap"), mode=mode)(X[:0])


def text_of(step):
    return ns.jit(lambda x: ns.scan(step, outputs_info=x, n_steps=9, return_updates=False, keep_last=1)).lower(X).source()


def test_no_question_is_left_between_the_edges():
    def wave(x):
        around = np.pad(x, 1, mode="wrap")
        return x + 0.1 * (np.roll(x, 1) + around[2:])

    inside = text_of(wave).split("in range(1, x.shape[0] - 1):")[1].split(" if ")[0]
    assert inside.count("x_rows[x_now, i] = ") == 1
    assert "%" not in inside


def test_a_length_is_read_where_it_is_asked_for():
    def cost(a):
        return ns.scan(lambda p, a: p * a, outputs_info=np.ones(300), non_sequences=a, n_steps=9, return_updates=False)[-1].sum()

    assert "dim = " not in ns.grad(cost).lower(X).source()


def test_what_goes_backwards_is_unsigned():
    assert "np.uint64(x.shape[0] - i - 1)" in text_of(lambda x: 0.5 * x + 0.4 * x[::-1])


def test_edges_have_the_bits_of_what_is_between_them():
    f = ns.jit(lambda x: ns.scan(lambda x: np.tanh(np.roll(x, 1) + 0.3 * np.roll(x, -1)), outputs_info=x, n_steps=9, return_updates=False))
    for n in (12, 43):
        found = f(np.full(n, 0.3141))
        np.testing.assert_array_equal(found, np.broadcast_to(found[:, :1], found.shape))


def test_rows_of_one_array_are_written_in_one_loop():
    def step(z):
        return np.stack([z[0] + 0.1 * z[1], z[1] - 0.1 * z[0]])

    def halves(x):
        a, b = x[::2], x[1::2]
        return np.concatenate([0.5 * (a + b), 0.5 * (a - b)])

    for one, start in ((step, X.reshape(2, -1)), (halves, X)):
        run = ns.jit(lambda start, one=one: ns.scan(one, outputs_info=start, n_steps=3, return_updates=False, keep_last=1))
        expected = one(one(one(start)))
        np.testing.assert_allclose(run(start), expected, rtol=1e-13)
        in_time = run.source().split("for t in range(3):")[1].split("result = ")[0]
        assert in_time.count("for ") == 1
