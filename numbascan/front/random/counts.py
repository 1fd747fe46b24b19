"""Distributions over whole numbers and over choices: the part of `RandomStream` that has no derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.random import (
    DRAWN_BY,
    EXPONENTIAL_OF,
    GEOMETRIC_OF,
    RANDOM_BELOW,
    RANDOM_BINOMIAL,
    RANDOM_GAMMA,
    RANDOM_HYPERGEOMETRIC,
    RANDOM_POISSON,
)
from ...types import dtype_name
from ..draw_scopes import take
from ..numpy.choices import where
from ..numpy.creation import arange
from ..numpy.math import sqrt
from ..numpy.shape import moveaxis, reshape, specify_shape
from ..numpy.shape_arguments import count_of
from ..scan.scan import scan
from ..variable import Variable, as_variable, at_line, constant_value, op
from .base_draws import BaseDraws, as_dtype, checked, product, shaped

MOST = 2.0**53  # whole numbers up to here are doubles


def _is_probability(x: Any) -> Any:
    return (x >= 0) & (x <= 1)


def _count(what: str, name: str, number: Any) -> Variable:
    """A count as a double, so that sums do not wrap. ValueError if it is negative, beyond 2**53 or not whole."""
    number = as_variable(number)
    if number.type.kind == "f":
        number = checked(what, name, number, "a whole number", lambda x: x == np.floor(x))
    return as_dtype(checked(what, name, number, "from 0 to 2**53", lambda x: (x >= 0) & (x <= MOST)), "float64")


def _greatest(dtype: Any) -> float:
    """The greatest whole number up to 2**53 that a dtype holds."""
    name = dtype_name(dtype)
    kind = np.dtype(name).kind
    return min(1 if kind == "b" else np.iinfo(name).max if kind in "iu" else MOST, MOST)


def _held(what: str, name: str, number: Any, dtype: Any) -> Any:
    """`number`, the greatest possible draw. ValueError if `dtype` does not hold it."""
    most = _greatest(dtype)
    rule = f"at most {most}, the greatest number of dtype {np.dtype(dtype).name}"
    return number if most == MOST else checked(what, name, number, rule, lambda x: x <= most)


def _any_number(what: str, dtype: Any) -> Any:
    """The dtype of an unbounded draw. ValueError if it does not hold all whole numbers up to 2**53."""
    if _greatest(dtype) < MOST:
        name = np.dtype(dtype).name
        raise ValueError(f"{what}: dtype is {name}{at_line()}, which does not hold every number that may be drawn; use int64 or float64")
    return dtype


def _bound(name: str, bound: Any, less: int, kind: str, ends: np.iinfo[Any]) -> Variable:
    """A bound of `integers` minus `less` (0 or 1), in dtype `kind`: the least or greatest possible result. ValueError outside `ends`."""
    low, high = int(ends.min), int(ends.max)
    rule = f"from {low + less} to {high + less} for dtype {ends.dtype}"
    if isinstance(bound, (int, np.integer)):  # of any size
        number = int(bound) - less
        if not low <= number <= high:
            raise ValueError(f"integers: {name} is {bound}{at_line()}; it must be {rule}")
        return as_variable(np.dtype(kind).type(number))
    variable = as_variable(bound)
    own = np.iinfo(variable.dtype) if variable.type.kind in "iu" else np.iinfo("int64")
    if own.min < low + less or own.max > high + less:
        variable = checked("integers", name, variable, rule, lambda x: (x >= low + less) & (x <= high + less))
    variable = as_dtype(variable, kind)
    return variable - less if less else variable


class Counts(BaseDraws):
    """Draws of whole numbers."""

    def bernoulli(self, p: Any = 0.5, size: Any = None, dtype: Any = "int64") -> Variable:
        """1 with probability `p`, else 0."""
        p = checked("bernoulli", "p", p, "from 0 to 1", _is_probability)
        shape, (p,) = shaped(size, (p,), "bernoulli")
        return as_dtype(self._uniforms(shape, "float64") < op(DRAWN_BY, p), dtype)

    def binomial(self, n: Any = 1, p: Any = 0.5, size: Any = None, dtype: Any = "int64") -> Variable:
        """How many of `n` trials of probability `p` succeed: Hoermann's BTRS (1993), search where n p or n (1 - p) is below 10.

        One trial, known as such, is `bernoulli`.
        """
        if isinstance(n, (int, np.integer)) and n == 1:
            return self.bernoulli(p, size, dtype)
        p = checked("binomial", "p", p, "from 0 to 1", _is_probability)
        n = _held("binomial", "n", _count("binomial", "n", n), dtype)
        shape, (n, p) = shaped(size, (n, p), "binomial")
        return as_dtype(self._by_element(RANDOM_BINOMIAL, shape, n, p), dtype)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None, dtype: Any = "int64") -> Variable:
        """How many good ones are among `nsample` drawn without replacement from `ngood` and `nbad`: Stadlober (1990), search below a mean
        of 10."""
        ngood, nbad, nsample = (_count("hypergeometric", name, x) for name, x in (("ngood", ngood), ("nbad", nbad), ("nsample", nsample)))
        nbad = checked("hypergeometric", "nbad", nbad, "at most 2**53 - ngood", lambda x: x <= MOST - ngood)
        nsample = checked("hypergeometric", "nsample", nsample, "at most ngood + nbad", lambda x: x <= ngood + nbad)
        nsample = _held("hypergeometric", "nsample", nsample, dtype)
        shape, (ngood, nbad, nsample) = shaped(size, (ngood, nbad, nsample), "hypergeometric")
        return as_dtype(self._by_element(RANDOM_HYPERGEOMETRIC, shape, ngood, nbad, nsample), dtype)

    def poisson(self, lam: Any = 1.0, size: Any = None, dtype: Any = "int64") -> Variable:
        """Poisson numbers of mean `lam`: Hoermann's PTRS (1993), search below 10."""
        lam = checked("poisson", "lam", lam, "from 0 to 2**53", lambda x: (x >= 0) & (x <= MOST))
        shape, (lam,) = shaped(size, (lam,), "poisson")
        return as_dtype(self._by_element(RANDOM_POISSON, shape, lam), _any_number("poisson", dtype))

    def negative_binomial(self, n: Any, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
        """How many trials of probability `p` fail before `n` succeed: Poisson numbers whose means are gamma numbers."""
        n = checked("negative_binomial", "n", n, "above 0, and finite", lambda x: (x > 0) & (x < np.inf))
        p = checked("negative_binomial", "p", p, "above 0, and at most 1", lambda x: (x > 0) & (x <= 1))
        failures = (1.0 - p) / p  # for each success
        rule = "such that at most 2**53 failures are likely"
        failures = checked("negative_binomial", "(1 - p) / p", failures, rule, lambda x: (n + 10.0 * sqrt(n)) * x <= MOST)
        shape, (n, failures) = shaped(size, (n, failures), "negative_binomial")
        mean = product(self._by_element(RANDOM_GAMMA, shape, n), failures)
        return as_dtype(self._by_element(RANDOM_POISSON, shape, mean), _any_number("negative_binomial", dtype))

    nbinom = negative_binomial

    def geometric(self, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
        """How many trials of probability `p` it takes until one succeeds: the inverse distribution function."""
        p = checked("geometric", "p", p, "above 0, and at most 1", lambda x: (x > 0) & (x <= 1))
        shape, (p,) = shaped(size, (p,), "geometric")
        return as_dtype(op(GEOMETRIC_OF, self._words(shape), p), _any_number("geometric", dtype))

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = "int64", endpoint: bool = False) -> Variable:
        """Whole numbers from `low` up to, not including, `high` (one argument is `high`), all equally likely: Lemire (2019).

        endpoint: `high` is among them.
        """
        low, high = (0, low) if high is None else (low, high)
        kind = "uint64" if np.dtype(dtype) == np.uint64 else "int64"
        ends = np.iinfo(kind if np.dtype(dtype).kind not in "iu" else dtype)
        low, high = _bound("low", low, 0, kind, ends), _bound("high", high, 0 if endpoint else 1, kind, ends)
        span = checked("integers", "high" if endpoint else "high - 1", high, "at least low", lambda last: last >= low) - low
        shape, (low, span) = shaped(size, (low, span), "integers")
        return as_dtype(low + as_dtype(self._by_element(RANDOM_BELOW, shape, as_dtype(span, "uint64") + np.uint64(1)), kind), dtype)

    randint = integers

    def categorical(self, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
        """Positions along the last axis of `p`, each as likely as its entry says, relative to their sum."""
        weights = checked("categorical", "p", p, "at least 0, and finite", lambda x: (x >= 0) & (x < np.inf))
        if not weights.ndim:
            raise ValueError(f"categorical: p is a scalar{at_line()}; it needs a last axis of probabilities")
        weights = as_dtype(weights, "float64")
        top: Any = weights.max(axis=-1, keepdims=True)  # scaled by it, sums neither overflow nor lose bits to subnormals
        sums: Any = op(DRAWN_BY, np.cumsum(weights / where(top > 0.0, top, 1.0), axis=-1))
        total = checked("categorical", "the sum of p", sums[..., -1], "above 0", lambda x: x > 0)
        shape, (total,) = shaped(size, (total,), "categorical")
        u = product(self._uniforms(shape, "float64"), total)
        last = _held("categorical", "the last position", as_variable(weights.shape[-1]) - 1, dtype)
        category: Any = np.searchsorted(sums, u, side="right") if weights.ndim == 1 else (sums <= u[..., None]).sum(axis=-1)
        return as_dtype(np.minimum(category, last), dtype)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Variable:
        """Rows of an array `a`, or numbers below an int `a`: with replacement or without, with probabilities `p` or all alike.

        ValueError where `p` does not add up to 1, or where there are fewer rows (of p above 0) than are drawn without replacement.
        Without replacement those rows come first whose clocks ring first: exponential waiting times of rate p (Efraimidis & Spirakis 2006).
        """
        rows = as_variable(a)
        n = rows.shape[0] if rows.ndim else a
        shape, _ = shaped(() if size is None else size, (), "choice")
        least = 1 if replace else count_of(shape)
        if p is None:
            n = self._of_enough(n, least)
        else:
            p = self._probabilities(p, n, least)
        if replace:
            places = self.integers(0, n, shape) if p is None else self.categorical(p, shape)
        else:
            places = reshape(self._order(n, p)[: count_of(shape)], shape)
        return rows[places] if rows.ndim else places

    @staticmethod
    def _of_enough(n: Any, least: Any) -> Any:
        """The number of rows, if it is large enough for a choice."""
        rule = f"at least {least}, what is drawn" if isinstance(least, int) else "at least what is drawn"
        number = checked("choice", "the number of rows", n, rule, lambda n: n >= least)
        return n if constant_value(number.node) is not None else number

    @staticmethod
    def _probabilities(p: Any, n: Any, least: Any) -> Variable:
        """The probabilities of a choice among n rows. ValueError unless they add up to 1, as in NumPy, and `least` are above 0."""
        p = specify_shape(as_variable(p), (n,))
        nearly = float(np.sqrt(np.finfo(p.dtype if p.dtype == np.float32 else np.float64).eps))
        p = checked("choice", "p", p, "at least 0, with the sum 1", lambda x: (x >= 0) & (abs(x.sum() - 1) <= nearly))
        rule = "above 0 in as many places as are drawn without replacement"
        return checked("choice", "p", p, rule, lambda x: (x > 0).sum() >= least)

    def _order(self, n: Any, p: Any) -> Variable:
        """The numbers below n in random order; those of high p tend to come early."""
        if p is None:
            keys = self._words((n,))
        else:
            keys = op(EXPONENTIAL_OF, self._words((n,))) / op(DRAWN_BY, p)
        order: Any = np.argsort(keys)
        return as_variable(order)

    def permutation(self, x: Any) -> Variable:
        """The rows of an array in random order, or the numbers below an int: the order of random words of 64 bits."""
        rows = as_variable(x)
        return rows[self._order(rows.shape[0], None)] if rows.ndim else self._order(x, None)

    def multinomial(self, n: Any, p: Any, size: Any = None, dtype: Any = "int64") -> Variable:
        """How `n` trials fall on the places along the last axis of `p`: one binomial number after the other, of those that are left."""
        weights = as_dtype(checked("multinomial", "p", p, "at least 0, and finite", lambda x: (x >= 0) & (x < np.inf)), "float64")
        n = _held("multinomial", "n", _count("multinomial", "n", n), dtype)
        top: Any = weights.max(axis=-1, keepdims=True)  # as for `categorical`
        columns = moveaxis(weights / where(top > 0.0, top, 1.0), -1, 0)
        sums: Any = np.cumsum(columns[::-1], axis=0)[::-1]
        rest = checked("multinomial", "the sum of p", sums, "above 0", lambda x: x[0] > 0)
        shape, (n, *_) = shaped(size, (n, weights[..., 0]), "multinomial")
        key, number = take(self)
        count = count_of(shape)
        places = reshape(arange(count), shape)

        def step(share: Variable, k: Variable, left: Variable) -> Any:
            drawn = op(RANDOM_BINOMIAL, *key, number, places + k * count, left, share)
            return left - drawn, drawn

        shares = np.where(rest > 0, columns / np.where(rest > 0, rest, 1.0), 0.0)
        (_, counts), _ = scan(step, sequences=[shares, arange(columns.shape[0])], outputs_info=[n + 0.0 * places, None], name="multinomial")
        return as_dtype(moveaxis(counts, 0, -1), dtype)
