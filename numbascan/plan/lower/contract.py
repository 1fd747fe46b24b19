"""Sums of products: small ones as loops with fixed bounds, large ones by BLAS.

Loops run in axpy order (`out[j] += a[k] * b[k, j]`) where the last axis of the result is contiguous in an operand, and the target wants
it: that order needs no reordering of sums to fill the SIMD unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...ir.loops import ACCUMULATE, CALL, Apply, Call, Expr, Index, Literal, Load, Name, Template, add
from ...ir.node import Node
from ...ops.card import Card
from ...ops.contract import misfit
from ...ops.elementwise import ADD, MUL, ROUNDED_MUL
from ...ops.lowering import Contract, Elementwise
from ..builder import Indices
from ..casts import cast
from ..storage.placement import Placement, is_small
from ..storage.stores import copied, fixed_dims, in_locals, store
from ..storage.tensor_values import InLocals, InMemory, Value, indices_of
from .routine_operands import in_memory, named, oriented
from .scope import Scope, location

SHORT_SUM = 8  # products that are summed in one expression
_DOT = Template("np.dot({0}, {1})", cost=CALL)

Labels = tuple[int, ...]


def lower(scope: Scope, node: Node, kind: Contract) -> Value:
    """The value of a contraction."""
    labels = kind.labels or node.attr("labels")
    assert isinstance(labels, tuple)
    a_labels, b_labels, out_labels = labels
    extents = _extents(scope, node, (a_labels, b_labels))
    dims = fixed_dims(scope.builder, node, tuple(extents[label] for label in out_labels))
    task = _Contraction(scope, node, a_labels, b_labels, out_labels, extents)
    if not dims:
        return InLocals(node.type, (), {(): task.element(())}, scope.builder, scope.builder.block)
    if scope.placement(node) is Placement.LOCALS and node not in scope.targets:
        return in_locals(scope.builder, node, {index: task.element(index) for index in indices_of(node.type.shape)})
    places = scope.destinations(node, dims)
    if not task.by_blas(places[0]):
        task.by_loops(dims, places[0])
    for other in places[1:]:
        copied(scope.builder, places[0], other)
    return places[0]


def _extents(scope: Scope, node: Node, operands: Sequence[Labels]) -> dict[int, Index]:
    """The length of each label; both operands must agree on a shared one."""
    extents: dict[int, Index] = {}
    for parent, labels in zip(node.inputs, operands, strict=True):
        for label, dim in zip(labels, scope.value(parent).dims, strict=True):
            if label in extents and extents[label] != dim:
                message = misfit() + location(scope, node)
                scope.builder.same(extents[label], dim, "ValueError", message)
            if label not in extents or isinstance(dim, int):
                extents[label] = dim
    return extents


class _Contraction:
    """One contraction and its ways to be computed."""

    def __init__(self, scope: Scope, node: Node, a: Labels, b: Labels, out: Labels, extents: dict[int, Index]) -> None:
        self.scope, self.node, self.builder = scope, node, scope.builder
        self.a, self.b, self.out, self.extents = a, b, out, extents
        self.summed = [label for label in dict.fromkeys((*a, *b)) if label not in out]
        self.dtype = node.type.dtype

    def product(self, where: dict[int, Index]) -> Expr:
        """One product at the given place of every label."""
        first, second = self.node.inputs
        x = self._element(first, tuple(where[label] for label in self.a))
        y = self._element(second, tuple(where[label] for label in self.b))
        return self._applied(ROUNDED_MUL if self.node.params.get("rounded") else MUL, x, y)

    def _element(self, operand: Node, index: Indices) -> Expr:
        """An element of an operand; of a small argument it is read once, before the loop: a read takes 2 ms to compile."""
        element: Expr = self.scope.value(operand).at(index)
        if isinstance(element, Load) and is_small(operand, self.scope.target) and self._is_argument(element):
            label = "_".join((element.array, *map(str, element.index)))
            known = self.builder.held(element)
            element = known if isinstance(known, Name) else self.builder.let(label, element)
        return cast(element, self.dtype)

    def _is_argument(self, element: Load) -> bool:
        """True for an element, at a known place, of an array that a step was given and does not change."""
        is_input = self.scope.context.arguments.is_input(element.array)
        return is_input and self.builder.block is not self.builder.root and all(isinstance(place, int) for place in element.index)

    def total(self, x: Expr, y: Expr) -> Expr:
        """One more product added to a sum."""
        return self._applied(ADD, x, y)

    def _applied(self, card: Card, x: Expr, y: Expr) -> Expr:
        assert isinstance(card.lower, Elementwise)
        return Apply(self.dtype, card.lower.code(self.dtype, self.dtype), (x, y))

    def n_products(self, labels: Sequence[int]) -> int | None:
        """The number of products over some labels; None if it is known at run time only."""
        total = 1
        for label in labels:
            extent = self.extents[label]
            if not isinstance(extent, int):
                return None
            total *= extent
        return total

    def _is_short(self) -> bool:
        """True if the sum has few enough products to be one expression."""
        n_terms = self.n_products(self.summed)
        return n_terms is not None and n_terms <= SHORT_SUM

    def element(self, index: Indices) -> Expr:
        """One element of the result: written out where the sum is short, else accumulated in a loop."""
        where = dict(zip(self.out, index, strict=True))
        if self._is_short() and self.n_products(self.summed):
            places = indices_of(tuple(extent for label in self.summed if isinstance(extent := self.extents[label], int)))
            total = reduce(self.total, (self.product({**where, **dict(zip(self.summed, place, strict=True))}) for place in places))
            return self.builder.let(self.node.name, total, hoist=False) if not index else total
        if not index and self._dot_call_fits():
            call = Apply(self.dtype, _DOT, tuple(Load(self.dtype, self._array(k, {})[0], ()) for k in (0, 1)))
            return self.builder.let(self.node.name or "dot", call, hoist=False)
        accumulator = self.builder.variable(self.node.name or "total", self.zero(), self.dtype)
        self._accumulate(accumulator, where)
        return accumulator

    def zero(self) -> Expr:
        return Literal(self.dtype, False if self.dtype == "bool" else 0 if self.dtype[0] in "iu" else 0.0)

    def _accumulate(self, accumulator: Name, where: dict[int, Index]) -> None:
        is_in_any_order = self.dtype.startswith("float") and "np.dot" not in self.scope.target.routines  # as BLAS takes it

        def body(index: Indices) -> None:
            term = self.product({**where, **dict(zip(self.summed, index, strict=True))})
            total = Apply(self.dtype, ACCUMULATE, (accumulator, term)) if is_in_any_order else self.total(accumulator, term)
            self.builder.assign(accumulator, cast(total, self.dtype))

        self.builder.nest([self.extents[label] for label in self.summed], body, letters="klmnpq")
        self.builder.stay([accumulator.name])

    def by_loops(self, dims: Indices, place: InMemory) -> None:
        """Loops in axpy order where that is contiguous, else a sum per element."""
        if self.scope.target.adds_rows and len(self.summed) == 1 and self._is_axpy() and not self._is_short():
            self._axpy(dims, place)
            return
        self.builder.nest(dims, lambda index: self.builder.emit(store(place, index, self.element(index))))

    def _is_axpy(self) -> bool:
        last = self.out[-1]
        return self.b[-1] == last or self.a[-1] == last

    def _axpy(self, dims: Indices, place: InMemory) -> None:
        (label,) = self.summed

        def row(outer: Indices) -> None:
            with self.builder.loop("j", dims[-1]) as j:
                self.builder.emit(store(place, (*outer, j), self.zero()))
            with self.builder.loop("k", self.extents[label]) as k, self.builder.loop("j", dims[-1]) as j:
                where = {**dict(zip(self.out, (*outer, j), strict=True)), label: k}
                self.builder.emit(store(place, (*outer, j), self.total(place.at((*outer, j)), self.product(where))))

        self.builder.nest(dims[:-1], row, letters="imnpq")

    # BLAS -----------------------------------------------------------------------------------------------------------

    def _is_large(self, lead: Labels = ()) -> bool:
        """True if there are enough products for a call of BLAS to pay, with the labels of `lead` at one place each."""
        products, target = self.n_products([label for label in self.extents if label not in lead]), self.scope.target
        has_routine = self.dtype in ("float32", "float64", "complex64", "complex128") and "np.dot" in target.routines
        return has_routine and (products is None or products >= target.blas_from)

    def _dot_call_fits(self) -> bool:
        return self._is_large() and len(self.a) == len(self.b) == 1

    def by_blas(self, place: InMemory) -> bool:
        """One `np.dot(x, y, out)` for each item of a batch; False where the labels are not those of products of matrices."""
        lead = next((lead for n in range(len(self.out)) if self._is_product(lead := self.out[:n])), None)
        if lead is None or not all(self._is_in_memory(k, lead) for k in (0, 1)):
            return False
        self.builder.nest([self.extents[label] for label in lead], lambda index: self._item(dict(zip(lead, index, strict=True)), place))
        return True

    def _is_product(self, lead: Labels) -> bool:
        """True if `lead` comes first in each operand that has its labels, and the other labels are those of one large matrix product."""
        if any(labels[: len(set(labels) & set(lead))] != _among(labels, lead) for labels in (self.a, self.b)):
            return False
        a, b, out = (_without(labels, lead) for labels in (self.a, self.b, self.out))
        if not self._is_large(lead) or len(self.summed) != 1 or max(len(a), len(b)) > 2 or len(out) != len(a) + len(b) - 2:
            return False
        (k,) = self.summed
        left, right = (a, b) if out[0] in a else (b, a)
        return len(out) < 2 or out == (_other(left, k), _other(right, k))

    def _is_in_memory(self, operand: int, lead: Labels) -> bool:
        """True if the items of an operand are arrays, or if it has no items and becomes one array."""
        value = in_memory(self.scope, self.node.inputs[operand])
        is_whole = not set((self.a, self.b)[operand]) & set(lead)
        return is_whole or (isinstance(value, InMemory) and value.type.dtype == self.dtype)

    def _item(self, where: dict[int, Index], place: InMemory) -> None:
        (k,) = self.summed
        labels = tuple(_without(side, tuple(where)) for side in (self.a, self.b))
        out = self.out[len(where) :]
        result = _at(place, tuple(where.values()))
        left, right = (0, 1) if out[0] in labels[0] else (1, 0)
        if len(out) == 1 and len(labels[right]) == 2:  # vector times matrix
            left, right = right, left
            x = self._array(left, where, labels[left][0] == k)  # matrix as stored, or transposed: out = matrix @ vector
            self._call(x, self._array(right, where), result)
            return
        x = self._array(left, where, labels[left][0] == k and len(labels[left]) == 2)
        y = self._array(right, where, labels[right][-1] == k and len(labels[right]) == 2)
        self._call(x, y, result)

    def _array(self, k: int, where: dict[int, Index], transposed: bool = False) -> tuple[str, bool]:
        """Operand k as an array, and whether it is to be transposed, as asked; a transpose that the graph holds is undone here."""
        places = tuple(where[label] for label in (self.a, self.b)[k] if label in where)
        if places:
            value = in_memory(self.scope, self.node.inputs[k])
            assert isinstance(value, InMemory)
            return named(self.scope, _at(value, places)), transposed
        array, is_transpose = oriented(self.scope, self.node.inputs[k], self.dtype)
        return array, is_transpose != transposed

    def _call(self, x: tuple[str, bool], y: tuple[str, bool], place: InMemory) -> None:
        (left, turns_left), (right, turns_right) = x, y
        result = named(self.scope, place)
        self.builder.emit(Call("np.dot", (left, right, result), results=(result,), turned=(turns_left, turns_right)))


def _other(labels: Labels, k: int) -> int | None:
    """The label beside `k` in an operand of rank 2, None in one of rank 1."""
    return next((label for label in labels if label != k), None)


def _without(labels: Labels, lead: Labels) -> Labels:
    return tuple(label for label in labels if label not in lead)


def _among(labels: Labels, lead: Labels) -> Labels:
    return tuple(label for label in lead if label in labels)


def _at(value: InMemory, places: Indices) -> InMemory:
    """The part of an array in memory at fixed places of its first axes."""
    if not places:
        return value
    first, *others = places
    lead = (*value.lead, add(value.offset, first), *others)
    return InMemory(value.type.with_shape(value.type.shape[len(places) :]), value.dims[len(places) :], value.array, lead)
