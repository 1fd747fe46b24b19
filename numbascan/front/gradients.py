"""Derivatives of variables with respect to variables: grad, jacobian, hessian, Lop, Rop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..errors import DisconnectedInputError, NullGradientError
from ..grad.forward import tangents
from ..grad.mapped import mapped
from ..grad.reverse import cotangents
from ..ir.graph import toposort
from ..ir.node import Node, constant, new_input
from ..ops.algebra import broadcast_to, call, cast, dims_of, is_float, node_of, zeros_like
from ..ops.card import apply, at_line
from ..ops.links import DISCONNECTED, LINKED, ZERO_GRAD
from ..ops.reshape import reshaped
from ..types import show_shape
from .variable import Variable, as_variable, op

__all__ = ["disconnected_grad", "zero_grad"]


def disconnected_grad(x: Any) -> Variable:
    """`x`, which derivatives take as a constant: no way leads through it."""
    return op(DISCONNECTED, x)


def zero_grad(x: Any) -> Variable:
    """`x`, with respect to which every derivative is zero."""
    return op(ZERO_GRAD, x)


# the words of messages ------------------------------------------------------------------------------------------------


def shown(node: Node) -> str:
    return f"{node.name or 'a variable without a name'} ({node.type})"


def check_wrt(node: Node, what: str) -> None:
    """NullGradientError for an integer or a boolean, with respect to which there is no derivative."""
    if not is_float(node.type):
        raise NullGradientError(
            f"{what}: a derivative with respect to {shown(node)} was asked{at_line()}, but integers and booleans have none; "
            "give a float: 3.0 for 3, x.astype('float64')"
        )


def check_cost(node: Node, what: str) -> None:
    """TypeError for what is no real scalar."""
    if node.type.rank:
        raise TypeError(
            f"{what}: the cost must be a scalar, but {shown(node)} has shape {show_shape(node.type.shape)}{at_line()}; write "
            "cost.sum() or cost.mean(), or ns.jacobian for all derivatives"
        )
    if node.type.kind == "c":
        raise TypeError(f"{what}: the cost must be real, but {shown(node)} is complex{at_line()}; write np.real(cost) or np.abs(cost)")
    if not is_float(node.type):
        raise NullGradientError(f"{what}: the cost {shown(node)} is an integer or a boolean{at_line()}, which has no derivative")


def disconnected(outputs: Sequence[Node], node: Node, what: str) -> Exception:
    """The error for a variable to which no derivative leads."""
    if node in toposort(outputs):
        return NullGradientError(
            f"{what}: the cost depends on {shown(node)} through integers, booleans or constants of derivatives only, so there is no "
            "derivative; disconnected_inputs='ignore' gives zeros"
        )
    return DisconnectedInputError(
        f"{what}: the cost does not depend on {shown(node)}{at_line()}; leave it out, or set disconnected_inputs='ignore' for zeros"
    )


# reverse ------------------------------------------------------------------------------------------------------------


def gradients(
    outputs: Sequence[Node],
    given: Sequence[Node],
    wrt: Sequence[Node],
    constants: Sequence[Node] = (),
    disconnected_inputs: str = "raise",
    what: str = "ns.grad",
) -> list[Node]:
    """The cotangents of `wrt`, checked; zeros or an error where there is none.

    What does not depend on `wrt` any more is linked to it: the derivative of a derivative that is constant is zero, not missing.
    """
    if disconnected_inputs not in ("raise", "warn", "ignore"):
        raise ValueError(f"{what}: disconnected_inputs is {disconnected_inputs!r}; it must be 'raise', 'warn' or 'ignore'")
    for node in wrt:
        check_wrt(node, what)
    found = cotangents(outputs, given, wrt, constants)
    missing = [node for node, value in zip(wrt, found, strict=True) if value is None]
    for node in missing if disconnected_inputs != "ignore" else ():
        error = disconnected(outputs, node, what)
        if disconnected_inputs == "raise":
            raise error
        import warnings

        warnings.warn(str(error), UserWarning, stacklevel=3)
    plain = [zeros_like(node) if value is None else value for node, value in zip(wrt, found, strict=True)]
    return [linked(value, wrt) for value in plain]


def linked(value: Node, wrt: Sequence[Node]) -> Node:
    """`value`, which those of `wrt` it does not depend on reach all the same."""
    behind = set(toposort([value]))
    apart = [node for node in wrt if node not in behind]
    return apply(LINKED, value, *apart) if apart else value


def as_list(wrt: Any) -> tuple[list[Variable], bool]:
    """(variables, whether it was one alone)"""
    alone = not isinstance(wrt, (list, tuple))
    variables = [wrt] if alone else list(wrt)
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(f"a derivative is taken with respect to variables, not {variable!r} ({type(variable).__name__}){at_line()}")
    return variables, alone


def grad_of_variable(
    cost: Variable | None,
    wrt: Any,
    consider_constant: Any = (),
    disconnected_inputs: str = "raise",
    known_grads: Mapping[Variable, Any] | None = None,
) -> Any:
    """The gradient of a scalar variable: see ns.grad."""
    variables, alone = as_list(wrt)
    outputs, given = [], []
    if cost is not None:
        check_cost(cost.node, "ns.grad")
        outputs.append(cost.node)
        given.append(constant(1, cost.type.dtype))
    for variable, value in (known_grads or {}).items():
        outputs.append(variable.node)
        given.append(_known(variable, value))
    if not outputs:
        raise ValueError("ns.grad: there is neither a cost nor known_grads, so nothing to differentiate")
    constants = [as_variable(variable).node for variable in consider_constant or ()]
    if known_grads and cost is not None:
        constants = [*constants]
    found = gradients(outputs, given, [variable.node for variable in variables], constants, disconnected_inputs)
    results = [_named(Variable(node), variable) for node, variable in zip(found, variables, strict=True)]
    return results[0] if alone else type(wrt)(results) if type(wrt) in (list, tuple) else results


def _known(variable: Variable, value: Any) -> Node:
    node = as_variable(value).node
    if node.type.rank != variable.type.rank:
        raise ValueError(f"ns.grad: known_grads gives {shown(variable.node)} a gradient of type {node.type}; it must have its shape")
    return cast(node, variable.type.dtype)


def _named(result: Variable, variable: Variable) -> Variable:
    result.name = result.name or (f"d_{variable.name}" if variable.name else None)
    return result


# many directions at once --------------------------------------------------------------------------------------------


def jacobian_nodes(output: Node, wrt: Sequence[Node], what: str, disconnected_inputs: str = "raise") -> list[Node]:
    """d output / d wrt, of shape output.shape + wrt.shape each: one reverse pass per element of the output."""
    seed = new_input(output.type.strong())
    found = gradients([output], [seed], wrt, (), disconnected_inputs, what)
    (stacked,) = [broadcasting_basis(output)]
    rows = mapped(found, seed, stacked)
    return [_shaped(row, output, node) for row, node in zip(rows, wrt, strict=True)]


def forward_nodes(outputs: Sequence[Node], wrt: Node) -> list[Node]:
    """d output / d wrt, of shape output.shape + wrt.shape each: one forward pass per element of `wrt`."""
    seed = new_input(wrt.type.strong())
    along = tangents(outputs, [wrt], [seed])
    plain = [zeros_like(output) if value is None else value for output, value in zip(outputs, along, strict=True)]
    columns = mapped([linked(value, [wrt]) for value in plain], seed, broadcasting_basis(wrt))
    result = []
    for output, column in zip(outputs, columns, strict=True):  # [element of wrt, *output] -> [*output, *wrt]
        turned = call("transpose", column, axes=(*range(1, column.type.rank), 0)) if output.type.rank else column
        result.append(reshaped(turned, (*dims_of(output), *dims_of(wrt))))
    return result


def broadcasting_basis(x: Node) -> Node:
    """The unit vectors of x's space, [element, *x.shape]."""
    dims = dims_of(x)
    count = reduce(lambda a, b: call("multiply", a, b), dims, node_of(1))
    n = call("cast", count, dtype="int64")
    from .creation import eye

    unit = eye(Variable(n), dtype=x.type.dtype).node
    return reshaped(unit, (n, *dims))


