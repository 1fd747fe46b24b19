"""`ns.vectorize`: a function of small arrays as a generalised ufunc, by NumPy's convention."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ops.of_shape import of_shape
from ..tracebacks import entry, with_entries
from ..types import show_shape
from .derivatives.of_functions import Transformed
from .methods import is_function
from .numpy.creation import arange
from .numpy.shape_arguments import count_of, dim, shape_of, sizes_of
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
    """The core dimensions of each argument and each result, by name; digits are a fixed length."""

    text: str
    arguments: tuple[Core, ...]
    results: tuple[Core, ...]

    @staticmethod
    def of(text: Any) -> Signature:
        """The signature that a text describes. ValueError if it describes none."""
        match = _SIGNATURE.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f"ns.vectorize: signature is {text!r}; write the core dimensions of arguments and results, as '(t),()->(t)'")
        arguments, results = (
            tuple(tuple(filter(None, group[1:-1].split(","))) for group in re.findall(_GROUP, part or "")) for part in match.groups()
        )
        return Signature(text, arguments, results)


@entry
def vectorize(f: Callable[..., Any] | None = None, signature: str | None = None) -> Any:
    """A generalised ufunc: `f` over all leading axes of its arguments, which broadcast.

    Arguments:
        f: a function of arrays that have the core dimensions alone; None: a decorator.
        signature: the names of the core dimensions, as '(t),()->(t)'; digits are a fixed length. None: arguments and results are scalars.

    The result takes arrays whose last axes are the core dimensions, as `dask.array.apply_gufunc` and `xarray.apply_ufunc` hand them over.
    Lanes go to the SIMD unit and to threads, as in `ns.vmap`. An argument without leading axes is the same for all, and none is copied for
    lanes that share it. Python numbers give way to other dtypes. On traced values a leading axis counts as one of length 1 where that is
    known while tracing.

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


SHARED, LANE, ROW = "shared", "lane", "row"
"""What a lane gets of an argument: the whole, a row of its own, or a row that several lanes share."""


@dataclass(frozen=True)
class _Of:
    """Functions to read and reshape arrays, or variables.

    value: an argument -> an array or a variable. shape: its dimensions, None where only the run knows. lengths: its dimensions, to compute
    with. held: the value, which must have these leading dimensions (the run checks variables). arange: the numbers below a length.
    """

    value: Callable[[Any], Any]
    shape: Callable[[Any], tuple[int | None, ...]]
    lengths: Callable[[Any], tuple[Any, ...]]
    held: Callable[[Any, Sequence[Any], str], Any]
    arange: Callable[[Any], Any]


def _array(value: Any) -> Any:
    """The value as an array. A Python number stays one, since it gives way to other dtypes."""
    return value if isinstance(value, (int, float, complex)) and not isinstance(value, np.generic) else np.asarray(value)


def _of_dims(x: Variable, dims: Sequence[Any], what: str) -> Variable:
    """x, which must have `dims` as its first dimensions: the run checks what is not known now."""
    wanted = (*dims, *(dim(x, axis) for axis in range(len(dims), x.ndim)))
    return Variable(of_shape(x.node, sizes_of(wanted, what), what)) if wanted else x


_ARRAYS = _Of(_array, np.shape, lambda array: array.shape, lambda array, own, what: array, np.arange)
_VARIABLES = _Of(as_variable, lambda x: x.type.shape, shape_of, _of_dims, arange)


@dataclass(frozen=True)
class _Lanes:
    """Arguments in lanes: lengths of the leading axes, the kind of each argument, and the values, followed by row numbers for each ROW."""

    sizes: tuple[Any, ...]
    kinds: tuple[str, ...]
    values: Sequence[Any]
    of: _Of

    def put_back(self, result: Any) -> Any:
        """A result of all lanes, with the leading axes restored."""
        if not self.sizes:
            return result
        has_lanes = any(kind != SHARED for kind in self.kinds)
        return result.reshape(*self.sizes, *self.of.lengths(result)[int(has_lanes) :])


