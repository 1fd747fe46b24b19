"""Every distribution with respect to every parameter: a derivative, or NullGradientError in both modes, however the draw is composed."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.errors import NullGradientError

SMOOTH = {
    "uniform low": lambda s, x: s.uniform(x, 3.0, size=3),
    "uniform high": lambda s, x: s.uniform(-1.0, x, size=3),
    "normal loc": lambda s, x: s.normal(x, 2.0, size=3),
    "normal scale": lambda s, x: s.normal(1.0, x, size=3),
    "lognormal mean": lambda s, x: s.lognormal(x, 0.3, size=3),
    "lognormal sigma": lambda s, x: s.lognormal(0.2, x, size=3),
    "exponential scale": lambda s, x: s.exponential(x, size=3),
    "laplace loc": lambda s, x: s.laplace(x, size=3),
    "laplace scale": lambda s, x: s.laplace(0.5, x, size=3),
    "logistic loc": lambda s, x: s.logistic(x, size=3),
    "logistic scale": lambda s, x: s.logistic(0.5, x, size=3),
    "cauchy loc": lambda s, x: s.cauchy(x, size=3),
    "cauchy scale": lambda s, x: s.cauchy(0.5, x, size=3),
    "weibull shape": lambda s, x: s.weibull(x, size=3),
    "weibull scale": lambda s, x: s.weibull(1.5, x, size=3),
    "halfnormal loc": lambda s, x: s.halfnormal(x, 2.0, size=3),
    "halfnormal scale": lambda s, x: s.halfnormal(0.5, x, size=3),
    "gumbel loc": lambda s, x: s.gumbel(x, size=3),
    "gumbel scale": lambda s, x: s.gumbel(0.5, x, size=3),
    "pareto b": lambda s, x: s.pareto(x, size=3),
    "pareto scale": lambda s, x: s.pareto(2.0, x, size=3),
    "triangular left": lambda s, x: s.triangular(-x, 0.5, 2.0, size=3),
    "triangular mode": lambda s, x: s.triangular(-1.0, x, 2.0, size=3),
    "triangular right": lambda s, x: s.triangular(-1.0, 0.5, x, size=3),
    "invgamma scale": lambda s, x: s.invgamma(2.0, x, size=3),
    "vonmises mu": lambda s, x: s.vonmises(x, 2.0, size=3),
    "gamma scale": lambda s, x: s.gamma(2.0, x, size=3),
    "t loc": lambda s, x: s.t(3.0, x, size=3),
    "t scale": lambda s, x: s.t(3.0, 0.5, x, size=3),
    "multivariate_normal mean": lambda s, x: s.multivariate_normal(np.stack([x, 2 * x]), np.eye(2), size=3),
    "multivariate_normal cov": lambda s, x: s.multivariate_normal(np.zeros(2), x * np.eye(2), size=3),
}
REFUSED = {
    "gamma shape": lambda s, x: s.gamma(x, size=3),
    "invgamma shape": lambda s, x: s.invgamma(x, size=3),
    "vonmises kappa": lambda s, x: s.vonmises(0.5, x, size=3),
    "wald mean": lambda s, x: s.wald(x, 2.0, size=3),
    "wald scale": lambda s, x: s.wald(2.0, x, size=3),
    "hypergeometric ngood": lambda s, x: s.hypergeometric(50 * x, 20, 12, size=3),
    "hypergeometric nsample": lambda s, x: s.hypergeometric(50, 20, 20 * x, size=3),
    "chisquare df": lambda s, x: s.chisquare(x, size=3),
    "t df": lambda s, x: s.t(x, size=3),
    "beta a": lambda s, x: s.beta(x, 2.0, size=3),
    "beta b": lambda s, x: s.beta(2.0, x, size=3),
    "dirichlet alpha": lambda s, x: s.dirichlet(np.stack([x, 2 * x]), size=3),
    "bernoulli p": lambda s, x: s.bernoulli(x, size=3),
    "binomial n": lambda s, x: s.binomial(20 * x, 0.3, size=3),
    "binomial p": lambda s, x: s.binomial(9, x, size=3),
    "poisson lam": lambda s, x: s.poisson(x, size=3),
    "negative_binomial n": lambda s, x: s.negative_binomial(x, 0.5, size=3),
    "negative_binomial p": lambda s, x: s.negative_binomial(3.0, x, size=3),
    "geometric p": lambda s, x: s.geometric(x, size=3),
    "categorical p": lambda s, x: s.categorical(np.stack([x, 1 - x]), size=3),
    "categorical rows of p": lambda s, x: s.categorical(np.stack([np.stack([x, 1 - x]), np.stack([1 - x, x])])),
    "choice p": lambda s, x: s.choice(2, size=3, p=np.stack([x, 1 - x])),
    "choice without replacement p": lambda s, x: s.choice(3, size=3, replace=False, p=np.stack([x / 2, x / 2, 1 - x])),
    "multinomial n": lambda s, x: s.multinomial(20 * x, np.array([0.2, 0.8])),
    "multinomial p": lambda s, x: s.multinomial(5, np.stack([x, 1 - x])),
    "multinomial as floats": lambda s, x: s.multinomial(5, np.stack([x, 1 - x]), dtype="float64"),
}


def in_a_loop(draw, s, x):
    return ns.scan(lambda r: r * x + draw(s, x).sum(), outputs_info=np.float64(1.0), n_steps=3)[0][-1]


def counted_in_a_loop(draw, s, x):
    starts = [np.float64(1), np.int64(0)]
    (reals, counts), _ = ns.scan(lambda r, k: (r * x, k + draw(s, x).sum().astype("int64")), outputs_info=starts, n_steps=3)
    return reals[-1] + counts[-1]


def only_counted(draw, s, x):
    return x + ns.scan(lambda k: k + draw(s, x).sum().astype("int64"), outputs_info=np.int64(0), n_steps=3)[0][-1]


def drawn_before_a_loop(draw, s, x):
    k = draw(s, x).sum().astype("int64")
    (reals, counts), _ = ns.scan(lambda r, c, k: (r * 0.5, c + k), outputs_info=[x, np.int64(0)], non_sequences=[k], n_steps=3)
    return reals[-1] + counts[-1]


WAYS = {
    "beside": lambda draw, s, x: 3 * x + draw(s, x).sum(),
    "through arithmetic": lambda draw, s, x: x + draw(s, (2 * x + 0.0) / 2).sum(),
    "made whole": lambda draw, s, x: x + (2 * draw(s, x)).astype("int64").sum(),
    "compared": lambda draw, s, x: x * np.where(2 * draw(s, x).sum() > 1, 1.0, 2.0),
    "chosen": lambda draw, s, x: nt.ifelse(x > 0, lambda: x + draw(s, x).sum(), lambda: x),
    "chosen and made whole": lambda draw, s, x: x + nt.ifelse(x > 0, lambda: draw(s, x).sum().astype("int64"), lambda: np.int64(0)),
    "in a loop": in_a_loop,
    "counted in a loop": counted_in_a_loop,
    "counts alone in a loop": only_counted,
    "drawn before a loop": drawn_before_a_loop,
    "mapped": lambda draw, s, x: x + ns.vmap(lambda y: 1.0 * draw(s, y).sum())(np.stack([x, x])).sum(),
    "in jit": lambda draw, s, x: x + ns.jit(lambda y: draw(s, y))(x).sum(),
}
POINT = 0.4


def graph_gradient(cost, mode="numba"):
    x = nt.dscalar("x")
    return ns.function([x], ns.grad(cost(nt.random.RandomStream(3), x), x), mode=mode)(POINT)


@pytest.mark.parametrize("name", REFUSED)
def test_draws_that_do_not_move_smoothly_are_refused(name):
    for way in ("beside", "made whole", "counted in a loop"):
        with pytest.raises(NullGradientError, match=r"disconnected_grad|integers or booleans only"):
            ns.grad(lambda x, way=way: WAYS[way](REFUSED[name], nt_stream, x))(POINT)
        with pytest.raises(NullGradientError, match="disconnected_grad"):
            ns.jvp(lambda x, way=way: WAYS[way](REFUSED[name], nt_stream, x), (POINT,), (1.0,))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["poisson lam", "gamma shape", "multinomial p", "choice without replacement p", "categorical p"])
def test_they_are_refused_however_they_are_composed(name, way):
    with pytest.raises(NullGradientError, match=r"disconnected_grad|integers or booleans only"):
        ns.grad(lambda x: WAYS[way](REFUSED[name], nt_stream, x))(POINT)
    with pytest.raises(NullGradientError, match="disconnected_grad"):
        ns.jvp(lambda x: WAYS[way](REFUSED[name], nt_stream, x), (POINT,), (1.0,))


@pytest.mark.parametrize("name", REFUSED)
def test_they_are_refused_in_graphs_with_respect_to_variables_and_shared_ones(name):
    x, shared = nt.dscalar("x"), ns.shared(np.float64(POINT), "w")
    for variable in (x, shared):
        with pytest.raises(NullGradientError):
            ns.grad(variable + REFUSED[name](nt.random.RandomStream(1), variable).sum(), variable)


@pytest.mark.parametrize("name", SMOOTH)
def test_draws_that_move_smoothly_have_their_derivatives_in_both_modes(name):
    def value(x, seed=7):
        return np.arctan(SMOOTH[name](nt.random.RandomStream(seed), x)).sum()

    x = nt.dscalar("x")
    cost = value(x)
    point, step = 1.3, 1e-6
    evaluate = ns.function([x], cost)
    difference = (evaluate(point + step) - evaluate(point - step)) / (2 * step)
    assert ns.function([x], ns.grad(cost, x))(point) == pytest.approx(difference, rel=1e-6, abs=1e-9)
    assert ns.function([x], nt_jvp(cost, x))(point) == pytest.approx(difference, rel=1e-6, abs=1e-9)


nt_stream = nt.random.RandomStream(5)


def nt_jvp(cost, x):
    return ns.Rop(cost, x, np.float64(1.0))
