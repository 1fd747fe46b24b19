"""The ways an op becomes loops. A card carries one of these; `plan/` knows only them, not the ops.

All functions here take an `Operands` view of the node: its attributes, its operands' dimensions and elements. They return
index arithmetic and scalar expressions of `ir/loops.py`, never text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Union

from ..ir.loops import Expr, Index, Name, Template
from ..types import TensorType

Indices = tuple[Index, ...]


class Operands(Protocol):
    """A node as seen by its lowering."""

    @property
    def attrs(self) -> dict[str, Any]: ...

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the operands."""
        ...

    @property
    def out(self) -> TensorType:
        """Type of the (first) result."""
        ...

    def dims(self, k: int) -> Indices:
        """Dimensions of operand k: ints where fixed, expressions where only the run knows them."""
        ...

    def at(self, k: int, index: Indices = (), dtype: str | None = None) -> Expr:
        """The element of operand k at `index`, cast to `dtype` if given."""
        ...

    def chosen(self, condition: Expr, yes: Callable[[], Expr], no: Callable[[], Expr]) -> Expr:
        """`yes()` where the condition holds, else `no()`. Elements are read for a side, and checked, only where that is taken."""
        ...

    def short(self, number: Expr) -> Expr:
        """A number that is written several times: itself, or a local where it is long."""
        ...

    def known(self, number: Index) -> Index:
        """A number as short as what is known of lengths makes it."""
        ...

    def scalar(self, k: int) -> Index:
        """Operand k, a scalar integer, as index arithmetic (an int where it is constant). One beyond int64 is the greatest of int64."""
        ...

    def check(self, condition: Expr, error: str, message: str, *numbers: Index) -> None:
        """Raise `error` at run time unless `condition` holds. {0}, {1}, … in the message stand for the numbers."""
        ...

    def same(self, a: Index, b: Index, error: str, message: str, unless: Expr | None = None) -> None:
        """Raise `error` at run time unless two dimensions are equal; from here on they count as one. Where `unless` holds both stay."""
        ...

    def broadcasts(self, dim: Index, extent: Index, error: str, message: str) -> None:
        """Raise `error` at run time unless `dim` is `extent`, or 1 where it `stretches`. {0} stands for `extent`, {1} for `dim`."""
        ...

    def stretches(self, dim: Index, extent: Index) -> bool:
        """Is a dimension at most 1 whatever the run brings, as that of `x[:1]`, and `extent` another one?"""
        ...


Dims = Callable[[Operands], Indices]


@dataclass(frozen=True)
class Elementwise:
    """out[i] = code(operands[i]) with broadcasting.

    `loop(*types)` gives the dtypes of the computation, operands first, results after (as `ufunc.resolve_dtypes`);
    `code(*loop_dtypes)` the text. Operands and results are cast by the driver.
    """

    loop: Callable[..., tuple[str, ...]]
    code: Callable[..., Template]


@dataclass(frozen=True)
class View:
    """out[i] = operand[index(i)]. Nothing is stored. `index` gives the place in operand 0.

    `keeps_dims`: a dimension whose place `index` leaves as it is, or moves to another axis, is the operand's own.
    `keeps_order`: every element is there once, in the operand's order. `repeats`: an element may be read several times.
    `renames`: a dimension may be another one than the operand's where there is no element.
    `summed`: what is written instead where dimensions ask for sums, which only they tell.
    `depth`: for how many operations it counts in an expression. An index that names i thrice is 27 times as long behind two others.
    """

    dims: Dims
    index: Callable[[Operands, Indices], Indices]
    keeps_dims: bool = False
    keeps_order: bool = False
    repeats: bool = False
    renames: bool = False
    depth: int = 1
    summed: Callable[[Operands], Sequence[Pass] | None] = lambda view: None


@dataclass(frozen=True)
class Generate:
    """out[i] = element(i), computed where it is read.

    `from_operand`: it is one of operand 0, or another value where there is none. It is stored where loops would ask that at every read.
    """

    dims: Dims
    element: Callable[[Operands, Indices], Expr]
    from_operand: bool = False


@dataclass(frozen=True)
class Pass:
    """One loop nest over the box `counts`: result[place(i)] = element(i), or += with combine "+"."""

    counts: Indices
    place: Callable[[Indices], Indices]
    element: Callable[[Indices], Expr]
    combine: str = ""


@dataclass(frozen=True)
class ByRow:
    """Where a loop alone reads a result, row by row, it need not be written: `element` is computed as it is read.

    `may`: do the attributes of a node say at once where each row comes from?
    """

    may: Callable[[Mapping[str, Any]], bool]
    element: Callable[[Operands, Indices], Expr]


