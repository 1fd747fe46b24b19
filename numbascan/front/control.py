"""Choices and calls inside a step: `nt.ifelse` and `ns.py_step`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ..ir.graph import close, toposort
from ..ir.node import CONSTANT, ITEM, Node, constant_value, next_serial, outputs_of
from ..ops.control import if_else_outputs, py_call_node
from ..tracebacks import entry
from ..types import show_shape
from .numpy.shape import broadcast_to
from .repeats import of_branch
from .tracing import close_over, code_of, current_mark, current_mode, describe, hidden, is_tracing, trace
from .tree import alike, flattened, unflatten
from .tree import describe as describe_structure
from .variable import Variable, as_variable, at_line, number_as


@entry
def ifelse(cond: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; only the one that is needed is computed.

    Arguments: cond, a scalar; a and b, functions without arguments that give the values, or the values themselves. Both give one
    array or the same nest of arrays, with the same dtypes and ranks; a Python number takes the other's dtype and shape. Of values,
    everything that only one branch needs belongs to that branch.

    Raises TypeError for a condition that is not a scalar and for branches that differ in dtype or rank, ValueError for branches that
    differ in structure.

    >>> import numbascan as ns, numbascan.tensor as nt, numpy as np
    >>> x = nt.dvector("x")
    >>> f = ns.function([x], nt.ifelse(x.sum() > 0, lambda: np.sqrt(x), lambda: x * 0))
    >>> f([1.0, 4.0])
    array([1., 2.])
    """
    chooser = as_variable(cond)
    if chooser.ndim:
        raise TypeError(
            f"nt.ifelse: the condition has shape {show_shape(chooser.type.shape)}{at_line()}; a scalar is needed: write condition.all() or "
            "condition.any(), or np.where(condition, a, b) for a choice at each element"
        )
    chooser = chooser if chooser.type.kind == "b" else as_variable(chooser != 0)
    known = constant_value(chooser.node)
    if known is not None and callable(a) and callable(b):
        return a() if known else b()
    first, (structure, then), second = next_serial(), _branch(a), next_serial()
    with hidden(first, second):
        other, otherwise = _branch(b)
    marks = [mark if callable(branch) else current_mark() for branch, mark in ((a, first), (b, second))]
    if not alike(structure, other):
        raise ValueError(
            f"nt.ifelse: one branch gives {describe_structure(structure)}, the other {describe_structure(other)}{at_line()}; "
            "they must have the same structure"
        )
    pairs = [_fitted(x, y) for x, y in zip(then, otherwise, strict=True)]
    return unflatten(structure, map(Variable, chosen_nodes(chooser.node, pairs, marks)))


def _branch(branch: Any) -> tuple[Any, list[Variable]]:
    leaves, structure = flattened(of_branch(branch, what="nt.ifelse") if callable(branch) else branch)
    return structure, [as_variable(leaf) for leaf in leaves]


def _fitted(a: Variable, b: Variable) -> tuple[Variable, Variable]:
    """Both values in one dtype and rank. A Python number follows the other value."""
    if a.type.weak and not b.type.weak:
        a = _like(a, b)
    elif b.type.weak and not a.type.weak:
        b = _like(b, a)
    if a.type.dtype != b.type.dtype or a.ndim != b.ndim:
        raise TypeError(
            f"nt.ifelse: one branch gives {a.type.strong()}, the other {b.type.strong()}{at_line()}; dtype and rank must be the same: "
            f"write .astype({a.type.dtype!r})"
        )
    return a, b


def _like(number: Variable, other: Variable) -> Variable:
    if np.result_type(_example(number), other.dtype) != other.dtype:
        return number
    cast = number_as(number, other.type.dtype)
    return broadcast_to(cast, other.shape) if other.ndim else cast


def _example(number: Variable) -> Any:
    return {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}[number.type.kind]


def _common(condition: Node, then: Sequence[Node], otherwise: Sequence[Node]) -> list[Node]:
    """The nodes that the condition or both branches need, to be computed before the choice."""
    behind = toposort([*then, *otherwise])
    shared = set(toposort(then)) & set(toposort(otherwise)) | set(toposort([condition]))
    known = [node for node in behind if node in shared or (node.op is ITEM and node.inputs[0] in shared)]
    return [node for node in known if node.op is not CONSTANT and len(node.types) == 1]


