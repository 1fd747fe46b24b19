"""Arguments of NumPy's functions of shapes: axes, sizes, which may be traced, and arguments that are not supported."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ...ir.node import Node, constant_value
from ...ops.dims import dim_node
from ..variable import Variable, as_variable, at_line

Size = int | Node
NOT_GIVEN: Any = np._NoValue


def axis_of(axis: Any, ndim: int, name: str) -> int:
    """One axis, counted from the front. AxisError if the array lacks it, TypeError if it is traced."""
    return int(normalize_axis_index(_fixed(axis, name), ndim, name))


def axes_of(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """One or several axes, counted from the front, in the order given; None for all."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, list | tuple) else axis
    numbers = tuple(_fixed(one, name) for one in axes) if isinstance(axes, tuple) else _fixed(axes, name)
    return tuple(int(one) for one in normalize_axis_tuple(numbers, ndim, name))


def _fixed(axis: Any, name: str) -> int:
    if isinstance(axis, Variable) and constant_value(axis.node) is None:
        raise TypeError(f"{name}: the axis is traced{at_line()}; ranks are fixed when a function is traced, give an int")
    return operator.index(axis)


def fixed_int(value: Any, what: str) -> int:
    """A whole number that is known while tracing. TypeError for any other."""
    if isinstance(value, Variable) and constant_value(value.node) is None:
        raise TypeError(f"{what} is traced{at_line()}; it must be known while tracing, give an int")
    return operator.index(value)


def size_of(value: Any, what: str) -> Size:
    """A size as an int or as the node of a traced integer."""
    if isinstance(value, Variable):
        if value.ndim or value.type.kind not in "iu":
            raise TypeError(f"{what} is {value!r}{at_line()}; an integer scalar is needed, as x.astype('int64') gives")
        known = constant_value(value.node)
        return value.node if known is None else int(known)
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} is {value}{at_line()}; an integer is needed")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}{at_line()}; an integer is needed") from None


def sizes_of(shape: Any, what: str) -> tuple[Size, ...]:
    """A shape: one size, or a sequence of sizes; a vector variable of fixed length counts as one."""
    if isinstance(shape, Variable | np.ndarray) and shape.ndim == 1:
        shape = [shape[k] for k in range(len(shape))]
    parts = list(shape) if isinstance(shape, list | tuple) else [shape]
    return tuple(size_of(part, f"{what}[{k}]" if len(parts) > 1 else what) for k, part in enumerate(parts))


def value_of(size: Size) -> Any:
    """A size as users see it: an int, or a traced integer."""
    if isinstance(size, int):
        return size
    known = constant_value(size)
    return Variable(size) if known is None else int(known)


def dim(x: Variable, axis: int) -> Any:
    """The length of x along an axis: an int where it is fixed, else a traced integer."""
    length = value_of(dim_node(x.node, axis))
    x.node.is_measured |= isinstance(length, int)
    return length


def shape_of(x: Variable) -> tuple[Any, ...]:
    """The shape of x: ints, and traced integers where only the run knows."""
    return tuple(dim(x, axis) for axis in range(x.ndim))


def count_of(dims: Sequence[Any]) -> Any:
    """The product of lengths."""
    total: Any = 1
    for length in dims:
        total = total * length
    return total


def refuse(name: str, **arguments: Any) -> None:
    """TypeError if an argument is given that works in place or has no meaning for traced values."""
    for argument, value in arguments.items():
        if value is not None and value is not NOT_GIVEN:
            raise TypeError(f"{name}({argument}={value!r}) is not supported on traced values{at_line()}; leave {argument} out")


def only_c_order(name: str, order: Any) -> None:
    """TypeError for any order of elements but C's."""
    if order not in ("C", "A", "K", None):
        raise TypeError(f"{name}(order={order!r}) is not supported on traced values{at_line()}; use x.T, and order='C'")


def as_arrays(values: Any) -> list[Variable]:
    """A sequence of arrays, or the rows of one, as variables."""
    if isinstance(values, Variable):
        return [values[k] for k in range(len(values))]
    if isinstance(values, Iterator):
        raise TypeError(f"a {type(values).__name__} was given where a list of arrays is needed{at_line()}; write [… for …], or list(…)")
    return [as_variable(value) for value in values]
