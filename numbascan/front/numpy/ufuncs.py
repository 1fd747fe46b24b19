"""Elementwise functions with one card behind them: made from the cards, under NumPy's and PyTensor's names.

FUNCTIONS holds them all, by name; `from .ufuncs import tanh` works too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops import compare, elementary, elementwise, incomplete, special  # noqa: F401 - importing them registers the cards
from ...ops.card import CARDS, Card
from ...types import TensorType
from ..variable import METHODS, Variable, at_line, implements, op

FUNCTIONS: dict[str, Callable[..., Variable]] = {}


def _docstring(card: Card, operands: list[str]) -> str:
    keys = [f"np.{key.__name__}" for key in card.keys if not isinstance(key, str)]
    dtype = "float64" if _takes(card, "float64") else "int64"
    arguments = [f'nt.{dtype[0].replace("f", "d").replace("i", "l")}vector("{operand}")' for operand in operands]
    result = card.infer(*(TensorType(dtype, (None,)) for _ in operands))
    assert isinstance(result, TensorType)
    summary = card.summary
    also = f"; {' and '.join(keys)} of a variable {'is' if len(keys) == 1 else 'are'} the same" if keys else ""
    if summary.startswith(("the ", "whether ")):
        summary = summary[0].upper() + summary[1:]
    return (
        f"{summary}, elementwise.\n\n"
        f"    Arguments ({', '.join(operands)}): variables, arrays or numbers of any shapes that broadcast{also}.\n"
        "    Returns a variable of the broadcast shape; dtypes combine as in NumPy 2.\n"
        "    Raises TypeError where NumPy does not define it for the dtypes, ValueError for shapes that do not broadcast.\n\n"
        "    >>> import numbascan.tensor as nt\n"
        f"    >>> nt.{card.name}({', '.join(arguments)})\n"
        f"    <{card.name}: {result.dtype}[?]>\n    "
    )


def _takes(card: Card, dtype: str) -> bool:
    """True if the card is defined for operands of that dtype."""
    try:
        card.infer(*(TensorType(dtype) for _ in card.operands.split()))
    except TypeError:
        return False
    return True


def _function(card: Card) -> Callable[..., Variable]:
    operands = card.operands.split()

    def function(*values: Any) -> Variable:
        if len(values) != len(operands):
            also = "; out cannot be written into, use the result" if len(values) == len(operands) + 1 else ""
            raise TypeError(f"nt.{card.name} takes {len(operands)} operands ({', '.join(operands)}), got {len(values)}{at_line()}{also}")
        return op(card, *values)

    parameters = [inspect.Parameter(operand, inspect.Parameter.POSITIONAL_ONLY) for operand in operands]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = card.name
    function.__doc__ = _docstring(card, operands)
    return function


for _card in [card for card in CARDS.values() if card.summary]:
    _ours = implements(*_card.keys)(_function(_card))
    METHODS.update({key.__name__: _ours for key in _card.keys if isinstance(key, np.ufunc) and key.__name__ not in METHODS})
    FUNCTIONS.update(dict.fromkeys((_card.name, *_card.aliases.split()), _ours))

__test__ = {card.name: FUNCTIONS[card.name] for card in CARDS.values() if card.summary}  # doctest runs their examples, too


def __getattr__(name: str) -> Callable[..., Variable]:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
