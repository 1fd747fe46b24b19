"""Streams: the same draws in every mode and chunking, states that updates carry, draws in steps, loops in loops, lanes, derivatives."""

import pickle

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


def generator(seed, stream, number):
    return np.random.Generator(np.random.Philox(key=[seed, stream], counter=[0, 0, number, 0]))


def single(seed, stream, number):
    """A draw of one number: a word of one long draw."""
    return np.random.Generator(np.random.Philox(key=[seed, stream], counter=[0, 0, 0, 2])).random(number + 1)[-1]


def folded(seed, stream, number):
    """The key of a loop in a step."""
    return np.random.Philox(key=[seed, stream], counter=[0, 0, number, 1]).random_raw(2)


@pytest.fixture
def srng():
    return nt.random.RandomStream(42, name="srng")


MODES = ["numba", "python", "debug"]


# states and updates -------------------------------------------------------------------------------------------------


def test_a_function_repeats_its_draws_without_updates(srng):
    draw = ns.function([], srng.normal(size=3))
    np.testing.assert_array_equal(draw(), draw())


def test_updates_carry_the_draws_on(srng):
    draw = ns.function([], srng.uniform(size=3), updates=srng.updates())
    np.testing.assert_array_equal(np.stack([draw(), draw()]), np.stack([generator(42, 1, k).random(3) for k in range(2)]))


def test_two_draws_in_a_graph_have_nothing_in_common(srng):
    draw = ns.function([], [srng.uniform(size=3), srng.uniform(size=3)], updates=srng.updates())
    found = np.stack([draw(), draw(), draw()])
    assert np.unique(found).size == found.size


def test_two_functions_of_one_stream_need_nothing_of_each_other(srng):
    n = nt.lscalar("n")
    path, updates = ns.scan(lambda: srng.normal(), n_steps=n)
    walk = ns.function([n], path, updates=updates)
    draw = ns.function([], srng.normal(), updates=srng.updates())
    assert np.unique([*walk(5), draw(), *walk(3), draw()]).size == 10


def test_a_seed_sets_all_states_to_the_beginning(srng):
    draw = ns.function([], [srng.uniform(), srng.uniform()], updates=srng.updates())
    first = draw()
    draw()
    srng.seed(42)
    np.testing.assert_array_equal(draw(), first)
    srng.seed(43)
    assert (np.array(draw()) != first).all()


def test_another_seed_needs_no_compiling(srng):
    draw = ns.function([], srng.uniform(size=3), updates=srng.updates())
    draw()
    kernels = draw.source()
    srng.seed(9)
    np.testing.assert_array_equal(draw(), generator(9, 1, 0).random(3))
    assert draw.source() == kernels
    assert "42" not in kernels


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range(seed):
    with pytest.raises(ValueError, match="seed"):
        nt.random.RandomStream(seed)


def test_a_seed_that_is_no_integer():
    with pytest.raises(TypeError, match="seed"):
        nt.random.RandomStream(1.5)


def test_a_stream_without_a_seed_is_of_its_own():
    draws = [ns.function([], nt.random.RandomStream().uniform())() for _ in range(2)]
    assert draws[0] != draws[1]


def test_a_function_is_pickled_with_the_state_that_it_has(srng):
    draw = ns.function([], srng.uniform(size=3), updates=srng.updates())
    draw()
    again = pickle.loads(pickle.dumps(draw))
    np.testing.assert_array_equal(again(), draw())


def test_a_stream_is_pickled_with_its_states(srng):
    draw = ns.function([], srng.uniform(size=3), updates=srng.updates())
    draw()
    again = pickle.loads(pickle.dumps(srng))
    assert again.states[1].get_value().tolist() == [42, 1, 1]


# steps --------------------------------------------------------------------------------------------------------------


