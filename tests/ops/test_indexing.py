"""x[…], gathering, and arrays with some elements replaced: as in NumPy, lengths known or not."""

import itertools

import numpy as np
import pytest
from ops.functions import assert_as_numpy, inputs_for
from ops.operands import ConcreteOperands, assert_lowered_as_evaluated, lowered

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import Graph
from numbascan.ops.card import CARDS
from numbascan.oracle.interpret import interpret

X = np.sin(np.arange(24.0)).reshape(2, 3, 4) * 5
M = np.cos(np.arange(12.0)).reshape(3, 4) * 3
V = np.array([3.5, -1.0, 2.0, 7.0, 0.5])
I = np.array([[3, -7, 2], [5, 0, 1]], "int32")
MASK = np.array([[True, False, True, False], [True, True, False, False], [False] * 4])

CASES = {
    "positions and slices": (
        lambda x: [
            *(x[0], x[-1, 1], x[0, 0, 0], x[...], x[:], x[..., 2], x[1, ..., -1], x[:, 1:-1, 2:], x[::-1, ::2], x[:, :, ::-2]),
            *(x[-5:], x[:, 7:], x[:, 2:1], x[:, -2:-1], x[:, :, -9:9:3], x[np.int64(1)], x[:, :, 3:-9:-1]),
        ],
        X,
    ),
    "new axes": (lambda x: [x[None], x[:, None, 1:], x[..., None, 0], x[None, 1, :, None]], X),
    "integer arrays": (
        lambda x, m: [
            *(m[[2, 0, 1]], m[[0, 1], [1, 2]], m[:, [0, -1]], m[[]], m[np.array([[0, 1], [2, 2]])], x[:, None, [0, 1]], x[[1], [[0], [2]]]),
            *(x[0, :, [1, 2]], x[:, [0, 1], [2, 3]], x[[0, 1], :, [2, 3]], x[[0, 1], 1], x[1, [0, 1], 1:], x[None, [0, 1], :, 2]),
        ],
        X,
        M,
    ),
    "traced integer arrays": (lambda m, i: [m[i % 3], m[i % 3, 1:], m[:, i % 4], m[i[0] % 3, i[1] % 4], m[-(i % 3) - 1]], M, I),
    "masks that are known": (lambda x, m: [m[np.array([True, False, True])], x[:, MASK], x[0][MASK], m[MASK, None]], X, M),
    "take": (
        lambda m, i: [
            *(np.take(m, [0, 2]), np.take(m, [[0, 2], [1, 1]], axis=1), np.take(m, i, axis=0, mode="wrap"), np.take(m, i, mode="clip")),
            *(m.take([1], axis=0), np.take(m, 1, axis=1), np.take(m, i % 3, axis=0)),
        ],
        M,
        I,
    ),
    "take_along_axis": (
        lambda m, x: [
            *(np.take_along_axis(m, np.argsort(m, axis=1), axis=1), np.take_along_axis(m, np.argsort(m, axis=0), axis=0)),
            *(np.take_along_axis(m, np.argmax(m, axis=1, keepdims=True), axis=1), np.take_along_axis(x, np.argsort(x, 1)[:, :2], 1)),
            np.take_along_axis(m, np.array([5, 0]), axis=None),
        ],
        M,
        X,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_indexing_gives_what_numpy_gives(case):
    assert_as_numpy(*CASES[case])


def test_traced_positions_and_bounds_give_what_numpy_gives():
    def parts(x, k):
        return [
            *(x[k], x[:, k, -k], x[k:], x[:, :k], x[:, k:3], x[:, -k:], x[:, :-k], x[:, k - 3 :], x[::k], x[:, ::-k], x[:, k:-9:-k]),
            *(x[:, : x.shape[1] - k], x[x.shape[0] - k], x[:, k:k]),
        ]

    assert_as_numpy(parts, X, np.int64(1), is_definite=False)


@pytest.mark.parametrize("name", ["index", "gather", "set_subtensor", "inc_subtensor"])
def test_the_loops_of_a_card_compute_what_its_oracle_computes(name):
    assert_lowered_as_evaluated(CARDS[name])


SLICES = list(itertools.product((None, 0, 2, 9, -1, -4, -9), (None, 0, 3, 9, -1, -9), (1, 2, -1)))


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_every_slice_is_clipped_as_in_numpy(length):
    for entry in SLICES:
        _assert_clipped(entry, np.arange(10.0, 10.0 + length))


def _assert_clipped(entry, x):
    expected = x[slice(*entry)]
    np.testing.assert_array_equal(lowered(CARDS["index"], (x,), {"spec": (entry,)}, known=False), expected)
    holes = tuple("?" if bound is not None else None for bound in entry)
    bounds = [bound for bound in entry if bound is not None]
    np.testing.assert_array_equal(lowered(CARDS["index"], (x, *bounds), {"spec": (holes,)}, known=False), expected)
    if entry[2] == 1:
        y = 100.0 + np.arange(len(expected))
        changed = x.copy()
        changed[slice(*entry)] = y
        np.testing.assert_array_equal(lowered(CARDS["set_subtensor"], (x, y), {"spec": (entry,)}, known=False), changed)


def test_equal_regions_are_one_node():
    x = nt.dmatrix("x")
    assert x[1].node is x[1, :].node is x[1, ...].node
    assert x[1:].node is x[1:, :].node


# writing ------------------------------------------------------------------------------------------------------------


def assigned(x, index, y):
    x = x.copy()
    x[index] = y
    return x


def added(x, index, y):
    x = x.copy()
    np.add.at(x, index, y)
    return x


REGIONS = [
    (X, np.s_[0], M),
    (X, np.s_[:, 1:], np.float64(2.5)),
    (X, np.s_[:, 1:-1, ::2], X[:, 1:-1, ::2] * 10),
    (X, np.s_[...], M),
    (X, np.s_[:], M[None]),
    (X, np.s_[..., -1], M[:, 1]),
    (M, np.s_[[2, 0, 2]], M * 10),
    (M, np.s_[[0, 2], [1, -1]], np.array([7.0, 8.0])),
    (M, np.s_[::-1, 2], V[:3]),
    (I, np.s_[:, 1], 7),
    (M.astype("float32"), np.s_[1:], M[1:]),
    (M, (MASK,), 9.0),
]


@pytest.mark.parametrize("x, index, y", REGIONS, ids=[str(k) for k in range(len(REGIONS))])
@pytest.mark.parametrize("known", [True, False], ids=["fixed", "open"])
def test_set_and_inc_give_the_whole_new_array(x, index, y, known):
    variable, traced_y = inputs_for((x, y), known)
    value = y if isinstance(y, int | float) else traced_y  # Python numbers stay what they are
    results = [variable[index].set(value), nt.set_subtensor(variable[index], value)]
    results += [variable[index].inc(value), nt.inc_subtensor(variable[index], value)]
    found = interpret(Graph((variable.node, traced_y.node), tuple(result.node for result in results)), [x, y])
    np.testing.assert_allclose(found[0], assigned(x, index, y))
    assert results[0].node is results[1].node
    np.testing.assert_allclose(found[2], added(x, index, y), rtol=1e-6)
    assert results[2].node is results[3].node
    assert {result.dtype for result in results} == {x.dtype}


def test_parts_of_constants_can_be_set():
    y = nt.dscalar("y")
    result = nt.set_subtensor(nt.zeros(3)[1], y)
    np.testing.assert_array_equal(interpret(Graph((y.node,), (result.node,)), [4.5])[0], [0.0, 4.5, 0.0])


def test_repeated_positions_accumulate_in_inc_and_the_last_stays_in_set():
    x, k, y = np.arange(4.0), np.array([1, 3, 1]), np.array([10.0, 20.0, 30.0])
    attrs = {"spec": ("array",)}
    np.testing.assert_array_equal(lowered(CARDS["inc_subtensor"], (x, y, k), attrs), [0.0, 41.0, 2.0, 23.0])
    np.testing.assert_array_equal(lowered(CARDS["set_subtensor"], (x, y, k), attrs), [0.0, 30.0, 2.0, 20.0])


@pytest.mark.parametrize("known", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("spec", [((1, -1, None),), ((1, 3, None), (None, -2, None)), (1, (2, None, None)), ((-3, None, None), -1)])
def test_a_region_of_slices_is_written_once_and_the_rest_copied_once(spec, known):
    x = np.arange(30.0).reshape(5, 6)
    y = np.float64(100.0)
    view = ConcreteOperands(CARDS["inc_subtensor"], (x, y), {"spec": spec}, known)
    written = np.zeros(x.shape, int)
    for one in view.card.lower.passes(view):
        assert one.combine == ""
        for _, where in view.indices(one.counts, named=True):
            written[tuple(view.value(i) for i in one.place(where))] += 1
    np.testing.assert_array_equal(written, 1)


def test_the_heat_equation_is_three_loops():
    u = np.array([3.0, -1.0, 4.0, 1.5, 9.0])
    view = ConcreteOperands(CARDS["inc_subtensor"], (u, u[1:-1] * 2), {"spec": ((1, -1, None),)}, known=True)
    passes = view.card.lower.passes(view)
    assert [one.counts for one in passes] == [(1,), (3,), (1,)]
    assert [one.place((0,)) for one in passes] == [(0,), (1,), (4,)]


# errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda m, k: m[3], IndexError, "index 3 is out of bounds for axis 0 with size 3"),
        (lambda m, k: m[0, -5], IndexError, "index -5 is out of bounds for axis 1 with size 4"),
        (lambda m, k: m[0, 0, 0], IndexError, "too many indices.*2 dimensions, but 3"),
        (lambda m, k: m[..., ...], IndexError, "single ellipsis"),
        (lambda m, k: m[k > 0], TypeError, r"np.where\(condition, x, other\)"),
        (lambda m, k: m[m[:, :3] > 0], IndexError, "length 4 along axis 1, the mask 3"),
        (lambda m, k: m[True], TypeError, "truth value"),
        (lambda m, k: m[np.array([True, False])], IndexError, "length 3 along axis 0, the mask 2"),
        (lambda m, k: m[1, [True, False, True, False, False]], IndexError, "length 4 along axis 1, the mask 5"),
        (lambda m, k: m[..., np.array([False] * 3)], IndexError, "length 4 along axis 1, the mask 3"),
        (lambda m, k: m[None, np.array([[True] * 4] * 2)], IndexError, "length 3 along axis 0, the mask 2"),
        (lambda m, k: m[:, np.array([True, False])].set(0.0), IndexError, "length 4 along axis 1, the mask 2"),
        (lambda m, k: m[k * 1.5], IndexError, "only integers"),
        (lambda m, k: m[1.5], IndexError, "only integers"),
        (lambda m, k: m[: k * 1.5], TypeError, "slice.*integer"),
        (lambda m, k: m["a"], TypeError, "a"),
        (lambda m, k: np.take(m, 1.0), TypeError, "must be integers"),
        (lambda m, k: np.take(m, k, mode="no"), ValueError, "mode 'no'"),
        (lambda m, k: np.nonzero(k), ValueError, "np.atleast_1d"),
        (lambda m, k: nt.set_subtensor(m + 1, 2.0), TypeError, r"expected x\[…\] of a variable"),
        (lambda m, k: m[1:].set(np.zeros(5)), ValueError, r"values of shape \(5,\), a region of shape \(2, 4\)"),
        (lambda m, k: m[1].set(np.zeros((2, 4))), ValueError, "do not broadcast"),
        (lambda m, k: nt.lvector("i")[1:].set(0.5), TypeError, "float64 cannot be written into an array of dtype int64.*astype"),
        (lambda m, k: m[0].inc(1j), TypeError, "complex128 cannot be written"),
        (lambda m, k: m.__setitem__(0, 1.0), TypeError, r"x\[idx\].set\(y\)"),
    ],
)
def test_what_cannot_be_is_refused_while_tracing(function, error, words):
    with pytest.raises(error, match=words):
        function(*inputs_for((M, np.int64(1)), True))


@pytest.mark.parametrize(
    "name, arrays, attrs, error, words",
    [
        ("index", (V,), {"spec": (5,)}, IndexError, "index 5 is out of bounds for axis 0 with size 5"),
        ("index", (V,), {"spec": (-6,)}, IndexError, "index -6 is out of bounds"),
        ("index", (V, 5), {"spec": ("?",)}, IndexError, "index 5 is out of bounds"),
        ("index", (V, -6), {"spec": ("?",)}, IndexError, "index -6 is out of bounds"),
        ("index", (V, 0), {"spec": ((None, None, "?"),)}, ValueError, "slice step cannot be zero"),
        ("gather", (V, np.array([0, 5])), {"spec": ("array",)}, IndexError, "index 5 is out of bounds"),
        ("gather", (V, np.array([0, -6])), {"spec": ("array",)}, IndexError, "index -6 is out of bounds"),
        (
            "gather",
            (M, np.array([0, 1]), np.array([0, 1, 2])),
            {"spec": ("array", "array")},
            IndexError,
            "lengths 2 and 3 do not broadcast",
        ),
        ("set_subtensor", (V, V), {"spec": ((1, -1, None),)}, ValueError, "5 values along an axis do not fit 3 places"),
        ("inc_subtensor", (V, V[:2], np.array([7, 0])), {"spec": ("array",)}, IndexError, "index 7 is out of bounds"),
    ],
)
def test_what_only_the_run_sees_is_refused_by_the_run(name, arrays, attrs, error, words):
    with pytest.raises(error, match=words):
        lowered(CARDS[name], arrays, attrs, known=False)


def test_an_assignment_operator_binds_the_name_anew():
    x = nt.dvector("x")
    y = x
    y += 1
    assert y is not x
    np.testing.assert_array_equal(interpret(Graph((x.node,), (y.node, x.node)), [V])[0], V + 1)


@pytest.mark.parametrize("mode", [None, "python"])
def test_a_mask_is_as_long_as_the_axis(mode):
    mask = [True, False, True]
    f = ns.function([m := nt.dmatrix("m")], [m[mask].sum(axis=0), m[:, None, [False, True, True]].sum(), m[mask, 1:].set(0.0)], mode=mode)
    expected = M[:, :3][mask].sum(axis=0), M[:, :3][:, None, [False, True, True]].sum(), np.where(np.outer(mask, [0, 1, 1]), 0.0, M[:, :3])
    for found, wanted in zip(f(M[:, :3]), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    for wrong in (M, M[:2, :3], M[:1, :3], M[:, :1]):
        with pytest.raises(ValueError, match="the array before a mask in brackets"):
            f(wrong)


SEPARATED = [
    (slice(None), [0, 1, 2], ..., [2, 1, 0]),
    (slice(None), [0, 1], ..., 1),
    (slice(None), 1, ..., [0, 1]),
    ([0, 1, 2], ..., [0, 1, 2], [2, 1, 0]),
    (None, slice(None), [0, 1], ..., [2, 1]),
    (slice(None), [0, 1], ..., [2, 1], None),
    (slice(1, 3), [[0, 1], [1, 2]], ..., [0, 1]),
    (slice(None), [0, 1, 2], ..., np.array([True, False, True, False, True])),
    (slice(None), [0, 1, 2], [2, 1, 0], ...),
    (..., [0, 1, 2], [2, 1, 0]),
    (slice(None), ..., [0, 1, 2], [2, 1, 0]),
]


@pytest.mark.parametrize("index", SEPARATED, ids=repr)
def test_an_ellipsis_of_no_axes_stands_between_index_arrays(index):
    """NumPy puts their axes at the front then, to get, set and increment."""
    x = np.arange(60.0).reshape(3, 4, 5)
    taken = x[index]
    np.testing.assert_array_equal(ns.jit(lambda x: x[index], mode="python")(x), taken, strict=True)
    for y in (2.5, taken * 0.5, taken[0] * 0.5, np.arange(float(taken.shape[-1]))):
        written, added = x.copy(), x.copy()
        written[index] = y
        np.add.at(added, index, y)
        np.testing.assert_array_equal(ns.jit(lambda x, y: nt.set_subtensor(x[index], y), mode="python")(x, y), written)
        np.testing.assert_array_equal(ns.jit(lambda x, y: x[index].inc(y), mode="python")(x, y), added)


def test_index_arrays_beside_an_ellipsis_compiled_with_their_gradient():
    x, index = np.arange(60.0).reshape(3, 4, 5), SEPARATED[0]
    weights = np.arange(9.0).reshape(3, 3)
    expected = np.zeros_like(x)
    np.add.at(expected, index, weights)
    np.testing.assert_array_equal(ns.grad(lambda x: np.sum(weights * x[index]))(x), expected)


def test_a_mask_from_outside_is_known_and_seen_anew_when_it_changes():
    mask, x = np.array([True, False, True]), np.arange(3.0)
    f = ns.jit(lambda x: x[mask])
    np.testing.assert_array_equal(f(x), x[mask])
    mask[1:] = True, False
    np.testing.assert_array_equal(f(x), x[mask])
    halved = ns.scan(lambda s: nt.set_subtensor(s[mask], 0.5 * s[mask]), outputs_info=np.ones(3), n_steps=2, return_updates=False)
    np.testing.assert_array_equal(halved, [[0.5, 0.5, 1.0], [0.25, 0.25, 1.0]])