def chosen_nodes(condition: Node, pairs: Sequence[tuple[Variable, Variable]], marks: Sequence[int]) -> tuple[Node, ...]:
    """One value of each pair, whose types are the same, chosen by a boolean scalar. Nodes older than a branch's mark are outside it.

    A pair that comes twice is chosen once.
    """
    places: dict[tuple[Node, Node], int] = {}
    numbers = [places.setdefault((x.node, y.node), len(places)) for x, y in pairs]
    if len(places) < len(pairs):
        chosen = chosen_nodes(condition, [(Variable(x), Variable(y)) for x, y in places], marks)
        return tuple(chosen[k] for k in numbers)
    then, otherwise = [x.node for x, _ in pairs], [y.node for _, y in pairs]
    before = _common(condition, then, otherwise)
    inside = [node for branch, mark in zip((then, otherwise), marks, strict=True) for node in close_over(before, branch, mark)]
    used = set(toposort([*then, *otherwise], stop=[*before, *inside]))
    operands = sorted({*inside, *(node for node in before if node in used)}, key=lambda node: node.serial)
    return if_else_outputs(condition, operands, close(operands, then, own_names=True), close(operands, otherwise, own_names=True))


@entry
def py_step(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as part of a step that runs as Python in mode="python": breakpoints and prints in it see real values.

    In every other mode it is traced like any other code, and so it is in a graph whose scan was given no mode: the one that `ns.function`
    is given comes later. Derivatives are those of the code as traced. `f` takes and gives arrays, numbers, or nests of these; what it
    computes must depend on its arguments alone.

    Raises TypeError in mode="python" if `f` uses a traced value that is not among its arguments.

    >>> import numbascan as ns, numpy as np
    >>> @ns.py_step
    ... def double(x):
    ...     if isinstance(x, np.ndarray):
    ...         print("x is", x)
    ...     return 2 * x
    >>> rows, _ = ns.scan(
    ...     lambda x: double(x), outputs_info=np.float64(1), n_steps=2, mode="python"
    ... )
    x is 1.0
    x is 2.0
    """

    @functools.wraps(f)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flattened((args, kwargs))
        mode = current_mode()
        if not is_tracing() or mode is None or mode.target != "python" or not any(isinstance(leaf, Variable) for leaf in leaves):
            return f(*args, **kwargs)
        return _called(f, structure, [as_variable(leaf).node for leaf in leaves])

    return stepped


def _called(f: Callable[..., Any], structure: Any, operands: list[Node]) -> Any:
    """A node that calls `f` on the values of `operands`."""
    args, kwargs = unflatten(structure, map(Variable, operands))
    traced = trace(f, args, kwargs)
    leaves, returned = flattened(traced.value)
    results = [as_variable(leaf).node for leaf in leaves]
    outside = [node for node in close_over(operands, results, traced.mark) if node.op is not CONSTANT]
    if outside:
        names = ", ".join(node.name or str(node.type) for node in outside)
        raise TypeError(f"ns.py_step: {describe(f)} uses {names}, which is traced outside it; pass it as an argument")
    node = py_call_node(_Call(f, structure, returned), operands, close(operands, results))
    return unflatten(returned, map(Variable, outputs_of(node)))


class _Call:
    """`f` on flat values, giving a flat tuple. Hashable, so that equal calls are one node."""

    def __init__(self, f: Callable[..., Any], structure: Any, returned: Any) -> None:
        self.f, self.structure, self.returned = f, structure, returned

    @property
    def __code__(self) -> CodeType | None:
        """The code that runs, by which digests of graphs tell functions apart."""
        return code_of(self.f)

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        args, kwargs = unflatten(self.structure, values)
        leaves, seen = flattened(self.f(*args, **kwargs))
        if not alike(seen, self.returned):
            shown = describe_structure(seen), describe_structure(self.returned)
            raise ValueError(f"ns.py_step: {describe(self.f)} gave {shown[0]}, but {shown[1]} when it was traced; give the same structure")
        return tuple(leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and (self.f, self.structure, self.returned) == (other.f, other.structure, other.returned)

    def __hash__(self) -> int:
        return hash((self.f, self.structure, self.returned))
