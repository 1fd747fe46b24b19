"""Loops that are differentiated wrongly elsewhere: the right value by hand, by differences of a plain loop, and ours.

docs/guide/wrong_elsewhere.md tells of each.
"""

import math
from itertools import product

import numpy as np
import pytest
from grad.by_hand import check, derivatives
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

in_both_modes = pytest.mark.parametrize("mode", ["python", None])


def last(step, **arguments):
    return ns.scan(step, return_updates=False, **arguments)[-1]


# values that are read, overwritten, read again -----------------------------------------------------------------------


@in_both_modes
def test_a_product_over_a_run_time_length(mode):
    def program(xs):
        return ns.reduce(lambda x, product: product * x, xs, 1.0, return_updates=False)

    check(program, math.prod, [np.array([2.0, 2.0, 2.0])], [[4, 4, 4]], mode)  # the product of the others
    check(program, math.prod, [np.array([3.0, 1.0, 2.0, 5.0])], [[10, 30, 15, 6]], mode)


@in_both_modes
def test_a_variable_used_before_and_after_a_loop(mode):
    def program(x, n):
        a = x * x
        return last(lambda v, a: v * a, outputs_info=x, non_sequences=a, n_steps=n) * x + a

    def plain(x, n):
        a, v = x * x, x
        for _ in range(n):
            v = v * a
        return v * x + a

    check(program, plain, [1.5], [8 * 1.5**7 + 2 * 1.5], mode, [3])  # x**8 + x**2


@in_both_modes
def test_a_state_that_is_replaced_by_its_own_function(mode):
    def program(v, n):
        return last(lambda v: v**2 / 2 + 0.1, outputs_info=v, n_steps=n)

    def plain(v, n):
        for _ in range(n):
            v = v**2 / 2 + 0.1
        return v

    check(program, plain, [1.2], [1.2 * 0.82 * 0.4362], mode, [3])  # a step's derivative is v: 1.2, 0.82, 0.4362


@in_both_modes
def test_an_average_whose_weight_is_also_its_start(mode):
    def program(a, n):
        return last(lambda i, m, a: a * m + (1 - a) * i, sequences=nt.arange(n), outputs_info=a, non_sequences=a)

    def plain(a, n):
        m = a
        for i in range(n):
            m = a * m + (1 - a) * i
        return m

    check(program, plain, [0.5], [5 * 0.5**4 - 3 * 0.5**2 - 2 * 0.5 - 1], mode, [4])  # a**5 - a**3 - a**2 - a + 3


@in_both_modes
def test_nested_loops_of_run_time_length(mode):
    def program(x, n):
        def outer(i, total, x):
            powers = ns.scan(lambda p, x: p * x, outputs_info=1.0, non_sequences=x, n_steps=i, return_updates=False)
            return total + np.concatenate([np.ones(1), powers])[-1]

        return last(outer, sequences=nt.arange(n), outputs_info=0.0, non_sequences=x)

    def plain(x, n):
        total = 0.0
        for i in range(n):
            p = 1.0
            for _ in range(i):
                p = p * x
            total = total + p
        return total

    check(program, plain, [2.0], [1 + 2 * 2 + 3 * 4], mode, [4])  # 1 + x + x**2 + x**3
    check(program, plain, [2.0], [0], mode, [1])


@in_both_modes
def test_read_modify_write_on_a_component(mode):
    def program(v, n):
        def step(v):
            v = nt.set_subtensor(v[0], v[0] * v[0])
            v = nt.inc_subtensor(v[0], v[1])
            return nt.set_subtensor(v[0], v[0] * v[1])

        return last(step, outputs_info=v, n_steps=n)[0]

    def plain(v, n):
        v = v.copy()
        for _ in range(n):
            v[0] = v[0] * v[0]
            v[0] += v[1]
            v[0] = v[0] * v[1]
        return v[0]

    # a step makes (a**2 + b) * b of a, whose derivatives are 2ab and a**2 + 2b; a is 1, then 6
    check(program, plain, [np.array([1.0, 2.0])], [[(2 * 6 * 2) * (2 * 1 * 2), (2 * 6 * 2) * (1 + 2 * 2) + (6**2 + 2 * 2)]], mode, [2])


@in_both_modes
def test_a_square_of_the_accumulator_in_a_called_function(mode):
    def square(y):
        return y * y

    def program(s, n):
        return last(lambda s: s + square(s), outputs_info=s, n_steps=n)

    def plain(s, n):
        for _ in range(n):
            s = s + square(s)
        return s

    check(program, plain, [1.0], [(1 + 2 * 1) * (1 + 2 * 2)], mode, [2])  # a step's derivative is 1 + 2s; s is 1, then 2


