"""Derivatives of linear algebra: against central differences, closed forms and each other, to second order."""

from itertools import cycle, product

import numpy as np
import pytest
import scipy.linalg
from ops.derivative_checks import Point, check_card, random_like

import numbascan.tensor as nt
from numbascan.compile import Program
from numbascan.errors import NullGradientError
from numbascan.grad.forward import tangents
from numbascan.grad.reverse import cotangents
from numbascan.ir.graph import Graph
from numbascan.ir.node import constant, new_input, outputs_of
from numbascan.modes import Mode
from numbascan.ops.card import CARDS, apply
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

STACKS = [(), (2,), (2, 1)]
TRIANGLES = [{"lower": lower, "trans": trans, "unit": unit} for lower, trans, unit in product((False, True), (0, 1, 2), (False, True))]
SIDES = [{"lower": False}, {"lower": True}]
ATTRS = {"solve_triangular": TRIANGLES, "solve_triangular_vector": TRIANGLES, "eigh": SIDES, "eigvalsh": SIDES}
ATTRS |= {"qr": [{"complete": False}]}
NAMES = ["solve", "solve_vector", "solve_triangular", "solve_triangular_vector"]
NAMES += ["inv", "det", "slogdet", "cholesky", "qr", "eigh", "eigvalsh", "expm"]


def matrices(rng, *shape, dtype="float64"):
    """Well-conditioned, not symmetric, with eigenvalues of the symmetric part that differ."""
    n = shape[-1]
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    values = values if dtype.startswith("complex") else values.real
    return (values / n**0.5 + np.diag(2.0 + np.arange(n))).astype(dtype)


def operands_of(name, stack=(), dtype="float64", n=3):
    """Operands of a card: what stands in a triangle that is not read is no part of the matrix."""
    rng = np.random.default_rng(5)
    a = matrices(rng, *stack, n, n, dtype=dtype)
    if name == "cholesky":
        a = np.tril(a @ a.conj().swapaxes(-1, -2)) + np.triu(a, 1)
    if name == "qr":
        a = random_like(rng, np.empty((*stack, n + 1, n), dtype))
    if not name.startswith("solve"):
        return (a,)
    return a, random_like(rng, np.empty((*stack, n) if name.endswith("vector") else (*stack, n, 2), dtype))


def cases(dtypes=("float64", "complex128"), stacks=STACKS):
    """Every card with every attribute; the many of triangular systems have stacks by turns."""
    found = []
    for name, dtype in product(NAMES, dtypes):
        choices = ATTRS.get(name, [{}])
        pairs = product(choices, stacks) if len(choices) < 3 else zip(choices, cycle(stacks))
        found += [
            pytest.param(name, operands_of(name, stack, dtype), attrs, id=f"{name}-{dtype}-{stack}-{attrs}") for attrs, stack in pairs
        ]
    return found


def has_phases(name, operands):
    """Complex eigenvectors: LAPACK chooses their phases, which the derivatives leave alone."""
    return name == "eigh" and operands[0].dtype.kind == "c"


class Reverse:
    """The cotangents of a card's operands, as a graph, and the tangents of these."""

    def __init__(self, name, operands, attrs, is_known=True):
        rng = np.random.default_rng(1)
        self.values = list(operands)
        self.inputs = [new_input(TensorType(x.dtype.name, x.shape if is_known else (None,) * x.ndim)) for x in operands]
        outputs = outputs_of(apply(CARDS[name], *self.inputs, **attrs))
        results = interpret(Graph(tuple(self.inputs), outputs), self.values)
        weights = [constant(random_like(rng, x)) for x in results]
        self.nodes = cotangents(outputs, weights, self.inputs)
        self.directions = [random_like(rng, x) for x in operands]

    def at(self, values):
        return interpret(Graph(tuple(self.inputs), tuple(self.nodes)), values)

    def compiled(self):
        return Program(Graph(tuple(self.inputs), tuple(self.nodes)), Mode(), specialise=False)(self.values)

    def moved(self):
        """How the cotangents change along the directions: by differences, forward mode, and reverse mode."""
        step = 1e-5
        ends = [self.at([x + sign * step * v for x, v in zip(self.values, self.directions, strict=True)]) for sign in (1, -1)]
        given = [constant(v) for v in self.directions]
        forward = tangents(self.nodes, self.inputs, given)
        reverse = cotangents(self.nodes, given, self.inputs)
        graph = Graph(tuple(self.inputs), (*forward, *reverse))
        found = interpret(graph, self.values)
        differences = [(ahead - behind) / (2 * step) for ahead, behind in zip(*ends, strict=True)]
        return differences, found[: len(forward)], found[len(forward) :]


