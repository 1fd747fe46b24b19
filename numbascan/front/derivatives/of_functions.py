"""Derivatives of functions: grad, value_and_grad, vjp, jvp, jacobian, hessian. `ns.grad`, `jacobian` and `hessian` take variables too."""

from __future__ import annotations

import functools
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from ...grad.forward import tangents as moved
from ...ir.node import Node, constant
from ...ops.algebra import is_float, zeros_like
from ...tracebacks import entry
from ..methods import bound_to, is_function
from ..runner import Seen
from ..scan.updates import WHERE_OUTPUTS_ARE
from ..transforms import Jitted, StaticJitted, jit, marked, mode_given_to
from ..tree import flattened, unflatten
from ..variable import Variable
from .function_call import FunctionCall, call_on_inputs, cost_of, has_updates
from .of_variables import (
    along,
    grad_of_variable,
    gradients,
    grads_where_there_are,
    hessian_of_variable,
    jacobian_nodes,
    jacobian_of_variable,
    linked,
    second_nodes,
)
from .pullback import Pullback, leaves_like, pulled

P = ParamSpec("P")
R = TypeVar("R")

# what the transforms make -------------------------------------------------------------------------------------------


class Transformed(ABC):
    """A function made from a function, `__wrapped__`. It takes variables; `transform` makes it take arrays."""

    what = ""
    __wrapped__: Callable[..., Any]

    def __init__(self, f: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, f, updated=())
        self.options = options
        self.__name__ = f"{self.what.removeprefix('ns.')}_{getattr(f, '__name__', 'function')}".replace("<lambda>", "lambda")
        self.__qualname__ = f"{self.what}({getattr(f, '__qualname__', self.__name__)})"

    def __get__(self, instance: Any, owner: type | None = None) -> Transformed:
        """The same transform of the bound method."""
        f = bound_to(self.__wrapped__, instance, owner)
        return self if f is self.__wrapped__ else type(self)(f, **self.options)

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), **self.options), (self.__wrapped__,)


def transform(cls: type[Transformed], f: Any, **options: Any) -> Jitted[..., Any]:
    """The transform `cls` of `f` as a function of arrays, in the mode of `f` if that is jitted."""
    if not is_function(f):
        raise TypeError(f"{cls.what} takes a function, not {f!r} ({type(f).__name__})")
    transformed: Jitted[..., Any] = jit(cls(f, **options), mode=mode_given_to(f))
    if isinstance(f, StaticJitted) and cls is not _Jvp:
        return StaticJitted(transformed.__wrapped__, transformed.given_mode, None, False, f.statics)
    return transformed


class _Derivative(Transformed):
    """A derivative with respect to the arguments that the option `argnums` names."""

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> FunctionCall:
        argnums = self.options["argnums"]
        places = argnums if isinstance(argnums, tuple) else (argnums,)
        if kwargs and any(place >= len(args) for place in places):
            args, kwargs = _by_position(self.__wrapped__, args, kwargs)
        if isinstance(self.__wrapped__, StaticJitted):
            for place in places:
                if place % max(len(args), 1) in self.__wrapped__.statics.positions:
                    raise ValueError(f"{self.what}: argnums has {place}, a static argument of {self.__wrapped__.name}; leave it out")
        call = call_on_inputs(self.__wrapped__, places, args, kwargs, self.what)
        return call.with_aux(self.what) if self.options.get("has_aux") else call

    def alone(self, nests: Sequence[Any]) -> Any:
        """One result for one argument number, a tuple of results for a tuple of numbers."""
        return tuple(nests) if isinstance(self.options["argnums"], tuple) else nests[0]

    def gradients(self, call: FunctionCall) -> list[Node]:
        cost, policy = cost_of(call, self.what), self.options["disconnected_inputs"]
        return gradients([cost], [constant(1, cost.type.dtype)], call.wrt, self.what, (), policy, call.dependencies)


class _Grad(_Derivative):
    what = "ns.grad"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.call(args, kwargs)
        gradients = self.alone(call.nests(self.gradients(call)))
        return (gradients, call.aux_outside()) if self.options["has_aux"] else gradients


