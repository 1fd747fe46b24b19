"""What is computed for one step stays with it."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.loops import Literal
from numbascan.plan.casts import cast


def test_an_element_read_in_a_step_and_in_the_step_within_it_is_two_elements():
    """Both steps call the vector `v` and read its last element more than once, so that it has a local in each."""

    def nested(xss, first):
        def outer(xs, v):
            scale = np.sin(v[-1]) + v[-1] ** 2
            inner = ns.scan(lambda x, v: (np.cos(v[-1]) + v[-1] ** 3) * x + v / 7, xs, scale * v, return_updates=False)
            return inner[-1]

        return ns.scan(outer, xss, first, return_updates=False)

    rng = np.random.default_rng(0)
    xss, v = rng.normal(size=(3, 2)), rng.normal(size=30)
    found = ns.jit(nested)(xss, v)
    for xs, row in zip(xss, found, strict=True):
        v = (np.sin(v[-1]) + v[-1] ** 2) * v
        for x in xs:
            v = (np.cos(v[-1]) + v[-1] ** 3) * x + v / 7
        np.testing.assert_allclose(row, v, rtol=1e-13)


def test_a_routine_is_given_the_rows_of_the_steps_that_ran():
    x = nt.dscalar("x")
    path = ns.scan(lambda v: (-1.5 * v, ns.until(v > 30)), None, x, n_steps=50, return_updates=False)
    results = [np.sort(path), np.argsort(path), np.searchsorted(abs(path), x + 20)]
    compiled, plain = (ns.function([x], results, mode=mode)(1.0) for mode in (None, "python"))
    for one, expected in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, expected)


def test_small_arguments_are_read_once_before_the_loop():
    def f(h, x, A):
        return ns.scan(lambda x, h, A: A @ x * (h @ x), outputs_info=x, non_sequences=[h, A], n_steps=3, return_updates=False)

    h, x, A = np.array([0.5, -0.25]), np.ones(2), np.array([[0.5, 1.0], [-1.0, 0.25]])
    compiled = ns.jit(f)
    wanted = x
    for row in compiled(h, x, A):
        wanted = A @ wanted * (h @ wanted)
        np.testing.assert_allclose(row, wanted)
    before, _, step = compiled.source().partition("for t in")
    assert (before.count("h[0]"), step.count("h[0]"), step.count("A[")) == (1, 0, 0)


def test_small_arguments_read_in_a_choice_are_read_again_behind_it():
    def f(h, x, n):
        def step(x, h):
            return nt.ifelse(x[0] > 1, lambda: x * (h @ x), lambda: x + h @ x) + h @ h

        return ns.scan(step, outputs_info=x, non_sequences=h, n_steps=n, return_updates=False)

    h, x = np.array([0.5, -0.25]), np.ones(2)
    wanted = x
    for row in ns.jit(f)(h, x, 30):
        wanted = (wanted * (h @ wanted) if wanted[0] > 1 else wanted + h @ wanted) + h @ h
        np.testing.assert_allclose(row, wanted)


def test_a_work_array_is_written_before_a_view_of_it_is_read():
    x = np.random.default_rng(4).integers(0, 9, size=(7, 30)).astype("uint8")
    step = ns.scan(lambda row: (np.diff((row & 6).reshape(2, 15), axis=-1) * 0.1, row == 3))
    differences, is_three = step(sequences=x)
    np.testing.assert_array_equal(differences, np.diff((x & 6).reshape(7, 2, 15), axis=-1) * 0.1)
    np.testing.assert_array_equal(is_three, x == 3)


NUMBERS = {"int64": (300, -129, 2**53 + 1, 2**40 + 3, 0), "float64": (0.1, -0.0, 1e300, 1e-50, 16777217.0, np.inf)}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("source", "number"), [(source, number) for source, numbers in NUMBERS.items() for number in numbers])
def test_a_number_in_another_dtype_is_what_that_dtype_holds_of_it(source, number, dtype):
    found = cast(Literal(source, number), dtype)
    if source == "float64" and dtype.startswith("int"):
        assert not isinstance(found, Literal)  # for the machine to say
        return
    with np.errstate(over="ignore"):
        expected = np.array(number, source).astype(dtype)
    assert found == Literal(dtype, expected.item())
    assert np.signbit(np.real(found.value)) == np.signbit(expected.real)


def test_numbers_that_a_step_writes_into_a_narrow_row_are_read_as_the_row_holds_them():
    def program(x, k, y):
        def step(x, z, k, y):
            rows = nt.set_subtensor(x[0], 0.1), nt.set_subtensor(z[1], 0.1), nt.set_subtensor(k[0], np.int64(300))
            return *rows, *(row * y for row in rows)

        return ns.scan(step, outputs_info=[x, x + 0j, k, None, None, None], n_steps=2, non_sequences=y, return_updates=False)

    arguments = np.ones(3, "float32"), np.ones(3, "int8"), np.ones(3)
    for found, expected in zip(ns.jit(program)(*arguments), ns.jit(program, mode="python")(*arguments), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
