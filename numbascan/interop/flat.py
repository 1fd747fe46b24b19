"""Flat functions, which other packages can call: arrays to arrays, with derivatives of the same form.

A derivative is such a function itself, so it has derivatives and lanes, too. Each is compiled at its first call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..compile import remember
from ..front.captures.guards import Guards
from ..front.constructors import tensor
from ..front.derivatives.of_functions import Transformed, jvp, vjp
from ..front.draw_scopes import no_draws
from ..front.tracing import called
from ..front.transforms import Jitted, jit, mode_given_to
from ..front.tree import Structure, flattened, unflatten
from ..front.variable import Variable, as_variable
from ..front.vmap import vmap
from ..ir.graph import close, free_inputs
from ..ir.node import Node, constant_value
from ..ops.algebra import dims_of, is_float

Kind = tuple[str, tuple[int, ...]]
"""The dtype and the shape of an array."""


class Flat:
    """A function of arrays. A call returns the results as a list.

    name: for messages.
    n_residuals: the number of first arguments in which a derivative is not linear; 0 for a function that is no derivative.
    transpose: number of results -> the transposed function: (the residuals, a cotangent for each result) -> a cotangent for each argument
    in which this one is linear.
    """

    def __init__(self, compiled: Jitted, name: str, n_residuals: int = 0, transpose: Callable[[int], Flat] | None = None) -> None:
        self.compiled, self.name, self.n_residuals, self.transpose = compiled, name, n_residuals, transpose
        self._known: dict[Any, Flat] = {}
        self._types: dict[tuple[Kind, ...], tuple[Guards, tuple[list[Kind], Structure]]] = {}

    def __repr__(self) -> str:
        return self.name

    def traced(self, types: Sequence[tuple[str, tuple[int | None, ...]]]) -> tuple[list[Variable], list[Variable], Structure]:
        """Variables of these dtypes and shapes, the results for them, and the structure of the results."""
        inputs = [tensor(dtype, shape=shape) for dtype, shape in types]
        leaves, structure = flattened(self.compiled(*inputs))
        return inputs, list(map(as_variable, leaves)), structure

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in flattened(self.compiled(*arrays))[0]]

    def types(self, kinds: Sequence[Kind]) -> tuple[list[Kind], Structure]:
        """The dtypes and shapes of the results for such arguments, and their structure. ValueError if a length depends on values."""
        key = tuple(kinds)
        guards, types = self._types.get(key, (None, None))
        if guards is None or types is None or not guards.hold():
            guards = Guards(self.compiled.__wrapped__)
            inputs, results, structure = self.traced(kinds)
            lengths = closed_dims(inputs, results)[1]
            types = [self._kind(result, dims, k) for k, (result, dims) in enumerate(zip(results, lengths, strict=True))], structure
            remember(self._types, key, (guards, types))
        return types

    def _kind(self, result: Variable, dims: Sequence[Node], k: int) -> Kind:
        lengths = [constant_value(dim) for dim in dims]
        shape = tuple([int(length) for length in lengths if length is not None])
        if len(shape) < len(lengths):
            raise ValueError(
                f"{self.name}: the length of result {k} depends on values, and other packages ask for it before anything runs; let the "
                "function return a fixed part, such as the last row"
            )
        return result.type.dtype, shape

    def pushed(self, moving: tuple[int, ...], count: int) -> Flat:
        """(the arguments, tangents of those that move) -> tangents of the real and complex results. count: the number of arguments."""
        return self._derived(_Pushed, moving, count)

    def pulled(self, moving: tuple[int, ...], count: int) -> Flat:
        """(the arguments, cotangents of the real and complex results) -> cotangents of the arguments that move."""
        return self._derived(_Pulled, moving, count)

    def _derived(self, cls: type[Transformed], moving: tuple[int, ...], count: int, n_results: int = 0) -> Flat:
        key = cls, moving
        if key not in self._known:
            compiled = jit(cls(self.compiled, moving=moving, count=count), mode=mode_given_to(self.compiled))
            other = _Pulled if cls is _Pushed else _Pushed
            transpose = partial(self._derived, other, moving, count)
            self._known.setdefault(key, Flat(compiled, f"the derivative of {self.name}", count, transpose))
        return self._known[key]

    def in_lanes(self, axes: tuple[int | None, ...]) -> Flat:
        """The function of many lanes, along axis 0 in the results. All arguments in which it is linear must have lanes."""
        if axes not in self._known:
            transpose = self.transpose and partial(self._lanes_back, axes)
            lanes = Flat(vmap(self.compiled, in_axes=axes), self.name, self.n_residuals, transpose)
            self._known.setdefault(axes, lanes)
        return self._known[axes]

    def _lanes_back(self, axes: tuple[int | None, ...], n_results: int) -> Flat:
        assert self.transpose is not None
        return self.transpose(n_results).in_lanes((*axes[: self.n_residuals], *(0,) * n_results))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}, "_types": {}}


def closed_dims(inputs: Sequence[Variable], results: Sequence[Variable]) -> tuple[Sequence[Node], list[Sequence[Node]]]:
    """The arguments of a closed graph of `results`, and the dimensions of its results, in terms of the arguments where possible."""
    nodes = [one.node for one in results]
    known = [one.node for one in inputs]
    graph = close([*known, *free_inputs(nodes, bound=known)], nodes)
    return graph.inputs[: len(known)], [dims_of(output) for output in graph.outputs]


def flat_of(f: Callable[..., Any], structure: Structure, what: str, dtypes: Mapping[str, str] | None = None) -> Flat:
    """`f`, called with the nest `structure` of (args, kwargs), as a function of its leaves.

    what: the name of the bridge. dtypes: dtypes of results that the other package lacks, and their replacements.
    """
    leaves = _Leaves(f, structure=structure, bridge=what, dtypes=tuple((dtypes or {}).items()))
    return Flat(jit(leaves, mode=mode_given_to(f)), f"{what}({leaves.__name__})")


class _Leaves(Transformed):
    """A function of the leaves of its arguments. It must not draw: a value and its derivative would see different numbers."""

    def __call__(self, *leaves: Any, **kwargs: Any) -> Any:
        args, keywords = unflatten(self.options["structure"], leaves)
        with no_draws(f"a function of {self.options['bridge']}"):
            returned = called(self.__wrapped__, args, keywords)
        results, structure = flattened(returned)
        dtypes = dict(self.options["dtypes"])
        return unflatten(structure, [_of_dtype(as_variable(one), dtypes) for one in results])


def _of_dtype(value: Variable, dtypes: Mapping[str, str]) -> Any:
    dtype = value.type.dtype
    return value.astype(dtypes.get(dtype, dtype))


class _Pushed(Transformed):
    """Tangents of the real and complex results."""

    what = "ns.jvp"

    def __call__(self, *operands: Any, **kwargs: Any) -> Any:
        count, moving = self.options["count"], self.options["moving"]
        tangents: list[Any] = [None] * count
        for place, tangent in zip(moving, operands[count:], strict=True):
            tangents[place] = tangent
        values, moves = jvp(self.__wrapped__, operands[:count], tangents)
        pairs = zip(flattened(values)[0], flattened(moves)[0], strict=True)
        return tuple([move for value, move in pairs if is_float(as_variable(value).type)])


class _Pulled(Transformed):
    """Cotangents of the arguments that move."""

    what = "ns.vjp"

    def __call__(self, *operands: Any, **kwargs: Any) -> Any:
        count, moving = self.options["count"], self.options["moving"]
        args, cotangents = operands[:count], iter(operands[count:])

        def of_moving(*moved: Any) -> Any:
            given = dict(zip(moving, moved, strict=True))
            return self.__wrapped__(*[given.get(k, arg) for k, arg in enumerate(args)])

        value, pull = vjp(of_moving, *[args[k] for k in moving])
        leaves, structure = flattened(value)
        nest = unflatten(structure, [next(cotangents) if is_float(as_variable(leaf).type) else leaf for leaf in leaves])
        return tuple(pull(nest))
