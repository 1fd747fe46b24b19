"""Derivatives of what moves, picks, reduces and sorts elements: lengths known or not, both modes, twice over, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from ops.derivative_checks import check_card, random_like
from ops.functions import flat

from numbascan.compile import Program
from numbascan.front.variable import Variable, as_variable
from numbascan.grad.forward import tangents
from numbascan.grad.reverse import cotangents
from numbascan.ir.graph import Graph, close, toposort
from numbascan.ir.node import Node, new_input
from numbascan.modes import Mode
from numbascan.ops.algebra import axes_sum, cast, incremented, mul, total, zeros_like
from numbascan.ops.card import CARDS, apply
from numbascan.ops.contract import CONTRACT
from numbascan.ops.indexing import INDEX
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

NUMBA = Mode()
M = np.sin(np.arange(12.0) ** 2).reshape(4, 3) * 2
X = np.cos(np.arange(24.0) ** 2).reshape(2, 4, 3) * 2
V = np.array([1.5, -0.5, 2.0, 0.25, -1.25])
ZEROS = np.array([[1.5, 0.0, -2.0, 0.5], [0.0, 3.0, 0.0, 0.25], [2.0, -1.0, 0.5, 1.25]])  # one zero, two, none
ROWS, REPEATED = np.array([2, 0, -1]), np.array([2, 0, -2, 2, 0])  # -2 is 2 among four
K = np.int64(-2)

Case = tuple[Any, ...]

# a function, and its operands; squares make every second derivative count
CASES: dict[str, Case] = {
    "transpose": (lambda x: np.transpose(x, (2, 0, 1)) ** 2, X),
    "squeeze": (lambda x: np.squeeze(x[:, None], axis=1) ** 2, M),
    "broadcast_to": (lambda x, m: np.broadcast_to(x, (5, *m.shape)) * m, M[:1], M),
    "roll": (lambda x: np.roll(x, 1, 0) * np.roll(x, -4, 1) * x, M),
    "roll by a number of the run": (lambda x, k: np.roll(x, k, 0) * x, M, K),
    "concatenate": (lambda x, y: np.concatenate([x, y, x[1:], y[:0], np.ones((1, 3), "float32")]) ** 2, M, X[0, :2]),
    "concatenate along the last axis": (lambda x, y: np.concatenate([x, y, x], axis=-1) ** 2, M, M[:, :1]),
    "reshape": (lambda x, y: np.reshape(x, (-1, 2)) ** 2 * np.reshape(y, (x.size // 2, 1)), X, M),
    "stack, tile, repeat, pad": (
        lambda x: [np.stack([x, x**2]), np.tile(x, (2, 1)) ** 2, np.repeat(x, 2, axis=0) ** 2, np.pad(x, 1, mode="reflect") ** 2],
        M,
    ),
    "a position": (lambda x: [x[-1] ** 2, x[1, -1] ** 3, x[:, 0] ** 2], M),
    "slices": (lambda x: [x[1:-1] ** 2, x[::-2, 1:] ** 2, x[-3:, ::-1] * x[:3], x[5:] ** 2, x[3:1] ** 2], M),
    "new axes": (lambda x: x[:, None] * x[None, ::-1] + x[1, None, :, None][0, 0], M),
    "positions and bounds of the run": (lambda x, k: [x[k] ** 2, x[k:, 1] ** 2, x[:k] ** 2, x[::k] ** 2, x[k, 1:] ** 2], M, K),
    "gather": (lambda x, k: [x[k] ** 2, x[:, k % 3] ** 2, x[k[:, None], k[1:] % 3] ** 2, x[k, :, None] ** 2], M, REPEATED),
    "gather with positions apart": (lambda x, k: [x[k % 2, :, k % 3] ** 2, x[0, :, k % 3] ** 2], X, REPEATED),
    "set a slice": (lambda x, y: [x[1:3].set(y) ** 2, x[::-2].set(y) ** 2, x[:2, 1].set(y[:, 0]) ** 2], M, M[:2] + 1),
    "set what broadcasts": (lambda x, y: [x[1:].set(y[0]) ** 2, x[:, 1].set(y[0, 0]) ** 2, x[1:, None].set(y[:1]) ** 2], M, M[:2] + 1),
    "set at a place of the run": (lambda x, y, k: [x[k].set(y[0]) ** 2, x[k:].set(y) ** 2], M, M[:2] + 1, K),
    "set repeated rows": (lambda x, y, k: [x[k].set(y) ** 2, x[k].set(y[0, None]) ** 2], M, np.concatenate([M, M[:1]]) + 1, REPEATED),
    "set repeated elements": (
        lambda x, y, k: [
            *(x[k, :, k % 2].set(y) ** 2, x[1, :, k % 3].set(y) ** 2, x[k[:, None] % 2, :, k % 3].set(y[0]) ** 2),
            x[:, k % 4, ::-2].set(y[None, :, :2]) ** 2,
        ],
        X,
        np.concatenate([M, M[:1]])[:, [0, 1, 2, 0]] + 1,
        REPEATED % 2,
    ),
    "inc": (
        lambda x, y, k: [x[k].inc(y) ** 2, x[1:].inc(y[0]) ** 2, x[::-1].inc(y[:4]) ** 2, x[-1].inc(y[1]) ** 2],
        M,
        np.concatenate([M, M[:1]]) + 1,
        REPEATED,
    ),
    "diagonal": (lambda x: [np.diagonal(x @ x.T) ** 2, np.trace(x @ x.T) ** 2, np.diag(x[0]) ** 2], M),
    "einsum over a diagonal": (lambda x: np.einsum("iji->ij", x[:, :, :2]) ** 2, X),
    "sum": (lambda x: [np.sum(x) ** 2, np.sum(x, axis=(0, 2)) ** 2, np.sum(x, axis=1, keepdims=True) * x], X),
    "prod": (lambda x: [np.prod(x), np.prod(x, axis=(0, 2)), np.prod(x, axis=1, keepdims=True) * x], X),
    "prod with zeros": (lambda x: [np.prod(x), np.prod(x, axis=1), np.prod(x, axis=0, keepdims=True) * x], ZEROS),
    "max and min": (lambda x: [np.max(x) ** 2, np.max(x, axis=(0, 2)) ** 2, np.min(x, axis=1, keepdims=True) * x], X),
    "cumsum": (lambda x: [np.cumsum(x) ** 2, np.cumsum(x, axis=1) ** 2, np.cumsum(x, axis=2) ** 2], X),
    "cumprod": (lambda x: [np.cumprod(x[0]), np.cumprod(x, axis=1), np.cumprod(x, axis=2) ** 2], X),
    "cumprod with zeros": (lambda x: [np.cumprod(x, axis=1), np.cumprod(x, axis=0)], ZEROS),
    "running extremes": (
        lambda x: [np.maximum.accumulate(x) ** 2, np.minimum.accumulate(x, axis=2) ** 2, np.cov(x[0], dtype=x.dtype) ** 2],
        X,
    ),
    "sort": (lambda x: [np.sort(x, axis=0) ** 2 * x, np.sort(x) ** 2, np.sort(x, axis=None) ** 2], M),
    "products": (
        lambda a, b, v: [a @ b, a @ v, v @ b, v @ v, np.einsum("ij,jk->ki", a, b), np.einsum("ij,kl->jl", a, b), np.inner(a, a)],
        M,
        M[:3] + 1,
        M[1],
    ),
    "batched products": (lambda a, b: [a @ b, np.einsum("bij,bij->b", a, a), np.einsum("bij,bij->ij", a, a)], X, X.transpose(0, 2, 1) + 1),
}
COMPILED = (
    "concatenate",
    "set at a place of the run",
    "set repeated rows",
    "diagonal",
    "cumprod with zeros",
    "running extremes",
    "sort",
    "batched products",
)


class Derivatives:
    """A function of arrays, the sum of its weighted results, its gradient, and the gradient of that along a direction, as graphs."""

    def __init__(self, case: Case, known: Callable[[int, int], bool]) -> None:
        function, *arrays = case
        self.arrays = [np.asarray(array) for array in arrays]
        shapes = [tuple(n if known(axis, n) else None for axis, n in enumerate(array.shape)) for array in self.arrays]
        self.inputs = [new_input(TensorType(x.dtype.name, shape)) for x, shape in zip(self.arrays, shapes, strict=True)]
        self.wrt = [node for node in self.inputs if node.type.kind == "f"]
        self.outputs = [as_variable(part).node for part in flat([function(*map(Variable, self.inputs))])]
        rng = np.random.default_rng(5)
        values = interpret(Graph(tuple(self.inputs), tuple(self.outputs)), self.arrays)
        self.weights = {new_input(node.type): random_like(rng, value) for node, value in zip(self.outputs, values, strict=True)}
        self.directions = {new_input(node.type): random_like(rng, x) for node, x in zip(self.wrt, self._floats(), strict=True)}
        self.gradient = self._whole(cotangents(self.outputs, list(self.weights), self.wrt))
        self.second = self._whole(cotangents(self.gradient, list(self.directions), self.wrt))
        self.third = self._whole(cotangents(self.second, list(self.directions), self.wrt))

    def _floats(self) -> list[Any]:
        return [x for x in self.arrays if x.dtype.kind == "f"]

    def _whole(self, nodes: Sequence[Node | None]) -> list[Node]:
        return [zeros_like(x) if node is None else node for node, x in zip(nodes, self.wrt, strict=True)]

    def graph(self, outputs: Sequence[Node]) -> Graph:
        return Graph((*self.inputs, *self.weights, *self.directions), tuple(outputs))

    def arguments(self) -> list[Any]:
        return [*self.arrays, *self.weights.values(), *self.directions.values()]

    def value_of(self, nodes: Sequence[Node], moved: dict[int, Any] | None = None, weighted: bool = True) -> list[Any]:
        """The values of nodes, at other operands where `moved` gives these; all weights are 1 if not `weighted`."""
        arguments = self.arguments()
        if not weighted:
            arguments = [*self.arrays, *map(np.ones_like, self.weights.values()), *self.directions.values()]
        for k, value in (moved or {}).items():
            arguments[self.inputs.index(self.wrt[k])] = value
        return interpret(self.graph(nodes), arguments)

    def differences(self, scalar: Node) -> list[Any]:
        """The gradient of a scalar by central differences."""
        found, step = [], 1e-5
        for k, x in enumerate(self._floats()):
            gradient = np.zeros_like(x)
            for place in np.ndindex(x.shape):
                ahead, behind = np.array(x), np.array(x)
                ahead[place] += step
                behind[place] -= step
                ((above,), (below,)) = (self.value_of([scalar], {k: moved}) for moved in (ahead, behind))
                gradient[place] = (above - below) / (2 * step)
            found.append(gradient)
        return found


def pairing(nodes: Sequence[Node], others: Sequence[Node]) -> Node:
    """The sum of all products."""
    found = total([axes_sum(mul(a, b), range(a.type.rank)) for a, b in zip(nodes, others, strict=True)])
    assert found is not None
    return found


def assert_near(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 2e-7) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * (1 + np.max(np.abs(other), initial=0)))


KNOWN: dict[str, Callable[[int, int], bool]] = {
    "all lengths open": lambda axis, n: n == 1,
    "the last length known": lambda axis, n: n == 1 or n == 3,
    "all lengths known": lambda axis, n: True,
}


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_central_differences_to_the_third_order(name: str, known: str) -> None:
    at = Derivatives(CASES[name], KNOWN[known])
    assert_near(at.value_of(at.gradient), at.differences(pairing(at.outputs, list(at.weights))))
    assert_near(at.value_of(at.second), at.differences(pairing(at.gradient, list(at.directions))))
    assert_near(at.value_of(at.third), at.differences(pairing(at.second, list(at.directions))), 1e-6)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("name", CASES)
def test_forwards_is_backwards_transposed(name: str, known: str) -> None:
    at = Derivatives(CASES[name], KNOWN[known])
    for outputs, weights, back in ((at.outputs, list(at.weights), at.gradient), (at.gradient, list(at.directions), at.second)):
        moved = tangents(outputs, at.wrt, list(at.directions))
        there = [(node, weight) for node, weight in zip(moved, weights, strict=True) if node is not None]
        ahead = pairing(*zip(*there, strict=True)) if there else cast(mul(at.wrt[0], 0), "float64")
        found, expected = at.value_of([ahead, pairing(back, list(at.directions))])
        np.testing.assert_allclose(np.sum(found), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_derivatives_equal_the_oracle(name: str) -> None:
    at = Derivatives(CASES[name], KNOWN["all lengths open"])
    nodes = [*at.gradient, *at.second]
    graph = close([*at.inputs, *at.weights, *at.directions], nodes)
    found = Program(graph, NUMBA, "derivative", specialise=False)(at.arguments())
    assert_near(found, at.value_of(nodes), 1e-11)


# edges --------------------------------------------------------------------------------------------------------------


def gradient(function: Callable[..., Variable], *arrays: Any) -> list[Any]:
    """The gradient of the sum of a function's result, at arrays of open lengths."""
    at = Derivatives((function, *arrays), KNOWN["all lengths open"])
    return at.value_of(at.gradient, weighted=False)