def gradient(function, *values, dims=None):
    """The gradient of a function of variables with one real result."""
    inputs = [nt.tensor(x.dtype.name, shape=x.shape if dims is None else dims) for x in map(np.asarray, values)]
    result = function(*inputs).node
    found = cotangents([result], [constant(1.0, result.type.dtype)], [x.node for x in inputs])
    return interpret(Graph(tuple(x.node for x in inputs), tuple(found)), values)


# against differences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, operands, attrs", [case for case in cases() if not has_phases(*case.values[:2])])
def test_derivatives_agree_with_differences_for_every_attribute_and_stack(name, operands, attrs):
    check_card(CARDS[name], operands, attrs)


@pytest.mark.parametrize("name, operands, attrs", [case for case in cases(stacks=[(2,)]) if not has_phases(*case.values[:2])])
def test_derivatives_have_derivatives(name, operands, attrs):
    differences, forward, reverse = Reverse(name, operands, attrs).moved()
    for wanted, ahead, back in zip(differences, forward, reverse, strict=True):
        np.testing.assert_allclose(ahead, back, rtol=1e-8, atol=1e-9 * (1 + np.abs(back).max()))
        np.testing.assert_allclose(ahead, wanted, rtol=1e-6, atol=1e-6 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape, complete", [((3, 3), True), ((3, 3), False), ((1, 1), False), ((5, 1), False), ((2, 4, 4), True)])
def test_qr_of_at_least_as_many_rows_as_columns(shape, complete, dtype):
    a = random_like(np.random.default_rng(2), np.empty(shape, dtype))
    check_card(CARDS["qr"], (a,), {"complete": complete})


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("stack", STACKS)
def test_results_that_do_not_depend_on_the_phases_of_complex_eigenvectors_have_derivatives(lower, stack):
    (a,) = operands_of("eigh", stack, "complex128")
    rng = np.random.default_rng(3)
    weights, v = random_like(rng, a), random_like(rng, a)
    x = nt.tensor("complex128", shape=a.shape)
    values, vectors = np.linalg.eigh(x, "L" if lower else "U")
    exponential = (vectors * np.exp(values / 4)[..., None, :]) @ np.conjugate(np.swapaxes(vectors, -1, -2))
    result = np.sum(np.real(exponential * weights) ** 2).node
    (first,) = cotangents([result], [constant(1.0)], [x.node])
    ahead = tangents([result, first], [x.node], [constant(v)])
    (back,) = cotangents([first], [constant(v)], [x.node])
    found = interpret(Graph((x.node,), (first, *ahead, back)), [a])
    ends = [interpret(Graph((x.node,), (result, first)), [a + step * v]) for step in (1e-5, -1e-5)]
    first_difference, second_difference = ((p - m) / 2e-5 for p, m in zip(*ends, strict=True))
    np.testing.assert_allclose(np.sum(found[0] * v).real, first_difference, rtol=1e-7)
    np.testing.assert_allclose(found[1], first_difference, rtol=1e-7)
    for second in found[2:]:
        np.testing.assert_allclose(second, second_difference, rtol=1e-6, atol=1e-6 * np.abs(second_difference).max())


@pytest.mark.parametrize("name, operands, attrs", [case for case in cases() if has_phases(*case.values[:2])])
def test_forward_and_reverse_mode_of_complex_eigenvectors_agree(name, operands, attrs):
    point = Point(CARDS[name], operands, attrs)
    ahead = sum(np.sum(w * t).real for w, t in zip(point.weights, point.tangents(), strict=True))
    np.testing.assert_allclose(np.sum(point.cotangents()[0] * point.directions[0]).real, ahead, rtol=1e-9)


@pytest.mark.parametrize("a_dtype, b_dtype", [("float64", "complex128"), ("complex128", "float64"), ("float32", "float64")])
@pytest.mark.parametrize("name", ["solve", "solve_vector", "solve_triangular"])
def test_systems_of_two_dtypes(name, a_dtype, b_dtype):
    (a, _), (_, b) = operands_of(name, (), a_dtype), operands_of(name, (), b_dtype)
    for attrs in ATTRS.get(name, [{}]):
        check_card(CARDS[name], (a, b), attrs)
        assert [x.dtype.name for x in Reverse(name, (a, b), attrs).at([a, b])] == [a_dtype, b_dtype]


# what is read -------------------------------------------------------------------------------------------------------


def read(name, attrs):
    """The triangle that the card reads, as 0 and 1."""
    ones = np.tril(np.ones((3, 3))) if attrs.get("lower", True) else np.triu(np.ones((3, 3)))
    return ones - np.eye(3) if attrs.get("unit") else ones


ONE_TRIANGLE = ["solve_triangular", "solve_triangular_vector", "cholesky", "eigh", "eigvalsh"]


@pytest.mark.parametrize("name, operands, attrs", [case for case in cases(stacks=[(2,)]) if case.values[0] in ONE_TRIANGLE])
def test_only_the_triangle_that_is_read_has_a_gradient(name, operands, attrs):
    mask = read(name, attrs)
    plain = Reverse(name, operands, attrs).at(operands)
    operands = np.where(mask == 1, operands[0], np.nan), *operands[1:]
    for found, wanted in zip(Reverse(name, operands, attrs).at(operands), plain, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(plain[0] != 0, np.broadcast_to(mask, plain[0].shape) == 1)


def test_the_gradient_of_a_hermitian_matrix_counts_both_triangles_in_the_one_that_is_read():
    a = np.array([[3.0, 0.0], [1.0, 5.0]])
    (found,) = gradient(lambda x: np.linalg.eigvalsh(x)[1], a)
    _, vectors = np.linalg.eigh(a)
    top = vectors[:, 1]
    np.testing.assert_allclose(found, [[top[0] ** 2, 0.0], [2 * top[0] * top[1], top[1] ** 2]], rtol=1e-12)


# dtypes and shapes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, operands, attrs", cases(["float32", "complex64"], [(2,)]))
def test_single_precision_stays(name, operands, attrs):
    dtype = operands[0].dtype
    wide = [x.astype(np.result_type(x, np.float64)) for x in operands]
    for found, exact in zip(Reverse(name, operands, attrs).at(operands), Reverse(name, wide, attrs).at(wide), strict=True):
        assert found.dtype == dtype
        if not has_phases(name, operands):  # weights are the same, eigenvectors' phases need not be
            np.testing.assert_allclose(found, exact, rtol=2e-4, atol=2e-4 * np.abs(exact).max())
    point = Point(CARDS[name], operands, attrs)
    for out, tangent in zip(point.outputs, point.tangents(), strict=True):
        assert np.isscalar(tangent) or tangent.dtype == out.type.dtype  # the scalar 0: the sign of a determinant does not move


@pytest.mark.parametrize("name, operands, attrs", cases(["float64"], [(2,)]))
def test_dimensions_may_be_unknown(name, operands, attrs):
    known, unknown = (Reverse(name, operands, attrs, is_known) for is_known in (True, False))
    for found, wanted in zip(unknown.at(operands), known.at(operands), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    for found, wanted in zip(unknown.moved()[1], known.moved()[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("stack, n", [((0,), 3), ((2, 0), 2), ((), 0), ((2,), 0)])
@pytest.mark.parametrize("name", NAMES)
def test_stacks_and_matrices_may_be_empty(name, stack, n, is_known):
    operands = operands_of(name, stack, n=n)
    attrs = ATTRS.get(name, [{}])[0]
    found = Reverse(name, operands, attrs, is_known).at(operands)
    assert [x.shape for x in found] == [x.shape for x in operands]


# closed forms -------------------------------------------------------------------------------------------------------


def test_the_hessian_of_the_logarithm_of_a_determinant():
    a = matrices(np.random.default_rng(4), 3, 3)
    (inverse,) = interpret(Graph((x := new_input(TensorType("float64", (3, 3))),), (apply(CARDS["inv"], x),)), [a])
    log = outputs_of(apply(CARDS["slogdet"], x))[1]
    (first,) = cotangents([log], [constant(1.0)], [x])
    for i, j in product(range(3), range(3)):
        unit = np.zeros((3, 3))
        unit[i, j] = 1
        (second,) = cotangents([first], [constant(unit)], [x])
        found = interpret(Graph((x,), (first, second)), [a])
        np.testing.assert_allclose(found[0], inverse.T, rtol=1e-12)
        np.testing.assert_allclose(found[1], -np.outer(inverse[:, i], inverse[j]).T, rtol=1e-10, atol=1e-13)


def test_the_second_derivative_of_a_solution():
    rng = np.random.default_rng(6)
    a, b, v = matrices(rng, 3, 3), rng.normal(size=3), rng.normal(size=(3, 3))
    x, y = new_input(TensorType("float64", (3, 3))), new_input(TensorType("float64", (3,)))
    node = apply(CARDS["solve_vector"], x, y)
    (first,) = tangents([node], [x], [constant(v)])
    (second,) = tangents([first], [x], [constant(v)])
    found = interpret(Graph((x, y), (first, second)), [a, b])
    step = np.linalg.inv(a) @ v
    np.testing.assert_allclose(found[0], -step @ np.linalg.solve(a, b), rtol=1e-11)
    np.testing.assert_allclose(found[1], 2 * step @ step @ np.linalg.solve(a, b), rtol=1e-11)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_the_determinant_of_a_covariance_has_one_gradient_by_every_way(shape):
    a = matrices(np.random.default_rng(8), *shape)

    def covariance(x):
        return x @ np.swapaxes(x, -1, -2)

    def by_cholesky(x):
        return 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(covariance(x)), axis1=-2, axis2=-1)))

    ways = [by_cholesky, lambda x: np.sum(np.linalg.slogdet(covariance(x))[1]), lambda x: np.sum(np.log(np.linalg.det(covariance(x))))]
    ways += [lambda x: np.sum(np.log(np.linalg.eigvalsh(covariance(x)))), lambda x: 2 * np.sum(np.linalg.slogdet(x)[1])]
    wanted = 2 * np.linalg.inv(a).swapaxes(-1, -2)
    for way in ways:
        np.testing.assert_allclose(gradient(way, a)[0], wanted, rtol=1e-10, atol=1e-12)


def test_the_sign_of_a_determinant_is_constant_where_it_is_real_and_turns_where_it_is_complex():
    a = matrices(np.random.default_rng(4), 3, 3)
    np.testing.assert_array_equal(gradient(lambda x: np.linalg.slogdet(x)[0], a)[0], np.zeros((3, 3)))
    z = np.array([[np.exp(0.3j) * 2]])
    (found,) = gradient(lambda x: np.imag(np.linalg.slogdet(x)[0]), z)  # sin of the angle: cos(0.3) / (2 * exp(0.3i)) * -i
    np.testing.assert_allclose(found, [[-1j * np.cos(0.3) / z[0, 0]]], rtol=1e-12)


NILPOTENT, TURN = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])


