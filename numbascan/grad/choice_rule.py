"""Derivatives of a lazy choice: a lazy choice between the derivatives of its branches. The branch that is not taken costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..ir.graph import Graph, close, substitute, toposort
from ..ir.node import Node, new_input
from ..ops.algebra import dims_of, zeros_like
from ..ops.control import branches, if_else_outputs
from ..ops.dims import DIM
from .masks import Cotangent, Reverse

Forward = Callable[[Sequence[Node], Sequence[Node], Sequence[Node | None]], list[Node | None]]


def choice_cotangents(
    node: Node, cotangents: Sequence[Cotangent | None], needed: Collection[int], reverse: Reverse
) -> list[Cotangent | None]:
    """The cotangents of the condition (None) and of what the branches read. They hide: 0 for what only the other branch reads stays 0."""
    condition, *operands = node.inputs
    seeds = [seed for seed in cotangents if seed is not None]
    values = [seed.value for seed in seeds]
    places = [k - 1 for k in needed if k]
    of_branches: list[list[Node | None]] = []
    inner: list[tuple[list[Node], list[Node]]] = []
    for branch in branches(node):
        inputs, outputs = _opened(branch)
        above = [new_input(value.type) for value in values]
        written = [out for out, value in zip(outputs, cotangents, strict=True) if value is not None]
        fresh = [Cotangent(one, None, seed.hides) for one, seed in zip(above, seeds, strict=True)]
        found = reverse(written, fresh, [inputs[k] for k in places])
        of_branches.append([None if one is None else one.value for one in found])
        inner.append((inputs, above))
    result: list[Cotangent | None] = [None] * len(node.inputs)
    there = [place for place, pair in enumerate(zip(*of_branches, strict=True)) if any(value is not None for value in pair)]
    if not there:
        return result
    sides = [
        [values_of[place] or zeros_like(inputs[places[place]]) for place in there]
        for values_of, (inputs, _) in zip(of_branches, inner, strict=True)
    ]
    handed, sides, inner = _with_lengths(operands, sides, inner)
    graphs = [close((*inputs, *above), side) for side, (inputs, above) in zip(sides, inner, strict=True)]
    for place, value in zip(there, if_else_outputs(condition, (*handed, *values), *graphs), strict=True):
        result[1 + places[place]] = Cotangent(value, None, True)
    return result


_Inner = list[tuple[list[Node], list[Node]]]  # of each branch, what stands for the operands, and for the cotangents of the results


def _with_lengths(operands: Sequence[Node], sides: list[list[Node]], inner: _Inner) -> tuple[list[Node], list[list[Node]], _Inner]:
    """The operands that the sides read, with lengths in place of those that they only measure. So no loop keeps rows of these."""
    measured = [
        [node for node in toposort(side) if node.op is DIM and node.inputs[0] in inputs]
        for side, (inputs, _) in zip(sides, inner, strict=True)
    ]
    handed: list[Node] = []
    kept: list[list[Node]] = [[] for _ in sides]
    for k, operand in enumerate(operands):
        if any(inputs[k] in toposort(side, stop=dims) for side, dims, (inputs, _) in zip(sides, measured, inner, strict=True)):
            handed.append(operand)
            for one, (inputs, _) in zip(kept, inner, strict=True):
                one.append(inputs[k])
            continue
        for axis, length in enumerate(dims_of(operand)):
            lengths = [
                [dim for dim in dims if dim.inputs[0] is inputs[k] and dim.number("axis") == axis]
                for dims, (inputs, _) in zip(measured, inner, strict=True)
            ]
            if any(lengths):
                handed.append(length)
                for branch, (one, dims) in enumerate(zip(kept, lengths, strict=True)):
                    one.append(new_input(length.type))
                    sides[branch] = list(substitute(sides[branch], dict.fromkeys(dims, one[-1])))
    return handed, sides, [(one, above) for one, (_, above) in zip(kept, inner, strict=True)]


def choice_tangents(node: Node, tangents: Sequence[Node | None], forward: Forward) -> list[Node | None]:
    """The tangents of the results."""
    condition, *operands = node.inputs
    moving = {k: tangent for k, tangent in enumerate(tangents[1:]) if tangent is not None}
    of_branches: list[list[Node | None]] = []
    inner: list[tuple[list[Node], list[Node]]] = []
    for branch in branches(node):
        inputs, outputs = _opened(branch)
        along = {k: new_input(tangent.type) for k, tangent in moving.items()}
        of_branches.append(forward(outputs, inputs, [along.get(k) for k in range(len(inputs))]))
        inner.append((inputs, list(along.values())))
    result: list[Node | None] = [None] * len(node.types)
    there = [place for place, pair in enumerate(zip(*of_branches, strict=True)) if any(value is not None for value in pair)]
    if not there:
        return result
    graphs = []
    for branch_values, (inputs, moved), branch in zip(of_branches, inner, branches(node), strict=True):
        outputs = substitute(branch.outputs, dict(zip(branch.inputs, inputs, strict=True)))
        graphs.append(close((*inputs, *moved), [branch_values[place] or zeros_like(outputs[place]) for place in there]))
    for place, value in zip(there, if_else_outputs(condition, (*operands, *moving.values()), *graphs), strict=True):
        result[place] = value
    return result


def _opened(branch: Graph) -> tuple[list[Node], tuple[Node, ...]]:
    """A branch over inputs of its own."""
    inputs = [new_input(node.type, node.name) for node in branch.inputs]
    return inputs, substitute(branch.outputs, dict(zip(branch.inputs, inputs, strict=True)))
