"""Draws in functions of arrays: jit, derivatives, vmap. A call draws on; forward and backward see the same draws."""

import threading

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

MODES = ["numba", "python", "debug"]


def uniform(number, size=None):
    """Draw `number` of the stream's own state under the seed 42. Draws of one number are words of one long draw."""
    if size is None:
        return np.random.Generator(np.random.Philox(key=[42, 0], counter=[0, 0, 0, 2])).random(number + 1)[-1]
    return np.random.Generator(np.random.Philox(key=[42, 0], counter=[0, 0, number, 0])).random(size)


@pytest.fixture
def srng():
    return nt.random.RandomStream(42, name="srng")


def drawn(srng):
    return int(srng.state.get_value()[2])


# jit ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_call_draws_on(srng, mode):
    f = ns.jit(lambda x: x + srng.uniform(size=3), mode=mode)
    np.testing.assert_array_equal([f(0.0), f(0.0)], [uniform(k, 3) for k in range(2)])
    assert drawn(srng) == 2


def test_functions_and_scan_functions_draw_from_one_state(srng):
    f = ns.jit(lambda: srng.uniform())

    @ns.scan
    def numbers():
        return srng.uniform()

    found = [f(), *numbers(n_steps=3), f()]
    np.testing.assert_array_equal(found, [uniform(k) for k in range(5)])


def test_lengths_that_are_traced_again_take_no_draw_twice(srng):
    total = ns.jit(lambda x: ns.scan(lambda row, s: s + row * srng.uniform(), x, 0.0)[0][-1])
    for length in (4, 30, 31, 4):
        before = drawn(srng)
        assert total(np.ones(length)) == pytest.approx(sum(uniform(before + k) for k in range(length)), rel=1e-14)
        assert drawn(srng) == before + length


def test_a_call_that_fails_draws_nothing(srng):
    f = ns.jit(lambda k: srng.uniform() + nt.as_tensor_variable(np.arange(3.0))[k])
    with pytest.raises(IndexError):
        f(7)
    assert drawn(srng) == 0
    assert f(0) == uniform(0)


def test_a_function_in_a_function_draws_once(srng):
    inner = ns.jit(lambda x: x + srng.uniform())
    outer = ns.jit(lambda x: inner(1.0) + x * srng.uniform())  # the inner call has no traced argument
    assert inner(0.0) == uniform(0)
    np.testing.assert_array_equal([outer(2.0), outer(2.0)], [1 + uniform(k) + 2 * uniform(k + 1) for k in (1, 3)])
    assert inner(0.0) == uniform(5)


def test_a_function_in_a_step_draws_once_at_each_step(srng):
    inner = ns.jit(lambda x: x + srng.uniform())

    @ns.scan
    def walk(x):
        return x + inner(np.float64(1.0))

    expected = np.cumsum([1 + uniform(k) for k in range(3)])
    np.testing.assert_allclose(walk(outputs_info=0.0, n_steps=3), expected, rtol=1e-15)
    assert drawn(srng) == 3


def test_a_function_of_variables_is_symbolic(srng):
    x = nt.dscalar("x")
    f = ns.jit(lambda: x + srng.uniform())
    run = ns.function([x], f(), updates=srng.updates())
    assert run(0.0) != run(0.0)
    assert drawn(srng) == 0


