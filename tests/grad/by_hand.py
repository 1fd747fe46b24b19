"""What the tests of derivatives of loops share: our derivatives, and differences of a plain Python loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numbascan as ns


def check(
    program: Callable[..., Any], plain: Callable[..., Any], values: Sequence[Any], by_hand: Sequence[Any], mode: Any, rest: Any = ()
) -> None:
    """Asserts: the value is that of the plain loop; the gradient is the one by hand, and that of differences; forward mode agrees.

    program, plain: (*values, *rest) -> a scalar, in our words and as a plain loop; derivatives are with respect to the values.
    """
    value, found, along = derivatives(program, values, rest, mode)
    np.testing.assert_allclose(value, plain(*values, *rest), rtol=1e-13)
    for one, expected, estimate in zip(found, by_hand, differences(plain, values, rest), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(estimate, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(along, sum(np.sum(one) for one in found), rtol=1e-12, atol=1e-13)


def derivatives(program: Callable[..., Any], values: Sequence[Any], rest: Any = (), mode: Any = None) -> Any:
    """(value, gradient for each value, how the value moves when all of them move by 1)"""

    def everything(values: Any, rest: Any) -> Any:
        value, found = ns.value_and_grad(program, tuple(range(len(values))))(*values, *rest)
        ones = tuple(np.ones_like(x) for x in values)
        return value, found, ns.jvp(lambda *moving: program(*moving, *rest), values, ones)[1]

    return ns.jit(everything, mode=mode)(tuple(values), tuple(rest))


def differences(plain: Callable[..., Any], values: Sequence[Any], rest: Any = ()) -> list[np.ndarray]:
    """The gradient for each value by central differences."""
    arrays = [np.asarray(value, "float64") for value in values]
    found = [np.zeros(x.shape) for x in arrays]
    for k, x in enumerate(arrays):
        for place in np.ndindex(x.shape):
            step = 1e-5 * max(1.0, abs(x[place]))
            ends = []
            for sign in (1, -1):
                moved = [y.copy() for y in arrays]
                moved[k][place] += sign * step
                ends.append(plain(*moved, *rest))
            found[k][place] = (ends[0] - ends[1]) / (2 * step)
    return found
