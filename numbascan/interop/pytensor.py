"""`as_op`: a function as a PyTensor op, with gradients, shapes and a form for PyTensor's Numba mode.

The op holds a `Flat`. Its gradient is the op with another `Flat`, which has a gradient in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, grad_undefined
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import numba_funcify
from pytensor.tensor.exceptions import ShapeError
from pytensor.tensor.type import TensorType

from ..front.function import Function, function
from ..front.tree import Structure, flattened, unflatten
from ..ir.node import Node, constant_value
from ..ops.dims import DIM
from ..tracebacks import entry
from .flat import Flat, closed_dims, flat_of


@entry
def as_op(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, a function of arrays as `ns.jit` takes it, for PyTensor's variables: an `Op` with gradients of any order.

    Arguments and results may be nested in tuples, lists and dicts; arrays and numbers become constants. In PyTensor's Numba mode the op is
    a Numba function in the code around it (`.njit`), so that PyMC and nutpie sample without calls of Python. Lengths are known to PyTensor
    where they follow from those of the arguments.

    What `f` reads from outside is part of the Numba form as it is when that is made. Raises TypeError for a function that draws.

    >>> import numbascan as ns, numpy as np, pytensor, pytensor.tensor as pt
    >>> def decay(rate, x):
    ...     return ns.scan(lambda x, y: rate * y + x, x, 0.0, return_updates=False)[-1]
    >>> rate = pt.dscalar("rate")
    >>> last = ns.interop.pytensor.as_op(decay)(rate, np.ones(3))
    >>> pytensor.function([rate], pytensor.grad(last, rate))(0.5)
    array(2.)
    """
    if not callable(f):
        raise TypeError(f"ns.interop.pytensor.as_op takes a function, not {f!r} ({type(f).__name__})")
    known: dict[Structure, ScanOp] = {}

    def on_variables(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flattened((args, kwargs))
        if structure not in known:
            known.setdefault(structure, ScanOp(flat_of(f, structure, "ns.interop.pytensor.as_op")))
        node = known[structure].make_node(*leaves)
        return unflatten(node.op.traced(node.inputs)[2], node.outputs)

    return update_wrapper(on_variables, f)


class ScanOp(Op):
    """The op that calls a function of numbascan."""

    __props__ = ("flat",)

    def __init__(self, flat: Flat) -> None:
        self.flat = flat

    def __str__(self) -> str:
        return self.flat.name

    def traced(self, inputs: Sequence[Any]) -> Any:
        """Variables of the types of `inputs`, the results for them, and the structure of the results."""
        return self.flat.traced([(one.type.dtype, one.type.shape) for one in inputs])

    def make_node(self, *inputs: Any) -> Any:
        variables = [pt.as_tensor_variable(one) for one in inputs]
        arguments, results, _ = self.traced(variables)
        dims = closed_dims(arguments, results)[1]
        outputs = [TensorType(one.type.dtype, list(map(_known, own)))() for one, own in zip(results, dims, strict=True)]
        return Apply(self, variables, outputs)

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        for storage, result in zip(output_storage, self.flat(*inputs), strict=True):
            storage[0] = result

    def do_constant_folding(self, fgraph: Any, node: Any) -> bool:
        return False  # what the function reads from outside may change

    def infer_shape(self, fgraph: Any, node: Any, shapes: Sequence[Any]) -> list[tuple[Any, ...]]:
        inputs, results, _ = self.traced(node.inputs)
        arguments, dims = closed_dims(inputs, results)
        lengths = {(one, axis): shape[axis] for one, shape in zip(arguments, shapes, strict=True) for axis in range(one.type.rank)}
        return [tuple([_length(dim, lengths) for dim in one]) for one in dims]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        moving = tuple(k for k, one in enumerate(inputs) if _is_float(one))
        given = [
            output.zeros_like() if isinstance(one.type, DisconnectedType) else one.astype(output.type.dtype)
            for one, output in zip(cotangents, outputs, strict=True)
            if _is_float(output)
        ]
        found: dict[int, Any] = {}
        if moving and given:
            node = ScanOp(self.flat.pulled(moving, len(inputs))).make_node(*inputs, *given)
            found = dict(zip(moving, node.outputs, strict=True))
        return [found.get(k) if k in found else grad_undefined(self, k, one) for k, one in enumerate(inputs)]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        moving = tuple(k for k, one in enumerate(tangents) if one is not None and not isinstance(one.type, DisconnectedType))
        node = ScanOp(self.flat.pushed(moving, len(inputs))).make_node(*inputs, *(tangents[k] for k in moving))
        found = iter(node.outputs)
        return [next(found) if _is_float(one) else one.zeros_like() for one in outputs]

    def R_op(self, inputs: Sequence[Any], eval_points: Sequence[Any]) -> list[Any]:
        return self.pushforward(inputs, self.make_node(*inputs).outputs, eval_points)


if not hasattr(Op, "pullback"):  # before PyTensor 3
    ScanOp.L_op = ScanOp.pullback


def _known(dim: Node) -> int | None:
    value = constant_value(dim)
    return None if value is None else int(value)


def _length(dim: Node, lengths: dict[tuple[Node, Any], Any]) -> Any:
    """A length in terms of those of the arguments. ShapeError if it cannot be expressed: PyTensor then computes the result instead."""
    known = _known(dim)
    if known is not None:
        return known
    if dim.op is DIM and (dim.inputs[0], dim.attr("axis")) in lengths:
        return lengths[dim.inputs[0], dim.attr("axis")]
    if dim.op.name in ("add", "subtract", "multiply") and len(dim.inputs) == 2:
        a, b = (_length(one, lengths) for one in dim.inputs)
        return a + b if dim.op.name == "add" else a - b if dim.op.name == "subtract" else a * b
    raise ShapeError(f"the length is {dim}")


def _is_float(variable: Any) -> bool:
    return np.dtype(variable.type.dtype).kind in "fc"


@numba_funcify.register(ScanOp)
def _as_numba(op: ScanOp, node: Any, **kwargs: Any) -> Any:
    """The op in PyTensor's Numba mode, where numbers are arrays of rank 0."""
    inputs, results, _ = op.traced(node.inputs)
    compiled: Function = function(inputs, results, name="numbascan_op", on_unused_input="ignore")
    names = [f"x{k}" for k in range(len(inputs))]
    handed = [f"np.ascontiguousarray({name})" if one.ndim else f"{name}.item()" for name, one in zip(names, inputs, strict=True)]
    returned = [f"results[{k}]" if len(results) > 1 else "results" for k in range(len(results))]
    given = [text if one.ndim else f"np.asarray({text})" for text, one in zip(returned, results, strict=True)]
    text = f"def call({', '.join(names)}):\n    results = function({', '.join(handed)})\n    return {', '.join(given)}"
    space: dict[str, Any] = {"np": np, "function": compiled.njit}
    exec(text, space)
    return numba.njit(space["call"])
