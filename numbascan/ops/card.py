"""Cards: everything about an op in one place.

A card holds the name of an op, the functions of NumPy and SciPy that lead to it (SciPy's by name), its type (`infer`), its value by NumPy
(`evaluate`, the oracle), its lowering to loops in `plan/` (`lower`), and its derivatives. Tests loop over CARDS.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from ..ir.node import Node, Origin, constant, constant_value, make
from ..types import TensorType, broadcast_shapes
from .lowering import Elementwise, Lowering

FOLD_LIMIT = 1024  # an op on constants of up to this many elements is computed while tracing

Infer = Callable[..., TensorType | tuple[TensorType, ...]]


@dataclass(frozen=True, eq=False)
class Card:
    """One op. `evaluate` and `infer` take the operands (arrays, types), then the attributes by keyword.

    `samples` gives operand tuples and attributes for the tests.

    Derivatives are given in one of these ways. `grad/rules.py` reads them, and handles dtypes and broadcasting.

    partials     of an elementwise op: (result, *operands) -> the derivative with respect to each operand: a node or a number; None
                 if there is none; a Gate if the operand passes only under a condition; a str, the reason why it is refused
    linear       the operands in which the op is jointly linear: its jvp is the op itself; a `vjp` goes with it
    vjp          (node, *cotangents of the results, None for zero) -> a cotangent or None per operand
    jvp          (node, *tangents of the operands, None for zero) -> the tangent of the result, or a tuple of these
    no_gradient  the reason why there is no derivative

    A card with a `summary` is a function of `numbascan.tensor`: `summary` says what it gives, `operands` names its operands, `aliases`
    are its other names.

    is_cheap: an elementwise op of one or two instructions, which costs no more than a load.
    folds: whether the op is computed while tracing if all operands are known; or a function that says so of their values.
    hint: the name in generated code of a result that the user has not named; default: the name of the op.
    dim_from: (node, axis) -> the operands that have that dimension of the result, each with its axis.

    Complex numbers: cotangents w pair with tangents v by Re(sum(w * v)), without conjugation, as in JAX. The gradient of a real
    function of z = x + iy is df/dx - i df/dy; for a holomorphic op the partial is its complex derivative.
    """

    name: str
    evaluate: Callable[..., Any]
    infer: Infer
    lower: Lowering
    keys: tuple[Callable[..., Any] | str, ...] = ()
    samples: Callable[[], list[tuple[tuple[Any, ...], dict[str, Any]]]] | None = None
    partials: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    linear: tuple[int, ...] = ()
    no_gradient: str = ""
    summary: str = ""
    operands: str = ""
    aliases: str = ""
    is_cheap: bool = False
    folds: bool | Callable[..., bool] = True
    hint: str = ""
    dim_from: Callable[[Node, int], list[tuple[Node, int]]] | None = None

    @property
    def has_derivative(self) -> bool:
        return self.partials is not None or self.vjp is not None

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        outer, PLACE.origin = PLACE.origin, node.origin
        try:
            return self.rebuilt(node, inputs)
        finally:
            PLACE.origin = outer

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """The node of this card on new inputs. Cards whose inputs are not just operands override it."""
        return apply(self, *inputs, **node.params)

    def __repr__(self) -> str:
        return f"Card({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], Card], tuple[str]]:
        return card_named, (self.name,)


@dataclass(frozen=True)
class Gate:
    """A derivative of 1 where `condition` equals `holds`, elsewhere no derivative at all: not even NaN or infinity passes."""

    condition: Node
    holds: bool = True


CARDS: dict[str, Card] = {}
AnyCard = TypeVar("AnyCard", bound=Card)


def register(card: AnyCard) -> AnyCard:
    """Adds a card to the table; names are unique."""
    if card.name in CARDS:
        raise ValueError(f"two cards are named {card.name!r}")
    CARDS[card.name] = card
    return card


def card_named(name: str) -> Card:
    """The registered card of that name."""
    return CARDS[name]


def apply(card: Card, *inputs: Node, **attrs: Hashable) -> Node:
    """The node of `card` on `inputs`; a constant where all inputs are small constants."""
    if isinstance(card.lower, Elementwise):
        _check_broadcast(card, inputs)
    inferred = card.infer(*(node.type for node in inputs), **attrs)
    types = inferred if isinstance(inferred, tuple) else (inferred,)
    folded = _folded(card, inputs, types, attrs)
    if folded is not None:
        return folded
    return make(card, inputs, types, tuple(sorted(attrs.items())), origin=user_line())


def _check_broadcast(card: Card, inputs: tuple[Node, ...]) -> None:
    try:
        broadcast_shapes(*(node.type.shape for node in inputs))
    except ValueError as error:
        raise ValueError(f"{card.name}: {error}{at_line()}") from None


def _folded(card: Card, inputs: tuple[Node, ...], types: tuple[TensorType, ...], attrs: dict[str, Any]) -> Node | None:
    if not card.folds or not inputs or len(types) != 1 or types[0].size is None or types[0].size > FOLD_LIMIT:
        return None
    values = [constant_value(node) for node in inputs]
    if any(value is None for value in values) or (callable(card.folds) and not card.folds(*values)):
        return None
    with np.errstate(all="ignore"):
        (result,) = evaluate(card, types, tuple(node.type for node in inputs), values, attrs)
    return constant(result, types[0].dtype, types[0].weak)


def evaluate(
    card: Card, types: tuple[TensorType, ...], operand_types: tuple[TensorType, ...], values: list[Any], attrs: dict[str, Any]
) -> tuple[Any, ...]:
    """The card's results by NumPy, in the inferred dtypes."""
    if isinstance(card.lower, Elementwise):
        loop = card.lower.loop(*operand_types)
        for type_, value, dtype in zip(operand_types, values, loop, strict=False):
            bounds = weak_bounds(type_, dtype)
            if bounds is not None and np.size(value) and not (bounds[0] <= np.min(value) and np.max(value) <= bounds[1]):
                raise OverflowError(overflow_message(card.name, dtype).format(np.max(value)))
        values = [np.asarray(value).astype(dtype, copy=False) for value, dtype in zip(values, loop, strict=False)]
    result = card.evaluate(*values, **attrs)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(value).astype(type_.dtype, copy=False) for value, type_ in zip(results, types, strict=True))


