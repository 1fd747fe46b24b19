"""PushOutScanOutput: products with a matrix that no step changes are made after the loop, all at once, if their operands wait for none of
them.

Values that read such a product go into a second loop, recurrences included: a network of two layers becomes two loops with one matrix
product between them. If few rows are read of a trace that is such a product, only these rows are multiplied.

Arithmetic: each product has the operands of the step's, and so its dtype; BLAS adds up its terms in an order of its own, as in the step.

Not handled: products of matrices with many rows; loops that would need memory for rows where they have none so far; lanes, as in
push_out_seq.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..ir.graph import toposort, users
from ..ir.loop_node import loop_spec, scan_node
from ..ir.node import Node, outputs_of
from ..ir.ports import LoopSpec, Trace
from ..ir.respecialise import settled
from ..ops.algebra import indexed
from ..ops.contract import multiplications
from ..ops.failing import may_raise
from ..ops.index_entries import FULL
from .loop_distribution import Split, behind, row_writes
from .replace_loops import Change, changed_repeatedly, reads_few_rows
from .row_products import RowProduct
from .step_dependence import ASSUMED, Dependence, about_size, dependences, fixed_outside, has_op

SMALL = 64  # multiplications up to which a product is a few instructions of the step
FEW_ROWS = 4  # as in push_out_seq
CHEAP = 8  # multiplications that cost as much as to store and load a number
MEMORY = 4  # times the memory of the rows that exist, which further rows may take


def push_out_output(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such products behind the loops."""
    return changed_repeatedly(outputs, _first_change)


def _first_change(outputs: Sequence[Node]) -> Change | None:
    """What replaces the results of a loop, and some of their readers; None where nothing is left to do."""
    readers = users(outputs)
    for loop in toposort(outputs):
        if not has_op(loop, "contract"):
            continue
        spec = loop_spec(loop).opened()
        if spec.are_lanes:
            continue
        dependence = dependences(spec)
        products = [product for node in dependence if (product := _product(node, dependence, spec.until is not None)) is not None]
        if products:
            asked = [_asked(result, readers, outputs) for result in outputs_of(loop)]
            replacements = _few_rows(loop, spec, products, asked) or _split(loop, spec, dependence, products, asked)
            if replacements is not None:
                return replacements
    return None


def _product(node: Node, dependence: Mapping[Node, Dependence], ends_early: bool) -> RowProduct | None:
    if node.op.name != "contract" or multiplications(node) <= SMALL:
        return None
    for place, fixed in ((0, 1), (1, 0)):
        changing, matrix = dependence[node.inputs[place]], dependence[node.inputs[fixed]]
        changes = changing is Dependence.MOVING or (ends_early and changing is Dependence.ROWS)  # see push_out_seq
        if changes and matrix is Dependence.FIXED and not may_raise(node.inputs[fixed]):
            product = RowProduct(node, place)
            return product if product.is_matrix_product and product.n_rows <= FEW_ROWS else None
    return None


def _asked(result: Node, readers: Mapping[Node, Sequence[Node]], outputs: Sequence[Node]) -> list[Node] | None:
    """The nodes that read few rows of a result each; None where some node reads all of them."""
    nodes = [reader for reader in dict.fromkeys(readers.get(result, ())) if reader.op.name != "dim"]
    return None if result in outputs or not all(map(reads_few_rows, nodes)) else nodes


def _few_rows(loop: Node, spec: LoopSpec, products: Iterable[RowProduct], asked: Sequence[list[Node] | None]) -> Change | None:
    """The replacements for a trace of products if few of its rows are read: the loop keeps these rows of the factor."""
    inner = users(spec.inner_outputs())
    for k, trace in enumerate(spec.traces, len(spec.states)):
        product = next((one for one in products if one.node is trace.write and not inner[one.node]), None)
        readers = asked[k]
        if product is None or not readers or spec.inner_outputs().count(trace.write) > 1:
            continue
        traces = tuple(Trace(product.changing) if one is trace else one for one in spec.traces)
        results = outputs_of(scan_node(settled(replace(spec, traces=traces))))
        fixed = fixed_outside(spec, product.fixed)
        return {loop: results}, {reader: _of_few(product, results[k], fixed, reader, spec.has_step) for reader in readers}
    return None


def _of_few(product: RowProduct, rows: Node, fixed: Node, reader: Node, has_step: bool) -> Node:
    """What a node reads of the products, from the rows of the factor."""
    spec = reader.attr("spec")
    assert isinstance(spec, tuple)
    first, *rest = spec
    few = indexed(rows, (first,))
    if first != -1:
        return indexed(product.of_rows(few, fixed, has_step), (FULL, *rest))
    row = product.node.op.rebuild(product.node, (few, fixed) if product.place == 0 else (fixed, few))
    return indexed(row, tuple(rest)) if rest else row


def _split(
    loop: Node, spec: LoopSpec, dependence: Mapping[Node, Dependence], products: Sequence[RowProduct], asked: Sequence[list[Node] | None]
) -> Change | None:
    """The loop in two parts, with all products between them, or one."""
    waits = {product: behind(spec, [product.changing]) for product in products}
    until = set() if spec.until is None else behind(spec, [spec.until])
    possible = sorted((one for one in products if one.node not in waits[one] | until), key=lambda one: len(waits[one]))
    together: list[RowProduct] = []
    for one in possible:
        if all(one.node not in waits[other] and other.node not in waits[one] for other in together):
            together.append(one)
    for group in (together, *([one] for one in together)):
        if group and _pays(split := Split(spec, dependence, group), asked):
            return {loop: split.results()}, {}
    return None


def _pays(split: Split, asked: Sequence[list[Node] | None]) -> bool:
    """True if more is saved than storing and reading rows costs, and the memory for these rows is in proportion."""
    spec = split.spec
    stored = [write for write, readers in zip(row_writes(spec), asked, strict=False) if readers is None]
    products = [product.node for product in split.products]
    new = {value for value in (*split.crossing, *(product.changing for product in split.products)) if value not in stored}
    new |= {product for product in products if product not in stored}
    there = sum(map(about_size, stored)) + sum(about_size(seq.reads[0]) for seq in spec.seqs)
    saved = sum(multiplications(product, ASSUMED) for product in products)
    return sum(map(about_size, new)) <= MEMORY * there and CHEAP * sum(map(about_size, new | set(split.crossing))) <= saved
