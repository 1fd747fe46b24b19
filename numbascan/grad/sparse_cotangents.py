"""Sums of cotangents that are zero outside a region: `x[0]`, `x[1]` and `x[2]` each give one; together they fill x.

Adding such arrays would add zeros to zeros, element by element. Instead the values are put into one array, one after another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from ..ir.node import Node
from ..ops.algebra import add, is_zero, total, zeros_like
from ..ops.index_entries import Spec
from ..ops.indexing import INC_SUBTENSOR, SET_SUBTENSOR
from ..ops.runtime_attributes import ARRAY, HOLE, SizedCard, sized


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


def _are_apart(specs: Sequence[Spec], whole: Node) -> bool:
    """Does no element lie in two of the regions, for sure? Any two must differ on an axis, by where they begin and end there."""
    if any("newaxis" in spec for spec in specs):  # then entries do not stand at the places of their axes
        return len(specs) == 1
    return all(any(_differ(*pair) for pair in zip(a, b, whole.type.shape, strict=False)) for a, b in combinations(specs, 2))


def _differ(a: object, b: object, n: int | None) -> bool:
    (first, end), (start, last) = _bounds(a, n), _bounds(b, n)
    return min(first, start) >= 0 and (end <= start or last <= first)


def _bounds(entry: object, n: int | None) -> tuple[float, float]:
    """The first place of an entry on an axis of length n, and the one behind its last; (-1, -1) where that is not known.

    Not handled: places counted from an end that only the run knows, steps.
    """
    if isinstance(entry, int):
        entry = (entry, entry + 1 or None, None)
    if not isinstance(entry, tuple) or HOLE in entry or entry[2] not in (None, 1):
        return -1, -1
    if n is not None:
        start, stop, _ = slice(*entry).indices(n)
        return start, max(start, stop)
    first, last = entry[0] or 0, math.inf if entry[1] is None else entry[1]
    return (first, max(first, last)) if min(first, last) >= 0 else (-1, -1)