class _ValueAndGrad(_Derivative):
    what = "ns.value_and_grad"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.call(args, kwargs)
        nodes = self.gradients(call)
        value = call.outside(call.leaves)[0]
        return (value, call.aux_outside()) if self.options["has_aux"] else value, self.alone(call.nests(nodes))


class _Jacobian(_Derivative):
    what = "ns.jacobian"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.call(args, kwargs)
        policy = self.options["disconnected_inputs"]
        blocks = [jacobian_nodes(leaf, call.wrt, self.what, (), policy, call.dependencies) for leaf in call.leaves]
        return unflatten(call.returned, [self.alone(call.nests(block)) for block in blocks])


class _Hessian(_Derivative):
    what = "ns.hessian"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.call(args, kwargs)
        firsts = self.gradients(call)
        columns = [second_nodes(firsts, node, self.what) for node in call.wrt]  # [leaf j][leaf i]
        rows = iter([self.alone(call.nests([column[i] for column in columns])) for i in range(len(firsts))])
        return self.alone([unflatten(structure, [next(rows) for _ in group]) for structure, group in call.arguments])


def _by_position(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments of a call, with those given by name moved to their positions where the signature allows."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the call itself, or the check of argument numbers, raises with a better message
        return args, kwargs
    return bound.args, bound.kwargs


def _derivative(cls: type[_Derivative], f: Any, argnums: Any, disconnected_inputs: str, **options: Any) -> Any:
    if not is_function(f):
        instead = f"; {WHERE_OUTPUTS_ARE}" if has_updates(flattened(f)[1]) else ""
        raise TypeError(f"{cls.what} takes a function, not {f!r} ({type(f).__name__}){instead}")
    try:
        places = tuple(map(operator.index, argnums)) if isinstance(argnums, (tuple, list)) else operator.index(argnums)
    except TypeError:
        raise TypeError(f"{cls.what}: argnums is {argnums!r}; give an int or a tuple of ints") from None
    return transform(cls, f, argnums=places, disconnected_inputs=disconnected_inputs, **options)


# the public functions -----------------------------------------------------------------------------------------------


@overload
def grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] | None = None,
    *,
    disconnected_inputs: str = "raise",
    has_aux: bool = False,
) -> Jitted[P, Any]: ...


@overload
def grad(
    f: Variable | None = None,
    argnums: Any = None,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Variable, Any] | None = None,
    *,
    wrt: Any = None,
    cost: Variable | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any: ...


