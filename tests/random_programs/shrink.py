"""Makes a program that shows a difference smaller, as long as it still shows one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .compare import Difference, differences
from .generate import Refused
from .trees import Body, Expr, Program, Statement, nest_map

Differences = Callable[[Program, list[str], Callable[[], bool]], Iterator[Difference]]


def shrunk(
    program: Program, way: str, known: Callable[[], Callable[[], bool]], seconds: float = 240.0, differ: Differences = differences
) -> tuple[Program, str]:
    """The smallest program found that differs in `way`, and what the difference is. `known()`: which dimensions are declared."""
    found = _difference(program, way, known(), differ)
    end = time.monotonic() + seconds
    progress = found is not None
    while progress and time.monotonic() < end:
        progress = False
        for candidate in _smaller(program):
            if time.monotonic() > end:
                break
            text = _difference(candidate, way, known(), differ)
            if text is not None and _kind(text) == _kind(found or ""):
                program, found, progress = candidate, text, True
                break
    return program, found or "not seen again"


def _kind(text: str) -> str:
    """What makes two differences alike: values, NaN, or an error of a class."""
    return text.split(":")[1].split(" ")[1] + " nan" * ("nan" in text)


def _difference(program: Program, way: str, known: Callable[[], bool], differ: Differences) -> str | None:
    try:
        return next((str(found) for found in differ(program, [way], known) if not found.excuse), None)
    except (Refused, Exception):
        return None


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with something less, the largest steps first."""
    step = program.step
    for key in program.options:
        yield replace(program, options={name: value for name, value in program.options.items() if name != key})
    if step.until is not None:
        yield program.with_step(until=None)
    for k in range(len(step.updates)):
        yield program.with_step(updates=step.updates[:k] + step.updates[k + 1 :])
    yield from _without_traces(program)
    for body in _smaller_bodies(step):
        yield replace(program, step=body)
    used = program.step.lines() + [port.text for port in program.ports] + [text for _, text in program.arrays]
    kept = tuple(array for array in program.arrays if any(array[0] in line for line in used))
    if len(kept) < len(program.arrays):
        yield replace(program, arrays=kept)


def _without_traces(program: Program) -> Iterator[Program]:
    outs = [port for port in program.ports if port.kind in ("state", "trace")]
    for k, port in enumerate(outs):
        if port.kind == "trace" and len(outs) > 1:
            ports = tuple(other for other in program.ports if other is not port)
            outputs = program.step.outputs
            yield replace(program, ports=ports, step=replace(program.step, outputs=outputs[:k] + outputs[k + 1 :]))


def _smaller_bodies(step: Body) -> Iterator[Body]:
    statements = step.statements
    for k, statement in enumerate(statements):
        yield replace(step, statements=statements[:k] + statements[k + 1 :])
        if statement.expr.body is not None:
            for body in _smaller_bodies(statement.expr.body):
                yield _with(step, k, replace(statement.expr, body=body))
        for expr in _smaller_exprs(statement.expr):
            yield _with(step, k, expr)
    for k, output in enumerate(step.outputs):
        for nest in _smaller_nests(output):
            yield replace(step, outputs=(*step.outputs[:k], nest, *step.outputs[k + 1 :]))
    for k, (name, expr) in enumerate(step.updates):
        for other in _smaller_exprs(expr):
            yield replace(step, updates=(*step.updates[:k], (name, other), *step.updates[k + 1 :]))


def _with(step: Body, k: int, expr: Expr) -> Body:
    return replace(step, statements=(*step.statements[:k], Statement(step.statements[k].name, expr), *step.statements[k + 1 :]))


def _smaller_nests(nest: Any) -> Iterator[Any]:
    leaves: list[Expr] = []
    nest_map(lambda leaf: leaves.append(leaf) or leaf, nest)
    for leaf in leaves:
        for expr in _smaller_exprs(leaf):
            yield nest_map(lambda other, leaf=leaf, expr=expr: expr if other is leaf else other, nest)


def _smaller_exprs(expr: Expr) -> Iterator[Expr]:
    """An operand in the expression's place, a constant, or a smaller operand."""
    if expr.body is None and expr.args:
        same = [arg for arg in _all(expr) if _type(arg) == _type(expr) and arg is not expr]
        yield from sorted(same, key=len)
        yield from (arg for arg in expr.args if np.ndim(arg.value) == np.ndim(expr.value) and arg not in same)
        dtype, shape = np.asarray(expr.value).dtype.name, np.shape(expr.value)
        if len(expr) > 1:
            yield Expr(f"numbers('{dtype}', {shape}, {random.Random(len(expr)).randrange(99)})", (), expr.value, traced=False)
    for k, arg in enumerate(expr.args):
        for other in _smaller_exprs(arg):
            yield replace(expr, args=(*expr.args[:k], other, *expr.args[k + 1 :]))


def _all(expr: Expr) -> list[Expr]:
    return [expr, *(inner for arg in expr.args for inner in _all(arg))]


def _type(expr: Expr) -> tuple[Any, ...]:
    return np.asarray(expr.value).dtype, np.shape(expr.value)
