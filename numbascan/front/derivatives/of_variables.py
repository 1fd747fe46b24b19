"""Derivatives of variables with respect to variables: grad, jacobian, hessian, Lop, Rop."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from ...errors import DisconnectedInputError, NullGradientError
from ...grad.closed_loops import map_rows
from ...grad.forward import tangents
from ...grad.reverse import cotangents
from ...ir.graph import substitute, toposort
from ...ir.node import Node, constant, named, new_input
from ...ops.algebra import add, call, cast, dims_of, is_float, mul, node_of, transpose, zeros_like
from ...ops.card import Card, apply, at_line
from ...ops.gradient_identities import DISCONNECTED, LINKED, ZERO_GRAD, derivative_of
from ...ops.of_shape import of_shape
from ...ops.reshape import reshaped
from ...rewrite.remove_unused import remove_unused
from ...tracebacks import entries, entry
from ...types import show_shape
from ..variable import Variable, as_variable, op

__all__ = ["disconnected_grad", "zero_grad"]


def disconnected_grad(x: Any) -> Variable:
    """`x`, which derivatives take as a constant: no way leads through it.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x = nt.dscalar("x")
    >>> ns.function([x], ns.grad(x * nt.disconnected_grad(x), x))(3.0)
    array(3.)
    """
    return op(DISCONNECTED, x)


def zero_grad(x: Any) -> Variable:
    """`x`, with respect to which every derivative is zero.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x = nt.dscalar("x")
    >>> ns.function([x], ns.grad(nt.zero_grad(x**2), x))(3.0)
    array(0.)
    """
    return op(ZERO_GRAD, x)


# checks and their messages --------------------------------------------------------------------------------------------


def shown(node: Node) -> str:
    """A node in messages: its name and type."""
    return f"{node.name or 'a variable without a name'} ({node.type})"


def check_wrt(node: Node, what: str) -> None:
    """NullGradientError for an integer or a boolean, with respect to which there is no derivative."""
    if not is_float(node.type):
        raise NullGradientError(
            f"{what}: a derivative with respect to {shown(node)} was asked{at_line()}, but integers and booleans have none; "
            "give a float: 3.0 for 3, x.astype('float64')"
        )


def check_result(node: Node, what: str) -> None:
    """NullGradientError for an integer or a boolean, which has no derivative."""
    if not is_float(node.type):
        raise NullGradientError(f"{what}: the result {shown(node)} is an integer or a boolean{at_line()}, which has no derivative")


def check_cost(node: Node, what: str) -> None:
    """TypeError unless the cost is a real scalar; NullGradientError for an integer or a boolean."""
    if node.type.rank:
        raise TypeError(
            f"{what}: the cost must be a scalar, but {shown(node)} has shape {show_shape(node.type.shape)}{at_line()}; write "
            "cost.sum() or cost.mean(), or ns.jacobian for all derivatives"
        )
    if node.type.kind == "c":
        raise TypeError(f"{what}: the cost must be real, but {shown(node)} is complex{at_line()}; write np.real(cost) or np.abs(cost)")
    check_result(node, what)


def along(value: Any, node: Node, what: str) -> Node:
    """A user's cotangent or tangent in the dtype of `node`. It must have the shape of `node`, and be real if `node` is."""
    direction = as_variable(value).node
    if direction.type.kind == "c" and node.type.kind != "c":
        raise TypeError(f"{what} is complex, but {shown(node)} is real{at_line()}; write np.real(value)")
    return of_shape(cast(direction, node.type.dtype), dims_of(node), what)


def _disconnected(outputs: Sequence[Node], node: Node, what: str, policy: str = "disconnected_inputs") -> Exception:
    """The error for a variable that no derivative reaches: it is not used, held constant, or used through integers only.

    `policy`: the keyword that the user may set instead, for the message.
    """
    is_behind = node in toposort(remove_unused(outputs))  # without it, an input that the step does not read would count as used
    if is_behind and node not in _float_ways(outputs):
        return NullGradientError(
            f"{what}: the cost depends on {shown(node)} through integers or booleans only, so there is no derivative{at_line()}; "
            f"{policy}='ignore' gives zeros"
        )
    reason = "only through what is held constant" if is_behind else "not at all"
    return DisconnectedInputError(
        f"{what}: the cost depends on {shown(node)} {reason}{at_line()}; leave it out, or set {policy}='ignore' for zeros"
    )


# reverse ------------------------------------------------------------------------------------------------------------


