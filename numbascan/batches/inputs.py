"""The inputs of a batch: cases that are read by their numbers, from arrays in memory or elsewhere."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..front.labels import Axis, axes_of, refuse_other_rows
from ..front.specialisation import prepared, small_type
from ..front.tracing import parameter_names
from ..front.transforms import marked
from ..front.tree import Static, Structure, flatten, n_leaves, paths, unflatten
from ..front.variable import Variable
from ..front.vmap import listed, nested_axes
from ..tracebacks import entry
from ..types import TensorType

BLOCK = 1 << 24  # bytes that are hashed at a time


class Grid:
    """All combinations of the values of some arguments, the last one fastest. Make it with `ns.grid`; `len` is the number of cases.

    numbers: the arguments that were given as one number, which are axes of length 1.
    """

    def __init__(self, axes: Mapping[str, Any]) -> None:
        self.axes = {name: _values_of(value, f"ns.grid: {name}") for name, value in axes.items()}
        self.numbers = {name: value for name, value in axes.items() if is_number(value)}
        for name, values in self.axes.items():
            if name in self.numbers:
                self.axes[name] = np.asanyarray(values[()] if hasattr(values, "shape") else values).reshape(1)
                continue
            self.axes[name] = np.asanyarray(values[:])  # arrays that lie elsewhere are read now: axes are short
        if not self.axes:
            raise ValueError("ns.grid: there are no arguments; write ns.grid(rho=[10.0, 28.0])")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each argument."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"<grid {' x '.join(f'{name}: {len(values)}' for name, values in self.axes.items())}>"


@entry
def grid(**axes: Any) -> Grid:
    """All combinations of values of some arguments, as inputs of `ns.batch`. They are made chunk by chunk, never all at once.

    Arguments: the values of each argument, by its name: an array or a list; of an array with more axes than one, the rows. A number is an
    axis of length 1.

    Returns a Grid. `len` is the number of cases; the last argument changes fastest. Results of a batch have an axis for each argument.

    Raises ValueError without arguments.

    >>> import numbascan as ns, numpy as np
    >>> ns.batch(
    ...     lambda rho, sigma: rho * sigma,
    ...     ns.grid(rho=np.array([1.0, 2.0, 3.0]), sigma=[10.0, 20.0]),
    ...     progress=False,
    ... )
    array([[10., 20.],
           [20., 40.],
           [30., 60.]])
    """
    return Grid(axes)


@dataclass(frozen=True)
class InputLeaf:
    """One array of the inputs.

    axis: the axis of its cases; None for a value that is the same for all. stride: in a grid, for how many cases a value stays; else 0.
    """

    label: str
    values: Any
    axis: int | None
    type: TensorType
    stride: int = 0

    @property
    def length(self) -> int:
        """The number of its cases; in a grid, of its values."""
        assert self.axis is not None
        return int(self.values.shape[self.axis])

    @property
    def is_in_rows(self) -> bool:
        """True if it has a row for each case."""
        return self.axis is not None and not self.stride

    def read(self, start: int, stop: int) -> Any:
        """The values of cases `start` to `stop`, along the first axis; a value that is the same for all as it is."""
        if self.axis is None:
            return self.values
        if self.stride:
            rows = np.arange(start, stop) // self.stride % len(self.values)
            return prepared(self.values[rows], self.label)
        part = self.values[(slice(None),) * self.axis + (slice(start, stop),)]
        array = np.asanyarray(part) if type(self.values) is np.ndarray else np.array(part, subok=True)  # read now, not by the kernel
        return prepared(np.moveaxis(array, self.axis, 0), self.label)

    def of_case(self, case: int) -> Any:
        """The value of one case, as it was given."""
        if self.axis is None:
            return self.values
        if self.stride:
            return self.values[case // self.stride % len(self.values)]
        return np.asarray(self.values[(slice(None),) * self.axis + (slice(case, case + 1),)]).take(0, self.axis)[()]


@dataclass(frozen=True)
class Cases:
    """The cases of a batch: leaves in the places of `structure`, the structure of `(args, kwargs)`.

    named: the places of leaves that are arguments by name. dims: names and lengths of the axes of cases.
    rows: the labels of the cases, where pandas or xarray gives some.
    """

    structure: Structure
    leaves: tuple[InputLeaf, ...]
    named: dict[str, int]
    dims: dict[str, int]
    is_grid: bool
    rows: Axis | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.dims.values())

    def __len__(self) -> int:
        return math.prod(self.shape)

    def read(self, start: int, stop: int) -> list[Any]:
        """The leaves for cases from `start` up to `stop`."""
        return [leaf.read(start, stop) for leaf in self.leaves]

    def to_send(self, start: int, stop: int) -> list[Any]:
        """The rows that a worker needs besides `without_rows()`, None for other leaves."""
        return [leaf.read(start, stop) if leaf.is_in_rows else None for leaf in self.leaves]

    def received(self, sent: list[Any], start: int, stop: int) -> list[Any]:
        """The leaves for cases from `start` up to `stop`, from what `to_send` gave for them."""
        return [value if leaf.is_in_rows else leaf.read(start, stop) for leaf, value in zip(self.leaves, sent, strict=True)]

    def without_rows(self) -> Cases:
        """The same without arrays that have a row for each case. Axes of a grid, and values that are the same for all, stay."""
        return replace(self, rows=None, leaves=tuple(replace(leaf, values=None) if leaf.is_in_rows else leaf for leaf in self.leaves))

    def of_case(self, case: int) -> Any:
        """The inputs of one case: a tuple, or a dict where they were given by name."""
        args, kwargs = unflatten(self.structure, [leaf.of_case(case) for leaf in self.leaves])
        return kwargs or args

    @property
    def bytes_per_case(self) -> int:
        """Bytes that the inputs of a case take."""
        swept = [leaf for leaf in self.leaves if leaf.axis is not None]
        return sum(np.dtype(leaf.type.dtype).itemsize * math.prod(_other_dims(leaf)) for leaf in swept)

    def coordinates(self) -> dict[str, int]:
        """The places of inputs with one number for each case, by name."""
        swept = {name: k for name, k in self.named.items() if self.leaves[k].axis is not None}
        return {name: k for name, k in swept.items() if not _other_dims(self.leaves[k])}

    def digest(self) -> str:
        """A digest of the inputs, whatever kind of array holds them."""
        total = hashlib.sha256(repr((self.shape, tuple(self.dims) if self.is_grid else None, structure_text(self.structure))).encode())
        for leaf in self.leaves:
            shape = np.shape(leaf.values) if leaf.axis is None else _other_dims(leaf)
            total.update(repr((leaf.type.dtype, leaf.axis is None, leaf.type.weak, shape)).encode())
            for block in _blocks(leaf):
                total.update(np.ascontiguousarray(block).reshape(-1).view("uint8").data)
        return total.hexdigest()


def _blocks(leaf: InputLeaf) -> Iterator[Any]:
    if leaf.axis is None or leaf.stride:
        yield prepared(np.asarray(leaf.values), leaf.label)
        return
    row = np.dtype(leaf.type.dtype).itemsize * math.prod(_other_dims(leaf))
    rows = max(1, BLOCK // max(row, 1))
    for start in range(0, leaf.length, rows):
        yield leaf.read(start, min(start + rows, leaf.length))


def _other_dims(leaf: InputLeaf) -> tuple[int, ...]:
    assert leaf.axis is not None
    shape = tuple(leaf.values.shape)
    return shape[: leaf.axis] + shape[leaf.axis + 1 :]


def structure_text(structure: Structure) -> str:
    """A structure as text, the same in every process."""
    if isinstance(structure, str):
        return structure
    cls, keys, children = structure
    name = repr(cls.value) if isinstance(cls, Static) else cls.__name__
    return f"{name}{tuple(keys or ())}({', '.join(map(structure_text, children))})"


def cases_of(f: Callable[..., Any], inputs: Any, in_axes: Any, shared: Collection[str] = ()) -> Cases:
    """The cases that `inputs` hold for `f`. ValueError or TypeError, with the argument's name, where something does not fit."""
    if isinstance(inputs, Grid):
        args, kwargs = (), inputs.axes
    elif isinstance(inputs, dict):
        args, kwargs = (), inputs
    elif isinstance(inputs, tuple):
        args, kwargs = inputs, {}
    else:
        raise TypeError(
            f"ns.batch: inputs is a {type(inputs).__name__}; give a tuple of arguments, as (x,), a dict or DataFrame of "
            "arguments by name, or an ns.grid"
        )
    axes = _entries(in_axes, kwargs or args, list(kwargs) or parameter_names(f, len(args)), shared)
    if isinstance(inputs, Grid):  # a number that is no axis stays a number: `Grid` has made it an array of one
        kwargs = {
            name: inputs.numbers.get(name, kwargs[name]) if axis is None else kwargs[name] for name, axis in zip(kwargs, axes, strict=True)
        }
    elif not isinstance(in_axes, (tuple, list, dict)):  # a number is the same for all; one with an axis of its own is refused below
        given = kwargs.values() if kwargs else args
        axes = [None if is_number(value) else axis for value, axis in zip(given, axes, strict=True)]
    _check_names(f, args, kwargs)
    args, kwargs = marked(f, args, kwargs)
    values: list[Any] = []
    structure = flatten((args, kwargs), values)
    assert not isinstance(structure, str)
    names = parameter_names(f, len(args))
    labels = [path for name, part in zip(names, structure[2][0][2], strict=True) for path in paths(part, name)]
    labels += [path for name, part in zip(structure[2][1][1], structure[2][1][2], strict=True) for path in paths(part, str(name))]
    parts = (
        sorted(zip(kwargs, axes, kwargs.values(), strict=True), key=operator.itemgetter(0))
        if kwargs
        else zip(names, axes, args, strict=True)
    )
    entries = [entry for name, axis, part in parts for entry in nested_axes(axis, part, f"ns.batch: {name}")]
    swept = zip(labels, values, entries, strict=True)
    sizes = [n_leaves(part) for part in structure[2][1][2]] if kwargs else []
    places = dict(zip(sorted(kwargs), itertools.accumulate(sizes, initial=0), strict=False))
    named = {name: place for name, place in places.items() if not isinstance(kwargs[name], (list, tuple, dict, Static))}
    if isinstance(inputs, Grid):
        return _grid_cases(inputs, structure, list(swept), named)
    leaves = tuple(_leaf(f"ns.batch: {label}", value, axis) for label, value, axis in swept)
    lengths = [(label, leaf.length) for label, leaf in zip(labels, leaves, strict=True) if leaf.axis is not None]
    if not lengths:
        raise ValueError("ns.batch: no input has an axis of cases; give at least one array that is not shared, and has an axis in in_axes")
    if len({length for _, length in lengths}) > 1:
        seen = ", ".join(f"{name} has {length}" for name, length in lengths)
        raise ValueError(
            f"ns.batch: the inputs have different numbers of cases: {seen}; give equally many, or name in shared= what is the same for all"
        )
    labels = [f"ns.batch: {label}" for label in labels]
    rows = [
        axes[leaf.axis] if leaf.axis is not None and (axes := axes_of(value)) else None for leaf, value in zip(leaves, values, strict=True)
    ]
    refuse_other_rows(labels, rows)
    return Cases(structure, leaves, named, {"case": lengths[0][1]}, False, next(filter(None, rows), None))


