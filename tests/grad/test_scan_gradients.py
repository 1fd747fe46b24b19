"""Gradients of scans, argument by argument, against closed forms."""

import numpy as np
import pytest
from grad.by_hand import check, derivatives

import numbascan as ns
import numbascan.tensor as nt

pytestmark = pytest.mark.parametrize("mode", ["python", None])

XS = np.array([0.5, -1.2, 0.8, 2.0, -0.3])


def rows(step, *args, **kwargs):
    return ns.scan(step, *args, return_updates=False, **kwargs)


def close(found, by_hand):
    for one, expected in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-13)


def decayed(xs, start, w):
    """start, then w times the one before plus x: the weights of a first-order filter are powers of w."""
    values = [start]
    for x in xs:
        values.append(w * values[-1] + x)
    return np.array(values)


# truncate_gradient --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 4, 5, 9])
def test_truncate_gradient_undoes_the_last_k_steps_alone(mode, k):
    def program(xs, start, w):
        return rows(lambda x, v, w: w * v + x, xs, start, w, truncate_gradient=k)[-1]

    values = XS, 0.7, 0.9
    value, found, _ = derivatives(program, values, mode=mode)
    path, age = decayed(*values), np.arange(len(XS))[::-1]
    np.testing.assert_allclose(value, path[-1])
    undone = age < k
    powers = np.where(undone, 0.9**age, 0)
    close(found, [powers, 0.9 ** len(XS) if k >= len(XS) else 0, np.sum(powers * path[:-1])])
    np.testing.assert_array_equal(found[0][~undone], 0)  # rows before: exactly zero


def test_truncate_gradient_counts_rows_of_all_results(mode):
    def program(xs, w):
        states, squares = rows(lambda x, v, w: (w * v + x, x * x), xs, [0.0, None], w, truncate_gradient=2)
        return states.sum() + squares.sum()

    _, (d_xs, d_w), _ = derivatives(program, [XS, 0.9], mode=mode)
    path = decayed(XS, 0.0, 0.9)
    close([d_xs, d_w], [[0, 0, 0, 1.9 + 2 * XS[3], 1 + 2 * XS[4]], 1.9 * path[3] + path[4]])


@pytest.mark.parametrize("k, by_hand", [(1, [0, 0, 0]), (2, [0, 0, 1]), (3, [0, 1, 1]), (4, [2, 1, 3]), (-1, [2, 1, 3])])
def test_initial_rows_that_the_last_k_steps_read_get_their_share(mode, k, by_hand):
    def program(start, n):
        return rows(lambda three, one: three + one, None, {"initial": start, "taps": [-3, -1]}, n_steps=n, truncate_gradient=k)[-1]

    # a, b, c, then  v0 = a + c,  v1 = b + v0,  v2 = c + v1,  v3 = v0 + v2
    _, (found,), _ = derivatives(program, [np.array([0.3, 0.4, 0.5])], [4], mode)
    close([found], [by_hand])


def test_truncate_gradient_with_until_counts_from_the_step_that_ended_the_loop(mode):
    def program(xs, start):
        return rows(lambda x, v: (v * x, ns.until(v * x > 20)), xs, start, truncate_gradient=2)[-1]

    xs = np.array([2.0, 3.0, 4.0, 5.0, 6.0])  # ends at 24 = 1 * 2 * 3 * 4
    _, found, _ = derivatives(program, [xs, 1.0], mode=mode)
    close(found, [[0, 8, 6, 0, 0], 0])


def test_truncate_gradient_with_taps_of_the_sequence(mode):
    def program(xs):
        return rows(lambda a, b, v: v + a * b, {"input": xs, "taps": [0, 1]}, 0.0, truncate_gradient=2)[-1]

    _, _, c, d, e = XS
    _, found, _ = derivatives(program, [XS], mode=mode)  # a*b + b*c + [c*d + d*e]
    close(found, [[0, 0, d, c + e, d]])


# the direction and the number of steps ------------------------------------------------------------------------------