@entry
def grad(
    f: Any = None,
    argnums: Any = None,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Variable, Any] | None = None,
    *,
    wrt: Any = None,
    cost: Any = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
    has_aux: bool = False,
) -> Any:
    """The gradient of a scalar: of a function, as a function; of a variable, as a variable.

    Arguments:
        f: a function of arrays, numbers and nests of these that gives one real scalar; or a scalar variable, also as the keyword
            `cost` (None with known_grads).
        argnums: for a function, the number of the positional argument to differentiate (default 0; of a method they count from behind
            `self`), or a tuple (calls may give these arguments by name); for a variable, the variables to differentiate with respect to:
            one, or a list (also as the keyword `wrt`).
        consider_constant: variables that nothing is to flow through (for a variable).
        disconnected_inputs: what happens where the cost does not depend on an argument: "raise", "warn", or "ignore" (zeros).
        known_grads: a dict of variables and their gradients, which then are not computed from the cost; f may be None (for a variable).
        return_disconnected: what stands for the gradient where disconnected_inputs is not "raise": "zero", or "none" for None (for a
            variable).
        null_gradients: what happens where there is no derivative: "raise", or "return", and the NullGradientError, which says why, stands
            in the place of that gradient, while the others are computed (for a variable).
        has_aux: the function returns (value, aux), and its gradient is (gradient, aux): any nest, which is not differentiated.

    Returns, for a function, one that gives the gradient, shaped and nested like the argument; for a variable, a variable, or as many as
    `wrt` has. Complex arguments get df/dx - i df/dy, as in JAX.

    Raises DisconnectedInputError; NullGradientError for integer arguments and through what has no derivative; TypeError for a cost that
    is no real scalar; ArgumentNumberError (a ValueError) for an argument that is not there.

    >>> import numbascan as ns, numpy as np
    >>> ns.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    f = cost if f is None else f
    _check_choice("return_disconnected", return_disconnected, ("zero", "none"))
    _check_choice("null_gradients", null_gradients, ("raise", "return"))
    if f is None or isinstance(f, Variable):
        arguments = f, argnums if wrt is None else wrt, consider_constant, disconnected_inputs, known_grads
        if (return_disconnected, null_gradients) == ("zero", "raise"):
            return grad_of_variable(*arguments)
        return grads_where_there_are(*arguments, return_disconnected, null_gradients)
    return _derivative(_Grad, f, 0 if argnums is None else argnums, disconnected_inputs, has_aux=bool(has_aux))


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"ns.grad: {name} is {value!r}; it must be {' or '.join(map(repr, choices))}")


@entry
def value_and_grad(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, *, has_aux: bool = False, disconnected_inputs: str = "raise"
) -> Jitted[P, tuple[R, Any]]:
    """A function that gives f's value and its gradient: what `scipy.optimize.minimize(..., jac=True)` takes.

    Arguments and errors as for `ns.grad` of a function; with has_aux it gives ((value, aux), gradient).

    >>> import numbascan as ns, numpy as np
    >>> ns.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (array(5.), array([2., 4.]))
    """
    return _derivative(_ValueAndGrad, f, argnums, disconnected_inputs, has_aux=bool(has_aux))


@overload
def jacobian(f: Callable[P, Any], argnums: int | Sequence[int] | None = None, *, disconnected_inputs: str = "raise") -> Jitted[P, Any]: ...


@overload
def jacobian(
    f: Variable | None = None,
    argnums: Any = None,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    *,
    wrt: Any = None,
    expr: Variable | None = None,
) -> Any: ...


@entry
def jacobian(
    f: Any = None,
    argnums: Any = None,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    *,
    wrt: Any = None,
    expr: Any = None,
) -> Any:
    """All first derivatives: of a function, as a function; of a variable with respect to variables, as a variable.

    The shape is that of the result, then that of the argument; a nest of results gives a nest. One reverse pass per element of the result,
    two where it is complex. Arguments and errors as for `ns.grad` (the variable also as the keyword `expr`); TypeError for complex
    results of complex arguments.

    >>> import numbascan as ns, numpy as np
    >>> ns.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    f = expr if f is None else f
    if isinstance(f, Variable):
        return jacobian_of_variable(f, argnums if wrt is None else wrt, consider_constant, disconnected_inputs)
    return _derivative(_Jacobian, f, 0 if argnums is None else argnums, disconnected_inputs)


@overload
def hessian(f: Callable[P, Any], argnums: int | Sequence[int] | None = None, *, disconnected_inputs: str = "raise") -> Jitted[P, Any]: ...


@overload
def hessian(
    f: Variable | None = None,
    argnums: Any = None,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    *,
    wrt: Any = None,
    cost: Variable | None = None,
) -> Any: ...


@entry
def hessian(
    f: Any = None,
    argnums: Any = None,
    consider_constant: Any = None,
    disconnected_inputs: str = "raise",
    *,
    wrt: Any = None,
    cost: Any = None,
) -> Any:
    """All second derivatives of a scalar: of a function, as a function; of a variable with respect to variables, as a variable.

    The shape is that of the argument twice. Of a function, nested arguments and several argument numbers give a nest of nests with all
    mixed derivatives; of a variable, a list of variables gives a list with one Hessian each, as in PyTensor. One reverse pass, and a
    forward pass over it per element. Arguments and errors as for `ns.grad`; TypeError for complex arguments.

    >>> import numbascan as ns, numpy as np
    >>> ns.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 2.0]))
    array([[4., 6.],
           [6., 0.]])
    """
    f = cost if f is None else f
    if isinstance(f, Variable):
        return hessian_of_variable(f, argnums if wrt is None else wrt, consider_constant, disconnected_inputs)
    return _derivative(_Hessian, f, 0 if argnums is None else argnums, disconnected_inputs)


# directions ---------------------------------------------------------------------------------------------------------