def hessian(function: Callable[..., Variable], x: Any) -> Any:
    """The derivatives of the gradient of the sum of a function of one vector."""
    at = Derivatives((function, x), KNOWN["all lengths open"])
    (direction,) = at.directions
    rows = []
    for unit in np.eye(len(x)):
        at.directions[direction] = unit
        rows += at.value_of(at.second, weighted=False)
    return np.array(rows)


def test_equal_greatest_elements_have_equal_shares() -> None:
    (found,) = gradient(np.max, np.array([1.0, 3.0, 2.0, 3.0]))
    assert found.tolist() == [0.0, 0.5, 0.0, 0.5]
    (found,) = gradient(lambda x: np.min(x, axis=(0, 1)), np.zeros((2, 3)))
    np.testing.assert_array_equal(found, np.full((2, 3), 1 / 6))


def test_the_derivative_of_an_extreme_that_is_nan_is_there_where_the_nan_is() -> None:
    (found,) = gradient(lambda x: np.max(x, axis=1), np.array([[1.0, np.nan, 2.0], [1.0, 4.0, 2.0]]))
    assert found.tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("x", "first", "second"),
    [
        ([2.0, 3.0, 5.0], [15, 10, 6], [[0, 5, 3], [5, 0, 2], [3, 2, 0]]),
        ([2.0, 0.0, 5.0], [0, 10, 0], [[0, 5, 0], [5, 0, 2], [0, 2, 0]]),
        ([0.0, 3.0, 0.0], [0, 0, 0], [[0, 0, 3], [0, 0, 0], [3, 0, 0]]),
        ([0.0, 0.0, 0.0], [0, 0, 0], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        ([7.0], [1], [[0]]),
    ],
)
def test_zeros_among_factors_are_like_any_number(x: list[float], first: list[int], second: list[list[int]]) -> None:
    for function in (np.prod, lambda x: np.cumprod(x)[-1]):
        assert gradient(function, np.array(x))[0].tolist() == first
        assert hessian(function, np.array(x)).tolist() == second


