"""NumPy's generators as arguments. A call takes one seed from each; compiled code gets it as an array, the state of a stream.

So another generator needs no new compilation. In a traced function, a stand-in draws from the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .tree import LEAF, Static, Structure, flattened, unflatten
from .variable import Variable

GENERATORS = (np.random.Generator, np.random.RandomState)


@dataclass(eq=False, slots=True)
class Seeded:
    """What compiled code gets for a generator. state: the three words of a new stream, the seed first."""

    state: Any


class _OfGenerator(Seeded):
    """For a `np.random.Generator`."""

    __slots__ = ()


class _OfRandomState(Seeded):
    """For a `np.random.RandomState`."""

    __slots__ = ()


STAND_INS: dict[type, Callable[[Variable], Any]] = {}
"""By kind of generator: the function that makes its stand-in from the state of its stream."""


def stands_in(kind: type) -> Callable[[Callable[[Variable], Any]], Callable[[Variable], Any]]:
    """Decorator for the function that makes the stand-ins for generators of class `kind`."""

    def noted(make: Callable[[Variable], Any]) -> Callable[[Variable], Any]:
        STAND_INS[_OfGenerator if kind is np.random.Generator else _OfRandomState] = make
        return make

    return noted


def has_generators(leaves: Iterable[Any]) -> bool:
    """Whether one of NumPy's generators is among the leaves of a nest."""
    return any(isinstance(leaf, GENERATORS) for leaf in leaves)


def seed_from(generator: Any) -> int:
    """One seed, which advances the generator."""
    if isinstance(generator, np.random.RandomState):
        return int(generator.randint(0, 2**63 - 1, dtype=np.int64))
    return int(generator.integers(0, 2**63 - 1, dtype=np.int64))


def seeded(leaves: Sequence[Any], structure: Structure, is_drawn: bool = True) -> tuple[list[Any], Structure]:
    """Leaves and structure of a nest, with a Seeded for each generator; static parts stay.

    is_drawn: for a call, which advances the generators; otherwise all seeds are 0.
    """
    given, found = iter(leaves), []

    def of(part: Structure) -> Structure:
        if not isinstance(part, str):
            return part[0], part[1], tuple([of(child) for child in part[2]])
        if part != LEAF:
            return part
        leaf = next(given)
        inner, form = flattened(_seeded(leaf, is_drawn)) if isinstance(leaf, GENERATORS) else ([leaf], LEAF)
        found.extend(inner)
        return form

    form = of(structure)
    return found, form


def _seeded(generator: Any, is_drawn: bool) -> Seeded:
    state = np.array([seed_from(generator) if is_drawn else 0, 0, 0], dtype=np.uint64)
    return _OfRandomState(state) if isinstance(generator, np.random.RandomState) else _OfGenerator(state)


def opened(structure: Structure, variables: Sequence[Variable]) -> Any:
    """The nest that a traced function gets, with stand-ins for seeds."""
    makers: list[Callable[[Variable], Any] | None] = []
    plain = _without_seeds(structure, makers)
    return unflatten(plain, [x if make is None else make(x) for make, x in zip(makers, variables, strict=True)])


def _without_seeds(structure: Structure, makers: list[Callable[[Variable], Any] | None]) -> Structure:
    """The structure with a leaf for each seed. Appends to `makers`, for each leaf, the maker of its stand-in, None for other leaves."""
    if isinstance(structure, str):
        if structure == LEAF:
            makers.append(None)
        return structure
    cls, keys, children = structure
    if cls in STAND_INS:
        makers.append(STAND_INS[cls])
        return LEAF
    return cls, keys, tuple([_without_seeds(child, makers) for child in children])


def has_seeds(structure: Structure) -> bool:
    """Whether a generator was among the arguments."""
    return not isinstance(structure, str) and (structure[0] in STAND_INS or any(map(has_seeds, structure[2])))


def as_parts(nest: Any) -> Any:
    """The nest, with generators as static parts of its structure instead of leaves."""
    leaves, structure = flattened(nest)
    if not has_generators(leaves):
        return nest
    return unflatten(structure, [Static(leaf) if isinstance(leaf, GENERATORS) else leaf for leaf in leaves])
