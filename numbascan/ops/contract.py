"""Sums of products of two operands: the one card behind dot, matmul, inner, tensordot and einsum.

`front/` gives every axis a label; labels in both operands but not in the result are summed over. `rounded`: a GPU rounds each product by
itself, as draws require.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np

from ..ir.node import Node
from ..types import Shape, TensorType, show_shape
from .algebra import call, counted, dims_of, expand, total, where
from .card import Card, at_line, register
from .elementwise import MUL
from .lowering import Contract, Elementwise, Indices, Operands, View
from .runtime_attributes import must_equal

Labels = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _infer(a: TensorType, b: TensorType, labels: Labels, rounded: bool = False) -> TensorType:
    extents = label_extents((a.shape, b.shape), labels[:2])
    alone = set(labels[0]).symmetric_difference(labels[1]) - set(labels[2])
    if alone:  # np.dot would be called, as for a label of both
        raise ValueError(f"contract: labels {sorted(alone)} are summed over in one operand alone{at_line()}; sum it first")
    assert isinstance(MUL.lower, Elementwise)
    dtype = MUL.lower.loop(a, b)[-1]  # a sum stays in the dtype of the products, as in np.matmul
    return TensorType(dtype, tuple(extents[label] for label in labels[2]), a.weak and b.weak)


def label_extents(shapes: tuple[Shape, ...], labels: tuple[tuple[int, ...], ...]) -> dict[int, int | None]:
    """The length of each label, None where only the run knows it; ValueError where operands disagree."""
    extents: dict[int, int | None] = {}
    for shape, names in zip(shapes, labels, strict=True):
        for dim, label in zip(shape, names, strict=True):
            known = extents.get(label)
            if known is not None and dim is not None and known != dim:
                both = " and ".join(map(show_shape, shapes))
                raise ValueError(f"contract: shapes {both} do not fit: axes of lengths {known} and {dim} must be equal{at_line()}")
            extents[label] = dim if known is None else known
    return extents


def _evaluate(a: Any, b: Any, labels: Labels, rounded: bool = False) -> Any:
    a_labels, b_labels, out = labels
    label_extents((a.shape, b.shape), (a_labels, b_labels))  # np.einsum would stretch an axis of length 1
    summed = [label for label in a_labels if label in b_labels]
    free = [label for label in (*a_labels, *b_labels) if label not in summed]
    if sorted(free) != sorted(out):
        return np.einsum(a, list(a_labels), b, list(b_labels), list(out))
    # without batch axes: a product of matrices, by BLAS. Axes: [free of a | free of b], then in the order of the result.
    product = np.tensordot(a, b, ([a_labels.index(label) for label in summed], [b_labels.index(label) for label in summed]))
    return product.transpose([free.index(label) for label in out])


def _samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    rng = np.random.default_rng(12)
    a, b, batch = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(5, 3, 4))
    vector = np.array([0.5, -1.5, 2.0])
    return [
        ((a, b), {"labels": ((0, 1), (1, 2), (0, 2))}),
        ((a, vector), {"labels": ((0, 1), (1,), (0,))}),
        ((vector, b), {"labels": ((0,), (0, 1), (1,))}),
        ((vector, np.array([1.25, 0.5, -3.0])), {"labels": ((0,), (0,), ())}),
        ((rng.normal(size=(5, 2, 3)), batch), {"labels": ((0, 1, 2), (0, 2, 3), (0, 1, 3))}),
        ((a.astype("float32"), b.astype("float32")), {"labels": ((0, 1), (1, 2), (2, 0))}),
        ((a + 1j, b), {"labels": ((0, 1), (1, 2), (0, 2))}),
        ((np.array([[1, -2, 3], [4, 5, -6]]), np.array([2, 3, -1], dtype="int32")), {"labels": ((0, 1), (1,), (0,))}),
        ((a > 0, b > 0), {"labels": ((0, 1), (1, 2), (0, 2))}),
    ]


def _factors_back(node: Node, cotangent: Node) -> tuple[Node, Node]:
    """The cotangent of each operand: the product of the result's cotangent and the other operand, over the labels that it lacks."""
    (a, b), (a_labels, b_labels, out) = node.inputs, labels_of(node)
    return (
        call("contract", cotangent, b, labels=(out, b_labels, a_labels)),
        call("contract", cotangent, a, labels=(out, a_labels, b_labels)),
    )


