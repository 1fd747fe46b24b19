"""Draws by NumPy's own generators in traced functions: NumPy's distributions, arguments and results, repeatable, and each its own."""

from __future__ import annotations

import copy
import functools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import numbascan as ns
import numbascan.tensor as nt
from numbascan.errors import GlobalDrawError

N = 20_000
RNG = np.random.default_rng(0)
python = functools.partial(ns.jit, mode="python")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test begins with the same states, so that none depends on the others."""
    RNG.bit_generator.state = np.random.default_rng(1234).bit_generator.state
    np.random.seed(1234)  # noqa: NPY002 - the global generator is what is tested


# distributions, arguments and results ---------------------------------------------------------------------------------

SIZED = [
    "random(N)",
    "uniform(-1, 3, N)",
    "uniform(low=np.array([0.0, 1.0]), high=2.0, size=(N, 2))",
    "normal(1, 2, N)",
    "normal(loc=1, scale=0.5, size=N)",
    "normal(np.zeros(3, np.float32), 2.0, (N, 3))",
    "lognormal(0.5, 0.3, N)",
    "exponential(2.5, N)",
    "exponential(size=N)",
    "gumbel(1, 2, N)",
    "laplace(1, 2, N)",
    "logistic(1, 2, N)",
    "standard_cauchy(N)",
    "standard_normal(N)",
    "standard_normal(N, dtype=np.float32)",
    "standard_exponential(N)",
    "standard_gamma(2.5, N)",
    "random(N, dtype=np.float32)",
    "rayleigh(2, N)",
    "weibull(1.5, N)",
    "pareto(3, N)",
    "power(2.5, N)",
    "triangular(0, 1, 3, N)",
    "gamma(2, 3, N)",
    "gamma(2, scale=0.1, size=N)",
    "beta(2, 3, N)",
    "chisquare(3, N)",
    "f(4, 10, N)",
    "standard_t(5, N)",
    "vonmises(0.5, 2, N)",
    "wald(1, 2, N)",
    "binomial(10, 0.3, N)",
    "negative_binomial(4, 0.4, N)",
    "geometric(0.3, N)",
    "poisson(4.5, N)",
    "hypergeometric(10, 15, 8, N)",
    "integers(10, size=N)",
    "integers(-3, 7, N)",
    "integers(-3, 7, N, endpoint=True)",
    "integers(0, 2, N, dtype=bool)",
    "integers(0, 100, N, dtype=np.uint8)",
    "choice(7, N)",
    "choice(np.array([1.5, 2.5, 9.0]), N)",
    "choice(np.array([1.5, 2.5, 9.0]), size=N, p=[0.2, 0.5, 0.3])",
    "multinomial(10, [0.2, 0.3, 0.1], N)",
    "dirichlet([1.0, 2.0, 3.0], N)",
    "multivariate_normal([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], N)",
    "permuted(np.arange(N))",
]
LEGACY = [
    "rand(N)",
    "randn(N, 2)",
    "random_sample(N)",
    "random(N)",
    "randint(5, size=N)",
    "randint(2, 9, N)",
    "random_integers(5, size=N)",
    "standard_gamma(2.5, N)",
    "choice(5, N, True, [0.1, 0.2, 0.3, 0.2, 0.2])",
    "uniform(3, 1, N)",
    "exponential(3, N)",
    "multinomial(10, [0.2, 0.3, 0.1], N)",
]


def of_text(call: str) -> Callable[..., Any]:
    text: Callable[..., Any] = eval(f"lambda rng, x=0: x + rng.{call}", {"np": np, "N": N})
    return text


def columns(x: np.ndarray) -> np.ndarray:
    return x.reshape(N, -1).T.astype(float)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("call", "generator"), [(call, np.random.default_rng) for call in SIZED] + [(call, np.random.RandomState) for call in LEGACY]
)
def test_draws_have_numpys_distribution_dtype_and_shape(call: str, generator: Any) -> None:
    f: Any = eval(f"lambda rng: rng.{call}", {"np": np, "N": N})
    expected, seen = f(generator(8)), python(f)(generator(7))
    assert (seen.shape, seen.dtype) == (expected.shape, expected.dtype)
    for one, other in zip(columns(seen), columns(expected), strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-4


SINGLE = [
    "random()",
    "normal()",
    "normal(1.0, 2.0)",
    "uniform(1, 2)",
    "exponential()",
    "integers(5)",
    "integers(5, dtype=np.int16)",
    "poisson(3)",
]
SINGLE += [
    "random(dtype=np.float32)",
    "binomial(5, 0.5)",
    "geometric(0.5)",
    "choice(5)",
    "choice(np.array([1.5, 2.5]))",
    "choice(np.eye(3))",
]
SINGLE += [
    "normal(size=())",
    "permutation(3)",
    "permutation(np.arange(3.0))",
    "normal(np.zeros(3))",
    "normal(np.float32(0))",
    "multinomial(4, [0.5] * 3)",
]


@pytest.mark.parametrize("call", SINGLE)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_a_draw_without_a_size_is_a_number_of_pythons_where_numpys_is(call: str, dtype: Any) -> None:
    f, x = of_text(call), np.zeros(3, dtype)
    expected, seen = f(np.random.default_rng(8), x), python(f)(np.random.default_rng(7), x)
    assert (seen.shape, seen.dtype) == (expected.shape, expected.dtype)


def test_traced_parameters_and_sizes() -> None:
    @ns.jit
    def f(loc: Any, scale: Any, n: Any) -> Any:
        return RNG.normal(loc, scale, size=(n, len(loc)))

    drawn = f(np.array([1.0, -2.0]), 3.0, N)
    assert drawn.shape == (N, 2)
    assert np.allclose(drawn.mean(axis=0), [1.0, -2.0], atol=0.15)
    assert np.allclose(drawn.std(axis=0), 3.0, rtol=0.05)


def test_choices_without_replacement_permutations_and_shuffles_are_of_what_is_there() -> None:
    @python
    def f(x: Any) -> Any:
        y = np.arange(6.0)
        RNG.shuffle(y)
        return RNG.choice(x, len(x), replace=False), RNG.permutation(x), y, RNG.permutation(4)

    x = np.array([3.0, 1.0, 2.0])
    for seen, expected in zip(f(x), (x, x, np.arange(6.0), np.arange(4)), strict=True):
        assert sorted(seen.tolist()) == sorted(expected.tolist())


def test_a_shuffle_changes_the_callers_array() -> None:
    def f(x: Any, rng: Any) -> None:
        rng.shuffle(x)

    x = np.arange(50.0)
    python(f)(x, RNG)
    assert sorted(x) == list(range(50))
    assert x.tolist() != list(range(50))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("normal(0, -1)", "scale"),
        ("uniform(3, 1)", "at least low"),
        ("uniform(0, np.inf)", "finite"),
        ("integers(5, 3)", "at least low"),
        ("multinomial(5, [0.8, 0.8, 0.1])", "at most 1"),
        ("choice(3, p=[0.5, 0.5, 0.1])", "with the sum 1"),
        ("chisquare(0)", "above 0"),
    ],
)
def test_parameters_out_of_range_are_refused(call: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        python(of_text(call))(np.random.default_rng(0))


def test_a_traced_scale_below_zero_is_refused_at_the_run() -> None:
    f = python(lambda scale: RNG.normal(0.0, scale))
    assert np.isfinite(f(1.0))
    with pytest.raises(ValueError, match="scale must be at least 0"):
        f(-1.0)


# seeds ----------------------------------------------------------------------------------------------------------------


def reseed(seed: int = 0) -> None:
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def test_calls_differ_and_a_reseeded_generator_begins_again() -> None:
    f = ns.jit(lambda x: x + RNG.normal(size=3))
    reseed()
    first, second = f(0.0), f(0.0)
    assert not np.any(first == second)
    reseed()
    assert np.array_equal([f(0.0), f(0.0)], [first, second])
    reseed()
    RNG.normal()
    assert not np.any(f(0.0) == first)


def test_a_call_draws_one_seed_and_the_draws_are_those_of_a_stream_of_it() -> None:
    f = python(lambda x: (x + RNG.normal(), RNG.normal(), RNG.uniform()))
    reseed()
    a, b, c = f(0.0)
    after = RNG.bit_generator.state
    reseed()
    stream = nt.random.RandomStream(int(RNG.integers(0, 2**63 - 1)))
    assert RNG.bit_generator.state == after
    assert python(lambda x: (x + stream.normal(), stream.normal(), stream.uniform()))(0.0) == (a, b, c)


def test_one_code_serves_all_generators_that_are_given() -> None:
    f = ns.jit(lambda rng, x: x + rng.normal(size=2))
    one, again, other = (f(np.random.default_rng(seed), 0.0) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.any(one == other)
    assert len(f._kinds) == 1
    rng = np.random.default_rng(1)
    assert np.array_equal(f(rng, 0.0), one)
    assert not np.any(f(rng, 0.0) == one)


def test_another_global_generator_takes_the_code_of_the_first() -> None:
    class Model:
        def __init__(self, seed: int) -> None:
            self.rng = np.random.default_rng(seed)

    model = Model(3)
    f = ns.jit(lambda x: x + model.rng.normal(size=2))
    first = f(0.0)
    program = f._of_latest().runner.program
    model.rng = np.random.default_rng(3)
    assert np.array_equal(f(0.0), first)
    assert f._of_latest().runner.program is program


@dataclass
class Case:
    rng: Any
    x: float


def draw(rng: Any, x: Any) -> Any:
    return x + rng.normal(size=2)


WAYS: dict[str, Callable[[Any], Any]] = {
    "positional": lambda rng: python(draw)(rng, 0.0),
    "keyword": lambda rng: python(draw)(x=0.0, rng=rng),
    "in a dict": lambda rng: python(lambda d: draw(d["rng"], d["x"]))({"rng": rng, "x": 0.0}),
    "in a dataclass": lambda rng: python(lambda case: draw(case.rng, case.x))(Case(rng, 0.0)),
    "static": lambda rng: python(draw, static_argnums=0)(rng, 0.0),
    "partial": lambda rng: python(functools.partial(draw, rng))(0.0),
    "closure": lambda rng: python(lambda x: draw(rng, x))(0.0),
    "jit in jit": lambda rng: python(lambda rng, x: ns.jit(draw)(rng, x))(rng, 0.0),
    "as written": lambda rng: python(ns.as_written(lambda rng, x: x + rng.normal(size=2)))(rng, 0.0),
    "method that is read outside": lambda rng: python(functools.partial(lambda normal, x: x + normal(size=2), rng.normal))(0.0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_every_way_to_a_generator_draws_the_same(way: str, make: Any) -> None:
    assert np.array_equal(WAYS[way](make(5)), python(draw)(make(5), 0.0))


def test_numpys_global_generator() -> None:
    @python
    def f(x: Any) -> Any:
        return x + np.random.normal(), np.random.rand(2), np.random.randint(0, 100, 4), np.random.permutation(3)  # noqa: NPY002

    np.random.seed(1)  # noqa: NPY002
    first, second = f(0.0), f(0.0)
    np.random.seed(1)  # noqa: NPY002
    again = f(0.0)
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert first[0] != second[0]


def test_a_seed_set_inside_is_set_by_each_call() -> None:
    @python
    def f(x: Any) -> Any:
        np.random.seed(5)  # noqa: NPY002
        return x + np.random.normal()  # noqa: NPY002

    one = f(0.0), np.random.normal()  # noqa: NPY002
    other = f(0.0), np.random.normal()  # noqa: NPY002
    assert one == other


def test_generators_made_inside_draw_the_same_in_each_call_and_step_as_in_python() -> None:
    def f(x: Any) -> Any:
        rng, legacy = np.random.default_rng(0), np.random.RandomState(0)
        return x + rng.normal(), rng.normal(), np.random.default_rng(0).normal(), legacy.normal(), np.random.default_rng([1, 2]).normal()

    a, b, again, *_ = first = python(f)(0.0)
    assert a == again != b
    assert python(f)(0.0) == first
    lanes = ns.vmap(f)(np.zeros(3))
    steps = ns.map(f, np.zeros(3))[0]
    for lane, step, value in zip(lanes, steps, first, strict=True):
        assert np.array_equal(lane, np.full(3, value))
        assert np.array_equal(step, np.full(3, value))


def test_generators_made_inside_from_traced_seeds_and_from_none() -> None:
    by_seed = ns.vmap(lambda seed: np.random.default_rng(seed).normal())(np.arange(4))
    assert len(set(by_seed.tolist())) == 4
    assert by_seed[2] == python(lambda x: x + np.random.default_rng(2).normal())(0.0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        python(lambda seed: np.random.default_rng(seed).normal())(-1)
    fresh = python(lambda x: x + np.random.default_rng().normal())
    assert fresh(0.0) != fresh(0.0)


def test_two_generators_draw_independently() -> None:
    f = python(lambda one, other: (one.normal(size=N), other.normal(size=N)))
    a, b = f(np.random.default_rng(0), np.random.default_rng(1))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05
    a, b = f(RNG, RNG)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05


# steps, lanes, branches -----------------------------------------------------------------------------------------------


def all_different(*values: Any) -> bool:
    numbers = np.concatenate([np.ravel(value) for value in values])
    return len(set(numbers.tolist())) == numbers.size


def nested(x: Any) -> Any:
    out = np.zeros((40, 20))
    first = RNG.normal()
    for i in range(40):
        out[i, 0] = RNG.normal() if x > 0 else RNG.uniform()
        for j in range(1, 20):
            out[i, j] = x * RNG.normal()
    return first, out, RNG.normal()


def test_passes_of_loops_and_what_stands_around_them_draw_apart() -> None:
    f = ns.jit(nested)
    assert all_different(*f(1.0), *f(1.0), *ns.vmap(nested)(np.ones(3)))


def test_steps_of_scans_draw_apart() -> None:
    def step(x: Any) -> Any:
        return x + RNG.normal()

    reseed()
    first, _ = ns.scan(step, outputs_info=np.zeros(()), n_steps=5)
    second, _ = ns.scan(step, outputs_info=np.zeros(()), n_steps=5)
    assert all_different(first, second)
    reseed()
    assert np.array_equal(ns.scan(step)(outputs_info=np.zeros(()), n_steps=5), first)
    assert np.isfinite(ns.lax.fori_loop(0, 5, lambda _, x: x + RNG.normal(), 0.0))
    given, _ = ns.scan(draw_last, outputs_info=np.zeros(()), non_sequences=[RNG], n_steps=5)
    assert all_different(given)


def draw_last(x: Any, rng: Any) -> Any:
    return x + rng.normal()


def test_lanes_draw_apart_and_by_their_number() -> None:
    lanes = ns.vmap(lambda x, rng: x + rng.normal(), in_axes=(0, None))
    reseed()
    first = lanes(np.zeros(5), RNG)
    reseed()
    assert all_different(first)
    assert np.array_equal(lanes(np.zeros(3), RNG), first[:3])
    reseed()
    whole = ns.batch(lambda x: x + RNG.normal(), (np.zeros(6),), progress=False)
    reseed()
    assert np.array_equal(ns.batch(lambda x: x + RNG.normal(), (np.zeros(6),), chunk=2, progress=False), whole)


def trials(p: Any) -> Any:
    n = 0
    if p > 0:
        while RNG.random() > p:
            n += 1
    return n, RNG.normal()


def test_a_loop_in_a_branch_that_is_not_taken_does_not_run() -> None:
    n, after = ns.vmap(trials)(np.full(N, 0.3))
    assert abs(n.mean() - 0.7 / 0.3) < 0.1
    assert stats.kstest(after, "norm").pvalue > 1e-4
    assert ns.jit(trials)(0.0)[0] == 0  # it would never end


def test_a_generator_made_inside_goes_on_through_loops() -> None:
    def walk(x: Any) -> Any:
        rng = np.random.default_rng(3)
        out = np.zeros(32)
        out[0] = rng.normal()
        for i in range(1, 31):
            out[i] = x * rng.normal()
        out[31] = rng.normal()
        return out

    alone = ns.jit(walk)(1.0)
    assert all_different(alone)
    assert np.array_equal(ns.vmap(walk)(np.ones(2)), [alone, alone])


def test_a_function_that_is_traced_twice_draws_what_it_would_at_once() -> None:
    def written(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = RNG.normal()
        y[1] = x + RNG.normal()
        return y

    f = python(written)
    reseed()
    first = f(0.0)
    reseed()
    assert np.array_equal(python(written)(0.0), first)
    stream = nt.random.RandomStream(int(np.random.default_rng(0).integers(0, 2**63 - 1)))
    assert first[0] == python(lambda x: x + stream.normal())(0.0)


# derivatives ----------------------------------------------------------------------------------------------------------


def test_values_and_derivatives_see_the_same_draws() -> None:
    def cost(w: Any, rng: Any) -> Any:
        return np.sum(rng.normal(w, 2.0, size=3) * w)

    value, slope = ns.value_and_grad(cost)(2.0, RNG)
    assert np.isclose(slope, value / 2.0 + 6.0)  # w (w + 2 z): w + 2 z + w
    value, pull = ns.vjp(cost, 2.0, RNG)
    assert np.isclose(pull(1.0)[0], value / 2.0 + 6.0)
    assert pull(1.0)[1] is None
    value, moved = ns.jvp(cost, (2.0, RNG), (1.0, None))
    assert np.isclose(moved, value / 2.0 + 6.0)
    ns.verify_grad(lambda w: np.sum(w * RNG.normal(size=3)), [np.ones(3)])
    with pytest.raises(ns.NullGradientError, match="no derivative"):
        ns.grad(lambda a: RNG.gamma(a))(1.0)


def test_symbolic_graphs_draw_one_seed_a_call() -> None:
    x = nt.dscalar("x")
    slope = ns.grad(lambda w: (w - RNG.normal()) ** 2 + w * RNG.normal())(x)
    f = ns.function([x], slope, mode="python")
    reseed()
    first = f(1.0)
    after = RNG.bit_generator.state
    assert f(1.0) != first
    reseed()
    RNG.integers(0, 2**63 - 1)
    assert RNG.bit_generator.state == after


# threads, errors ------------------------------------------------------------------------------------------------------


def test_threads_draw_apart() -> None:
    f = ns.jit(lambda x: x + RNG.normal())
    drawn: list[float] = []
    f(0.0)

    def work() -> None:
        drawn.extend(float(f(0.0)) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 200


def test_tracing_alone_advances_no_generator() -> None:
    f = python(lambda rng, x: x + rng.normal() + RNG.normal())
    given, before = np.random.default_rng(0), RNG.bit_generator.state
    state = given.bit_generator.state
    f.lower(given, 0.0)
    assert RNG.bit_generator.state == before
    assert given.bit_generator.state == state


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x + RNG.zipf(2.0), "Generator.zipf in a function that is traced"),
        (lambda x: x + np.random.zipf(2.0), "RandomState.zipf"),  # noqa: NPY002
        (lambda x: (RNG.bytes(2), x)[1], "Generator.bytes"),
        (lambda x: x + RNG.spawn(1)[0].normal(), "Generator.spawn"),
        (lambda x: x + random.random(), "draws random numbers while it is traced"),
        (lambda x: x + copy.deepcopy(RNG).normal(), "copied"),
        (lambda x: x + np.random.Generator(np.random.PCG64(0)).normal(), "default_rng"),
        (ns.as_written(lambda x: x + RNG.normal()), "draws random numbers while it is traced"),
    ],
)
def test_what_a_stream_lacks_is_refused(f: Any, message: str) -> None:
    with pytest.raises(GlobalDrawError, match=message):
        python(f)(1.0)


def test_a_seed_in_a_step_or_in_a_branch_is_refused() -> None:
    def seeding(x: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002
        return x + np.random.normal()  # noqa: NPY002

    def in_branch(x: Any) -> Any:
        if x > 0:
            np.random.seed(0)  # noqa: NPY002
        return x + np.random.normal()  # noqa: NPY002

    for call in (lambda: ns.vmap(seeding)(np.zeros(2)), lambda: python(in_branch)(1.0)):
        with pytest.raises(GlobalDrawError, match="in a step, a branch, or without a known seed"):
            call()


def test_a_list_is_not_shuffled_and_a_generator_not_returned() -> None:
    with pytest.raises(TypeError, match="shuffle of a list"):
        python(lambda x: RNG.shuffle([x, 2.0]))(1.0)
    with pytest.raises(TypeError, match="_Generator"):
        python(lambda rng: rng)(RNG)
    with pytest.raises(GlobalDrawError, match="its state is read"):
        python(lambda rng: rng.bit_generator.state["state"])(RNG)


def test_an_exported_function_refuses_generators() -> None:
    with pytest.raises(NotImplementedError, match="NumPy's generators"):
        ns.jit(lambda x: x + RNG.normal()).lower(1.0).export("unused.py")
    with pytest.raises(NotImplementedError, match="NumPy's generators"):
        ns.jit(lambda rng, x: x + rng.normal()).lower(RNG, 1.0).export("unused.py")
