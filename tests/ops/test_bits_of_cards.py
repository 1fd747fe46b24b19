"""What a card computes element by element has the same bits wherever the element stands, and however many there are."""

import numba
import numpy as np
import pytest
from ops.harness import cards_on, helpers

from numbascan.emit.cpu.in_lanes import with_lanes
from numbascan.emit.text import statements
from numbascan.ir.loops import Apply, For, Load, Name, Store
from numbascan.types import TensorType

COUNT = 140


def kernel_of(cards, dtypes):
    """A loop for each card."""
    index, loops = Name("int64", "i"), []
    operands = [Load(dtype, name, (index,)) for dtype, name in zip(dtypes, "xyz", strict=False)]
    for k, card in enumerate(cards):
        loop = card.lower.loop(*(TensorType(dtype) for dtype in dtypes))
        value = Apply(loop[-1], card.lower.code(*loop), tuple(operands))
        loops.append(For("i", 0, Name("int64", "n"), [Store(f"out{k}", (index,), value)]))
    names = ["n", *"xyz"[: len(dtypes)], *(f"out{k}" for k in range(len(cards)))]
    space = helpers()
    exec("\n".join([f"def kernel({', '.join(names)}):", *statements(with_lanes(loops), {})]), space)
    return numba.njit(error_model="numpy")(space["kernel"])


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_elements_have_the_same_bits_in_any_company(dtype, arity):
    dtypes = (dtype,) * arity
    cards = cards_on(dtypes)
    kernel = kernel_of(cards, dtypes)
    points = np.random.default_rng(1).uniform(0.05, 0.95, (3, COUNT)).astype(dtype)

    def values(piece):
        x = [np.ascontiguousarray(row[piece]) for row in points[:arity]]
        out = [np.empty(x[0].shape, card.lower.loop(*map(TensorType, dtypes))[-1]) for card in cards]
        kernel(x[0].size, *x, *out)
        return out

    whole = values(slice(None))
    for piece in [*(slice(0, n) for n in range(1, COUNT)), *(slice(k, k + 5) for k in range(70))]:
        pairs = zip(cards, values(piece), whole, strict=True)
        assert [card.name for card, part, all_ in pairs if part.tobytes() != all_[piece].tobytes()] == []
