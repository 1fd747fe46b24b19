"""`ns.vmap`: a function of one lane as a function of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..ir.loop_node import SCAN
from ..ir.node import owner_of
from ..rewrite.lane_blocks import lane_blocks
from ..tracebacks import entry
from .derivatives.of_functions import Transformed, transform
from .scan.scan import scan
from .seeded import as_parts
from .tracing import called, current_mode, parameter_names
from .transforms import Jitted, marked
from .tree import Keys, Static, Structure, fields_of, flatten, flattened, is_record, unflatten
from .variable import Variable, as_variable


class _Vmap(Transformed):
    """A function of one lane, called on all lanes."""

    what = "ns.vmap"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = as_parts(marked(self.__wrapped__, args, kwargs))
        leaves, structure = flattened((args, kwargs))
        axes = [*_axes_of(self.options["in_axes"], args, parameter_names(self.__wrapped__, len(args))), *nested_axes(0, kwargs, self.what)]
        returned, results = over_lanes(self.__wrapped__, leaves, structure, axes, self.__name__)
        return unflatten(returned, [np.moveaxis(result, 0, self.options["out_axes"]) for result in results])


def over_lanes(
    f: Callable[..., Any], leaves: Sequence[Any], structure: Structure, axes: Sequence[int | None], name: str
) -> tuple[Structure, list[Any]]:
    """The structure that `f` returns, and its leaves for all lanes. structure, leaves: of `(args, kwargs)`; axes: the leaves' lane axes."""
    pairs = list(zip(map(as_variable, leaves), axes, strict=True))
    mapped = [_lanes_first(variable, axis) for variable, axis in pairs if axis is not None]
    if not mapped:
        raise ValueError("ns.vmap: in_axes has None for every argument; at least one must have an axis of lanes")
    returned: list[Structure] = []

    def lane(*values: Any) -> list[Any]:
        rows, others = iter(values[: len(mapped)]), iter(values[len(mapped) :])
        whole, named = unflatten(structure, [next(others) if axis is None else next(rows) for axis in axes])
        results: list[Any] = []
        returned.append(flatten(called(f, whole, named), results))
        return results

    results = scan(
        lane,
        sequences=mapped,
        non_sequences=[variable for variable, axis in pairs if axis is None],
        n_steps=_lane_count(mapped),
        name=name if name.isidentifier() else "vmap",
        return_list=True,
        return_updates=False,
    )
    return returned[-1], _in_blocks(results)


def _in_blocks(results: list[Any]) -> list[Any]:
    """The results of all lanes, made in blocks where that is handled, the mode is known and takes them."""
    nodes, mode = [result.node for result in results], current_mode()
    loops = {owner_of(node)[0] for node in nodes}
    if len(loops) != 1 or mode is None or mode.target == "cuda" or mode.check_finite or lane_blocks.__name__ in mode.without:
        return results
    (loop,) = loops
    blocks = lane_blocks(loop) if loop.op is SCAN else None
    return results if blocks is None else [Variable(blocks[owner_of(node)[1]]) for node in nodes]


def _lane_count(mapped: Sequence[Variable]) -> Any:
    """The greatest number of lanes. ValueError if known numbers differ; else the loop refuses arguments with fewer."""
    known = sorted({variable.type.shape[0] for variable in mapped if variable.type.shape[0] is not None})
    if len(known) > 1:
        raise ValueError(f"ns.vmap: the arguments have {' and '.join(map(str, known))} lanes; give equally many")
    lengths: list[Any] = [as_variable(variable.shape[0]) for variable in mapped]
    return reduce(np.maximum, lengths)


def _axes_of(in_axes: Any, args: tuple[Any, ...], names: Sequence[str]) -> Iterator[int | None]:
    """The axis of lanes of each leaf of the arguments. An entry of `in_axes` applies to all leaves of its argument."""
    entries = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
    if len(entries) != len(args):
        raise ValueError(f"ns.vmap: in_axes has {len(entries)} entries for {len(args)} arguments; give one for each")
    for axes, argument, name in zip(entries, args, names, strict=True):
        yield from nested_axes(axes, argument, f"ns.vmap: {name}")


def nested_axes(entry: Any, argument: Any, where: str) -> Iterator[int | None]:
    """The axis of lanes of each leaf of one argument. where: the transform and the name of the argument, for messages."""
    is_dataclass = is_record(type(argument))
    if is_dataclass:  # its leaves are in the order of the fields, those of a dict in the order of the sorted keys
        argument, entry = fields_of(argument), fields_of(entry) if is_record(type(entry)) else entry
    if isinstance(argument, dict):
        if isinstance(entry, dict) and entry.keys() != argument.keys():
            raise ValueError(f"{where} has the keys {listed(argument)}, but in_axes {listed(entry)}; give the same")
        for key in argument if is_dataclass else Keys(argument):
            yield from nested_axes(entry[key] if isinstance(entry, dict) else entry, argument[key], f"{where}_{key}")
    elif isinstance(argument, (tuple, list)):
        if isinstance(entry, (tuple, list)) and len(entry) != len(argument):
            raise ValueError(f"{where} has {len(argument)} parts, but in_axes {len(entry)} for it; give one for each")
        for k, part in enumerate(argument):
            yield from nested_axes(entry[k] if isinstance(entry, (tuple, list)) else entry, part, f"{where}_{k}")
    elif argument is not None and not isinstance(argument, Static):
        if entry is not None and (isinstance(entry, bool) or not isinstance(entry, int)):
            raise TypeError(f"{where}: in_axes holds {entry!r}; give an axis (an int) or None")
        yield entry


def listed(names: Any) -> str:
    """Names as messages list them."""
    return ", ".join(map(repr, names))


def _lanes_first(variable: Any, axis: int) -> Variable:
    if not -variable.ndim <= axis < variable.ndim:
        raise ValueError(
            f"ns.vmap: in_axes has {axis}, but an argument is {variable.type}, which has no such axis; give None for what lanes share, "
            "as in_axes=(0, None)"
        )
    moved: Variable = np.moveaxis(variable, axis, 0)
    return moved


@entry
def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Jitted[..., Any]:
    """`f` for many lanes: a function that takes arrays with an axis of lanes and gives such arrays.

    Arguments:
        f: a function of one lane.
        in_axes: the axis of lanes of every positional argument, or a tuple with one entry per argument (of a method without `self`);
            None: the same for all lanes. Keyword arguments have their lanes along axis 0.
        out_axes: where the axis of lanes stands in the results.

    Raises ValueError for arguments with different numbers of lanes.

    >>> import numbascan as ns, numpy as np
    >>> ns.vmap(lambda x, y: x @ y, in_axes=(0, None))(
    ...     np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0])
    ... )
    array([21., 43.])
    """
    return transform(_Vmap, f, in_axes=in_axes, out_axes=out_axes)
