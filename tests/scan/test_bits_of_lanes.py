"""The bits of a lane depend on its inputs alone: not on its place, on how many lanes there are, or on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from ops.harness import helpers
from wide import wide

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.cpu.in_lanes import with_lanes
from numbascan.ir.loops import FUNCTION, Apply, Break, For, If, Let, Literal, Load, Name, Store, Template, compare
from numbascan.ops.elementwise import HELPERS, in_lanes

FUNCTIONS = [name for name, helper in HELPERS.items() if helper.cost == FUNCTION]
LANES = 140
STEPS = 150  # too many to be written out
DTYPES = ("float64", "float32")


def lanes_of(dtype: str) -> np.ndarray:
    return np.random.default_rng(3).uniform(0.4, 1.3, LANES).astype(dtype)


def assert_same_bits(f: Callable[..., Any], *arguments: np.ndarray, offsets: bool = True) -> None:
    """As many lanes as there are, and any number of the first of them; pieces from other places, if lanes have no numbers."""
    whole = flat(f(*arguments))
    pieces = [slice(0, n) for n in range(1, LANES)]
    pieces += [slice(k, k + n) for n in (1, 2, 3, 7, 50, 64) for k in range(0, LANES, n)] if offsets else []
    if numba.config.DISABLE_JIT:  # plans are checked: Python has no vectors
        pieces = pieces[:: len(pieces) // 5]
    wrong = [
        piece
        for piece in pieces
        if any(one.tobytes() != all_[piece].tobytes() for one, all_ in zip(flat(f(*(x[piece] for x in arguments))), whole, strict=True))
    ]
    assert wrong == []


def flat(results: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in results] if isinstance(results, list | tuple) else [np.asarray(results)]


def arity_of(name: str) -> int:
    return HELPERS[name.removesuffix(in_lanes(""))].arity


# functions ----------------------------------------------------------------------------------------------------------


@cache
def kernel(names: Sequence[str], dtypes: Sequence[str]) -> Any:
    """A loop for each function, over the rows of x (in all of these dtypes) to the rows of out."""
    arity = arity_of(names[0])
    lines = [f"def kernel({', '.join(f'x_{k}, out_{k}' for k in range(len(dtypes)))}):"]
    for row, name in enumerate(names):
        lines.append("    for i in range(x_0.shape[1]):")
        lines += [f"        out_{k}[{row}, i] = {name}({', '.join(f'x_{k}[{j}, i]' for j in range(arity))})" for k in range(len(dtypes))]
    space = helpers()
    exec("\n".join(lines), space)
    return numba.njit(error_model="numpy")(space["kernel"])


@pytest.mark.parametrize("dtypes", [("float64",), ("float32",), ("float64", "float32")], ids="-".join)
@pytest.mark.parametrize("arity", [1, 2])
def test_a_function_has_the_same_bits_in_vectors_of_all_lengths_and_behind_them(arity: int, dtypes: tuple[str, ...]) -> None:
    found = [name for name in FUNCTIONS if arity_of(name) == arity]
    names = tuple(map(in_lanes, found))
    points = np.random.default_rng(1).uniform(0.05, 0.95, (2, 4 * LANES))

    def values(piece: slice) -> list[np.ndarray]:
        arrays: list[np.ndarray] = []
        for dtype in dtypes:
            x = np.ascontiguousarray(points[:, piece], dtype)
            arrays += [x, np.empty((len(names), x.shape[1]), dtype)]
        kernel(names, dtypes)(*arrays)
        return arrays[1::2]

    whole = values(slice(None))
    for piece in [*(slice(0, n) for n in range(1, LANES)), *(slice(k, k + 5) for k in range(90))]:
        for part, all_ in zip(values(piece), whole, strict=True):
            wrong = [name for name, one, other in zip(names, part, all_[:, piece], strict=True) if one.tobytes() != other.tobytes()]
            assert wrong == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arity", [1, 2])
def test_functions_in_lanes_are_the_functions(arity: int, dtype: str) -> None:
    names = tuple(name for name in FUNCTIONS if arity_of(name) == arity)
    points = np.random.default_rng(2).uniform(0.05, 0.95, (2, 30))[:arity].astype(dtype)
    one, other = (np.empty((len(names), 30), dtype) for _ in range(2))
    kernel(names, (dtype,))(points, one)
    kernel(tuple(map(in_lanes, names)), (dtype,))(points, other)
    np.testing.assert_allclose(one, other, rtol=8 * np.finfo(dtype).eps)


# loops --------------------------------------------------------------------------------------------------------------


def g(s: Any, a: Any) -> Any:
    """Functions, powers, divisions. No step forgets a last bit: errors grow."""
    sum_ = np.exp(-a * s) + 0.3 * np.cbrt(s) + np.log1p(s * s) / (2.0 + np.tanh(a)) + s**a * 0.1 + np.arctan2(s, a) * 0.1
    return 0.1 + 0.8 * np.sin(5.0 * sum_) ** 2


def ends(a: Any) -> Any:
    return ns.scan(lambda s: g(s, a), outputs_info=a, n_steps=STEPS, return_updates=False)[-1]


def paths(a: Any) -> Any:
    return ns.scan(lambda s: g(s, a), outputs_info=a, n_steps=STEPS, return_updates=False)


def few_steps(a: Any) -> Any:
    return ns.scan(lambda s: g(s, a), outputs_info=a, n_steps=3, return_updates=False)


def some_rows(a: Any) -> Any:
    rows, traces = ns.scan(lambda s: (g(s, a), np.cosh(s)), outputs_info=[a, None], n_steps=STEPS, return_updates=False)
    return rows[-3:], traces[1::4]


def last_of_trace(a: Any) -> Any:
    """A step sets a local that no later step reads."""
    rows, traces = ns.scan(lambda s: (g(s, a), np.cosh(s) + np.sin(s)), outputs_info=[a, None], n_steps=STEPS, return_updates=False)
    return rows[-1], traces[-1]


def elementwise(a: Any) -> Any:
    return g(a, a * 0.5)


def until(a: Any) -> Any:
    def step(s: Any, n: Any) -> Any:
        return [g(s, a), n + 1], ns.until(s > 0.895)

    rows, counts = ns.scan(step, outputs_info=[a, 0], n_steps=STEPS, return_updates=False)
    return rows[-1], counts[-1]


def choices(a: Any) -> Any:
    return ns.scan(lambda s: nt.ifelse(s > 0.5, g(s, a), np.cbrt(s)), outputs_info=a, n_steps=STEPS, return_updates=False)[-1]


def slopes(a: Any) -> Any:
    return ns.grad(lambda b: ns.scan(lambda s: g(s, b), outputs_info=b, n_steps=STEPS, return_updates=False)[-1])(a)


def few_slopes(a: Any) -> Any:
    return ns.grad(lambda b: ns.scan(lambda s: g(s, b), outputs_info=b, n_steps=4, return_updates=False).sum())(a)


def vectors(a: Any) -> Any:
    return ns.scan(lambda s: g(s, a) / s.sum(), outputs_info=a * np.linspace(0.5, 1.0, 37), n_steps=4, return_updates=False)[-1]


def lanes_in_lanes(a: Any) -> Any:
    return ns.vmap(ends)(a * np.linspace(0.5, 1.0, 37))


def few_lanes_in_lanes(a: Any) -> Any:
    return ns.vmap(ends)(a * np.linspace(0.5, 1.0, 5))


FIRST = (ends, paths, some_rows, elementwise, until, choices, slopes, lanes_in_lanes)


@pytest.mark.parametrize("f", wide([*FIRST, few_steps, last_of_trace, few_slopes, vectors, few_lanes_in_lanes], first=len(FIRST)))
def test_lanes_have_the_same_bits_in_any_company(f: Callable[[Any], Any]) -> None:
    assert_same_bits(ns.jit(ns.vmap(f)), lanes_of("float64"))


@pytest.mark.parametrize("f", wide([ends, slopes, paths, elementwise, few_steps], first=2))
def test_lanes_of_single_precision_have_the_same_bits_in_any_company(f: Callable[[Any], Any]) -> None:
    assert_same_bits(ns.jit(ns.vmap(f)), lanes_of("float32"))


def test_steps_of_a_map_have_the_same_bits_in_any_company() -> None:
    assert_same_bits(
        ns.jit(lambda x, y: ns.map(lambda a, b: g(a, b), [x, y], return_updates=False)),
        lanes_of("float64"),
        lanes_of("float64")[::-1].copy(),
    )


def test_elements_of_an_array_have_the_same_bits_in_any_company() -> None:
    f, x = ns.jit(lambda x: g(x, 0.7)), lanes_of("float64")
    whole = f(x)
    for n in range(17, LANES):  # shorter ones are compiled for their length
        assert f(x[:n]).tobytes() == whole[:n].tobytes()
        assert f(x[LANES - n :]).tobytes() == whole[LANES - n :].tobytes()


def test_draws_leave_the_bits_of_the_first_lanes() -> None:
    stream = nt.random.RandomStream(1)

    def walk(a: Any) -> Any:
        return ns.scan(lambda s: g(s, a) + 0.01 * stream.normal(), outputs_info=a, n_steps=STEPS, return_updates=False)[-1]

    x = lanes_of("float64")
    program = ns.vmap(walk)
    v = nt.dvector("v")
    f = ns.function([v], program(v))  # without the stream's update: every call draws the same
    assert_same_bits(f, x, offsets=False)


def test_threads_leave_the_bits() -> None:
    x = np.random.default_rng(4).uniform(0.4, 1.3, 3001)

    def long(a: Any) -> Any:
        return ns.scan(lambda s: g(s, a), outputs_info=a, n_steps=400, return_updates=False)[-1]

    one, two = (ns.jit(ns.vmap(long), mode=ns.Mode(threads=threads)) for threads in (1, 2))
    whole = one(x)
    assert two(x).tobytes() == whole.tobytes()
    assert two(x[:2999]).tobytes() == whole[:2999].tobytes()
    assert one(x[5:]).tobytes() == whole[5:].tobytes()


@pytest.mark.parametrize("n", wide([5, 16, 2, 15], first=2))
def test_the_number_of_lanes_may_be_known(n: int) -> None:
    x = lanes_of("float64")
    whole = ns.jit(ns.vmap(ends))(x)
    known = nt.constant(x[:n])
    assert ns.jit(lambda: ns.vmap(ends)(known))().tobytes() == whole[:n].tobytes()


def test_a_piece_of_time_of_any_length_has_the_same_bits() -> None:
    x = np.random.default_rng(5).uniform(0.4, 1.3, 1000)
    total = ns.jit(lambda s, x: ns.scan(lambda x, s: 0.5 * s + np.exp(-x) * np.sin(x), x, s, return_updates=False))
    whole, s, found = total(0.0, x), 0.0, []
    for first, last in ((0, 100), (100, 357), (357, 1000)):
        found.append(total(s, x[first:last]))
        s = found[-1][-1]
    assert np.concatenate(found).tobytes() == whole.tobytes()


# which loops --------------------------------------------------------------------------------------------------------

X, S, I = Load("float64", "x", (Name("int64", "i"),)), Name("float64", "s"), Name("int64", "i")
EXP = Template("exp({0})", cost=FUNCTION)


def named(*stmts: Any) -> list[str]:
    """The functions that are called, in order."""
    return [word for word in repr(with_lanes(stmts)).replace("(", "'").split("'") if word in ("exp", "exp_in_lanes")]


def test_functions_are_those_of_lanes_where_llvm_may_make_vectors() -> None:
    store = Store("y", (I,), Apply("float64", EXP, (X,)))
    moves = Let("s", Apply("float64", EXP, (S,)), is_new=False)
    count = Name("int64", "n")
    assert named(store) == ["exp"]
    assert named(For("i", 0, count, [store])) == ["exp_in_lanes"]
    assert named(For("i", 0, count, [If(compare(">", I, 3), [store])])) == ["exp_in_lanes"]
    assert named(For("i", 0, count, [store, If(compare(">", I, 3), [Break()])])) == ["exp"]
    assert named(For("t", 0, count, [moves])) == ["exp"]
    start = Let("s", Literal("float64", 1.0))
    assert named(For("i", 0, count, [start, For("t", 0, count, [moves]), store])) == ["exp", "exp"]
    assert named(For("i", 0, count, [start, For("t", 0, 5, [moves]), store])) == ["exp_in_lanes", "exp_in_lanes"]  # may be written out
    assert named(For("t", 0, 5, [moves])) == ["exp"]
