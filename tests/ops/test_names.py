"""Names that users of NumPy and PyTensor expect: methods of variables, and functions of one name or another."""

import numpy as np
import pytest
from ops.functions import assert_as_numpy, traced

import numbascan as ns
import numbascan.tensor as nt
from numbascan.errors import MissingInputError, TracerError
from numbascan.oracle.interpret import interpret

X = np.array([-1.5, 0.25, 3.0, 0.75])
M = np.arange(12.0).reshape(3, 4) - 5
MODES = [None, "python"]


def test_select_takes_the_first_choice_that_holds():
    assert_as_numpy(
        lambda x, single: [
            *(np.select([x > 0, x < -1], [single, 1], 2), np.select([x > 0, x[:, None] < -1], [x, 1], 2.5), np.select([x > 0], [1])),
            *(np.allclose(x, single), np.allclose(x, x[0]), np.allclose(x * np.nan, x * np.nan, equal_nan=True)),
        ],
        X,
        X.astype("float32"),
    )


def test_polyval_of_any_number_of_coefficients():
    p = np.sin(np.arange(40.0))
    assert_as_numpy(
        lambda p, m: [
            *(np.polyval(p, m / 7), np.polyval(p[:5], m), np.polyval(p[:0], m), np.polyval(p.astype("float32"), m.astype("float32") / 9)),
            np.polyval([1, 2], m.astype("int32")),
        ],
        p,
        M,
    )
    for coefficients in (p, p[:20]):
        assert ns.grad(lambda x: np.polyval(coefficients, x))(0.0) == coefficients[-2]  # noqa: B023 - called at once
        assert ns.hessian(lambda x: np.polyval(coefficients, x))(0.0) == 2 * coefficients[-3]  # noqa: B023 - called at once


@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (0, 3), (3, 0)])
def test_places_of_triangles(shape):
    for k in (-5, -1, 0, 2, 9):
        assert_as_numpy(lambda x: [np.tril_indices_from(x, k), np.triu_indices_from(x, k)], np.zeros(shape), is_definite=False)  # noqa: B023
    n, m = nt.lscalars("n m")
    rows, columns = ns.function([n, m], nt.tril_indices(n, 1, m))(*shape)
    np.testing.assert_array_equal([rows, columns], np.tril_indices(shape[0], 1, shape[1]))


@pytest.mark.parametrize("shape, wrap", [((3, 4), False), ((7, 2), False), ((7, 2), True), ((3, 3, 3), False), ((0, 3), False)])
def test_fill_diagonal_gives_the_new_array(shape, wrap):
    a = np.sin(np.arange(np.prod(shape))).reshape(shape)
    wanted = a.copy()
    np.fill_diagonal(wanted, 5.0, wrap)
    for is_known in (True, False):
        graph, arguments = traced(lambda x: nt.fill_diagonal(x, 5.0, wrap), (a,), is_known)
        np.testing.assert_array_equal(interpret(graph, arguments)[0], wanted)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_composed_is_compiled_and_differentiated(mode):
    def total(a, k):
        rows = nt.batched_dot(a[:, :, None] * a[:, None, :], a)
        diagonal = nt.fill_diagonal(a, a[0] ** 2)
        below = a[nt.tril_indices(3)]
        return nt.sum(rows) + nt.sum(diagonal**2) + nt.sum(np.choose(k, [a, -a, a * 2]) ** 3) + nt.sum(np.exp(below / 9))

    a, k = np.cos(np.arange(9.0)).reshape(3, 3), np.array([0, 2, 1])
    diagonal = a.copy()
    np.fill_diagonal(diagonal, a[0] ** 2)
    wanted = np.einsum("ij,ik,ik->", a, a, a) + np.sum(diagonal**2) + np.sum(np.choose(k, [a, -a, a * 2]) ** 3)
    assert ns.jit(total, mode=mode)(a, k) == pytest.approx(wanted + np.sum(np.exp(a[np.tril_indices(3)] / 9)), rel=1e-13)
    if mode is None:
        ns.verify_grad(lambda a: total(a, k), [a])
    for numbers in ([0, 3, 1], [0, -1, 1]):
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            ns.jit(total, mode=mode)(a, np.array(numbers))


def test_batched_dot_of_every_rank():
    arrays = [np.sin(np.arange(2.0 * 3**k)).reshape((2,) + (3,) * k) for k in range(4)]
    for a in arrays:
        for b in arrays:
            wanted = np.stack([np.dot(x, y) for x, y in zip(a, b, strict=True)])
            np.testing.assert_allclose(ns.jit(nt.batched_dot, mode="python")(a, b), wanted, rtol=1e-13)


def test_constants_and_derivatives_are_names_of_the_tensor_module():
    x = nt.dvector("x")
    assert (nt.pi, nt.inf, -nt.inf < nt.nan) == (np.pi, np.inf, False)
    np.testing.assert_array_equal(nt.grad((x**2).sum(), x).eval({x: [1.0, 2.0]}), [2.0, 4.0])
    np.testing.assert_array_equal(nt.jacobian(x**2, x).eval({x: [1.0, 2.0]}), np.diag([2.0, 4.0]))
    np.testing.assert_array_equal(nt.hessian((x**3).sum(), x).eval({x: [1.0, 2.0]}), np.diag([6.0, 12.0]))
    np.testing.assert_array_equal(nt.stacklists([[x[0], 1], [2, x[1]]]).eval({x: [5.0, 6.0]}), [[5.0, 1.0], [2.0, 6.0]])