def weak_bounds(type_: TensorType, dtype: str) -> tuple[int, int] | None:
    """The least and the greatest Python integer that fits `dtype`; None if there is nothing to check."""
    if not type_.weak or type_.kind != "i" or dtype == "int64" or np.dtype(dtype).kind not in "iu":
        return None
    info = np.iinfo(dtype)
    return int(info.min), min(int(info.max), 2**63 - 1)


def overflow_message(name: str, dtype: str) -> str:
    """The error for a Python integer, {0}, that does not fit the other operand's dtype."""
    return f"np.{name}: the Python integer {{0}} is out of bounds for {dtype}"


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


class _Place(threading.local):
    """The place in the user's code that messages name. origin: that of a node being rebuilt. step: the step being traced, in words."""

    origin: Origin | None = None
    step: str = ""


PLACE = _Place()


def at_line() -> str:
    """The place in the user's code, for messages: " (file.py, line 3)", or " (file.py, line 3, in the step f of scan 'f')"."""
    origin = user_line()
    places = [f"{origin[0]}, line {origin[1]}"] if origin else []
    places += [f"in {PLACE.step}"] if PLACE.step else []
    return f" ({', '.join(places)})" if places else ""


def user_line() -> Origin | None:
    """File and line of the innermost frame outside numbascan and libraries; while a node is rebuilt, those of the node."""
    if PLACE.origin is not None:
        return PLACE.origin
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def is_users(frame: FrameType) -> bool:
    """True if a frame runs code of neither numbascan nor a library."""
    if frame.f_code.co_filename.startswith((_PACKAGE, _NUMPY, "numpy/")):  # NumPy's compiled parts have short names
        return False
    return not is_library(frame) and frame.f_globals.get("__name__") != "functools"


def is_library(frame: FrameType) -> bool:
    """True if a frame runs code of SciPy, Numba, or Python's statistics."""
    return str(frame.f_globals.get("__name__")).startswith(("scipy.", "numba.", "statistics"))
