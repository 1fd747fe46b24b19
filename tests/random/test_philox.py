"""Philox4x64-10: the words are those of Random123 and of NumPy, compiled and by NumPy's arithmetic."""

import numpy as np
import pytest
from scipy import special

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.draw_scopes import word_of
from numbascan.ops import draw_methods
from numbascan.ops.random import RANDOM_WORDS, whole_draw

# Random123 (Salmon et al.), tests/kat_vectors: counter, key, result of philox4x64 with 10 rounds
KNOWN_ANSWERS = [
    ("0 0 0 0", "0 0", "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    ("f" * 16 + (" " + "f" * 16) * 3, "f" * 16 + " " + "f" * 16, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
    (
        "243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89",
        "452821e638d01377 be5466cf34e90c6c",
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    ),
]
RNG = np.random.default_rng(7)
KEYS = [(0, 0), (1234, 1), (2**64 - 1, 2**63), *map(tuple, RNG.integers(0, 2**64, (12, 2), dtype=np.uint64))]


def words_of(text):
    return [np.array([int(word, 16)], dtype=np.uint64) for word in text.split()]


def numpys(key, number, count, tag=0):
    return np.random.Philox(key=np.array(key, np.uint64), counter=np.array([0, 0, number, tag], np.uint64)).random_raw(count)


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_known_answers(counter, key, result):
    assert draw_methods.philox(*words_of(key), *words_of(counter)) == tuple(words_of(result))


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_known_answers_of_the_compiled_function(counter, key, result):
    from numba import njit, types

    from numbascan.emit.runtime.random import philox

    compiled = njit(types.UniTuple(types.uint64, 4)(*(types.uint64,) * 6))(lambda a, b, c, d, e, f: philox(a, b, c, d, e, f))
    assert compiled(*(word[0] for word in (*words_of(key), *words_of(counter)))) == tuple(word[0] for word in words_of(result))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("number", [0, 5, 2**40])
def test_words_by_numpys_arithmetic(key, number):
    np.testing.assert_array_equal(draw_methods.words(*key, number, 23), numpys(key, number, 23))


@pytest.fixture(scope="module")
def draws():
    """Words of a draw in three ways: as a whole, as a whole of a fixed length, one by one."""
    k0, k1 = nt.tensor("uint64", shape=(), name="k0"), nt.tensor("uint64", shape=(), name="k1")
    number, count = nt.lscalar("number"), nt.lscalar("count")
    key = (k0.node, k1.node)
    whole = [nt.Variable(whole_draw(RANDOM_WORDS, key, number.node, size)) for size in (count.node, 23)]
    places = nt.arange(count)
    inputs = [k0, k1, number, count]
    outputs = [*whole, *(word_of((k0, k1), number, tag, places) for tag in (0, 1))]
    return ns.function(inputs, outputs), ns.function(inputs, outputs, mode="python")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("number", [0, 5, 2**40])
def test_words_are_numpys(draws, key, number):
    for f in draws:
        whole, fixed, one_by_one, tagged = f(np.uint64(key[0]), np.uint64(key[1]), number, 23)
        for found in (whole, fixed, one_by_one):
            np.testing.assert_array_equal(found, numpys(key, number, 23))
        np.testing.assert_array_equal(tagged, numpys(key, number, 23, tag=1))


@pytest.mark.parametrize("mode", ["numba", "python"])
@pytest.mark.parametrize("size", [1, 3, 8, 9, 30, (2, 3), (5, 7)])
def test_uniform_doubles_are_numpys(mode, size):
    srng = nt.random.RandomStream(77)
    draw = ns.function([], srng.uniform(size=size), updates=srng.updates(), mode=mode)
    for number in range(3):
        generator = np.random.Generator(np.random.Philox(key=[77, 1], counter=[0, 0, number, 0]))
        np.testing.assert_array_equal(draw(), generator.random(size))


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_single_numbers_are_those_of_one_generator(mode):
    srng = nt.random.RandomStream(77)
    draw = ns.function([], srng.uniform(), updates=srng.updates(), mode=mode)
    rows, updates = ns.scan(lambda: srng.uniform(), n_steps=300)
    scanned = ns.function([], rows, updates=updates, mode=mode)
    one, other = (np.random.Generator(np.random.Philox(key=[77, k], counter=[0, 0, 0, 2])) for k in (1, 2))
    np.testing.assert_array_equal([draw() for _ in range(9)], one.random(9))
    np.testing.assert_array_equal(np.concatenate([scanned(), scanned()]), other.random(600))


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_a_single_normal_number_is_the_inverse_distribution_function_of_one_word(mode):
    srng = nt.random.RandomStream(77)
    draw = ns.function([], srng.normal(), updates=srng.updates(), mode=mode)
    rows, updates = ns.scan(lambda: srng.normal(), n_steps=301)
    scanned = ns.function([], rows, updates=updates, mode=mode)
    one, other = (numpys((77, k), 0, 602, tag=2) for k in (1, 2))
    np.testing.assert_allclose(np.concatenate([scanned(), scanned()]), special.ndtri((other + 0.5) * 2.0**-64), rtol=1e-13)
    np.testing.assert_array_equal([draw() for _ in range(9)], draw_methods.normal_of(one[:9]))


def test_a_draw_of_a_traced_size():
    srng = nt.random.RandomStream(77)
    rows, columns = nt.lscalar("rows"), nt.lscalar("columns")
    draw = ns.function([rows, columns], srng.uniform(size=(rows, columns)))
    expected = np.random.Generator(np.random.Philox(key=[77, 1], counter=[0, 0, 0, 0])).random((3, 5))
    np.testing.assert_array_equal(draw(3, 5), expected)
    assert draw(0, 5).shape == (0, 5)
    with pytest.raises(ValueError, match="negative"):
        draw(-3, 5)


def test_short_and_long_draws_begin_alike():
    sizes = (1, 2, 5, 7, 8, 9, 64, 127, 128, 129, 131, 300)
    found = ns.function([], [nt.random.RandomStream(3).normal(size=n) for n in sizes])()
    for n, normals in zip(sizes, found, strict=True):
        np.testing.assert_array_equal(normals, draw_methods.normals(3, 1, 0, n))