def _shaped(rows: Node, output: Node, wrt: Node) -> Node:
    return reshaped(rows, (*dims_of(output), *dims_of(wrt)))


def jacobian_of_variable(expression: Variable, wrt: Any, consider_constant: Any = (), disconnected_inputs: str = "raise") -> Any:
    """The Jacobian of a variable: see ns.jacobian."""
    variables, alone = as_list(wrt)
    if not is_float(expression.type):
        raise NullGradientError(f"ns.jacobian: {shown(expression.node)} is an integer or a boolean, which has no derivative")
    found = jacobian_nodes(expression.node, [variable.node for variable in variables], "ns.jacobian", disconnected_inputs)
    results = [Variable(node) for node in found]
    return results[0] if alone else results


def hessian_of_variable(cost: Variable, wrt: Any, consider_constant: Any = (), disconnected_inputs: str = "raise") -> Any:
    """The Hessian of a scalar variable: see ns.hessian."""
    variables, alone = as_list(wrt)
    check_cost(cost.node, "ns.hessian")
    nodes = [variable.node for variable in variables]
    constants = [as_variable(variable).node for variable in consider_constant or ()]
    firsts = gradients([cost.node], [constant(1, cost.type.dtype)], nodes, constants, disconnected_inputs, "ns.hessian")
    results = [Variable(forward_nodes([first], node)[0]) for first, node in zip(firsts, nodes, strict=True)]
    return results[0] if alone else results


