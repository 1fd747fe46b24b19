"""Derivatives and batches of functions: grad, value_and_grad, vjp, jvp, jacobian, hessian, vmap. `ns.grad` and its like take variables too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentNumberError
from ..grad.forward import tangents
from ..ir.graph import substitute
from ..ir.node import Node, constant, new_input
from ..ops.algebra import broadcast_to, call, cast, dims_of, is_float, zeros_like
from .gradients import (
    check_cost,
    check_wrt,
    forward_nodes,
    grad_of_variable,
    gradients,
    hessian_of_variable,
    jacobian_nodes,
    jacobian_of_variable,
)
from .scan import scan
from .transforms import Jitted, jit
from .tree import Structure, describe, flatten, paths, unflatten
from .variable import Variable, as_variable

Argnums = int | tuple[int, ...]


# one call of a function, taken apart --------------------------------------------------------------------------------


@dataclass
class _Call:
    """A function called on inputs of its own in place of the arguments that derivatives are taken with respect to.

    structures, inputs: of each such argument, its nest and an input per leaf. leaves: the function's results. back: inputs -> arguments.
    """

    structures: list[Structure]
    inputs: list[list[Node]]
    back: dict[Node, Node]
    returned: Structure
    leaves: list[Node]

    @property
    def wrt(self) -> list[Node]:
        return [node for group in self.inputs for node in group]

    def outside(self, nodes: Sequence[Node]) -> list[Variable]:
        """Nodes over the inputs as variables over the arguments."""
        return [Variable(node) for node in substitute(nodes, self.back)]

    def nests(self, nodes: Sequence[Node]) -> list[Any]:
        """A nest per argument, from one node per input."""
        values = iter(self.outside(nodes))
        return [unflatten(structure, [next(values) for _ in group]) for structure, group in zip(self.structures, self.inputs, strict=True)]


def _called(f: Callable[..., Any], places: Sequence[int], args: tuple[Any, ...], kwargs: Mapping[str, Any], what: str) -> _Call:
    name = getattr(f, "__name__", "the function")
    for place in places:
        if not -len(args) <= place < len(args):
            raise ArgumentNumberError(
                f"{what}({name}): argnums has {place}, but {len(args)} positional argument{'s were' * (len(args) != 1) or ' was'} given"
            )
    chosen = [place % len(args) for place in places]
    given = list(args)
    structures: list[Structure] = []
    inputs: list[list[Node]] = []
    back: dict[Node, Node] = {}
    labels = _parameters(f, len(args))
    for place in chosen:
        leaves: list[Any] = []
        structures.append(flatten(args[place], leaves))
        names = paths(structures[-1], labels[place])
        nodes = [as_variable(leaf).node for leaf in leaves]
        group = [new_input(node.type, node.name or label) for node, label in zip(nodes, names, strict=True)]
        for node in group:
            check_wrt(node, f"{what}({name})")
        inputs.append(group)
        back.update(zip(group, nodes, strict=True))
        given[place] = unflatten(structures[-1], map(Variable, group))
    found: list[Any] = []
    returned = flatten(f(*given, **kwargs), found)
    return _Call(structures, inputs, back, returned, [as_variable(leaf).node for leaf in found])


def _parameters(f: Callable[..., Any], count: int) -> list[str]:
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):  # a builtin
        names = []
    return [*names[:count], *(f"arg{k}" for k in range(len(names), count))]


def _cost(call_: _Call, what: str) -> Node:
    """The one scalar that a function returned."""
    if call_.returned != "*":
        raise TypeError(f"{what}: the function must return one scalar, not {describe(call_.returned)}; ns.jacobian takes any nest of arrays")
    check_cost(call_.leaves[0], what)
    return call_.leaves[0]


# what the transforms make -------------------------------------------------------------------------------------------


class _Transformed:
    """A function made from a function. Called on variables; `ns.jit` makes it take arrays."""

    what = ""

    def __init__(self, f: Callable[..., Any], argnums: Argnums = 0, **options: Any) -> None:
        self.f, self.argnums, self.options = f, argnums, options
        functools.update_wrapper(self, f, updated=())
        self.__name__ = f"{self.what.removeprefix('ns.')}_{getattr(f, '__name__', 'function')}".replace("<lambda>", "lambda")
        self.__qualname__ = f"{self.what}({getattr(f, '__qualname__', self.__name__)})"

    @property
    def _places(self) -> tuple[int, ...]:
        return self.argnums if isinstance(self.argnums, tuple) else (self.argnums,)

    def _alone(self, nests: Sequence[Any]) -> Any:
        """One result for one argument number, a tuple for a tuple of them."""
        return tuple(nests) if isinstance(self.argnums, tuple) else nests[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.f, self.argnums, self.options)


def _again(cls: type[_Transformed], f: Callable[..., Any], argnums: Argnums, options: dict[str, Any]) -> _Transformed:
    return cls(f, argnums, **options)


class _Grad(_Transformed):
    what = "ns.grad"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value_and_grad(args, kwargs)[1]

    def value_and_grad(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        made = _called(self.f, self._places, args, kwargs, self.what)
        cost = _cost(made, self.what)
        found = gradients([cost], [constant(1, cost.type.dtype)], made.wrt, what=self.what, **self.options)
        return made.outside([cost])[0], self._alone(made.nests(found))


class _ValueAndGrad(_Grad):
    what = "ns.value_and_grad"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value_and_grad(args, kwargs)


class _Jacobian(_Transformed):
    what = "ns.jacobian"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = _called(self.f, self._places, args, kwargs, self.what)
        rows = [self._alone(made.nests(jacobian_nodes(leaf, made.wrt, self.what, **self.options))) for leaf in made.leaves]
        return unflatten(made.returned, rows)


class _Hessian(_Transformed):
    what = "ns.hessian"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = _called(self.f, self._places, args, kwargs, self.what)
        cost = _cost(made, self.what)
        firsts = gradients([cost], [constant(1, cost.type.dtype)], made.wrt, what=self.what, **self.options)
        columns = [forward_nodes(firsts, node) for node in made.wrt]  # [wrt j][first i]
        rows = [made.nests([column[i] for column in columns]) for i in range(len(firsts))]
        blocks = iter(map(self._alone, rows))
        nests = [unflatten(structure, [next(blocks) for _ in group]) for structure, group in zip(made.structures, made.inputs, strict=True)]
        return self._alone(nests)


def _argnums(argnums: Any, what: str) -> Argnums:
    import operator

    try:
        if isinstance(argnums, (tuple, list)):
            return tuple(operator.index(place) for place in argnums)
        return operator.index(argnums)
    except TypeError:
        raise TypeError(f"{what}: argnums is {argnums!r}; give an int or a tuple of ints") from None


def _check_callable(f: Any, what: str) -> None:
    if not callable(f):
        raise TypeError(f"{what} takes a function or a variable, not {f!r} ({type(f).__name__})")


def _made(cls: type[_Transformed], f: Any, argnums: Any, **options: Any) -> Jitted:
    _check_callable(f, cls.what)
    made: Jitted = jit(cls(f, _argnums(argnums, cls.what), **options))
    return made


# the public functions -----------------------------------------------------------------------------------------------


def grad(
    f: Any,
    argnums: Any = None,
    *,
    wrt: Any = None,
    consider_constant: Any = (),
    disconnected_inputs: str = "raise",
    known_grads: Any = None,
) -> Any:
    """The gradient of a scalar: of a function, as a function; of a variable, as a variable.

    Arguments:
        f: a function of arrays, numbers and nests of these that gives one real scalar; or a scalar variable (None with known_grads).
        argnums: for a function, the number of the positional argument to differentiate (default 0), or a tuple; for a variable, the
            variables to differentiate with respect to: one, or a list (also as the keyword `wrt`).
        consider_constant: variables that nothing is to flow through (for a variable).
        disconnected_inputs: what happens where the cost does not depend on an argument: "raise", "warn", or "ignore" (zeros).
        known_grads: a dict of variables and their gradients, in addition to the cost or in its place (for a variable).

    Returns, for a function, one that gives the gradient, shaped and nested like the argument. Integer arguments are refused. Complex
    arguments get df/dx - i df/dy, as in JAX.

    Raises DisconnectedInputError, NullGradientError for integers and through what has no derivative, TypeError for a cost that is no
    real scalar, ArgumentNumberError (a ValueError) for an argument that is not there.

    >>> import numbascan as ns, numpy as np
    >>> ns.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    if f is None or isinstance(f, Variable):
        return grad_of_variable(f, argnums if wrt is None else wrt, consider_constant, disconnected_inputs, known_grads)
    return _made(_Grad, f, 0 if argnums is None else argnums, disconnected_inputs=disconnected_inputs)


