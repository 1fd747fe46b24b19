"""Cards whose attributes hold numbers that only the run may know: sizes, positions, bounds of slices.

Such an attribute is a nest of tuples. A known number is an int in it. An unknown number is a further operand, with HOLE in its place in the
nest (ARRAY for an operand that is an array of positions). When an operand becomes known it moves into the attribute, so that types are as
definite as possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..ir.loops import Expr, Index, Length, add, compare, floor_div, least, mod, mul, sub
from ..ir.node import Node, constant_value
from .card import Card, apply
from .lowering import Indices, Operands

HOLE, ARRAY = "?", "array"
_GREATEST = 2**63 - 1


@dataclass(frozen=True, eq=False)
class SizedCard(Card):
    """A card whose attribute `holder` has holes; the operands that fill them follow the first `arrays` ones.

    resizes: `holder` is the shape to which operand 0 is brought, axis by axis.
    """

    holder: str = "shape"
    arrays: int = 1
    resizes: bool = False

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        others = {key: value for key, value in node.attrs if key != self.holder}
        nest = filled(node.attr(self.holder), iter(inputs[self.arrays :]))
        return sized(self, inputs[: self.arrays], nest, **others)


def sized(card: SizedCard, arrays: Iterable[Node], nest: Any, **others: Any) -> Node:
    """The node of a sized card; `nest` is its attribute, with nodes in place of holes."""
    operands: list[Node] = []
    return apply(card, *arrays, *operands_of(nest, operands), **{card.holder: settled(nest)}, **others)


def operands_of(nest: Any, found: list[Node]) -> list[Node]:
    """The nodes of a nest that become operands, in order: arrays, and numbers that only the run knows."""
    if isinstance(nest, tuple):
        for part in nest:
            operands_of(part, found)
    elif isinstance(nest, Node) and (nest.type.rank or constant_value(nest) is None):
        found.append(nest)
    return found


def settled(nest: Any) -> Any:
    """A nest with its nodes replaced: known numbers by themselves, the others by HOLE or ARRAY."""
    if isinstance(nest, tuple):
        return tuple(settled(part) for part in nest)
    if isinstance(nest, Node):
        known = constant_value(nest)
        if nest.type.rank:
            return ARRAY
        return HOLE if known is None else int(known)
    return nest


def filled(nest: Any, values: Iterator[Any]) -> Any:
    """A nest with its holes filled by `values`, in order."""
    if isinstance(nest, tuple):
        return tuple(filled(part, values) for part in nest)
    return next(values) if isinstance(nest, str) and nest in (HOLE, ARRAY) else nest


def run_numbers(view: Operands, nest: Any, first: int) -> Any:
    """A nest without arrays as index arithmetic; the operands from number `first` on fill its holes."""
    return filled(nest, iter([_number(view, k) for k in range(first, len(view.types))]))


def _number(view: Operands, k: int) -> Index:
    """Operand k, checked to fit int64."""
    number = view.scalar(k)
    if view.types[k].dtype == "uint64" and not isinstance(number, int):
        message = f"an unsigned number is too large for a size or a shift: {_GREATEST} or more"
        view.check(compare("<", number, _GREATEST), "OverflowError", message)
    return number


# arithmetic on dimensions that may be expressions -------------------------------------------------------------------


def product(dims: Iterable[Index]) -> Index:
    """The product of dimensions, fixed factors first."""
    dims = list(dims)
    total: Index = math.prod(dim for dim in dims if isinstance(dim, int))
    for dim in dims:
        total = total if isinstance(dim, int) else mul(dim, total)
    return total


def quotient(dims: Indices, others: Indices) -> Index | None:
    """product(dims) / product(others) if it needs no division at run time, else None."""
    left = [dim for dim in dims if not isinstance(dim, int)]
    for other in others:
        if not isinstance(other, int):
            if other not in left:
                return None
            left.remove(other)
    numerator = math.prod(dim for dim in dims if isinstance(dim, int))
    denominator = math.prod(other for other in others if isinstance(other, int))
    if denominator == 0 or numerator % denominator:
        return None
    return product([numerator // denominator, *left])


def ravelled(index: Indices, dims: Indices) -> Index:
    """The place of `index` among all elements of an array, in C order."""
    flat: Index = 0
    for i, dim in zip(index, dims, strict=True):
        flat = add(mul(flat, dim), i)
    return flat


def unravelled(flat: Index, dims: Indices) -> Indices:
    """The index of the `flat`-th element of an array, in C order."""
    reverse: list[Index] = []
    for dim in reversed(dims[1:]):
        reverse.append(mod(flat, dim))
        flat = floor_div(flat, dim)
    return (flat, *reversed(reverse)) if dims else ()


def enough(rows: Index, n_steps: Index, span: int) -> tuple[Expr, Index]:
    """The condition that there are n_steps + span rows, and that number for messages; neither is too large for an integer."""
    return compare(">=", sub(rows, span), n_steps), add(least(n_steps, 2**63 - 1 - span), span) if span else n_steps


def must_equal(view: Operands, a: Index, b: Index, message: str, error: str = "ValueError") -> None:
    """Checks two dimensions; {0} and {1} in the message stand for them."""
    view.same(a, b, error, message)


def fits(view: Operands, k: int, dims: Indices, message: str, error: str = "ValueError") -> None:
    """Checks that operand k broadcasts to `dims`; in the message {0} stands for one of these, {1} for its own, {axis} for the axis."""
    shape = view.types[k].shape
    for axis, (known, dim, extent) in enumerate(zip(shape, view.dims(k), dims[len(dims) - len(shape) :], strict=True)):
        if known != 1:
            view.broadcasts(dim, extent, error, message.replace("{axis}", str(axis)))


def stretched(view: Operands, k: int, index: Indices, dims: Indices) -> Indices:
    """The index at which operand k, broadcast to `dims`, is read for the element at `index`."""
    shape = view.types[k].shape
    first = len(dims) - len(shape)
    places = zip(shape, view.dims(k), index[first:], dims[first:], strict=True)
    return tuple(0 if known == 1 else only_place(i) if view.stretches(dim, extent) else i for known, dim, i, extent in places)


def only_place(i: Index) -> Index:
    """The place of the one element of a dimension that is at most 1, within the loop over `i`.

    It is 0, but depends on `i`: without an element there is no pass, and then nothing may be read in front of the loop.
    """
    return least(i, 0)


def not_negative(view: Operands, dim: Index, name: str) -> None:
    """Checks a size that the run gives; the length of an array needs no check."""
    if not isinstance(dim, Length):
        view.check(compare(">=", dim, 0), "ValueError", f"{name}: negative dimensions are not allowed, one is {{0}}", dim)
