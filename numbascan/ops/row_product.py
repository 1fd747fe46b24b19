"""Rows times a matrix, each row by itself: its bits depend neither on other rows nor on their number, as they do with BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node
from ..types import TensorType
from .algebra import call, cast, total, transpose
from .card import Card, apply, at_line, register
from .contract import misfit
from .lowering import Contract, Indices, Library, Operands, Pass, Passes

DTYPES = ("float32", "float64")


def row_product(rows: Node, matrix: Node) -> Node:
    """rows @ matrix, of matrices of one dtype among `DTYPES`."""
    return apply(ROW_PRODUCT, rows, matrix)


def turned(matrix: Node) -> Node:
    """The transpose of a matrix, in memory of its own: a loop that reads it whole makes it before its first step."""
    return apply(TURNED, matrix)


def _evaluate(rows: Any, matrix: Any) -> Any:
    if rows.shape[1] != len(matrix):
        raise ValueError(misfit().format(rows.shape[1], len(matrix)))
    result = np.empty((len(rows), matrix.shape[1]), rows.dtype)
    for row, out in zip(rows, result, strict=True):
        np.dot(row, matrix, out)
    return result


def _infer(rows: TensorType, matrix: TensorType) -> TensorType:
    summed = {dim for dim in (rows.shape[1], matrix.shape[0]) if dim is not None}
    if len(summed) > 1:
        raise ValueError(f"{misfit().format(rows.shape[1], matrix.shape[0])}{at_line()}")
    return TensorType(rows.dtype, (rows.shape[0], matrix.shape[1]))


def _dims(view: Operands) -> tuple[Indices, ...]:
    (n, summed), (length, width) = view.dims(0), view.dims(1)
    view.same(summed, length, "ValueError", misfit())
    return ((n, width),)


def _factors_back(node: Node, cotangent: Node) -> tuple[Node, Node]:
    rows, matrix = node.inputs
    return row_product(cotangent, turned(matrix)), call("contract", rows, cotangent, labels=((0, 1), (0, 2), (1, 2)))


def _product_rule(node: Node, d_rows: Node | None, d_matrix: Node | None) -> Node | None:
    rows, matrix = node.inputs
    of_rows = None if d_rows is None else row_product(cast(d_rows, rows.type.dtype), matrix)
    return total([of_rows, None if d_matrix is None else row_product(rows, cast(d_matrix, matrix.type.dtype))])


def _samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    rng = np.random.default_rng(5)
    return [((rng.normal(size=(5, 3)).astype(dtype), rng.normal(size=(3, 4)).astype(dtype)), {}) for dtype in DTYPES]


ROW_PRODUCT = register(
    Card(
        "row_product",
        _evaluate,
        _infer,
        Library(lambda rows, matrix: "row_products.row_products", ((2, 2), (2,)), _dims, written_out=Contract(((0, 1), (1, 2), (0, 2)))),
        samples=_samples,
        vjp=_factors_back,
        jvp=_product_rule,
        dim_from=lambda node, axis: [(node.inputs[axis], axis)],
    )
)


def _turned_passes(view: Operands) -> list[Pass]:
    n, m = view.dims(0)
    return [Pass((m, n), lambda index: index, lambda index: view.at(0, (index[1], index[0])))]


TURNED = register(
    Card(
        "turned",
        lambda matrix: np.ascontiguousarray(matrix.T),
        lambda matrix: matrix.with_shape(matrix.shape[::-1]).strong(),
        Passes(lambda view: view.dims(0)[::-1], _turned_passes),
        samples=lambda: [((np.arange(6.0).reshape(2, 3),), {})],
        linear=(0,),
        vjp=lambda node, cotangent: (transpose(cotangent, (1, 0)),),
        dim_from=lambda node, axis: [(node.inputs[0], 1 - axis)],
    )
)
