"""Sums of cotangents that are zero outside a region: `x[0]`, `x[1]` and `x[2]` each give one; together they fill x.

Adding such arrays would add zeros to zeros, element by element. Instead the values are put into one array: side by side where they cut
one axis and cannot overlap, else one after another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..ir.node import Node
from ..ops.algebra import add, cast, concatenate, dims_of, expand, indexed, is_zero, on_axis, total, zeros_like
from ..ops.indexing import INC_SUBTENSOR, SET_SUBTENSOR
from ..ops.of_shape import of_shape
from ..ops.sized import ARRAY, HOLE, SizedCard, sized
from ..ops.spec import FULL, Spec

Position = tuple[int, ...]


def summed(terms: Sequence[Node]) -> Node:
    """The sum of values of one shape."""
    dense: list[Node] = []
    regions: dict[Spec, Node] = {}
    for term in terms:
        region = _region(term)
        if region is None:
            dense.append(term)
        else:
            spec, value = region
            regions[spec] = add(regions[spec], value) if spec in regions else value
    base = total(dense)
    if base is not None:
        return _put(INC_SUBTENSOR, base, regions)
    zeros = zeros_like(terms[0])
    joined = _joined(regions, zeros)
    if joined is not None:
        return joined
    return _put(SET_SUBTENSOR if _are_apart(list(regions), zeros) else INC_SUBTENSOR, zeros, regions)


def _put(card: SizedCard, base: Node, regions: Mapping[Spec, Node]) -> Node:
    """`base` with the values in their regions, one pass after another."""
    for spec, value in regions.items():
        base = sized(card, (base, value), spec)
    return base


def _region(node: Node) -> tuple[Spec, Node] | None:
    """(region, values) of zeros with something in one place."""
    if node.op not in (INC_SUBTENSOR, SET_SUBTENSOR) or not is_zero(node.inputs[0]) or len(node.inputs) > 2:
        return None
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    value = node.inputs[1]
    is_plain = not any(part in (ARRAY, HOLE) for part in spec if isinstance(part, str))
    return (spec, value) if is_plain else None


# one after another ---------------------------------------------------------------------------------------------------


def _are_apart(specs: Sequence[Spec], whole: Node) -> bool:
    """Does no element lie in two of the regions, for sure?"""
    places = [_position(spec, whole) for spec in specs]
    return len(places) == 1 or (None not in places and len(set(places)) == len(places) and len(set(map(len, specs))) == 1)


def _position(spec: Spec, whole: Node) -> Position | None:
    """The region as a position, counted from the start; None for slices and open dimensions."""
    found = []
    for entry, dim in zip(spec, whole.type.shape, strict=False):
        if not isinstance(entry, int) or (entry < 0 and dim is None):
            return None
        found.append(entry + (dim or 0) if entry < 0 else entry)
    return tuple(found)


# side by side --------------------------------------------------------------------------------------------------------


def _joined(regions: Mapping[Spec, Node], zeros: Node) -> Node | None:
    """The values side by side along the one axis that all regions cut, zeros between them; None where they may overlap.

    A gap is a slice of the zeros: like the regions it ends where the axis does, which may be known to the run alone.
    """
    cut = {axis for spec in regions for axis, entry in enumerate(spec) if entry != FULL}
    if len(regions) < 2 or len(cut) != 1:
        return None
    (axis,) = cut
    n = zeros.type.shape[axis]
    bounds = {spec: _bounds(spec[axis], n) for spec in regions}
    parts: list[Node] = []
    end: float = 0
    for spec, (start, stop) in sorted(bounds.items(), key=lambda item: item[1]):
        part = None if start < end else _part(regions[spec], zeros, spec, axis)
        if part is None:
            return None
        if start > end:
            parts.append(_gap(zeros, axis, end, start))
        parts.append(part)
        end = stop
    if end < (math.inf if n is None else n):
        parts.append(_gap(zeros, axis, end, None))
    return concatenate(parts, axis)


def _bounds(entry: object, n: int | None) -> tuple[float, float]:
    """The first place of a region on an axis of length n, and the one behind its last; (-1, -1) where that is not known.

    Not handled: steps, places counted from an end that only the run knows, single places on such an axis (they must be there).
    """
    if isinstance(entry, int) and n is not None:
        return entry % n, entry % n + 1
    if not isinstance(entry, tuple) or HOLE in entry or entry[2] not in (None, 1):
        return -1, -1
    if n is not None:
        start, stop, _ = slice(*entry).indices(n)
        return start, max(start, stop)
    first, last = entry[0] or 0, math.inf if entry[1] is None else entry[1]
    return (first, max(first, last)) if min(first, last) >= 0 else (-1, -1)


def _part(value: Node, zeros: Node, spec: Spec, axis: int) -> Node | None:
    """The value of a region with all axes of the whole; None where it would have to be broadcast."""
    region = indexed(zeros, spec)
    if value.type.rank != region.type.rank or any(a == 1 != b for a, b in zip(value.type.shape, region.type.shape, strict=True)):
        return None
    value = of_shape(cast(value, zeros.type.dtype), dims_of(region), "a gradient of x[…]")
    return expand(value, (axis,)) if isinstance(spec[axis], int) else value


def _gap(zeros: Node, axis: int, start: float, stop: float | None) -> Node:
    return indexed(zeros, on_axis((int(start), None if stop is None else int(stop), None), axis))