def gibbs(srng, mode=None, n_steps=10):
    """The chain of the reference documents: a restricted Boltzmann machine."""
    rng = np.random.default_rng(203940)
    w, bvis, bhid = (ns.shared(rng.uniform(-1, 1, size=shape)) for shape in ((6, 4), 6, 4))

    def one_step(vsample):
        hmean = nt.sigmoid(nt.dot(vsample, w) + bhid)
        hsample = (srng.uniform(size=hmean.shape) < hmean).astype("float64")
        vmean = nt.sigmoid(nt.dot(hsample, w.T) + bvis)
        return (srng.uniform(size=vsample.shape) < vmean).astype("float64")

    sample = nt.dvector("sample")
    values, updates = ns.scan(one_step, outputs_info=sample, n_steps=n_steps)
    return ns.function([sample], values, updates=updates, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_goes_on_where_it_stopped(srng, mode):
    chain, start = gibbs(srng, mode), np.ones(6)
    first = chain(start)
    second = chain(first[-1])
    whole = gibbs(nt.random.RandomStream(42), n_steps=20)(start)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)


def test_step_t_has_the_numbers_that_follow(srng):
    path, updates = ns.scan(lambda: (srng.uniform(size=3), srng.uniform()), n_steps=4)
    rows, numbers = ns.function([], path, updates=updates)()
    np.testing.assert_array_equal(rows, [generator(42, 1, 2 * t).random(3) for t in range(4)])
    np.testing.assert_array_equal(numbers, [single(42, 1, 2 * t + 1) for t in range(4)])


@pytest.mark.parametrize("mode", MODES)
def test_until_counts_the_steps_that_ran(srng, mode):
    def step():
        u = srng.uniform()
        return u, ns.until(u > 0.8)

    path, updates = ns.scan(step, n_steps=100)
    run = ns.function([], path, updates=updates, mode=mode)
    found = np.concatenate([run() for _ in range(4)])
    np.testing.assert_array_equal(found, [single(42, 1, k) for k in range(len(found))])
    assert srng.states[1].get_value()[2] == len(found)


def test_until_without_outputs_counts_too(srng):
    total = ns.shared(0.0)

    def step():
        u = srng.uniform()
        return {total: total + u}, ns.until(u > 0.8)

    _, updates = ns.scan(step, n_steps=100)
    ns.function([], None, updates=updates)()
    steps = int(srng.states[1].get_value()[2])
    numbers = [single(42, 1, k) for k in range(steps)]
    assert total.get_value() == pytest.approx(sum(numbers))
    assert [u > 0.8 for u in numbers] == [False] * (steps - 1) + [True]


def test_no_steps_draw_nothing(srng):
    n = nt.lscalar("n")
    path, updates = ns.scan(lambda: srng.normal(), n_steps=n)
    run = ns.function([n], path, updates=updates)
    assert run(0).shape == (0,)
    assert srng.states[-1].get_value()[2] == 0
    with pytest.raises(ValueError, match="n_steps is -1; it must be 0 or more"):
        run(-1)


def test_one_step_draws_as_the_first_of_many(srng):
    one, updates = ns.scan(lambda x: x + srng.normal(size=3), outputs_info=nt.zeros(3), n_steps=1)
    step = ns.function([], one, updates=updates)
    found = np.concatenate([step(), step()])
    other = nt.random.RandomStream(42)
    many, _ = ns.scan(lambda x: other.normal(size=3), outputs_info=nt.zeros(3), n_steps=2)
    np.testing.assert_array_equal(found, ns.function([], many)())


def test_backwards_the_draws_come_in_the_order_of_the_steps(srng):
    x = nt.dvector("x")
    path, _ = ns.scan(lambda row: srng.uniform() + 0 * row, sequences=x, go_backwards=True)
    np.testing.assert_array_equal(ns.function([x], path)(np.ones(3)), [single(42, 1, k) for k in range(3)])


def test_a_strict_step_may_draw(srng):
    path, _ = ns.scan(lambda x: x + srng.normal(), outputs_info=nt.dscalar("x"), n_steps=3, strict=True)
    assert path.ndim == 1


