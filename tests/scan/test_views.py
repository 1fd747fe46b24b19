"""map, reduce, foldl, foldr, filter, scan_checkpoints."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

X = np.array([[1.0, -2.0], [3.0, 0.5], [-4.0, 1.0], [2.0, 2.0], [0.25, -1.0]])
PYTHON = {"mode": "python"}


@pytest.mark.parametrize("backwards", [False, True])
def test_map_applies_the_step_to_each_row(backwards):
    got, updates = ns.map(lambda row, k: k * row.sum(), X, 2.0, go_backwards=backwards, **PYTHON)
    np.testing.assert_allclose(got, 2 * X.sum(axis=1)[:: -1 if backwards else 1])
    assert updates == {}


def test_map_of_several_sequences_gives_several_outputs():
    (a, b), _ = ns.map(lambda row, k: (row * k, k), [X, np.arange(3.0)], **PYTHON)
    np.testing.assert_array_equal(a, X[:3] * np.arange(3.0)[:, None])
    np.testing.assert_array_equal(b, [0, 1, 2])


def test_reduce_gives_what_the_last_step_gave():
    got, _ = ns.reduce(lambda row, s: 0.5 * s + row, X, np.zeros(2), **PYTHON)
    s = np.zeros(2)
    for row in X:
        s = 0.5 * s + row
    np.testing.assert_allclose(got, s)


def test_foldl_and_foldr_read_from_either_end():
    digits = np.array([4, 0, 7])
    step = lambda digit, number, base: base * number + digit  # noqa: E731 - one step for both
    assert int(ns.foldl(step, digits, 0, 10, return_updates=False, **PYTHON)) == 407
    assert int(ns.foldr(step, digits, 0, 10, return_updates=False, **PYTHON)) == 704


def test_reduce_may_have_several_results():
    (low, high), _ = ns.reduce(lambda x, a, b: (np.minimum(a, x), np.maximum(b, x)), X[:, 0], [np.inf, -np.inf], **PYTHON)
    assert (float(low), float(high)) == (-4, 3)


def test_views_in_a_graph():
    x = nt.dmatrix("x")
    total, _ = ns.foldr(lambda row, s: 0.5 * s + row, x, nt.zeros(2))
    f = ns.function([x], total, mode="python")
    s = np.zeros(2)
    for row in X[::-1]:
        s = 0.5 * s + row
    np.testing.assert_allclose(f(X), s)


@pytest.mark.parametrize("backwards", [False, True])
def test_filter_keeps_the_rows_for_which_the_step_holds(backwards):
    rows = X[::-1] if backwards else X
    got, updates = ns.filter(lambda row: row.sum() > 0, X, go_backwards=backwards, **PYTHON)
    np.testing.assert_array_equal(got, [row for row in rows if row.sum() > 0])
    assert updates == {}
    x = nt.dmatrix("x")
    kept, _ = ns.filter(lambda row: row.sum() > 0, x, go_backwards=backwards)
    f = ns.function([x], kept, mode="python")
    np.testing.assert_array_equal(f(X), got)
    assert f(-np.ones((3, 2))).shape == (0, 2)
    assert f(np.zeros((0, 2))).shape == (0, 2)


def test_filter_of_several_sequences_keeps_rows_of_each():
    k = np.arange(10, 14)
    a, b = ns.filter(lambda row, n, limit: row.sum() + n > limit, [X, k], 12.0, return_updates=False, **PYTHON)
    mask = X[:4].sum(axis=1) + k > 12
    np.testing.assert_array_equal(a, X[:4][mask])
    np.testing.assert_array_equal(b, k[mask])


def test_filter_with_a_mask_for_each_sequence_keeps_rows_of_its_own():
    k, pairs = np.arange(10, 14), {"x": X[:, 0], "y": X[:, 1]}
    step = lambda row, n, pair: (row.sum() > 0, n % 3, pair["x"] > pair["y"])  # noqa: E731
    expected = X[:4][X[:4].sum(axis=1) > 0], k[k % 3 != 0], X[:4, 0][X[:4, 0] > X[:4, 1]]
    a, b, c = ns.filter(step, [X, k, pairs], return_updates=False, **PYTHON)
    x, n = nt.dmatrix("x"), nt.lvector("n")
    kept = ns.filter(step, [x, n, {"x": x[:, 0], "y": x[:, 1]}], return_updates=False)
    for results in ((a, b, c["x"]), ns.function([x, n], [kept[0], kept[1], kept[2]["x"]], mode="python")(X, k)):
        assert len({len(result) for result in results}) > 1
        for want, got in zip(expected, results, strict=True):
            np.testing.assert_array_equal(want, got)
    np.testing.assert_array_equal(ns.filter(lambda n: [n > 11], [k], return_updates=False, **PYTHON), k[2:])
    with pytest.raises(ValueError, match="2 masks for 3 sequences; return one scalar, or one for each"):
        ns.filter(lambda row, n, pair: (n > 0, n > 1), [X, k, pairs], **PYTHON)
    with pytest.raises(TypeError, match=r"one scalar for each row.*1 dimensions.*one for each sequence"):
        ns.filter(lambda row, n: (row > 0, n > 1), [X, k], **PYTHON)


@pytest.mark.parametrize("backwards", [False, True])
def test_filter_with_taps_keeps_the_row_at_tap_0(backwards):
    x = np.array([3, 5, 4, 8, 1, 9])
    got, _ = ns.filter(lambda before, here: here > before, {"input": x, "taps": [-1, 0]}, go_backwards=backwards, **PYTHON)
    expected = [x[t] for t in range(1, 6) if x[t] > x[t - 1]]
    np.testing.assert_array_equal(got, expected[::-1] if backwards else expected)


def test_filter_needs_one_scalar_for_each_row():
    with pytest.raises(TypeError, match="one scalar for each row"):
        ns.filter(lambda row: row > 0, X, **PYTHON)


@pytest.mark.parametrize("view", [ns.map, ns.filter])
def test_a_view_needs_a_sequence(view):
    with pytest.raises(ValueError, match="at least one sequence"):
        view(lambda: 1, [])


@pytest.mark.parametrize("n, k", [(12, 4), (13, 4), (3, 4), (8, 1), (4, 4)])
def test_scan_checkpoints_gives_each_nth_row_and_the_last(n, k):
    rows, _ = ns.scan_checkpoints(lambda s: s * 1.5, outputs_info=np.ones(2), n_steps=n, save_every_N=k)
    path = 1.5 ** np.arange(1, n + 1)
    wanted = sorted({*range(k - 1, n, k), n - 1})
    np.testing.assert_allclose(rows, np.stack([path[wanted]] * 2, axis=1))


def test_scan_checkpoints_in_a_graph():
    n = nt.lscalar("n")
    rows, _ = ns.scan_checkpoints(lambda s: s + 1, outputs_info=np.float64(0), n_steps=n, save_every_N=3)
    f = ns.function([n], rows, mode="python")
    np.testing.assert_array_equal(f(7), [3, 6, 7])
    np.testing.assert_array_equal(f(6), [3, 6])


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_scan_checkpoints_needs_a_count(k):
    with pytest.raises(ValueError, match="save_every_N"):
        ns.scan_checkpoints(lambda s: s + 1, outputs_info=0.0, n_steps=3, save_every_N=k)
