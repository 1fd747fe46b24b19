"""Loop interchange: if the elements of a state are independent, the loop over elements goes outside and the loop over time inside.

    # before: for t in range(steps):             # after: for i in range(n):
    #             for i in range(n):                     x_i = x[i]
    #                 x[i] = f(x[i], a[i])               for t in range(steps):
    #                                                        x_i = f(x_i, a[i])
    #                                                    x[i] = x_i

Elements are then lanes (see tiles.py), whose states stay in registers and the first-level cache for all steps. Where only a step would
check that all elements are there, nothing is done unless there is one.
Not handled:
- states whose rows are kept
- steps that hold anything besides one loop over elements
- few elements, which do not fill a tile of lanes
"""

from __future__ import annotations

from dataclasses import replace

from ...ir import loops as ir
from ...ir.accesses import Memory, Passes, Place
from ...ir.mentions import loads_in
from ...ir.names import Names
from ..cost import is_few
from ..target import Target


def interchange(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops interchanged."""
    names, memory = function.names.copy(), Memory(function.body, function.rings)
    shapes = {stmt.name: stmt.shape for stmt in ir.walk(function.body) if isinstance(stmt, ir.Alloc)}

    def turned(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        places = _places(stmt, memory, target) if isinstance(stmt, ir.For) else {}
        if not isinstance(stmt, ir.For) or not places:
            return None
        loop, has_steps = _turned(stmt, places, names), ir.compare("<", stmt.start, stmt.stop)
        is_there = all(_is_inside(array, place, shapes.get(array), loop) for array, (place, _) in places.items())
        return [loop] if is_there or has_steps == ir.Literal("bool", True) else [ir.If(has_steps, [loop])]  # what only steps check

    return replace(function, body=ir.rebuilt(function.body, turned), names=names)


def _places(time: ir.For, memory: Memory, target: Target) -> dict[str, tuple[Place, str]]:
    """For each array that the steps write, the one place that a pass writes, and its dtype. Empty if interchange is refused."""
    (inner, *others) = time.body
    if time.kind != "time" or time.step != 1 or others or not isinstance(inner, ir.For) or inner.step != 1 or is_few(inner, target):
        return {}
    if not all(isinstance(stmt, ir.Store) or (isinstance(stmt, ir.Let) and stmt.is_new) for stmt in inner.body):
        return {}
    written: dict[str, tuple[Place, str]] = {}
    for stmt in inner.body:
        if isinstance(stmt, ir.Store):
            dtype = stmt.value.dtype if isinstance(stmt.value, ir.Expr) else "int64"
            if stmt.combine or written.setdefault(stmt.array, (stmt.index, dtype)) != (stmt.index, dtype):
                return {}
    element = ir.Name("int64", inner.name)
    own = all(element in place for place, _ in written.values()) and memory.roots.keys().isdisjoint(written)
    return written if own and _are_elements(inner, written) and _is_same_in_all_steps(time, inner, written, memory) else {}


def _are_elements(inner: ir.For, written: dict[str, tuple[Place, str]]) -> bool:
    """True if written arrays are read, at their own place only."""
    loads = [load for stmt in inner.body for part in ir.expressions(stmt) for load in loads_in(part) if load.array in written]
    return bool(loads) and all((load.index, load.dtype) == written[load.array] for load in loads)


def _is_same_in_all_steps(time: ir.For, inner: ir.For, written: dict[str, tuple[Place, str]], memory: Memory) -> bool:
    """True if no place that is written and no loop bound depends on the steps."""
    steps = Passes(time, memory, memory.effects(time.body))
    bounds = {name for bound in (inner.start, inner.stop, time.start, time.stop) for name in ir.names_in(bound)}
    places = {name for place, _ in written.values() for index in place for name in ir.names_in(index)}
    return not any(steps.changes(*name) for name in bounds | places - {(inner.name, False)})


def _turned(time: ir.For, places: dict[str, tuple[Place, str]], names: Names) -> ir.For:
    (inner,) = time.body
    assert isinstance(inner, ir.For)
    locals_ = {array: ir.Name(dtype, names.fresh(f"{array}_{inner.name}")) for array, (_, dtype) in places.items()}
    step: list[ir.Stmt] = []
    for stmt in inner.body:
        changed = ir.with_values(
            stmt, lambda expr: ir.mapped(expr, lambda part: locals_.get(part.array) if isinstance(part, ir.Load) else None)
        )
        step.append(ir.Let(locals_[changed.array].name, changed.value, is_new=False) if isinstance(changed, ir.Store) else changed)
    before: list[ir.Stmt] = [ir.Let(locals_[array].name, ir.Load(dtype, array, place)) for array, (place, dtype) in places.items()]
    after: list[ir.Stmt] = [ir.Store(array, place, locals_[array]) for array, (place, _) in places.items()]
    return replace(inner, body=[*before, replace(time, body=step), *after])


def _is_inside(array: str, place: Place, shape: Place | None, loop: ir.For) -> bool:
    """True if it needs no check that all elements are there, since the loop is over an axis of the array."""
    element = ir.Name("int64", loop.name)
    lengths = shape or [ir.Length("int64", array, axis) for axis in range(len(place))]
    return all(length == loop.stop if index == element else isinstance(index, int) for index, length in zip(place, lengths, strict=True))
