"""Calls in turn, between which the array that a function reads from outside changes its dtype, rank, layout, byte order, alignment and
writability: every public callable sees what plain NumPy sees, and no kernel is handed an array of another kind than its signature.

Kernels are held against their arguments in every test (kernel_arguments.py): here is what asks them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
from numbascan import backends, lax

X = np.array([3.0, 0.5])
ROWS = np.array([[3.0, 0.5], [-2.0, 1.0], [5.0, 7.0]])

Read = Callable[[], np.ndarray]
Put = Callable[[np.ndarray], None]

# where a function may find its array ----------------------------------------------------------------------------------

TABLE = np.zeros(())


def a_global() -> tuple[Read, Put]:
    return lambda: TABLE, lambda array: globals().update(TABLE=array)


def a_closure() -> tuple[Read, Put]:
    table = np.zeros(())

    def put(array: np.ndarray) -> None:
        nonlocal table
        table = array

    return lambda: table, put


def an_attribute_of_a_class() -> tuple[Read, Put]:
    class Holder:
        table = np.zeros(())

    return lambda: Holder.table, lambda array: setattr(Holder, "table", array)


def an_attribute_of_an_object() -> tuple[Read, Put]:
    class Holder:
        def __init__(self) -> None:
            self.table = np.zeros(())

    holder = Holder()
    return lambda: holder.table, lambda array: setattr(holder, "table", array)


def an_item_of_a_dict() -> tuple[Read, Put]:
    tables = {"table": np.zeros(())}
    return lambda: tables["table"], lambda array: tables.update(table=array)


def an_item_of_a_list() -> tuple[Read, Put]:
    tables = [np.zeros(())]

    def put(array: np.ndarray) -> None:
        tables[0] = array

    return lambda: tables[0], put


PLACES = [a_global, a_closure, an_attribute_of_a_class, an_attribute_of_an_object, an_item_of_a_dict, an_item_of_a_list]

# what reads it --------------------------------------------------------------------------------------------------------


def weighed(x: Any, table: Any) -> Any:
    """Says which number stands at which place of the table; homogeneous of degree 2 in x[0]."""
    places = 1.0 + np.arange(table.size).reshape(table.shape)
    total = np.sum(x[0] * table * places)
    return x[0] * (total.real if table.dtype.kind == "c" else total)


def slope(x: Any, table: Any) -> Any:
    return np.array([2 * weighed(x, table) / x[0], 0.0])


def curvature(x: Any, table: Any) -> Any:
    return np.array([[2 * weighed(x, table) / x[0] ** 2, 0.0], [0.0, 0.0]])


def of_rows(table: Any) -> Any:
    return np.array([weighed(row, table) for row in ROWS])


Callables = dict[str, Callable[[Callable[[Any], Any]], tuple[Callable[[], Any], Callable[[Any], Any]]]]
CALLABLES: Callables = {}
"""By name: of a function of x that reads the table, a call, and what the call gives of a table by plain NumPy."""


def called(make: Any) -> Any:
    CALLABLES[make.__name__] = make
    return make


def _of_x(transform: Callable[[Any], Any], expected: Callable[[Any, Any], Any]) -> Any:
    def make(f: Callable[[Any], Any]) -> Any:
        g = transform(f)
        return lambda: g(X), lambda table: expected(X, table)

    return make


CALLABLES["jit"] = _of_x(ns.jit, weighed)
CALLABLES["grad"] = _of_x(ns.grad, slope)
CALLABLES["value_and_grad"] = _of_x(ns.value_and_grad, lambda x, table: (weighed(x, table), slope(x, table)))
CALLABLES["jacobian"] = _of_x(ns.jacobian, slope)
CALLABLES["hessian"] = _of_x(ns.hessian, curvature)
CALLABLES["vectorize"] = _of_x(lambda f: ns.vectorize(f, signature="(n)->()"), weighed)


@called
def keywords(f: Any) -> Any:
    g = ns.jit(lambda x: f(x))
    return lambda: g(x=X), lambda table: weighed(X, table)


@called
def nests(f: Any) -> Any:
    g = ns.jit(lambda pair: f(pair["x"]))
    return lambda: g({"x": X}), lambda table: weighed(X, table)


@called
def vjp(f: Any) -> Any:
    def call() -> Any:
        value, pull = ns.vjp(f, X)
        return value, *pull(np.float64(1))

    return call, lambda table: (weighed(X, table), slope(X, table))


@called
def jvp(f: Any) -> Any:
    return lambda: ns.jvp(f, (X,), (np.ones(2),)), lambda table: (weighed(X, table), slope(X, table).sum())


@called
def vmap(f: Any) -> Any:
    g = ns.vmap(f)
    return lambda: g(ROWS), of_rows


@called
def vectorize_over_lanes(f: Any) -> Any:
    g = ns.vectorize(f, signature="(n)->()")
    return lambda: g(ROWS), of_rows


@called
def a_decorated_scan(f: Any) -> Any:
    @ns.scan
    def step(row: Any) -> Any:
        return f(row)

    return lambda: step(ROWS), of_rows


@called
def an_immediate_scan(f: Any) -> Any:
    return lambda: ns.scan(f, sequences=ROWS, return_updates=False), of_rows


@called
def an_immediate_scan_of_a_new_step(f: Any) -> Any:
    return lambda: ns.scan(lambda row: f(row), sequences=ROWS, return_updates=False), of_rows


@called
def a_scan_into_an_array(f: Any) -> Any:
    step = ns.scan(lambda row: 1.0 * f(row))
    return lambda: step(ROWS, out=np.empty(3)), of_rows


@called
def map_(f: Any) -> Any:
    return lambda: ns.map(lambda row: f(row), ROWS, return_updates=False), of_rows


@called
def batch(f: Any) -> Any:
    return lambda: ns.batch(f, (ROWS,), progress=False), of_rows


@called
def lax_map(f: Any) -> Any:
    return lambda: lax.map(lambda row: f(row), ROWS), of_rows


@called
def methods(f: Any) -> Any:
    class Model:
        @ns.jit
        def value(self, x: Any) -> Any:
            return f(x)

        @ns.scan
        def values(self, row: Any) -> Any:
            return f(row)

    model = Model()
    return lambda: (model.value(X), model.values(ROWS)), lambda table: (weighed(X, table), of_rows(table))


# arrays of all kinds --------------------------------------------------------------------------------------------------


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """An array of the same numbers in another place."""
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return np.flip(np.flip(array).copy())
    if layout == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if layout == "broadcast":
        return np.broadcast_to(array[:1], array.shape) if array.ndim else np.broadcast_to(array, ())
    if layout == "unaligned":
        memory = np.zeros(array.nbytes + 1, "uint8")[1:].view(array.dtype).reshape(array.shape)
        memory[...] = array
        return memory
    copied = array.astype(array.dtype.newbyteorder()) if layout == "swapped" else array.copy()
    copied.flags.writeable = layout != "read-only"
    return copied


LAYOUTS = ["C", "F", "reversed", "strided", "broadcast", "unaligned", "swapped", "read-only"]
DTYPES = ["float64", "float32", "int64", "int32", "uint8", "bool", "complex128", "complex64"]
SHAPES = [(), (1,), (4,), (3, 2), (2, 3), (6,), (2, 1, 3), (3, 3), (20,), (5, 4)]


def agree(seen: Any, expected: Any, label: str) -> None:
    if isinstance(expected, tuple):
        assert len(seen) == len(expected)
        for one, other in zip(seen, expected, strict=True):
            agree(one, other, label)
    else:
        np.testing.assert_allclose(seen, expected, rtol=1e-5, err_msg=label)


@pytest.mark.parametrize("name", CALLABLES)
def test_an_array_from_outside_in_another_layout_is_read_as_it_lies(name: str) -> None:
    chance = random.Random(name)
    read, put = chance.choice(PLACES)()
    call, expected = CALLABLES[name](lambda x: weighed(x, read()))
    layouts = ["C", "C", *chance.sample(LAYOUTS, len(LAYOUTS)), "C", *chance.choices(LAYOUTS, k=4)]
    for k, layout in enumerate(layouts):
        table = laid_out(np.linspace(-1.0, 2.0 + k, 12).reshape(3, 4), layout)
        put(table)
        for _ in range(2):
            agree(call(), expected(table), f"{name}, {read}: {layouts[: k + 1]}")


@pytest.fixture
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels look at their arguments, and NumPy computes what machine code would: many kinds can be tried."""
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)


