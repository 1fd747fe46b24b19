"""Every card says what its derivatives are, or why it has none; those it has agree with central differences."""

import numpy as np
import pytest
from ops.derivative_checks import check_card, widened

import numbascan.tensor  # noqa: F401 - registers every card
from numbascan.ops.card import CARDS

OTHERWISE = {"disconnected_grad", "zero_grad"}  # what they are for is a derivative that differs: tests/grad/test_variables.py
OTHERWISE.add("lanes_in_blocks")  # of the copies that fill a block nothing is asked for: tests/function/test_lane_blocks.py
DIFFERENTIABLE = sorted(name for name, card in CARDS.items() if card.has_derivative and name not in OTHERWISE)
AT_A_KINK = {  # samples beside which differences mean nothing
    "sort": lambda x, **attrs: len(np.unique(x)) < x.size,  # equal elements change places
    "middles": lambda x, **attrs: len(np.unique(x)) < x.size,
    "eigh": lambda a, lower: a.dtype.kind == "c",  # the phases of eigenvectors are LAPACK's choice: test_linalg_derivatives.py does without
    "eig": lambda a: np.iscomplex(np.linalg.eigvals(a)).any(),  # the same: test_decompositions.py does without
    "svd": lambda a, full: a.dtype.kind == "c" or (full and a.shape[-2] != a.shape[-1]),  # the same, or refused: NullGradientError
    "qr": lambda a, complete: a.shape[-2] < a.shape[-1] or (complete and a.shape[-2] != a.shape[-1]),  # refused: NullGradientError
}


@pytest.mark.parametrize("name", sorted(CARDS))
def test_a_card_without_a_derivative_says_why(name):
    card = CARDS[name]
    assert card.has_derivative != bool(card.no_gradient)


@pytest.mark.parametrize("name", sorted(name for name in CARDS if CARDS[name].vjp is not None))
def test_a_card_with_a_vjp_has_a_jvp(name):
    assert CARDS[name].jvp is not None or CARDS[name].linear


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_agree_with_central_differences(name):
    card = CARDS[name]
    checked = 0
    for operands, attrs in card.samples():
        operands = tuple(widened(value) for value in operands)
        is_smooth = name not in AT_A_KINK or not AT_A_KINK[name](*operands, **attrs)
        if is_smooth and any(value.dtype.kind in "fc" and np.isfinite(value).all() for value in operands):
            check_card(card, operands, attrs)
            checked += 1
    assert checked