def gradients(
    outputs: Sequence[Node],
    seeds: Sequence[Node],
    wrt: Sequence[Node],
    what: str,
    constants: Sequence[Node] = (),
    disconnected_inputs: str = "raise",
    links: Sequence[Node] = (),
) -> list[Node]:
    """The cotangents of `wrt`; zeros or an error where there is none, as `disconnected_inputs` says.

    A cotangent that does not depend on a node of `wrt` or `links` is linked to it, so that the derivative of a constant derivative is
    zero, not missing.
    """
    if disconnected_inputs not in ("raise", "warn", "ignore"):
        raise ValueError(f"{what}: disconnected_inputs is {disconnected_inputs!r}; it must be 'raise', 'warn' or 'ignore'")
    for node in wrt:
        check_wrt(node, what)
    results = cotangents(outputs, seeds, wrt, constants)
    missing = [node for node, value in zip(wrt, results, strict=True) if value is None]
    for node in missing if disconnected_inputs != "ignore" else ():
        error = _disconnected(outputs, node, what)
        if disconnected_inputs == "raise":
            raise error
        warnings.warn(str(error), UserWarning, stacklevel=5)
    return [linked(zeros_like(node) if value is None else value, [*wrt, *links]) for node, value in zip(wrt, results, strict=True)]


def linked(value: Node, wrt: Sequence[Node]) -> Node:
    """`value`, made to depend on all of `wrt`: its derivative is zero with respect to those on which it did not."""
    behind = _float_ways([value], DISCONNECTED)
    apart = [node for node in dict.fromkeys(wrt) if node not in behind]
    return apply(LINKED, value, *apart) if apart else value


def _float_ways(outputs: Sequence[Node], except_through: Card | None = None) -> set[Node]:
    """The nodes from which a path of real or complex values leads to `outputs`, without nodes of the op `except_through`."""
    reached: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node not in reached and node.op is not except_through and any(map(is_float, node.types)):
            reached.add(node)
            stack += node.inputs
    return reached


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _nodes(wrt: Any, what: str) -> list[Node]:
    """The nodes of `wrt`, a variable or a list of variables. TypeError for anything else."""
    variables = _as_list(wrt)
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(f"{what} is taken with respect to variables, not {variable!r} ({type(variable).__name__}){at_line()}")
    return [variable.node for variable in variables]


def _constants(variables: Any) -> list[Node]:
    return [as_variable(variable).node for variable in ([] if variables is None else _as_list(variables))]


def _packed(nodes: Sequence[Node], like: Any, costs: Sequence[Node]) -> Any:
    """Derivatives of `costs` as variables: in a list or tuple if `like` is one, else the first alone."""
    variables = [Variable(derivative_of(costs, node)) for node in nodes]
    return variables if isinstance(like, list) else tuple(variables) if isinstance(like, tuple) else variables[0]


def grad_of_variable(cost: Variable | None, wrt: Any, consider_constant: Any, disconnected_inputs: str, known_grads: Any) -> Any:
    """The gradient of a scalar variable: see ns.grad."""
    nodes, known = _nodes(wrt, "ns.grad"), _known(known_grads or {})
    if cost is None and not known:
        raise ValueError("ns.grad: there is neither a cost nor known_grads, so nothing to differentiate")
    if cost is not None:
        check_cost(cost.node, "ns.grad")
    # the known gradient replaces what would flow back from uses of the variable: for these uses it is a fresh input
    inputs = {node: new_input(node.type, node.name) for node in known}
    outputs, seeds = list(known), list(known.values())
    if cost is not None:
        outputs += substitute([cost.node], inputs)
        seeds.append(constant(1, cost.type.dtype))

    def cut(node: Node) -> Node:
        return node if node in known else substitute([node], inputs)[0]

    constants, wanted = list(map(cut, _constants(consider_constant))), list(map(cut, nodes))
    for node in wanted:
        if node in constants:  # equal expressions are one variable: nobody can tell which of its uses are meant
            raise ValueError(
                f"ns.grad: {shown(node)} is held constant, and a derivative with respect to it is asked{at_line()}; write "
                "nt.disconnected_grad(x), or x.copy() for a variable of its own, where it is used as a constant"
            )
    results = gradients(outputs, seeds, wanted, "ns.grad", constants, disconnected_inputs)
    results = list(substitute(results, {fresh: node for node, fresh in inputs.items()}))
    packed = _packed(results, wrt, [*known, *known.values(), *([] if cost is None else [cost.node])])
    for node, value in zip(nodes, _as_list(packed), strict=True):
        named(value.node, f"d_{node.name}" if node.name else None)
    return packed


