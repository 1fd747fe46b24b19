"""From a graph to a function of loops: the way in and out of `plan/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ir.graph import Graph
from ..ir.loops import Function, Stmt
from .lower.function import FunctionBuilder
from .passes.ahead import drawn_ahead
from .passes.blocks import in_blocks
from .passes.fuse import fuse
from .passes.interchange import interchanged
from .passes.simd import for_simd
from .passes.stack import on_stack
from .passes.strips import in_strips
from .passes.tiles import in_tiles


@dataclass
class Plan:
    """A function, and the arrays that it takes after the graph's inputs."""

    function: Function
    constants: list[npt.NDArray[np.generic]]


Watch = Callable[[str, Plan], None]


PASSES: Mapping[str, Callable[[list[Stmt], FunctionBuilder], list[Stmt]]] = {
    "fuse": lambda body, lowered: fuse(body),
    "interchanged": lambda body, lowered: interchanged(body, lowered.builder),
    "in_tiles": lambda body, lowered: in_tiles(body, lowered.builder),
    "in_blocks": lambda body, lowered: in_blocks(body, lowered.builder),
    "in_strips": lambda body, lowered: in_strips(body, lowered.builder, lowered.arguments.declared),
    "drawn_ahead": lambda body, lowered: drawn_ahead(body, lowered.builder),
    "for_simd": lambda body, lowered: for_simd(body),
    "on_stack": lambda body, lowered: on_stack(body),
}
"""What is done to the statements of a whole function, in this order."""


def plan(
    graph: Graph,
    name: str,
    given: Sequence[bool] | None = None,
    check_finite: bool = False,
    reserved: Sequence[str] = (),
    beginnings: Sequence[str] = (),
    watch: Watch | None = None,
) -> Plan:
    """The loops of a closed graph.

    `given`: which results are written into arrays of the caller, handed over after the inputs. `check_finite`: every step fails whose
    result is not finite. `reserved`: names that the text around the function uses; `beginnings`: of names that it makes up. `watch` is
    told the function as it is built, and as each pass leaves it; the next one may change its statements.
    """
    lowered = FunctionBuilder(graph, given or [False] * len(graph.outputs), check_finite, (name, *reserved), tuple(beginnings))
    body = lowered.body()
    result = Plan(Function(name, tuple(lowered.arguments.declared), body), lowered.arguments.constants)
    for word, change in {"built": _unchanged, **PASSES}.items():
        result.function.body = change(result.function.body, lowered)
        if watch is not None:
            watch(word, result)
    return result


def _unchanged(body: list[Stmt], lowered: FunctionBuilder) -> list[Stmt]:
    return body