def frechet(a, e, wide="float64"):
    """The derivative of expm at `a` along `e`, by forward mode, and with `e` as a cotangent at a^T: interpreted and compiled."""
    a, e = np.asarray(a, wide), np.asarray(e, wide)
    x, w = (new_input(TensorType(wide, a.shape)) for _ in range(2))
    node = apply(CARDS["expm"], x)
    back = new_input(TensorType(wide, a.shape))
    ahead, *_ = tangents([node], [x], [w])
    (behind,) = cotangents([apply(CARDS["expm"], back)], [w], [back])
    graph = Graph((x, w, back), (ahead, behind))
    return [*interpret(graph, [a, e, a.T]), *Program(graph, Mode())([a, e, a.T])]


def test_the_derivative_of_the_exponential_of_a_nilpotent_matrix():
    e = np.array([[0.3, -1.2], [0.7, 2.0]])
    wanted = e + (NILPOTENT @ e + e @ NILPOTENT) / 2 + NILPOTENT @ e @ NILPOTENT / 6
    for found in frechet(NILPOTENT, e):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    for found in frechet(np.zeros((2, 2)), np.zeros((2, 2))):
        np.testing.assert_array_equal(found, np.zeros((2, 2)))


@pytest.mark.parametrize("angle", [0.1, 2.0, 20.0])
def test_the_derivative_of_a_rotation_with_respect_to_its_angle(angle):
    for found in frechet(angle * TURN, TURN):
        c, s = np.cos(angle), np.sin(angle)
        np.testing.assert_allclose(found, [[-s, -c], [c, -s]], rtol=1e-13 * max(angle, 1), atol=1e-14 * max(angle, 1))


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-13), ("float32", 2e-6)])
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e6, 1e20])
def test_the_size_of_a_cotangent_costs_the_exponential_no_digits(size, dtype, tolerance):
    rng = np.random.default_rng(11)
    a, e = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    wanted = scipy.linalg.expm_frechet(a, e, compute_expm=False)
    for found in frechet(a, size * e, dtype):
        assert found.dtype == dtype
        np.testing.assert_allclose(found / size, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def test_what_is_not_finite_makes_the_gradient_of_the_exponential_nan():
    for value in (np.nan, np.inf):
        for found in frechet(TURN, [[value, 0.0], [0.0, 1.0]]):
            assert not np.isfinite(found).any()


# where there is no derivative ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, mode, words", [((2, 5), "reduced", "fewer rows"), ((2, 5), "complete", "fewer"), ((4, 3), "complete", "complete q")]
)
def test_qr_says_of_which_shapes_it_has_no_derivative(shape, mode, words):
    with pytest.raises(NullGradientError, match=rf"qr has no derivative \(.*test_linalg_derivatives.*{words}"):
        gradient(lambda x: np.sum(np.linalg.qr(x, mode)[1]), np.ones(shape))
    x = new_input(TensorType("float64", shape))
    with pytest.raises(NullGradientError, match=words):
        tangents(outputs_of(apply(CARDS["qr"], x, complete=mode == "complete")), [x], [x])


