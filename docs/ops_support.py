"""What a function of docs/ops.md has, found by tracing it: derivatives, CUDA code, SIMD.

Nothing here is a list of answers. Each function is called on variables; then the gradient is asked for, code for a GPU is written, and
what LLVM made of the loops is read. `ops_table.py` writes the answers down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numbascan.tensor as nt
from numbascan.compile import lean_graph, planned
from numbascan.errors import NullGradientError
from numbascan.front.tree import flattened
from numbascan.front.variable import Variable
from numbascan.ir.graph import close
from numbascan.ir.loops import Call, For, walk
from numbascan.modes import Mode
from numbascan.plan.plan import Plan

OPERANDS = {
    "x": ("float64", 1),
    "m": ("float64", 2),
    "t": ("float64", 3),
    "s": ("float64", 0),
    "k": ("int64", 1),
    "z": ("complex128", 1),
}
USUAL = ["x", "xx", "xxx", "m", "mm", "mx", "mk", "xk", "kx", "k", "kk", "z", "[xx]"]
"""Operands that a function is tried with, in this order: letters of OPERANDS; in brackets, those of a sequence."""
LENGTH = 3  # of every axis, where lengths are fixed

Run = Callable[..., Any]
OTHERWISE: dict[str, tuple[str, Run]] = {
    "alloc": ("s", lambda f, s: f(s, 3)),
    "arange": ("s", lambda f, s: f(s, s + 3)),
    "array_split": ("x", lambda f, x: f(x, [1])),
    "broadcast_to": ("x", lambda f, x: f(x, (2, x.shape[0]))),
    "cho_solve": ("mx", lambda f, m, x: f((m, True), x)),
    "cross": ("mm", lambda f, a, b: f(nt.specify_shape(a, (None, 3)), nt.specify_shape(b, (None, 3)))),
    "dot": ("mm", lambda f, a, b: f(a, b)),
    "dsplit": ("t", lambda f, t: f(t, [1])),
    "einsum": ("mm", lambda f, a, b: f("ij,jk->ik", a, b)),
    "empty": ("s", lambda f, s: f(3)),
    "expand_dims": ("x", lambda f, x: f(x, 0)),
    "eye": ("s", lambda f, s: f(3)),
    "full": ("s", lambda f, s: f(3, s)),
    "hsplit": ("m", lambda f, m: f(m, [1])),
    "identity": ("s", lambda f, s: f(3)),
    "ifelse": ("xx", lambda f, x, y: f(x[0] > 0, x, y)),
    "inc_subtensor": ("xx", lambda f, x, y: f(x[1:], y[1:])),
    "join": ("xx", lambda f, x, y: f(0, x, y)),
    "lu_solve": ("mkx", lambda f, m, k, x: f((m, k), x)),
    "matrix_power": ("m", lambda f, m: f(m, 3)),
    "matmul": ("mm", lambda f, a, b: f(a, b)),
    "moveaxis": ("m", lambda f, m: f(m, 0, 1)),
    "ones": ("s", lambda f, s: f(3)),
    "pad": ("x", lambda f, x: f(x, 1)),
    "compress": ("x", lambda f, x: f(x > 0, x)),
    "delete": ("x", lambda f, x: f(x, 1)),
    "extract": ("x", lambda f, x: f(x > 0, x)),
    "insert": ("x", lambda f, x: f(x, 1, 0.5)),
    **dict.fromkeys(("nanpercentile", "nanquantile", "percentile", "quantile"), ("x", lambda f, x: f(x, 0.5))),
    "polyfit": ("xx", lambda f, x, y: f(x, y, 1)),
    "ravel_multi_index": ("k", lambda f, k: f((k, k), (3, 3))),
    "unravel_index": ("k", lambda f, k: f(k, (3, 3))),
    "repeat": ("x", lambda f, x: f(x, 2)),
    "reshape": ("m", lambda f, m: f(m, (-1,))),
    "roll": ("x", lambda f, x: f(x, 1)),
    "rollaxis": ("m", lambda f, m: f(m, 1)),
    "lexsort": ("xx", lambda f, x, y: f((x, y))),
    "select": ("xx", lambda f, x, y: f([x > 0], [y])),
    "set_subtensor": ("xx", lambda f, x, y: f(x[1:], y[1:])),
    "shape_padaxis": ("x", lambda f, x: f(x, 0)),
    "solve_sylvester": ("mmm", lambda f, a, b, q: f(a, b, q)),
    "specify_shape": ("x", lambda f, x: f(x, (3,))),
    "split": ("x", lambda f, x: f(x, [1])),
    "svd": ("m", lambda f, m: f(m, full_matrices=False)),
    "swapaxes": ("m", lambda f, m: f(m, 0, 1)),
    "tensordot": ("mm", lambda f, a, b: f(a, b, 1)),
    "tile": ("x", lambda f, x: f(x, 2)),
    "tri": ("s", lambda f, s: f(3)),
    "tril_indices": ("s", lambda f, s: f(3)),
    "triu_indices": ("s", lambda f, s: f(3)),
    "unique": ("x", lambda f, x: f(x, size=3)),
    "where": ("xx", lambda f, x, y: f(x > 0, x, y)),
    "vsplit": ("m", lambda f, m: f(m, [1])),
}
"""How the functions are called that the usual operands do not suit."""
NOT_OF_ARRAYS = {"constant", "grad", "hessian", "jacobian", "tensor"}


def derivatives(function: Callable[..., Any], name: str) -> str:
    """Does a number that is computed from the results have a gradient?"""
    if name in NOT_OF_ARRAYS:
        return ""
    variables, results = _traced(function, name)
    moving = [x for x in variables if x.type.kind in "fc"]
    numbers = [nt.sum(abs(y) if y.type.kind == "c" else y) for y in results if y.type.kind in "fc"]
    if not numbers:
        return "no"
    return "yes" if any(_has_gradient(sum(numbers[1:], start=numbers[0]), x) for x in moving) else "no"


def _has_gradient(number: Variable, x: Variable) -> bool:
    try:
        return nt.grad(number, x, disconnected_inputs="ignore", return_disconnected="none") is not None
    except (NotImplementedError, NullGradientError):
        return False


def cuda(function: Callable[..., Any], name: str) -> str:
    """Is there code for a GPU: for arrays of any length, or where lengths are fixed and small?"""
    if name in NOT_OF_ARRAYS:
        return ""
    for length, answer in ((None, "yes"), (LENGTH, "small")):
        try:
            _plan(_traced(function, name, length), Mode(target="cuda"))
        except NotImplementedError:
            continue
        return answer
    return "no"


def simd(function: Callable[..., Any], name: str) -> str:
    """Did LLVM make vectors of a loop of a function? It is compiled for this, which takes a second or less.

    Fills and copies of memory, which the C library does, do not count; BLAS is told apart.
    """
    if name in NOT_OF_ARRAYS:
        return ""
    plan, text = _plan(_traced(function, name), Mode())
    if "np.dot(" in text:
        return "BLAS"
    if not any(isinstance(stmt, For) for stmt in walk(plan.function.body)):
        return "" if not any(isinstance(stmt, Call) for stmt in walk(plan.function.body)) else "no"
    module: dict[str, Any] = {"__name__": "loops"}
    exec(compile(text.replace("cache=True", "cache=False"), "loops", "exec"), module)
    llvm = "".join(module["loops"].inspect_llvm().values())
    return "yes" if "vector.body" in llvm else "no"


def _traced(function: Callable[..., Any], name: str, length: int | None = None) -> tuple[list[Variable], list[Variable]]:
    """Variables, and what the function makes of them. `length`: of their axes; None where only the run knows it."""
    refusals = []
    for letters, call in _calls(name):
        variables = [nt.tensor(dtype=dtype, shape=(length,) * rank) for dtype, rank in map(OPERANDS.get, letters.strip("[]"))]
        try:
            results = call(function, *variables)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            refusals.append(error)
            continue
        return variables, [leaf for leaf in flattened(results)[0] if isinstance(leaf, Variable)]
    raise LookupError(f"{name}: write into OTHERWISE how it is called: {refusals[0]}")


def _calls(name: str) -> Iterator[tuple[str, Run]]:
    if name in OTHERWISE:
        yield OTHERWISE[name]
        return
    for letters in USUAL:
        yield letters, (lambda f, *operands: f(operands)) if letters[0] == "[" else (lambda f, *operands: f(*operands))


def _plan(traced: tuple[list[Variable], list[Variable]], mode: Mode) -> tuple[Plan, str]:
    """The loops of a traced function, and their text."""
    variables, results = traced
    graph = lean_graph(close([x.node for x in variables], [y.node for y in results]), mode)
    return planned(graph, mode, "loops", (False,) * len(results))