def test_threads_share_no_draw(srng):
    f = ns.jit(lambda: srng.uniform())
    f()
    found = []
    threads = [threading.Thread(target=lambda: found.extend(f() for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.sort(found), np.sort([uniform(k) for k in range(1, 201)]))


def test_a_stream_is_made_outside():
    with pytest.raises(TypeError, match=r"RandomStream is made in a function that is traced.*make it outside"):
        ns.jit(lambda x: x + nt.random.RandomStream(3).normal())(1.0)


# made in a step -------------------------------------------------------------------------------------------------------


def single_uniforms(count, seed=7):
    """Single numbers of the stream 0."""
    return np.random.Generator(np.random.Philox(key=[seed, 0], counter=[0, 0, 0, 2])).random(count)


def walk(x):
    local = nt.random.RandomStream(7)
    return x + local.uniform(), local.normal(size=3)


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_made_in_a_step_draws_anew_at_each_step_and_repeats_at_each_run(mode):
    expected = np.cumsum(single_uniforms(8)[::2])
    f, start = ns.scan(walk, mode=mode), [0.0, None]
    path, rows = f(outputs_info=start, n_steps=4)
    assert len(np.unique(rows)) == 12
    np.testing.assert_allclose(path, expected)
    for again in (f(outputs_info=start, n_steps=4), f(outputs_info=[np.float32(0).astype(float), None], n_steps=4)):
        np.testing.assert_array_equal([*path, *rows.flat], [*again[0], *again[1].flat])
    x, n = nt.dscalar("x"), nt.lscalar("n")
    (outer, _), updates = ns.scan(walk, outputs_info=[x, None], n_steps=n)
    (one, _), _ = ns.scan(walk, outputs_info=[x, None], n_steps=1)
    assert updates == {}
    in_graph, first = ns.function([x, n], [outer, one], mode=mode)(0.0, 4)
    np.testing.assert_array_equal(path, in_graph)
    np.testing.assert_array_equal(path[:1], first)


def test_lanes_inner_loops_and_derivatives_of_a_stream_made_in_a_step():
    lanes = ns.vmap(ns.value_and_grad(lambda x: x * nt.random.RandomStream(7).uniform()))
    values, slopes = lanes(np.full(4, 2.0))
    np.testing.assert_allclose(slopes, single_uniforms(4))
    np.testing.assert_allclose(values, 2 * slopes)

    def rows(make):
        inner = lambda: ns.scan(make(), n_steps=2, return_updates=False)  # noqa: E731
        return ns.scan(lambda: inner(), n_steps=3, return_updates=False, mode="python")

    def made_outside():
        local = nt.random.RandomStream(7)
        return lambda: local.uniform()

    numbers = rows(lambda: lambda: nt.random.RandomStream(7).uniform())
    assert len(np.unique(numbers)) == 6
    np.testing.assert_array_equal(numbers, rows(made_outside))

    def end(w, checkpoint):
        step = lambda y: w * y + nt.random.RandomStream(3).normal()  # noqa: E731
        return ns.scan(step, outputs_info=w, n_steps=5, checkpoint=checkpoint, return_updates=False)[-1] ** 2

    stored, computed = (ns.value_and_grad(lambda w, k=k: end(w, k))(0.5) for k in (None, 2))
    assert stored == computed
    value, pull = ns.vjp(lambda w: end(w, 2), 0.5)
    assert (value, pull(1.0)[0]) == stored


def test_a_stream_made_in_a_step_stays_there_and_has_a_seed():
    kept = []
    ns.scan(lambda x: (kept.append(nt.random.RandomStream(1)), x)[1], outputs_info=1.0, n_steps=2, mode="python")
    for use in (lambda: kept[-1].uniform(), lambda: ns.scan(lambda x: x + kept[-1].uniform(), outputs_info=1.0, n_steps=2)):
        with pytest.raises(TypeError, match=r"made in a step, and draws outside it.*make it outside"):
            use()
    with pytest.raises(TypeError, match=r"its seed stays as it is"):
        kept[-1].seed(2)
    with pytest.raises(TypeError, match=r"without a seed is made in a step.*give it a seed"):
        ns.scan(lambda x: x + nt.random.RandomStream().uniform(), outputs_info=1.0, n_steps=2)


# lanes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_each_lane_has_numbers_of_its_own(srng, mode):
    lanes = ns.vmap(ns.jit(lambda x: x + srng.uniform(size=2) + srng.uniform(), mode=mode))
    expected = [uniform(2 * k, 2) + uniform(2 * k + 1) for k in range(5)]
    np.testing.assert_array_equal(np.concatenate([lanes(np.zeros(2)), lanes(np.zeros(3))]), expected)


def test_derivatives_of_lanes_and_lanes_of_derivatives_see_the_same_draws(srng):
    cost = lambda x: x**2 * srng.uniform()  # noqa: E731 - the function that is transformed
    (values, slopes), x = ns.vmap(ns.value_and_grad(cost))(np.full(4, 3.0)), np.full(4, 3.0)
    np.testing.assert_allclose(values, [9 * uniform(k) for k in range(4)], rtol=1e-15)
    np.testing.assert_allclose(slopes, [6 * uniform(k) for k in range(4)], rtol=1e-15)
    slopes = ns.grad(lambda x: np.sum(ns.vmap(cost)(x)))(x)
    np.testing.assert_allclose(slopes, [6 * uniform(k) for k in range(4, 8)], rtol=1e-15)


# derivatives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_value_and_gradient_have_the_same_draws(srng, mode):
    both = ns.value_and_grad(ns.jit(lambda x: np.sum(x * srng.uniform(size=3)), mode=mode))
    for k in range(2):
        value, slope = both(2.0)
        assert value == 2 * slope == 2 * uniform(k, 3).sum()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("checkpoint", [None, 3])
def test_a_gradient_counts_the_steps_of_its_loop(srng, mode, checkpoint):
    def total(x):
        rows, _ = ns.scan(lambda row, s: s + row * srng.uniform(), x, np.float64(0.0), checkpoint=checkpoint)
        return rows[-1]

    slope = ns.grad(ns.jit(total, mode=mode))
    for length in (4, 11):
        before = drawn(srng)
        np.testing.assert_array_equal(slope(np.ones(length)), [uniform(before + k) for k in range(length)])
        assert drawn(srng) == before + length


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_counts_the_steps_that_ran(srng, mode):
    def cost(x):
        rows, _ = ns.scan(lambda c: (c * x + srng.uniform(), ns.until(c > 2)), outputs_info=np.float64(0.0), n_steps=50)
        return rows[-1]

    value, slope = ns.value_and_grad(ns.jit(cost, mode=mode))(1.0)
    c, dc, steps, ends = 0.0, 0.0, 0, False
    while not ends:
        c, dc, ends, steps = c + uniform(steps), c + dc, c > 2, steps + 1
    assert (float(value), float(slope), drawn(srng)) == (pytest.approx(c), pytest.approx(dc), steps)


def test_second_derivatives_have_one_draw(srng):
    assert ns.grad(ns.grad(lambda x: x**3 * srng.uniform()))(2.0) == pytest.approx(12 * uniform(0))
    hessian = ns.hessian(lambda x: np.sum(x**2 * srng.uniform(size=2)))(np.ones(2))
    np.testing.assert_allclose(hessian, np.diag(2 * uniform(1, 2)))
    jacobian = ns.jacobian(lambda x: x * srng.uniform(size=2))(np.ones(2))
    np.testing.assert_allclose(jacobian, np.diag(uniform(2, 2)))
    assert drawn(srng) == 3


def test_jvp_has_one_draw(srng):
    value, moved = ns.jvp(lambda x: x * srng.uniform(size=2), (np.ones(2),), (np.full(2, 3.0),))
    np.testing.assert_array_equal(value, uniform(0, 2))
    np.testing.assert_array_equal(moved, 3 * value)
    assert drawn(srng) == 1


def test_what_vjp_pulls_back_has_the_draws_of_the_value(srng):
    value, pull = ns.vjp(lambda x: x * srng.uniform(size=2), 3.0)
    ns.jit(lambda: srng.uniform())()
    for _ in range(2):
        assert pull(np.ones(2))[0] == uniform(0, 2).sum() == pytest.approx(value.sum() / 3)
    assert drawn(srng) == 2


def test_what_vjp_pulls_back_symbolically_has_the_draws_of_the_value(srng):
    value, pull = ns.vjp(lambda x: x * srng.uniform(size=2), 3.0)
    cotangent = nt.dvector("cotangent")
    found = ns.function([cotangent], pull(cotangent)[0])(np.ones(2))
    assert found == pytest.approx(value.sum() / 3, rel=1e-15)


@pytest.mark.parametrize("point", [3.0, None])
def test_vjp_in_a_function_has_one_draw(srng, point):
    @ns.jit
    def both(x):
        value, pull = ns.vjp(lambda y: y * srng.uniform(size=2), x if point is None else point)
        return value, pull(np.ones(2))[0]

    for k in range(2):
        value, slope = both(3.0)
        np.testing.assert_array_equal(value, 3 * uniform(k, 2))
        assert slope == uniform(k, 2).sum()


def test_what_vjp_pulls_back_has_the_shared_values_of_the_value():
    w = ns.shared(2.0)
    value, pull = ns.vjp(lambda x: w * x**2, 3.0)
    w.set_value(5.0)
    assert (value, *pull(1.0)) == (18.0, 12.0)


def test_verify_grad_holds_draws_still(srng):
    def cost(x):
        rows, _ = ns.scan(lambda row, s: s * 0.5 + srng.normal(row**2, row), x, np.float64(0.0))
        return rows[-1]

    ns.verify_grad(cost, np.linspace(0.5, 1, 4))
    assert drawn(srng) == 4


def test_a_function_with_a_rule_of_its_own_draws_nothing(srng):
    scaled = ns.custom_vjp(lambda x: x * srng.normal())
    for call in (lambda: ns.jit(scaled)(1.0), lambda: scaled(nt.dscalar("x"))):
        with pytest.raises(TypeError, match=r"srng draws in a function of ns\.custom_vjp.*pass the numbers as an argument"):
            call()
    double = ns.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, x), lambda x, g: (g * srng.normal(),))
    assert ns.jit(double)(1.0) == 2.0
    with pytest.raises(TypeError, match=r"srng draws in a rule of ns\.custom_vjp"):
        ns.grad(double)(1.0)


# a chain whose step takes a gradient -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_takes_a_gradient_of_what_it_draws(srng, mode):
    @ns.scan(mode=mode)
    def descend(x):
        return x - 0.1 * ns.grad(lambda y: y**2 * srng.uniform())(x)

    x, expected = 1.0, []
    for k in range(4):
        x = x - 0.1 * (2 * x * uniform(k))
        expected.append(x)
    np.testing.assert_allclose(descend(outputs_info=1.0, n_steps=4), expected, rtol=1e-14)
    assert drawn(srng) == 4
