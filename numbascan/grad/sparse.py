"""Sums of cotangents that are zero outside a region: `x[0]`, `x[1]` and `x[2]` each give one; together they fill x.

Adding such arrays would add zeros to zeros, element by element. Instead the values are put into one array.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.node import Node
from ..ops.algebra import add, is_zero, total, zeros_like
from ..ops.indexing import INC_SUBTENSOR, SET_SUBTENSOR
from ..ops.sized import ARRAY, HOLE, sized

Position = tuple[int, ...]


def summed(terms: Sequence[Node]) -> Node:
    """The sum of values of one shape."""
    dense: list[Node] = []
    regions: dict[tuple[object, ...], Node] = {}
    for term in terms:
        region = _region(term)
        if region is None:
            dense.append(term)
        else:
            spec, value = region
            regions[spec] = add(regions[spec], value) if spec in regions else value
    base = total(dense)
    card = INC_SUBTENSOR
    if base is None:
        base = zeros_like(terms[0])
        card = SET_SUBTENSOR if _are_apart(list(regions), base) else INC_SUBTENSOR
    for spec, value in regions.items():
        base = sized(card, (base, value), spec)
    return base


def _are_apart(specs: Sequence[tuple[object, ...]], whole: Node) -> bool:
    """Does no element lie in two of the regions, for sure?"""
    places = [_position(spec, whole) for spec in specs]
    return len(places) == 1 or (None not in places and len(set(places)) == len(places) and len(set(map(len, specs))) == 1)


def _region(node: Node) -> tuple[tuple[object, ...], Node] | None:
    """(region, values) of zeros with something in one place."""
    if node.op not in (INC_SUBTENSOR, SET_SUBTENSOR) or not is_zero(node.inputs[0]) or len(node.inputs) > 2:
        return None
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    value = node.inputs[1]
    is_plain = not any(part in (ARRAY, HOLE) for part in spec if isinstance(part, str))
    return (spec, value) if is_plain else None


def _position(spec: tuple[object, ...], whole: Node) -> Position | None:
    """The region as a position, counted from the start; None for slices and open dimensions."""
    found = []
    for entry, dim in zip(spec, whole.type.shape, strict=False):
        if not isinstance(entry, int) or (entry < 0 and dim is None):
            return None
        found.append(entry + (dim or 0) if entry < 0 else entry)
    return tuple(found)
