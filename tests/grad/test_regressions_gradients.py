"""Derivatives that were wrong once: each test holds what a random program showed."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


@pytest.mark.parametrize("mode", ["python", None])
def test_an_initial_value_counts_where_the_states_write_depends_on_nothing(mode: str | None) -> None:
    def step(a: object, b: object) -> object:
        return np.ones(2), b + a

    a, b = nt.dvectors("a", "b")
    _, total = ns.scan(step, outputs_info=[a, b], n_steps=3, return_updates=False)
    found = ns.function([a, b], ns.grad(total[-1].sum() + total[0].sum(), a), mode=mode)([5.0, 6.0], [0.0, 0.0])
    assert found.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("mode", ["python", None])
def test_a_slice_that_turns_out_to_have_one_element_has_the_gradient_of_what_it_was_broadcast_to(mode: str | None) -> None:
    x = nt.dvector("x")
    cost = (np.broadcast_to(x, (2, 3)) * x[:1:-1]).sum()
    found = ns.function([x], ns.grad(cost, x), mode=mode)([1.0, 2.0, 3.0])
    assert found.tolist() == [6.0, 6.0, 18.0]  # 2 (x0 + x1 + x2) x2


def test_dimensions_of_states_settle_where_steps_turn_or_exchange_them() -> None:
    a, b, c = nt.tensor("float64", (None, 2), name="a"), nt.tensor("float64", (2,), name="b"), nt.dvector("c")
    rows = ns.scan(lambda a, b, c: (a.T, c, b), outputs_info=[a, b, c], n_steps=3, return_updates=False)
    assert [row.type.shape[1:] for row in rows] == [(2, 2), (2,), (2,)]
    found = ns.function([a, b, c], rows)([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0], [7.0, 8.0])
    assert [value[-1].tolist() for value in found] == [[[1.0, 3.0], [2.0, 4.0]], [7.0, 8.0], [5.0, 6.0]]


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("checkpoint", [None, 2])
def test_a_shared_variable_that_every_step_replaces_is_left_alone_by_a_loop_of_no_steps(mode, checkpoint):
    shared, n = ns.shared(np.array([0.5, -0.25])), nt.lscalar("n")
    _, updates = ns.scan(lambda y: (0.5 * y, {shared: y[:2] * 3.0}), outputs_info=np.ones(4), n_steps=n, checkpoint=checkpoint)
    cost = (updates[shared] ** 2).sum()
    slope = ns.function([n], ns.grad(cost, shared), mode=mode)
    np.testing.assert_array_equal(slope(0), [1.0, -0.5])
    np.testing.assert_array_equal(slope(3), [0.0, 0.0])
