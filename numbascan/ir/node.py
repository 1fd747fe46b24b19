"""Nodes: immutable and interned, so that equal computations are the same object.

That alone gives common-subexpression elimination, cheap merging of loops and a stable graph. `name` and `origin`
(file and line of the user's code) are notes on a node, no part of what it is.
"""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..types import TensorType, dtype_name

LOOP = "scan"  # the name of the op of loops
HIDDEN = "_ns_"  # how the variables begin that conversion makes: their names say nothing to a reader
Attrs = tuple[tuple[str, Hashable], ...]
Origin = tuple[str, int]

_serials = itertools.count()
_interned: weakref.WeakValueDictionary[Hashable, Node] = weakref.WeakValueDictionary()
_interning = threading.RLock()  # or two threads would make one node twice; reentrant: a garbage collection inside may make nodes


class _Asked(threading.local):
    count = 0


_asked = _Asked()


class Op(Protocol):
    """What a node computes. Cards, Scan and the leaves below are Ops."""

    @property
    def name(self) -> str: ...

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """The same computation on other inputs, with its types inferred again."""
        ...


class Node:
    """One computation: an Op on input nodes, with fixed attributes. Make it with `make`."""

    __slots__ = (
        "__weakref__",
        "attrs",
        "has_loop",
        "holder",
        "inputs",
        "is_held",
        "is_measured",
        "latest",
        "name",
        "op",
        "origin",
        "serial",
        "types",
    )

    op: Op
    inputs: tuple[Node, ...]
    attrs: Attrs
    types: tuple[TensorType, ...]
    serial: int
    latest: int  # the number of the last `make` that gave this node; at first its serial
    name: str | None
    origin: Origin | None
    has_loop: bool  # it is a loop, or depends on one
    holder: weakref.ref[object] | None  # the first variable that held it, while that lives
    is_measured: bool  # a fixed length of it was read as a plain number, from which no edge leads back
    is_held: bool  # a user holds it as a variable: a function may take another value for it, with other dimensions

    @property
    def type(self) -> TensorType:
        """The type of a node with one output."""
        (single,) = self.types
        return single

    @property
    def params(self) -> dict[str, Hashable]:
        return dict(self.attrs)

    def attr(self, key: str) -> Hashable:
        for name, value in self.attrs:
            if name == key:
                return value
        raise KeyError(key)

    def number(self, key: str) -> int:
        """An attribute that is an int."""
        value = self.attr(key)
        assert isinstance(value, int)
        return value

    def __repr__(self) -> str:
        label = f" {self.name!r}" if self.name else ""
        return f"<{self.op.name}{label} #{self.serial}: {', '.join(map(str, self.types))}>"


def make(
    op: Op, inputs: Sequence[Node], types: Sequence[TensorType], attrs: Attrs = (), name: str | None = None, origin: Origin | None = None
) -> Node:
    """The one node of this op, inputs, types and attributes; made now if there is none."""
    key = (id(op), tuple(node.serial for node in inputs), tuple(types), attrs)
    _asked.count += 1
    with _interning:
        node = _interned.get(key)
        if node is not None:
            if node.name is None:
                node.name = name
            node.latest = next(_serials)
            return node
        node = Node()
        node.op, node.inputs, node.types, node.attrs = op, tuple(inputs), tuple(types), attrs
        node.serial = node.latest = next(_serials)
        node.name, node.origin, node.is_held, node.is_measured, node.holder = name, origin, False, False, None
        node.has_loop = op.name == LOOP or any(parent.has_loop for parent in inputs)
        _interned[key] = node
        return node


def n_asked() -> int:
    """The number of `make` calls of this thread: it tells whether a piece of code computes with nodes, whatever other threads do."""
    return _asked.count


def next_serial() -> int:
    """A number below all later ones: a node with a smaller `serial` existed before, one with a smaller `latest` was not made since."""
    return next(_serials)