def _grid_cases(inputs: Grid, structure: Structure, parts: list[tuple[str, Any, int | None]], named: dict[str, int]) -> Cases:
    entries = {label: axis for label, _, axis in parts}
    if any(axis not in (0, None) for axis in entries.values()):
        raise ValueError("ns.batch: in_axes of a grid is 0, or None for what is the same for all cases")
    dims = {name: len(values) for name, values in inputs.axes.items() if entries[name] == 0}
    if not dims:
        raise ValueError("ns.batch: every argument of the grid is the same for all cases, by in_axes or shared; at least one must be swept")
    names = list(dims)
    strides = {name: math.prod(dims[other] for other in names[k + 1 :]) for k, name in enumerate(names)}
    leaves = []
    for label, value, axis in parts:
        one = _leaf(f"ns.batch: {label}", value, axis)
        leaves.append(one if axis is None else InputLeaf(one.label, np.asarray(value), 0, one.type, max(strides[label], 1)))
    return Cases(structure, tuple(leaves), named, dims, True)


def _entries(in_axes: Any, arguments: Any, names: Sequence[str], shared: Collection[str]) -> list[Any]:
    """The entry of `in_axes` for each argument: None for those named in `shared`."""
    if unknown := [name for name in shared if name not in names]:
        raise ValueError(f"ns.batch: shared names {unknown[0]!r}, and the inputs are {listed(names)}; give names of these")
    if not isinstance(in_axes, (tuple, list, dict)):
        return [None if name in shared else in_axes for name in names]
    if isinstance(arguments, Mapping):
        if not isinstance(in_axes, dict):
            raise TypeError(f"ns.batch: in_axes is {in_axes!r}, but the inputs have names; give a dict with the keys {listed(arguments)}")
        in_axes = {**dict.fromkeys(shared), **in_axes}
        if set(in_axes) != set(arguments):
            raise ValueError(f"ns.batch: in_axes has the keys {listed(in_axes)}, the inputs {listed(arguments)}; give the same")
        entries = [in_axes[key] for key in arguments]
    elif isinstance(in_axes, dict):
        raise TypeError(f"ns.batch: in_axes is a dict, but the inputs are a tuple; give a tuple of {len(arguments)} axes")
    else:
        entries = list(in_axes)
    if len(entries) != len(arguments):
        raise ValueError(f"ns.batch: in_axes has {len(entries)} entries for {len(arguments)} arguments; give one for each")
    for name, axis in zip(names, entries, strict=True):
        if name in shared and axis is not None:
            raise ValueError(f"ns.batch: shared names {name!r}, but in_axes has {axis!r} for it; give one of them")
    return entries


