"""`function`: a function for torch, as one custom op with rules for derivatives, lanes and `torch.compile`.

The op takes tensors and the number of a `Flat`. Its derivative and its lanes are the op with the number of another `Flat`, so they compose
in any order. CPU tensors share their memory with the arrays that compiled code reads, and results with the arrays that it made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np
import torch

from ..front.tree import Structure, flattened, unflatten
from ..tracebacks import entry
from .flat import Flat, Kind, flat_of

NAME = "numbascan::call"
_flats: list[Flat] = []
_numbers: dict[Flat, int] = {}


@entry
def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, a function of arrays as `ns.jit` takes it, for torch's tensors: differentiable to any order, under `torch.func.vmap` and
    `torch.compile`.

    Arguments and results may be nested in tuples, lists and dicts; numbers are taken as tensors. Tensors lie on the CPU. They are read
    in place, and results are not copied. Derivatives are `ns.vjp`'s, lanes `ns.vmap`'s.

    What `f` reads from outside must not change between a value and its derivative. Raises TypeError for a function that draws, and for
    tensors on other devices or of dtypes that NumPy lacks; ValueError for results whose lengths depend on values.

    >>> import numbascan as ns, torch
    >>> def decay(rate, x):
    ...     return ns.scan(lambda x, y: rate * y + x, x, 0.0, return_updates=False)[-1]
    >>> smooth = ns.interop.torch.function(decay)
    >>> rate = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    >>> smooth(rate, torch.ones(3, dtype=torch.float64)).backward()
    >>> float(rate.grad)
    2.0
    """
    if not callable(f):
        raise TypeError(f"ns.interop.torch.function takes a function, not {f!r} ({type(f).__name__})")
    known: dict[Structure, int] = {}

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flattened((args, kwargs))
        if structure not in known:
            known.setdefault(structure, _number(flat_of(f, structure, "ns.interop.torch.function")))
        tensors = [leaf if isinstance(leaf, torch.Tensor) else torch.as_tensor(leaf) for leaf in leaves]
        number = known[structure]
        if torch.compiler.is_compiling():
            results = _call(tensors, number)
        else:
            results = _Function.apply(number, *tensors)
        return unflatten(_flats[number].types(_kinds(tensors))[1], results)

    return torch._dynamo.nonstrict_trace(update_wrapper(wrapped, f))


def _number(flat: Flat) -> int:
    """The number that stands for a function in the op."""
    if flat not in _numbers:
        _flats.append(flat)
        _numbers[flat] = len(_flats) - 1
    return _numbers[flat]


def _kinds(tensors: Sequence[torch.Tensor]) -> list[Kind]:
    return [(str(one.dtype).removeprefix("torch."), tuple(map(int, one.shape))) for one in tensors]


def _run(tensors: Sequence[torch.Tensor], number: int) -> list[torch.Tensor]:
    return [torch.from_numpy(result) for result in _flats[number](*map(_array, tensors))]


def _array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise TypeError(f"ns.interop.torch.function takes tensors of the CPU, not of {tensor.device}; write x.cpu()")
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def _backwards(number: int, needed: Sequence[bool], n_arguments: int) -> tuple[tuple[int, ...], int]:
    """The arguments that get a cotangent, and the number of the function that computes these."""
    moving = tuple(k for k, is_needed in enumerate(needed) if is_needed)
    return moving, _number(_flats[number].pulled(moving, n_arguments))


def _moves(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


# where torch runs operation by operation ----------------------------------------------------------------------------------


class _Function(torch.autograd.Function):
    """A call, with the number of a function, then tensors. torch.func differentiates autograd functions, but no custom ops."""

    @staticmethod
    def forward(number: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(_run(tensors, number))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.number, *tensors = inputs
        ctx.are_float = list(map(_moves, output))
        ctx.mark_non_differentiable(*(one for one in output if not _moves(one)))
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        given = [one for one, is_float in zip(cotangents, ctx.are_float, strict=True) if is_float]
        moving, number = _backwards(ctx.number, ctx.needs_input_grad[1:], len(tensors))
        found = dict(zip(moving, _Function.apply(number, *tensors, *given), strict=True))
        return (None, *(found.get(k) for k in range(len(tensors))))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        moving = tuple(k for k, one in enumerate(tangents[1:]) if one is not None)
        number = _number(_flats[ctx.number].pushed(moving, len(tensors)))
        found = iter(_Function.apply(number, *tensors, *(tangents[1:][k] for k in moving)))
        return tuple([next(found) if is_float else None for is_float in ctx.are_float])

    @staticmethod
    def vmap(info: Any, in_dims: Any, number: int, *tensors: torch.Tensor) -> tuple[Any, Any]:
        results = _Function.apply(_number(_flats[number].in_lanes(tuple(in_dims[1:]))), *tensors)
        return results, (0,) * len(results)


# where torch compiles -----------------------------------------------------------------------------------------------------


@torch.library.custom_op(NAME, mutates_args=())
def _call(tensors: Sequence[torch.Tensor], number: int) -> list[torch.Tensor]:
    return _run(tensors, number)


@_call.register_fake
def _fake(tensors: Sequence[torch.Tensor], number: int) -> list[torch.Tensor]:
    kinds, _ = _flats[number].types(_kinds(tensors))
    return [torch.empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in kinds]


def _set_up(ctx: Any, inputs: Any, output: Any) -> None:
    tensors, ctx.number = inputs
    ctx.are_float = list(map(_moves, output))
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, cotangents: Sequence[Any]) -> tuple[Any, None]:
    tensors = ctx.saved_tensors
    given = [one for one, is_float in zip(cotangents, ctx.are_float, strict=True) if is_float]
    moving, number = _backwards(ctx.number, ctx.needs_input_grad[0], len(tensors))
    found = dict(zip(moving, _call([*tensors, *given], number), strict=True))
    return [found.get(k) for k in range(len(tensors))], None


_call.register_autograd(_backward, setup_context=_set_up)


@_call.register_vmap
def _in_lanes(info: Any, in_dims: Any, tensors: Sequence[torch.Tensor], number: int) -> tuple[Any, Any]:
    results = _call(list(tensors), _number(_flats[number].in_lanes(tuple(in_dims[0]))))
    return results, [0] * len(results)