@with_entries(("__call__",))
class Vectorized:
    """A function that `ns.vectorize` made. `__wrapped__` is the function of core arrays, `signature` the text."""

    def __init__(self, f: Callable[..., Any], signature: str | None = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self.signature = signature
        self._parsed = None if signature is None else Signature.of(signature)
        self._known: dict[tuple[str, ...], Jitted] = {}

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
        is_traced = any(isinstance(leaf, Variable) for leaf in flattened(args)[0])
        lanes = self._in_lanes(signature, args, _VARIABLES if is_traced else _ARRAYS)
        if is_traced:
            returned = self._of_lanes(signature, lanes.kinds)(*self._of_one_length(signature, lanes))
        else:
            returned = self._compiled(signature, lanes.kinds)(*lanes.values)
        results = returned if len(signature.results) > 1 else (returned,)
        whole = tuple(lanes.put_back(one) for one in results)
        return whole if len(signature.results) > 1 else whole[0]

    def lower(self, *args: Any) -> Jitted:
        """The compiled function for such arguments, which has `.source()`, `.graph` and `.memory()`. Nothing runs."""
        signature = self._checked(len(args))
        lanes = self._in_lanes(signature, args, _ARRAYS)
        return self._compiled(signature, lanes.kinds).lower(*lanes.values)

    def _in_lanes(self, signature: Signature, args: Sequence[Any], of: _Of) -> _Lanes:
        """The arguments in lanes: all leading axes as one, the last fastest.

        An argument that varies along all leading axes has a row for each lane. One that varies along some is not copied along the others:
        each lane gets the number of its row (scalars are copied: they are no larger). One that varies along none is the same for all.
        """
        values = [of.value(one) for one in args]
        ranks, shapes = self._leading(signature, values), [of.shape(one) for one in values]
        self._check_lengths(signature, shapes)
        sizes = self._sizes([shape[:rank] for shape, rank in zip(shapes, ranks, strict=True)], values)
        lanes, numbers = [], []
        for one, shape, rank, name in zip(values, shapes, ranks, self._names(len(values)), strict=True):
            own = [1 if _is_one(length) else size for length, size in zip(shape[:rank], sizes[len(sizes) - rank :], strict=True)]
            kind, value, number = _laid_out(of.held(one, own, f"{self!r}: {name}"), own, sizes, of)
            lanes.append((kind, value))
            numbers += [number] if kind == ROW else []
        return _Lanes(sizes, tuple(kind for kind, _ in lanes), [*(value for _, value in lanes), *numbers], of)

    def _sizes(self, leading: Sequence[tuple[int | None, ...]], values: Sequence[Any]) -> tuple[Any, ...]:
        """The broadcast lengths of the leading axes; a variable for a length that only the run knows."""
        rank = max(map(len, leading), default=0)
        sizes: list[Any] = []
        for axis in range(-rank, 0):
            lengths = {shape[axis]: (value, axis + len(shape)) for shape, value in zip(leading, values, strict=True) if -axis <= len(shape)}
            known = lengths.keys() - {1, None}
            if len(known) > 1:
                raise ValueError(f"{self!r}: the leading axes {' and '.join(map(show_shape, leading))} do not broadcast")
            sizes.append(known.pop() if known else dim(*lengths[None]) if None in lengths else 1)
        return tuple(sizes)

    def _names(self, count: int) -> list[str]:
        return parameter_names(self.__wrapped__, count)

    def _checked(self, n: int) -> Signature:
        """The signature. TypeError for another number of arguments."""
        signature = self._parsed or Signature("", ((),) * n, ((),))
        if n != len(signature.arguments):
            raise TypeError(f"{self!r} takes {len(signature.arguments)} arguments, but {n} were given")
        return signature

    def _leading(self, signature: Signature, values: Sequence[Any]) -> list[int]:
        """The number of leading axes of each argument. ValueError for one with fewer axes than core dimensions."""
        ranks = [np.ndim(one) - len(core) for one, core in zip(values, signature.arguments, strict=True)]
        for rank, core, name in zip(ranks, signature.arguments, self._names(len(values)), strict=True):
            if rank < 0:
                axes = rank + len(core)
                raise ValueError(f"{self!r}: {name} has {axes} axes, but the core dimensions ({', '.join(core)}); give it more axes")
        return ranks

    def _check_lengths(self, signature: Signature, shapes: Sequence[tuple[Any, ...]]) -> None:
        """ValueError if two known lengths of one core dimension differ."""
        known: dict[str, tuple[Any, str]] = {}
        names = self._names(len(shapes))
        for shape, core, name in zip(shapes, signature.arguments, names, strict=True):
            for label, length in zip(core, shape[len(shape) - len(core) :], strict=True):
                wanted, whose = known.setdefault(label, (int(label), "the signature") if label.isdigit() else (length, name))
                if isinstance(wanted, int) and isinstance(length, int) and wanted != length:
                    raise ValueError(f"{self!r}: {label} is {length} in {name}, but {wanted} in {whose}; give one length")

    def _of_lanes(self, signature: Signature, kinds: tuple[str, ...]) -> Any:
        """The function of the arguments that `_in_lanes` returns, as a graph."""
        rows = tuple(k for k, kind in enumerate(kinds) if kind == ROW)
        core = _OnCore(self.__wrapped__, signature=signature, label=repr(self), rows=rows)
        axes = (*(0 if kind == LANE else None for kind in kinds), *(0 for _ in rows))
        return vmap(core, in_axes=axes) if any(axis is not None for axis in axes) else core

    def _compiled(self, signature: Signature, kinds: tuple[str, ...]) -> Jitted:
        """`_of_lanes`, compiled in the mode of the function."""
        known = self._known.get(kinds)
        if known is None:
            known = self._known.setdefault(kinds, jit(self._of_lanes(signature, kinds), mode=mode_given_to(self.__wrapped__)))
        return known

    def _of_one_length(self, signature: Signature, lanes: _Lanes) -> list[Variable]:
        """The arguments, in which core dimensions of one name must have one length: the run raises ValueError if they have not."""
        sizes: dict[str, Any] = {}
        count = len(lanes.kinds)
        held = list(lanes.values[count:])
        whole: list[Variable] = []
        for one, kind, core, name in zip(lanes.values, lanes.kinds, signature.arguments, self._names(count), strict=False):
            what, first = f"{self!r}: {name}", int(kind != SHARED)
            wanted = [sizes.setdefault(label, int(label) if label.isdigit() else dim(one, k)) for k, label in enumerate(core, first)]
            whole.append(_VARIABLES.held(one, [*(dim(one, axis) for axis in range(first)), *wanted], what))
        return [*whole, *held]


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _laid_out(one: Any, own: Sequence[Any], sizes: Sequence[Any], of: _Of) -> tuple[str, Any, Any]:
    """The kind of an argument with leading lengths `own`, its rows, and for ROW the number of each lane's row, else None."""
    if not own or all(map(_is_one, own)):
        return SHARED, one.reshape(of.lengths(one)[len(own) :]) if own else one, None
    own, core = (*(1 for _ in sizes[len(own) :]), *own), of.lengths(one)[len(own) :]
    rows = one.reshape(count_of(own), *core)
    if all(_is_one(size) or not _is_one(length) for length, size in zip(own, sizes, strict=True)):
        return LANE, rows, None
    table = rows if not core else of.arange(count_of(own))  # a scalar is no larger than the number of its row: copy it
    spread = np.broadcast_to(table.reshape(own), tuple(sizes)).reshape(count_of(sizes))
    return (LANE, spread, None) if not core else (ROW, rows, spread)


class _OnCore(Transformed):
    """The function of core arrays, with results checked against the signature."""

    what = "ns.vectorize"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        signature, label, rows = (self.options[name] for name in ("signature", "label", "rows"))
        args, numbers = args[: len(args) - len(rows)], dict(zip(rows, args[len(args) - len(rows) :], strict=True))
        args = tuple(one[numbers[k]] if k in numbers else one for k, one in enumerate(args))
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
        """A result, which must have the core dimensions of the signature, each in the length that an argument has."""
        what = f"{self.options['label']}: result {k}"
        if result.ndim != len(core):
            raise ValueError(f"{what} is {result.type.strong()}; the signature has the dimensions ({', '.join(core)})")
        for axis, name in enumerate(core):
            sizes.setdefault(name, int(name) if name.isdigit() else dim(result, axis))
        return Variable(of_shape(result.node, sizes_of(tuple(sizes[name] for name in core), what), what))
