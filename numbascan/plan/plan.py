"""From a graph to a function of loops: the entry point of `plan/`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ir.graph import Graph
from ..ir.loops import Function
from ..ir.names import Names
from .lower.function import FunctionBuilder
from .storage.save_mem import with_states_behind
from .target import Target


@dataclass
class Plan:
    """A function, and the captured arrays that it takes after the graph's inputs."""

    function: Function
    constants: list[npt.NDArray[np.generic]]


Watch = Callable[[str, Plan], None]


def plan(
    graph: Graph,
    target: Target,
    name: str,
    given: Sequence[bool] | None = None,
    check_finite: bool = False,
    reserved: Sequence[str] = (),
    beginnings: Sequence[str] = (),
    without: Collection[str] = (),
    watch: Watch | None = None,
) -> Plan:
    """The loops of a closed graph on a target.

    given: which results are written into arrays of the caller, handed over after the inputs.
    check_finite: a step fails if its result is not finite.
    reserved, beginnings: names, and prefixes of names, that the text around the function uses.
    without: names of loop passes to leave out.
    watch: is called with the function as it is built, and as each pass leaves it.
    """
    names = Names((name, *reserved), tuple(beginnings))
    lowered = FunctionBuilder(with_states_behind(graph), target, given or [False] * len(graph.outputs), check_finite, names)
    body = lowered.body()
    constants = lowered.arguments.constants
    result = Plan(Function(name, tuple(lowered.arguments.declared), body, names, lowered.builder.rings), constants)
    if watch is not None:
        watch("built", result)
    for change in target.passes:
        if change.__name__ not in without:
            result = Plan(change(result.function, target), constants)
            if watch is not None:
                watch(change.__name__, result)
    return result
