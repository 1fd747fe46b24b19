"""Derivatives of complex functions, by hand: the complex derivative where there is one, else by x less i by y."""

from __future__ import annotations

import numpy as np
import pytest
from ops.functions import inputs_for
from ops.slopes import assert_equal, forward, reverse, value

import numbascan.tensor as nt
from numbascan.grad.forward import tangents
from numbascan.ir.graph import close
from numbascan.ops.algebra import full_like
from numbascan.oracle.interpret import interpret

Z = np.array([0.3 + 1.1j, -0.7 + 0.2j, 1.4 - 0.6j])
W = np.array([0.5 - 0.2j, 1.5 + 0.3j, -0.4 - 1.2j])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (np.exp, np.exp(Z)),
        (lambda z: z * z / W, 2 * Z / W),
        (lambda z: W / z, -W / Z**2),
        (np.sqrt, 0.5 / np.sqrt(Z)),
        (np.log, 1 / Z),
        (np.tanh, 1 / np.cosh(Z) ** 2),
        (lambda z: nt.power(z, W), W * Z ** (W - 1)),
        (lambda z: nt.power(W, z), W**Z * np.log(W)),
        (np.arctan, 1 / (1 + Z**2)),
        (np.arcsin, 1 / np.sqrt(1 - Z**2)),
        (lambda z: z.astype("complex128") + nt.cast(z, "complex64"), np.full(3, 2)),
    ],
)
def test_the_partial_of_a_holomorphic_function_is_its_complex_derivative(function, expected):
    assert_equal(value(reverse(function), Z), expected, rtol=1e-7 if expected[0] == 2 else 1e-13)
    assert_equal(value(forward(function), Z), expected, rtol=1e-7 if expected[0] == 2 else 1e-13)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (np.abs, Z.conj() / np.abs(Z)),
        (lambda z: np.abs(z) ** 2, 2 * Z.conj()),
        (np.real, np.ones(3)),
        (np.imag, np.full(3, -1j)),
        (np.angle, -1j / Z),
        (lambda z: (np.conj(z) * z).real, 2 * Z.conj()),
        (lambda z: (W * np.conj(z)).real, W.conj()),
        (lambda z: (W * np.sign(z)).real, 1j * Z.conj() / np.abs(Z) ** 2 * (W * Z / np.abs(Z)).imag),
        (lambda z: np.real(z) * 2.0 + np.hypot(z.real, z.imag), 2 + Z.conj() / np.abs(Z)),
    ],
)
def test_the_gradient_of_a_real_function_of_z_is_by_x_less_i_by_y(function, expected):
    assert_equal(value(reverse(function), Z), expected)
    step = 1e-6
    for direction in (1, 1j, 0.6 - 0.8j):
        ahead, behind_ = (value(function, Z + sign * step * direction) for sign in (1, -1))
        (z,) = inputs_for((Z,), known=True)
        (moved,) = tangents([function(z).node], [z.node], [full_like(z.node, direction)])
        (tangent,) = interpret(close([z.node], [moved]), [Z])
        assert_equal(tangent, (expected * direction).real)
        assert_equal(tangent, (ahead - behind_) / (2 * step), rtol=1e-8)


def test_a_real_operand_beside_a_complex_one_has_a_real_gradient():
    x = np.array([0.5, 1.5, 2.5])
    assert_equal(value(reverse(lambda x: (nt.as_tensor_variable(W) * x).real), x), W.real)
    assert_equal(value(reverse(lambda x: (nt.as_tensor_variable(W) * nt.cast(x, "complex128")).imag), x), W.imag)
    assert_equal(value(reverse(lambda x, y: np.abs(nt.complex(x, y)), 1), x, 2 * x), np.full(3, 2 / np.sqrt(5)))
    assert_equal(value(reverse(lambda x, y: (nt.as_tensor_variable(W) * nt.complex(x, y)).real, 1), x, x), -W.imag)
    assert_equal(value(reverse(lambda c, x: (nt.as_tensor_variable(W) * np.where(c, x, W)).real, 1), x > 1, x), W.real * (x > 1))


def test_the_modulus_at_0_has_the_gradient_0():
    assert_equal(value(reverse(np.abs), np.zeros(2, "complex128")), np.zeros(2))


CUTS = np.array([complex(x, y) for x, y in ((2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0), (0.0, 2), (-0.0, 2), (0.0, -2), (-0.0, -2))])


@pytest.mark.parametrize("ufunc", [np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.sqrt, np.log])
def test_on_a_branch_cut_the_derivative_is_that_of_the_values_side(ufunc):
    inwards = np.where(CUTS.imag == 0, np.copysign(1, CUTS.imag) * 1j, np.copysign(1, CUTS.real))  # off the axis, to its own side
    step = 1e-6
    expected = (ufunc(CUTS + 2 * step * inwards) - ufunc(CUTS + step * inwards)) / (step * inwards)
    assert_equal(value(reverse(ufunc), CUTS), expected, rtol=1e-5)
