"""Functions of shapes, joined and rearranged arrays, and arrays made from sizes: as in NumPy, lengths known or not."""

import numpy as np
import pytest
from ops.functions import assert_as_numpy, inputs_for
from ops.operands import ConcreteOperands, assert_lowered_as_evaluated, lowered

import numbascan as ns
import numbascan.tensor as nt
from numbascan.errors import TracerError
from numbascan.ir.graph import Graph, close, substitute
from numbascan.ir.node import constant, constant_value, new_input
from numbascan.ops.card import CARDS
from numbascan.ops.dims import dim_node
from numbascan.ops.reshape import axis_groups
from numbascan.ops.runtime_attributes import product, quotient
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

X = np.sin(np.arange(24.0)).reshape(2, 3, 4) * 5
M = np.cos(np.arange(12.0)).reshape(3, 4) * 3
V = np.array([3.5, -1.0, 2.0, 7.0, 0.5])
I = np.array([[3, -7, 2], [5, 0, 1]], "int32")
N = np.int64(4)

CASES = {
    "reshape": (
        lambda x: [
            *(np.reshape(x, shape) for shape in ((6, 4), -1, (2, -1), (2, 1, 3, 4, 1), (3, -1, 2), (4, 6))),
            *(x.reshape(x.shape[0], -1), x.reshape(3, 2, x.shape[2]), x.reshape((x.shape[0] * x.shape[1], 4)), x.ravel(), x.flatten()),
        ],
        X,
    ),
    "the order of axes": (
        lambda x: [
            *(x.T, x.mT, np.transpose(x, (1, 2, 0)), x.transpose(2, 0, 1), x.transpose((0, 2, 1)), np.swapaxes(x, 0, -1)),
            *(np.moveaxis(x, 0, -1), np.moveaxis(x, [0, 1], [-1, 0]), np.matrix_transpose(x)),
        ],
        X,
    ),
    "new axes and axes of length 1": (
        lambda v, m: [
            *(np.expand_dims(m, (0, -1)), np.squeeze(m[:, None], axis=1), np.atleast_1d(v[0]), np.atleast_2d(v), np.atleast_3d(v)),
            *(np.atleast_3d(m), np.squeeze(m[None, :, None], axis=(0, 2))),
        ],
        V,
        M,
    ),
    "sizes": (lambda x: [np.size(x), x.size, x.size * 2.0, np.size(x, 1), np.shape(x)[1], x.shape[0] * np.float32(1.5)], X),
    "broadcast_to": (
        lambda v, m: [np.broadcast_to(v, (2, 5)), np.broadcast_to(m[0], m.shape), np.broadcast_arrays(m, m[:, 0, None])],
        V,
        M,
    ),
    "concatenate": (
        lambda v, m: [
            *(np.concatenate([v, v[1:]]), np.concatenate((m, m[:1])), np.concatenate((m, m[:, 1:3]), axis=-1), np.append(v, [1.0, 2.0])),
            *(np.concatenate((m, m), axis=None), np.concatenate([v, v], dtype="float32")),
        ],
        V,
        M,
    ),
    "stack": (
        lambda v, m: [
            *(
                np.stack([v, v * 2]),
                np.stack([v, v], axis=1),
                np.hstack([v, v]),
                np.hstack([m, m]),
                np.vstack([v, v]),
                np.vstack([m, m[0]]),
            ),
            *(np.dstack([m, m]), np.column_stack([v, v]), np.column_stack([m, m[:, 0]])),
        ],
        V,
        M,
    ),
    "promotion where arrays are joined": (lambda i: [np.concatenate([i, i.astype("int8")]), np.hstack([i[0], i[1] * np.float32(2)])], I),
    "split": (
        lambda m: [
            *(np.split(m, 2, axis=1), np.split(m, [1, 3], axis=1), np.split(m, 3), np.array_split(m, 3, axis=1), np.hsplit(m, 2)),
            *(np.vsplit(m, 3), np.array_split(m, [2], axis=0)),
        ],
        M,
    ),
    "flip": (lambda m: [np.flip(m), np.flip(m, 0), np.fliplr(m), np.flipud(m), *(np.rot90(m, k) for k in range(-1, 4))], M),
    "roll": (lambda m: [np.roll(m, 1, 0), np.roll(m, -1, 1), np.roll(m, 7), np.roll(m, (1, -2), (0, 1)), np.roll(m, -9, axis=1)], M),
    "roll twice": (lambda m: [np.roll(m, (1, 3), (0, 0)), np.roll(m, (1, 2), 1), np.roll(m, [2], (0, 1)), np.roll(m, 1, (1, 0, 1))], M),
    "tile": (
        lambda m, v: [np.tile(v, 3), np.tile(m, (2, 1)), np.tile(m, 2), np.tile(v, (2, 2)), np.tile(m, (2, 1, 3)), np.tile(v, 1)],
        M,
        V,
    ),
    "repeat": (lambda m, v: [np.repeat(m, 2), np.repeat(m, 3, axis=1), v.repeat(2), np.repeat(m, 0, axis=0)], M, V),
    "pad": (
        lambda m, v: [
            *(np.pad(v, 2), np.pad(m, ((1, 0), (0, 2))), np.pad(v, (1, 2), constant_values=9.0), np.pad(m, {1: (0, 2)})),
            *(np.pad(m, 1, mode="edge"), np.pad(m, (2, 1), mode="reflect"), np.pad(v, 7, mode="reflect"), np.pad(m, 5, mode="wrap")),
            np.pad(m, 6, mode="symmetric"),
        ],
        M,
        V,
    ),
    "diff": (
        lambda m, v: [
            *(np.diff(v), np.diff(m, axis=0), np.diff(m, 2), np.diff(v > 1), np.diff(v, prepend=0.5, append=[1.0, 2.0]), np.ediff1d(m)),
            *(np.trapezoid(v), np.trapezoid(m, dx=0.5, axis=0), np.trapezoid(v, v**2), np.trapezoid(m, np.array([0.0, 1.0, 3.0]), axis=0)),
        ],
        M,
        V,
    ),
    "diagonals": (
        lambda m, v, x: [
            *(np.diag(v), np.diag(v, 1), np.diag(v, -2), np.diag(m), np.diag(m, 1), np.diag(m, -1), np.diag(m, 3), np.diagflat(m[:, 0])),
            *(np.diagonal(x, 0, 1, 2), np.diagonal(x, 1, -1, 0), np.trace(m), m.trace(), np.trace(x, 1, 1, 2)),
        ],
        M,
        V,
        X,
    ),
    "triangles": (lambda m, x: [np.tril(m), np.triu(m, 1), np.tril(x, -1), np.triu(m)], M, X),
    "block": (
        lambda m, v: [np.block([[m, m], [m, 2 * m]]), np.block([v, v, 1]), np.block(m), np.block([[v], [v]]), np.block([[[m]], [[m]]])],
        M,
        V,
    ),
    "choose": (
        lambda i, v, m: [
            *(np.choose(i % 3, [v[:3], v[2:], 1]), np.choose(i[:, 0, None] % 2, [v, I[0, 0]]), np.choose(v > 1, [5, 6])),
            *(np.choose(i, [v[:3], 2.0], mode="clip"), np.choose(i, [v[0], 2.0], mode="wrap")),
        ],
        I,
        V,
        M,
    ),
    "likenesses": (
        lambda m, i: [
            *(np.zeros_like(m), np.ones_like(i), np.full_like(m, 2.5), np.zeros_like(m, dtype="int8"), np.zeros_like(m, shape=(2, 2))),
            np.copy(m),
        ],
        M,
        I,
    ),
    "linspace": (
        lambda v: [
            *(
                np.linspace(v[0], v[1], 5),
                np.linspace(v, v + 1, 3),
                np.linspace(v[0], 2.0, 4, endpoint=False),
                np.linspace(v, 1.0, 3, axis=-1),
                np.linspace(v * 7, -3, 5, dtype="int64"),
                np.linspace(v[1] * 9, v[0] * -9, 8, endpoint=False, dtype="int8"),
                np.linspace(v.astype("float32"), -3.5, 4),
                *np.linspace(v[0], v[1], 1, retstep=True),
                *np.linspace(v[0], v[1], 0, endpoint=False, retstep=True),
            ),
            *(np.linspace(v[0], v[1], 1), np.logspace(v[0], v[2], 3), np.linspace(v[1], v[0], 2, retstep=True)),
        ],
        V,
    ),
    "grids": (lambda v: [np.meshgrid(v, v[:2]), np.meshgrid(v, v[1:], indexing="ij", sparse=True), np.vander(v, 3)], V),
}


