"""Functions that users compiled with Numba, called with numbers and whole arrays: one card per function and kinds of operands."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..ir.names import identifier
from ..ir.node import Node
from ..types import TensorType
from .card import at_line
from .lowering import Indices, Library, Operands
from .runtime_attributes import SizedCard, filled, not_negative, run_numbers, sized

Kind = tuple[str, int]
"""A dtype and a rank."""


class Foreign(Protocol):
    """The compiled function. routine: its name in generated code. digest: of all its parts. operands, results: their kinds."""

    name: str
    routine: str
    digest: str
    operands: tuple[Kind, ...]
    results: tuple[Kind, ...]

    def __call__(self, *values: Any) -> tuple[Any, ...]: ...

    def wrong_shape(self, k: int) -> str:
        """The error if result k does not have the declared shape."""
        ...

    def __reduce__(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class ExternalCard(SizedCard):
    """The card of a function. Attribute `sizes`: the shape of each result."""

    foreign: Any = None

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return external_card, (self.foreign,)


_cards: dict[str, ExternalCard] = {}


def external_card(foreign: Foreign) -> ExternalCard:
    """The one card of a function for operands of its kinds."""
    known = _cards.get(foreign.routine)
    return known or _cards.setdefault(foreign.routine, _new_card(foreign))


def call_external(foreign: Foreign, operands: Sequence[Node], shapes: Sequence[Sequence[Any]]) -> Node:
    """The node of a call. shapes: the shape of each result, as ints or nodes."""
    return sized(external_card(foreign), operands, tuple(map(tuple, shapes)), code=foreign.digest)


def _new_card(foreign: Foreign) -> ExternalCard:
    n, ranks = len(foreign.operands), tuple(rank for _, rank in foreign.operands)

    def infer(*types: TensorType, sizes: Any, code: Hashable) -> Any:
        seen = tuple((type_.dtype, type_.rank) for type_ in types[:n])
        if seen != foreign.operands:
            raise TypeError(f"{foreign.name} was compiled for {foreign.operands}, not for {seen}{at_line()}")
        shapes = [tuple(size if isinstance(size, int) else None for size in shape) for shape in sizes]
        results = tuple(TensorType(dtype, shape) for (dtype, _), shape in zip(foreign.results, shapes, strict=True))
        return results if len(results) > 1 else results[0]

    def evaluate(*values: Any, sizes: Any, code: Hashable) -> Any:
        results = foreign(*values[:n])
        shapes = filled(sizes, iter([int(value) for value in values[n:]]))
        for k, (result, shape) in enumerate(zip(results, shapes, strict=True)):
            if np.shape(result) != shape:
                raise ValueError(foreign.wrong_shape(k))
        return results if len(results) > 1 else results[0]

    def dims(view: Operands) -> tuple[Indices, ...]:
        shapes = run_numbers(view, view.attrs["sizes"], n)
        for shape in shapes:
            for dim in shape:
                not_negative(view, dim, foreign.name)
        return tuple(map(tuple, shapes))

    return ExternalCard(
        identifier(foreign.name, "external"),
        evaluate,
        infer,
        Library(
            lambda *types: f"externals.{foreign.routine}",
            (ranks, tuple(rank for _, rank in foreign.results)),
            dims,
            dtypes=lambda *types: tuple(dtype for dtype, _ in foreign.operands),
        ),
        no_gradient=f"ns.external was given no derivative of it; write ns.external({foreign.name}, vjp=…), or jvp=…",
        folds=False,
        holder="sizes",
        arrays=n,
        foreign=foreign,
    )
