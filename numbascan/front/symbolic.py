"""PyTensor's conveniences for variables: `x.eval(…)`, their value at once, and `nt.vectorize`, functions of one element on many."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.graph import free_inputs
from ..ops.of_shape import of_shape
from ..tracebacks import entries
from .function import function
from .numpy.creation import zeros
from .numpy.shape import broadcast_sizes, broadcast_to, reshape
from .numpy.shape_arguments import count_of, shape_of, sizes_of
from .shared import shared_of
from .variable import Variable, as_variable, implements
from .vmap import vmap


@implements(method="eval")
def evaluated(x: Variable, inputs_to_values: Mapping[Any, Any] | None = None, **options: Any) -> Any:
    """The value of `x`: `x.eval({y: 2.0})`. For one look; a function that is called often is made once, by ns.function.

    Arguments: inputs_to_values, the values of the inputs, by variable or by name; options, as for ns.function (mode=…).

    Raises MissingInputError for an input without a value, ValueError for a name that no input has, or several have.

    >>> import numbascan.tensor as nt
    >>> y = nt.dvector("y")
    >>> (2 * y).eval({"y": [1.0, 2.0]})
    array([2., 4.])
    """
    values = dict(inputs_to_values or {})
    inputs = [_named(key, x) if isinstance(key, str) else key for key in values]
    return function(inputs, x, **options)(*values.values())


def _named(name: str, x: Variable) -> Variable:
    """The one input of x that is called `name`. ValueError if there is none, or more than one."""
    names = [node.name for node in free_inputs([x.node]) if shared_of(node) is None]
    if names.count(name) != 1:
        raise ValueError(f"x.eval: {names.count(name)} inputs are named {name!r}, of {names}; give the variable itself as the key")
    return next(Variable(node) for node in free_inputs([x.node]) if node.name == name and shared_of(node) is None)


def vectorize(func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
    """`func`, a function of single elements, for arrays that broadcast; with a signature a function of vectors, matrices, ….

    Arguments:
        func: takes and gives variables.
        signature: the axes that `func` sees, by NumPy's convention: "(m,n),(n)->(m)". The axes before these are lanes, as for ns.vmap.

    Raises ValueError for a signature that cannot be read, for arguments and results that do not have its axes.

    >>> import numbascan.tensor as nt
    >>> distance = nt.vectorize(lambda x, y: nt.sqrt(((x - y) ** 2).sum()), "(n),(n)->()")
    >>> distance(nt.dmatrix("x"), nt.dvector("y")).ndim
    1
    """
    cores, results = (None, None) if signature is None else _parsed(signature)

    def vectorized(*args: Any) -> Any:
        operands = [as_variable(arg) for arg in args]
        if cores is not None:
            operands = _with_axes(operands, cores, str(signature))
        ranks = [x.ndim - (len(cores[k]) if cores is not None else 0) for k, x in enumerate(operands)]
        batch = broadcast_sizes([zeros(shape_of(x)[:rank]) for x, rank in zip(operands, ranks, strict=True)])
        if not batch:
            return func(*operands)
        lanes = [_lanes(x, rank, batch) if rank else x for x, rank in zip(operands, ranks, strict=True)]
        found = vmap(func, in_axes=tuple(0 if rank else None for rank in ranks))(*lanes)
        every = found if isinstance(found, tuple | list) else (found,)
        if results is not None and [x.ndim - 1 for x in every] != results:
            raise ValueError(
                f"nt.vectorize: the results have {[x.ndim - 1 for x in every]} axes, the signature {signature!r} says {results}"
            )
        apart = [reshape(x, (*batch, *shape_of(x)[1:])) for x in every]
        return type(found)(apart) if isinstance(found, tuple | list) else apart[0]

    return vectorized


def _parsed(signature: str) -> tuple[list[list[str]], list[int]]:
    """The names of each argument's axes, and the number of axes of each result."""
    name, group = r"\s*\w+\s*", r"\s*\(([^()]*)\)\s*"
    core = rf"\s*\((?:{name}(?:,{name})*|\s*)\)\s*"
    if not re.fullmatch(rf"(?:{core}(?:,{core})*)?->{core}(?:,{core})*", signature):
        raise ValueError(f"nt.vectorize: the signature {signature!r} cannot be read; write it as in '(m,n),(n)->(m)'")
    arguments, results = ([re.findall(r"\w+", part) for part in re.findall(group, side)] for side in signature.split("->"))
    return arguments, [len(names) for names in results]


def _with_axes(operands: Sequence[Variable], cores: Sequence[Sequence[str]], signature: str) -> list[Variable]:
    """The arguments, checked to have one length along axes of one name: the run checks what is not known now."""
    if len(operands) != len(cores):
        raise ValueError(f"nt.vectorize: {len(operands)} arguments are given, the signature {signature!r} has {len(cores)}")
    lengths: dict[str, Any] = {}
    fitting = []
    for k, (x, names) in enumerate(zip(operands, cores, strict=True)):
        if x.ndim < len(names):
            raise ValueError(f"nt.vectorize: argument {k} ({x.type}) has fewer axes than the signature {signature!r} says")
        sizes = shape_of(x)
        rank = x.ndim - len(names)
        own = [lengths.setdefault(name, size) for name, size in zip(names, sizes[rank:], strict=True)]
        fitting.append(Variable(of_shape(x.node, sizes_of((*sizes[:rank], *own), "shape"), f"nt.vectorize: argument {k}")))
    return fitting


def _lanes(x: Variable, rank: int, batch: tuple[Any, ...]) -> Variable:
    """x with its first `rank` axes broadcast to `batch` and merged into one."""
    core = shape_of(x)[rank:]
    return reshape(broadcast_to(x, (*batch, *core)), (count_of(batch), *core))


__all__ = ["vectorize"]

entries(globals(), __all__)
