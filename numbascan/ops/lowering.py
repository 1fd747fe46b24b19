"""Lowerings: the ways in which an op becomes loops. Each card has one; `plan/` knows only these, not the ops.

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
        """`yes()` where the condition holds, else `no()`. Elements of a side are read and checked only where it is taken."""
        ...

    def short(self, number: Expr) -> Expr:
        """A number that is used several times: itself, or a local if it is long."""
        ...

    def known(self, number: Index) -> Index:
        """A number, shortened by what is known of lengths."""
        ...

    def scalar(self, k: int) -> Index:
        """Operand k, a scalar integer, as index arithmetic (an int where it is constant). One beyond int64 becomes the greatest int64."""
        ...

    def check(self, condition: Expr, error: str, message: str, *numbers: Index) -> None:
        """Raise `error` at run time unless `condition` holds. {0}, {1}, … in the message stand for the numbers."""
        ...

    def same(self, a: Index, b: Index, error: str, message: str, unless: Expr | None = None) -> None:
        """Raise `error` at run time unless two dimensions are equal; from here on they are one. Where `unless` holds they may differ."""
        ...

    def broadcasts(self, dim: Index, extent: Index, error: str, message: str) -> None:
        """Raise `error` at run time unless `dim` is `extent`, or 1 where it `stretches`. {0} stands for `extent`, {1} for `dim`."""
        ...

    def stretches(self, dim: Index, extent: Index) -> bool:
        """True if a dimension is at most 1 whatever the run brings, as that of `x[:1]`, and `extent` is another one."""
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
    `keeps_order`: each element is there once, in the operand's order. `repeats`: an element may be read several times.
    `renames`: a dimension may differ from the operand's if there is no element.
    `summed`: the passes that are written instead if the dimensions ask for sums, as only they tell.
    `depth`: the operations that it counts for in an expression. An index that names i thrice is 27 times as long behind two others.
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

    `from_operand`: it is one of operand 0, or another value if there is none. It is stored where loops would ask that at every read.
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
    """A result that only a loop reads, row by row, need not be written: `element` is computed as it is read.

    `may`: True if the attributes of a node say at once where each row comes from.
    """

    may: Callable[[Mapping[str, Any]], bool]
    element: Callable[[Operands, Indices], Expr]


@dataclass(frozen=True)
class Passes:
    """The result is written by several loop nests, in order; later ones may overwrite earlier ones.

    All elements must be written. `inside`: the one pass that is left if the result lies in the memory of operand 0.
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
    `is_place`: the result is the flat index, within the reduced axes, of the first element that is NaN or equals the reduced value.
    `place_stays`, ">=" or "<=": the place stays while the accumulator compares so with an element.
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

    A label in both operands but not in the result is summed over. No label is twice in one operand. `labels`: if there is no attribute.
    """

    labels: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None = None


class ScalarCode(Protocol):
    """A writer of statements on scalars, for a routine that is written out."""

    def let(self, hint: str, value: Expr) -> Expr:
        """A local that holds `value`."""
        ...

    def variable(self, hint: str, value: Expr) -> Name:
        """A new local, which may be assigned other values."""
        ...

    def assign(self, name: Name, value: Expr) -> None:
        """Gives a variable another value."""
        ...

    def exchange(self, condition: Expr, pairs: Sequence[tuple[Name, Name]]) -> None:
        """Exchanges the values of the two variables of each pair where `condition` holds."""
        ...


Matrix = Sequence[Sequence[Expr]]  # rows of elements
Column = Sequence[Expr]
Elements = dict[tuple[int, ...], Expr]


@dataclass(frozen=True)
class ScalarRoutine:
    """A routine on a matrix of at most `rows` rows as scalar statements; of at most `most_rows` if there is no routine to call.

    `prepared(code, matrix, attrs)` is written once for all that reads the matrix. From its result, `refused` gives the condition that the
    matrix is refused, `columns` the columns of a system's solution from those of the right-hand side, and `results` the elements of each
    result of a function of the matrix alone. A routine on rows of numbers gets its row as a matrix of one column. `kinds`: the kinds of
    dtypes that it takes.
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
    be equal in all operands. A result of core rank 0 is passed as an array of shape (1,), an operand of core rank 0 as its value.
    A routine with a `message` returns a bool: False raises LinAlgError with that text. `written_out`: the same in loops, used if
    `is_written_out(calls_routines, *types)` is true: of whether the target calls routines, and of the operands' types.
    """

    routine: Callable[..., str]  # operand types -> the routine's name
    core: tuple[tuple[int, ...], tuple[int, ...]]
    dims: Callable[[Operands], tuple[Indices, ...]]  # one tuple per result
    statics: Callable[[dict[str, Any]], tuple[Any, ...]] = lambda attrs: ()
    dtypes: Callable[..., tuple[str, ...]] | None = None  # operand types -> the dtypes of the operands as passed; default: as they are
    scalar: ScalarRoutine | None = None  # instead of the call, for matrices of few rows and short rows
    message: str = ""
    written_out: Generate | Contract | None = None
    is_written_out: Callable[..., bool] = lambda calls_routines, *types: not calls_routines


Lowering = Union[Elementwise, View, Generate, Passes, Fold, Contract, Library]  # noqa: UP007
