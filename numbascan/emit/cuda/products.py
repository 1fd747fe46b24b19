"""Products of matrices among loops in threads: a library computes large ones.

    # before: threads over i, j:                     # as a call: by_cublas("ik,.kj->ij", {"i": n, "j": m, "k": p},
    #             total = 0.0                        #                 (a, (0, 0)), (b, (t, 0, 0)), (c, (0, 0)))
    #             for k in range(p):
    #                 total += a[i, k] * b[t, k, j]
    #             c[i, j] = total

An axis has the letter of the counter that moves along it: i of rows, j of columns, k of sums, b of a batch; a point if none does.

Not handled:
- operands that are read backwards, or converted on the way
- matrices whose last axis has no counter of rows, columns or sums: no library takes them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir import loops as ir
from .grid import nest_of

FLOATS = ("float32", "float64", "complex64", "complex128")
MOST_COUNTERS = 3  # for a batch of matrices


@dataclass(frozen=True)
class OperandPlace:
    """An operand: its array, a letter or a point for each axis, and where its elements begin."""

    array: str
    axes: str
    start: tuple[ir.Index, ...]


@dataclass(frozen=True)
class Product:
    """A product of two operands and its result, and the length of each letter."""

    left: OperandPlace
    right: OperandPlace
    result: OperandPlace
    lengths: Mapping[str, ir.Index]

    @property
    def labels(self) -> str:
        return f"{self.left.axes},{self.right.axes}->{self.result.axes}"

    @property
    def size(self) -> ir.Index:
        """The number of multiplications."""
        size: ir.Index = 1
        for length in self.lengths.values():
            size = ir.mul(size, length)
        return size

    def can_be_found(self, known: set[str]) -> bool:
        """True if the host knows the operands' places and lengths."""
        starts = [start for place in (self.left, self.right, self.result) for start in place.start]
        arrays = {place.array for place in (self.left, self.right, self.result)}
        return arrays <= known and all(_is_known(one, known) for one in (*starts, *self.lengths.values()))

    def is_sized(self, known: set[str]) -> bool:
        """True if the host knows the lengths."""
        return all(_is_known(one, known) for one in self.lengths.values())


def product_of(loop: ir.Stmt) -> Product | None:
    """The product of matrices, or of a matrix and a vector, or a batch of these, that a loop in threads computes; None if it is none."""
    if not isinstance(loop, ir.For) or loop.kind != "threads" or len(nest := nest_of(loop)) > MOST_COUNTERS:
        return None
    body = [stmt for stmt in nest[-1].body if not isinstance(stmt, ir.Note)]
    if len(body) != 3:
        return None
    zero, summing, store = body
    if not (isinstance(zero, ir.Let) and isinstance(summing, ir.For) and isinstance(store, ir.Store)):
        return None
    factors = _factors(zero, summing, store)
    if factors is None:
        return None
    loops = [*nest, summing]
    letters = {one.name: chr(ord("A") + k) for k, one in enumerate(loops)}
    lengths = {letters[one.name]: ir.sub(one.stop, one.start) for one in loops}
    starts = {one.name: one.start for one in loops}
    places = [_place(one.array, one.index, letters, starts) for one in (*factors, store)]
    left, right, result = places
    if left is None or right is None or result is None or any(name in letters for one in lengths.values() for name, _ in ir.names_in(one)):
        return None
    roles = _roles(*(place.axes.replace(".", "") for place in (left, right, result)))
    if roles is None or len(roles) != len(loops):
        return None
    left, right, result = (replace(one, axes="".join(roles.get(axis, ".") for axis in one.axes)) for one in (left, right, result))
    if not all(map(_is_along_rows, (left, right, result))):
        return None
    return Product(left, right, result, {roles[letter]: length for letter, length in lengths.items()})


