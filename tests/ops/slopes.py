"""Slopes of functions, for tests: derivatives as functions of variables that can be differentiated again, and their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ops.functions import inputs_for

from numbascan.front.variable import Variable, as_variable
from numbascan.grad.forward import tangents
from numbascan.grad.reverse import cotangents
from numbascan.ir.graph import close
from numbascan.ops.algebra import full_like
from numbascan.oracle.interpret import interpret

Function = Callable[..., Any]


def reverse(function: Function, k: int = 0) -> Function:
    """The gradient of the sum of the results with respect to operand k, as a function of variables."""

    def gradient(*operands: Variable) -> Variable:
        out = as_variable(function(*operands)).node
        (found,) = cotangents([out], [full_like(out, 1)], [operands[k].node])
        assert found is not None
        assert found.type == operands[k].node.type
        return Variable(found)

    return gradient


def forward(function: Function, k: int = 0) -> Function:
    """How the results move when every element of operand k moves by one, as a function of variables."""

    def tangent(*operands: Variable) -> Variable:
        out = as_variable(function(*operands)).node
        (found,) = tangents([out], [operands[k].node], [full_like(operands[k].node, 1)])
        return Variable(full_like(out, 0) if found is None else found)

    return tangent


def value(function: Function, *arrays: Any, is_known: bool = True) -> Any:
    inputs = inputs_for(arrays, is_known)
    (found,) = interpret(close([x.node for x in inputs], [as_variable(function(*inputs)).node]), list(arrays))
    return found


def assert_equal(actual: Any, expected: Any, rtol: float = 1e-14) -> None:
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)
