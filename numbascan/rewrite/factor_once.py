"""A linear system whose matrix is the same at every step is factorised once, before the loop.

    # before: solve(a, b[t])        # after: LU and the order of rows before the loop; in it two triangular systems

The check for a singular matrix stays in the loop: a loop of no steps does not make it.

Arithmetic: in the dtype of the solution, to which the whole system casts its operands, too; the sums of a triangular system are in any
order.

Not handled: stacks of matrices; matrices of up to 4 rows, for which the whole system takes no longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import substitute
from ..ir.loop_node import loop_spec
from ..ir.node import Node, named, outputs_of
from ..ops.algebra import call, cast, taken
from ..ops.card import apply
from ..ops.decompositions import LU
from ..ops.linalg import SOLVE, SOLVE_FACTOR, SOLVE_FACTORS, SOLVE_VECTOR
from .replace_loops import loop_results, placed, with_loops
from .step_dependence import Dependence, dependences

SMALL = 4


def factor_once(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such systems solved by factors. These are the same at every step, too: push_out_non_seq hoists them."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    dependence = dependences(spec)
    systems = [node for node in dependence if _is_system(node) and _is_fixed(dependence, *node.inputs)]
    if not systems:
        return None
    results: dict[Node, Node] = {}
    for node in systems:  # one may be the right-hand side of the next
        (system,) = substitute([node], results)
        with placed(node):
            results[node] = named(_by_factors(*(cast(one, node.type.dtype) for one in system.inputs)), node.name)
    return loop_results(loop, spec.with_inner(spec.inner_inputs(), substitute(spec.inner_outputs(), results)))


def _is_system(node: Node) -> bool:
    """True for a system of one matrix that is not small."""
    if node.op is not SOLVE_VECTOR and node.op is not SOLVE:
        return False
    shape = node.inputs[0].type.shape
    return len(shape) == 2 and len(node.type.shape) <= 2 and all(dim is None or dim > SMALL for dim in shape)


def _is_fixed(dependence: Mapping[Node, Dependence], a: Node, b: Node) -> bool:
    """True if the matrix is the same at every step and the right-hand side is not."""
    return dependence[a] is Dependence.FIXED and dependence[b] is not Dependence.FIXED


def _by_factors(a: Node, b: Node) -> Node:
    """The solution of a @ x = b."""
    lu, pivots = outputs_of(apply(LU, a))
    x = taken(b, (call("permutation_of_pivots", cast(pivots, "int64")),))
    for lower in (True, False):
        x = apply(SOLVE_FACTOR if b.type.rank == 1 else SOLVE_FACTORS, lu, x, lower=lower, trans=0, unit=lower)
    return x
