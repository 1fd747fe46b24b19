"""Where a tensor value lives: in memory, in locals, or nowhere (computed where it is read)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from ...ir.loops import Expr, Index, Load, Store, add
from ...types import TensorType
from ..builder import Block, Builder, Indices


@dataclass(frozen=True)
class Value:
    """A tensor value. `dims`: ints if fixed, else index expressions."""

    type: TensorType
    dims: Indices

    def at(self, index: Indices) -> Expr:
        """The element at `index`."""
        raise NotImplementedError


@dataclass(frozen=True)
class InMemory(Value):
    """Elements of `array` behind fixed leading indices; `offset` is added to the first free index (rows before the first)."""

    array: str
    lead: Indices = ()
    offset: Index = 0

    def at(self, index: Indices) -> Expr:
        if self.offset != 0:
            index = (add(index[0], self.offset), *index[1:])
        return Load(self.type.dtype, self.array, (*self.lead, *index))

    def place(self, dims: Indices) -> InMemory:
        """Itself: memory that is ready for a value of these dimensions."""
        return self


@dataclass(frozen=True)
class Computed(Value):
    """A value that is not stored: an expression of the index."""

    element: Callable[[Indices], Expr]

    def at(self, index: Indices) -> Expr:
        return self.element(index)


@dataclass(frozen=True)
class InLocals(Value):
    """One local (or literal) per element, all dimensions fixed. It is copied to memory first if it is read at a run-time index."""

    elements: dict[tuple[int, ...], Expr]
    builder: Builder
    home: Block
    name: str = "row"

    def at(self, index: Indices) -> Expr:
        fixed = tuple(i for i in index if isinstance(i, int))
        if len(fixed) == len(index):
            return self.elements[fixed]
        return Load(self.type.dtype, self.spilled(), index)

    def spilled(self) -> str:
        """The name of an array with the same elements, written at the current end of their block."""
        key = (id(self.elements), id(self.home))
        if key not in self.builder.spills:
            shape = tuple(dim for dim in self.type.shape if dim is not None)
            with self.builder.at(self.home):
                array = self.builder.alloc(self.name, shape, self.type.dtype)
            self.home.stmts.extend(Store(array, index, expr) for index, expr in self.elements.items())
            self.builder.spills[key] = (self.elements, self.home), array  # kept alive, so that no other object gets their ids
        return self.builder.spills[key][1]


def indices_of(shape: tuple[int | None, ...]) -> list[tuple[int, ...]]:
    """Every index of a fixed shape, in C order."""
    return list(product(*(range(dim or 0) for dim in shape)))