def value_and_grad(f: Callable[..., Any], argnums: Any = 0, *, disconnected_inputs: str = "raise") -> Jitted:
    """A function that gives f's value and its gradient: what `scipy.optimize.minimize(..., jac=True)` takes.

    Arguments and errors as for `ns.grad` of a function.

    >>> import numbascan as ns, numpy as np
    >>> ns.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (array(5.), array([2., 4.]))
    """
    return _made(_ValueAndGrad, f, argnums, disconnected_inputs=disconnected_inputs)


def jacobian(f: Any, argnums: Any = None, *, wrt: Any = None, disconnected_inputs: str = "raise") -> Any:
    """All first derivatives: of a function, as a function; of a variable with respect to variables, as a variable.

    The shape is that of the result, then that of the argument. One reverse pass per element of the result.

    >>> import numbascan as ns, numpy as np
    >>> ns.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if isinstance(f, Variable):
        return jacobian_of_variable(f, argnums if wrt is None else wrt, (), disconnected_inputs)
    return _made(_Jacobian, f, 0 if argnums is None else argnums, disconnected_inputs=disconnected_inputs)


def hessian(f: Any, argnums: Any = None, *, wrt: Any = None, disconnected_inputs: str = "raise") -> Any:
    """All second derivatives of a scalar: of a function, as a function; of a variable with respect to variables, as a variable.

    The shape is that of the argument twice; nested arguments give a nest of nests. A reverse pass, then a forward pass per element.

    >>> import numbascan as ns, numpy as np
    >>> ns.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 2.0]))
    array([[4., 6.],
           [6., 0.]])
    """
    if isinstance(f, Variable):
        return hessian_of_variable(f, argnums if wrt is None else wrt, (), disconnected_inputs)
    return _made(_Hessian, f, 0 if argnums is None else argnums, disconnected_inputs=disconnected_inputs)


# directions ---------------------------------------------------------------------------------------------------------


class _Vjp:
    """(args, cotangents of the results) -> (results, cotangents of the args)."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.__name__ = f"vjp_{getattr(f, '__name__', 'function')}".replace("<lambda>", "lambda")

    def __call__(self, args: tuple[Any, ...], given: Any) -> Any:
        made = _called(self.f, _float_places(args), args, {}, "ns.vjp")
        outputs = [(node, value) for node, value in zip(made.leaves, _matching(made, given), strict=True) if is_float(node.type)]
        seeds = [broadcast_to(cast(value, node.type.dtype), dims_of(node)) for node, value in outputs]
        found = gradients([node for node, _ in outputs], seeds, made.wrt, (), "ignore", "ns.vjp")
        nests = dict(zip(_float_places(args), made.nests(found), strict=True))
        return tuple(nests.get(k) for k in range(len(args)))

    def value(self, args: tuple[Any, ...]) -> Any:
        return self.f(*args)