@dataclass(frozen=True)
class Passes:
    """The result is written by several loop nests, in order; later ones may overwrite earlier ones.

    All elements must be written. `inside`: the one pass that is left where the result lies in the memory of operand 0.
    """

    dims: Dims
    passes: Callable[[Operands], Sequence[Pass]]
    inside: Callable[[Operands], Pass] | None = None
    by_row: ByRow | None = None


@dataclass(frozen=True)
class Fold:
    """A reduction over attribute `axis` (a tuple of axes >= 0) with attribute `keepdims`.

    `start(dtype)` gives the accumulator's first value, `step(accumulator, element)` the next one. `loop(type)` names the dtype of the
    accumulator, to which elements are cast. `allow_empty=False` refuses to reduce zero elements.
    `cumulative`: every partial result is kept along the one axis, instead of the last.
    `is_place`: the result is where the first element is that equals what comes out, or is NaN: its flat index within the reduced axes.
    `place_stays`, ">=" or "<=": the place does not move while the accumulator is so beside an element.
    """

    loop: Callable[[TensorType], str]
    start: Callable[[str], Expr]
    step: Callable[[Expr, Expr], Expr]
    allow_empty: bool = True
    cumulative: bool = False
    place_stays: str = ""

    @property
    def is_place(self) -> bool:
        return bool(self.place_stays)


@dataclass(frozen=True)
class Contract:
    """A sum of products of two operands. Attribute `labels` = (labels of a, labels of b, labels of the result), each a tuple of ints.

    A label in both operands but not in the result is summed over. No label twice in one operand. `labels`: where there is no attribute.
    """

    labels: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None = None


class ScalarCode(Protocol):
    """Statements on scalars in the making, where a routine is written out."""

    def let(self, hint: str, value: Expr) -> Expr:
        """A local that holds `value`."""
        ...

    def variable(self, hint: str, value: Expr) -> Name:
        """A local of its own, which may be given other values."""
        ...

    def assign(self, name: Name, value: Expr) -> None:
        """Gives a variable another value."""
        ...

    def exchange(self, condition: Expr, pairs: Sequence[tuple[Name, Name]]) -> None:
        """The two variables of each pair change their values where `condition` holds."""
        ...


Matrix = Sequence[Sequence[Expr]]  # rows of elements
Column = Sequence[Expr]
Elements = dict[tuple[int, ...], Expr]


@dataclass(frozen=True)
class ScalarRoutine:
    """A routine on a matrix of at most `rows` rows as scalar statements; of `most_rows` where there is no routine to call.

    `prepared(code, matrix, attrs)` is done once for all that reads the matrix. With what that gave, `refused` says whether it
    cannot be done, `columns` makes the columns of the solution of a system from those of the right-hand side, and `results` the elements
    of each result of a function of the matrix alone. The row of a routine on rows of numbers is handed over as a matrix of one column.
    `kinds`: of the dtypes that it takes.
    """

    rows: int
    most_rows: int
    prepared: Callable[[ScalarCode, Matrix, dict[str, Any]], Any]
    refused: Callable[[Any], Expr] | None = None
    columns: Callable[[ScalarCode, Any, Sequence[Column]], Sequence[Column]] | None = None
    results: Callable[[ScalarCode, Any], Sequence[Elements]] | None = None
    kinds: str = "f"


@dataclass(frozen=True)
class Library:
    """A routine on whole C-contiguous arrays: `routine(results…, operands…, *statics)`, from `numbascan.emit.runtime.routines`.

    `core` gives the rank of each operand, then of each result, that one call handles; leading axes are looped over, and must
    be equal in all operands. A result of core rank 0 is handed over as an array of shape (1,), an operand of core rank 0 as its value.
    A routine with a `message` gives a bool: False raises LinAlgError with that text. `written_out`: the same in loops, where
    `is_written_out` says so of whether the target calls routines, and of the operands' types.
    """

    routine: Callable[..., str]  # of the operand types: the routine's name
    core: tuple[tuple[int, ...], tuple[int, ...]]
    dims: Callable[[Operands], tuple[Indices, ...]]  # one tuple per result
    statics: Callable[[dict[str, Any]], tuple[Any, ...]] = lambda attrs: ()
    dtypes: Callable[..., tuple[str, ...]] | None = None  # of the operands as handed over; default: as they are
    scalar: ScalarRoutine | None = None  # instead of the call, for matrices of few rows and short rows
    message: str = ""
    written_out: Generate | Contract | None = None
    is_written_out: Callable[..., bool] = lambda calls_routines, *types: not calls_routines


Lowering = Union[Elementwise, View, Generate, Passes, Fold, Contract, Library]  # noqa: UP007
