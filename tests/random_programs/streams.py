"""What a stream of random numbers means, by NumPy's Philox, and how programs draw. Shares nothing with numbascan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from .trees import Expr

if TYPE_CHECKING:
    from .generate import Maker


class Stream:
    """A stream in a loop: step t has as many numbers as step 0 drew. A loop in a step takes one number, which is the key of its own."""

    def __init__(self, seed: int) -> None:
        self.key: Any = [seed, 0]
        self.number = self.count = 0
        self.outside: list[tuple[Any, int, int]] = []

    def begin(self, t: int) -> None:
        """Before step t."""
        self.number = t * self.count

    def end(self, t: int) -> None:
        """After step t."""
        self.count = self.number if t == 0 else self.count

    def enter(self) -> None:
        """Before a loop in a step."""
        self.outside.append((self.key, self.number, self.count))
        self.key = np.random.Philox(key=self.key, counter=[0, 0, self.number, 1]).random_raw(2)
        self.number = self.count = 0

    def leave(self) -> None:
        """After a loop in a step."""
        has_drawn = self.count > 0
        self.key, self.number, self.count = self.outside.pop()
        self.number += has_drawn

    # draws ----------------------------------------------------------------------------------------------------------

    def _words(self, shape: tuple[int, ...], together: int = 1) -> Any:
        """The words of a draw, those of an array a multiple of `together`. Draws of one number are the elements of one long draw."""
        number, count = self.number, _count(shape)
        self.number += 1
        if not shape:
            return np.random.Philox(key=self.key, counter=[number // 4, 0, 0, 2]).random_raw(4)[number % 4]
        return np.random.Philox(key=self.key, counter=[0, 0, number, 0]).random_raw(-(-count // together) * together)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        shape, dtype = _shape(size, low, high), _dtype(low, high)
        words = self._words(shape)
        base = (words >> np.uint64(40)) * 2.0**-24 if dtype == "float32" else (words >> np.uint64(11)) * 2.0**-53
        return _moved(base.reshape(shape), low, high - low, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """One by the inverse distribution function, from the smaller tail. Arrays by Box & Muller: a radius from each even word, from the
        odd one an angle, of whole quarter turns and a part of one."""
        shape, dtype = _shape(size, loc, scale), _dtype(loc, scale)
        words = self._words(shape, together=2)
        if not shape:
            above = int(words) >= 2**63
            tail = ((2**64 - 1 - int(words) if above else int(words)) + 0.5) * 2.0**-64
            return _moved(np.asarray(special.ndtri(tail) * (-1 if above else 1)), loc, scale, dtype)
        radius = np.sqrt(-2 * np.log(_open(words[::2])))
        turn = ((words[1::2] >> np.uint64(62)) + (_open(words[1::2] << np.uint64(2)) - 0.5)) * (np.pi / 2)
        pairs = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=-1).reshape(-1)
        return _moved(pairs[: _count(shape)].reshape(shape), loc, scale, dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        shape = _shape(size, scale)
        return _moved(-np.log(_open(self._words(shape))).reshape(shape), 0.0, scale, _dtype(scale))

    def bernoulli(self, p: Any, size: Any = None) -> Any:
        shape = _shape(size, p)
        words = self._words(shape).reshape(shape)
        return ((words >> np.uint64(11)) * 2.0**-53 < p).astype("int64")[()]


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype="int64"))


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*map(np.shape, parameters)) if size is None else tuple(size)


def _dtype(*parameters: Any) -> str:
    """Single where all that are not Python numbers are single, else double."""
    said = {np.asarray(x).dtype.name for x in parameters if isinstance(x, (np.generic, np.ndarray))}
    return "float32" if said == {"float32"} else "float64"


def _open(words: Any) -> Any:
    return ((words >> np.uint64(12)) + 0.5) * 2.0**-52


def _moved(base: Any, loc: Any, scale: Any, dtype: str) -> Any:
    return ((base.astype(dtype) * scale).astype(dtype) + loc).astype(dtype)[()]


# how programs draw ------------------------------------------------------------------------------------------------------

OF_A_SHAPE = ("srng.uniform(size={})", "srng.normal(size={})", "srng.exponential(0.3, size={})", "srng.uniform(-0.7, 0.4, size={})")
OF_A_VALUE = ("srng.normal({0}, 0.3)", "srng.uniform({0}, 1.7)", "srng.normal(0.1, np.abs({0}))", "srng.uniform(-0.2, {0})")
OF_A_FLOAT = ("srng.exponential(0.1 + np.abs({0}))", "srng.exponential(np.abs(np.tanh({0})))")
WHOLE = ("srng.bernoulli(1 / (1 + np.abs({0})))", "srng.bernoulli(0.5 + 0.3 * np.sin({0}))")
OF_TWO = ("srng.normal({0}, np.abs({1}))", "srng.uniform({0}, {1})")


def drawn(g: Maker, a: Expr) -> Expr:
    """Random numbers, of a shape or with parameters."""
    if "srng" not in g.env:
        raise g.refusal
    if g.chance(0.3):
        text = g.choice((*OF_A_SHAPE, "srng.bernoulli(0.4, size={})")).format(np.shape(a.value))
        return Expr(text, (), g.evaluate(text), "bernoulli" in text)
    if g.kind(a) not in "fiu":
        raise g.refusal
    if g.chance(0.25):
        b = g.partner(a)
        if g.kind(b) not in "fiu":
            raise g.refusal
        return g.call(g.choice(OF_TWO), a, b)
    if g.kind(a) == "f" and g.chance(0.25):
        return g.call(g.choice(WHOLE), a, exact=True)
    return g.call(g.choice((*OF_A_VALUE, *OF_A_FLOAT) if g.kind(a) == "f" else OF_A_VALUE), a)
