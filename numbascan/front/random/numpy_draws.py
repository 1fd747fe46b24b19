"""The methods of NumPy's generators on streams: NumPy's arguments and dtypes, and Python numbers where NumPy returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.card import card_named
from ..numpy.joining import concatenate
from ..plain.stores import set_item
from ..variable import Variable, as_variable, at_line, op
from .base_draws import as_dtype, as_real, checked, shaped
from .random_stream import RandomStream

_DOUBLE = "float64"


def _scale(what: str, scale: Any, name: str = "scale") -> Variable:
    """The scale. ValueError if it is negative: now if that is known, else at the run."""
    return checked(what, name, scale, "at least 0", lambda x: np.logical_not(x < 0))


def _positive(what: str, name: str, parameter: Any) -> Variable:
    return checked(what, name, parameter, "above 0", lambda x: x > 0)


def _number(x: Variable, size: Any) -> Variable:
    """The draw; without a size a scalar is a Python number, which gives way to the dtype of arrays."""
    if size is not None or x.ndim:
        return x
    return op(card_named("python_number"), as_dtype(x, "int64" if x.type.kind in "iu" else _DOUBLE))


def _without_out(out: Any) -> None:
    if out is not None:
        raise TypeError(f"out= of a draw in a traced function{at_line()}; write x[...] = rng.random(x.shape)")


def _along_first(ndim: int, axis: Any, what: str) -> None:
    if axis != 0 and ndim > 1:
        raise TypeError(f"{what} along axis {axis} in a traced function{at_line()}; it takes axis 0, turn the array (np.swapaxes)")


class Draws:
    """The methods that both kinds of NumPy's generators have, with NumPy's names, parameters and defaults."""

    def __init__(self, stream: RandomStream) -> None:
        self._stream = stream

    # real numbers -----------------------------------------------------------------------------------------------------

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Variable:
        low, high = as_real(low), as_real(high)
        high = checked("uniform", "high", high, "such that high - low is finite", lambda x: abs(x - low) < np.inf)
        return _number(self._stream.uniform(low, high, size, _DOUBLE), size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.normal(loc, _scale("normal", scale), size, _DOUBLE), size)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.lognormal(mean, _scale("lognormal", sigma, "sigma"), size, _DOUBLE), size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.exponential(_scale("exponential", scale), size, _DOUBLE), size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.gumbel(loc, _scale("gumbel", scale), size, _DOUBLE), size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.laplace(loc, _scale("laplace", scale), size, _DOUBLE), size)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.logistic(loc, _scale("logistic", scale), size, _DOUBLE), size)

    def standard_cauchy(self, size: Any = None) -> Variable:
        return _number(self._stream.cauchy(0.0, 1.0, size, _DOUBLE), size)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Variable:
        x = as_real(_scale("rayleigh", scale))
        return _number(as_variable(np.sqrt(self._stream.exponential(2.0 * x * x, size, _DOUBLE))), size)

    def weibull(self, a: Any, size: Any = None) -> Variable:
        return _number(self._stream.weibull(a, 1.0, size, _DOUBLE), size)

    def pareto(self, a: Any, size: Any = None) -> Variable:
        return _number(as_variable(np.expm1(self._stream.exponential(1.0 / _positive("pareto", "a", a), size, _DOUBLE))), size)

    def power(self, a: Any, size: Any = None) -> Variable:
        return _number(as_variable(np.exp(-self._stream.exponential(1.0 / _positive("power", "a", a), size, _DOUBLE))), size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Variable:
        return _number(self._stream.triangular(left, mode, right, size, _DOUBLE), size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.gamma(shape, _scale("gamma", scale), size, _DOUBLE), size)

    def beta(self, a: Any, b: Any, size: Any = None) -> Variable:
        return _number(self._stream.beta(a, b, size, _DOUBLE), size)

    def chisquare(self, df: Any, size: Any = None) -> Variable:
        return _number(self._stream.chisquare(_positive("chisquare", "df", df), size, _DOUBLE), size)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Variable:
        above, below = as_real(_positive("f", "dfnum", dfnum)), as_real(_positive("f", "dfden", dfden))
        lengths, (above, below) = shaped(size, (above, below), "f")
        one, other = (self._stream.chisquare(df, lengths, _DOUBLE) / df for df in (above, below))
        return _number(one / other, size)

    def standard_t(self, df: Any, size: Any = None) -> Variable:
        return _number(self._stream.t(df, 0.0, 1.0, size, _DOUBLE), size)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Variable:
        return _number(self._stream.vonmises(mu, kappa, size, _DOUBLE), size)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Variable:
        return _number(self._stream.wald(mean, scale, size, _DOUBLE), size)

    def dirichlet(self, alpha: Any, size: Any = None) -> Variable:
        return self._stream.dirichlet(alpha, size, _DOUBLE)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8, *, method: str = "svd"
    ) -> Variable:
        return self._stream.multivariate_normal(mean, cov, size, _DOUBLE)

    # whole numbers ----------------------------------------------------------------------------------------------------

    def binomial(self, n: Any, p: Any, size: Any = None) -> Variable:
        return _number(self._stream.binomial(n, p, size), size)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Variable:
        return _number(self._stream.negative_binomial(n, p, size), size)

    def geometric(self, p: Any, size: Any = None) -> Variable:
        return _number(self._stream.geometric(p, size), size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Variable:
        return _number(self._stream.poisson(lam, size), size)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Variable:
        return _number(self._stream.hypergeometric(ngood, nbad, nsample, size), size)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Variable:
        """Multinomial draws. The last entry of `pvals` is ignored, as in NumPy: it is 1 minus the sum of the others."""
        p = checked("multinomial", "pvals", pvals, "from 0 to 1", lambda x: (x >= 0) & (x <= 1))
        if not p.ndim:
            raise TypeError(f"multinomial: pvals is a number{at_line()}; give an array")
        first = as_dtype(p[..., :-1], _DOUBLE)
        total: Any = first.sum(axis=-1, keepdims=True)
        total = checked("multinomial", "the sum of pvals[:-1]", total, "at most 1", lambda x: x <= 1.0 + 1e-12)
        return self._stream.multinomial(n, concatenate([first, np.maximum(1.0 - total, 0.0)], axis=-1), size)

    def _integers(self, low: Any, high: Any, size: Any, dtype: Any, endpoint: bool) -> Variable:
        low, high = (0, low) if high is None else (low, high)
        for name, bound in (("low", low), ("high", high)):
            if as_variable(bound).type.kind not in "biu":
                raise TypeError(f"integers: {name} is no whole number{at_line()}; convert it, as int(x)")
        if np.dtype(dtype) != np.bool_:
            return self._stream.integers(low, high, size, dtype, bool(endpoint))
        low = checked("integers", "low", low, "at least 0 for bool", lambda x: x >= 0)
        high = checked("integers", "high", high, "at most that of bool", lambda x: x <= (1 if endpoint else 2))
        return as_dtype(self._stream.integers(low, high, size, "int64", bool(endpoint)), "bool")

    # orders -----------------------------------------------------------------------------------------------------------

    def _choice(self, a: Any, size: Any, replace: Any, p: Any) -> Variable:
        rows = as_variable(a)
        if not rows.ndim and rows.type.kind not in "iu":
            raise TypeError(f"choice: a is {a!r}{at_line()}; it must be an array, or a whole number")
        drawn = self._stream.choice(a if isinstance(a, (int, np.integer)) else rows, size, replace, p)
        return drawn if rows.ndim else _number(drawn, size)

    def _permutation(self, x: Any, axis: Any = 0) -> Variable:
        rows = as_variable(x)
        _along_first(rows.ndim, axis, "permutation")
        if not rows.ndim and rows.type.kind not in "iu":
            raise TypeError(f"permutation: x is {x!r}{at_line()}; it must be an array, or a whole number")
        return self._stream.permutation(x if isinstance(x, (int, np.integer)) else rows)

    def _shuffle(self, x: Any, axis: Any = 0) -> None:
        """Permutes the rows of an array in place."""
        if not isinstance(x, (np.ndarray, Variable)):
            raise TypeError(
                f"shuffle of a {type(x).__name__} in a traced function{at_line()}: only the run knows the order; shuffle an array, as of "
                "np.array"
            )
        _along_first(np.ndim(x), axis, "shuffle")
        set_item(self._stream.permutation(as_variable(x)), x, slice(None))


class GeneratorDraws(Draws):
    """`np.random.Generator`."""

    def random(self, size: Any = None, dtype: Any = _DOUBLE, out: Any = None) -> Variable:
        _without_out(out)
        return _number(self._stream.uniform(0.0, 1.0, size, dtype), size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Variable:
        low = as_real(low)
        return super().uniform(low, checked("uniform", "high", as_real(high), "at least low", lambda x: np.logical_not(x < low)), size)

    def standard_normal(self, size: Any = None, dtype: Any = _DOUBLE, out: Any = None) -> Variable:
        _without_out(out)
        return _number(self._stream.normal(0.0, 1.0, size, dtype), size)

    def standard_exponential(self, size: Any = None, dtype: Any = _DOUBLE, method: str = "zig", out: Any = None) -> Variable:
        _without_out(out)
        return _number(self._stream.exponential(1.0, size, dtype), size)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = _DOUBLE, out: Any = None) -> Variable:
        _without_out(out)
        return _number(self._stream.gamma(shape, 1.0, size, dtype), size)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = "int64", endpoint: bool = False) -> Variable:
        return self._integers(low, high, size, dtype, endpoint)

    def choice(self, a: Any, size: Any = None, replace: Any = True, p: Any = None, axis: Any = 0, shuffle: Any = True) -> Variable:
        _along_first(np.ndim(a), axis, "choice")
        return self._choice(a, size, replace, p)

    def permutation(self, x: Any, axis: Any = 0) -> Variable:
        return self._permutation(x, axis)

    def shuffle(self, x: Any, axis: Any = 0) -> None:
        self._shuffle(x, axis)

    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Variable:
        _without_out(out)
        rows = as_variable(x)
        if rows.ndim != 1 and axis is not None:
            raise TypeError(f"permuted along axis {axis} in a traced function{at_line()}; write rng.permutation for whole rows")
        return self._stream.permutation(rows.reshape(-1)).reshape(rows.shape)


class RandomStateDraws(Draws):
    """`np.random.RandomState`, and the functions of `np.random`."""

    def random_sample(self, size: Any = None) -> Variable:
        return _number(self._stream.uniform(0.0, 1.0, size, _DOUBLE), size)

    random = random_sample

    def rand(self, *size: Any) -> Variable:
        return self.random_sample(size or None)

    def randn(self, *size: Any) -> Variable:
        return self.standard_normal(size or None)

    def standard_normal(self, size: Any = None) -> Variable:
        return _number(self._stream.normal(0.0, 1.0, size, _DOUBLE), size)

    def standard_exponential(self, size: Any = None) -> Variable:
        return _number(self._stream.exponential(1.0, size, _DOUBLE), size)

    def standard_gamma(self, shape: Any, size: Any = None) -> Variable:
        return _number(self._stream.gamma(shape, 1.0, size, _DOUBLE), size)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Variable:
        drawn = self._integers(low, high, size, "int64" if dtype is int else "bool" if dtype is bool else dtype, False)
        return _number(drawn, size) if dtype is int else drawn

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Variable:
        low, high = (1, low) if high is None else (low, high)
        return self._integers(low, high, size, "int64", True)

    def choice(self, a: Any, size: Any = None, replace: Any = True, p: Any = None) -> Variable:
        if np.ndim(a) > 1:
            raise ValueError(f"a must be 1-dimensional{at_line()}")
        return self._choice(a, size, replace, p)

    def permutation(self, x: Any) -> Variable:
        return self._permutation(x)

    def shuffle(self, x: Any) -> None:
        self._shuffle(x)