def test_go_backwards(mode):
    def program(coefficients, z):
        return rows(lambda c, v, z: v * z + c, coefficients, 0.0, z, go_backwards=True)[-1]

    z = 1.3  # Horner's rule: the sum of c[i] * z**i
    powers = z ** np.arange(5)
    check(program, lambda c, z: sum(c * z ** np.arange(5)), [XS, z], [powers, np.sum(XS[1:] * np.arange(1, 5) * powers[:-1])], mode)


def test_go_backwards_with_taps(mode):
    def program(xs):
        return (rows(lambda a, b: a * b**2, {"input": xs, "taps": [0, 1]}, None, go_backwards=True)[::2]).sum()

    def plain(xs):  # the reading starts at the end: x[3] x[4]**2, x[2] x[3]**2, ...
        return xs[3] * xs[4] ** 2 + xs[1] * xs[2] ** 2

    _, b, c, d, e = XS
    check(program, plain, [XS], [[0, c**2, 2 * b * c, e**2, 2 * d * e]], mode)


@pytest.mark.parametrize("is_literal", [True, False])
@pytest.mark.parametrize("n", [0, 1])
def test_no_step_and_one_step(mode, n, is_literal):
    def program(xs, start, w, n):
        steps = int(n) if is_literal else n
        states, products = rows(lambda x, v, w: (w * v + x, w * x), xs, [start, None], w, n_steps=steps)
        return (states**2).sum() + products.sum()

    def traced(*values):
        return program(*values, n) if is_literal else program(*values)

    def plain(xs, start, w, *_):
        return (w * start + xs[0]) ** 2 + w * xs[0] if n else 0.0

    v = 0.9 * 0.7 + XS[0]
    nothing = [np.zeros(5), 0, 0]
    by_hand = [[2 * v + 0.9, 0, 0, 0, 0], 2 * v * 0.9, 2 * v * 0.7 + XS[0]] if n else nothing
    check(traced, plain, [XS, 0.7, 0.9], by_hand, mode, [] if is_literal else [n])


def test_rows_beyond_n_steps_get_zero(mode):
    def program(xs, w, n):
        return rows(lambda before, x, w: before * x * w, {"input": xs, "taps": [-1, 0]}, None, w, n_steps=n).sum()

    a, b, c, *_ = XS
    check(
        program,
        lambda xs, w, n: sum(xs[t] * xs[t + 1] * w for t in range(n)),
        [XS, 0.9],
        [[0.9 * b, 0.9 * (a + c), 0.9 * b, 0, 0], a * b + b * c],
        mode,
        [2],
    )


# sequences ----------------------------------------------------------------------------------------------------------


def test_taps_that_overlap_add_up(mode):
    def program(xs):
        return rows(lambda a, b, c: a * b * c, {"input": xs, "taps": [-2, 0, 1]}, None).sum()

    a, b, c, d, e = XS  # a c d + b d e
    check(program, lambda x: x[0] * x[2] * x[3] + x[1] * x[3] * x[4], [XS], [[c * d, d * e, a * d, a * c + b * e, b * d]], mode)


def test_several_sequences_of_different_lengths(mode):
    def program(xs, ys):
        return rows(lambda x, y, v: v + x * y, [xs, ys], 0.0)[-1]

    ys = np.array([1.0, 2.0, 3.0])
    check(program, lambda xs, ys: sum(xs[:3] * ys), [XS, ys], [[1, 2, 3, 0, 0], XS[:3]], mode)


def test_matrix_rows_and_a_matrix_product(mode):
    def program(xs, h, w):
        return rows(lambda x, h, w: h @ w + x, xs, h, w)[-1].sum()

    xs, h, w = np.array([[0.5, 1.0], [-1.0, 2.0], [0.2, 0.4]]), np.array([1.0, -0.5]), np.array([[0.3, 0.6], [-0.2, 0.9]])

    def plain(xs, h, w):
        for x in xs:
            h = h @ w + x
        return h.sum()

    ones, path = np.ones(2), [h, h @ w + xs[0], (h @ w + xs[0]) @ w + xs[1]]
    cotangents = [w @ w @ ones, w @ ones, ones]  # of the states after steps 0, 1, 2
    d_w = sum(np.outer(before, cotangent) for before, cotangent in zip(path, cotangents, strict=True))
    check(program, plain, [xs, h, w], [cotangents, w @ w @ w @ ones, d_w], mode)


