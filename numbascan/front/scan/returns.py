"""Reads a step's return value: outputs, updates of shared variables, and the condition that ends the loop.

Outputs are checked against their initial values, and updates against their shared variables: dtype, rank and shape must be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ScanTypeError
from ...ir.node import Node, constant_value
from ...tracebacks import with_entries
from ...types import TensorType, show_shape
from ..conversion import is_number_list
from ..shared import SharedVariable
from ..tracing import code_of
from ..tree import LEAF, Keys, Structure, alike, describe, flatten, flattened, is_named_tuple
from ..variable import Variable, as_node, as_variable, at_line
from .arguments import OutKey

WHAT_TO_RETURN = (
    "return an output, a list or tuple of outputs, a dict {shared: value} of updates, ns.until(condition), or (outputs, updates), "
    "(outputs, until), (updates, until), (outputs, updates, until); several outputs may stand before updates and until without a list"
)


@with_entries()
class until:
    """Ends the loop after the step in which `condition` holds. The last thing that a step returns.

    Argument: condition, a scalar; anything but a bool ends the loop where it is not 0.

    Raises TypeError for a condition that is not a scalar.

    >>> import numbascan as ns
    >>> powers, _ = ns.scan(
    ...     lambda x: (2 * x, ns.until(2 * x > 45)),
    ...     outputs_info=np.float64(1),
    ...     n_steps=1024,
    ... )
    >>> powers
    array([ 2.,  4.,  8., 16., 32., 64.])
    """

    __slots__ = ("condition",)

    def __init__(self, condition: Any) -> None:
        variable = as_variable(condition)
        if variable.ndim:
            raise TypeError(
                f"ns.until: the condition has shape {show_shape(variable.type.shape)}{at_line()}; a scalar is needed: "
                "write condition.all() or condition.any()"
            )
        self.condition = variable if variable.type.kind == "b" else as_variable(variable != 0)

    def __repr__(self) -> str:
        return f"until({self.condition!r})"


@dataclass(frozen=True, slots=True)
class Returned:
    """A step's return value by meaning: structure and nodes of each output, updates, condition. `is_list`: outputs were in a list."""

    outputs: tuple[tuple[Structure, tuple[Node, ...]], ...]
    updates: tuple[tuple[SharedVariable, Node], ...]
    until: Node | None
    is_list: bool


def parse_returned(value: Any, outs: tuple[OutKey, ...] | None, where: str) -> Returned:
    """`value` by meaning. ValueError if it has none, or if outputs and `outputs_info` differ in number or structure."""
    rest, condition = _split_until(value, where)
    rest, updates = _split_updates(rest, outs, where)
    items, is_list = _outputs(rest, outs, where)
    if outs is not None and len(items) != len(outs):
        raise ValueError(
            f"{where} returns {_count(items, 'output')}, but outputs_info has {_count(outs, 'entry')}; give one entry for each output "
            "(None where it is not recurrent)"
            + ("; if the list is meant as one array, return np.stack([...])" if is_list and len(outs) == 1 else "")
            + ("; a list means several outputs: for one of numbers write np.array([...])" if len(outs) > len(items) == 1 else "")
        )
    structures = [None] * len(items) if outs is None else [structure for structure, _, _ in outs]
    outputs = tuple(_leaves(item, structure, k, where) for k, (item, structure) in enumerate(zip(items, structures, strict=True)))
    return Returned(outputs, tuple(_read_updates(updates, where)), condition, is_list)


