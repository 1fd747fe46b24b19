"""Reductions of which the order is free are shared out to all threads; a product of floats keeps its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_text import loops_alone

import numbascan as ns

Same = Callable[..., Any]
RNG = np.random.default_rng(12)
U, V, WHOLE = RNG.normal(size=70), RNG.normal(size=70), RNG.integers(-(2**62), 2**62, 70)
COMPLEX, WIDE = U + 1j * V, RNG.normal(size=(2, 70))


def conjugate_gradients(b: Any) -> Any:
    def step(x: Any, r: Any, p: Any, rr: Any) -> Any:
        ap = 2.1 * p - np.roll(p, 1) - np.roll(p, -1)
        along = rr / (p @ ap)
        rest = r - along * ap
        following = rest @ rest
        return x + along * p, rest, rest + (following / rr) * p, following

    return ns.scan(step, outputs_info=[np.zeros(70), b, b, b @ b], n_steps=5, return_updates=False)[0][-1]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "dot": (lambda u, v: u @ v, (U, V)),
    "dot of integers": (lambda u: u @ u, (WHOLE,)),
    "dot of complex numbers": (lambda u, v: u @ v, (COMPLEX, COMPLEX[::-1].copy())),
    "few rows times few columns": (lambda a, b: a @ b, (WIDE, WIDE.T.copy())),
    "all products": (lambda a: np.einsum("ij,ij->", a, a), (WIDE,)),
    "product of integers, modulo 2**64": (np.prod, (WHOLE | 1,)),
    "product of narrow integers": (np.prod, ((WHOLE | 1).astype("uint32"),)),
    "sum of unsigned integers": (np.sum, (WHOLE.astype("uint64"),)),
    "sum of complex numbers": (np.sum, (COMPLEX,)),
    "any": (lambda u: [(u > u.max() - 1e-9).any(), (u > 9).any()], (U,)),
    "all": (lambda u: [(u > -9).all(), (u < u.max()).all()], (U,)),
    "conjugate gradients": (conjugate_gradients, (U,)),
    "until any": (
        lambda u: ns.scan(
            lambda u: ((v := 1.1 * np.roll(u, 1)), ns.until((v > 4.0).any())), outputs_info=u, n_steps=50, return_updates=False
        ),
        (U,),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_reductions_in_all_threads(name: str, same: Same) -> None:
    function, args = PROGRAMS[name]
    text = ns.jit(function).lower(*args).source("cuda")
    assert "in_one_grid(" in text.partition("\ndef ")[2]
    assert not loops_alone(text)
    with np.errstate(over="ignore"):
        same(function, *args, rtol=1e-11)


def test_no_elements(same: Same) -> None:
    same(lambda u, k, c: [u @ u, k.prod(), k.sum(), u.any(), u.all(), c.sum()], U[:0], WHOLE[:0], COMPLEX[:0])


def test_factors_that_overflow_together_keep_their_order(same: Same) -> None:
    factors = np.tile([1e200, 1e-200], 40)
    assert "in_one_grid(" not in ns.jit(np.prod).lower(factors).source("cuda").partition("\ndef ")[2]
    same(np.prod, factors)


def test_a_complex_sum_of_the_user_keeps_its_order() -> None:
    run = ns.jit(lambda c: ns.scan(lambda c, s: s + c, c, 0j, return_updates=False)[-1])
    assert "in_one_grid(" not in run.lower(COMPLEX).source("cuda").partition("\ndef ")[2]


def test_the_sums_of_blocks_are_shared_out_within_each_block() -> None:
    text = ns.jit(lambda u, v: (u @ v, u.sum())).lower(U, V).source("cuda")
    assert text.count(" += BLOCK\n") == 2
    assert text.count("_of_block[0]") == 4  # of the block, and of all
