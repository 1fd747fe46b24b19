"""Nests of tuples, lists, dicts, named tuples and dataclasses: flattened to leaves, and put together again.

A structure is hashable: LEAF, NONE, or (class, keys, structures of the children). The keys of a dataclass are the names of its fields.

A dataclass is put together field by field, without its `__init__`, which might change the fields again. So an instance may hold nothing
besides its fields.

The order in which the keys of a dict were written is part of the structure: a function may depend on it, so a trace for one order does
not serve another. Leaves are in the order of the sorted keys. So two nests that are `alike`, the same but for that order, have their leaves
in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

LEAF = "*"
NONE = "-"

Nest: TypeAlias = Any
"""An array, number or variable; or a tuple, list, dict, named tuple or dataclass of nests. No type can express it."""

Structure = str | tuple[Any, Any, tuple[Any, ...]]


class Keys(tuple[Any, ...]):
    """The keys of a dict, sorted; `written` has them in the order of the dict. Equal if they were written in the same order."""

    written: tuple[Any, ...]

    def __new__(cls, keys: Iterable[Any]) -> Keys:
        written = tuple(keys)
        in_order = super().__new__(cls, _sorted(written))
        in_order.written = written
        return in_order

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Keys):
            return tuple.__eq__(self, other)
        return self.written == other.written and all(map(_is_same_type, self.written, other.written))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class Static:
    """A value that is part of the structure, as the class of a nest without leaves. Two are equal if values and their types are."""

    __slots__ = ("_key", "value")
    __name__ = "static"  # in messages

    def __init__(self, value: Any) -> None:
        self.value, self._key = value, _exact(value)
        hash(self._key)

    def __call__(self, children: list[Any]) -> Any:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Static, (self.value,)


def _exact(value: Any) -> Any:
    """A key that tells apart equal values: 1, True and 1.0; 0.0 and -0.0; also within tuples, frozensets and dataclasses."""
    kind = type(value)
    if is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        return kind, value, tuple(_exact(getattr(value, one.name)) for one in fields(kind) if one.compare)
    if isinstance(value, (tuple, frozenset)):
        return kind, (tuple if isinstance(value, tuple) else frozenset)(map(_exact, value))
    return (kind, repr(value)) if isinstance(value, (float, complex, np.inexact)) else (kind, value)


def flatten(value: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None = None) -> Structure:
    """The structure of `value`; its leaves are appended to `leaves`, those of dicts in the order of the sorted keys.

    None is a nest without leaves. is_leaf: tells which lists, tuples and dicts are leaves instead of nests.

    >>> leaves = []
    >>> flatten({"b": (1, 2), "a": 3}, leaves), leaves
    ((<class 'dict'>, ('a', 'b'), ('*', (<class 'tuple'>, None, ('*', '*')))), [3, 1, 2])
    """
    if value is None:
        return NONE
    if not isinstance(value, (tuple, list, dict)) or (is_leaf is not None and is_leaf(value)):
        if type(value) is Static:
            return value, None, ()
        if is_record(type(value)):
            parts = fields_of(value)
            return type(value), tuple(parts), tuple(flatten(part, leaves, is_leaf) for part in parts.values())
        leaves.append(value)
        return LEAF
    if isinstance(value, dict):
        keys = Keys(value)
        return dict, keys, tuple(flatten(value[key], leaves, is_leaf) for key in keys)
    cls = type(value) if is_named_tuple(value) else (list if isinstance(value, list) else tuple)
    return cls, None, tuple(flatten(child, leaves, is_leaf) for child in value)


def flattened(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of `value`, and its structure."""
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    return leaves, structure


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The nest of `structure` with `leaves` in place.

    >>> unflatten((tuple, None, ("*", "*")), [1, 2])
    (1, 2)
    """
    return _build(structure, iter(leaves))


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure == LEAF:
        return next(leaves)
    if structure == NONE:
        return None
    assert not isinstance(structure, str)
    cls, keys, children = structure
    built = [_build(child, leaves) for child in children]
    if cls is dict:
        values = dict(zip(keys, built, strict=True))
        return {key: values[key] for key in keys.written}
    if is_record(cls):
        record = object.__new__(cls)
        for name, part in zip(keys, built, strict=True):
            object.__setattr__(record, name, part)  # the only way into a frozen dataclass
        return record
    return cls._make(built) if hasattr(cls, "_make") else cls(built)


class ListOf:
    """A list of nests as the class of a nest, whose children are arrays: for each leaf of an element, its values in all elements.

    depth: of how many levels of lists the elements are, each a row of the one array.
    """

    __slots__ = ("_key",)
    __name__ = "list"  # in messages

    def __init__(self, kind: type, structure: Structure, depth: int) -> None:
        self._key = kind, structure, depth

    @property
    def of_numbers(self) -> type | None:
        """list or tuple, for one of numbers or rows of one array; None for one of nests."""
        kind, structure, depth = self._key
        return kind if structure == LEAF and not depth else None

    def __call__(self, children: list[Any]) -> Any:
        kind, structure, depth = self._key
        return kind(self._element([array[k] for array in children], structure, depth) for k in range(len(children[0])))

    def _element(self, parts: list[Any], structure: Structure, depth: int) -> Any:
        return [self._element([row], structure, depth - 1) for row in parts[0]] if depth else unflatten(structure, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListOf) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return ListOf, self._key


class OpenList:
    """Base of lists whose length only the run knows. `flatten` takes one for a leaf; `opened_lists` gives its arrays."""

    @property
    def length(self) -> Any:
        """How many elements there are."""
        raise NotImplementedError

    def has_elements(self) -> Any:
        """Whether there is an element."""
        return self.length > 0

    def closed(self) -> Any:
        """Python's own list, where the length is known and no large one: every transform returns it. Else this list."""
        return self

    def parts(self) -> tuple[ListOf, list[Any]]:
        """The class of a nest for it, and the arrays that are the children."""
        raise NotImplementedError


