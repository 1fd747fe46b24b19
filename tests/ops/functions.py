"""NumPy functions on variables against NumPy itself: the same expression, traced and run, and run on arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numbascan.front.variable import Variable, as_variable
from numbascan.ir.graph import Graph
from numbascan.ir.node import new_input
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType


def inputs_for(arrays: tuple[Any, ...], known: bool) -> list[Variable]:
    """A variable for each array; its dimensions fixed, or (but 1) open."""
    arrays = tuple(map(np.asarray, arrays))
    types = [TensorType(x.dtype.name, tuple(n if known or n == 1 else None for n in x.shape)) for x in arrays]
    return [Variable(new_input(type_)) for type_ in types]


def flat(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in flat(part)] if isinstance(result, list | tuple) else [result]


def traced(function: Callable[..., Any], arrays: tuple[Any, ...], known: bool) -> tuple[Graph, list[Any]]:
    """The graph of the function's results, and its arguments."""
    variables = inputs_for(arrays, known)
    results = [as_variable(result) for result in flat(function(*variables))]
    return Graph(tuple(x.node for x in variables), tuple(x.node for x in results)), list(arrays)


def assert_as_numpy(function: Callable[..., Any], *arrays: Any, is_definite: bool = True) -> None:
    """The function gives on variables what it gives on arrays: values, dtypes, shapes; and its types hold.

    `is_definite`: where all lengths of the operands are known, so are those of the results.
    """
    expected = [np.asarray(result) for result in flat(function(*arrays))]
    for is_known in (True, False):
        graph, arguments = traced(function, arrays, is_known)
        found = interpret(graph, arguments)
        assert len(found) == len(expected)
        for actual, wanted, node in zip(found, expected, graph.outputs, strict=True):
            assert np.shape(actual) == wanted.shape
            assert all(dim in (None, n) for dim, n in zip(node.type.shape, wanted.shape, strict=True))
            assert not (is_known and is_definite) or None not in node.type.shape
            assert actual.dtype == wanted.dtype
            tolerance = 2e-6 if wanted.dtype.name in ("float32", "complex64") else 1e-13
            np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
