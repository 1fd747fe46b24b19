"""Contractions of every step with a fixed operand, as one product of matrices for all steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

from ..ir.node import Node
from ..ops.algebra import call, dims_of, flip
from ..ops.card import Card
from ..ops.contract import misfit
from ..ops.lowering import Contract
from ..ops.reshape import reshaped
from ..ops.sum_to import rows_to
from .replace_loops import placed
from .step_dependence import BACKWARDS

Labels = tuple[int, ...]


@dataclass(frozen=True)
class RowProduct:
    """A contraction in a step: operand `place` changes from step to step, the other one does not."""

    node: Node
    place: int

    @property
    def changing(self) -> Node:
        return self.node.inputs[self.place]

    @property
    def fixed(self) -> Node:
        return self.node.inputs[1 - self.place]

    @property
    def labels(self) -> tuple[Labels, Labels, Labels]:
        """The labels of the changing operand, of the fixed one, of the result."""
        labels = self.node.attr("labels")
        assert isinstance(labels, tuple)
        return labels[self.place], labels[1 - self.place], labels[2]

    @property
    def n_rows(self) -> float:
        """The number of rows that a step multiplies with the fixed matrix; inf where it is known at run time only."""
        return prod(inf if dim is None else dim for dim in self.changing.type.shape[:-1])

    @property
    def is_matrix_product(self) -> bool:
        """True if it is one matrix product over all steps, without moving axes.

        changing: [free…, summed]; result: [free…, free of the fixed one].
        """
        if not isinstance(self.node.op, Card) or not isinstance(self.node.op.lower, Contract) or self.node.type.kind not in "fc":
            return False
        a, b, out = self.labels
        return len(b) <= 2 and a[-1:] != () and a[-1] in b and a[-1] not in out and out == (*a[:-1], *(k for k in b if k != a[-1]))

    def of_rows(self, rows: Node, fixed: Node, has_step: bool) -> Node:
        """The results of all steps, from the rows of the changing operand and the value of the fixed one.

        Unless there is a step for sure, rows of another length than the matrix are an error where there are any.
        """
        if rows.op.name == "index" and rows.attr("spec") == BACKWARDS:  # a sequence and its reverse share one product
            return flip(self.of_rows(rows.inputs[0], fixed, has_step))
        with placed(self.node):
            rows = rows if has_step else self._fitting(rows, fixed)
            a, b, out = self.labels
            *free, summed = a
            step = 1 + max(*a, *b)
            flat = reshaped(rows, (-1, ("dim", rows.type.rank - 1))) if free else rows
            product = call("contract", flat, fixed, labels=((step, summed), b, (step, *out[len(free) :])))
            shape = (*dims_of(rows)[:-1], *(("dim", 1) for _ in out[len(free) :]))
            return reshaped(product, shape) if free else product

    def _fitting(self, rows: Node, fixed: Node) -> Node:
        """The rows, as long as the matrix asks for: where there is a step they must be."""
        a, b, _ = self.labels
        length = dims_of(fixed)[b.index(a[-1])]
        return rows_to(rows, (*dims_of(rows)[:-1], length), misfit(first=self.place), sums=False)
