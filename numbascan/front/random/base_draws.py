"""Base draws, from which distributions are made: words, uniform and normal numbers, numbers by rejection; and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.node import constant_value
from ...ops.card import Card
from ...ops.elementwise import ROUNDED_MUL
from ...ops.random import (
    DRAW_PLACES,
    FEW,
    IN_RANGE,
    NORMAL_OF,
    RANDOM_BITS,
    RANDOM_NORMAL,
    RANDOM_NORMALS,
    RANDOM_WORDS,
    SINGLE,
    SINGLE_UNIFORM_OF,
    UNIFORM_OF,
    whole_draw,
)
from ...ops.runtime_attributes import sized
from ...types import numpy_dtype
from ..draw_scopes import Stream, take
from ..numpy.shape import broadcast_sizes, broadcast_to, reshape
from ..numpy.shape_arguments import count_of, sizes_of, value_of
from ..variable import Variable, as_variable, at_line, op

Shape = tuple[Any, ...]  # ints, and traced integers where only the run knows
SHORT = 16  # elements of a row
FLOATS = ("float32", "float64")


class BaseDraws(Stream):
    """The draws of a stream from which distributions are made."""

    def _words(self, shape: Shape) -> Variable:
        """Random words of 64 bits."""
        return self._draw(shape, RANDOM_BITS, RANDOM_WORDS)

    def _uniforms(self, shape: Shape, dtype: str) -> Variable:
        """Numbers in [0, 1)."""
        if dtype == "float64":
            return op(UNIFORM_OF, self._words(shape))
        return as_dtype(op(SINGLE_UNIFORM_OF, self._words(shape)), dtype)

    def _normals(self, shape: Shape) -> Variable:
        """Normal numbers of mean 0 and variance 1: a scalar from one word, the elements of an array in pairs from two words."""
        return self._draw(shape, RANDOM_NORMAL, RANDOM_NORMALS) if shape else op(NORMAL_OF, self._words(shape))

    def _draw(self, shape: Shape, one_by_one: Card, whole: Card) -> Variable:
        """A draw of this shape: a scalar from the one long draw of all scalars, an array of short rows as a flat one.

        Loops over short rows could not draw ahead.
        """
        key, number = take(self)
        if not shape:
            return op(one_by_one, *key, np.uint64(0), SINGLE, number)
        count = count_of(shape)
        if isinstance(count, int) and count > FEW and shape[-1] < SHORT:
            return reshape(Variable(whole_draw(whole, (key[0].node, key[1].node), number.node, count)), shape)
        return op(one_by_one, *key, number, np.uint64(0), _places(shape))

    def _by_element(self, card: Card, shape: Shape, *parameters: Variable) -> Variable:
        """A draw in which each element takes as many words as it needs."""
        key, number = take(self)
        return op(card, *key, number, _places(shape), *parameters)


def _places(shape: Shape) -> Any:
    """The position of each element of a draw."""
    count = count_of(shape)
    if isinstance(count, int) and count <= FEW:
        return np.arange(count, dtype=np.uint64).reshape(shape)
    places = Variable(sized(DRAW_PLACES, (), (count if isinstance(count, int) else as_variable(count).node,)))
    return places if len(shape) == 1 else reshape(places, shape)


# arguments ----------------------------------------------------------------------------------------------------------


def shaped(size: Any, parameters: Sequence[Any], what: str) -> tuple[Shape, list[Variable]]:
    """The shape of a draw, and its parameters broadcast to it. ValueError if they do not fit into `size`."""
    variables = [as_variable(parameter) for parameter in parameters]
    if size is None:
        shape = broadcast_sizes(variables)
    else:
        shape = tuple(value_of(length) for length in sizes_of(size, f"{what}: size"))
        if any(isinstance(length, int) and length < 0 for length in shape):
            raise ValueError(f"{what}: size is {size}{at_line()}; no length can be negative")
        if any(variable.ndim > len(shape) for variable in variables):
            raise ValueError(
                f"{what}: size has {len(shape)} axes, fewer than a parameter{at_line()}; give a size that the parameters fit into"
            )
    return shape, [broadcast_to(variable, shape) if variable.ndim else variable for variable in variables]


def as_real(parameter: Any) -> Variable:
    """A bound as a real number, since a difference of whole numbers may wrap."""
    variable = as_variable(float(parameter) if isinstance(parameter, int) else parameter)
    return variable * 1.0 if variable.type.kind in "biu" else variable


def float_dtype(dtype: Any, parameters: Sequence[Any], what: str) -> str:
    """The dtype of a draw of real numbers: as asked, else float32 if all parameters with a dtype of their own have it, else float64."""
    if dtype is None:
        said = {variable.type.dtype for variable in map(as_variable, parameters) if not variable.type.weak}
        return "float32" if said == {"float32"} else "float64"
    name = numpy_dtype(dtype).name
    if name not in FLOATS:
        raise TypeError(f"{what}: dtype is {name}{at_line()}; it must be float32 or float64")
    return name


def checked(what: str, name: str, parameter: Any, rule: str, holds: Callable[[Any], Any]) -> Variable:
    """The parameter. ValueError if it is out of range: now if that is known, else at the run."""
    variable = as_variable(parameter)
    if variable.type.kind == "c":
        raise TypeError(f"{what}: {name} is {variable.type.dtype}{at_line()}; it must be real, write its .real")
    condition = as_variable(holds(variable)).all()
    known = constant_value(condition.node)
    if known is None:
        return op(IN_RANGE, variable, condition, message=f"{what}: {name} must be {rule}")
    if not known:
        raise ValueError(f"{what}: {name} is {constant_value(variable.node)}{at_line()}; it must be {rule}")
    return variable


def checked_scale(what: str, scale: Any, name: str = "scale") -> Any:
    """The scale. ValueError if it is known to be negative. The run does not check: a negative scale mirrors the numbers there."""
    known = constant_value(scale.node) if isinstance(scale, Variable) else scale
    if isinstance(known, (int, float, np.ndarray, np.generic)) and (np.asarray(known) < 0).any():
        raise ValueError(f"{what}: {name} is {known}{at_line()}; it must be at least 0")
    return scale


def product(x: Any, y: Any) -> Variable:
    """x * y with the same bits on every machine: a GPU would contract another product with its sum to a fused multiply-add."""
    return op(ROUNDED_MUL, x, y)


def as_dtype(x: Variable, dtype: Any) -> Variable:
    """x in a dtype."""
    cast: Variable = x if x.type.dtype == numpy_dtype(dtype).name else x.astype(dtype)
    return cast
