"""`wrap`: a function for JAX, as one primitive with rules for derivatives, transposes and lanes.

XLA reaches compiled code by callbacks into Python. Its other way, the FFI, calls C functions of a form of its own, for which there is no
compiler here. The primitive holds a `Flat`. Its derivative, its transpose and its lanes are the primitive with another `Flat`, so they
compose in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..front.tree import Structure, flattened, unflatten
from ..tracebacks import entry
from .flat import Flat, Kind, flat_of

CALL = Primitive("numbascan")
CALL.multiple_results = True
NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
"""The dtypes of results where JAX has no 64 bits."""


@entry
def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, a function of arrays as `ns.jit` takes it, for JAX's arrays, under `jit`, `grad`, `jvp`, `vmap`, in any order.

    Arguments and results may be nested in tuples, lists and dicts. Derivatives are `ns.vjp`'s and `ns.jvp`'s, lanes `ns.vmap`'s.
    XLA calls back into Python: arrays of the CPU are read in place, results are copied once. Without `jax_enable_x64`, results of 64 bits
    become those of 32, as elsewhere in JAX; float32 arguments are computed with as float32. `jax.config.update("jax_enable_x64", True)`
    counts for all threads, and so for callbacks; in `with jax.enable_x64(True)` a compiled call may fail with a message about dtypes.

    What `f` reads from outside must not change between a value and its derivative. Raises TypeError for a function that draws, ValueError
    for one whose results have lengths that depend on values.

    >>> import jax, numbascan as ns, numpy as np
    >>> def decay(rate, x):
    ...     return ns.scan(lambda x, y: rate * y + x, x, 0.0, return_updates=False)[-1]
    >>> smooth = ns.interop.jax.wrap(decay)
    >>> float(jax.jit(jax.grad(smooth))(0.5, np.ones(3)))
    2.0
    """
    if not callable(f):
        raise TypeError(f"ns.interop.jax.wrap takes a function, not {f!r} ({type(f).__name__})")
    known: dict[tuple[Structure, bool], Flat] = {}

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flattened((args, kwargs))
        key = structure, bool(jax.config.jax_enable_x64)
        if key not in known:
            known.setdefault(key, flat_of(f, structure, "ns.interop.jax.wrap", {} if key[1] else NARROW))
        arrays = list(map(jnp.asarray, leaves))
        _, returned = known[key].types([_kind(array) for array in arrays])
        return unflatten(returned, CALL.bind(*arrays, flat=known[key]))

    return update_wrapper(wrapped, f)


def _kind(value: Any) -> Kind:
    return value.dtype.name, tuple(value.shape)


def _types(flat: Flat, avals: Sequence[Any]) -> list[Any]:
    kinds, _ = flat.types([_kind(one) for one in avals])
    return [jax.ShapeDtypeStruct(shape, np.dtype(dtype)) for dtype, shape in kinds]


@CALL.def_abstract_eval
def _abstract(*avals: Any, flat: Flat) -> list[Any]:
    return [jax.core.ShapedArray(one.shape, one.dtype) for one in _types(flat, avals)]


@CALL.def_impl
def _run(*arrays: Any, flat: Flat) -> list[Any]:
    return [jnp.asarray(result) for result in flat(*map(np.asarray, arrays))]


def _lowered(ctx: Any, *operands: Any, flat: Flat) -> Any:
    """The call in XLA's code.

    `jax.pure_callback` would make JAX arrays of the operands first, and wait for threads that wait for it: a deadlock.
    """

    def call(*arrays: Any) -> list[Any]:
        return flat(*map(np.asarray, arrays))

    results, _, keep_alive = mlir.emit_python_callback(ctx, call, None, operands, ctx.avals_in, ctx.avals_out, has_side_effect=False)
    if keep_alive is not None:
        ctx.module_context.add_keepalive(keep_alive)
    return results


mlir.register_lowering(CALL, _lowered)


# derivatives --------------------------------------------------------------------------------------------------------------


def _tangents(primals: Sequence[Any], tangents: Sequence[Any], *, flat: Flat) -> tuple[list[Any], list[Any]]:
    results = CALL.bind(*primals, flat=flat)
    moving = tuple(k for k, one in enumerate(tangents) if _moves(one))
    tangents = [
        jnp.asarray(one, primal.dtype) if isinstance(one, (int, float, complex)) else one
        for one, primal in zip(tangents, primals, strict=True)
    ]
    moves: Any = iter([])
    if moving and all(k >= flat.n_residuals for k in moving) and flat.n_residuals:  # linear: the tangent is the function itself
        along = [ad.instantiate_zeros(one) for one in tangents[flat.n_residuals :]]
        moves = iter(CALL.bind(*primals[: flat.n_residuals], *along, flat=flat))
    elif moving:
        moves = iter(CALL.bind(*primals, *[tangents[k] for k in moving], flat=flat.pushed(moving, len(primals))))
    return results, [next(moves) if moving and _is_float(one) else ad.Zero(jax.typeof(one).to_tangent_aval()) for one in results]


ad.primitive_jvps[CALL] = _tangents


def _moves(tangent: Any) -> bool:
    return type(tangent) is not ad.Zero and getattr(tangent, "dtype", None) != jax.dtypes.float0


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _transposed(cotangents: Sequence[Any], *operands: Any, flat: Flat) -> list[Any]:
    assert flat.transpose is not None
    residuals = operands[: flat.n_residuals]
    given = [ad.instantiate_zeros(one) for one in cotangents]
    results = CALL.bind(*residuals, *given, flat=flat.transpose(len(given)))
    linear = zip(operands[flat.n_residuals :], results, strict=True)
    return [*(None for _ in residuals), *(one if ad.is_undefined_primal(operand) else None for operand, one in linear)]


ad.primitive_transposes[CALL] = _transposed


# lanes --------------------------------------------------------------------------------------------------------------------


def _in_lanes(operands: Sequence[Any], axes: Sequence[Any], *, flat: Flat) -> tuple[list[Any], list[int]]:
    (size, *_) = [operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None]
    lanes: list[Any] = []
    for k, (operand, axis) in enumerate(zip(operands, axes, strict=True)):
        if axis is not None:
            lanes.append((jnp.moveaxis(operand, axis, 0), 0))
        elif flat.n_residuals and k >= flat.n_residuals:
            lanes.append((jnp.broadcast_to(operand, (size, *operand.shape)), 0))
        else:
            lanes.append((operand, None))
    results = CALL.bind(*(operand for operand, _ in lanes), flat=flat.in_lanes(tuple(axis for _, axis in lanes)))
    return results, [0] * len(results)


batching.primitive_batchers[CALL] = _in_lanes