# shared variables ---------------------------------------------------------------------------------------------------


def test_the_initial_value_of_a_shared_variable_under_updates(mode):
    a, xs = ns.shared(1.5, name="a"), nt.dvector("xs")
    products, updates = ns.scan(lambda x: (a * a * x, {a: a * x}), sequences=xs)
    f = ns.function([xs], ns.grad(updates[a], [a, xs]), mode=mode)
    g = ns.function([xs], ns.grad(products.sum(), [a, xs]), mode=mode)
    x, y, z = values = np.array([2.0, 3.0, 0.5])
    close(f(values), [x * y * z, [1.5 * y * z, 1.5 * x * z, 1.5 * x * y]])
    # a**2 x + (a x)**2 y + (a x y)**2 z
    close(
        g(values),
        [3 * (x + x**2 * y + (x * y) ** 2 * z), 2.25 * np.array([1 + 2 * x * y + 2 * x * y**2 * z, x**2 + 2 * x**2 * y * z, (x * y) ** 2])],
    )
    assert a.get_value() == 1.5


def test_a_shared_variable_that_ends_the_loop(mode):
    a, x = ns.shared(1.5, name="a"), nt.dscalar("x")
    _, updates = ns.scan(lambda x: ({a: a * x}, ns.until(a * x > 10)), non_sequences=x, n_steps=50)
    f = ns.function([x], [updates[a], *ns.grad(updates[a], [a, x])], mode=mode)
    close(f(2.0), [12, 8, 1.5 * 3 * 4])  # 1.5 x**3


def test_a_shared_counter_beside_the_states_is_no_obstacle(mode):
    count, x = ns.shared(1, name="count"), nt.dscalar("x")
    states, updates = ns.scan(lambda v: (v * count, {count: count + 1}), outputs_info=x, n_steps=4)
    f = ns.function([x], ns.grad(states[-1], x), updates=updates, mode=mode)
    assert f(3.0) == 24
    assert (f(3.0), int(count.get_value())) == (5 * 6 * 7 * 8, 9)


def test_shared_weights_that_the_step_finds_by_itself(mode):
    w, x = ns.shared(np.array([2.0, 3.0]), name="w"), nt.dvector("x")
    states, _ = ns.scan(lambda v: v * w, outputs_info=x, n_steps=3)
    f = ns.function([x], ns.grad(states[-1].sum(), [x, w]), mode=mode)
    close(f([1.0, -1.0]), [[8, 27], [12, -27]])


# some rows ----------------------------------------------------------------------------------------------------------

READINGS = {
    "the last": (lambda out, k: out[-1], lambda n, k: [n - 1]),
    "the first": (lambda out, k: out[0], lambda n, k: [0]),
    "the last but one": (lambda out, k: out[-2], lambda n, k: [n - 2]),
    "every second": (lambda out, k: out[::2].sum(), lambda n, k: range(0, n, 2)),
    "some in the middle": (lambda out, k: out[1:3].sum(), lambda n, k: [1, 2]),
    "the last two": (lambda out, k: out[-2:].sum(), lambda n, k: [n - 2, n - 1]),
    "one the run knows": (lambda out, k: out[k], lambda n, k: [k]),
    "the last, and the sum": (lambda out, k: out[-1] + out.sum(), lambda n, k: [*range(n), n - 1]),
    "one twice, in another order": (lambda out, k: out[np.array([3, 0, 3])].sum(), lambda n, k: [3, 0, 3]),
}


