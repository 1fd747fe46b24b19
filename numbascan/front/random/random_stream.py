"""`nt.random`: streams of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.node import constant_value
from ...ops.card import Card
from ...ops.contract import CONTRACT
from ...ops.random import (
    CAUCHY_OF,
    EXACT_EXP,
    EXACT_LOG,
    EXPONENTIAL_OF,
    GUMBEL_OF,
    LAPLACE_OF,
    LOGISTIC_OF,
    RANDOM_BETA,
    RANDOM_GAMMA,
    RANDOM_LOG_GAMMA,
    RANDOM_VONMISES,
    RANDOM_WALD,
)
from ...tracebacks import entries, with_entries
from ..numpy.choices import where
from ..numpy.math import sqrt
from ..variable import Variable, as_variable, op
from .base_draws import as_dtype, as_real, checked, checked_scale, float_dtype, product, shaped
from .counts import Counts

__all__ = ["RandomStream"]


@with_entries()
class RandomStream(Counts):
    """Random numbers as parts of graphs and of steps. Every draw is a function of the seed, of which draw it is, and of its position.

    Argument: seed, an int from 0 to 2**64 - 1; None: one that the system gives.

    Made in a step it belongs to the loop: each step and lane draws anew, and each run of the loop repeats the numbers.

    A method makes one more draw. In a graph its state is carried on by the updates that `ns.scan` returns, or `stream.updates()`; without
    them a function repeats its draws. A ScanFunction, and a function that `ns.jit`, `ns.grad` or `ns.vmap` made, carries it on by itself.

    `size`: the shape, an int or a sequence of ints, which may be traced; None: that of the parameters, which broadcast. `dtype`: float64,
    or float32 if asked for, or if all parameters are float32; int64 for whole numbers.

    Raises ValueError for a parameter out of range, when the graph is made if it is known then, else when it runs.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> srng = nt.random.RandomStream(1234)
    >>> roll = ns.function([], srng.integers(1, 7, size=5), updates=srng.updates())
    >>> roll(), roll()
    (array([5, 2, 6, 1, 1]), array([5, 5, 4, 3, 6]))
    """

    # differentiable in location and scale -----------------------------------------------------------------------------

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Numbers from `low` up to, not including, `high`: the doubles that NumPy makes of Philox's words. What rounding would make `high`
        is `low`."""
        shape, (low, high) = shaped(size, (as_real(low), as_real(high)), "uniform")
        kind = float_dtype(dtype, (low, high), "uniform")
        numbers = _moved(self._uniforms(shape, kind), low, high - low, kind)
        if not _may_reach(low, high, kind):
            return numbers
        low, high = as_dtype(low, kind), as_dtype(high, kind)
        return where((numbers >= high) & (low < high), low, numbers)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Normal numbers of mean `loc` and standard deviation `scale`: Wichura (1988) for one, Box & Muller (1958) for arrays."""
        shape, (loc, scale) = shaped(size, (loc, checked_scale("normal", scale)), "normal")
        kind = float_dtype(dtype, (loc, scale), "normal")
        return _moved(as_dtype(self._normals(shape), kind), loc, scale, kind)

    def standard_normal(self, size: Any = None, dtype: Any = None) -> Variable:
        """Normal numbers of mean 0 and standard deviation 1."""
        return self.normal(size=size, dtype=dtype)

    def halfnormal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """`loc + scale * abs(z)` of normal numbers `z` of mean 0 and standard deviation 1."""
        shape, (loc, scale) = shaped(size, (loc, checked_scale("halfnormal", scale)), "halfnormal")
        kind = float_dtype(dtype, (loc, scale), "halfnormal")
        return _moved(as_dtype(abs(self._normals(shape)), kind), loc, scale, kind)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """The exponentials of normal numbers of mean `mean` and standard deviation `sigma`."""
        shape, (mean, sigma) = shaped(size, (mean, checked_scale("lognormal", sigma, "sigma")), "lognormal")
        kind = float_dtype(dtype, (mean, sigma), "lognormal")
        return as_dtype(op(EXACT_EXP, _moved(self._normals(shape), mean, sigma, "float64")), kind)

    def exponential(self, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Exponential numbers of mean `scale`: the inverse distribution function."""
        return self._moved_words(EXPONENTIAL_OF, 0.0, scale, size, dtype, "exponential")

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Gumbel numbers, the law of greatest values, exp(-exp(-(x - loc) / scale)): the inverse distribution function."""
        return self._moved_words(GUMBEL_OF, loc, scale, size, dtype, "gumbel")

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Laplace (double exponential) numbers: an exponential one with a random sign."""
        return self._moved_words(LAPLACE_OF, loc, scale, size, dtype, "laplace")

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Logistic numbers: the inverse distribution function."""
        return self._moved_words(LOGISTIC_OF, loc, scale, size, dtype, "logistic")

    def cauchy(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Cauchy numbers of median `loc`: the tangents of uniform angles."""
        return self._moved_words(CAUCHY_OF, loc, scale, size, dtype, "cauchy")

    def _moved_words(self, card: Card, loc: Any, scale: Any, size: Any, dtype: Any, what: str) -> Variable:
        """loc + scale * x, for the numbers x that `card` makes from words."""
        shape, (loc, scale) = shaped(size, (loc, checked_scale(what, scale)), what)
        kind = float_dtype(dtype, (loc, scale), what)
        return _moved(as_dtype(op(card, self._words(shape)), kind), loc, scale, kind)

    def weibull(self, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Weibull numbers: powers of exponential ones, E**(1 / shape)."""
        shape = checked("weibull", "shape", shape, "above 0", lambda x: x > 0)
        lengths, (power, factor) = shaped(size, (shape, checked_scale("weibull", scale)), "weibull")
        kind = float_dtype(dtype, (shape, scale), "weibull")
        exponential = op(EXPONENTIAL_OF, self._words(lengths))
        return _moved(as_dtype(op(EXACT_EXP, op(EXACT_LOG, exponential) / power), kind), as_variable(0.0), factor, kind)

    def pareto(self, b: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Pareto numbers from `scale` on, of density b scale**b / x**(b + 1): powers of exponential ones. Differentiable in both.

        As PyTensor and SciPy have them; NumPy's `pareto` gives x / scale - 1.
        """
        b = checked("pareto", "b", b, "above 0", lambda x: x > 0)
        shape, (power, factor) = shaped(size, (b, checked_scale("pareto", scale)), "pareto")
        kind = float_dtype(dtype, (b, scale), "pareto")
        numbers = op(EXACT_EXP, op(EXPONENTIAL_OF, self._words(shape)) / power)
        return _moved(as_dtype(numbers, kind), as_variable(0.0), factor, kind)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None, dtype: Any = None) -> Variable:
        """Numbers from `left` to `right` whose density is a triangle with its top at `mode`: the inverse distribution function.

        Differentiable in all three.
        """
        left, mode, right = as_real(left), as_real(mode), as_real(right)
        right = checked("triangular", "right", right, "above left, and finite", lambda x: (x > left) & (x < np.inf))
        mode = checked("triangular", "mode", mode, "from left to right", lambda x: (x >= left) & (x <= right))
        left = checked("triangular", "left", left, "finite, and right - left too", lambda x: right - x < np.inf)
        shape, (left, mode, right) = shaped(size, (left, mode, right), "triangular")
        kind = float_dtype(dtype, (left, mode, right), "triangular")
        u, width = self._uniforms(shape, "float64"), right - left
        below, above = (mode - left) / width, (right - mode) / width  # the shares of both sides
        from_left, from_right = product(width, sqrt(product(u, below))), product(width, sqrt(product(1.0 - u, above)))
        return as_dtype(where(u < below, left + from_left, right - from_right), kind)

    # by rejection -----------------------------------------------------------------------------------------------------

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Gamma numbers of mean shape * scale: Marsaglia & Tsang (2000). Differentiable in `scale`."""
        shape = checked("gamma", "shape", shape, "at least 0, and finite", _is_shape)
        lengths, (a, factor) = shaped(size, (shape, checked_scale("gamma", scale)), "gamma")
        kind = float_dtype(dtype, (shape, scale), "gamma")
        return _moved(as_dtype(self._by_element(RANDOM_GAMMA, lengths, a), kind), as_variable(0.0), factor, kind)

    def invgamma(self, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Inverse gamma numbers, of density scale**shape / gamma(shape) x**(-shape - 1) exp(-scale / x): scale over gamma numbers.

        Their mean is scale / (shape - 1). Differentiable in `scale`.
        """
        shape = checked("invgamma", "shape", shape, "above 0, and finite", _is_size)
        lengths, (a, factor) = shaped(size, (shape, checked_scale("invgamma", scale)), "invgamma")
        kind = float_dtype(dtype, (shape, scale), "invgamma")
        return _moved(as_dtype(1.0 / self._by_element(RANDOM_GAMMA, lengths, a), kind), as_variable(0.0), factor, kind)

    def chisquare(self, df: Any, size: Any = None, dtype: Any = None) -> Variable:
        """Sums of squares of `df` normal numbers: twice a gamma number of shape df / 2."""
        df = checked("chisquare", "df", df, "at least 0, and finite", _is_shape)
        lengths, (df,) = shaped(size, (df,), "chisquare")
        return as_dtype(product(2.0, self._by_element(RANDOM_GAMMA, lengths, df / 2.0)), float_dtype(dtype, (df,), "chisquare"))

    def t(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Student's t: a normal number over the root of a chi-square one by its degrees of freedom. Differentiable in loc and scale."""
        df = checked("t", "df", df, "above 0, and finite", lambda x: (x > 0) & (x < np.inf))
        lengths, (df, loc, scale) = shaped(size, (df, loc, checked_scale("t", scale)), "t")
        kind = float_dtype(dtype, (df, loc, scale), "t")
        half = self._by_element(RANDOM_GAMMA, lengths, df / 2.0)
        return _moved(as_dtype(product(self._normals(lengths), sqrt(df / 2.0 / half)), kind), loc, scale, kind)

    standard_t = t

    def beta(self, a: Any, b: Any, size: Any = None, dtype: Any = None) -> Variable:
        """Beta numbers: x / (x + y) of gamma numbers x and y, by their logarithms where a shape is below 1."""
        a, b = (checked("beta", name, x, "above 0, and finite", lambda x: (x > 0) & (x < np.inf)) for name, x in (("a", a), ("b", b)))
        lengths, (a, b) = shaped(size, (a, b), "beta")
        return as_dtype(self._by_element(RANDOM_BETA, lengths, a, b), float_dtype(dtype, (a, b), "beta"))

    def vonmises(self, mu: Any, kappa: Any, size: Any = None, dtype: Any = None) -> Variable:
        """Angles from -pi to pi around `mu`, of density exp(kappa cos(x - mu)) / (2 pi i0(kappa)): Best & Fisher (1979).

        Differentiable in `mu`.
        """
        mu = checked("vonmises", "mu", mu, "finite", lambda x: abs(x) < np.inf)
        kappa = checked("vonmises", "kappa", kappa, "at least 0, and finite", _is_shape)
        shape, (mu, kappa) = shaped(size, (mu, kappa), "vonmises")
        kind = float_dtype(dtype, (mu, kappa), "vonmises")
        angle = _moved(self._by_element(RANDOM_VONMISES, shape, kappa), mu, as_variable(1.0), "float64")
        turns = np.floor(angle / (2.0 * np.pi) + 0.5)
        return as_dtype(angle if _is(mu, 0.0) else angle - product(2.0 * np.pi, turns), kind)

    def wald(self, mean: Any = 1.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Wald (inverse Gaussian) numbers of mean `mean` and variance mean**3 / scale: Michael, Schucany & Haas (1976)."""
        mean = checked("wald", "mean", mean, "above 0, and finite", _is_size)
        scale = checked("wald", "scale", scale, "above 0, and finite", _is_size)
        shape, (mean, scale) = shaped(size, (mean, scale), "wald")
        return as_dtype(self._by_element(RANDOM_WALD, shape, mean, scale), float_dtype(dtype, (mean, scale), "wald"))

    # vectors ----------------------------------------------------------------------------------------------------------

    def dirichlet(self, alpha: Any, size: Any = None, dtype: Any = None) -> Variable:
        """Vectors of positive numbers whose sum is 1: gamma numbers by their sum. `alpha` has them along its last axis."""
        alpha = checked("dirichlet", "alpha", alpha, "above 0, and finite", lambda x: (x > 0) & (x < np.inf))
        alpha, shape = _rows(alpha, size, "dirichlet")
        unit = _gamma_unit(alpha)
        logs = self._by_element(RANDOM_LOG_GAMMA, shape, alpha) + op(EXACT_LOG, unit / unit.max(axis=-1, keepdims=True))
        gammas = op(EXACT_EXP, logs - logs.max(axis=-1, keepdims=True))
        return as_dtype(gammas / gammas.sum(axis=-1, keepdims=True), float_dtype(dtype, (alpha,), "dirichlet"))

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, dtype: Any = None) -> Variable:
        """Normal vectors: mean + L z with the lower triangle L of the positive definite `cov` = L L'. Differentiable in both.

        Raises LinAlgError for a matrix that is not positive definite.
        """
        lower = np.linalg.cholesky(as_variable(cov))
        mean, shape = _rows(as_variable(mean), size, "multivariate_normal")
        kind = float_dtype(dtype, (mean, cov), "multivariate_normal")
        moved: Any = self._normals(shape) @ np.swapaxes(lower, -1, -2)
        return as_dtype(mean + op(CONTRACT, *map(Variable, moved.node.inputs), **moved.node.params, rounded=True), kind)


def _may_reach(low: Variable, high: Variable, dtype: str) -> bool:
    """True if rounding may take low + u (high - low) to `high` for the greatest u < 1, and if the bounds are not known."""
    bounds = constant_value(low.node), constant_value(high.node)
    if bounds[0] is None or bounds[1] is None:
        return True
    number = np.dtype(dtype).type
    greatest = number(1) - np.finfo(dtype).epsneg
    for of in (np.float64, number):  # computed in doubles, as for Python's numbers, and in the dtype, as for arrays
        start, end = (np.asarray(bound, of) for bound in bounds)
        if not ((of(greatest) * (end - start)).astype(dtype) + start.astype(dtype) < end.astype(dtype)).all():
            return True
    return False


def _gamma_unit(shape: Variable) -> Variable:
    """The unit of RANDOM_LOG_GAMMA, which draws log(x / unit) for gamma numbers x."""
    return where(shape < 1.0, shape + 1.0, shape) - 1 / 3


def _is_size(x: Any) -> Any:
    return (x > 0) & (x < np.inf)


def _is_shape(x: Any) -> Any:
    return (x >= 0) & (x < np.inf)


def _rows(parameter: Variable, size: Any, what: str) -> tuple[Variable, tuple[Any, ...]]:
    """A parameter with a last axis of components, and the shape of a draw: `size`, then that axis."""
    if not parameter.ndim:
        raise ValueError(f"{what}: the parameter is a scalar; it needs a last axis of components")
    lead, _ = shaped(size, (parameter[..., 0],), what)
    return parameter, (*lead, parameter.shape[-1])


def _moved(base: Variable, loc: Variable, scale: Variable, dtype: str) -> Variable:
    """loc + scale * base, without operations that change nothing."""
    if not _is(scale, 1.0):
        base = as_dtype(product(base, scale), dtype)
    return base if _is(loc, 0.0) else as_dtype(base + loc, dtype)


def _is(x: Variable, number: float) -> bool:
    known = constant_value(x.node)
    return known is not None and known.ndim == 0 and float(known) == number


entries(globals(), __all__)
