"""`ns.verify_grad`: checks derivatives against finite differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import GradientError, MissingInputError, NullGradientError
from ...tracebacks import entry
from ..transforms import Jitted, jit
from ..tree import flatten, flattened, unflatten
from ..variable import Variable, at_line
from .of_functions import recorded_vjp, replayed_jvp

SINGLE = np.dtype("float32"), np.dtype("complex64")
ROUNDINGS = 10  # the rounding error assumed of a result, in units of its last place


@entry
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
    """None if the derivatives of `fun` at `point` are right, GradientError if not.

    The results of `fun` are summed with random weights. The gradient of that sum by reverse mode is held against central differences,
    element by element of every argument; forward mode along a random direction is held against reverse mode. Forward mode is left out
    where it meets a function that ns.custom_vjp made. A function that draws random numbers has the same draws in all of these.

    Arguments:
        fun: a function of arrays, one for each element of `point`, which gives an array or a nest of arrays.
        point: a list of arrays, or one array. Integers stay as they are.
        eps: the step of the differences for elements up to 1, in proportion for larger ones; None: 6e-6, with float32 5e-3.
        rtol: by how much a gradient may differ in proportion to the difference; None: 1e-6, with float32 1e-2. What rounding does to a
            difference is allowed besides.
        atol: by how much it may differ in all; None: `rtol` times the largest difference of that argument.
        seed: for the weights and the direction.
        mode: see ns.Mode.

    Raises GradientError (an AssertionError) naming the argument, the index and both values; NullGradientError where there is no
    derivative.

    >>> import numbascan as ns, numpy as np
    >>> ns.verify_grad(
    ...     lambda x, y: np.sin(x) * y, [np.array([0.5, 2.0]), np.array([1.0, 3.0])]
    ... )
    """
    for k, value in enumerate(point if isinstance(point, (list, tuple)) else [point]):
        if isinstance(value, dict):
            raise TypeError(
                f"ns.verify_grad: point[{k}] is a dict{at_line()}, but the arguments of fun must be arrays here; "
                "for a dict d of arrays write ns.verify_grad(lambda *values: fun(dict(zip(d, values))), list(d.values()))"
            )
    arguments = [np.asarray(value) for value in (point if isinstance(point, (list, tuple)) else [point])]
    compiled = fun if isinstance(fun, Jitted) and mode is None else jit(fun, mode=mode)
    projected = _Projected(compiled, arguments, np.random.default_rng(seed))
    gradients = projected.gradients()
    is_single = any(array.dtype in SINGLE for array in (*arguments, *projected.values))
    eps = (5e-3 if is_single else 6e-6) if eps is None else eps
    rtol = (1e-2 if is_single else 1e-6) if rtol is None else rtol
    for k, gradient in gradients.items():
        differences, roundings = projected.differences(k, eps)
        largest = rtol * np.max(np.abs(differences), initial=0)
        allowed = rtol * np.abs(differences) + roundings + (largest if atol is None else atol)
        wrong = ~(np.abs(gradient - differences) <= allowed)  # NaN is wrong
        if wrong.any():
            worst = tuple(map(int, np.unravel_index(np.argmax(np.where(wrong, np.abs(gradient - differences), -1)), wrong.shape)))
            raise GradientError(
                f"ns.verify_grad: the derivative of {compiled.name} with respect to {projected.label(k)}{list(worst) or ''} is "
                f"{gradient[worst]} by reverse mode, and {differences[worst]} by central differences (eps={eps:g}); "
                f"{np.count_nonzero(wrong)} of {wrong.size} elements differ"
            )
    projected.check_forward(gradients, rtol)


class _Projected:
    """A function at a point: its results there, random weights for them, and a random direction for each argument with derivatives."""

    def __init__(self, fun: Jitted, arguments: Sequence[np.ndarray], rng: np.random.Generator) -> None:
        self.fun, self.arguments = fun, list(arguments)
        self.active = [k for k, value in enumerate(arguments) if value.dtype.kind in "fc"]
        if not self.active:
            raise NullGradientError(f"ns.verify_grad: no argument of {fun.name} is a float, so there is no derivative; give 3.0 for 3")
        value, self.pull, self.seen, _ = recorded_vjp(fun, tuple(arguments))
        leaves: list[Any] = []
        self.structure = flatten(value, leaves)
        if any(isinstance(leaf, Variable) for leaf in leaves):
            raise MissingInputError(f"ns.verify_grad: {fun.name} uses variables without a value; pass their values in point")
        self.values = [np.asarray(leaf) for leaf in leaves]
        if not any(value.dtype.kind in "fc" for value in self.values):
            raise NullGradientError(f"ns.verify_grad: all that {fun.name} returns are integers or booleans, which have no derivative")
        self.weights = [_random_like(rng, value) for value in self.values]
        self.directions = {k: _random_like(rng, arguments[k]) for k in self.active}

    def label(self, k: int) -> str:
        """The name of an argument in messages."""
        try:
            return list(inspect.signature(self.fun).parameters)[k]
        except (TypeError, ValueError, IndexError):  # a builtin, or *args
            return f"argument {k}"

    def gradients(self) -> dict[int, np.ndarray]:
        """The gradient of the weighted sum with respect to each argument that has one, by reverse mode."""
        cotangents = self.pull(unflatten(self.structure, self.weights))
        for k in self.active:
            if (cotangents[k].shape, cotangents[k].dtype) != (self.arguments[k].shape, self.arguments[k].dtype):
                raise GradientError(
                    f"ns.verify_grad: the gradient of {self.label(k)} has another shape or dtype than {self.label(k)} itself"
                )
        return {k: cotangents[k] for k in self.active}

    def differences(self, k: int, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """The gradient with respect to argument k by central differences, and a bound on the rounding error of each element."""
        argument = self.arguments[k]
        slopes, roundings = np.zeros(argument.shape, np.result_type(argument, np.float64)), np.zeros(argument.shape)
        for index in np.ndindex(argument.shape):
            for unit, factor in ((1, 1), (1j, -1j)) if argument.dtype.kind == "c" else ((1, 1),):
                step = unit * eps * max(1.0, float(abs(argument[index])))
                difference, rounding = self._difference(k, index, step)
                slopes[index] += factor * difference
                roundings[index] += rounding
        return slopes, roundings

    def _difference(self, k: int, index: tuple[int, ...], step: complex) -> tuple[float, float]:
        ends, places = [], []
        for sign in (1, -1):
            moved = self.arguments[k].copy()
            moved[index] += sign * step
            places.append(complex(moved[index]))
            ends.append(self._at([*self.arguments[:k], moved, *self.arguments[k + 1 :]]))
        width = abs(places[0] - places[1])  # not 2 * step: x + step and x - step are rounded
        change = rounding = 0.0
        for weight, ahead, behind in zip(self.weights, *ends, strict=True):
            if ahead.dtype.kind in "fc":
                exact = np.result_type(ahead, np.float64)
                change += float(np.sum(weight * (ahead.astype(exact) - behind.astype(exact))).real)
                rounding += float(np.sum(np.abs(weight) * (np.abs(ahead) + np.abs(behind)))) * float(np.finfo(ahead.dtype).eps)
        return change / width, ROUNDINGS * rounding / width

    def _at(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        leaves, _ = flattened(self.fun.replayed(self.seen, *arguments))
        return [np.asarray(leaf) for leaf in leaves]

    def check_forward(self, gradients: dict[int, np.ndarray], rtol: float) -> None:
        """GradientError unless forward mode agrees with reverse mode."""
        try:
            directions = tuple(self.directions.get(k) for k in range(len(self.arguments)))
            _, moved = replayed_jvp(self.fun, self.seen, tuple(self.arguments), directions)
        except NullGradientError:  # a rule of ns.custom_vjp, which has reverse mode only
            return
        leaves, _ = flattened(moved)
        ahead = [weight * leaf for weight, leaf in zip(self.weights, leaves, strict=True)]
        back = [direction * gradients[k] for k, direction in self.directions.items()]
        scale = sum(np.sum(np.abs(product)) for product in (*ahead, *back))
        one, other = (float(sum(np.sum(product) for product in products).real) for products in (ahead, back))
        if not abs(one - other) <= rtol * scale:
            raise GradientError(
                f"ns.verify_grad: along a random direction {self.fun.name} moves by {one} by forward mode, and by {other} by reverse mode"
            )


def _random_like(rng: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Normal numbers, complex ones for complex values; zeros for integers."""
    if value.dtype.kind not in "fc":
        return np.zeros_like(value)
    drawn = rng.normal(size=value.shape)
    return (drawn + 1j * rng.normal(size=value.shape) if value.dtype.kind == "c" else drawn).astype(value.dtype)