class Leaf:
    """An Op without inputs, told apart by its name alone."""

    def __init__(self, name: str) -> None:
        self.name = name

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return node

    def __repr__(self) -> str:
        return f"Leaf({self.name!r})"

    def __reduce__(self) -> str:
        return self.name.upper()  # a module-level name: unpickling finds the same object


INPUT = Leaf("input")  # a free variable; its attrs hold a unique number
ARG = Leaf("arg")  # the k-th argument of the closed graph it stands in
CONSTANT = Leaf("constant")


class Data:
    """An array as a hashable, read-only attribute. Small ones are equal by content, large ones by identity."""

    __slots__ = ("_key", "array")
    CONTENT_LIMIT = 65_536  # bytes up to which hashing the content is cheaper than compiling twice

    def __init__(self, array: npt.NDArray[np.generic]) -> None:
        self.array = array
        by_content = array.nbytes <= self.CONTENT_LIMIT
        self._key: Hashable = (array.dtype.str, array.shape, array.tobytes() if by_content else id(array))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        return _read_only, (self.array,)


def _read_only(array: npt.NDArray[np.generic]) -> Data:
    array.flags.writeable = False
    return Data(array)


def new_input(type_: TensorType, name: str | None = None, origin: Origin | None = None) -> Node:
    """A fresh free variable. Its number is unique among all processes, so that unpickling finds this variable or a new one."""
    return make(INPUT, (), (type_,), (("number", uuid.uuid4().int),), name, origin)


def arg(index: int, type_: TensorType, name: str | None = None) -> Node:
    """The `index`-th argument of a closed graph. Its name is part of it: arguments of other names are other nodes."""
    return make(ARG, (), (type_,), (("index", index), ("label", name)), name)


def constant(value: npt.ArrayLike, dtype: object = None, weak: bool = False) -> Node:
    """A fixed array or number."""
    array = np.array(value, dtype=dtype, order="C")  # type: ignore[call-overload]
    array = np.ascontiguousarray(array.astype(dtype_name(array.dtype), copy=False)).reshape(array.shape)
    array.flags.writeable = False
    return make(CONSTANT, (), (TensorType(array.dtype.name, array.shape, weak),), (("data", Data(array)),))


def labelled(node: Node, name: str | None) -> Node:
    """A constant under a name: a node of its own, so that equal constants elsewhere have none."""
    data = [attr for attr in node.attrs if attr[0] != "label"]
    return make(CONSTANT, (), node.types, (*data, *([] if name is None else [("label", name)])), name)


def named(node: Node, name: str | None) -> Node:
    """The node itself, named `name` unless it has a name. Hidden names are none; constants get none, as other programs hold them."""
    if node.name is None and node.op is not CONSTANT and not (name or "").startswith(HIDDEN):
        node.name = name
    return node


def constant_value(node: Node) -> npt.NDArray[np.generic] | None:
    """The array behind a constant node, None for any other node."""
    if node.op is not CONSTANT:
        return None
    data = node.attr("data")
    assert isinstance(data, Data)
    return data.array


class _Item:
    """Selects one output of a node with several."""

    name = "item"

    def rebuild(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return item(inputs[0], node.number("index"), node.name)

    def __reduce__(self) -> str:
        return "ITEM"


ITEM = _Item()


def item(node: Node, index: int, name: str | None = None) -> Node:
    """The `index`-th output of `node`, as a node of one output."""
    return make(ITEM, (node,), (node.types[index],), (("index", index),), name, node.origin)


def owner_of(node: Node) -> tuple[Node, int]:
    """The node that computes `node`, and which of its outputs that is."""
    return (node.inputs[0], node.number("index")) if node.op is ITEM else (node, 0)


def outputs_of(node: Node) -> tuple[Node, ...]:
    """Every output of `node` as a node of one output."""
    return (node,) if len(node.types) == 1 else tuple(item(node, k) for k in range(len(node.types)))
