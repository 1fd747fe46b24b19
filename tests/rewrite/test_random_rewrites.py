"""Random programs give the same results before and after rewrites, and compiled with them and without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from random_programs.run import one
from rewrite.graphs import rewritten_for_the_oracle
from rewrite.random_steps import Steps
from wide import wide

import numbascan as ns
from numbascan.rewrite import factor_once, push_out_dot, push_out_output, push_out_seq, replace_loops
from numbascan.rewrite.pipeline import PASSES

READ = ("called python", "read python")
NAMES = [rewrite.__name__ for rewrite in PASSES]


@pytest.fixture
def _whatever_it_pays() -> Iterator[None]:
    """Products leave their loops however small they are."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (push_out_seq, push_out_output, push_out_dot, replace_loops, factor_once):
            patch.setattr(module, "SMALL", 0)
        for module in (push_out_seq, push_out_output):
            patch.setattr(module, "FEW_ROWS", 1000)
        patch.setattr(push_out_seq, "SHORT", 0)
        patch.setattr(push_out_output, "CHEAP", 0)
        patch.setattr(push_out_output, "MEMORY", 1000)
        yield


def assert_close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(b).max()))


def value_and_slopes(f):
    def both(*arguments):
        value, slopes = ns.value_and_grad(f, tuple(range(7)))(*arguments)
        return (value, *slopes)

    return both


@pytest.mark.usefixtures("_whatever_it_pays")
@pytest.mark.parametrize(
    "with_slopes, seeds", wide([(False, range(24)), (True, range(100, 101)), (False, range(24, 48)), (True, range(101, 106))], first=2)
)
def test_steps_with_products_give_the_same(with_slopes, seeds):
    """All rewrites; then, by turns, one of them alone and all others."""
    seen: set[str] = set()
    for seed in seeds:
        plain = Steps(seed)
        f = value_and_slopes(plain) if with_slopes else lambda *arguments, plain=plain: (plain(*arguments),)
        wanted = ns.jit(f, mode="python")(*plain.arguments)
        name = NAMES[seed % len(NAMES)]
        alone, others = ([rewrite for rewrite in PASSES if (rewrite.__name__ == name) is is_it] for is_it in (True, False))
        for rewrites in (PASSES, alone, others):
            with rewritten_for_the_oracle(rewrites) as changed:
                assert_close(ns.jit(f, mode="python")(*plain.arguments), wanted)
            seen.update(changed)
    assert with_slopes or seen >= set(NAMES) - {"one_step", "merge_inouts", "push_out_checks"}


@pytest.mark.parametrize("seed", wide(range(4), first=1))
def test_steps_with_products_give_the_same_compiled(seed):
    f = Steps(200 + seed)
    wanted = ns.jit(f, mode="python")(*f.arguments)
    for without in ((), NAMES):
        assert_close([ns.jit(f, mode=ns.Mode(without=without))(*f.arguments)], [wanted])


@pytest.mark.parametrize(
    "seeds, ways, gradients",
    wide(
        [
            (range(12), READ, False),
            (range(2), ("reverse python",), True),
            (range(12, 40), READ, False),
            (range(2, 4), ("reverse python",), True),
        ],
        first=2,
    ),
)
def test_random_programs_give_what_a_plain_loop_gives(seeds, ways, gradients):
    labels = []
    with rewritten_for_the_oracle() as changed:
        for seed in seeds:
            outcome = one(70_000 + seed, ways, gradients)
            assert outcome.label != "different", (seed, outcome.differences)
            labels.append(outcome.label)
    assert "same" in labels
    assert changed