def test_a_running_product_is_differentiated_in_linear_time_and_memory() -> None:
    n = 30_000  # a matrix of that many rows and columns would be 7 GB
    (found,) = gradient(np.cumprod, np.where(np.arange(n) == 9, 0.0, 1.0))
    np.testing.assert_array_equal(found, np.where(np.arange(n) < 9, 9.0 - np.arange(n), (n - 9.0) * (np.arange(n) == 9)))


def test_a_label_that_is_summed_over_in_one_operand_alone_is_refused() -> None:
    a, b = (new_input(TensorType("float64", shape)) for shape in ((None, 3), (3,)))
    with pytest.raises(ValueError, match=r"labels \[0\] are summed over in one operand alone"):
        apply(CONTRACT, a, b, labels=((0, 1), (1,), ()))


def test_positions_read_twice_get_both_cotangents() -> None:
    (found,) = gradient(lambda x, k: x[k], np.array([1.0, 2.0, 3.0]), np.array([0, 2, 0, -1, 0]))
    assert found.tolist() == [3.0, 0.0, 2.0]


def test_of_values_written_to_one_place_only_the_last_counts() -> None:
    places = np.array([1, 0, -2, 1])  # of three: 1, 0, 1, 1
    for_x, for_y = gradient(lambda x, y, k: x[k].set(y) * [10.0, 20.0, 30.0], np.zeros(3), np.ones(4), places)
    assert for_x.tolist() == [0.0, 0.0, 30.0]
    assert for_y.tolist() == [0.0, 10.0, 0.0, 20.0]


