"""`nt.random`: streams of random numbers."""

from __future__ import annotations

from typing import Any

from ..ir.node import constant_value
from .draws import Stream, _as, check_known, float_dtype, shaped
from .variable import Variable, as_variable

__all__ = ["RandomStream"]


class RandomStream(Stream):
    """Random numbers as parts of graphs and of steps. Every draw is a function of the seed, of which draw it is, and of its position.

    Argument: seed, an int from 0 to 2**64 - 1; None: one that the system gives.

    A method makes one more draw. In a graph its state is carried on by the updates that `ns.scan` returns, or `stream.updates()`; without
    them a function repeats its draws. A ScanFunction carries it on by itself.

    `size`: the shape, an int or a sequence of ints, which may be traced; None: that of the parameters, which broadcast. `dtype`: float64,
    or float32 if asked for, or if all parameters are float32.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> srng = nt.random.RandomStream(1234)
    >>> roll = ns.function([], srng.uniform(size=2), updates=srng.updates())
    >>> roll(), roll()
    """

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Numbers between `low` and `high`. The words of Philox's counter, as NumPy turns them into doubles; differentiable in both."""
        shape, (low, high) = shaped(size, (low, high), "uniform")
        kind = float_dtype(dtype, (low, high), "uniform")
        return _moved(self._uniforms(shape, kind), low, high - low, kind)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Variable:
        """Normal numbers of mean `loc` and standard deviation `scale`, by Box & Muller's method (1958); differentiable in both."""
        check_known("normal", "at least 0", lambda x: x >= 0, scale=scale)
        shape, (loc, scale) = shaped(size, (loc, scale), "normal")
        kind = float_dtype(dtype, (loc, scale), "normal")
        return _moved(_as(self._normals(shape), kind), loc, scale, kind)


def _moved(base: Variable, loc: Variable, scale: Variable, dtype: str) -> Variable:
    """loc + scale * base, without what does nothing."""
    if not _is(scale, 1.0):
        base = _as(base * scale, dtype)
    return base if _is(loc, 0.0) else _as(base + loc, dtype)


def _is(x: Variable, number: float) -> bool:
    known = constant_value(as_variable(x).node)
    return known is not None and known.ndim == 0 and float(known) == number
