"""PushOutSeqScan: products of a sequence's rows with a matrix that no step changes leave the loop, as one product of matrices.

The taps of a sequence share the product. What is computed of sequences before the product goes along, in a loop of its own. The rows of
the product are stored: as many as there are steps.

Arithmetic: each product has the operands of the step's, and so its dtype; BLAS adds up its terms in an order of its own, as in the step.

Not handled: loops that end early (`until`), where rows would be computed that no step reaches; elementwise work that no product reads;
lanes, since BLAS may give a row of a product other bits among more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import substitute, toposort
from ..ir.loop_node import loop_spec, scan_node
from ..ir.node import Node, new_input, outputs_of
from ..ir.ports import LoopSpec, Seq, row_of
from ..ir.respecialise import settled
from ..ops.contract import multiplications
from ..ops.failing import may_raise
from .replace_loops import with_loops
from .row_products import RowProduct
from .step_dependence import Dependence, dependences, fixed_outside, has_op, rows_outside, rows_read

SMALL = 64  # multiplications up to which a product is a few instructions of the step
FEW_ROWS = 4  # rows of a matrix up to which its product costs by the row hardly less than that of a vector
SHORT, WIDE = 16, 4  # a sum of up to 16 terms for a row more than 4 times as long costs less than to store and load the row


def push_out_seq(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such products before the loops."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    if not has_op(loop, "contract"):
        return None
    spec, less = loop_spec(loop).opened(), None
    while products := _products(spec):  # one layer after another
        less = spec = _without(spec, products)
    if less is None:
        return None
    node = scan_node(less)
    node.origin = node.origin or loop.origin
    return outputs_of(node)


def _products(spec: LoopSpec) -> list[RowProduct]:
    """The products that may leave now: those that read no other one."""
    if spec.until is not None or not spec.seqs or spec.are_lanes:
        return []
    dependence = dependences(spec)
    products = [product for node in dependence if node.inputs and (product := _product(node, dependence)) is not None]
    nodes = {product.node for product in products}
    return [product for product in products if nodes.isdisjoint(toposort([product.changing]))]


def _product(node: Node, dependence: dict[Node, Dependence]) -> RowProduct | None:
    if node.op.name != "contract":
        return None
    for place, fixed in ((0, 1), (1, 0)):
        changing, matrix = dependence[node.inputs[place]], dependence[node.inputs[fixed]]
        if changing is Dependence.ROWS and matrix is Dependence.FIXED and not may_raise(node.inputs[fixed]):
            product = RowProduct(node, place)
            return product if product.is_matrix_product and _pays(product) else None
    return None


def _pays(product: RowProduct) -> bool:
    """True if one large product is cheaper than one at every step."""
    summed, size = product.changing.type.shape[-1], product.node.type.size
    is_short = summed is not None and summed <= SHORT and (size is None or size > WIDE * summed * product.n_rows)
    return multiplications(product.node) > SMALL and product.n_rows <= FEW_ROWS and not is_short


def _without(spec: LoopSpec, products: Sequence[RowProduct]) -> LoopSpec:
    """The loop that reads the products as sequences."""
    seqs, reads = list(spec.seqs), dict[Node, Node]()
    taps = {read: (seq, tap) for seq in spec.seqs for tap, read in zip(seq.taps, seq.reads, strict=True)}
    shared: dict[tuple[object, ...], list[RowProduct]] = {}
    for product in products:
        seq = taps[product.changing][0] if product.changing in taps else product.changing
        shared.setdefault((seq, product.place, product.fixed, product.node.attrs), []).append(product)
    for group in shared.values():
        first, fixed = group[0], fixed_outside(spec, group[0].fixed)
        if first.changing not in taps:
            places = [0]
            rows = rows_outside(spec, first.changing)
        else:
            places = [taps[product.changing][1] for product in group]
            rows = rows_read(spec, taps[first.changing][0], min(places), max(places))
        outer = first.of_rows(rows, fixed, spec.has_step)
        inner = [new_input(row_of(outer.type), product.node.name) for product in group]
        seqs.append(Seq(outer, tuple(place - min(places) for place in places), tuple(inner)))
        reads.update(zip((product.node for product in group), inner, strict=True))
    new = replace(spec, seqs=tuple(seqs))
    return settled(new.with_inner(new.inner_inputs(), substitute(spec.inner_outputs(), reads)))