def grads_where_there_are(
    cost: Variable | None,
    wrt: Any,
    consider_constant: Any,
    disconnected_inputs: str,
    known_grads: Any,
    return_disconnected: str,
    null_gradients: str,
) -> Any:
    """`grad_of_variable`, one variable at a time; None or the error stands for a missing gradient, as the last two arguments say."""

    def of(variable: Any, policy: str) -> Any:
        return grad_of_variable(cost, variable, consider_constant, policy, known_grads)

    def gradient(variable: Any) -> Any:
        try:
            return of(variable, "raise")
        except (DisconnectedInputError, NullGradientError):
            if disconnected_inputs == "raise":
                raise
        zeros = of(variable, disconnected_inputs)
        return None if return_disconnected == "none" else zeros

    def gradient_or_error(variable: Any) -> Any:
        try:
            return gradient(variable)
        except NullGradientError as error:
            if null_gradients == "raise":
                raise
            return error.with_traceback(None)  # a traceback keeps the frames alive, and all that they hold

    results = [gradient_or_error(variable) for variable in _as_list(wrt)]
    return results if isinstance(wrt, list) else tuple(results) if isinstance(wrt, tuple) else results[0]


def _known(known_grads: Mapping[Variable, Any]) -> dict[Node, Node]:
    """The known gradients by node. ValueError if one variable is computed from another: it is not clear whether they add up."""
    result = {}
    for variable, value in known_grads.items():
        check_wrt(variable.node, "ns.grad: known_grads")
        result[variable.node] = along(value, variable.node, f"ns.grad: the known gradient of {shown(variable.node)}")
    for node in result:
        for other in set(toposort([node])) & set(result) - {node}:
            raise ValueError(
                f"ns.grad: known_grads has {shown(node)} and {shown(other)}, from which that is computed{at_line()}; write ns.Lop, where "
                "gradients add up, or leave one out"
            )
    return result


# many directions at once --------------------------------------------------------------------------------------------


def jacobian_nodes(
    output: Node,
    wrt: Sequence[Node],
    what: str,
    constants: Sequence[Node] = (),
    disconnected_inputs: str = "raise",
    links: Sequence[Node] = (),
) -> list[Node]:
    """d output / d wrt, of shape output.shape + wrt.shape each: one reverse pass per element of the output."""
    check_result(output, what)
    if output.type.kind == "c":
        for node in wrt:
            if node.type.kind == "c":
                raise TypeError(
                    f"{what}: a complex result has a derivative with respect to the complex {shown(node)} only if it is holomorphic"
                    f"{at_line()}; differentiate np.real(result) and np.imag(result)"
                )
        parts = [jacobian_nodes(call(part, output), wrt, what, constants, disconnected_inputs, links) for part in ("real", "imag")]
        return [add(real, mul(imaginary, 1j)) for real, imaginary in zip(*parts, strict=True)]
    seed = new_input(output.type.strong())
    by_wrt = gradients([output], [seed], wrt, what, constants, disconnected_inputs, links)
    rows = map_rows(by_wrt, seed, _basis(output))
    return [reshaped(row, (*dims_of(output), *dims_of(node))) for row, node in zip(rows, wrt, strict=True)]


def second_nodes(firsts: Sequence[Node], wrt: Node, what: str, constants: Sequence[Node] = ()) -> list[Node]:
    """d first / d wrt of first derivatives, of shape first.shape + wrt.shape each: one forward pass per element of `wrt`."""
    if wrt.type.kind == "c":
        raise TypeError(f"{what}: {shown(wrt)} is complex{at_line()}; take real and imaginary parts as arguments of their own")
    seed = new_input(wrt.type.strong())
    try:
        moved = tangents(firsts, [wrt], [seed], constants)
    except NullGradientError:  # rules of ns.custom_vjp have no forward mode
        return [jacobian_nodes(first, [wrt], what, constants, "ignore")[0] for first in firsts]
    plain = [zeros_like(first) if value is None else value for first, value in zip(firsts, moved, strict=True)]
    columns = map_rows([linked(value, [wrt]) for value in plain], seed, _basis(wrt))
    result = []
    for first, column in zip(firsts, columns, strict=True):
        turned = transpose(column, (*range(1, column.type.rank), 0))  # [element of wrt, *first] -> [*first, element of wrt]
        result.append(reshaped(turned, (*dims_of(first), *dims_of(wrt))))
    return result


def _basis(x: Node) -> Node:
    """The unit vectors of x's space, of shape (x.size, *x.shape)."""
    from ..numpy.creation import eye

    dims = dims_of(x)
    n = call("cast", reduce(mul, dims, node_of(1)), dtype="int64")
    return reshaped(eye(Variable(n), dtype=x.type.dtype).node, (n, *dims))


