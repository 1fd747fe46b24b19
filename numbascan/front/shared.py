"""Shared variables: variables whose value stays between calls, read by every function that uses them and replaced by updates."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..ir.node import INPUT, Node, make
from ..tracebacks import entry, with_entries
from ..types import TensorType, dtype_name
from .conversion import fit
from .variable import Variable, not_numbers, refuse_other_arrays

STATES: weakref.WeakSet[Node] = weakref.WeakSet()
"""Shared variables that are states of random streams."""

_naming = threading.RLock()  # not a container's own lock, which a run holds until it ends


class Container:
    """Holds the value of a shared variable. Whoever replaces the value holds `lock`."""

    __slots__ = ("lock", "value", "variable")

    def __init__(self, value: np.ndarray) -> None:
        self.value = value
        self.lock = threading.RLock()
        self.variable: Callable[[], SharedVariable | None] = lambda: None

    def __reduce__(self) -> tuple[Any, ...]:
        return Container, (self.value,)


class Source(Protocol):
    """A source of seeds for streams. Sources of lower order are asked first."""

    order: int

    def seed(self) -> int:
        """The next seed."""
        ...


class SeededContainer(Container):
    """The state of a stream that begins anew with each run, under the next seed of its source. It is not carried on."""

    __slots__ = ("number", "source")

    def __init__(self, source: Source, number: int) -> None:
        super().__init__(np.array([0, number, 0], dtype=np.uint64))
        self.source, self.number = source, number

    def __reduce__(self) -> tuple[Any, ...]:
        return SeededContainer, (self.source, self.number)


def begin(containers: Sequence[SeededContainer]) -> None:
    """Sets new values for a run, with one seed from each source. The caller holds the locks."""
    sources = sorted(dict.fromkeys(container.source for container in containers), key=lambda source: source.order)
    seeds = {source: source.seed() for source in sources}
    for container in containers:
        container.value = np.array([seeds[container.source], container.number, 0], dtype=np.uint64)


@with_entries()
class SharedVariable(Variable):
    """A variable with a value of its own. Make it with `ns.shared`.

    >>> import numbascan as ns
    >>> total = ns.shared(0.0, name="total")
    >>> total.set_value(2.5)
    >>> float(total.get_value())
    2.5
    """

    __slots__ = ()

    @property
    def container(self) -> Container:
        container: Any = self.node.attr("container")
        return container

    def get_value(self, borrow: bool = False) -> np.ndarray:
        """The value, as a copy; with `borrow=True` the very array that functions read."""
        value = self.container.value
        return value if borrow else value.copy()

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replaces the value, by a copy unless `borrow=True`. Its dtype and rank must fit, its shape may change.

        Raises TypeError for a dtype that would lose digits and for another rank.
        """
        array = np.asarray(fit(value, self.type, f"the value of shared variable {self.name or self.type}"))
        with self.container.lock:
            self.container.value = array if borrow else array.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_of, (self.node,)


def is_shared(node: Node) -> bool:
    """Whether a node stands for a shared variable."""
    return node.op is INPUT and node.attrs[0][0] == "container"


def shared_of(node: Node) -> SharedVariable | None:
    """The shared variable that a node stands for; None for any other node. Always the same object while one exists.

    Compare the result with None: a variable has no truth value.
    """
    if not is_shared(node):
        return None
    container: Any = node.attr("container")
    with _naming:
        known: SharedVariable | None = container.variable()
        if known is None:
            known = SharedVariable(node)
            container.variable = weakref.ref(known)
    return known


def variable_of(node: Node) -> Variable:
    """The variable of a node, shared or not: the first one made, if it still exists."""
    variable: Variable | None = shared_of(node)
    if variable is None and node.holder is not None:
        holder = node.holder()
        variable = holder if isinstance(holder, Variable) else None
    return Variable(node) if variable is None else variable


@entry
def shared(value: Any, name: str | None = None, borrow: bool = False) -> SharedVariable:
    """A shared variable that starts with `value`.

    Arguments: value, an array or a number (int becomes int64, float becomes float64); its dtype and rank stay, its shape may change;
    name, for messages; borrow=True keeps the very array instead of a copy.

    Raises TypeError for a dtype that is not supported.

    >>> import numbascan as ns
    >>> ns.shared([1.0, 2.0], name="w")
    <w: float64[?]>
    """
    if isinstance(value, Variable):
        raise TypeError(f"the value of a shared variable must be an array or a number, not the symbolic {value!r}")
    label = f"the value of shared variable {name or ''}".rstrip()
    refuse_other_arrays(value, label)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{label} is {not_numbers(value)}; pass an array or a number")
    dtype = dtype_name(array.dtype)
    return shared_in(Container(array.astype(dtype, order="C", copy=not borrow)), name)


def shared_in(container: Container, name: str | None) -> SharedVariable:
    """The shared variable of a container."""
    type_ = TensorType(dtype_name(container.value.dtype), (None,) * container.value.ndim)
    node = make(INPUT, (), (type_,), (("container", container), ("number", uuid.uuid4().int)), name)
    variable = shared_of(node)
    assert variable is not None
    return variable
