"""Sums of cotangents that are zero outside a region: `x[0]`, `x[1]` and `x[2]` each give one; together they fill x.

Adding such arrays would add zeros to zeros, element by element. Instead the values are put into one array, one after another.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from ..ir.node import Node
from ..ops.algebra import add, call, is_zero, total, zeros_like
from ..ops.card import apply
from ..ops.index_entries import Spec
from ..ops.indexing import INC_SUBTENSOR, SET_SUBTENSOR
from ..ops.runtime_attributes import ARRAY, HOLE, SizedCard

Region = tuple[Spec, tuple[Node, ...]]  # the entries between the brackets, and the nodes of their holes


def summed(terms: Sequence[Node]) -> Node:
    """The sum of values of one shape."""
    dense, regions = _split(terms)
    base = total(dense)
    if base is not None:
        return _put(INC_SUBTENSOR, base, regions)
    zeros = zeros_like(terms[0])
    return _put(SET_SUBTENSOR if _are_apart(regions, zeros) else INC_SUBTENSOR, zeros, regions)


def added(total_before: Node, terms: Sequence[Node]) -> Node:
    """A sum over steps plus a step's terms, which have its shape; a term that is zero outside a region is added in that alone."""
    dense, regions = _split(terms)
    rest = total(dense)
    return _put(INC_SUBTENSOR, total_before if rest is None else call("accumulate", total_before, rest), regions)


def _split(terms: Sequence[Node]) -> tuple[list[Node], dict[Region, Node]]:
    """Terms without a region, and the values in each region."""
    dense: list[Node] = []
    regions: dict[Region, Node] = {}
    for term in terms:
        parts = _parts(term)
        if parts is None:
            dense.append(term)
            continue
        for region, value in parts:
            regions[region] = add(regions[region], value) if region in regions else value
    return dense, regions


def _put(card: SizedCard, base: Node, regions: Mapping[Region, Node]) -> Node:
    """`base` with the values in their regions, one pass after another."""
    for (spec, holes), value in regions.items():
        base = apply(card, base, value, *holes, spec=spec)
    return base


def _parts(node: Node) -> list[tuple[Region, Node]] | None:
    """The (region, values) pairs that were added to zeros, or the one pair put into zeros; None for any other array."""
    parts: list[tuple[Region, Node]] = []
    while node.op is INC_SUBTENSOR or (node.op is SET_SUBTENSOR and not parts and is_zero(node.inputs[0]) and ARRAY not in _spec(node)):
        parts.insert(0, ((_spec(node), node.inputs[2:]), node.inputs[1]))
        node = node.inputs[0]
    return parts if parts and is_zero(node) else None


def _spec(node: Node) -> Spec:
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    return spec


def _are_apart(regions: Collection[Region], whole: Node) -> bool:
    """True if surely no element lies in two of the regions: any two are disjoint on some axis. A single one must not repeat elements."""
    specs = [spec for spec, _ in regions]
    if len(regions) == 1:
        return ARRAY not in specs[0]  # which may name an element twice
    if any(holes for _, holes in regions):
        return False
    if any("newaxis" in spec for spec in specs):  # then entries do not stand at the places of their axes
        return False
    return all(any(_differ(*pair) for pair in zip(a, b, whole.type.shape, strict=False)) for a, b in combinations(specs, 2))


def _differ(a: object, b: object, n: int | None) -> bool:
    (first, end), (start, last) = _bounds(a, n), _bounds(b, n)
    return min(first, start) >= 0 and (end <= start or last <= first)


def _bounds(entry: object, n: int | None) -> tuple[float, float]:
    """(first place, the one after the last) of an entry on an axis of length n; (-1, -1) where that is not known.

    Not handled: places counted from an end that is known at run time only, steps.
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