@entry
def vjp(f: Callable[..., Any], *args: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`f(*args)`, and a function that takes cotangents of the results to a tuple of cotangents of the arguments.

    has_aux: `f` returns (value, aux); the results are the value, the function of its cotangents, and aux.

    The cotangents are nested and shaped as the results. Integer arguments get None, an argument that plays no part zeros. Both see the
    same arguments, arrays from outside, random draws and values of shared variables: those of the call, whatever changes afterwards.

    Raises ValueError for cotangents that do not fit, NullGradientError.

    >>> import numbascan as ns, numpy as np
    >>> value, pull = ns.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pull(np.array([10.0, 100.0]))
    (array([ 20., 400.]),)
    """
    value, pull, _, aux = recorded_vjp(f, args, has_aux)
    return (value, pull, aux) if has_aux else (value, pull)


Recorded = tuple[Any, Callable[[Any], tuple[Any, ...]], Seen, Any]


def recorded_vjp(f: Callable[..., Any], args: tuple[Any, ...], has_aux: bool = False) -> Recorded:
    """The results of `vjp`, with the values of shared variables that they come from, and aux: (value, pull, seen, aux)."""
    if not callable(f):
        raise TypeError(f"ns.vjp takes a function, not {f!r} ({type(f).__name__})")
    function = f if isinstance(f, Jitted) else jit(f)
    run = function.recorded(*args)
    if run is None:  # part of a graph: one call of f gives the value and is differentiated
        call = call_on_inputs(f, range(len(args)), marked(f, args, {})[0], {}, "ns.vjp", mixed=True)
        call = call.with_aux("ns.vjp") if has_aux else call
        return unflatten(call.returned, call.outside(call.leaves)), lambda cotangent: pulled(call, cotangent), {}, call.aux_outside()
    result, seen = run
    pull = Pullback(function, seen, has_aux)
    value, aux = result if has_aux else (result, None)
    return value, pull, seen.seen, aux


class _Jvp(Transformed):
    """(args, tangents of the args) -> (results, tangents of the results)."""

    what = "ns.jvp"

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(f)
        self.__signature__ = inspect.signature(self.__call__)

    def __call__(self, args: tuple[Any, ...], directions: tuple[Any, ...]) -> Any:
        places = [k for k, tangent in enumerate(directions) if tangent is not None]
        call = call_on_inputs(self.__wrapped__, places, args, {}, self.what)
        expected = (tuple, None, tuple(structure for structure, _ in call.arguments))
        values = leaves_like(
            tuple(directions[k] for k in places), expected, "ns.jvp: the arguments are {0}, the tangents {1}; give the same nests"
        )
        seeds = [along(value, node, "ns.jvp: a tangent") for value, node in zip(values, call.wrt, strict=True)]
        along_leaves = moved(call.leaves, call.wrt, seeds)
        links, count = call.dependencies, len(call.leaves)
        plain = [zeros_like(node) if value is None else value for node, value in zip(call.leaves, along_leaves, strict=True)]
        results = call.outside([*call.leaves, *(linked(value, links) if is_float(value.type) else value for value in plain)])
        return unflatten(call.returned, results[:count]), unflatten(call.returned, results[count:])


@entry
def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*args)`, and how it moves when the arguments move along `tangents`.

    Arguments: args and tangents, tuples or lists of the same nests of arrays; None for an argument that does not move, such as an integer.

    Raises ValueError for tangents that do not fit, NullGradientError.

    >>> import numbascan as ns, numpy as np
    >>> ns.jvp(lambda x: x**2, (np.array([1.0, 2.0]),), (np.array([10.0, 100.0]),))
    (array([1., 4.]), array([ 20., 400.]))
    """
    if not isinstance(args, (tuple, list)) or not isinstance(tangents, (tuple, list)) or len(args) != len(tangents):
        raise TypeError("ns.jvp: args and tangents must be tuples of the same length, one tangent for each argument")
    result: tuple[Any, Any] = transform(_Jvp, f)(marked(f, tuple(args), {})[0], tuple(tangents))
    return result


def replayed_jvp(f: Callable[..., Any], seen: Seen, args: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The results of `jvp`, computed from earlier values of shared variables."""
    return transform(_Jvp, f).replayed(seen, marked(f, args, {})[0], tangents)