# directions ---------------------------------------------------------------------------------------------------------


def Lop(f: Any, wrt: Any, eval_points: Any, consider_constant: Any = (), disconnected_inputs: str = "raise") -> Any:  # noqa: N802 - PyTensor's name
    """eval_points · d f / d wrt: the cotangents of `wrt` when those of `f` are `eval_points`.

    Arguments: f, a variable or a list; wrt, the same; eval_points, one per variable of `f`, of its shape.
    Returns a variable per variable of `wrt`, a list if `wrt` is one.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x, v = nt.dvectors("x", "v")
    >>> ns.function([x, v], ns.Lop(x ** 2, x, v))([1.0, 2.0], [10.0, 100.0])
    array([ 20., 400.])
    """
    variables, alone = as_list(wrt)
    outputs = [as_variable(one) for one in (f if isinstance(f, (list, tuple)) else [f])]
    points = list(eval_points) if isinstance(eval_points, (list, tuple)) else [eval_points]
    if len(points) != len(outputs):
        raise ValueError(f"ns.Lop: {len(outputs)} variables, but {len(points)} eval_points; give one for each")
    given = [_known(output, point) for output, point in zip(outputs, points, strict=True)]
    constants = [as_variable(variable).node for variable in consider_constant or ()]
    nodes = [variable.node for variable in variables]
    found = gradients([output.node for output in outputs], given, nodes, constants, disconnected_inputs, "ns.Lop")
    results = [Variable(node) for node in found]
    return results[0] if alone else results


def Rop(f: Any, wrt: Any, eval_points: Any, disconnected_outputs: str = "raise") -> Any:  # noqa: N802 - PyTensor's name
    """d f / d wrt · eval_points: how `f` moves when `wrt` moves along `eval_points`.

    Arguments: f, a variable or a list; wrt, the same; eval_points, one per variable of `wrt`, of its shape.
    Returns a variable per variable of `f`, a list if `f` is one.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x, v = nt.dvectors("x", "v")
    >>> ns.function([x, v], ns.Rop(x ** 2, x, v))([1.0, 2.0], [10.0, 100.0])
    array([ 20., 400.])
    """
    variables, _ = as_list(wrt)
    alone = not isinstance(f, (list, tuple))
    outputs = [as_variable(one) for one in ([f] if alone else f)]
    points = list(eval_points) if isinstance(eval_points, (list, tuple)) else [eval_points]
    if len(points) != len(variables):
        raise ValueError(f"ns.Rop: {len(variables)} variables in wrt, but {len(points)} eval_points; give one for each")
    for variable in variables:
        check_wrt(variable.node, "ns.Rop")
    given = [broadcast_to(_known(variable, point), dims_of(variable.node)) for variable, point in zip(variables, points, strict=True)]
    nodes = [variable.node for variable in variables]
    along = tangents([output.node for output in outputs], nodes, given)
    for output, value in zip(outputs, along, strict=True):
        if value is None and disconnected_outputs == "raise" and not set(nodes) & set(toposort([output.node])):
            raise DisconnectedInputError(f"ns.Rop: {shown(output.node)} does not depend on wrt; disconnected_outputs='ignore' gives zeros")
    results = [Variable(zeros_like(out.node) if value is None else value) for out, value in zip(outputs, along, strict=True)]
    return results[0] if alone else results