def _float_places(args: tuple[Any, ...]) -> list[int]:
    """The arguments that derivatives can be taken with respect to: all of whose leaves are real or complex."""
    found = []
    for k, argument in enumerate(args):
        leaves: list[Any] = []
        flatten(argument, leaves)
        if leaves and all(is_float(as_variable(leaf).type) for leaf in leaves):
            found.append(k)
    return found


def _matching(made: _Call, given: Any) -> list[Node]:
    leaves: list[Any] = []
    structure = flatten(given, leaves)
    if structure != made.returned:
        raise ValueError(f"ns.vjp: the function returns {describe(made.returned)}, the cotangent is {describe(structure)}; give the same")
    nodes = [as_variable(leaf).node for leaf in leaves]
    for node, value in zip(made.leaves, nodes, strict=True):
        if node.type.rank != value.type.rank:
            raise ValueError(f"ns.vjp: a result is {node.type}, its cotangent {value.type}; give one of the same shape")
    return nodes


def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """f(*args), and a function that takes cotangents of the results to a tuple of cotangents of the arguments.

    Integer arguments get None. Raises as `ns.grad`; an argument that plays no part gets zeros.

    >>> import numbascan as ns, numpy as np
    >>> value, pull = ns.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pull(np.array([10.0, 100.0]))
    (array([ 20., 400.]),)
    """
    _check_callable(f, "ns.vjp")
    transformed = _Vjp(f)
    leaves: list[Any] = []
    flatten(args, leaves)
    if any(isinstance(leaf, Variable) for leaf in leaves):
        return f(*args), lambda cotangent: transformed(args, cotangent)
    pull = jit(transformed)
    return jit(f)(*args) if not isinstance(f, Jitted) else f(*args), lambda cotangent: pull(args, cotangent)