def jacobian_of_variable(expression: Variable, wrt: Any, consider_constant: Any, disconnected_inputs: str) -> Any:
    """The Jacobian of a variable: see ns.jacobian."""
    nodes, constants = _nodes(wrt, "ns.jacobian"), _constants(consider_constant)
    return _packed(jacobian_nodes(expression.node, nodes, "ns.jacobian", constants, disconnected_inputs), wrt, [expression.node])


def hessian_of_variable(cost: Variable, wrt: Any, consider_constant: Any, disconnected_inputs: str) -> Any:
    """The Hessian of a scalar variable: see ns.hessian."""
    nodes, constants = _nodes(wrt, "ns.hessian"), _constants(consider_constant)
    check_cost(cost.node, "ns.hessian")
    firsts = gradients([cost.node], [constant(1, cost.type.dtype)], nodes, "ns.hessian", constants, disconnected_inputs)
    pairs = zip(firsts, nodes, strict=True)
    return _packed([second_nodes([first], node, "ns.hessian", constants)[0] for first, node in pairs], wrt, [cost.node])


# directions ---------------------------------------------------------------------------------------------------------


def _directions(nodes: Sequence[Node], v: Any, what: str) -> list[Node]:
    """The directions `v` as nodes, one for each of `nodes`."""
    points = _as_list(v)
    if len(points) != len(nodes):
        raise ValueError(f"{what}: v has {len(points)} directions for {len(nodes)} variables{at_line()}; give one for each")
    return [along(point, node, f"{what}: the direction (in v) of {shown(node)}") for point, node in zip(points, nodes, strict=True)]


@entry
def Lop(f: Any, wrt: Any, v: Any, consider_constant: Any = None, disconnected_inputs: str = "raise") -> Any:
    """v · d f / d wrt: the cotangents of `wrt` when those of `f` are `v`.

    Arguments: f, a variable or a list; wrt, the same; v, one per variable of `f`, of its shape. consider_constant and
    disconnected_inputs as for ns.grad.

    Returns a variable per variable of `wrt`, a list if `wrt` is one.

    Raises ValueError for `v` that does not fit, and what ns.grad raises.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x, v = nt.dvectors("x", "v")
    >>> ns.function([x, v], ns.Lop(x**2, x, v))([1.0, 2.0], [10.0, 100.0])
    array([ 20., 400.])
    """
    nodes, constants = _nodes(wrt, "ns.Lop"), _constants(consider_constant)
    outputs = [as_variable(one).node for one in _as_list(f)]
    for output in outputs:
        check_result(output, "ns.Lop")
    seeds = _directions(outputs, v, "ns.Lop")
    return _packed(gradients(outputs, seeds, nodes, "ns.Lop", constants, disconnected_inputs), wrt, [*outputs, *seeds])


@entry
def Rop(f: Any, wrt: Any, v: Any, disconnected_outputs: str = "raise") -> Any:
    """d f / d wrt · v: how `f` moves when `wrt` moves along `v`.

    Arguments: f, a variable or a list; wrt, the same; v, one per variable of `wrt`, of its shape. disconnected_outputs:
    "raise", or "ignore" for zeros where a variable of `f` does not depend on `wrt`.

    Returns a variable per variable of `f`, a list if `f` is one.

    Raises ValueError for `v` that does not fit, DisconnectedInputError, NullGradientError.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x, v = nt.dvectors("x", "v")
    >>> ns.function([x, v], ns.Rop(x**2, x, v))([1.0, 2.0], [10.0, 100.0])
    array([ 20., 400.])
    """
    nodes, outputs = _nodes(wrt, "ns.Rop"), [as_variable(one).node for one in _as_list(f)]
    if disconnected_outputs not in ("raise", "ignore"):
        raise ValueError(f"ns.Rop: disconnected_outputs is {disconnected_outputs!r}; it must be 'raise' or 'ignore'")
    for node in nodes:
        check_wrt(node, "ns.Rop")
    for output in outputs if disconnected_outputs == "raise" else ():
        check_result(output, "ns.Rop")
        if not _float_ways([output], DISCONNECTED) & set(nodes):
            raise _disconnected([output], nodes[0], "ns.Rop", "disconnected_outputs")
    directions = _directions(nodes, v, "ns.Rop")
    results = tangents(outputs, nodes, directions)
    plain = [zeros_like(output) if value is None else value for output, value in zip(outputs, results, strict=True)]
    return _packed([linked(value, nodes) for value in plain], f, [*outputs, *directions])


entries(globals(), __all__)
