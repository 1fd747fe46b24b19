"""Rows that go backwards, and starts of slices, are in locals before the loops that the SIMD unit may take."""

import numpy as np

import numbascan as ns
import numbascan.tensor as nt


def of_slices(x):
    path = ns.scan(
        lambda x: np.concatenate([x[:1], np.sin(x[1:-1] * x[2:] + x[:-2]), x[-1:]]), outputs_info=x, n_steps=6, return_updates=False
    )
    return (path[-1] ** 2).sum()


def of_pairs(x):
    return ns.scan(lambda x: np.sin(x + 0.1 * np.roll(x, 1)), outputs_info=x, n_steps=6, return_updates=False)[-1].sum()


def set_in_part(x):
    def step(t, x):
        return nt.set_subtensor(x[1:-1], np.where(t > 2, np.sin(x[2:]) * x[:-2], x[1:-1]))

    return ns.scan(step, sequences=np.arange(6), outputs_info=x, return_updates=False)[-1].sum()


def test_rows_that_go_backwards_are_read_at_a_local():
    text = ns.jit(ns.grad(of_slices)).lower(np.ones(40)).source()
    assert "row = lanes(" in text
    inner = text[text.index("row = lanes(") :]
    assert "x_path[row, i + 1]" in inner
    assert "x_path[row, i + 2]" in inner


def test_starts_of_slices_are_chosen_outside_the_loop():
    text = ns.jit(ns.grad(of_slices)).lower(np.ones(40)).source()
    assert not [line for line in text.splitlines() if "for i in" not in line and "[" in line and " if " in line and "+ i)]" in line]


def test_gradients_are_those_of_differences():
    for f in (of_slices, of_pairs, set_in_part):
        for length in (3, 4, 5, 16, 17, 40):
            x = np.random.default_rng(length).normal(size=length)
            small = 1e-6
            expected = [(float(f(x + small * e)) - float(f(x - small * e))) / (2 * small) for e in np.eye(length)]
            np.testing.assert_allclose(ns.grad(f)(x), expected, atol=1e-7)


def test_lanes_and_checkpoints_have_the_same_gradients():
    lanes = np.random.default_rng(1).normal(size=(70, 17))
    gradient = ns.grad(of_slices)
    alone = [gradient(x) for x in lanes]
    np.testing.assert_allclose(ns.vmap(gradient)(lanes), alone, rtol=1e-12)

    def in_parts(x):
        step = lambda x: np.concatenate([x[:1], np.sin(x[1:-1] * x[2:] + x[:-2]), x[-1:]])  # noqa: E731
        return (ns.scan(step, outputs_info=x, n_steps=6, return_updates=False, checkpoint=2, keep_last=1) ** 2).sum()

    np.testing.assert_allclose(ns.grad(in_parts)(lanes[0]), alone[0], rtol=1e-12)