def test_a_number_as_initial_value_takes_no_draw_twice(srng):
    path, _ = ns.scan(lambda x: x + srng.normal(size=3), outputs_info=0, n_steps=3)
    other = nt.random.RandomStream(42)
    expected, _ = ns.scan(lambda x: x + other.normal(size=3), outputs_info=nt.zeros(3), n_steps=3)
    np.testing.assert_array_equal(ns.function([], path)(), ns.function([], expected)())


@pytest.mark.parametrize("mode", MODES)
def test_a_number_as_initial_value_takes_the_shape_of_a_draw_that_only_the_run_knows(srng, mode):
    start = nt.dvector("start")
    step = lambda x, y: (x * 0.5, y + srng.normal(x, 1.0))  # noqa: E731 - the shape of y is that of the draw
    (_, path), updates = ns.scan(step, outputs_info=[start, 1], n_steps=3)
    run = ns.function([start], path, updates=updates, mode=mode)
    for length in (2, 20):
        assert run(np.zeros(length)).shape == (3, length)
    other = nt.random.RandomStream(42)
    expected, _ = ns.scan(lambda y: y + other.normal(size=2), outputs_info=nt.ones(2), n_steps=3)
    srng.seed(42)
    np.testing.assert_array_equal(run(np.zeros(2)), ns.function([], expected)())


# loops in loops, lanes ----------------------------------------------------------------------------------------------


def nested(srng, mode=None):
    def inner(x):
        return x + srng.normal()

    def outer(x):
        path, updates = ns.scan(inner, outputs_info=x, n_steps=3)
        return path[-1] + srng.uniform(), updates

    x = nt.dscalar("x")
    path, updates = ns.scan(outer, outputs_info=x, n_steps=4)
    return ns.function([x], path, updates=updates, mode=mode)


@pytest.mark.parametrize("mode", ["python", "debug"])
def test_loops_in_loops_draw_the_same_in_every_mode(srng, mode):
    one, other = nested(srng), nested(nt.random.RandomStream(42), mode)
    for x in (0.5, 0.7):
        np.testing.assert_array_equal(one(x), other(x))
    assert srng.states[1].get_value().tolist() == [42, 1, 16]


def test_a_loop_in_a_step_draws_under_a_key_of_its_own(srng):
    path, _ = ns.scan(lambda: ns.scan(lambda: srng.uniform(), n_steps=3)[0], n_steps=2)
    expected = [[single(*folded(42, 1, t), k) for k in range(3)] for t in range(2)]
    np.testing.assert_array_equal(ns.function([], path)(), expected)


def test_lanes_draw_differently(srng):
    x = nt.dvector("x")
    lanes = ns.vmap(lambda a: a * 0 + srng.uniform())(x)
    np.testing.assert_array_equal(ns.function([x], lanes)(np.ones(4)), [single(42, 1, k) for k in range(4)])


@pytest.mark.parametrize("mode", MODES)
def test_paths_in_lanes(srng, mode):
    x = nt.dvector("x")
    paths = ns.vmap(lambda a: ns.scan(lambda s: s + srng.normal(), outputs_info=a, n_steps=5)[0])(x)
    found = ns.function([x], paths, mode=mode)(np.zeros(70))
    other = nt.random.RandomStream(42)
    paths, _ = ns.map(lambda a: ns.scan(lambda s: s + other.normal(), outputs_info=a, n_steps=5)[0], x)
    np.testing.assert_array_equal(found, ns.function([x], paths, mode="python")(np.zeros(70)))
    assert np.unique(found).size == found.size


# immediate calls ----------------------------------------------------------------------------------------------------


def test_a_scan_function_carries_the_state_by_itself(srng):
    @ns.scan
    def walk(x):
        return x + srng.normal(size=2)

    whole = walk(outputs_info=np.zeros(2), n_steps=9)
    assert srng.state.get_value().tolist() == [42, 0, 9]
    srng.seed(42)
    first = walk(outputs_info=np.zeros(2), n_steps=4)
    second = walk(outputs_info=first[-1], n_steps=5)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)