class _Jvp:
    """(args, tangents of the args) -> (results, tangents of the results)."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.__name__ = f"jvp_{getattr(f, '__name__', 'function')}".replace("<lambda>", "lambda")

    def __call__(self, args: tuple[Any, ...], along: tuple[Any, ...]) -> Any:
        made = _called(self.f, range(len(args)), args, {}, "ns.jvp")
        leaves: list[Any] = []
        structure = flatten(tuple(along), leaves)
        given: list[Any] = []
        if structure != flatten(tuple(args), given):
            raise ValueError(f"ns.jvp: the arguments are {describe(flatten(tuple(args), []))}, the tangents {describe(structure)}; give the same")
        seeds = [cast(as_variable(leaf).node, node.type.dtype) for leaf, node in zip(leaves, made.wrt, strict=True)]
        moved = tangents(made.leaves, made.wrt, [broadcast_to(seed, dims_of(node)) for seed, node in zip(seeds, made.wrt, strict=True)])
        plain = [zeros_like(node) if value is None else value for node, value in zip(made.leaves, moved, strict=True)]
        values = made.outside([*made.leaves, *plain])
        count = len(made.leaves)
        return unflatten(made.returned, values[:count]), unflatten(made.returned, values[count:])


def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """f(*args), and how it moves when the arguments move along `tangents`.

    Arguments: args and tangents, tuples or lists of the same nests of arrays.

    >>> import numbascan as ns, numpy as np
    >>> ns.jvp(lambda x: x**2, (np.array([1.0, 2.0]),), (np.array([10.0, 100.0]),))
    (array([1., 4.]), array([ 20., 400.]))
    """
    _check_callable(f, "ns.jvp")
    if not isinstance(args, (tuple, list)) or not isinstance(tangents, (tuple, list)) or len(args) != len(tangents):
        raise TypeError("ns.jvp: args and tangents must be tuples of the same length, one tangent for each argument")
    moved = _Jvp(f)
    result: tuple[Any, Any] = jit(moved)(tuple(args), tuple(tangents))
    return result


# lanes --------------------------------------------------------------------------------------------------------------


class _Vmap:
    """A function of one lane, called on all lanes."""

    def __init__(self, f: Callable[..., Any], in_axes: Any, out_axes: Any) -> None:
        self.f, self.in_axes, self.out_axes = f, in_axes, out_axes
        functools.update_wrapper(self, f, updated=())
        self.__name__ = f"vmap_{getattr(f, '__name__', 'function')}".replace("<lambda>", "lambda")

    def __call__(self, *args: Any) -> Any:
        leaves: list[Any] = []
        structure = flatten(args, leaves)
        variables = [as_variable(leaf) for leaf in leaves]
        axes = list(_axes_of(self.in_axes, args))
        mapped = [_lanes_first(variable, axis) for variable, axis in zip(variables, axes, strict=True) if axis is not None]
        if not mapped:
            raise ValueError("ns.vmap: in_axes has None for every argument; at least one must have an axis of lanes")
        fixed = [variable for variable, axis in zip(variables, axes, strict=True) if axis is None]
        returned: list[Structure] = []

        def lane(*values: Any) -> list[Any]:
            rows, others = iter(values[: len(mapped)]), iter(values[len(mapped) :])
            whole = unflatten(structure, [next(others) if axis is None else next(rows) for axis in axes])
            found: list[Any] = []
            returned.append(flatten(self.f(*whole), found))
            return found

        results = scan(
            lane,
            sequences=mapped,
            non_sequences=fixed,
            n_steps=_lane_count(mapped),
            name=self.__name__ if self.__name__.isidentifier() else "vmap",
            return_list=True,
            return_updates=False,
        )
        return unflatten(returned[-1], [_lanes_at(result, self.out_axes) for result in results])

    def __reduce__(self) -> tuple[Any, ...]:
        return _Vmap, (self.f, self.in_axes, self.out_axes)


def _lane_count(mapped: Sequence[Variable]) -> Any:
    """The greatest number of lanes: the loop refuses arguments that have fewer."""
    known = {variable.type.shape[0] for variable in mapped} - {None}
    if len(known) > 1:
        raise ValueError(f"ns.vmap: the arguments have {' and '.join(map(str, sorted(k for k in known if k is not None)))} lanes; give equally many")
    return functools.reduce(lambda a, b: Variable(call("maximum", as_variable(a).node, as_variable(b).node)), [v.shape[0] for v in mapped])


def _axes_of(in_axes: Any, args: tuple[Any, ...]) -> Iterator[int | None]:
    """The axis of lanes of each leaf of the arguments. An entry of `in_axes` counts for all that is nested in its argument."""
    entries = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
    if len(entries) != len(args):
        raise ValueError(f"ns.vmap: in_axes has {len(entries)} entries for {len(args)} arguments; give one for each")
    for entry, argument in zip(entries, args, strict=True):
        yield from _nested_axes(entry, argument)


def _nested_axes(entry: Any, argument: Any) -> Iterator[int | None]:
    if isinstance(argument, dict):
        for key in sorted(argument):
            yield from _nested_axes(entry[key] if isinstance(entry, dict) else entry, argument[key])
    elif isinstance(argument, (tuple, list)):
        for k, part in enumerate(argument):
            yield from _nested_axes(entry[k] if isinstance(entry, (tuple, list)) else entry, part)
    elif argument is not None:
        if entry is not None and (isinstance(entry, bool) or not isinstance(entry, int)):
            raise TypeError(f"ns.vmap: in_axes holds {entry!r}; give an axis (an int) or None")
        yield entry


def _lanes_first(variable: Variable, axis: int) -> Variable:
    if not -variable.ndim <= axis < variable.ndim:
        raise ValueError(f"ns.vmap: in_axes has {axis}, but an argument is {variable.type}, which has no such axis")
    import numpy as np

    moved: Variable = np.moveaxis(variable, axis, 0)
    return moved


def _lanes_at(result: Variable, axis: int) -> Variable:
    import numpy as np

    moved: Variable = np.moveaxis(result, 0, axis)
    return moved


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Jitted:
    """`f` for many lanes: a function that takes arrays with an axis of lanes and gives such arrays.

    Arguments:
        f: a function of one lane.
        in_axes: the axis of lanes of every argument, or a tuple with one entry per argument; None: the same for all lanes.
        out_axes: where the axis of lanes stands in the results.

    Raises ValueError for arguments with different numbers of lanes.

    >>> import numbascan as ns, numpy as np
    >>> ns.vmap(lambda x, y: x @ y, in_axes=(0, None))(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    _check_callable(f, "ns.vmap")
    made: Jitted = jit(_Vmap(f, in_axes, out_axes))
    return made
