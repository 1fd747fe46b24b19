"""A stream's states, and its base draws: words, uniform, normal and exponential numbers, which distributions are made from."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import free_inputs
from ...ir.node import constant_value
from ...ops.card import Card
from ...ops.random import (
    DRAW_PLACES,
    FEW,
    IN_RANGE,
    NORMAL_OF,
    RANDOM_BITS,
    RANDOM_NORMAL,
    RANDOM_NORMALS,
    RANDOM_WORDS,
    SINGLE,
    SINGLE_UNIFORM_OF,
    UNIFORM_OF,
    whole_draw,
)
from ...ops.runtime_attributes import sized
from ..numpy.shape import broadcast_sizes, broadcast_to, reshape
from ..numpy.shape_arguments import count_of, sizes_of, value_of
from ..shared import SharedVariable, shared, shared_of
from ..tracing import is_tracing
from ..variable import Variable, as_variable, at_line, op
from .draw_scopes import take

Shape = tuple[Any, ...]  # ints, and traced integers where only the run knows
SHORT = 16  # elements of a row
FLOATS = ("float32", "float64")
_NUMBERING = threading.RLock()  # held while a state gets its number: two of one number would draw the same


class Stream:
    """A key and the states of draws that go on from call to call.

    A state is a shared variable of three words: the key, which is the seed and a number of the stream, and the number of the next draw.
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if is_tracing():
            raise TypeError(f"a RandomStream is made in a function that is traced{at_line()}: it would be made once; make it outside")
        self.name = name or "random"
        self._seed = _seed_of(seed)
        self.state = self._state(0)
        self.states = [self.state]
        self.pending: dict[SharedVariable, Variable] = {}

    def _state(self, stream: int) -> SharedVariable:
        label = f"{self.name}_state{stream}" if stream else f"{self.name}_state"
        return shared(np.array([self._seed, stream, 0], dtype=np.uint64), label)

    def new_state(self) -> SharedVariable:
        """The state of one more place in a graph that draws. It counts as a stream of its own, so that no two places share a draw."""
        with _NUMBERING:
            state = self._state(len(self.states))
            self.states.append(state)
        return state

    def seed(self, seed: int | None = None) -> None:
        """Sets all states to the beginning, under a new seed."""
        with _NUMBERING:
            self._seed = _seed_of(seed)
            states = list(self.states)
        for number, state in enumerate(states):
            state.set_value(np.array([self._seed, number, 0], dtype=np.uint64))

    def updates(self) -> dict[SharedVariable, Variable]:
        """The advance of all places that have drawn so far, for `ns.function(..., updates=stream.updates())`.

        A scan whose number of steps is itself a variable is not among them: its own updates, which `ns.scan` returns, say it.
        """
        pending = self.pending.copy()  # at once: another thread may draw meanwhile
        return {state: new for state, new in pending.items() if all(shared_of(node) is not None for node in free_inputs([new.node]))}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: seed {self._seed}>"

    # base draws -----------------------------------------------------------------------------------------------------

    def _words(self, shape: Shape) -> Variable:
        """Random words of 64 bits."""
        return self._made(shape, RANDOM_BITS, RANDOM_WORDS)

    def _uniforms(self, shape: Shape, dtype: str) -> Variable:
        """Numbers in [0, 1)."""
        if dtype == "float64":
            return op(UNIFORM_OF, self._words(shape))
        return as_dtype(op(SINGLE_UNIFORM_OF, self._words(shape)), dtype)

    def _normals(self, shape: Shape) -> Variable:
        """Normal numbers of mean 0 and variance 1: a single one from its word, the elements of an array in pairs from two words."""
        return self._made(shape, RANDOM_NORMAL, RANDOM_NORMALS) if shape else op(NORMAL_OF, self._words(shape))

    def _made(self, shape: Shape, one_by_one: Card, whole: Card) -> Variable:
        """A draw of a shape. A single word is one of a long draw; rows too short for loops to draw ahead in them are drawn as a whole."""
        key, number = take(self)
        if not shape:
            return op(one_by_one, *key, np.uint64(0), SINGLE, number)
        count = count_of(shape)
        if isinstance(count, int) and count > FEW and shape[-1] < SHORT:
            return reshape(Variable(whole_draw(whole, (key[0].node, key[1].node), number.node, count)), shape)
        return op(one_by_one, *key, number, np.uint64(0), _places(shape))

    def _by_element(self, card: Card, shape: Shape, *parameters: Variable) -> Variable:
        """A draw whose elements each have as many words as they need."""
        key, number = take(self)
        return op(card, *key, number, _places(shape), *parameters)