@in_both_modes
def test_a_state_that_is_overwritten_after_it_is_read(mode):
    def program(v, n):
        def step(v):
            old = v[0]
            v = nt.set_subtensor(v[0], v[1] * v[1])
            return nt.set_subtensor(v[1], old * v[0])

        return last(step, outputs_info=v, n_steps=n).sum()

    def plain(v, n):
        v = v.copy()
        for _ in range(n):
            old = v[0]
            v[0] = v[1] * v[1]
            v[1] = old * v[0]
        return v.sum()

    a, b = 3.0, 2.0  # (a, b), (b**2, a * b**2), (a**2 * b**4, a * b**6 * a)
    check(program, plain, [np.array([a, b])], [[2 * a * b**4 + 2 * a * b**6, a**2 * 4 * b**3 + a**2 * 6 * b**5]], mode, [2])


@in_both_modes
def test_two_states_that_exchange_taps(mode):
    def program(p, q, n):
        states = [{"initial": p, "taps": [-2, -1]}, {"initial": q, "taps": [-2, -1]}]
        ps, qs = ns.scan(lambda p2, p1, q2, q1: (p2 * q1, q2 + p1), outputs_info=states, n_steps=n, return_updates=False)
        return ps[-1] + qs[-1]

    def plain(p, q, n):
        p, q = list(p), list(q)
        for _ in range(n):
            p, q = [*p, p[-2] * q[-1]], [*q, q[-2] + p[-1]]
        return p[-1] + q[-1]

    (a, b), (c, d) = p, q = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    # p: a, b, ad, b(c + b), ad(d + ad)
    # q: c, d, c + b, d + ad, c + b + b(c + b)
    by_hand = [[d**2 + 2 * a * d**2, 1 + c + 2 * b], [1 + b, 2 * a * d + 2 * a**2 * d]]
    check(program, plain, [p, q], by_hand, mode, [3])


# loops that end by themselves ---------------------------------------------------------------------------------------


def squared_until_ten(v, n):
    return last(lambda v: (v * v, ns.until(v * v >= 10)), outputs_info=v, n_steps=n)


def plainly_squared_until_ten(v, n):
    for _ in range(n):
        v = v * v
        if v >= 10:
            break
    return v


@in_both_modes
def test_while_below_ten_square(mode):
    check(squared_until_ten, plainly_squared_until_ten, [1.5], [8 * 1.5**7], mode, [100])  # three squares: 2.25, 5.0625, 25.6...


@in_both_modes
@pytest.mark.parametrize("bound, by_hand", [(1, 2 * 1.5), (2, 4 * 1.5**3), (3, 8 * 1.5**7), (4, 8 * 1.5**7)])
def test_a_loop_that_its_bound_ends_has_the_derivative_of_the_steps_that_ran(mode, bound, by_hand):
    check(squared_until_ten, plainly_squared_until_ten, [1.5], [by_hand], mode, [bound])


@in_both_modes
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_loop_of_no_steps(mode, n):
    def program(y, x, n):
        rows = ns.scan(lambda y, x: y * x, outputs_info=y, non_sequences=x, n_steps=n, return_updates=False)
        return np.concatenate([np.stack([y]), rows])[-1]

    check(program, lambda y, x, n: y * x**n, [3.0, 2.0], [2.0**n, 3.0 * n * 2.0 ** (n - 1)], mode, [n])


@in_both_modes
def test_a_sum_over_no_rows(mode):
    def program(xs, w):
        return ns.map(lambda x, w: x * w, xs, w, return_updates=False).sum()

    value, (d_xs, d_w), along = derivatives(program, [np.ones(0), 2.0], mode=mode)
    assert (value, d_xs.shape, d_w, along) == (0, (0,), 0, 0)


# until x taps x {sequence, state, output} ---------------------------------------------------------------------------
#
# state    s[t] = w * (s[t-1] + s[t-3]) + x[t-2] * x[t] * x[t+1]
# output   y[t] = w * s[t]

