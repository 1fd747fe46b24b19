"""Draws of one number a step, made for some steps at once, are the numbers that they are one by one."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime.routines import draws
from numbascan.ir.loops import Name, add, parts, sub
from numbascan.ops import draw_methods
from numbascan.plan.passes.batched_draws import _expanded

KEY = np.uint64(0x452821E638D01377), np.uint64(0xBE5466CF34E90C6C)
ROUTINES = {
    "words": ("uint64", draws.words_ahead, draw_methods.random_bits),
    "normals": ("float64", draws.normals_ahead, draw_methods.random_normal),
    "single normals": ("float64", draws.single_normals_ahead, lambda *place: draw_methods.normal_of(draw_methods.random_bits(*place))),
}


@pytest.mark.parametrize("name", ROUTINES)
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 7])
def test_routines_give_the_numbers_of_one_draw(name: str, stride: int) -> None:
    dtype, into, method = ROUTINES[name]
    for first in (0, 1, 2, 3, 6, 2**40 + 5):
        for count in (0, 1, 2, 5, 32, 64, 127, 130, 300):
            found = np.empty((count, 3), dtype)[:, 1]
            into(found, *KEY, np.uint64(7), np.uint64(2), np.uint64(first), stride)
            places = np.uint64(first) + np.uint64(stride) * np.arange(count, dtype="uint64")
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(found, method(*KEY, np.uint64(7), np.uint64(2), places))


def walk(srng, x):
    return ns.scan(lambda x, y: 0.5 * y + x * srng.normal(), x, np.float64(0.3), return_updates=False)


def of_two(srng, x):
    return ns.scan(lambda x, y: 0.5 * y + srng.uniform() * srng.normal(x, 0.1), x, np.float64(0.3), return_updates=False)


def single(srng, x):
    return ns.scan(lambda x: srng.uniform(np.float32(0.2), x.astype("float32")), x, return_updates=False)


def mapped(srng, x):
    return ns.vmap(lambda x: x + srng.normal() + srng.exponential())(x)


def lanes(srng, x):
    def path(x):
        return ns.scan(lambda y: y * np.exp(0.1 * srng.normal() + 0.01 * srng.uniform()), outputs_info=x, n_steps=37, return_updates=False)

    return ns.vmap(path)(x)


def ends(srng, x):
    lane = lambda x: ns.scan(lambda y: y * np.exp(0.1 * srng.normal()), outputs_info=x, n_steps=70, return_updates=False)[-1]  # noqa: E731
    return ns.vmap(lane)(x)


def with_choice(srng, x):
    step = lambda x, y: nt.ifelse(x > 0, y + srng.normal(), 0.5 * y) + srng.uniform()  # noqa: E731
    return ns.scan(step, x, np.float64(0.3), return_updates=False)


def until(srng, x):
    return ns.scan(lambda x: (x + srng.normal(), ns.until(x > 1.9)), x, return_updates=False)


def until_far_away(srng, x):
    step = lambda y: (y + srng.normal(), ns.until(np.abs(y) > 17))  # noqa: E731
    rows = ns.scan(step, outputs_info=x[0], n_steps=5000, return_updates=False)
    inner = lambda x: ns.scan(step, outputs_info=x, n_steps=130, return_updates=False)[-1]  # noqa: E731
    return rows, ns.vmap(inner)(x)


def backwards(srng, x):
    return ns.scan(lambda x, y: 0.5 * y + x * srng.normal(), x, np.float64(0.3), go_backwards=True, return_updates=False)


def slope(srng, x):
    return ns.grad(lambda x: walk(srng, x)[-1])(x)


def chosen(srng, x):
    step = lambda x, y: np.where(x > 0, 0.5 * y + srng.normal(), srng.uniform(y, 3.0))  # noqa: E731
    return ns.scan(step, x, np.float64(0.3), return_updates=False)


def of_one_and_many(srng, x):
    def step(x, y):
        return 0.5 * y + srng.normal() * x + srng.uniform(size=40) * srng.normal(size=(40,)) + srng.normal(size=(3, 40))[::-1].sum(axis=0)

    return ns.scan(step, x, np.zeros(40), return_updates=False)


def arrays(srng, x):
    square, flat = srng.normal(size=(17, 33)), srng.uniform(size=600)
    return square.T.sum(), (square.T * 2)[3], flat[::-3] + 1, flat.reshape(20, 30).T[1:4], srng.normal(size=x.shape) * x


def tree(result):
    return result if isinstance(result, tuple) else (result,)


PROGRAMS = [
    walk,
    of_two,
    single,
    mapped,
    lanes,
    ends,
    with_choice,
    until,
    until_far_away,
    backwards,
    slope,
    chosen,
    of_one_and_many,
    arrays,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_length_and_beginning_gives_the_numbers_of_each_mode(program) -> None:
    streams = [nt.random.RandomStream(5) for _ in range(2)]
    compiled, plain = (
        ns.jit(lambda x, srng=srng: program(srng, x), mode=mode) for srng, mode in zip(streams, (None, "python"), strict=True)
    )
    lengths = {walk: (1, 2, 31, 64, 65, 130, 257), lanes: (3, 65), ends: (3, 65), until_far_away: (3, 65)}
    for length in lengths.get(program, (3, 64, 65, 257)):  # up to 16 numbers are compiled for their length
        x = np.random.default_rng(length).normal(size=length)
        for one, other in zip(tree(compiled(x)), tree(plain(x)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert streams[0].state.get_value().tolist() == streams[1].state.get_value().tolist()


def test_what_is_drawn_ahead() -> None:
    srng = nt.random.RandomStream(5)
    texts = {}
    for program in (walk, of_two, lanes, ends, mapped, with_choice, until, backwards):
        f = ns.jit(lambda x, program=program: program(srng, x))
        f(np.ones(70))
        texts[program] = f.source()
    assert [text.count("draws.") for text in texts.values()] == [1, 2, 2, 1, 2, 1, 1, 1]
    assert "normal_ahead[:" in texts[ends]
    assert texts[walk].count("normal_of") == 0
    assert "normal_of(random_bits(" in texts[with_choice]  # a branch that is not taken draws nothing


def test_an_operand_through_thousands_of_locals_stays_short() -> None:
    chain = {f"v{k}": add(Name("int64", f"v{k + 1}"), Name("int64", f"v{k + 1}_again")) for k in range(5_000)}
    chain |= {f"{name}_again": sub(value, 1) for name, value in chain.items()}
    found = list(parts(_expanded(Name("int64", "v0"), chain)))
    assert len(found) < 500
    assert any(isinstance(part, Name) and part.name in chain for part in found)
    assert _expanded(Name("int64", "v4999"), chain) == chain["v4999"]