PAIRS = [(name, PLACES[(k + shift) % len(PLACES)]) for shift in range(len(PLACES)) for k, name in enumerate(CALLABLES)]


@pytest.mark.parametrize("name, place", wide(PAIRS, first=len(CALLABLES)))
def test_an_array_from_outside_of_another_kind_is_read_as_what_it_is(
    name: str, place: Callable[[], tuple[Read, Put]], not_compiled: None
) -> None:
    chance = random.Random(f"{name} {place.__name__}")
    read, put = place()
    call, expected = CALLABLES[name](lambda x: weighed(x, read()))
    kinds = [(dtype, shape) for dtype in chance.sample(DTYPES, 3) for shape in chance.sample(SHAPES, 2)]
    done: list[Any] = []
    table = np.zeros(())
    for k in range(16):
        if table.ndim and table.flags.writeable and chance.random() < 0.2:
            table[...] = np.flip(table).copy()
            done.append("in place")
        else:
            (dtype, shape), layout = chance.choice(kinds), chance.choice(LAYOUTS)
            numbers = np.linspace(-1.0, 2.0 + k, int(np.prod(shape))) * 10 if dtype != "uint8" else np.arange(k, k + np.prod(shape))
            table = laid_out(numbers.astype(dtype).reshape(shape), layout)
            done.append((dtype, shape, layout))
        put(table)
        agree(call(), expected(table), f"{name}, {place.__name__}: {done}")


@pytest.mark.parametrize("is_jitted", [False, True])
def test_a_shared_variable_of_another_kind_is_read_as_what_it_is(is_jitted: bool, not_compiled: None) -> None:
    chance = random.Random(7)
    table = ns.shared(np.ones((3, 2)))
    x = ns.tensor.dvector("x")
    call = ns.jit(lambda x: x[0] * table.sum(axis=1)) if is_jitted else ns.function([x], x[0] * table.sum(axis=1))
    for k in range(60):
        shape, layout = chance.choice([(3, 2), (1, 2), (3, 1), (1, 1), (2, 3), (40, 2), (0, 2)]), chance.choice(LAYOUTS)
        value = laid_out(np.linspace(-1.0, 2.0 + k, int(np.prod(shape))).reshape(shape), layout)
        table.set_value(value, borrow=chance.random() < 0.5)
        np.testing.assert_allclose(call(X), X[0] * value.sum(axis=1))


def test_a_kernel_that_is_handed_an_array_of_another_kind_from_outside_fails_its_test() -> None:
    table = np.ones((3, 2))
    f = ns.jit(lambda x: table @ x)
    np.testing.assert_array_equal((f(X), f(X)), np.full((2, 3), X.sum()))
    for wrong in (np.asfortranarray(table), table.astype(">f8"), table.astype("f4"), table[:2].copy(), table.reshape(-1)):
        f._kinds.latest.arrays[0] = wrong
        with pytest.raises(AssertionError, match="takes"):
            f(X)
