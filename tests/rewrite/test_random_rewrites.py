"""Random programs give the same results before and after rewrites, and compiled with them and without."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from random_programs.run import one
from rewrite.exact_steps import ExactSteps
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


def assert_equal(found, wanted, why=""):
    for a, b in zip(found, wanted, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype, why
        np.testing.assert_array_equal(a, b, err_msg=why)


def value_and_slopes(f, argnums=tuple(range(7))):
    def both(*arguments):
        value, slopes = ns.value_and_grad(f, argnums)(*arguments)
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
    assert with_slopes or seen >= set(NAMES) - {"one_step", "merge_inouts", "push_out_checks", "parts_in_branches", "start_sums"}


@pytest.mark.parametrize("seed", wide(range(4), first=1))
def test_steps_with_products_give_the_same_compiled(seed):
    f = Steps(200 + seed)
    wanted = ns.jit(f, mode="python")(*f.arguments)
    for without in ((), NAMES):
        assert_close([ns.jit(f, mode=ns.Mode(without=without))(*f.arguments)], [wanted])


@pytest.mark.usefixtures("_whatever_it_pays")
@pytest.mark.parametrize("seeds", wide([range(32), range(32, 400)], first=1))
def test_no_rewrite_adds_up_in_another_dtype_or_multiplies_in_another_order(seeds):
    """Dtypes and magnitudes mixed: all rewrites, then, by turns, one of them alone and all others, against Python's loop."""
    seen: set[str] = set()
    for seed in seeds:
        f = ExactSteps(seed)
        with np.errstate(over="ignore"):
            wanted = f(*f.arguments)
        assert all(np.isfinite(one).all() for one in wanted)
        assert_equal(ns.jit(f, mode="python")(*f.arguments), wanted, f"seed {seed}")
        name = NAMES[seed % len(NAMES)]
        alone, others = ([rewrite for rewrite in PASSES if (rewrite.__name__ == name) is is_it] for is_it in (True, False))
        for rewrites in (PASSES, alone, others):
            with rewritten_for_the_oracle(rewrites) as changed:
                assert_equal(ns.jit(f, mode="python")(*f.arguments), wanted, f"seed {seed}, {changed}")
            seen.update(changed)
    assert seen >= {"push_out_dot", "push_out_seq", "push_out_output", "push_out_non_seq", "sum_in_loop"}


@pytest.mark.usefixtures("_whatever_it_pays")
@pytest.mark.parametrize("seeds", wide([range(4), range(4, 100)], first=1))
def test_no_rewrite_of_a_gradient_does(seeds):
    for seed in seeds:
        f = ExactSteps(seed, slopes=True)
        both = value_and_slopes(f.cost, f.floats)
        wanted = ns.jit(both, mode="python")(*f.arguments)
        assert all(np.isfinite(one).all() for one in wanted)
        with rewritten_for_the_oracle() as changed:
            assert_equal(ns.jit(both, mode="python")(*f.arguments), wanted, f"seed {seed}, {changed}")


@pytest.mark.usefixtures("_whatever_it_pays")
@pytest.mark.parametrize("seed", wide(range(20), first=1))
def test_dtypes_and_orders_are_kept_compiled(seed):
    f = ExactSteps(seed)
    assert_equal(ns.jit(f)(*f.arguments), f(*f.arguments), f"seed {seed}")


def test_every_rewrite_says_what_it_adds_up_and_multiplies():
    for rewrite in PASSES:
        assert "\nArithmetic: " in sys.modules[rewrite.__module__].__doc__, rewrite.__name__


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
