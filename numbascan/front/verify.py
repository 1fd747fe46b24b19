"""`ns.verify_grad`: derivatives held against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import GradientError, NullGradientError
from .derivatives import jvp, vjp
from .gradients import check_wrt
from .transforms import jit
from .tree import flatten, paths, unflatten
from .variable import as_variable


def verify_grad(
    fun: Callable[..., Any],
    point: Any,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    mode: Any = None,
) -> None:
    """None, if the derivatives of `fun` at `point` are right; GradientError if not.

    The results of `fun` are summed with random weights. The gradient of that sum by reverse mode is held against central differences,
    element by element of every argument; then forward mode along a random direction is held against reverse mode. Forward mode is left
    out where a function made by ns.custom_vjp has none.

    Arguments:
        fun: a function of arrays, one for each element of `point`. It may be called on variables.
        point: an array, or a list of arrays. Integers are held fixed.
        eps: the step of the differences, for an element of size up to 1, in proportion for a larger one; 6e-6 for float64, 5e-3 for
            float32 if None.
        rtol, atol: by how much a gradient may differ from the difference, beside what rounding does to a difference: in proportion to it
            (None: 1e-6, 1e-2 for float32), and in all (None: `rtol` times the largest difference of that argument).
        seed: for the weights and the direction.
        mode: see ns.Mode.

    Raises GradientError, an AssertionError, which names the argument, the index and both values; NullGradientError where there is no
    derivative.

    >>> import numbascan as ns, numpy as np
    >>> ns.verify_grad(lambda x, y: np.sin(x) * y, [np.array([0.5, 2.0]), np.array([1.0, 3.0])])
    """
    arguments = [np.asarray(value) for value in (point if isinstance(point, (list, tuple)) else [point])]
    Check(fun, arguments, eps, np.random.default_rng(seed), mode).run(rtol, atol)


class Check:
    """A function at a point, with random weights for its results."""

    def __init__(self, fun: Callable[..., Any], arguments: Sequence[np.ndarray], eps: float | None, rng: np.random.Generator, mode: Any) -> None:
        self.fun = jit(fun, mode=mode)
        self.name = self.fun.name
        self.arguments = list(arguments)
        self.active = [k for k, value in enumerate(arguments) if value.dtype.kind in "fc"]
        for k in [] if self.active else range(len(arguments)):
            check_wrt(as_variable(arguments[k]).node, f"ns.verify_grad: argument {k} of {self.name}")
        ...
