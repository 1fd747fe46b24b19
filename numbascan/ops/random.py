"""Draws: random numbers as functions of a key, the number of the draw and the position in it. Without state, they are ordinary ops.

Short draws are made element by element, long ones by routines that use all four words of each Philox block. Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..ir.loops import Apply, Expr, Literal, Template, mul
from ..ir.loops import add as sum_of
from ..ir.node import Node, constant_value
from ..types import TensorType
from . import draw_methods, rejection
from .algebra import add, div
from .card import Card, apply, register
from .elementwise import helper, loop_card
from .lowering import Elementwise, Generate, Indices, Library, Operands, View
from .runtime_attributes import HOLE, SizedCard, filled, not_negative, run_numbers
from .shape import known_shape

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
NO_GRADIENT = "a random number moves with nothing; write it as a function of a base draw (loc + scale * z), which is taken as a constant"
REJECTED = "a draw that is accepted or refused, or a whole number, does not move smoothly with its parameters"
FEW = 8  # a draw of up to this many elements is made element by element, in locals
_KEY = (np.uint64(0x452821E638D01377), np.uint64(0xBE5466CF34E90C6C))


def _quiet(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method as an oracle, without warnings: words overflow as they should."""

    def evaluate(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            return method(*values)

    return evaluate


def _drawn(name: str, words: int, result: str, samples: Callable[[], Samples], ahead: str = "") -> Card:
    """The card of a method that takes `words` words. ahead: the routine that makes many numbers at once."""
    loop = (*("uint64",) * words, result)
    method = _quiet(getattr(draw_methods, name))
    code = replace(helper("random", name, words), ahead=ahead)
    return loop_card(name, method, lambda *types: loop, code, samples=samples, no_gradient=NO_GRADIENT)


def _words() -> np.ndarray:
    return draw_methods.words(*_KEY, 3, 12).reshape(3, 4)


_POSITIONS = np.arange(6, dtype="uint64").reshape(2, 3)


def _successive() -> Samples:
    return [((*_KEY, np.uint64(7), np.uint64(tag), _POSITIONS), {}) for tag in (0, 1)]


RANDOM_BITS = _drawn("random_bits", 5, "uint64", _successive, "draws.words_ahead")
RANDOM_NORMAL = _drawn("random_normal", 5, "float64", _successive, "draws.normals_ahead")
SINGLE = np.uint64(2)  # the tag of draws of one number: these are positions of draw 0, so that four of them share a block
UNIFORM_OF = _drawn("uniform_of", 1, "float64", lambda: [((_words(),), {})])
SINGLE_UNIFORM_OF = _drawn("single_uniform_of", 1, "float64", lambda: [((_words(),), {})])
EXPONENTIAL_OF, CAUCHY_OF, GUMBEL_OF, LAPLACE_OF, LOGISTIC_OF = (
    _drawn(name, 1, "float64", lambda: [((_words(),), {})])
    for name in ("exponential_of", "cauchy_of", "gumbel_of", "laplace_of", "logistic_of")
)
NORMAL_OF = _drawn("normal_of", 1, "float64", lambda: [((_words(),), {})], "draws.single_normals_ahead")


def _sampled(name: str, *parameters: np.ndarray) -> Card:
    """The card of a sampler. Operands: key, number, position, parameters."""
    sampler = rejection.SAMPLERS[name]
    loop = (*("uint64",) * 4, *(sampler.dtype,) * (sampler.parameters + 1))
    method = _quiet(rejection.sampled(sampler))
    places = np.arange(parameters[0].size, dtype="uint64")
    samples: Samples = [((*_KEY, np.uint64(7), places, *parameters), {})]
    code = helper("random", name, 4 + sampler.parameters)
    return loop_card(name, method, lambda *types: loop, code, samples=lambda: samples, no_gradient=f"{REJECTED} ({name})")


_MEANS = np.array([0.0, 0.3, 1.0, 4.7, 9.9, 10.0, 33.3, 1e3, 1e9, 1e15] * 5)
RANDOM_GAMMA = _sampled("random_gamma", np.array([0.0, 0.01, 0.7, 1.0, 1.3, 50.0, 1e7] * 5))
RANDOM_LOG_GAMMA = _sampled("random_log_gamma", np.array([1e-5, 0.01, 0.7, 1.0, 1.3, 50.0, 1e7] * 5))
_SHAPES = np.array([1e-5, 0.01, 0.7, 1.0, 1.3, 50.0, 1e7])
RANDOM_BETA = _sampled("random_beta", np.repeat(_SHAPES, 7), np.tile(_SHAPES, 7))
RANDOM_POISSON = _sampled("random_poisson", _MEANS)
RANDOM_BINOMIAL = _sampled("random_binomial", np.array([0.0, 1, 7, 30, 31, 100, 1000, 10**6, 10**12, 5] * 5), np.linspace(0.0, 1.0, 50))
RANDOM_BELOW = _sampled("random_below", np.array([0, 1, 2, 3, 1000, 2**63, 2**63 + 1, 3 * 2**62] * 4, dtype="uint64"))
RANDOM_HYPERGEOMETRIC = _sampled(
    "random_hypergeometric",
    np.array([0.0, 5, 0, 20, 20, 30, 300, 1e6, 2.0**51, 7] * 5),
    np.array([0.0, 0, 7, 20, 3, 1e9, 200, 2e6, 2.0**52, 9] * 5),
    np.array([0.0, 3, 4, 20, 12, 1e6, 250, 5e5, 2.0**50, 15] * 5),
)
RANDOM_VONMISES = _sampled("random_vonmises", np.array([0.0, 1e-300, 1e-5, 0.3, 1.0, 4.7, 100.0, 1e6, 1e300] * 5))
RANDOM_WALD = _sampled("random_wald", np.array([1e-3, 1.0, 30.0, 1e200] * 5), np.array([1e3, 2.0, 0.1, 1e-200] * 5))
GEOMETRIC_OF = loop_card(
    "geometric_of",
    _quiet(rejection.geometric_of),
    lambda *types: ("uint64", "float64", "float64"),
    helper("random", "geometric_of", 2),
    samples=lambda: [((_words(), np.array([0.01, 0.3, 0.9, 1.0])), {})],
    no_gradient=REJECTED,
)
DRAWN_BY = register(
    Card(
        "drawn_by",
        np.asarray,
        lambda x: x,
        View(lambda view: view.dims(0), lambda view, index: index),
        samples=lambda: [((np.array([0.5, 2.0]),), {})],
        no_gradient=f"{REJECTED} (a choice by probability)",
    )
)
"""A parameter with which draws are compared: no derivative goes through the result."""


# functions whose last bit is the same everywhere --------------------------------------------------------------------


def _exact(name: str, partial: Callable[[Node, Node], Any], *points: float) -> Card:
    """The card of a function of a double. It is not libm's: these differ from each other in the last bit, and a draw must not."""
    method = _quiet(getattr(draw_methods, name))
    samples: Samples = [((np.array(points),), {})]
    return loop_card(
        name,
        method,
        lambda *types: ("float64", "float64"),
        helper("random", name),
        samples=lambda: samples,
        partials=lambda out, x: (partial(out, x),),
    )


EXACT_EXP = _exact("exact_exp", lambda out, x: out, -3.1, -0.2, 0.7, 5.3)
EXACT_LOG = _exact("exact_log", lambda out, x: div(1, x), 0.02, 0.7, 1.3, 55.1)
EXACT_LOG1P = _exact("exact_log1p", lambda out, x: div(1, add(1, x)), -0.9, -0.01, 0.3, 4.1)


# whole draws --------------------------------------------------------------------------------------------------------


class _OpenDraw(Card):
    """A draw whose length is its last operand. Rebuilt with a known length, it is the draw of that fixed length."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        count = constant_value(inputs[3])
        if count is None:
            return apply(self, *inputs)
        fixed = FIXED[self]
        return apply(fixed, *inputs[:3], count=int(count))


FIXED: dict[Card, Card] = {}
OPEN: dict[Card, Card] = {}


def _counted_dims(view: Operands) -> tuple[Indices, ...]:
    count = view.scalar(3)
    not_negative(view, count, "the size of a draw")
    return ((count,),)


def _whole_draw(name: str, element_card: Card) -> Card:
    """Registers both cards of a whole draw: by a routine of `runtime/routines/draws.py`, or by the card of one of its elements.

    Operands: key, number, and the open length.
    """
    method = getattr(draw_methods, name)
    assert isinstance(element_card.lower, Elementwise)
    code, dtype = element_card.lower.code(), element_card.lower.loop()[-1]

    def evaluate(k0: Any, k1: Any, number: Any, size: Any = None, count: int | None = None) -> Any:
        length = int(size) if count is None else count
        if length < 0:
            raise ValueError(f"the size of a draw: negative dimensions are not allowed, one is {length}")
        return method(k0, k1, number, length)

    def lowering(operands: int, dims: Callable[[Operands], tuple[Indices, ...]]) -> Library:
        words = ("uint64",) * 3
        return Library(
            lambda *types: f"draws.{name}_into",
            ((0,) * operands, (1,)),
            dims,
            dtypes=lambda *types: words if operands == 3 else (*words, "int64"),
            written_out=Generate(lambda view: dims(view)[0], element),
        )

    def element(view: Operands, index: Indices) -> Expr:
        place = Apply("uint64", Template("np.uint64({0})"), index)
        return Apply(dtype, code, (*(view.at(k, (), "uint64") for k in range(3)), Literal("uint64", 0), place))

    three = (*_KEY, np.uint64(7))
    fixed = register(
        Card(
            f"random_{name}",
            evaluate,
            lambda k0, k1, number, count: TensorType(dtype, (count,)),
            lowering(3, lambda view: ((view.attrs["count"],),)),
            samples=lambda: [(three, {"count": count}) for count in (21, 300)],
            no_gradient=NO_GRADIENT,
        )
    )
    OPEN[fixed] = register(
        _OpenDraw(
            f"random_{name}_open",
            evaluate,
            lambda k0, k1, number, size: TensorType(dtype, (None,)),
            lowering(4, _counted_dims),
            samples=lambda: [((*three, count), {}) for count in (0, 21, 300)],
            no_gradient=NO_GRADIENT,
        )
    )
    FIXED[OPEN[fixed]] = fixed
    return fixed


RANDOM_WORDS = _whole_draw("words", RANDOM_BITS)
RANDOM_NORMALS = _whole_draw("normals", RANDOM_NORMAL)


def whole_draw(card: Card, key: tuple[Node, Node], number: Node, count: Node | int) -> Node:
    """The first `count` elements of a draw."""
    if isinstance(count, int):
        return apply(card, *key, number, count=count)
    return apply(OPEN[card], *key, number, count)


# parameters ---------------------------------------------------------------------------------------------------------


def _in_range(x: Any, holds: Any, message: str) -> Any:
    if not holds:
        raise ValueError(message)
    return x


def _dims_in_range(view: Operands) -> Indices:
    view.check(view.at(1), "ValueError", str(view.attrs["message"]).replace("{", "{{").replace("}", "}}"))
    return view.dims(0)


IN_RANGE = register(
    Card(
        "in_range",
        _in_range,
        lambda x, holds, message: x.strong(),
        View(_dims_in_range, lambda view, index: index),
        samples=lambda: [((np.array([0.5, 2.0]), np.bool_(True)), {"message": "a sample"})],
        linear=(0,),
        vjp=lambda node, cotangent: (cotangent, None),
    )
)
"""A parameter if a condition holds, else ValueError."""


def _places_dims(view: Operands) -> Indices:
    (count,) = run_numbers(view, view.attrs["shape"], 0)
    not_negative(view, count, "the size of a draw")
    return (count,)


def _places(*sizes: Any, shape: Any) -> np.ndarray:
    (length,) = (int(size) for size in filled(shape, iter(sizes)))
    if length < 0:
        raise ValueError(f"the size of a draw: negative dimensions are not allowed, one is {length}")
    return np.arange(length)


DRAW_PLACES = register(
    SizedCard(
        "draw_places",
        _places,
        lambda *sizes, shape: TensorType("int64", known_shape(shape)),
        Generate(_places_dims, lambda view, index: Literal("int64", index[0]) if isinstance(index[0], int) else index[0]),
        samples=lambda: [((), {"shape": (4,)}), ((3,), {"shape": (HOLE,)})],
        no_gradient="positions are counted, not computed",
        arrays=0,
        folds=False,
    )
)
"""The positions of a draw of one axis."""


# the numbers of draws in a loop -------------------------------------------------------------------------------------


def _numbers_element(view: Operands, index: Indices) -> Expr:
    first = view.at(0, (), "int64")
    number = sum_of(int(first.value.real) if isinstance(first, Literal) else first, mul(index[0], view.attrs["stride"]))
    return Literal("int64", number) if isinstance(number, int) else number


DRAW_NUMBERS = register(
    SizedCard(
        "draw_numbers",
        lambda first, *sizes, shape, stride: first + stride * np.arange(max(int(filled(shape, iter(sizes))[0]), 0)),
        lambda first, *sizes, shape, stride: TensorType("int64", known_shape(shape)),
        # the loop whose steps are numbered refuses a negative number of steps
        Generate(lambda view: tuple(run_numbers(view, view.attrs["shape"], 1)), _numbers_element),
        samples=lambda: [((5,), {"shape": (4,), "stride": 1}), ((np.int64(7), 3), {"shape": (HOLE,), "stride": 2})],
        no_gradient="positions are counted, not computed",
        folds=False,
    )
)