def opened_lists(leaves: Iterable[Any], structure: Structure) -> tuple[list[Any], Structure]:
    """Leaves and structure, with the arrays of each `OpenList` in place of it."""
    found: list[Any] = []
    return found, _opened(iter(leaves), structure, found)


def _opened(leaves: Iterator[Any], structure: Structure, found: list[Any]) -> Structure:
    if not isinstance(structure, str):
        cls, keys, children = structure
        return cls, keys, tuple(_opened(leaves, child, found) for child in children)
    if structure != LEAF:
        return structure
    leaf = next(leaves)
    if not isinstance(leaf, OpenList):
        found.append(leaf)
        return LEAF
    make, arrays = leaf.parts()
    found.extend(arrays)
    return make, None, (LEAF,) * len(arrays)


def alike(one: Structure, other: Structure) -> bool:
    """Whether two structures are the same but for the order in which the keys of dicts were written.

    >>> alike(flatten({"a": 1, "b": 2}, []), flatten({"b": 1, "a": 2}, []))
    True
    """
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    (cls, keys, children), (other_cls, other_keys, others) = one, other
    is_same = cls is other_cls and tuple(keys or ()) == tuple(other_keys or ()) and len(children) == len(others)
    return is_same and all(map(alike, children, others))


def n_leaves(structure: Structure) -> int:
    """The number of leaves."""
    if isinstance(structure, str):
        return int(structure == LEAF)
    return sum(map(n_leaves, structure[2]))


def classes_in(structure: Structure) -> set[type]:
    """The classes of named tuples and dataclasses in a structure."""
    if isinstance(structure, str):
        return set()
    cls, _, children = structure
    return set().union({cls} - {tuple, list, dict}, *map(classes_in, children))


def paths(structure: Structure, root: str = "") -> list[str]:
    """A name for each leaf: the root, then keys, field names and positions.

    >>> paths((dict, ("P", "m"), ("*", (list, None, ("*", "*")))), "state")
    ['state_P', 'state_m_0', 'state_m_1']
    """
    if isinstance(structure, str):
        return [root] if structure == LEAF else []
    cls, keys, children = structure
    labels = keys or getattr(cls, "_fields", None) or range(len(children))
    return [path for label, child in zip(labels, children, strict=True) for path in paths(child, f"{root}_{label}" if root else str(label))]


def is_named_tuple(value: Any) -> bool:
    """Whether `value` is a tuple with named fields."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_record(cls: Any) -> bool:
    """Whether instances of a class are nests of their fields: a dataclass, unless it converts to an array by itself."""
    return hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "__array__")


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a dataclass, as a dict in their order."""
    return {name: getattr(record, name) for name in _names(record)}


def _names(record: Any) -> tuple[str, ...]:
    """The names of the fields. TypeError if the instance holds more than fields and cached properties, or lacks a field."""
    cls = type(record)
    names = tuple(one.name for one in fields(record))
    others = [name for name in getattr(record, "__dict__", ()) if name not in names]
    if lost := [name for name in others if not isinstance(getattr(cls, name, None), cached_property)]:
        raise TypeError(
            f"a {cls.__name__} holds {lost[0]}, which is no field of the dataclass; declare it: {lost[0]}: Any = field(init=False), or "
            f"compute it in a property"
        )
    if missing := [name for name in names if not hasattr(record, name)]:
        raise TypeError(f"a {cls.__name__} has no value for its field {missing[0]}; set it in __post_init__, or give it a default")
    return names


def _is_same_type(one: Any, other: Any) -> bool:
    return type(one) is type(other)  # 1 and True are equal, and yet other keys


def _sorted(keys: tuple[Any, ...]) -> list[Any]:
    """The keys sorted; by type and text if they do not compare."""
    try:
        return sorted(keys)
    except TypeError:
        return sorted(keys, key=lambda key: (type(key).__name__, repr(key)))


def describe(structure: Structure) -> str:
    """A structure in messages: `{'P': …, 'm': …}`, `(…, …)`, `an array`."""
    return "an array" if structure == LEAF else _describe(structure)


def _describe(structure: Structure) -> str:
    if isinstance(structure, str):
        return "…" if structure == LEAF else "None"
    cls, keys, children = structure
    inner = [_describe(child) for child in children]
    if cls is dict:
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(keys, inner, strict=True)) + "}"
    if cls is list:
        return f"[{', '.join(inner)}]"
    if is_record(cls):
        inner = [f"{key}={text}" for key, text in zip(keys, inner, strict=True)]
        return f"{cls.__name__}({', '.join(inner)})"
    return ("" if cls is tuple else cls.__name__) + "(" + ", ".join(inner) + ("," if len(inner) == 1 else "") + ")"
