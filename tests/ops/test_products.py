"""dot, matmul, inner, outer, tensordot, einsum and their like, against NumPy."""

import numpy as np
import pytest

import numbascan.tensor as nt
from numbascan.ir.graph import Graph, toposort
from numbascan.ops.contract import CONTRACT
from numbascan.oracle.interpret import interpret

RNG = np.random.default_rng(8)
EXTENTS = {label: (n,) for label, n in zip("abcdeijklz", (2, 3, 4, 5, 6, 3, 4, 5, 2, 1), strict=True)} | {".": (7, 2)}


def some(*shape, dtype="float64"):
    values = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    return (values if dtype.startswith("complex") else values.real * (3 if dtype[0] in "iu" else 1)).astype(dtype)


def variables(arrays, is_known=True):
    return [nt.tensor(x.dtype.name, shape=x.shape if is_known else (None,) * x.ndim) for x in arrays]


def value(function, *arrays, is_known=True):
    """What a function of variables gives, as an array; its type must be what was promised."""
    inputs = variables(arrays, is_known)
    result = function(*inputs)
    (found,) = interpret(Graph(tuple(x.node for x in inputs), (result.node,)), arrays)
    assert all(known in (None, seen) for known, seen in zip(result.type.shape, np.shape(found), strict=True))
    assert result.type.dtype == np.asarray(found).dtype.name
    return found


def assert_as_numpy(function, *arrays):
    """Value, shape and dtype are NumPy's, with fixed and with unknown dimensions."""
    wanted = function(*arrays)
    for is_known in (True, False):
        found = value(function, *arrays, is_known=is_known)
        assert found.dtype == wanted.dtype
        tolerance = 1e-5 if found.dtype.name in ("float32", "complex64") else 1e-12
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def n_contractions(function, *shapes):
    result = function(*(nt.tensor("float64", shape=shape) for shape in shapes))
    return sum(node.op is CONTRACT for node in toposort([result.node]))


@pytest.mark.parametrize(
    "left, right", [("float64", "float32"), ("float32", "complex64"), ("int32", "int8"), ("bool", "bool"), ("int16", "float32")]
)
def test_products_have_numpys_dtype(left, right):
    assert_as_numpy(np.matmul, some(3, 4, dtype=left), some(4, 2, dtype=right))
    assert_as_numpy(np.dot, some(4, dtype=left), some(4, dtype=right))


@pytest.mark.parametrize(
    "a, b", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (4, 3, 2)), ((), (2, 3)), ((2,), ())]
)
def test_dot_takes_every_rank(a, b):
    assert_as_numpy(np.dot, some(*a), some(*b))


def test_dot_is_a_method_too():
    assert_as_numpy(lambda x, y: x.dot(y), some(2, 3), some(3))


@pytest.mark.parametrize(
    "a, b",
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((5, 2, 3), (5, 3, 4)), ((7, 5, 2, 3), (5, 3, 4)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,))],
)
def test_matmul_takes_stacks_of_matrices(a, b):
    assert_as_numpy(lambda x, y: x @ y, some(*a), some(*b))


@pytest.mark.parametrize("a, b", [((1, 2, 3), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 4)), ((7, 1, 2, 3), (1, 5, 3, 4)), ((1, 2, 3), (1, 3, 4))])
def test_matmul_stretches_leading_axes_of_length_1(a, b):
    wanted = some(*a), some(*b)
    np.testing.assert_allclose(value(np.matmul, *wanted), np.matmul(*wanted), rtol=1e-12)
    assert n_contractions(np.matmul, a, b) == 1


def test_a_constant_may_stand_on_either_side():
    A, x = some(2, 3), some(3)
    np.testing.assert_allclose(value(lambda v: A @ v, x), A @ x, rtol=1e-12)
    np.testing.assert_allclose(value(lambda v: v @ A.T, x), x @ A.T, rtol=1e-12)


