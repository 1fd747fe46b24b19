"""Unsigned numbers beyond int64 as positions, bounds and steps of slices, shifts and sizes: none of them counts from the end."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

X = np.arange(5.0)
ENDS = [0, 1, 4, 5, 2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 3, 2**64 - 1]

SLICES = {
    "x[i:]": lambda x, i: x[i:].sum(),
    "x[:i]": lambda x, i: x[:i].sum(),
    "x[-2:i]": lambda x, i: x[-2:i].sum(),
    "x[i:-1]": lambda x, i: x[i:-1].sum(),
    "x[i::-1]": lambda x, i: x[i::-1].sum(),
    "x[:i:-1]": lambda x, i: x[:i:-1].sum(),
    "x[:i - 1]": lambda x, i: x[: i - np.uint64(1)].sum(),
    "x[::i + 1]": lambda x, i: x[:: np.maximum(i, np.uint64(1))].sum(),
}
POSITIONS = {
    "x[i]": lambda x, i: x[i],
    "x[None, i]": lambda x, i: x[None, :][0, i],
    "x[i] = 2": lambda x, i: nt.set_subtensor(x[i], 2.0).sum(),
    "take": lambda x, i: nt.take(x, i),
}
SIZES = {
    "ones": lambda x, i: nt.ones((i,)).sum() + x[0],
    "broadcast_to": lambda x, i: nt.broadcast_to(x[0], (i, 2)).sum(),
    "roll": lambda x, i: np.roll(x, i)[0],
}


def _compiled(function):
    """As the step of a loop over uint64 numbers, compiled once."""
    rows, x = nt.tensor("uint64", (None,)), nt.dvector()
    compiled = ns.function([rows, x], ns.map(lambda i, x: function(x, i), rows, non_sequences=x, return_updates=False))
    return lambda i: compiled(np.array([i], "uint64"), X)[0]


@pytest.mark.parametrize("name", SLICES)
def test_slices_are_those_of_numpy(name):
    compiled = _compiled(SLICES[name])
    for i in ENDS:
        with np.errstate(over="ignore"):
            assert compiled(i) == SLICES[name](X, np.uint64(i)), i


def test_what_is_written_into_a_slice_stays_in_it():
    compiled = _compiled(lambda x, i: nt.set_subtensor(x[i:], 9.0))
    for i in ENDS:
        np.testing.assert_array_equal(compiled(i), [*X[:i], *[9.0] * len(X[i:])])


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_beyond_the_axis_is_an_error(name):
    compiled = _compiled(POSITIONS[name])
    assert compiled(4) == (X[:4].sum() + 2 if "=" in name else X[4])
    for i in ENDS[3:]:
        with pytest.raises(IndexError, match="out of bounds"):
            compiled(i)


@pytest.mark.parametrize("name", SIZES)
def test_a_size_or_a_shift_beyond_int64_is_an_error(name):
    compiled = _compiled(SIZES[name])
    assert compiled(3) == {"ones": 3, "broadcast_to": 0, "roll": 2}[name]
    for i in ENDS[5:]:
        with pytest.raises(OverflowError, match="too large for a size or a shift"):
            compiled(i)