def _check_names(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # a builtin
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(f, "__name__", "the function")
        raise TypeError(f"ns.batch: {name}{signature} does not take these inputs: {error}") from None


def is_number(value: Any) -> bool:
    """True for one number, which has no axis of cases."""
    return isinstance(value, (bool, int, float, complex)) or getattr(value, "shape", None) == ()


def _values_of(value: Any, label: str) -> Any:
    """`value` as an array or number: anything with a shape, a dtype and slices stays as it is, unread where it lies elsewhere."""
    if isinstance(value, Variable):
        raise TypeError(f"{label} is the symbolic {value!r}; give an array, or ns.vmap(f) variables")
    if isinstance(value, (np.ndarray, np.generic)):
        return value
    if not type(value).__module__.startswith("pandas"):
        try:
            np.dtype(value.dtype)
            if value.shape is not None and hasattr(value, "__getitem__"):
                return value
        except (AttributeError, TypeError):
            pass
    if isinstance(value, (bool, int, float, complex)):
        return value
    return np.asarray(prepared(value, label))


def _leaf(label: str, value: Any, axis: int | None) -> InputLeaf:
    values = _values_of(value, label)
    if axis is None:
        value = prepared(values if isinstance(values, (bool, int, float, complex, np.generic)) else np.asanyarray(values), label)
        return InputLeaf(label, value, None, small_type(value))
    rank = len(getattr(values, "shape", ()))
    if not rank:
        raise ValueError(
            f"{label} is {value!r}, which has no axis of cases; give an array, or name it in shared= if it is the same for all"
        )
    if not -rank <= axis < rank:
        raise ValueError(f"{label} has shape {tuple(values.shape)}, but in_axes has {axis} for it, which is no axis of that")
    leaf = InputLeaf(label, values, axis % rank, TensorType("float64"))
    none = leaf.read(0, 0)
    type_ = small_type(none)
    return InputLeaf(label, values, axis % rank, type_.with_shape((None, *type_.shape[1:])))