@pytest.mark.parametrize("case", CASES)
def test_functions_of_shapes_give_what_numpy_gives(case):
    assert_as_numpy(*CASES[case])


@pytest.mark.parametrize(
    "name", ["dim", "transpose", "squeeze", "broadcast_to", "reshape", "roll", "pad", "frame", "concatenate", "arange"]
)
def test_the_loops_of_a_card_compute_what_its_oracle_computes(name):
    assert_lowered_as_evaluated(CARDS[name])


@pytest.mark.parametrize("traced_values", [True, False])
def test_ranges_and_identities_take_traced_sizes(traced_values):
    n, x = np.int64(4), np.float64(2.7)
    made = lambda np, n, x: [  # noqa: E731 - the same expressions under both names
        *(np.arange(n), np.arange(1, n), np.arange(n, -2, -1), np.arange(2 * n, 1, -3), np.arange(n, 1), np.arange(n, dtype="float32")),
        *(np.arange(x), np.arange(0.5, x, 0.25), np.arange(x, -1.0, -0.75)),
        *(np.eye(n), np.eye(n, 3), np.eye(3, n, 1), np.eye(n, k=-1, dtype="int8"), np.tri(n, 3, -1), np.identity(n)),
    ]
    variables = inputs_for((n, x), True)
    results = made(nt, *variables) if traced_values else made(nt, n, x)
    found = interpret(Graph(tuple(v.node for v in variables), tuple(result.node for result in results)), [n, x])
    for actual, wanted in zip(found, made(np, n, x), strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_allclose(actual, wanted, rtol=1e-14)


def test_constant_arrays_take_traced_sizes():
    n, m = inputs_for((N, np.int32(2)), True)
    results = [
        nt.zeros((n, 3)),
        nt.ones(n, "int8"),
        nt.full((2, m, n), 1.5),
        nt.alloc(nt.arange(n) * 1.0, m, n),
        nt.zeros((n, n), "float32"),
    ]
    found = interpret(Graph((n.node, m.node), tuple(result.node for result in results)), [N, np.int32(2)])
    expected = [np.zeros((4, 3)), np.ones(4, "int8"), np.full((2, 2, 4), 1.5), np.tile(np.arange(4.0), (2, 1)), np.zeros((4, 4), "float32")]
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_array_equal(actual, wanted)


def test_a_nest_of_numbers_and_variables_has_one_dtype():
    (x,) = inputs_for((np.float32(0.5),), True)
    nest = nt.as_tensor([[1.0, x], [x * 2, 3]])
    (found,) = interpret(Graph((x.node,), (nest.node,)), [np.float32(0.5)])
    np.testing.assert_array_equal(found, np.array([[1.0, np.float32(0.5)], [np.float32(1), 3]]), strict=True)
    assert (np.stack([x, x]) + x).type == TensorType("float32", (2,))
    assert nt.as_tensor([[1, 2], [3, 4]]).type == TensorType("int64", (2, 2))


def test_pytensor_names_of_shapes():
    x = nt.tensor("float64", shape=(2, None), name="x")
    assert nt.shape_padleft(x, 2).type.shape == (1, 1, 2, None)
    assert nt.shape_padright(x).type.shape == (2, None, 1)
    assert x.dimshuffle(1, "x", 0).type.shape == (None, 1, 2)
    assert nt.dcol("c").dimshuffle(0).type.shape == (None,)
    assert nt.flatten(nt.dtensor3("t"), ndim=2).ndim == 2
    assert nt.join(0, x, x).type.shape == (4, None)
    assert nt.fill(x, 3).type.shape == (2, None)
    assert nt.specify_shape(x, (None, 5)).type.shape == (2, 5)


# sizes --------------------------------------------------------------------------------------------------------------


def test_a_fixed_dimension_is_a_number_and_an_open_one_is_traced():
    x = nt.tensor("float32", shape=(None, 3))
    rows, columns = x.shape
    assert (type(columns), columns) == (int, 3)
    assert rows.type == TensorType("int64", (), weak=True)
    assert (x * rows).dtype == np.float32  # as with x.shape[0] in NumPy


def test_a_dimension_belongs_to_its_own_variable_while_a_graph_is_built():
    x, y = nt.dmatrix("x"), nt.dvector("y")
    derived = np.tanh(x * 2 + 1).T[1:, None].sum(axis=0, keepdims=True)
    for variable, axis in ((derived, 2), ((y + 1)[:, None], 0), (y[1:], 0)):
        assert dim_node(variable.node, axis).inputs == (variable.node,)


def test_a_dimension_is_asked_of_the_value_that_has_it_first_once_a_graph_is_closed():
    x, y = nt.dmatrix("x"), nt.dvector("y")
    derived = np.tanh(x * 2 + 1).T[1:, None].sum(axis=0, keepdims=True)
    asked = [(derived, 2), ((y + 1)[:, None], 0), (y[1:], 0)]
    graph = close([x.node, y.node], [dim_node(variable.node, axis) for variable, axis in asked])
    x_arg, y_arg = graph.inputs
    first, second, third = graph.outputs
    assert first is dim_node(x_arg, 0)
    assert second is dim_node(y_arg, 0)
    assert third is not second


def test_sizes_that_become_known_make_types_definite():
    x, n = new_input(TensorType("float64", (None, 4))), new_input(TensorType("int64"))
    from numbascan.front.variable import Variable

    v, k = Variable(x), Variable(n)
    results = [
        np.reshape(v, (v.shape[0] * 2, -1)),
        nt.zeros((k, 2)),
        v[1:k],
        nt.arange(k),
        np.reshape(v, (-1, k)),
        nt.as_tensor(v.shape[0]),
    ]
    known = substitute([result.node for result in results], {x: new_input(TensorType("float64", (6, 4))), n: constant(3)})
    assert [node.type.shape for node in known] == [(12, 2), (3, 2), (2, 4), (3,), (8, 3), ()]
    assert constant_value(known[-1]) == 6


def test_only_axes_that_change_are_regrouped():
    assert axis_groups((4, 3, 5), (12, 5)) == [([0, 1], [0]), ([2], [1])]
    assert axis_groups((6, 1, 4), (6, 4)) == [([0], [0]), ([2], [1])]
    assert axis_groups((4, 3, 2, 7), (6, 4, 7)) == [([0, 1, 2], [0, 1]), ([3], [2])]
    view = ConcreteOperands(CARDS["reshape"], (X,), {"shape": (("dim", 0), -1)}, known=False)
    rows, columns, depth = view.dims(0)
    assert axis_groups((rows, columns, depth), (rows, columns, 2, 2)) == [([0], [0]), ([1], [1]), ([2], [2, 3])]
    assert quotient((rows, columns, depth), (columns,)) == product([rows, depth])
    assert quotient((rows, columns), (depth,)) is None


# errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x, m: np.reshape(x, (5, 5)), ValueError, r"24 elements, which do not fit \(5, 5\)"),
        (lambda x, m: np.reshape(x, (-1, -1)), ValueError, "more than one unknown"),
        (lambda x, m: np.reshape(x, (2, 12.0)), TypeError, r"shape\[1\] is 12.0.*integer is needed"),
        (lambda x, m: np.reshape(x, -1, order="F"), TypeError, "order='F'"),
        (lambda x, m: np.squeeze(x, 1), ValueError, "axis 1 has length 3"),
        (lambda x, m: np.broadcast_to(m, (3, 5)), ValueError, r"\(3, 4\) does not broadcast to \(3, 5\)"),
        (lambda x, m: np.concatenate([m, x[0, :, :3]]), ValueError, "differ along axis 1"),
        (lambda x, m: np.concatenate([m, x]), ValueError, "2, 3 dimensions"),
        (lambda x, m: np.stack([m, m[0]]), ValueError, "same shape"),
        (lambda x, m: np.concatenate([m, m], out=np.zeros(2)), TypeError, r"out=.* is not supported"),
        (lambda x, m: np.split(m, 3, axis=1), ValueError, "no multiple of 3"),
        (lambda x, m: np.transpose(m, (0, 2)), np.exceptions.AxisError, "axis 2 is out of bounds"),
        (lambda x, m: np.moveaxis(x, m.sum().astype("int64"), 0), TypeError, "axis is traced"),
        (lambda x, m: np.tile(m, m.sum()), TypeError, "reps is .*an integer scalar is needed"),
        (lambda x, m: np.pad(m, 1, mode="median"), ValueError, "'median' is not supported"),
        (lambda x, m: np.pad(m, -1), ValueError, "cannot be negative"),
        (lambda x, m: nt.zeros((-2, 3)), ValueError, "negative dimensions"),
        (lambda x, m: nt.zeros(2.5), TypeError, "2.5.*integer is needed"),
        (lambda x, m: nt.arange(m), TypeError, "must be scalars"),
        (lambda x, m: m.dimshuffle(0), ValueError, "axis 1 has length 4"),
    ],
)
def test_what_cannot_be_is_refused_while_tracing(function, error, words):
    with pytest.raises(error, match=words):
        function(*inputs_for((X, M), True))


