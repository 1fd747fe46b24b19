"""Calls of many kinds in turn: each runs what was compiled for it, whatever was called before."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import kernel_arguments
import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import backends
from numbascan import compile as compiling

SHAPES = [(), (0,), (1,), (2,), (5,), (16,), (17,), (1, 1), (5, 1), (1, 5), (1, 17), (17, 1), (3, 0), (0, 3), (2, 5), (5, 17)]
SHAPES += [(1, 1, 1), (7, 1, 5), (7, 5, 1), (1, 1, 5), (1, 5, 1), (2, 2, 5), (17, 1, 1), (2, 1, 1, 5), (1, 1, 1, 1)]
DTYPES = ["float64", "float32", "complex128", "int64", "int32", "uint64", "bool", ">f8", ">i4"]
NUMBERS = [0.0, -0.0, 2.0, 3, -1, 2**62, True, 1j, np.float64(2), np.float32(2), np.int64(2), np.int32(-1), np.uint8(7), np.bool_(True)]


def test_a_rank_is_part_of_the_kind():
    total = ns.scan(lambda x, s: s + x.sum())
    for shape in [(7, 1, 100), (7, 1, 100), (1, 100), (1, 1, 100), (7, 1, 1, 100), (7, 1, 1, 100), (1, 1, 100)]:
        np.testing.assert_array_equal(total(np.ones(shape), 0.0)[-1], np.prod(shape))


def test_one_row_is_a_kind_of_its_own():
    total = ns.scan(lambda x, s: s + x)
    for shape in [(5, 1), (5, 1), (1,), (1,), (1, 1), (1, 1), (5, 1)]:
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(total(x, np.zeros(shape[1:])), np.cumsum(x, axis=0))


def test_an_array_from_outside_that_gets_another_shape_is_not_read_beyond_its_end():
    table = np.arange(6.0)
    add = ns.scan(lambda s: s + table)
    np.testing.assert_array_equal(add(None, np.zeros(6), n_steps=1)[0], np.arange(6.0))
    given = compiling.Kernel.run
    seen = []

    def spied(kernel: Any, values: Any, out: Any = ()) -> Any:
        seen.append([np.shape(value) for value in values])
        table.shape = (2, 3)  # after all has been looked at, as another thread would do it
        return given(kernel, values, out)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling.Kernel, "run", spied)
        np.testing.assert_array_equal(add(None, np.zeros(6), n_steps=1)[0], np.arange(6.0))
    assert seen == [[(), (6,), (6,)]]


@pytest.fixture
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels look at their arguments, and give empty arrays: nothing is compiled, so that many kinds can be tried."""

    def run(kernel: Any, values: Any, out: Any = ()) -> list[Any]:
        kernel_arguments.check(kernel, values, out)
        types = [node.type for node in kernel.graph.outputs]
        return [np.zeros([dim or 0 for dim in type_.shape], type_.dtype) for type_ in types]

    monkeypatch.setattr(backends, "load", lambda text, name: None)
    monkeypatch.setattr(compiling.Kernel, "run", run)


def arrays(chance: random.Random) -> Iterator[Any]:
    """Arrays and numbers of random kinds, in layouts of all sorts."""
    while True:
        if chance.random() < 0.15:
            yield chance.choice(NUMBERS)
            continue
        dtype, shape = chance.choice(DTYPES), chance.choice(SHAPES)
        array = np.ones(shape, dtype)
        layout = chance.choice(["C", "C", "C", "F", "strided", "unaligned", "read-only"])
        if layout == "F":
            array = np.asfortranarray(array)
        elif layout == "strided" and shape:
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        elif layout == "unaligned":
            array = np.zeros(array.nbytes + 1, "uint8")[1:].view(dtype).reshape(shape) if array.size else array
        elif layout == "read-only":
            array.flags.writeable = False
        yield array


ONE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {  # what is called, and what it gives, by NumPy
    "sequence": (lambda: ns.scan(lambda x: x * 2), lambda x: x * 2 if x.ndim else None),
    "state": (lambda: functools.partial(ns.scan(n_steps=3)(lambda s: s), None), lambda x: np.stack([x] * 3)),
    "jit": (lambda: ns.jit(lambda x: x * 2), lambda x: x * 2),
    "vmap": (lambda: ns.vmap(lambda x: x * 2), lambda x: x * 2 if x.ndim else None),
    "grad": (lambda: ns.grad(lambda x: (x * x).sum()), lambda x: x if x.dtype.kind == "f" else None),
    "map": (lambda: lambda x: ns.map(_doubled, x)[0], lambda x: x * 2 if x.ndim else None),
}


