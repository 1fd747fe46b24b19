"""Rows whose length only the step knows: kept whole if all are as long, refused if not."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

X = np.random.default_rng(11).normal(size=(6, 20))
KEPT = [{}, {"keep_last": 1}, {"keep_last": 2}, {"save_every": 2}]


def until_above(row, limit):
    return ns.scan(lambda v: (2 * v, ns.until(v > limit)), sequences=row, return_updates=False)


def plain_until_above(row, limit):
    stop = int(np.argmax(row > limit)) if (row > limit).any() else len(row) - 1
    return 2 * row[: stop + 1]


def kept(rows, keep_last=None, save_every=None):
    return rows[-1] if keep_last == 1 else rows[-2:] if keep_last else rows[save_every - 1 :: save_every] if save_every else rows


@pytest.mark.parametrize("options", KEPT, ids=str)
@pytest.mark.parametrize("mode", ["python", None])
def test_inner_loops_that_end_at_one_length_give_rows(mode, options):
    x = X.copy()
    x[:, :7], x[:, 7] = -1.0, 1.0
    rows = ns.scan(lambda row: until_above(row, 0.0), mode=mode, **options)(sequences=x)
    np.testing.assert_array_equal(rows, kept(np.stack([plain_until_above(row, 0.0) for row in x]), **options))


@pytest.mark.parametrize("options", KEPT, ids=str)
@pytest.mark.parametrize("mode", ["python", None])
def test_rows_of_different_lengths_are_refused(mode, options):
    assert len({len(plain_until_above(row, 0.0)) for row in X}) > 1
    with pytest.raises(ValueError, match=r"scan 'ragged': .* along axis 0 in the first step .* must have one shape"):
        ns.scan(lambda row: until_above(row, 0.0), mode=mode, name="ragged", **options)(sequences=X)


@pytest.mark.parametrize("mode", ["python", None])
def test_no_steps_give_no_rows(mode):
    rows = ns.scan(lambda row: until_above(row, 0.0), mode=mode)(sequences=X[:0])
    assert rows.shape[0] == 0
    assert rows.ndim == 2


@pytest.mark.parametrize("mode", ["python", None])
def test_rows_of_a_choice_between_slices_of_two_lengths(mode):
    step = ns.scan(lambda row: nt.ifelse(row[0] > 0, row[:5], row[:6]), mode=mode)
    same = X[X[:, 0] > 0]
    np.testing.assert_array_equal(step(sequences=same), same[:, :5])
    with pytest.raises(ValueError, match="must have one shape"):
        step(sequences=X)


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("options", [{}, {"keep_last": 2}], ids=str)
def test_no_rows_of_a_choice_are_as_long_as_a_branch_makes_them(mode, options):
    a, b = ns.shared(X[0]), ns.shared(X[1, :10])
    step = ns.scan(lambda x: 1 + nt.ifelse(x > 0, nt.ifelse(x > 2, a[::2], a[1::2]), b), mode=mode, **options)
    assert step(sequences=X[0, :0]).shape == (0, 10)
    assert step(sequences=X[0, :1]).shape == (1, 10)


def test_rows_of_a_choice_are_written_into_memory_taken_before_the_loop():
    step = ns.scan(lambda row: nt.ifelse(row[0] > 0, 2 * row, -row))
    np.testing.assert_array_equal(step(sequences=X), np.where(X[:, :1] > 0, 2 * X, -X))
    before, after = step.source().split("for t in range")
    assert "np.empty" in before
    assert "np.empty" not in after


def test_gradients_of_a_sum_over_such_rows():
    x = X.copy()
    x[:, :7], x[:, 7] = -1.0, 1.0

    def cost(x, a):
        rows = ns.map(lambda row, a: until_above(a * row, 0.0), x, non_sequences=a, return_updates=False)
        return (rows**2).sum()

    found = ns.grad(cost, 1)(x, 1.5)
    np.testing.assert_allclose(found, 2 * 1.5 * (4 * x[:, :8] ** 2).sum(), rtol=1e-12)
