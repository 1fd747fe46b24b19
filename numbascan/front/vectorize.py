"""`ns.vectorize`: a function of small arrays as a generalised ufunc, by NumPy's convention."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ops.of_shape import of_shape
from .derivatives.of_functions import Transformed
from .methods import is_function
from .numpy.shape_arguments import dim, sizes_of
from .tracing import called, parameter_names
from .transforms import Jitted, jit, mode_given_to
from .tree import flattened
from .variable import Variable, as_variable
from .vmap import vmap

Core = tuple[str, ...]
_GROUP = r"\((?:\w+(?:,\w+)*)?\)"
_GROUPS = f"{_GROUP}(?:,{_GROUP})*"
_SIGNATURE = re.compile(f"({_GROUPS})?->({_GROUPS})")


@dataclass(frozen=True)
class Signature:
    """The names of the core dimensions of each argument and of each result; digits are a fixed length."""

    text: str
    arguments: tuple[Core, ...]
    results: tuple[Core, ...]

    @staticmethod
    def of(text: Any) -> Signature:
        """ValueError for a text that is none."""
        match = _SIGNATURE.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"ns.vectorize: signature is {text!r}; write the core dimensions of arguments and results, as '(t),()->(t)'")
        arguments, results = (
            tuple(tuple(filter(None, group[1:-1].split(","))) for group in re.findall(_GROUP, part or "")) for part in match.groups()
        )
        return Signature(text, arguments, results)


def vectorize(f: Callable[..., Any] | None = None, signature: str | None = None) -> Any:
    """A generalised ufunc: `f` over all leading axes of its arguments, which broadcast.

    Arguments:
        f: a function of arrays that have the core dimensions alone; None: a decorator.
        signature: the names of the core dimensions, as '(t),()->(t)'; digits are a fixed length. None: arguments and results are scalars.

    The result takes arrays whose last axes are the core dimensions, as `dask.array.apply_gufunc` and `xarray.apply_ufunc` hand them over.
    Lanes go to the SIMD unit and to threads, as in `ns.vmap`. An argument without leading axes is the same for all. On traced values a
    leading axis counts as one of length 1 where that is known while tracing.

    Raises ValueError for a signature that cannot be read, core dimensions that are not there or differ in length, and leading axes that
    do not broadcast; TypeError for another number of arguments or results.

    >>> import numbascan as ns, numpy as np
    >>> def decay(x, rate):
    ...     return ns.scan(lambda x, y: rate * y + x, x, 0.0, return_updates=False)
    >>> smooth = ns.vectorize(decay, signature="(t),()->(t)")
    >>> smooth(np.ones((2, 1, 3)), np.array([0.5, 1.0])).shape
    (2, 2, 3)
    """
    if f is None:
        return functools.partial(vectorize, signature=signature)
    if not is_function(f):
        raise TypeError(f"ns.vectorize takes a function, not {f!r} ({type(f).__name__})")
    return Vectorized(f, signature)


class Vectorized:
    """What `ns.vectorize` makes. `__wrapped__` is the function of core arrays, `signature` the text."""

    def __init__(self, f: Callable[..., Any], signature: str | None = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self.signature = signature
        self._parsed = None if signature is None else Signature.of(signature)
        self._lanes: dict[tuple[int | None, ...], Jitted] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Vectorized:
        if instance is not None:
            raise TypeError(f"{self!r} stands in a class, and makes no methods; write ns.vectorize(x.{self._name}, …) for an object x")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.__wrapped__, self.signature)

    def __repr__(self) -> str:
        return f"ns.vectorize({self._name}, {self.signature!r})"

    @property
    def _name(self) -> str:
        return str(getattr(self.__wrapped__, "__name__", "function"))

    def __call__(self, *args: Any) -> Any:
        signature = self._checked(len(args))
        if any(isinstance(leaf, Variable) for leaf in flattened(args)[0]):
            return self._traced(signature, [as_variable(one) for one in args])
        shape, axes, lanes = self._in_lanes(signature, args)
        returned = self._over(signature, axes)(*lanes)
        results = returned if len(signature.results) > 1 else (returned,)
        has_lanes = any(axis is not None for axis in axes)
        whole = tuple(one.reshape(*shape, *one.shape[1:]) if has_lanes else one for one in results)
        return whole if len(signature.results) > 1 else whole[0]

    def lower(self, *args: Any) -> Jitted:
        """Compiles for such arguments without running; what is compiled tells its `.source()`, `.graph` and `.memory()`."""
        signature = self._checked(len(args))
        _, axes, lanes = self._in_lanes(signature, args)
        return self._over(signature, axes).lower(*lanes)

    def _in_lanes(self, signature: Signature, args: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int | None, ...], list[Any]]:
        """The leading axes of the results; the axis of lanes of each argument, None where it has none; the arguments with one such axis."""
        arrays = [np.asarray(one) for one in args]
        ranks = self._leading(signature, arrays)
        self._check_lengths(signature, [one.shape for one in arrays])
        leading = [one.shape[:rank] for one, rank in zip(arrays, ranks, strict=True)]
        try:
            shape = np.broadcast_shapes(*leading)
        except ValueError:
            raise ValueError(f"{self!r}: the leading axes {' and '.join(map(str, leading))} do not broadcast") from None
        lanes = [
            np.broadcast_to(one, (*shape, *one.shape[rank:])).reshape(math.prod(shape), *one.shape[rank:]) if rank else one
            for one, rank in zip(arrays, ranks, strict=True)
        ]
        return shape, tuple(0 if rank else None for rank in ranks), lanes

    def _checked(self, n: int) -> Signature:
        """The signature. TypeError for another number of arguments."""
        signature = self._parsed or Signature("", ((),) * n, ((),))
        if n != len(signature.arguments):
            raise TypeError(f"{self!r} takes {len(signature.arguments)} arguments, but {n} were given")
        return signature

    def _leading(self, signature: Signature, arrays: Sequence[Any]) -> list[int]:
        """How many axes each argument has in front of its core dimensions."""
        names = parameter_names(self.__wrapped__, len(arrays))
        for one, core, name in zip(arrays, signature.arguments, names, strict=True):
            if one.ndim < len(core):
                raise ValueError(f"{self!r}: {name} has {one.ndim} axes, but the core dimensions ({', '.join(core)}); give it more axes")
        return [one.ndim - len(core) for one, core in zip(arrays, signature.arguments, strict=True)]

    def _check_lengths(self, signature: Signature, shapes: Sequence[tuple[Any, ...]]) -> None:
        """ValueError where two lengths of one core dimension are known and differ."""
        known: dict[str, tuple[Any, str]] = {}
        names = parameter_names(self.__wrapped__, len(shapes))
        for shape, core, name in zip(shapes, signature.arguments, names, strict=True):
            for label, length in zip(core, shape[len(shape) - len(core) :], strict=True):
                wanted, whose = known.setdefault(label, (int(label), "the signature") if label.isdigit() else (length, name))
                if isinstance(wanted, int) and isinstance(length, int) and wanted != length:
                    raise ValueError(f"{self!r}: {label} is {length} in {name}, but {wanted} in {whose}; give one length")

    def _over(self, signature: Signature, axes: tuple[int | None, ...]) -> Jitted:
        """The compiled function for arguments with and without lanes."""
        known = self._lanes.get(axes)
        if known is None:
            core, mode = _OnCore(self.__wrapped__, signature=signature, label=repr(self)), mode_given_to(self.__wrapped__)
            over = vmap(core, in_axes=axes) if any(axis is not None for axis in axes) else core
            known = self._lanes.setdefault(axes, jit(over, mode=mode))
        return known

    def _traced(self, signature: Signature, args: Sequence[Variable]) -> Any:
        """On variables: a loop over lanes for each leading axis, the outermost first."""
        ranks = self._leading(signature, args)
        self._check_lengths(signature, [one.type.shape for one in args])
        outermost = max(ranks, default=0)
        if not outermost:
            return _OnCore(self.__wrapped__, signature=signature, label=repr(self))(*self._of_one_length(signature, args))
        is_long = any(rank == outermost and one.type.shape[0] != 1 for one, rank in zip(args, ranks, strict=True))
        inner: list[Any] = [
            one[0] if is_long and rank == outermost and one.type.shape[0] == 1 else one for one, rank in zip(args, ranks, strict=True)
        ]
        axes = tuple(0 if one.ndim - len(core) == outermost else None for one, core in zip(inner, signature.arguments, strict=True))
        return vmap(self, in_axes=axes)(*inner)

    def _of_one_length(self, signature: Signature, args: Sequence[Variable]) -> list[Variable]:
        """The arguments, core dimensions of one name in one length: ValueError when it runs."""
        sizes: dict[str, Any] = {}
        held: list[Variable] = []
        for one, core, name in zip(args, signature.arguments, parameter_names(self.__wrapped__, len(args)), strict=True):
            what = f"{self!r}: {name}"
            wanted = [sizes.setdefault(label, int(label) if label.isdigit() else dim(one, axis)) for axis, label in enumerate(core)]
            held.append(Variable(of_shape(one.node, sizes_of(tuple(wanted), what), what)))
        return held


class _OnCore(Transformed):
    """The function of core arrays, its results held against the signature."""

    what = "ns.vectorize"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        signature, label = self.options["signature"], self.options["label"]
        returned = called(self.__wrapped__, args, kwargs)
        results = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        if len(results) != len(signature.results):
            raise TypeError(
                f"{label}: {self.__wrapped__.__name__} returns {len(results)} results; the signature has {len(signature.results)}"
            )
        sizes: dict[str, Any] = {}
        for one, core in zip(map(as_variable, args), signature.arguments, strict=True):
            for k, name in enumerate(core):
                sizes.setdefault(name, int(name) if name.isdigit() else dim(one, k))
        held = [self._held(as_variable(one), core, k, sizes) for k, (one, core) in enumerate(zip(results, signature.results, strict=True))]
        return tuple(held) if len(held) > 1 else held[0]

    def _held(self, result: Variable, core: Core, k: int, sizes: dict[str, Any]) -> Variable:
        """A result, which has the core dimensions; those that an argument has, in its length."""
        what = f"{self.options['label']}: result {k}"
        if result.ndim != len(core):
            raise ValueError(f"{what} is {result.type.strong()}; the signature has the dimensions ({', '.join(core)})")
        for axis, name in enumerate(core):
            sizes.setdefault(name, int(name) if name.isdigit() else dim(result, axis))
        return Variable(of_shape(result.node, sizes_of(tuple(sizes[name] for name in core), what), what))