def test_the_other_products_are_numpys():
    u, v = some(2, 3, dtype="complex128"), some(3, 2, dtype="complex128")
    assert_as_numpy(np.vdot, u, v)
    assert_as_numpy(np.inner, some(2, 3), some(4, 5, 3))
    assert_as_numpy(np.inner, some(), some(4))
    assert_as_numpy(np.outer, some(2, 3), some(4))
    assert_as_numpy(np.linalg.outer, some(2), some(4))
    assert_as_numpy(np.vecdot, u, v.T.copy())
    assert_as_numpy(lambda x, y: np.vecdot(x, y, axis=0), u, v.T.copy())
    assert_as_numpy(np.matvec, some(5, 2, 3), some(5, 3))
    assert_as_numpy(np.vecmat, some(2, dtype="complex128"), u)
    assert_as_numpy(lambda x, y: np.linalg.multi_dot([x, y, x, y[:, 0]]), some(2, 3), some(3, 2))


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 1], [0, 1]), ([1, 0], [1, 0]), (0, 0), ([-1], [1])])
def test_tensordot_pairs_axes(axes):
    a, b = (some(4, 3), some(3, 5)) if axes == 1 else (some(3, 4), some(3, 4, 2))
    a, b = (some(2, 3, 4), b) if axes == 2 else (a, b)
    assert_as_numpy(lambda x, y: np.tensordot(x, y, axes), a, b)


@pytest.mark.parametrize("a, b", [((2, 3), (4, 5)), ((3,), (2,)), ((2,), (3, 4)), ((2, 1, 3), (4, 5)), ((), (2, 3))])
def test_kron_puts_a_block_for_each_element(a, b):
    assert_as_numpy(np.kron, some(*a), some(*b))


CROSS = [((4, 3), (4, 3), {}), ((3,), (4, 3), {}), ((3, 4), (3, 4), {"axis": 0}), ((3, 4), (4, 3), {"axisa": 0, "axisc": 0})]


@pytest.mark.parametrize("a, b, axes", CROSS)
def test_cross_works_on_any_axis(a, b, axes):
    x, y = some(*a), some(*b)
    np.testing.assert_allclose(value(lambda x, y: np.cross(x, y, **axes), x, y), np.cross(x, y, **axes), rtol=1e-12)


SUBSCRIPTS = [
    "ij,jk->ik",
    "ij,jk",
    "ij,jk->ki",
    "i,i",
    "i,i->i",
    "i,j->ij",
    "ij->ji",
    "ij->",
    "ii->i",
    "ii",
    "iij->j",
    "iji->ij",
    "ij,ij->",
    "bij,bjk->bik",
    "...ij,...jk->...ik",
    "...i,i->...",
    "ij,kj,k->i",
    "ab,bc,cd,de->ae",
    "a,a,a->",
    "ij,k->",
    "iji,j->i",
    "ik,jk,lk->ijl",
    "i...,i...->...",
    "ba,ca->cb",
    "iii->i",
    "zj,ij->i",
    "zj,ij->j",
    "zj,zk",
    "z...,i...",
    ",ij->ji",
    "ij,zz->ij",
    "b,bb,b->b",
]


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_gives_what_numpy_gives(subscripts):
    terms = subscripts.split("->")[0].replace("...", ".").split(",")
    arrays = [some(*(n for label in term for n in EXTENTS[label])) for term in terms]
    wanted = np.einsum(subscripts, *arrays)
    found = value(lambda *operands: np.einsum(subscripts, *operands), *arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    if "z" not in subscripts:  # only an axis known to have length 1 is stretched
        found = value(lambda *operands: np.einsum(subscripts, *operands), *arrays, is_known=False)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_einsum_takes_lists_of_labels():
    a, b = some(2, 3), some(3, 4)
    assert_as_numpy(lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), a, b)
    assert_as_numpy(lambda x, y: np.einsum(x, [4, 1], y, [1, 2]), a, b)
    assert_as_numpy(lambda x: np.einsum(x, [..., 0], [0, ...]), some(2, 3, 4))


def test_einsum_keeps_small_dtypes():
    assert_as_numpy(lambda x: np.einsum("ij->i", x), some(3, 4, dtype="int8"))
    assert_as_numpy(lambda x: np.einsum("ij->i", x), some(3, 4) > 0)
    assert_as_numpy(lambda x, y: np.einsum("ij,j->i", x, y), some(3, 4, dtype="float32"), some(4, dtype="float32"))


def test_a_chain_is_contracted_in_the_cheap_order():
    x, A, B = nt.tensor("float64", shape=(50,)), nt.tensor("float64", shape=(60, 50)), nt.tensor("float64", shape=(40, 60))
    result = np.linalg.multi_dot([B, A, x])
    assert [node.type.shape for node in toposort([result.node]) if node.op is CONTRACT] == [(60,), (40,)]