def _factors(zero: ir.Let, summing: ir.For, store: ir.Store) -> tuple[ir.Load, ir.Load] | None:
    """The factors of a sum of products that begins with zero and is stored; None if the statements are no such sum."""
    total, value = zero.name, zero.value
    if not isinstance(value, ir.Literal) or value.value != 0 or value.dtype not in FLOATS or not zero.is_new:
        return None
    state = ir.Name(value.dtype, total)
    if store.value != state or store.combine or summing.kind != "sequential" or summing.step != 1:
        return None
    *locals_, last = (stmt for stmt in summing.body if not isinstance(stmt, ir.Note))
    values: dict[str, ir.Index] = {}
    for stmt in locals_:
        if not isinstance(stmt, ir.Let) or not stmt.is_new:
            return None
        values[stmt.name] = _with_values(stmt.value, values)
    if not isinstance(last, ir.Let) or last.name != total or not isinstance(last.value, ir.Apply) or len(last.value.args) != 2:
        return None
    before, product = last.value.args
    of_card = ir.IN_ORDER if value.dtype.startswith("complex") else ir.ACCUMULATE
    if last.value.template != of_card or before != state or not isinstance(product, ir.Apply):
        return None
    factors = [_with_values(factor, values) for factor in product.args]
    if product.template != ir.PRODUCT or product.dtype != value.dtype:
        return None
    match factors:
        case [ir.Load() as left, ir.Load() as right] if left.dtype == right.dtype == value.dtype:
            return left, right
    return None


def _with_values(expr: ir.Index, values: Mapping[str, ir.Index]) -> ir.Index:
    """The expression with locals replaced by their values."""

    def value_of(part: ir.Expr) -> ir.Index | None:
        return values.get(part.name) if isinstance(part, ir.Name) else None

    return ir.mapped(expr, value_of)


def _place(array: str, index: Sequence[ir.Index], counters: Mapping[str, str], starts: Mapping[str, ir.Index]) -> OperandPlace | None:
    """The place of an operand; None if a counter moves along it other than by ones, or along two axes."""
    axes, begins = "", []
    for one in index:
        moving = [name for name, _ in ir.names_in(one) if name in counters]
        if not moving:
            axes += "."
            begins.append(one)
            continue
        move = ir.slope_and_rest(one, ir.Name("int64", moving[0])) if len(moving) == 1 else None
        if move is None or move[0] != 1:
            return None
        axes += counters[moving[0]]
        begins.append(ir.add(move[1], starts[moving[0]]))
    letters = axes.replace(".", "")
    return OperandPlace(array, axes, tuple(begins)) if len(set(letters)) == len(letters) else None


def _roles(left: str, right: str, result: str) -> dict[str, str] | None:
    """The role of each counter: i of rows, j of columns, k of sums, b of a batch; None if this is no product with at least one matrix.

    One operand may be the same for the whole batch.
    """
    both = [letter for letter in result if letter in left and letter in right]
    rows = [letter for letter in result if letter in left and letter not in right]
    columns = [letter for letter in result if letter in right and letter not in left]
    summed = [letter for letter in left if letter in right and letter not in result]
    batch = both + rows[:-1] + columns[:-1]
    is_whole = set(left + right + result) == {*both, *rows, *columns, *summed}
    if not is_whole or len(batch) > 1 or len(summed) != 1 or not rows + columns:
        return None
    return dict(
        zip((*batch, *rows[-1:], *columns[-1:], *summed), "b" * len(batch) + "i" * bool(rows) + "j" * bool(columns) + "k", strict=True)
    )


def _is_along_rows(place: OperandPlace) -> bool:
    """True if neighbours in a matrix are contiguous in memory. A vector may have gaps."""
    return len(set(place.axes) - {*".b"}) < 2 or place.axes[-1] not in ".b"


def _is_known(expr: ir.Index, known: set[str]) -> bool:
    return all(name in known and not is_element for name, is_element in ir.names_in(expr))


def products_in(stmts: Sequence[ir.Stmt]) -> list[Product]:
    """The products among statements, except within a pass of a loop in threads or of sums."""
    found: list[Product] = []
    for stmt in stmts:
        if isinstance(stmt, ir.For):
            product = product_of(stmt)
            found += [product] if product is not None else [] if stmt.kind in ("threads", "sums") else products_in(stmt.body)
        elif isinstance(stmt, ir.If):
            found += products_in([*stmt.then, *stmt.otherwise])
    return found
