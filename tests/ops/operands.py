"""A small evaluator of lowerings on concrete arrays: what `plan/` and `emit/` make of a card, without either."""

import itertools
import math
import operator

import numpy as np

from numbascan.emit.text import expression
from numbascan.ir.loops import Apply, Load, Name, Template, compare
from numbascan.ops.card import evaluate
from numbascan.ops.lowering import Fold, Generate, Passes, View
from numbascan.types import TensorType


def cast(expr, dtype):
    return expr if expr.dtype == dtype else Apply(dtype, Template(f"np.{'bool_' if dtype == 'bool' else dtype}({{0}})"), (expr,))


class ConcreteOperands:
    """`ops.lowering.Operands` over arrays. `known`: dimensions are numbers; else they are names that only the evaluation resolves."""

    def __init__(self, card, arrays, attrs, known):
        self.card, self.attrs = card, attrs
        self.arrays = [np.asarray(array) for array in arrays]
        self.types = tuple(TensorType(x.dtype.name, tuple(n if known or n == 1 else None for n in x.shape)) for x in self.arrays)
        self.out = card.infer(*self.types, **attrs)
        self.env = {
            "np": np,
            "math": math,
            "add_any_order": operator.add,
            "max_or_nan": np.maximum,
            "min_or_nan": np.minimum,
            "wrapping_add": np.add,
            "wrapping_mul": np.multiply,
        }
        for k, array in enumerate(self.arrays):
            self.env[f"x{k}"] = array if array.ndim else array[()]
            self.env |= {f"x{k}_dim{axis}": n for axis, n in enumerate(array.shape)}

    def dims(self, k):
        return tuple(Name("int64", f"x{k}_dim{axis}") if n is None else n for axis, n in enumerate(self.types[k].shape))

    def at(self, k, index=(), dtype=None):
        own = self.types[k].dtype
        element = Load(own, f"x{k}", tuple(index)) if self.types[k].rank else Name(own, f"x{k}")
        return element if dtype is None else cast(element, dtype)

    def chosen(self, condition, yes, no):
        return yes() if self.value(condition) else no()

    def short(self, number):
        return number

    def known(self, number):
        return number

    def scalar(self, k):
        return Name("int64", f"x{k}")

    def check(self, condition, error, message, *numbers):
        if not self.value(condition):
            raise {"ValueError": ValueError, "IndexError": IndexError, "ZeroDivisionError": ZeroDivisionError}[error](
                message.format(*map(self.value, numbers))
            )

    def same(self, a, b, error, message, unless=None):
        if unless is None or not self.value(unless):
            self.check(compare("==", a, b), error, message, a, b)

    def broadcasts(self, dim, extent, error, message):
        self.same(extent, dim, error, message)

    def stretches(self, dim, extent):
        return False  # as of all names, of which nothing is known

    def value(self, expr):
        with np.errstate(all="ignore"):
            return eval(expression(expr), dict(self.env))

    def indices(self, dims, named):
        """Every index of a box: as numbers, or as names of loops that hold these numbers."""
        for index in itertools.product(*(range(self.value(dim)) for dim in dims)):
            self.env |= {f"i{k}": i for k, i in enumerate(index)}
            yield index, tuple(Name("int64", f"i{k}") for k in range(len(index))) if named else index


def lowered(card, arrays, attrs, known=True, named=True):
    """The card's result, computed as its lowering says."""
    view = ConcreteOperands(card, arrays, attrs, known)
    with np.errstate(all="ignore"):
        if isinstance(card.lower, Fold):
            return _folded(view, card.lower)
        dims = card.lower.dims(view)
        result = np.zeros(tuple(view.value(dim) for dim in dims), view.out.dtype)
        if isinstance(card.lower, Passes):
            for one in card.lower.passes(view):
                _run(view, one, result, named)
            return result
        for index, where in view.indices(dims, named):
            if isinstance(card.lower, View):
                result[index] = view.value(view.at(0, card.lower.index(view, where)))
            else:
                assert isinstance(card.lower, Generate)
                result[index] = view.value(card.lower.element(view, where))
    return result


def _run(view, one, result, named):
    for _, where in view.indices(one.counts, named):
        place = tuple(view.value(i) for i in one.place(where))
        assert all(0 <= i < n for i, n in zip(place, result.shape, strict=True))
        value = view.value(one.element(where))
        result[place] = result[place] + value if one.combine else value


def _folded(view, fold):
    x, axes = view.arrays[0], view.attrs["axis"]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    dtype = fold.loop(view.types[0])
    total = Name(dtype, "total")
    result = np.zeros(x.shape if fold.cumulative else [x.shape[axis] for axis in kept], view.out.dtype)
    for outer in itertools.product(*(range(x.shape[axis]) for axis in kept)):
        _set(view, total, fold.start(dtype))
        seen = []
        for index in itertools.product(*(range(x.shape[axis]) for axis in axes)):
            where = dict(zip((*kept, *axes), (*outer, *index), strict=True))
            full = tuple(where[axis] for axis in range(x.ndim))
            element = cast(view.at(0, full), dtype)
            seen.append(view.value(element))
            _set(view, total, fold.step(total, element))
            if fold.cumulative:
                result[full] = view.value(total)
        if fold.is_place:
            result[outer] = next(k for k, one in enumerate(seen) if one == view.value(total) or one != one)
        elif not fold.cumulative:
            result[outer] = view.value(total)
    return (
        result
        if fold.cumulative
        else result.reshape([1 if axis in axes else n for axis, n in enumerate(x.shape)] if view.attrs["keepdims"] else result.shape)
    )


def _set(view, name, expr):
    """The accumulator's next value."""
    view.env[name.name] = np.dtype(name.dtype).type(view.value(expr))


def oracle(card, arrays, attrs):
    """The card's result by NumPy, in the dtype that is inferred."""
    arrays = [np.asarray(array) for array in arrays]
    types = tuple(TensorType(array.dtype.name, array.shape) for array in arrays)
    (result,) = evaluate(card, (card.infer(*types, **attrs),), types, arrays, attrs)
    return result


def assert_lowered_as_evaluated(card):
    """Each sample: lowering == evaluate, with known dimensions and unknown ones, at numbers and at names of loops."""
    samples = card.samples()
    assert samples
    for arrays, attrs in samples:
        expected = oracle(card, arrays, attrs)
        for known, named in itertools.product((True, False), (True, False)):
            actual = lowered(card, arrays, attrs, known, named)
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=1e-6 if expected.dtype.name in ("float32", "complex64") else 1e-14)
            inferred = ConcreteOperands(card, arrays, attrs, known).out
            assert all(dim in (None, n) for dim, n in zip(inferred.shape, expected.shape, strict=True))
