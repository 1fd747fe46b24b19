"""Cards as compiled code: many templates in one njit function, over arrays of hard values."""

import importlib
import math
from collections.abc import Sequence

import numba
import numpy as np

from numbascan.emit.names import HELPERS
from numbascan.emit.text import expression
from numbascan.ir.loops import Apply, Name
from numbascan.ops.card import CARDS, Card
from numbascan.ops.checkpoint_schedule import BINOMIAL_SPLIT, FEWEST_SLOTS, THINNED_STRIDE
from numbascan.ops.lowering import Elementwise
from numbascan.types import TensorType

REALS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, 1e-3, -7.25, 20.0, 61.0, 95.0, -750.0, 1e-30, np.inf, -np.inf, np.nan)
# NumPy's own SIMD code gives either zero for the greater or lesser of 0.0 and -0.0.
ANY_ZERO = {"maximum", "minimum", "fmax", "fmin"}
# Rounding errors of these grow with the result (b log a), near their zeros (log gamma), or with an exponent (a log x).
LOOSE = {"power": 300, "gammaln": 16, "log_gamma_density": 3000, "gammainc_slope": 300}

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.7, 3e-9, 20.0)


def helpers():
    """What generated code may call, by name."""
    modules = {name: importlib.import_module(f"numbascan.emit.runtime.{module}") for module, names in HELPERS.items() for name in names}
    return {"np": np, "math": math, **{name: getattr(module, name) for name, module in modules.items()}}


def n_operands(card: Card) -> int:
    """How many operands a card takes, as its samples show."""
    (operands, _), *_ = card.samples()
    return len(operands)


def elementwise_cards() -> list[Card]:
    """The cards that work element by element and have no attributes, but for numbers of schedules: those are defined for counts alone."""
    found = [card for card in CARDS.values() if isinstance(card.lower, Elementwise)]
    assert all(card.samples for card in found), "every card has samples"
    counts = {BINOMIAL_SPLIT, FEWEST_SLOTS, THINNED_STRIDE}  # tests/grad/test_checkpoints.py has their values
    return [card for card in found if not card.samples()[0][1] and card not in counts]


def cards_on(dtypes: Sequence[str]) -> list[Card]:
    """The cards that compute in just these dtypes on operands of them."""
    found = [card for card in elementwise_cards() if n_operands(card) == len(dtypes)]
    loops = [(card, loop_of(card, dtypes)) for card in found]
    return [card for card, loop in loops if loop is not None and loop[:-1] == tuple(dtypes)]


def loop_of(card: Card, dtypes: Sequence[str]) -> tuple[str, ...] | None:
    """The dtypes of the computation on operands of `dtypes`; None where the op is not defined for them."""
    try:
        return card.lower.loop(*map(TensorType, dtypes))
    except TypeError:
        return None


def hard_values(dtype: str) -> np.ndarray:
    """Values where implementations differ: zeros of both signs, extremes, NaN, infinities, halves."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        wanted = (0, 1, 2, 3, 5, 7, 10, 63, 64, 100, -1, -2, -3, -7, info.min, info.min + 1, info.max - 1, info.max, 2**53, 2**53 + 1)
        return np.array(sorted({value for value in wanted if info.min <= value <= info.max}), dtype)
    if kind == "f":
        return np.array([*REALS, np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    return np.array([complex(x, y) for x in PARTS for y in PARTS], dtype)


def operands_of(dtypes: Sequence[str]) -> list[np.ndarray]:
    """Every combination of hard values, flat."""
    return [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*map(hard_values, dtypes), indexing="ij")]


class Compiled:
    """The templates of `cards` in one njit function; all take operands of `dtypes`."""

    def __init__(self, cards: Sequence[Card], dtypes: Sequence[str]) -> None:
        self.cards = cards
        self.loops = loops = [card.lower.loop(*map(TensorType, dtypes)) for card in cards]
        names = ["x", "y", "z"][: len(dtypes)]
        lines = [f"def kernel({', '.join([f'{name}s' for name in names] + [f'out{k}' for k in range(len(cards))])}):"]
        lines.append(f"    for i in range({names[0]}s.size):")
        lines += [f"        {name} = {name}s[i]" for name in names]
        for k, (card, loop) in enumerate(zip(cards, loops, strict=True)):
            places = tuple(Name(dtype, name) for dtype, name in zip(loop, names, strict=False))
            lines.append(f"        v{k} = {expression(Apply(loop[-1], card.lower.code(*loop), places))}")
            lines.append(f"        out{k}[i] = v{k}")
        self.text = "\n".join(lines)
        space = helpers()
        exec(self.text, space)
        self.kernel = numba.njit(error_model="numpy")(space["kernel"])

    def __call__(self, *operands: np.ndarray) -> list[np.ndarray]:
        """Each card's results on flat operands."""
        results = [np.empty(operands[0].shape, loop[-1]) for loop in self.loops]
        self.kernel(*operands, *results)
        return results

    def result_dtypes(self) -> list[str]:
        """What Numba takes each card's text to be."""
        (overload,) = self.kernel.overloads.values()
        found = overload.type_annotation.typemap
        return [str(numba.types.unliteral(found[f"v{k}"])) for k in range(len(self.cards))]


def assert_close(actual: np.ndarray, expected: np.ndarray, ulps: float, label: str, signed_zeros: bool = True) -> None:
    """Equal within `ulps` rounding errors; NaN, infinities and signs of zeros exactly."""
    parts = [(actual.real, expected.real), (actual.imag, expected.imag)] if actual.dtype.kind == "c" else [(actual, expected)]
    for got, wanted in parts:
        assert got.dtype == wanted.dtype, label
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted, err_msg=label)
            continue
        scale = np.abs(expected).astype(got.dtype)
        with np.errstate(all="ignore"):
            near = np.abs(got - wanted) <= ulps * np.finfo(got.dtype).eps * scale + np.finfo(got.dtype).tiny
            good = (got == wanted) | (np.isnan(got) & np.isnan(wanted)) | (near & np.isfinite(wanted))
        if signed_zeros:
            good &= (got != 0) | (wanted != 0) | (np.signbit(got) == np.signbit(wanted))
        bad = np.flatnonzero(~good)
        assert not bad.size, f"{label}: at {bad[:5]} got {got[bad[:5]]}, expected {wanted[bad[:5]]}"