def test_a_scan_function_of_another_mode_goes_on_from_the_same_state(srng):
    @ns.scan
    def walk(x):
        return x + srng.normal(size=2)

    first = walk(outputs_info=np.zeros(2), n_steps=4)
    second = walk(outputs_info=first[-1], n_steps=5, mode="python")
    srng.seed(42)
    np.testing.assert_array_equal(np.concatenate([first, second]), walk(outputs_info=np.zeros(2), n_steps=9))


def test_a_call_that_fails_leaves_the_state(srng):
    @ns.scan
    def walk(x, k):
        return x + srng.normal(size=2) + nt.as_tensor_variable(np.arange(3.0))[k]

    with pytest.raises(IndexError):
        walk(outputs_info=np.zeros(2), non_sequences=7, n_steps=4)
    assert srng.state.get_value()[2] == 0


def test_scan_on_arrays_is_symbolic_where_the_step_draws(srng):
    path, updates = ns.scan(lambda x: x + srng.normal(), outputs_info=np.float64(1), n_steps=3)
    assert isinstance(path, nt.Variable)
    assert list(updates) == [srng.states[1]]


# derivatives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", [None, 3, "auto"])
def test_the_gradient_of_a_path_is_that_of_its_draws(srng, checkpoint):
    x, sigma = nt.dscalar("x"), nt.dscalar("sigma")
    path, updates = ns.scan(lambda s: s * 0.9 + srng.normal(0.1, sigma), outputs_info=x, n_steps=11, checkpoint=checkpoint)
    cost = (path**2).sum()
    run = ns.function([x, sigma], [path, cost, *ns.grad(cost, [x, sigma])], updates=updates)
    for _ in range(2):
        state = srng.states[1].get_value()
        _, _, *found = run(0.3, 1.5)
        after = srng.states[1].get_value()
        for k, (step, value) in enumerate(zip(((1e-6, 0), (0, 1e-6)), found, strict=True)):
            costs = []
            for sign in (1, -1):
                srng.states[1].set_value(state)
                costs.append(run(0.3 + sign * step[0], 1.5 + sign * step[1])[1])
            assert value == pytest.approx((costs[0] - costs[1]) / 2e-6, rel=1e-6), k
        srng.states[1].set_value(after)


def test_forward_mode_takes_draws_as_constants(srng):
    x = nt.dscalar("x")
    path, _ = ns.scan(lambda s: s * srng.uniform(1.0, 2.0), outputs_info=x, n_steps=5)
    run = ns.function([x], [path, ns.Rop(path, x, nt.as_tensor_variable(1.0))])
    values, slopes = run(2.0)
    np.testing.assert_allclose(slopes, values / 2)


def test_an_initial_number_takes_the_shape_of_a_draw_that_only_the_run_knows(srng):
    """What the loop learns the shape from is a draw whose key is a number known to the compiler."""
    high = ns.shared(np.arange(1.0, 6.0), name="high")
    found = []
    for mode in ("python", None):
        srng.seed(7)
        high.set_value(np.arange(1.0, 6.0))
        rows = ns.scan(lambda y: ([srng.uniform(-0.2, high)], {high: high * 0.5}), mode=mode)(outputs_info=[1], n_steps=3)
        found.append(rows)
    assert found[0].shape == (3, 5)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)


def test_a_negative_scale_that_is_known_is_refused(srng):
    for draw in (
        lambda scale: srng.normal(0.0, scale),
        lambda scale: srng.exponential(scale),
        lambda scale: srng.laplace(0.0, scale),
        lambda scale: srng.gamma(2.0, scale),
        lambda scale: srng.t(3.0, 0.0, scale),
        lambda scale: srng.weibull(2.0, scale),
    ):
        for scale in (-1.0, np.array([1.0, -0.5]), nt.constant(-2.0)):
            with pytest.raises(ValueError, match=r"scale is .* must be at least 0"):
                draw(scale)
    with pytest.raises(ValueError, match=r"sigma is -1\.0"):
        srng.lognormal(0.0, -1.0)