SEQ_TAPS, STATE_TAPS = [(0,), (-2, 0, 1)], [(-1,), (-3, -1)]
XS, START, W = np.array([0.5, 0.8, -0.7, 1.1, 0.9, 1.3, 0.6, 1.2]), np.array([0.3, -0.4, 0.7]), 0.6
COSTS = {  # with its derivatives with respect to s and y
    "states": (lambda s, y: (s**3).sum(), lambda s, y: (3 * s**2, 0 * y)),
    "last state": (lambda s, y: s[-1] ** 2, lambda s, y: (2 * s * (np.arange(len(s)) == len(s) - 1), 0 * y)),
    "outputs": (lambda s, y: (y**2).sum(), lambda s, y: (0 * s, 2 * y)),
    "states and outputs": (
        lambda s, y: (s**3).sum() + s[-1] * y.sum(),
        lambda s, y: (3 * s**2 + y.sum() * (np.arange(len(s)) == len(s) - 1), s[-1] + 0 * y),
    ),
}


def asked_value(asked, x, s, y):
    return {"sequence": x, "state": s, "output": y}[asked]


def ending(asked, seq_taps, state_taps, cost):
    """The loop in our words."""

    def program(xs, start, w, limit):
        def step(*values):
            x, s, (w, limit) = values[: len(seq_taps)], values[len(seq_taps) : -2], values[-2:]
            new = w * sum(s) + math.prod(x)
            return [new, w * new], ns.until(asked_value(asked, x[seq_taps.index(0)], new, w * new) > limit)

        initial = start[-1] if state_taps == (-1,) else {"initial": start, "taps": list(state_taps)}
        return COSTS[cost][0](*ns.scan(step, {"input": xs, "taps": list(seq_taps)}, [initial, None], [w, limit], return_updates=False))

    return program


def plainly_ending(asked, seq_taps, state_taps, xs, start, w, limit):
    """States, the initial ones first; outputs; what was asked."""
    s, y, values = list(start[min(state_taps) :]), [], []
    for t in range(-min(seq_taps), len(xs) - max(seq_taps)):
        s.append(w * sum(s[tap] for tap in state_taps) + math.prod(xs[t + tap] for tap in seq_taps))
        y.append(w * s[-1])
        values.append(asked_value(asked, xs[t], s[-1], y[-1]))
        if values[-1] > limit:
            break
    return np.array(s), np.array(y), np.array(values)


def undone(asked, seq_taps, state_taps, cost, *values):
    """The gradient by hand: a[t], the cotangent of s[t], is complete once all steps behind t are undone."""
    (s, y, _), (xs, start, w, _) = plainly_ending(asked, seq_taps, state_taps, *values), values
    depth, before = -min(state_taps), -min(seq_taps)
    d_s, d_y = COSTS[cost][1](s[depth:], y)
    a, d_xs, d_start, d_w = np.concatenate([np.zeros(depth), d_s + w * d_y]), np.zeros(len(xs)), np.zeros(len(start)), 0.0
    for t in reversed(range(len(y))):
        for tap in state_taps:
            a[depth + t + tap] += w * a[depth + t]
        for tap in seq_taps:
            d_xs[before + t + tap] += a[depth + t] * math.prod(xs[before + t + other] for other in seq_taps if other != tap)
        d_w += a[depth + t] * sum(s[depth + t + tap] for tap in state_taps) + d_y[t] * s[depth + t]
    d_start[-depth:] = a[:depth]
    return d_xs, d_start, d_w


@pytest.mark.parametrize(
    "mode, cost", wide([(None, "states and outputs"), ("python", "states and outputs"), *product(("python",), COSTS)], first=2)
)
@pytest.mark.parametrize("state_taps", STATE_TAPS)
@pytest.mark.parametrize("seq_taps", SEQ_TAPS)
@pytest.mark.parametrize("asked", ["sequence", "state", "output"])
def test_until_with_taps(mode, asked, seq_taps, state_taps, cost):
    def plain(*values):
        s, y, _ = plainly_ending(asked, seq_taps, state_taps, *values)
        return COSTS[cost][0](s[-min(state_taps) :], y)

    program, ran = ending(asked, seq_taps, state_taps, cost), []
    seen = np.sort(plainly_ending(asked, seq_taps, state_taps, XS, START, W, np.inf)[2])
    for limit in (-np.inf, seen[len(seen) // 2 :][:2].mean(), np.inf):
        ran.append(len(plainly_ending(asked, seq_taps, state_taps, XS, START, W, limit)[1]))
        check(program, plain, [XS, START, W], undone(asked, seq_taps, state_taps, cost, XS, START, W, limit), mode, [limit])
    first, early, never = ran
    assert first == 1 < early < never