def test_arrays_of_any_memory_order_are_written_in_the_order_of_their_elements() -> None:
    places, values = np.asfortranarray([[0, 1], [1, 0]]), np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
    at = Derivatives((lambda x, y, k: x[k].set(y), np.zeros(2), values, places), KNOWN["all lengths open"])
    (found,) = at.value_of(at.outputs)
    assert found.tolist() == [4.0, 3.0]
    assert at.value_of(at.gradient, weighted=False)[1].tolist() == [[0.0, 0.0], [1.0, 1.0]]


WITHOUT_ELEMENTS: tuple[Callable[..., Variable], ...] = (
    *(np.sum, np.prod, np.cumsum, np.cumprod, np.sort, np.ravel, np.transpose),
    *(lambda x: np.prod(x, axis=1), lambda x: np.max(x, axis=1), lambda x: np.cumprod(x, axis=0), lambda x: x @ x.T),
    *(lambda x: np.concatenate([x, x]), lambda x: np.roll(x, 2, axis=0), lambda x: x[::-1], lambda x: x[2:5]),
    *(lambda x: x[np.zeros(0, int)], lambda x: x[:0].set(1.0), lambda x: x[:, 1].inc(2.0)),
)


@pytest.mark.parametrize("function", WITHOUT_ELEMENTS)
def test_arrays_without_elements_have_gradients_without_elements(function: Callable[..., Variable]) -> None:
    at = Derivatives((function, np.zeros((0, 3))), KNOWN["the last length known"])
    for found in at.value_of([*at.gradient, *at.second, *at.third]):
        assert found.shape == (0, 3)