@pytest.mark.parametrize("reading", READINGS)
def test_only_some_rows_are_used(mode, reading):
    read, places = READINGS[reading]

    def program(xs, start, w, k):
        return read(rows(lambda x, v, w: w * v + x, xs, start, w), k)

    def plain(xs, start, w, k):
        return sum(decayed(xs, start, w)[1 + place] for place in places(len(xs), k))

    d_xs, d_start, d_w, path = np.zeros(5), 0.0, 0.0, decayed(XS, 0.7, 0.9)
    for place in places(5, 3):
        powers = 0.9 ** np.arange(place, -1, -1)
        d_xs[: place + 1] += powers
        d_start += 0.9 ** (place + 1)
        d_w += powers @ path[: place + 1]
    check(program, plain, [XS, 0.7, 0.9], [d_xs, d_start, d_w], mode, [3])


# one variable in several places -------------------------------------------------------------------------------------


def test_one_variable_is_sequence_initial_value_and_non_sequence(mode):
    def program(x):
        return rows(lambda row, v, x: v * row + x, x, x, x)[-1].sum()

    def plain(x):
        v = x
        for row in x:
            v = v * row + x
        return v.sum()

    a, b = 0.7, -1.4  # v = x (a + 1), then x ((a + 1) b + 1)
    by_hand = [(a * b + b + 1) + (a + b) * b, (a * b + b + 1) + (a + b) * (a + 1)]
    check(program, plain, [np.array([a, b])], [by_hand], mode)


def test_one_variable_is_two_sequences(mode):
    def program(x):
        return rows(lambda a, b: a * b, [x, x], None).sum()

    check(program, lambda x: (x * x).sum(), [XS], [2 * XS], mode)


def test_one_variable_is_the_initial_value_of_two_states(mode):
    def program(x):
        first, second = rows(lambda a, b: (a * b, b + a), None, [x, x], n_steps=2)
        return first[-1] + 10 * second[-1]

    def plain(x):  # (x, x), (x**2, 2x), (2 x**3, 2x + x**2)
        return 2 * x**3 + 20 * x + 10 * x**2

    check(program, plain, [1.5], [6 * 1.5**2 + 20 + 20 * 1.5], mode)


def test_a_result_is_the_input_of_the_next_loop(mode):
    def program(xs):
        sums = rows(lambda x, v: v + x, xs, 0.0)
        return rows(lambda s, v: v + s * s, sums, sums[-1])[-1]

    def plain(xs):
        sums = np.cumsum(xs)
        return sums[-1] + (sums**2).sum()

    check(program, plain, [XS], [1 + 2 * np.cumsum(np.cumsum(XS)[::-1])[::-1]], mode)


# states that are not all real, or not all used ----------------------------------------------------------------------


def test_integer_states_and_sequences_pass_nothing_on(mode):
    def program(x, n):
        ints, values = rows(lambda k, i, v: (i + k, v * (i + k)), nt.arange(n), [1, x])
        return values[-1] + ints[-1]

    check(program, lambda x, n: x * 1 * 2 * 4 * 7 + 7, [1.5], [56], mode, [4])


def test_single_precision_stays(mode):
    def program(xs, w):
        return rows(lambda x, v, w: w * v + x, xs, 0.0, w)[-1]

    xs = XS.astype("float32")
    _, (d_xs, d_w), _ = derivatives(program, [xs, np.float32(0.5)], mode=mode)
    assert (d_xs.dtype, d_w.dtype) == ("float32", "float32")
    np.testing.assert_array_equal(d_xs, 0.5 ** np.arange(5)[::-1])


def test_complex_states(mode):
    def program(z, n):
        return rows(lambda v, z: v * z, None, 1.0 + 0.0j, z, n_steps=n)[-1]

    def cost(z, n):
        return np.real(program(z, n))

    z = 0.8 + 0.3j  # of Re(z**3): df/dx - i df/dy = 3 z**2
    found = ns.jit(ns.grad(cost), mode=mode)(z, 3)
    np.testing.assert_allclose(found, 3 * z**2)


def test_a_state_that_the_cost_does_not_reach_plays_no_part(mode):
    def program(x):
        v, w = rows(lambda v, w: (v * v, w + np.log(v)), None, [x, x], n_steps=3)
        del w
        return v[-1]

    check(program, lambda x: x**8, [1.1], [8 * 1.1**7], mode)