# methods ------------------------------------------------------------------------------------------------------------


def test_eval_gives_the_value_of_a_variable():
    x, shared = nt.dvector("x"), ns.shared(2.0, "scale")
    y = x * shared
    assert y.eval({x: [1.0, 2.0]}).tolist() == y.eval({"x": [1.0, 2.0]}, mode="python").tolist() == [2.0, 4.0]
    assert (shared + 1).eval() == 3.0
    with pytest.raises(MissingInputError, match="x"):
        y.eval()
    with pytest.raises(ValueError, match=r"0 inputs are named 'z', of \['x'\]"):
        y.eval({"z": 1.0})


def test_methods_of_arrays():
    assert_as_numpy(lambda z, m: [z.conj(), m.flat[5], m.flat[2:4], m.view(), m.view("float64")], np.array([1 + 2j, -3j]), M)
    m, k = nt.dmatrix("m"), nt.ivector("k")
    assert (m.zeros_like().dtype, m.ones_like("float32").dtype, k.norm(1).dtype) == ("float64", "float32", "float64")
    for order in (0, 1, 2, 3, np.inf, -np.inf):
        found, rows = m.norm(order).eval({m: M}), m.norm(order, axis=1).eval({m: M})
        np.testing.assert_allclose(found, np.linalg.norm(M.ravel(), order), rtol=1e-13)
        np.testing.assert_allclose(rows, np.linalg.norm(M, order, axis=1), rtol=1e-13)


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: x.item(), TracerError, r"x.item\(\) needs a concrete value.*x.reshape"),
        (lambda x: x.view("int64"), TypeError, r"x.view\(int64\).*x.astype"),
        (lambda x: np.fill_diagonal(x, 1.0), TypeError, "x = nt.fill_diagonal"),
        (lambda x: np.select([x], [1]), TypeError, r"condlist\[0\].*boolean"),
        (lambda x: nt.select([], []), ValueError, "0 conditions"),
        (lambda x: np.select([x > 0], [1, x]), ValueError, "1 conditions, 2 choices"),
        (lambda x: np.block([[x], x]), ValueError, "unequal depth"),
        (lambda x: nt.block((x, x)), TypeError, "tuple"),
        (lambda x: np.polyval(x, 1.0), ValueError, "must be a vector"),
        (lambda x: nt.fill_diagonal(x[0], 1.0), ValueError, "two axes"),
        (lambda x: nt.batched_dot(x, 1.0), ValueError, "axis of products"),
    ],
)
def test_what_is_refused_says_what_to_write(function, error, words):
    with pytest.raises(error, match=words):
        function(nt.dmatrix("x"))


def test_item_of_a_known_value_is_a_number_of_python():
    assert nt.constant(np.float32(2.5)).item() == 2.5


# functions of one element -------------------------------------------------------------------------------------------


def test_vectorize_broadcasts_what_the_signature_leaves_out():
    x, y, single = nt.dtensor3("x"), nt.dmatrix("y"), nt.dscalar("single")
    distance = nt.vectorize(lambda x, y: nt.sqrt(((x - y) ** 2).sum()), "(n),(n)->()")(x[:, None], y)
    both = nt.vectorize(lambda a, b: (a * b, a + b))(y, single)
    a, b = np.sin(np.arange(24.0)).reshape(4, 2, 3), np.cos(np.arange(6.0)).reshape(2, 3)
    values = ns.function([x, y, single], [distance, *both, ns.grad(distance.sum(), y)])(a, b, 2.0)
    np.testing.assert_allclose(values[0], np.sqrt(((a[:, None] - b) ** 2).sum(-1)), rtol=1e-13)
    np.testing.assert_allclose(values[1:3], [b * 2.0, b + 2.0])
    np.testing.assert_allclose(values[3], ((b - a[:, None]) / values[0][..., None]).sum((0, 1)), rtol=1e-12)
    assert nt.vectorize(nt.add)(1.0, single).ndim == 0


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda x, y: nt.vectorize(nt.dot, "(n),(n)->()")(x), "1 arguments are given"),
        (lambda x, y: nt.vectorize(nt.dot, "(n),(n)->()")(x, x[0, 0]), "argument 1 .* has fewer axes"),
        (lambda x, y: nt.vectorize(nt.dot, "n->n"), "cannot be read"),
        (lambda x, y: nt.vectorize(nt.exp, "(n)->()")(x), r"the results have \[1\] axes"),
        (lambda x, y: nt.vectorize(nt.add, "(n),(n)->(n)")(x, y[:1]).eval({x: np.ones((2, 3)), y: np.ones(4)}), "it must have"),
    ],
)
def test_vectorize_refuses_what_its_signature_does_not_say(function, words):
    with pytest.raises(ValueError, match=words):
        function(nt.dmatrix("x"), nt.dvector("y"))