def test_the_cotangent_of_a_read_is_an_increment_of_zeros() -> None:
    x, w = new_input(TensorType("float64", (None, 3))), new_input(TensorType("float64", (3,)))
    (found,) = INDEX.vjp(Variable(x)[-1].node, w)
    assert found is incremented(zeros_like(x), w, (-1,))


def test_the_cotangent_of_all_elements_in_another_order_is_a_view() -> None:
    at = Derivatives((lambda x: x[::-1, None, ::-1], M), KNOWN["all lengths open"])
    assert {node.op.name for node in toposort(at.gradient)} <= {"input", "index", "squeeze"}


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays_single(name: str) -> None:
    function, *arrays = CASES[name]
    single = [np.asarray(x).astype("float32") if np.asarray(x).dtype.kind == "f" else x for x in arrays]
    at = Derivatives((function, *single), KNOWN["all lengths open"])
    assert {node.type.dtype for node in (*at.gradient, *at.second)} == {"float32"}
    if name != "concatenate":  # beside the array of another precision it is not
        assert {node.type.dtype for node in toposort(at.gradient) if node.type.kind == "f" and node.type.rank} == {"float32"}


def test_a_real_value_written_into_a_complex_array_has_a_real_cotangent() -> None:
    for name in ("set_subtensor", "inc_subtensor"):
        check_card(CARDS[name], (M + 1j * M[::-1], M[1:3] * 0.5), {"spec": ((1, 3, None),)})
        check_card(CARDS[name], (M + 1j * M[::-1], M[1] * 0.5, np.array([0, 0, -1])), {"spec": ("array",)})


def test_integers_beside_reals_are_constants() -> None:
    def mixed(x: Variable, k: Variable) -> Variable:
        return np.concatenate([k @ x, x[:1].set(k[:1, :3]), k[:, :3]])

    at = Derivatives((mixed, M, np.arange(8).reshape(2, 4)), KNOWN["all lengths open"])
    assert_near(at.value_of(at.gradient), at.differences(pairing(at.outputs, list(at.weights))))


def test_a_length_that_is_1_at_the_call_broadcasts_and_its_gradient_is_a_sum() -> None:
    def function(x: Variable, y: Variable) -> list[Variable]:
        return [
            x * y**2,
            x[1:].set(y) ** 2,
            x[[0, 2, 0]].set(y) ** 2,
            x[1:].inc(y) ** 2,
            np.broadcast_to(y, x.shape) ** 2,
            np.prod(y, axis=0),
        ]

    at = Derivatives((function, M, M[1:2]), lambda axis, n: False)
    expected = at.differences(pairing(at.outputs, list(at.weights)))
    assert_near(at.value_of(at.gradient), expected)
    assert_near(Program(close([*at.inputs, *at.weights], at.gradient), NUMBA, "derivative")(at.arguments()[:-2]), expected)