@pytest.mark.parametrize("shape, mode", [((2, 5), "reduced"), ((4, 3), "complete")])
def test_qr_of_unknown_shape_refuses_these_when_they_are_met(shape, mode):
    with pytest.raises((ValueError, np.linalg.LinAlgError), match="square"):
        gradient(lambda x: np.sum(np.linalg.qr(x, mode)[1]), np.random.default_rng(0).normal(size=shape), dims=(None, None))


def test_a_singular_matrix_raises_in_the_gradient_of_its_determinant():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    for function in (np.linalg.det, lambda x: np.linalg.slogdet(x)[1]):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            gradient(function, singular)


def test_equal_eigenvalues_have_no_derivative_of_eigenvectors_but_of_their_sum():
    a = np.diag([2.0, 2.0, 5.0])
    weights = np.random.default_rng(0).normal(size=(3, 3))
    (found,) = gradient(lambda x: np.sum(np.linalg.eigh(x)[1] * weights), a)
    assert not np.isfinite(found[1, 0])
    np.testing.assert_allclose(gradient(lambda x: np.sum(np.linalg.eigvalsh(x) ** 2), a)[0], 2 * a, rtol=1e-14)
    np.testing.assert_allclose(gradient(lambda x: np.sum(np.linalg.eigh(x)[0] ** 2), a)[0], 2 * a, rtol=1e-14)


# compiled -----------------------------------------------------------------------------------------------------------

COMPILED = [("solve", {}), ("solve_triangular_vector", TRIANGLES[5]), ("cholesky", {}), ("slogdet", {}), ("qr", {"complete": False})]
COMPILED += [("eigh", {"lower": True}), ("expm", {})]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name, attrs", COMPILED)
def test_compiled_gradients_are_those_of_numpy(name, attrs, is_known):
    operands = operands_of(name, (2,))
    reverse = Reverse(name, operands, attrs, is_known)
    for found, wanted in zip(reverse.compiled(), reverse.at(operands), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
