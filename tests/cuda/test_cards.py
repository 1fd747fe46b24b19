"""Every card gives NumPy's values in a kernel, or is refused by name before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest

import numbascan  # noqa: F401 - registers all cards
from numbascan.compile import Program
from numbascan.ir.graph import close
from numbascan.ir.node import new_input, outputs_of
from numbascan.modes import Mode
from numbascan.ops.card import CARDS, Card, apply
from numbascan.ops.lowering import Elementwise
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

CUDA = Mode(target="cuda")
TOGETHER = 4  # elementwise cards in one program
OF_SCIPY = "erfinv digamma polygamma betaln log_ndtr ndtri erfcx erfc_integral jv iv ive kv kve j0 j1 i0 i1 i0e i1e log_beta_density"
OF_SCIPY += " gammainc_slope betainc_slope_a betainc_slope_b gammainc gammaincc betainc"
OF_LAPACK = "solve_triangular solve_triangular_vector solve_factors solve_factor expm eigh eigvalsh qr svd svdvals pinv lu_factor"
OF_LAPACK += " permutation_of_pivots eig eigvals"
OF_NUMPY = "fft rfft irfft"
REFUSED = {*OF_SCIPY.split(), *OF_LAPACK.split(), *OF_NUMPY.split(), "recurrence"}
"""Cards whose samples have no CUDA code."""
OF_SHORT_ROWS = {"sort", "argsort", "middles", "searchsorted"}
"""Cards that have code for rows of a fixed, small length alone."""
REAL_ALONE = "isnan isinf isfinite log1p arctan arctanh rint less less_equal greater greater_equal maximum minimum fmax fmin max min"
REAL_ALONE += " argmax argmin cummax cummin solve solve_vector inv det slogdet cholesky sort argsort middles searchsorted"
"""Cards whose code is for real numbers; small matrices and short rows of a fixed shape among them."""
WITH_SAMPLES = [card for card in CARDS.values() if card.samples is not None]


def program(cards: Sequence[Card], is_fixed: bool) -> tuple[Any, list[Any]]:
    """A graph with the results of samples of some cards, and the arguments for it."""
    inputs, outputs, arguments = [], [], []
    for card in cards:
        for sample, attrs in card.samples():
            arrays = [np.asarray(value) for value in sample]
            if card.name in REAL_ALONE.split() and any(array.dtype.kind == "c" for array in arrays):
                continue
            if is_fixed and arrays[0].ndim and arrays[0].shape[-1] > 8:
                continue
            shapes = [tuple(dim if is_fixed or dim == 1 else None for dim in array.shape) for array in arrays]
            nodes = [new_input(TensorType(array.dtype.name, shape)) for array, shape in zip(arrays, shapes, strict=True)]
            outputs += outputs_of(apply(card, *nodes, **attrs))
            inputs += nodes
            arguments += list(sample)
    return close(inputs, outputs), arguments


ALLOWED = [card for card in WITH_SAMPLES if card.name not in REFUSED]
ELEMENTWISE = [card for card in ALLOWED if isinstance(card.lower, Elementwise)]
GROUPS = [[card for card in group if card] for group in zip_longest(*[iter(ELEMENTWISE)] * TOGETHER)]
GROUPS += [[card] for card in ALLOWED if card not in ELEMENTWISE]


@pytest.mark.parametrize("cards", GROUPS, ids=lambda cards: "-".join(card.name for card in cards))
def test_values(cards: Sequence[Card]) -> None:
    is_fixed = isinstance(cards[0].lower, type(CARDS["solve"].lower))  # of small matrices and short rows
    graph, arguments = program(cards, is_fixed)
    expected = interpret(graph, arguments)
    found = Program(graph, CUDA, f"card_{cards[0].name}", specialise=False)(arguments)
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        tolerance = 2e-5 if one.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(REFUSED | OF_SHORT_ROWS))
def test_what_has_no_code_is_refused_by_name(name: str) -> None:
    graph, arguments = program([CARDS[name]], is_fixed=False)
    with pytest.raises(NotImplementedError, match=r"mode='cuda': .* has no CUDA code; use mode=None"):
        Program(graph, CUDA, "refused", specialise=False)(arguments)