def labels_of(node: Node) -> Labels:
    """The labels of a contraction's operands and of its result, one label per axis."""
    labels: Any = node.attr("labels")
    return labels  # type: ignore[no-any-return]


def misfit(first: int = 0) -> str:
    """The error for lengths {0} and {1} of a summed axis, where {0} is that of operand `first`."""
    return f"matrix product: lengths {{{first}}} and {{{1 - first}}} of the summed axes differ"


def multiplications(node: Node, unknown: float = inf) -> float:
    """The number of multiplications of a contraction. An open dimension counts as `unknown`."""
    (a, b), labels = node.inputs, labels_of(node)
    extents = dict(zip(labels[0] + labels[1], a.type.shape + b.type.shape, strict=True))
    return prod(unknown if dim is None else dim for dim in extents.values())


def _product_rule(node: Node, da: Node | None, db: Node | None) -> Node | None:
    a, b = node.inputs
    terms = [(da, b), (a, db)]
    return total([call("contract", x, y, labels=labels_of(node)) if x is not None and y is not None else None for x, y in terms])


def _dim_from(node: Node, axis: int) -> list[tuple[Node, int]]:
    a_labels, b_labels, result = labels_of(node)
    return [
        (operand, labels.index(result[axis]))
        for operand, labels in zip(node.inputs, (a_labels, b_labels), strict=True)
        if result[axis] in labels
    ]


CONTRACT = register(
    Card("contract", _evaluate, _infer, Contract(), samples=_samples, vjp=_factors_back, jvp=_product_rule, dim_from=_dim_from)
)


# repeated labels within one operand ---------------------------------------------------------------------------------


def _paired_infer(a: TensorType, axes: tuple[int, int]) -> TensorType:
    first, second = axes
    n, m = a.shape[first], a.shape[second]
    if n is not None and m is not None and n != m:
        raise ValueError(
            f"einsum: axes {first} and {second} of shape {show_shape(a.shape)} have one label, but lengths {n} and {m}{at_line()}"
        )
    shape = list(a.shape)
    shape[first] = m if n is None else n
    del shape[second]
    return TensorType(a.dtype, tuple(shape), a.weak)


def _paired_evaluate(a: Any, axes: tuple[int, int]) -> Any:
    first, second = axes
    if a.shape[first] != a.shape[second]:  # np.diagonal takes matrices that are not square
        raise ValueError(f"einsum: axes {first} and {second} of shape {a.shape} have one label, but different lengths")
    return np.moveaxis(np.diagonal(a, 0, first, second), -1, first)


def _paired_dims(view: Operands) -> Indices:
    first, second = view.attrs["axes"]
    dims = view.dims(0)
    message = f"einsum: axes {first} and {second} have one label, but lengths {{0}} and {{1}}"
    must_equal(view, dims[first], dims[second], message)
    return dims[:second] + dims[second + 1 :]


def _paired_index(view: Operands, index: Indices) -> Indices:
    first, second = view.attrs["axes"]
    return (*index[:second], index[first], *index[second:])


def _onto_diagonal(node: Node, cotangent: Node) -> tuple[Node]:
    """The cotangent where the positions on both axes are equal, else 0."""
    (a,) = node.inputs
    axes: Any = node.attr("axes")
    rank, dims = a.type.rank, dims_of(a)
    first, second = (expand(counted(dims[axis]), [k for k in range(rank) if k != axis]) for axis in axes)
    return (where(call("equal", first, second), expand(cotangent, axes[1:]), 0),)


PAIRED = register(
    Card(
        "paired_axes",  # out[…, i, …] = a[…, i, …, i, …]; the second of the two axes is dropped
        _paired_evaluate,
        _paired_infer,
        View(_paired_dims, _paired_index),
        samples=lambda: [((np.arange(18.0).reshape(3, 2, 3) - 4.5,), {"axes": (0, 2)})],
        linear=(0,),
        vjp=_onto_diagonal,
    )
)