def _count(items: Sequence[Any], what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{len(items)} {what if len(items) == 1 else plural}"


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not is_named_tuple(value)


def _split_until(value: Any, where: str) -> tuple[Any, Node | None]:
    """The return value without `until`, and its condition."""
    if isinstance(value, until):
        return [], value.condition.node
    if not _is_list(value):
        return value, None
    *rest, last = value if value else [None]
    if any(isinstance(leaf, until) for leaf in _all_leaves(rest)) or (
        not isinstance(last, until) and any(map(_is_until, _all_leaves(last)))
    ):
        raise ValueError(f"{where} returns ns.until(...) at another place than the end; return it last, once")
    if not isinstance(last, until):
        return value, None
    return rest[0] if len(rest) == 1 else rest, last.condition.node


def _is_until(value: Any) -> bool:
    return isinstance(value, until)


def _all_leaves(value: Any) -> list[Any]:
    leaves, _ = flattened(value)
    return leaves


def _split_updates(value: Any, outs: tuple[OutKey, ...] | None, where: str) -> tuple[Any, list[tuple[Any, Any]]]:
    """The outputs, and the updates as pairs."""
    rest, updates = _apart(value, outs)
    for part in _dicts(rest):
        if any(isinstance(key, Variable) for key in part):
            if is_updates(part):
                raise ValueError(f"{where} returns updates for {list(part)} among its outputs; return all updates as one dict behind them")
            raise ValueError(f"{where} returns updates for {list(part)}; the keys must be shared variables, made by ns.shared")
    return rest, updates


def _apart(value: Any, outs: tuple[OutKey, ...] | None) -> tuple[Any, list[tuple[Any, Any]]]:
    """The outputs and the updates, told apart by position: a pair in either order, or several outputs and then the updates."""
    if is_updates(value):
        return [], _pairs(value)
    if not _is_list(value) or len(value) < 2:
        return value, []
    *rest, last = value
    if len(rest) > 1:
        is_output = outs is not None and len(outs) == len(value) and _is_empty(last)  # an empty dict may be an output
        return (rest, _pairs(last)) if is_updates(last) and not is_output else (value, [])
    if is_updates(last) or _is_empty(last):
        return rest[0], _pairs(last)
    return (last, _pairs(rest[0])) if is_updates(rest[0]) else (value, [])


def _dicts(value: Any) -> Iterator[dict[Any, Any]]:
    """The dicts in a nest."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from _dicts(part)


def _is_empty(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) and not value


def is_updates(value: Any) -> bool:
    """True for a dict whose keys are all shared variables (or empty), and for a list of pairs that each begin with one."""
    if isinstance(value, dict):
        return all(isinstance(key, SharedVariable) for key in value)
    return (
        _is_list(value) and bool(value) and all(_is_list(pair) and len(pair) == 2 and isinstance(pair[0], SharedVariable) for pair in value)
    )


def _pairs(updates: Any) -> list[tuple[Any, Any]]:
    pairs = list(updates.items()) if isinstance(updates, dict) else [tuple(pair) for pair in updates]
    return pairs


def _read_updates(pairs: list[tuple[Any, Any]], where: str) -> Iterator[tuple[SharedVariable, Node]]:
    seen: set[Node] = set()
    for shared, value in pairs:
        if shared.node in seen:
            raise ValueError(f"{where} gives {shared.name or shared} two new values; give one")
        seen.add(shared.node)
        yield shared, _node(value, f"{where}: the update of {shared.name or shared}")


def _outputs(value: Any, outs: tuple[OutKey, ...] | None, where: str) -> tuple[list[Any], bool]:
    """The outputs as a list, and whether the step returned a list (or tuple) of them."""
    if value is None:
        raise ValueError(f"{where} returns None; {WHAT_TO_RETURN}")
    if not _is_list(value):
        return [value], False
    if outs is not None and len(outs) == 1 and _has_structure(value, outs[0][0]):
        return [value], False
    return list(value), True


def _has_structure(value: Any, structure: Structure | None) -> bool:
    return isinstance(structure, tuple) and alike(flatten(value, [], is_number_list), structure)


def _leaves(item: Any, structure: Structure | None, k: int, where: str) -> tuple[Structure, tuple[Node, ...]]:
    """The structure and nodes of output k. structure: that of its initial value, None if it has none."""
    place = f"{where}: output {k}"
    if item is None:
        raise ValueError(f"{place} is None; {WHAT_TO_RETURN}")
    if structure is None:
        leaves: list[Any] = []
        structure = flatten(item, leaves, is_number_list)
    else:
        structure, leaves = _matched(item, structure, place)
    return structure, tuple(_node(leaf, place) for leaf in leaves)


def _matched(item: Any, structure: Structure, place: str) -> tuple[Structure, list[Any]]:
    """The item's structure, with dicts in its own order, and its leaves. ValueError unless it matches `structure`."""
    if structure == LEAF:
        return LEAF, [item]
    leaves: list[Any] = []
    if isinstance(item, dict) and isinstance(structure, tuple) and structure[0] is dict and set(item) != set(structure[1]):
        raise ValueError(f"{place} has the keys {list(Keys(item))}, but its initial value has {list(structure[1])}; return the same keys")
    seen = flatten(item, leaves, is_number_list)
    if not alike(seen, structure):
        raise ValueError(f"{place} is {describe(seen)}, but its initial value is {describe(structure)}; return the same structure")
    return seen, leaves


def _node(value: Any, place: str) -> Node:
    if isinstance(value, until):
        raise ValueError(f"{place} is ns.until(...); return it last, beside the outputs")
    if isinstance(value, (str, bytes)) or callable(value):
        raise ValueError(f"{place} is {value!r} ({type(value).__name__}), which is no array; {WHAT_TO_RETURN}")
    try:
        return as_node(value)
    except TypeError as error:
        seen = np.asarray(value, dtype=object).dtype if not hasattr(value, "dtype") else value.dtype
        raise ValueError(
            f"{place} is a {type(value).__name__} ({seen}) that cannot be read as an array ({error}); {WHAT_TO_RETURN}"
        ) from error


# results against initial values and shared variables -----------------------------------------------------------------------

_KINDS_BY_RANGE = "buifc"  # each kind of number holds those before it


def check_number(number: Variable, write: Node, argument: str | None, where: str) -> None:
    """ScanTypeError if the dtype of the step's result cannot hold a number given as initial value."""
    dtype = np.dtype(write.type.dtype)
    if not _holds(dtype, number.node):
        raise ScanTypeError(
            f"{where}{_argument(argument)} starts as {_number(number.node)}, which the step's result, {write.type}{_line(write)}, cannot "
            f"hold; give an initial value of dtype {dtype}, or write result.astype({number.type.dtype!r}) in the step"
        )


def _holds(dtype: np.dtype[Any], number: Node) -> bool:
    """True if `dtype` holds a number that has no dtype of its own. Floats may be rounded to another float dtype."""
    value = constant_value(number)
    if value is None and number.type.kind == "i" and dtype.kind in "iu":
        return True  # an integer that only the run knows is checked by the run
    if value is None:
        return _KINDS_BY_RANGE.index(number.type.kind) <= _KINDS_BY_RANGE.index(dtype.kind)
    if value.dtype.kind == "c" and dtype.kind != "c":
        return False
    with np.errstate(all="ignore"):
        return (value.dtype.kind in "fc" and dtype.kind == value.dtype.kind) or bool(np.all(value.astype(dtype) == value))


def _number(node: Node) -> object:
    value = constant_value(node)
    return f"the {node.type.dtype} number" if value is None else value.item()


def check_state(row: TensorType, write: Node, has_axis: bool, argument: str | None, where: str, fn: Callable[..., Any]) -> None:
    """ScanTypeError unless the step's result has dtype, rank and (where known) shape of a row of the initial value."""
    result = write.type
    rows = " in each row" if has_axis else ""
    seen = f"{where}{_argument(argument)} starts as {row}{rows}, but the step's result is {result.strong()}{_line(write, fn)}"
    if not _same_shape(row, result):
        raise ScanTypeError(
            f"{seen}; dtype and shape must be the same: write {_of_shape(result)} as initial value, "
            f"or return a result of shape {show_shape(row.shape)}"
        )
    if row.dtype != result.dtype:
        raise ScanTypeError(
            f"{seen}; the dtypes must be the same: write {_of_dtype(row, result)} as initial value, or result.astype({row.dtype!r})"
        )


def check_carry(shared: SharedVariable, write: Node, where: str) -> None:
    """ScanTypeError unless the update of a shared variable has its dtype and rank, or is a number that this dtype holds."""
    type_, result = shared.type, write.type
    if result.weak and not result.rank and not type_.rank:
        if not _holds(np.dtype(type_.dtype), write):
            raise ScanTypeError(
                f"{where}: the update of the shared variable {shared.name or repr(shared)} ({type_}) is {_number(write)}{_line(write)}, "
                f"which {type_.dtype} cannot hold; write update.astype({type_.dtype!r}) if the loss is meant"
            )
        return
    if type_.dtype != result.dtype or not _same_shape(type_, result):
        raise ScanTypeError(
            f"{where}: the update of the shared variable {shared.name or repr(shared)} ({type_}) is {result.strong()}{_line(write)}; "
            f"they must agree in dtype and shape: write update.astype({type_.dtype!r})"
        )


def _same_shape(a: TensorType, b: TensorType) -> bool:
    return a.rank == b.rank and all(x == y or x is None or y is None for x, y in zip(a.shape, b.shape, strict=True))


def _argument(name: str | None) -> str:
    return f" (argument {name!r} of the step)" if name else ""


def _line(write: Node, fn: Callable[..., Any] | None = None) -> str:
    if write.origin:
        return f" ({write.origin[0]}, line {write.origin[1]})"
    code = None if fn is None else code_of(fn)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""


def _of_dtype(row: TensorType, result: TensorType) -> str:
    return f"x0.astype({result.dtype!r})" if row.rank else f"np.{result.dtype.replace('bool', 'bool_')}(x0)"


def _of_shape(result: TensorType) -> str:
    return f"np.zeros({show_shape(result.shape)}, {result.dtype!r})" if result.rank else f"np.{result.dtype}(0)"