def test_products_without_a_sum_are_elementwise():
    assert n_contractions(lambda x, y: np.einsum("i,j->ij", x, y), (3,), (4,)) == 0
    assert n_contractions(lambda x, y: np.einsum("ij,j->ij", x, y), (3, 4), (4,)) == 0
    assert n_contractions(np.kron, (2, 3), (3, 4)) == 0


def test_what_stands_in_one_operand_alone_is_summed_first():
    result = np.einsum("ij,jk->k", nt.tensor("float64", shape=(9, 3)), nt.tensor("float64", shape=(3, 4)))
    (node,) = (node for node in toposort([result.node]) if node.op is CONTRACT)
    assert [parent.type.shape for parent in node.inputs] == [(3,), (3, 4)]


WRONG = [
    (lambda x: x @ x, "shapes (2, 3) and (2, 3) do not fit: axes of lengths 3 and 2 meet"),
    (lambda x: np.dot(x, np.ones(4)), "shapes (2, 3) and (4,) do not fit"),
    (lambda x: np.inner(x, np.ones(2)), "np.inner: shapes (2, 3) and (2,)"),
    (lambda x: np.vdot(x, np.ones(5)), "np.vdot: shapes (6,) and (5,)"),
    (lambda x: np.tensordot(x, x, 1), "np.tensordot: shapes"),
    (lambda x: np.tensordot(x, x, ([0], [0, 1])), "names 1 axes of a, but 2 of b"),
    (lambda x: np.tensordot(x, x, ([2], [0])), "do not exist"),
    (lambda x: np.tensordot(x, x, ([0, -2], [0, 1])), "name an axis twice"),
    (lambda x: np.matmul(x, 2.0), "operand 1 of shape () has 0 dimensions"),
    (lambda x: np.einsum("ij,jk", x, x), "np.einsum: shapes (2, 3) and (2, 3) do not fit"),
    (lambda x: np.einsum("ij,jk", x), "describes 2 operands, but 1 are given"),
    (lambda x: np.einsum("ijk", x), "3 labels do not fit operand 0 of shape (2, 3)"),
    (lambda x: np.einsum("i", x), "1 labels do not fit operand 0"),
    (lambda x: np.einsum("ii", x), "axes 0 and 1 of shape (2, 3) have one label, but lengths 2 and 3"),
    (lambda x: np.einsum("ij->ik", x), "label 'k' of the result stands in no operand"),
    (lambda x: np.einsum("ij->ii", x), "a label stands twice in the result"),
    (lambda x: np.einsum("i...->i", x), "the axes behind ... are missing in the result"),
    (lambda x: np.einsum("i1", x), "'1' in 'i1' is no label"),
    (lambda x: np.linalg.multi_dot([x, x]), "np.linalg.multi_dot: shapes (2, 3) and (2, 3)"),
    (lambda x: np.linalg.multi_dot([x]), "two arrays or more"),
    (lambda x: np.linalg.outer(x, x), "needs vectors"),
    (lambda x: np.cross(x[:, :2], x[:, :2]), "known to have 3 elements, not shape (2, 2)"),
]


@pytest.mark.parametrize("wrong, words", WRONG)
def test_operands_that_do_not_fit_are_refused_with_both_shapes_and_the_line(wrong, words):
    with pytest.raises(ValueError, match=r"test_products\.py, line") as caught:
        wrong(nt.tensor("float64", shape=(2, 3)))
    assert words in str(caught.value)


@pytest.mark.parametrize("wrong", [lambda x: np.dot(x, x, out=np.empty(())), lambda x: np.einsum("i,i", x, x, dtype="float32")])
def test_arguments_that_make_no_sense_for_traced_values_are_refused(wrong):
    with pytest.raises(TypeError, match="traced value"):
        wrong(nt.dvector("x"))


@pytest.mark.parametrize("function", [np.matmul, np.dot, lambda x, y: np.einsum("aij,ajk->aik", x[None], y[None])])
def test_lengths_that_only_the_run_knows_are_compared_then(function):
    with pytest.raises(ValueError, match="do not fit"):
        value(function, some(2, 3), some(1, 4), is_known=False)


def test_the_diagonal_of_a_matrix_found_not_square_is_refused():
    with pytest.raises(ValueError, match="one label, but different lengths"):
        value(lambda x: np.einsum("ii->i", x), some(2, 3), is_known=False)