def test_squeeze_leaves_open_dimensions_where_they_are():
    m, x = nt.dmatrix("m"), nt.tensor("float64", shape=(1, None, 1, 3), name="x")
    assert np.squeeze(m) is m
    f = ns.function([m, x], [m.squeeze(), x.squeeze(), m[:1].sum(axis=0, keepdims=True).squeeze()], mode="python")
    for rows in (1, 2):
        results = f(np.ones((rows, 2)), np.ones((1, rows, 1, 3)))
        assert [result.shape for result in results] == [(rows, 2), (rows, 3), (2,)]


def test_len_of_an_open_dimension_names_shape():
    with pytest.raises(TracerError, match=r"x.shape\[0\]"):
        len(nt.dvector("x"))


@pytest.mark.parametrize(
    "name, arrays, attrs, error, words",
    [
        ("squeeze", (X,), {"axis": (1,)}, ValueError, "axis 1 has length 3"),
        ("broadcast_to", (M, 3, 5), {"shape": ("?", "?")}, ValueError, "has length 4, the shape asks for 5"),
        ("broadcast_to", (np.float64(1.0), -3), {"shape": ("?",)}, ValueError, "negative dimensions.*-3"),
        ("reshape", (M, 5), {"shape": ("?", -1)}, ValueError, "12 elements does not fit.*has 5"),
        ("reshape", (M, 0), {"shape": ("?", -1)}, ValueError, "12 elements does not fit"),
        ("reshape", (M,), {"shape": (5, 2)}, ValueError, "12 elements does not fit.*has 10"),
        ("concatenate", (M, M.T), {"axis": 0}, ValueError, "array 1 has length 3 along axis 1, the first has 4"),
        ("arange", (0, 0, 4), {"shape": ("?",), "dtype": "int64"}, ZeroDivisionError, "step is zero"),
    ],
)
def test_what_only_the_run_sees_is_refused_by_the_run(name, arrays, attrs, error, words):
    with pytest.raises(error, match=words):
        lowered(CARDS[name], arrays, attrs, known=False)


@pytest.mark.parametrize("mode", [None, "python"])
def test_a_shape_that_is_said_does_not_broadcast(mode):
    said = ns.function([x := nt.dmatrix("x")], nt.specify_shape(x, (None, 3)) * 2, mode=mode)
    np.testing.assert_array_equal(said(np.ones((20, 3))), np.full((20, 3), 2.0))
    for columns in (1, 2, 4):
        with pytest.raises(ValueError, match=rf"specify_shape: x has (shape \(.*, {columns}\)|length {columns} along axis 1).*must have"):
            said(np.ones((20, columns)))