def _places(shape: Shape) -> Any:
    """The position of each element of a draw."""
    count = count_of(shape)
    if isinstance(count, int) and count <= FEW:
        return np.arange(count, dtype=np.uint64).reshape(shape)
    places = Variable(sized(DRAW_PLACES, (), (count if isinstance(count, int) else as_variable(count).node,)))
    return places if len(shape) == 1 else reshape(places, shape)


def _seed_of(seed: Any) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"the seed of a RandomStream is {seed!r}; give an int, or None for one of the system's") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"the seed of a RandomStream is {number}; it must be at least 0 and below 2**64")
    return number


# arguments ----------------------------------------------------------------------------------------------------------


def shaped(size: Any, parameters: Sequence[Any], what: str) -> tuple[Shape, list[Variable]]:
    """The shape of a draw, and its parameters broadcast to it. ValueError where they do not fit into `size`."""
    variables = [as_variable(parameter) for parameter in parameters]
    if size is None:
        shape = broadcast_sizes(variables)
    else:
        shape = tuple(value_of(length) for length in sizes_of(size, f"{what}: size"))
        if any(isinstance(length, int) and length < 0 for length in shape):
            raise ValueError(f"{what}: size is {size}{at_line()}; no length can be negative")
        if any(variable.ndim > len(shape) for variable in variables):
            raise ValueError(
                f"{what}: size has {len(shape)} axes, fewer than a parameter{at_line()}; give a size that the parameters fit into"
            )
    return shape, [broadcast_to(variable, shape) if variable.ndim else variable for variable in variables]


def float_dtype(dtype: Any, parameters: Sequence[Any], what: str) -> str:
    """The dtype of a draw of real numbers: as asked, else single if all parameters that say anything are single, else double."""
    if dtype is None:
        said = {variable.type.dtype for variable in map(as_variable, parameters) if not variable.type.weak}
        return "float32" if said == {"float32"} else "float64"
    name = np.dtype(dtype).name
    if name not in FLOATS:
        raise TypeError(f"{what}: dtype is {name}{at_line()}; it must be float32 or float64")
    return name


def checked(what: str, name: str, parameter: Any, rule: str, holds: Callable[[Any], Any]) -> Variable:
    """A parameter. ValueError where it is out of range: now if that is known, else when it runs."""
    variable = as_variable(parameter)
    condition = as_variable(holds(variable)).all()
    known = constant_value(condition.node)
    if known is None:
        return op(IN_RANGE, variable, condition, message=f"{what}: {name} must be {rule}")
    if not known:
        raise ValueError(f"{what}: {name} is {constant_value(variable.node)}{at_line()}; it must be {rule}")
    return variable


def checked_scale(what: str, scale: Any, name: str = "scale") -> Any:
    """A scale. ValueError where it is known and negative; one that only the run knows mirrors the numbers then, and costs no check."""
    known = constant_value(scale.node) if isinstance(scale, Variable) else scale
    if isinstance(known, (int, float, np.ndarray, np.generic)) and (np.asarray(known) < 0).any():
        raise ValueError(f"{what}: {name} is {known}{at_line()}; it must be at least 0")
    return scale


def as_dtype(x: Variable, dtype: Any) -> Variable:
    """x in a dtype."""
    cast: Variable = x if x.type.dtype == np.dtype(dtype).name else x.astype(dtype)
    return cast
