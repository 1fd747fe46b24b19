"""`ns.external`: a function that the user compiled with Numba, called in steps and in functions of arrays.

It is one opaque node of the graph. Numba infers the types of its results from the dtypes and ranks of its arguments. Its derivative is a
rule of the user's, as in `ns.custom_vjp`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..emit.cache import jit_is_off
from ..errors import GlobalDrawError
from ..ir.node import Node, outputs_of
from ..ops.algebra import cast, dims_of
from ..ops.card import at_line
from ..ops.external import call_external
from ..tracebacks import entry, with_entries
from .derivatives.custom_vjp import CustomVjp
from .numpy.shape_arguments import sizes_of
from .tracing import describe, name_in_module
from .tree import flattened
from .variable import Variable, as_variable


@entry
def external(f: Any = None, vjp: Callable[..., Any] | None = None, jvp: Callable[..., Any] | None = None, *, shape: Any = None) -> Any:
    """`f`, which Numba compiled, as a function that steps and functions of arrays may call. None: a decorator, above `@njit`.

    Arguments:
        f: what `numba.njit` makes. It takes numbers and arrays, and returns a number, an array of one axis or more, or a tuple of these. It
            must be a function of its arguments alone, and must not write into them.
        vjp: its derivative for reverse mode. `vjp(*args, *cotangents)` returns a tuple of one cotangent for each argument, None for zero
            (of one argument also the cotangent alone). Of several results it takes the cotangent of each, one after the other.
        jvp: its derivative for forward mode. `jvp(*args, *tangents)` returns the tangent of the result, of several a tuple.
        shape: the shape of an array that `f` returns: a tuple, or a function of the arguments that gives one; of several results a list of
            these, None for numbers. None: that of the first argument with as many axes. Held against what `f` returns, at every call.

    `vjp` and `jvp` are ordinary functions, or compiled by Numba as well. Without them a derivative raises NullGradientError.

    Called on arrays and numbers it is `f` itself. Otherwise Numba finds the dtypes of the results from those of the arguments, arrays come
    in C order, and `f` is compiled once more, with the globals that it reads at that time. Kernels with it are kept on disk where all that
    it reads can be told (the guide lists what). It runs wherever it may be needed, and as often: lanes, threads, recomputed steps. Options
    given to `njit` hold, but for `parallel`: it runs in the thread that calls it.

    Under `mode="cuda"` each thread of a GPU calls it. There it must return numbers, take no memory, not call itself, and raise nothing:
    what divides needs `@njit(error_model="numpy")`, since x / 0 would be no error on a GPU. Of the options `fastmath=True` holds.

    Raises TypeError where Numba does not compile it for such arguments, ValueError where a result has another shape, GlobalDrawError where
    it draws random numbers, NotImplementedError in exported modules, and under `mode="cuda"` for what no GPU can do.

    >>> import numba, numpy as np, numbascan as ns
    >>> @numba.njit
    ... def kepler(mean, eccentricity):  # the anomaly E with E - e sin(E) = M
    ...     e = mean
    ...     for _ in range(50):
    ...         e -= (e - eccentricity * np.sin(e) - mean) / (1 - eccentricity * np.cos(e))
    ...     return e
    >>> def slopes(mean, eccentricity, g):
    ...     e = anomaly(mean, eccentricity)
    ...     slope = g / (1 - eccentricity * np.cos(e))
    ...     return slope, slope * np.sin(e)
    >>> anomaly = ns.external(kepler, vjp=slopes)
    >>> ns.map(lambda m: anomaly(m, 0.3), np.array([0.5, 1.0, 1.5]), return_updates=False)
    array([0.6913, 1.2881, 1.7926])
    >>> ns.grad(anomaly)(0.5, 0.3)
    array(1.3006)
    """
    if f is None:
        return functools.partial(external, vjp=vjp, jvp=jvp, shape=shape)
    for name, rule in (("vjp", vjp), ("jvp", jvp)):
        if rule is not None and not callable(rule):
            raise TypeError(f"ns.external: {name} must be a function, not {rule!r} ({type(rule).__name__})")
    if not _is_compiled(f):
        if inspect.isfunction(f):
            if jit_is_off():
                raise TypeError("ns.external calls compiled code, and Numba is told to compile nothing (NUMBA_DISABLE_JIT); unset that")
            raise TypeError(f"ns.external takes what numba.njit makes, and {describe(f)} is not compiled; put @numba.njit above it")
        raise TypeError(f"ns.external takes what numba.njit makes, not {f!r} ({type(f).__name__})")
    return External(f, vjp, jvp, shape)


@with_entries(("__call__",))
class External:
    """A function that `ns.external` made. `__wrapped__` is the function as Numba compiled it."""

    def __init__(self, f: Any, vjp: Any = None, jvp: Any = None, shape: Any = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__, self.__name__ = f, str(f.py_func.__name__)
        self.vjp, self.jvp, self.shape = vjp, jvp, shape
        self.options = (vjp, jvp, shape)  # `captures` looks here for the user's functions
        self.ruled = None if vjp is None and jvp is None else _Ruled(self)

    def __repr__(self) -> str:
        return f"ns.external({self.__name__})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(leaf, Variable) or _holds_variables(leaf) for leaf in flattened((args, kwargs))[0]):
            return self.__wrapped__(*args, **kwargs)
        return (self.ruled or self.node)(*self._positional(args, kwargs))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        bound = inspect.signature(self.__wrapped__.py_func).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def node(self, *args: Any) -> Any:
        """The results of a call without a derivative, as variables."""
        from ..emit.runtime.routines import externals

        variables = [
            self._operand(one, name) for one, name in zip(args, inspect.signature(self.__wrapped__.py_func).parameters, strict=False)
        ]
        operands = [cast(one.node, one.type.dtype) for one in variables]
        try:
            foreign = externals.compiled(self.__wrapped__, tuple((node.type.dtype, node.type.rank) for node in operands))
        except externals.Draws as error:
            raise GlobalDrawError(
                f"ns.external: {self.__name__} draws random numbers ({error}){at_line()}, and runs as often as it is needed; draw from a "
                "nt.random.RandomStream, and pass the numbers"
            ) from None
        except TypeError as error:
            raise TypeError(f"{error}{at_line()}") from error.__cause__
        call = call_external(foreign, operands, self._shapes(foreign.results, variables))
        results = iter(map(Variable, outputs_of(call)))
        values = tuple([next(results) if is_there else None for is_there in foreign.places])
        return values if foreign.is_tuple else values[0]

    def _operand(self, value: Any, name: str) -> Variable:
        """An argument as a variable. TypeError for a nest or a string."""
        leaves, _ = flattened(value)
        if len(leaves) != 1 or leaves[0] is not value or isinstance(value, str):
            raise TypeError(f"ns.external: {self.__name__} takes numbers and arrays, and {name} is {value!r}{at_line()}; pass its parts")
        return as_variable(value)

    def _shapes(self, kinds: Sequence[tuple[str, int]], operands: Sequence[Variable]) -> list[Sequence[int | Node]]:
        """The shape of each result."""
        given = list(self.shape) if isinstance(self.shape, list) else [self.shape] * min(len(kinds), 1)
        if self.shape is None:
            given = [None] * len(kinds)
        if len(given) != len(kinds):
            raise ValueError(
                f"ns.external: {self.__name__} returns {len(kinds)} results, and shape= says {len(given)}; give a list of as many"
            )
        return [self._shape(shape, rank, operands) for shape, (_, rank) in zip(given, kinds, strict=True)]

    def _shape(self, shape: Any, rank: int, operands: Sequence[Variable]) -> Sequence[int | Node]:
        if shape is None:
            if not rank:
                return ()
            like = next((one for one in operands if one.ndim == rank), None)
            if like is None:
                raise TypeError(
                    f"ns.external: {self.__name__} returns an array of {rank} axes, and no argument has as many{at_line()}; give its "
                    "shape by shape=, a tuple or a function of the arguments"
                )
            return dims_of(like.node)
        value = shape(*operands) if callable(shape) else shape
        sizes = sizes_of(value, f"ns.external: the shape of {self.__name__}")
        if len(sizes) != rank:
            raise ValueError(f"ns.external: {self.__name__} returns an array of {rank} axes, and shape= says {len(sizes)}{at_line()}")
        return list(sizes)

    def __reduce__(self) -> Any:
        return name_in_module(self) or (External, (self.__wrapped__, self.vjp, self.jvp, self.shape))


def _is_compiled(f: Any) -> bool:
    return hasattr(f, "py_func") and hasattr(f, "targetoptions")


def _holds_variables(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.hasobject


# derivatives --------------------------------------------------------------------------------------------------------------


class _Ruled(CustomVjp):
    """A function of `ns.external` that has derivatives, as ns.custom_vjp makes one."""

    def __init__(self, f: External) -> None:
        self.external = f
        super().__init__(_new_call(f))
        if f.vjp is not None:
            self.defvjp(*_new_rule(f))
        if f.jvp is not None:
            self.jvp = _traceable(f.jvp)

    def __reduce__(self) -> Any:
        return _ruled, (self.external,)


def _ruled(f: External) -> _Ruled | None:
    return f.ruled


def _new_call(f: External) -> Callable[..., Any]:
    @functools.wraps(f.__wrapped__)
    def call(*args: Any) -> Any:
        return f.node(*args)

    return call


def _new_rule(f: External) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The rule `vjp` as fwd and bwd of ns.custom_vjp."""
    rule = _traceable(f.vjp)

    def fwd(*args: Any) -> Any:
        return f.node(*args), args

    @functools.wraps(f.vjp)
    def bwd(args: tuple[Any, ...], cotangent: Any) -> Any:
        found = rule(*args, *(cotangent if isinstance(cotangent, tuple) else (cotangent,)))
        return (found,) if len(args) == 1 and not isinstance(found, (tuple, list)) else found

    return fwd, bwd


def _traceable(rule: Any) -> Any:
    """A derivative rule as a function of variables."""
    return External(rule) if _is_compiled(rule) else rule
