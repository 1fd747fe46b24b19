"""NumPy's scalars and arrays that are laid out in another way go straight to compiled code, too, and give what other arguments give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front import conversion
from numbascan.types import SUPPORTED_DTYPES

TABLE = np.arange(12.0).reshape(3, 4)
LAYOUTS = [
    TABLE.T,
    TABLE[:, ::2],
    TABLE[::-1],
    TABLE.astype(">f8"),
    TABLE.astype(">f8").T,
    np.asfortranarray(TABLE),
    TABLE[:, :0],
    np.broadcast_to(1.5, (3, 2)),
]


def some_of(dtype: str) -> list[Any]:
    """Numbers of a dtype, its ends among them."""
    scalar, kind = np.dtype(dtype).type, np.dtype(dtype).kind
    if kind in "iu":
        return [scalar(3), scalar(np.iinfo(dtype).max), scalar(np.iinfo(dtype).min)]
    return [scalar(value) for value in {"b": (True, False), "f": (0.1, -0.0, np.nan), "c": (1 + 0.1j, complex(np.nan, -0.0))}[kind]]


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES)
def test_a_scalar_keeps_its_bits_and_dtype(dtype: str) -> None:
    x = nt.scalar(dtype=dtype)
    loop = ns.scan(lambda s: s)
    ways = [ns.jit(lambda x: x), ns.function([x], [x])]
    for value in some_of(dtype):
        for _ in range(2):  # the second time by the short way
            results = [ways[0](value), *ways[1](value), loop(None, value, n_steps=np.int64(2))[1]]
            for result in results:
                assert result.dtype == dtype
                assert result.tobytes() == value.tobytes()


def test_a_scalar_of_numpy_is_not_weak() -> None:
    f, x = ns.jit(lambda x: x * np.ones(2, "float32")), 2.0
    for _ in range(2):
        assert [f(value).dtype.name for value in (x, np.float64(x), np.float32(x), 3, np.int64(3))] == [
            *("float32", "float64", "float32", "float32", "float64")
        ]


@pytest.mark.parametrize("value", LAYOUTS, ids=range(len(LAYOUTS)))
def test_any_layout_is_read_as_numpy_reads_it(value: Any) -> None:
    x = nt.dmatrix("x")
    ways = [ns.jit(lambda x: x * 2), ns.function([x], x * 2)]
    sums = ns.scan(lambda x, s: s + x)
    for _ in range(2):
        for f in ways:
            np.testing.assert_array_equal(f(value), value * 2)
        start = np.zeros(value.shape[1:])
        np.testing.assert_array_equal(sums(value, start), np.cumsum(value, axis=0))


def test_rows_of_another_layout_may_be_where_results_go() -> None:
    rows = np.ones((4, 2))
    ns.scan(lambda x, s: s + x)(rows[:, 0], 0.0, out=(out := np.empty(4)))
    np.testing.assert_array_equal(out, [1, 2, 3, 4])


def test_the_short_way_converts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, k, n = nt.dvector("x"), nt.dscalar("k"), nt.lscalar("n")
    f, g, loop = ns.jit(lambda x, k: x * k), ns.function([x, k, n], x * k + n), ns.scan(lambda x, s: s + x)
    column = TABLE[:, 1]

    def calls() -> list[Any]:
        whole = [f(column, np.float64(2)), g(column, np.float64(2), np.int64(3)), g(column, 2.0, 3), loop(column, np.float64(0))]
        return [*whole, loop(column, 0.0, n_steps=np.int64(2))]

    before = calls()
    for module in ("numbascan.front.specialisation", "numbascan.front.scan.arguments"):
        monkeypatch.setattr(f"{module}.as_argument", conversion.fit)  # fails if it is called
    monkeypatch.setattr("numbascan.front.function.fit", conversion.as_argument)
    for one, other in zip(calls(), before, strict=True):
        np.testing.assert_array_equal(one, other)
