"""Einstein's notation: operands are contracted two at a time."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...ops.contract import PAIRED
from ...tracebacks import entries
from ...types import show_shape
from ..variable import Variable, as_variable, at_line, implements, op
from .products import aligned, contraction, summed

OPTIMAL_TERMS = 6  # operands up to which all orders are tried (0.02 s); the greedy search is wrong for matrix @ matrix @ vector

Term = tuple[Variable, list[Hashable]]


@implements(np.einsum)
def einsum(*operands: Any, out: None = None, optimize: Any = True, **options: Any) -> Variable:
    """The sum of products that `subscripts` describe, as in `einsum("ij,jk->ik", a, b)` for a product of matrices.

    Arguments: subscripts with commas between operands, optional `->` and labels of the result, `...` for leading axes that broadcast; then
    one array or variable per operand. Or operands and lists of labels by turns, the list of the result last. The order of
    contraction is chosen where all shapes are known, else from left to right; `optimize` is taken for NumPy's sake.

    Raises ValueError where subscripts and operands do not fit.

    >>> import numbascan.tensor as nt
    >>> nt.einsum("ij,j->i", nt.dmatrix("A"), nt.dvector("x"))
    <contract: float64[?]>
    """
    if out is not None or options:
        names = ", ".join(sorted({*options, *(["out"] if out is not None else [])}))
        raise TypeError(f"np.einsum: {names} cannot be given for traced values{at_line()}; convert the result with .astype")
    inputs, result, values = _parsed(operands)
    terms = [_expanded(labels, as_variable(value), k) for k, (labels, value) in enumerate(zip(inputs, values, strict=True))]
    result_labels = _result_labels(terms, result)
    dtype = np.result_type(*(x.dtype for x, _ in terms))  # the dtype of all sums, those over labels of a single operand, too
    terms = [_without_repeats(x if x.dtype == dtype else x.astype(dtype), labels) for x, labels in terms]
    for positions in _path(terms, result_labels):
        chosen = [terms[k] for k in positions]
        terms = [term for k, term in enumerate(terms) if k not in positions]
        while len(chosen) > 1:
            first, second = chosen[:2]
            needed = {*result_labels, *(label for _, labels in (*terms, *chosen[2:]) for label in labels)}
            is_last = not terms and len(chosen) == 2
            chosen[:2] = [_pair(first, second, result_labels if is_last else None, needed)]
        terms += chosen
    ((x, labels),) = terms
    return aligned(*summed(x, labels, result_labels), result_labels)


def _pair(first: Term, second: Term, out: list[Hashable] | None, needed: set[Hashable]) -> Term:
    """The contraction of two terms. Its labels: `out` for the last one, else those of `needed`, in order of appearance."""
    (a, a_labels), (b, b_labels) = first, second
    labels = out if out is not None else [label for label in dict.fromkeys((*a_labels, *b_labels)) if label in needed]
    return contraction("einsum", a, a_labels, b, b_labels, labels, stretch={*a_labels}), labels


def _path(terms: Sequence[Term], result_labels: Sequence[Hashable]) -> list[tuple[int, ...]]:
    """The positions of the terms to contract at each step; each result is appended at the end."""
    if len(terms) < 3 or any(x.type.size is None for x, _ in terms):
        return [(0, 1 if count == len(terms) else count - 1) for count in range(len(terms), 1, -1)]  # of `count` terms that are left
    number = {label: k for k, label in enumerate(dict.fromkeys(label for _, labels in terms for label in labels))}
    asked: list[Any] = []
    for x, labels in terms:
        asked += [np.broadcast_to(np.float32(0), x.type.shape), [number[label] for label in labels]]  # type: ignore[arg-type]
    search = "optimal" if len(terms) <= OPTIMAL_TERMS else "greedy"
    steps = np.einsum_path(*asked, [number[label] for label in result_labels], optimize=search)[0]
    return [tuple(step) for step in steps[1:]]


def _without_repeats(x: Variable, labels: list[Hashable]) -> Term:
    """The term with the diagonal of axes that share a label, so that each label occurs once."""
    repeated = next((label for label in labels if labels.count(label) > 1), None)
    if repeated is None:
        return x, labels
    first = labels.index(repeated)
    second = labels.index(repeated, first + 1)
    return _without_repeats(op(PAIRED, x, axes=(first, second)), labels[:second] + labels[second + 1 :])


# subscripts ---------------------------------------------------------------------------------------------------------


def _parsed(operands: Sequence[Any]) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    """Labels of each operand, those of the result if given, and the operands. An ellipsis is `...` in both forms."""
    if not operands:
        raise ValueError("np.einsum needs subscripts and operands, as in np.einsum('ij,jk->ik', a, b)")
    if not isinstance(operands[0], str):
        pairs = len(operands) // 2
        result = list(operands[-1]) if len(operands) % 2 else None
        return [list(operands[2 * k + 1]) for k in range(pairs)], result, [operands[2 * k] for k in range(pairs)]
    left, arrow, right = operands[0].replace(" ", "").partition("->")
    inputs = [_letters(term) for term in left.split(",")]
    values = list(operands[1:])
    if len(inputs) != len(values):
        raise ValueError(f"np.einsum: {operands[0]!r} describes {len(inputs)} operands, but {len(values)} are given{at_line()}")
    return inputs, _letters(right) if arrow else None, values


def _letters(term: str) -> list[Any]:
    """'i...j' as ['i', ..., 'j']."""
    before, dots, after = term.partition("...")
    for letter in before + after:
        if not letter.isalpha():
            raise ValueError(f"np.einsum: {letter!r} in {term!r} is no label; labels are letters{at_line()}")
    return [*before, *([...] if dots else []), *after]


def _expanded(labels: list[Any], x: Variable, position: int) -> Term:
    """A term with a label for each axis. Labels of an ellipsis count from its end. ValueError if labels do not fit the axes."""
    named = [label for label in labels if label is not ...]
    spare = x.ndim - len(named)
    if spare < 0 or (spare and ... not in labels) or len(named) < len(labels) - 1:
        raise ValueError(
            f"np.einsum: {len(named)} labels do not fit operand {position} of shape {show_shape(x.type.shape)}; "
            f"write one label for each axis, or ... for the others{at_line()}"
        )
    return x, _filled(labels, spare)


def _filled(labels: Sequence[Any], spare: int) -> list[Hashable]:
    filled: list[Hashable] = []
    for label in labels:
        filled += [("...", k - spare) for k in range(spare)] if label is ... else [label]
    return filled


def _result_labels(terms: Sequence[Term], result: list[Any] | None) -> list[Hashable]:
    """The labels of the result: as given, else those of the ellipsis and then, sorted, those that occur once."""
    every = [label for _, labels in terms for label in labels]
    leading = max((sum(_is_leading(label) for label in labels) for _, labels in terms), default=0)
    if result is None:
        named: Any = [label for label in every if not _is_leading(label)]
        return _filled([..., *sorted(label for label in set(named) if named.count(label) == 1)], leading)
    filled = _filled(result, leading)
    missing = [label for label in filled if label not in every]
    if missing or len(set(filled)) < len(filled):
        fault = f"label {missing[0]!r} of the result stands in no operand" if missing else "a label stands twice in the result"
        raise ValueError(f"np.einsum: {fault}{at_line()}")
    if leading and ... not in result:
        raise ValueError(f"np.einsum: the axes behind ... are missing in the result; write ... after -> too, or sum over them{at_line()}")
    return filled


def _is_leading(label: Hashable) -> bool:
    return isinstance(label, tuple)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: None = None) -> Variable:
    """The product of several matrices, in the cheapest order found where all shapes are known; the first and the last may be vectors.

    Raises ValueError for fewer than two arrays, LinAlgError where one is no matrix.
    """
    if out is not None:
        raise TypeError(f"np.linalg.multi_dot(out=…) cannot write into a traced value{at_line()}; use the result")
    chain = [as_variable(array) for array in arrays]
    if len(chain) < 2:
        raise ValueError(f"np.linalg.multi_dot needs two arrays or more{at_line()}")
    asked: list[Any] = []
    for k, x in enumerate(chain):
        if x.ndim != 2 and not (x.ndim == 1 and k in (0, len(chain) - 1)):
            raise np.linalg.LinAlgError(f"np.linalg.multi_dot: array {k} of shape {show_shape(x.type.shape)} is no matrix{at_line()}")
        asked += [x, [k, k + 1] if x.ndim == 2 else [1 if k == 0 else k]]
    for x, y in itertools.pairwise(chain):
        n, m = x.type.shape[-1], y.type.shape[0]
        if n is not None and m is not None and n != m:
            shapes = f"{show_shape(x.type.shape)} and {show_shape(y.type.shape)}"
            raise ValueError(f"np.linalg.multi_dot: shapes {shapes} do not fit: axes of lengths {n} and {m} meet{at_line()}")
    ends = [0] * (chain[0].ndim == 2) + [len(chain)] * (chain[-1].ndim == 2)
    return einsum(*asked, ends)


__all__ = ["einsum", "multi_dot"]

entries(globals(), __all__)