def _doubled(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_is_given_what_it_was_compiled_for(name: str, seed: int, not_compiled: None):
    made, wanted = ONE[name]
    f = made()
    kinds = arrays(random.Random(f"{name} {seed}"))
    pool = [value for value in (next(kinds) for _ in range(60)) if wanted(np.asarray(value)) is not None]
    chance = random.Random(seed)
    for value in chance.choices(pool, k=150):
        got = f(value)
        with np.errstate(all="ignore"):
            expected = wanted(np.asarray(value))
        assert (got.dtype, got.ndim) == (expected.dtype.newbyteorder("="), expected.ndim)


@pytest.mark.parametrize("seed", range(3))
def test_places_of_arguments_are_told_apart(seed: int, not_compiled: None):
    """The same values as sequences, states and non-sequences in all divisions, alone, in lists and in tuples."""
    chance = random.Random(seed)
    f = ns.scan(lambda *args: [*args, args[0]] if len(args) > 1 else args[0])
    pool = [np.ones(shape) for shape in [(3,), (3, 1), (1, 3), (1,), (1, 1), (3, 3), (1, 1, 3)]] + [1.0, 2]
    for _ in range(150):
        rows = [value for value in chance.choices(pool, k=chance.choice([0, 1, 2])) if np.ndim(value)]
        others = chance.choices(pool, k=chance.choice([1, 2]))
        shaped: Callable[[list[Any]], Any] = chance.choice([list, tuple, lambda values: values[0] if len(values) == 1 else values or None])
        steps = None if rows and chance.random() < 0.5 else 1
        got = f(shaped(rows), None, shaped(others), steps)
        leaves = [row[0] for row in rows] + others
        wanted = [*leaves, leaves[0]] if len(leaves) > 1 else leaves
        assert [array.ndim - 1 for array in (got if len(leaves) > 1 else [got])] == [np.ndim(leaf) for leaf in wanted]


@pytest.mark.parametrize("seed", range(3))
def test_functions_of_variables_take_what_they_declare(seed: int, not_compiled: None):
    chance = random.Random(seed)
    x, y, n = nt.dmatrix("x"), nt.tensor("float32", shape=(None, 1), name="y"), nt.lscalar("n")
    w = ns.shared(np.ones((2, 3)), "w")
    f = ns.function([x, y, n], [x * n, y, w.sum(axis=0)], updates={w: w * 2})
    for _ in range(100):
        rows, columns = chance.choice([0, 1, 2, 16, 17]), chance.choice([0, 1, 2, 16, 17])
        w.set_value(np.ones((chance.choice([1, 2, 17]), chance.choice([1, 3]))))
        order = chance.choice("CF")
        number = chance.choice([2, True, np.int32(3), np.array(4)])
        got = f(np.ones((rows, columns), chance.choice(["f8", "f4", ">f8"]), order), np.ones((rows, 1), "f4", order), number)
        assert [(part.dtype.name, part.ndim) for part in got] == [("float64", 2), ("float32", 2), ("float64", 1)]


LENGTHS = [(5, 5), (1, 5), (5, 1), (1, 1), (40, 1), (1, 40), (40, 40), (1, 5)]


def total_of_sums(x: Any, y: Any) -> Any:
    return ns.scan(lambda row, s: s + row, sequences=x + y, outputs_info=np.float64(0), return_updates=False)


def sum_beside_a_scan(x: Any, y: Any) -> Any:
    return ns.scan(lambda row, s: s + row, sequences=x, outputs_info=np.float64(0), return_updates=False)[-1] + (x[::-1] + y)


def array_in_a_step(x: Any, y: Any) -> Any:
    return ns.scan(lambda row, s: s + (x * row + y).sum(), sequences=x, outputs_info=np.float64(0), return_updates=False)


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize(
    "function, expected",
    [
        (total_of_sums, lambda x, y: np.cumsum(x + y)),
        (sum_beside_a_scan, lambda x, y: x.sum() + (x[::-1] + y)),
        (array_in_a_step, lambda x, y: np.cumsum([(x * row + y).sum() for row in x])),
    ],
)
def test_sequences_of_one_row_broadcast(function: Callable[..., Any], expected: Callable[..., Any], mode: str | None) -> None:
    x, y = nt.dvectors("x y")
    for call in (ns.jit(function, mode=mode), ns.function([x, y], function(x, y), mode=mode)):
        for n, m in LENGTHS:
            a, b = np.arange(1.0, n + 1), np.arange(2.0, m + 2)
            np.testing.assert_allclose(call(a, b), expected(a, b), rtol=1e-13)


def test_the_number_of_rows_alone_is_no_kind_even_where_it_is_1(not_compiled: None) -> None:
    x = nt.dmatrix("x")
    total = ns.function([x], [ns.scan(lambda r, s: s + r, x[1:], np.zeros(3))[0], ns.map(lambda r: r * 2, x)[0]])
    program = total._runner.program
    kinds = {program._kind([np.ones((n, 3))]) for n in (1, 2, 5, 40)}
    assert len(kinds) == 1


def test_a_length_that_a_function_needs_is_fixed_however_many_were_seen() -> None:
    total = ns.jit(lambda x: np.squeeze(x) * 2, mode="python")
    twice = ns.jit(ns.as_written(lambda x: np.concatenate([row for row in x for _ in range(2)])[:, None]), mode="python")
    for n in range(2, 14):
        np.testing.assert_array_equal(total(np.ones((n, 1))), np.full(n, 2.0))
        np.testing.assert_array_equal(twice(np.ones((n, 1))), np.ones((2 * n, 1)))