def test_a_state_reaches_the_cost_over_another_state_alone(mode):
    def program(x):
        _, w = rows(lambda v, w: (v * 2.0, w + v * v), None, [x, 0.0], n_steps=3)
        return w[-1]

    check(program, lambda x: 21 * x**2, [1.1], [42 * 1.1], mode)  # x**2 (1 + 4 + 16)


# derivatives of derivatives -----------------------------------------------------------------------------------------


def test_third_and_fourth_derivatives(mode):
    def power(x, n):
        return rows(lambda v, x: v * x, None, 1.0, x, n_steps=n)[-1]

    third = ns.grad(ns.grad(ns.grad(power)))
    np.testing.assert_allclose(ns.jit(third, mode=mode)(1.5, 5), 60 * 1.5**2)
    if mode == "python":  # compiling a fourth derivative takes a minute
        np.testing.assert_allclose(ns.jit(ns.grad(third), mode=mode)(1.5, 5), 120 * 1.5)


@pytest.mark.parametrize("k, by_hand", [(3, 56 * 1.5**6), (2, 12 * 1.5**2)])
def test_second_derivatives_of_a_loop_that_ends_by_itself(mode, k, by_hand):
    def squares(v, n):
        return rows(lambda v: (v * v, ns.until(v * v >= 10)), None, v, n_steps=n)[-1]

    reverse = ns.grad(ns.grad(squares))

    def forward(v, n):
        return ns.jvp(lambda v: ns.grad(squares)(v, n), (v,), (1.0,))[1]

    close(ns.jit(lambda v, n: (reverse(v, n), forward(v, n)), mode=mode)(1.5, k), [by_hand, by_hand])


def test_the_hessian_of_a_loop_with_taps(mode):
    def program(start, n):
        return rows(lambda two, one: two * one, None, {"initial": start, "taps": [-2, -1]}, n_steps=n)[-1]

    a, b = 1.2, 0.7  # ab, ab**2, a**2 b**3
    found = ns.jit(ns.hessian(program), mode=mode)(np.array([a, b]), 3)
    np.testing.assert_allclose(found, [[2 * b**3, 6 * a * b**2], [6 * a * b**2, 6 * a**2 * b]])


@pytest.mark.parametrize("n", [0, 1, 4, 23])
def test_cotangents_of_many_taps_are_handed_from_far_ones_to_near_ones(mode, n):
    taps, w = (-19, -7, -6, -2), np.array([0.2, -0.3, 0.4, 0.1])

    def program(xs, start):
        path = rows(lambda x, *before: x + sum(w[k] * one**2 for k, one in enumerate(before)), xs, {"initial": start, "taps": list(taps)})
        return (path**2).sum()

    def path_of(xs, start):
        y = list(start)
        for t in range(n):
            y.append(xs[t] + sum(w[k] * y[19 + t + tap] ** 2 for k, tap in enumerate(taps)))
        return np.array(y)

    rng = np.random.default_rng(0)
    xs, start = rng.uniform(-0.4, 0.4, n), rng.uniform(-0.4, 0.4, 19)
    y = path_of(xs, start)
    above = np.concatenate([np.zeros(19), 2 * y[19:]])  # of each row: what the steps that read it hand back
    for t in reversed(range(n)):
        for k, tap in enumerate(taps):
            above[19 + t + tap] += above[19 + t] * 2 * w[k] * y[19 + t + tap]
    check(program, lambda xs, start: np.sum(path_of(xs, start)[19:] ** 2), [xs, start], [above[19:], above[:19]], mode)


def test_a_gradient_inside_a_step(mode):
    def descend(start, rate, n):
        def step(x, rate):
            return x - rate * ns.grad(lambda x: 0.5 * 3.0 * x * x)(x)

        return rows(step, None, start, rate, n_steps=n)[-1]

    # (1 - 3 rate)**n start
    check(descend, lambda x, rate, n: (1 - 3 * rate) ** n * x, [2.0, 0.1], [0.7**4, -3 * 4 * 0.7**3 * 2], mode, [4])
