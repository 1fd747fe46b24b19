"""States kept by a loop of unknown length: evenly spaced, and thinned out as they get too many.

before step t, where t is due     no row is free: every second one is dropped, and the next is due later
                                  still due: the state is stored
"""

from __future__ import annotations

from ...ir.loops import Expr, If, Index, Literal, Load, Store, add, compare, floor_div, mul, sub
from ...types import TensorType
from ..builder import Builder, Indices
from ..casts import cast
from .states import FEW_ROWS, StateStorage
from .stores import copied
from .tensor_values import InMemory, Value


class Thinning:
    """At most `most` of the states before each step, with room for `n_rows`. Made before the loop; `keep` in it; `value` after it."""

    def __init__(self, builder: Builder, storage: StateStorage, n_rows: Index, most: Index, name: str) -> None:
        self.builder, self.storage, self.n_rows, self.most = builder, storage, n_rows, most
        depth = storage.state.depth
        self.dims: Indices = (self.n_rows, *((depth,) if depth > 1 else ()), *storage.dims)
        self.array = self.builder.alloc(name, self.dims, storage.type.dtype)
        self.count = self.builder.variable("kept", 0, "int64")  # states kept so far
        self.stride = self.builder.variable("stride", 1, "int64")
        self.due = self.builder.variable("due", 0, "int64")

    def changing(self) -> list[str]:
        return [self.array, self.count.name, self.stride.name, self.due.name]

    def keep(self, t: Index) -> None:
        """Writes what step t does first: thin out if there is no room, and store the state if it is due."""
        builder = self.builder
        with builder.branch() as due:
            with builder.branch() as full:
                self._thin_out()
            builder.emit(If(compare("==", self.count, self.most), full))
            with builder.branch() as still_due:
                self._store(t)
            builder.emit(If(compare("==", t, self.due), still_due))
        builder.emit(If(compare("==", t, self.due), due))

    def _thin_out(self) -> None:
        builder = self.builder
        with builder.loop("k", floor_div(sub(self.most, 1), 2), always=True) as k:
            there, here = add(mul(k, 2), 2), add(k, 1)
            builder.nest(self.dims[1:], lambda index: builder.emit(Store(self.array, (here, *index), self._element((there, *index)))))
        builder.assign(self.count, floor_div(add(self.most, 1), 2))
        builder.assign(self.stride, mul(self.stride, 2))
        builder.assign(self.due, mul(self.count, self.stride))

    def _store(self, t: Index) -> None:
        depth, storage = self.storage.state.depth, self.storage
        builder = self.builder

        def copy(k: Index) -> None:
            lead = (self.count, k) if depth > 1 else (self.count,)
            copied(builder, storage.read(sub(k, depth), t, builder.block), InMemory(storage.type, storage.dims, self.array, lead))

        if depth > FEW_ROWS:
            builder.nest((depth,), lambda index: copy(*index))
        else:
            for k in range(depth):
                copy(k)
        self.builder.assign(self.count, add(self.count, 1))
        self.builder.assign(self.due, add(self.due, self.stride))

    def _element(self, index: Indices) -> Expr:
        return Load(self.storage.type.dtype, self.array, index)

    def value(self, type_: TensorType) -> Value:
        """The states kept, with zeros in the free rows."""
        zero = cast(Literal("int64", 0), self.storage.type.dtype)
        left = (sub(self.n_rows, self.count), *self.dims[1:])
        self.builder.nest(left, lambda index: self.builder.emit(Store(self.array, (add(index[0], self.count), *index[1:]), zero)))
        return InMemory(type_, self.dims, self.array)
