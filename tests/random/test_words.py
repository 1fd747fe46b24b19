"""No word of Philox is read by two draws. The numbers of a stream in every place are drawn by NumPy, and each read of a word is noted.

Two elements of an array of normal numbers, which one draw makes of a radius and an angle, are the two parts of the same two words.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_draws import OF_A_SIZE, OF_ROWS, PLACES, every_draw, graph, nested, steps

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ops import draw_methods, rejection
from numbascan.ops.card import CARDS
from numbascan.ops.random import FIXED, RANDOM_BITS, RANDOM_NORMAL, RANDOM_NORMALS, RANDOM_WORDS

Word = tuple[int, ...]  # key, counter, which of four
WHOLE, COSINE, SINE = "whole", "cosine", "sine"
ARRAY = 0  # the last word of the counter of an array's words


class Reads:
    """The words that were made, by their values, and the parts of them that were read: once each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: dict[int, Word] = {}
        self.parts: dict[Word, list[str]] = defaultdict(list)
        self.pairs: list[tuple[Any, Any, Any]] = []
        self.blocks: list[Any] = []
        self.philox, self.normal_pair = draw_methods.philox, draw_methods.normal_pair
        monkeypatch.setattr(draw_methods, "philox", self._philox)
        monkeypatch.setattr(rejection, "philox", self._philox)
        monkeypatch.setattr(draw_methods, "normal_pair", self._normal_pair)
        notes = {RANDOM_BITS: self._bits, RANDOM_WORDS: self._bits, RANDOM_NORMAL: self._normal, RANDOM_NORMALS: self._normals}
        notes |= {card: notes[fixed] for card, fixed in FIXED.items()}
        notes |= {CARDS[name]: self._blocks for name in rejection.SAMPLERS}
        for card, note in notes.items():
            monkeypatch.setitem(vars(card), "evaluate", self._noted(card.evaluate, note))

    def _noted(self, method: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def evaluate(*args: Any, **attrs: Any) -> Any:
            self.pairs, self.blocks = [], []
            result = method(*args, **attrs)
            note(np.asarray(result))
            return result

        return evaluate

    def _philox(self, *key_and_counter: Any) -> Any:
        found = self.philox(*key_and_counter)
        arrays = [array.reshape(-1).tolist() for array in np.broadcast_arrays(*key_and_counter, *found)]
        for *place, x0, x1, x2, x3 in zip(*arrays, strict=True):
            self.made |= {x: (*place, k) for k, x in enumerate((x0, x1, x2, x3))}
        self.blocks.append(found)
        return found

    def _normal_pair(self, word: Any, other: Any) -> Any:
        found = self.normal_pair(word, other)
        self.pairs.append((word, other, found))
        return found

    def _read(self, words: Any, part: str) -> None:
        for word in np.asarray(words).reshape(-1).tolist():
            self.parts[self.made[word]].append(part)

    def _bits(self, result: np.ndarray) -> None:
        self._read(result, WHOLE)

    def _normal(self, result: np.ndarray) -> None:
        ((word, other, (cosine, _)),) = self.pairs
        for chosen, part in ((result == cosine, COSINE), (result != cosine, SINE)):
            for words in (word, other):
                self._read(np.broadcast_to(words, chosen.shape)[chosen], part)

    def _normals(self, result: np.ndarray) -> None:
        ((word, other, _),) = self.pairs
        for part in (COSINE, SINE):
            self._read(word, part)
            self._read(other, part)

    def _blocks(self, result: np.ndarray) -> None:
        """Numbers by rejection: all of a block is theirs."""
        for block in self.blocks:
            for words in block:
                self._read(words, WHOLE)

    def twice(self) -> dict[Word, list[str]]:
        """The words that were read more than once, by anything but the two elements of an array that are made of them."""
        return {word: parts for word, parts in self.parts.items() if parts != [WHOLE] and not (word[5] == ARRAY and _is_of_pair(parts))}


def _is_of_pair(parts: list[str]) -> bool:
    return sorted(parts) in ([COSINE], [SINE], [COSINE, SINE])


@pytest.fixture
def reads(monkeypatch):
    return Reads(monkeypatch)


def test_the_table_has_every_distribution():
    methods = {name for name in dir(nt.random.RandomStream) if not name.startswith("_")}
    aliases = {"randint", "nbinom", "standard_t"}
    assert {name.split()[0] for name in (*OF_A_SIZE, *OF_ROWS)} == methods - aliases - {"seed", "updates", "new_state", "state", "first"}


def shuffled(draws, seed):
    random.Random(seed).shuffle(draws)
    return draws


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_single_numbers_of_every_distribution_share_no_word(reads, place):
    draws = shuffled([*every_draw(sizes=(None,)), *OF_ROWS.values()], 1)
    place(nt.random.RandomStream(1), draws, "python")
    assert len(reads.parts) > 2 * len(draws)
    assert not reads.twice()


@pytest.mark.parametrize("place", (graph, steps))
def test_draws_of_every_size_and_dtype_share_no_word(reads, place):
    draws = shuffled([*every_draw(), *OF_ROWS.values()], 2)
    place(nt.random.RandomStream(2), draws, "python")
    assert len(reads.parts) > 20 * len(draws)
    assert not reads.twice()


@pytest.mark.parametrize("name", ["uniform", "categorical", "gamma", "multivariate_normal"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_draws_of_one_and_of_many_share_no_word(reads, place, name):
    one, normal = OF_A_SIZE[name][0], OF_A_SIZE["normal"][0]
    many = every_draw((name, "normal", "uniform"), ((3,), (9,), (2, 20)))
    place(nt.random.RandomStream(3), [normal, one, normal, one, one, normal, *shuffled(many, 3), normal, one], "python")
    assert not reads.twice()


def test_draws_of_traced_sizes_share_no_word(reads):
    srng, n = nt.random.RandomStream(4), nt.lscalar("n")
    sized = [lambda s, draw=draw: draw(s, size=(n, 3)) for draw, _ in OF_A_SIZE.values()]
    paths, updates = ns.scan(lambda: [draw(srng) for draw in (*sized, *every_draw(sizes=(None,)))], n_steps=3)
    run = ns.function([n], [*paths, *(draw(srng) for draw in sized)], updates=updates | srng.updates(), mode="python")
    for length in (3, 2, 0, 30):
        run(length)
    assert not reads.twice()


def test_streams_of_neighbouring_seeds_share_no_word(reads):
    draws = every_draw(("normal", "uniform", "gamma"), (None, (9,)))
    for seed in (0, 1, 2, 2**32, 2**63, 2**64 - 1):
        for place in (graph, nested):
            place(nt.random.RandomStream(seed), draws, "python")
    assert not reads.twice()
    assert len({word[:2] for word in reads.parts}) > 6 * 20  # keys of streams, and of loops in steps


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_compiled_places_draw_the_same_bits(place):
    draws = every_draw(("normal", "uniform", "t", "bernoulli"), (None, (9,)))
    compiled, plain = (place(nt.random.RandomStream(5), shuffled([*draws], 5), mode) for mode in (None, "python"))
    assert len(compiled) == len(plain) > len(draws)
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, other)
