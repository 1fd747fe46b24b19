"""Plans held against the oracle: each is run in Python as it is built, and as each pass leaves it, where memory is filled and watched.

A row that is read before it is written holds NaN, or -1; a row that is read in another version than was asked for holds other numbers; an
index outside of an array raises. What passes may do in any order is done backwards. Every graph is planned in several ways, which nobody
needs to have thought of: with the last rows of results alone, with small rows in memory as large ones are, into arrays of the caller.

`pytest --check-plans` does this for every kernel that runs, with the arguments of its first call. It runs the kernels in Python, too.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np

from numbascan.emit.cpu.module import RESERVED, beginnings, module_text
from numbascan.emit.names import LOOKS
from numbascan.ir.check import IllegalGraphError
from numbascan.ir.check_loops import check_loops
from numbascan.ir.graph import Graph
from numbascan.ir.loop_node import SCAN
from numbascan.ir.loops import Alias, Alloc, Apply, Argument, For, Function, If, Load, Stmt, expressions, walk
from numbascan.ir.node import ITEM, Node
from numbascan.ir.show import show
from numbascan.ops.indexing import INDEX
from numbascan.ops.runtime_attributes import sized
from numbascan.oracle.finite import finite_run
from numbascan.oracle.interpret import interpret
from numbascan.plan.cpu import CPU
from numbascan.plan.plan import Plan, Watch, plan
from numbascan.plan.storage.save_mem import may_end_early, split_row_reads
from numbascan.plan.target import Target

MOST_PASSES = 5_000  # of the loops of a function: what takes more is left out
TOLERANCE = {"float32": 2e-4, "complex64": 2e-4}  # of the largest number of a result
DEFAULT_TOLERANCE = 1e-8
BYTE = 0xFF  # of eight: a NaN; -1 as a signed integer


class PlanError(AssertionError):
    """A plan gives something else than the oracle. It names the way that was planned and the pass."""


class TooLong(Exception):
    """A function has more passes than is worth running in Python, or calls a routine that only machine code can run."""


# memory -------------------------------------------------------------------------------------------------------------


class Watched(np.ndarray):
    """An array that is never read or written outside of its bounds: Python would count from its end, or cut a slice off."""

    def __getitem__(self, key: Any) -> Any:
        self._check(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check(key)
        super().__setitem__(key, value)

    def _check(self, key: Any) -> None:
        for part, length in zip(key if isinstance(key, tuple) else (key,), self.shape, strict=False):
            start, stop = (part.start or 0, length if part.stop is None else part.stop) if isinstance(part, slice) else (part, part + 1)
            if not 0 <= start <= stop <= length:
                raise PlanError(f"index {key} of an array of shape {self.shape}")


def empty(shape: Any, dtype: Any = np.float64) -> Watched:
    """Memory in which nothing is written yet."""
    try:
        array = np.empty(shape, dtype)
    except ValueError as error:  # more bytes, or rows, than NumPy can count
        raise MemoryError(str(error)) from None
    array.view(np.uint8 if array.ndim else array.dtype)[...] = BYTE
    return array.view(Watched)


# Python in the place of Numba ---------------------------------------------------------------------------------------


class _Any(int):
    """A number of passes whose order is free."""


class _Passes:
    """`range`, counted; what may go in any order goes backwards."""

    def __init__(self, most: int = MOST_PASSES) -> None:
        self.left = most

    def __call__(self, *bounds: Any) -> Any:
        passes = range(*map(int, bounds))
        self.left -= len(passes)
        if self.left < 0:
            raise TooLong
        return reversed(passes) if isinstance(bounds[-1], _Any) else passes


class _Module:
    """A module with some names that mean something else."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module = module
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _as_ieee(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that gives what the machine gives where Python raises."""

    def called(*operands: Any) -> Any:
        try:
            return np.float64(function(*operands))
        except ValueError:
            return np.float64(math.nan)
        except OverflowError:
            return np.float64(math.inf)

    return called


def _backwards(part: Any, start: Any, stop: Any, step: Any, work: Any, most: Any, values: Any) -> bool:
    """Passes over lanes, the last first."""
    for first in reversed(range(int(start), int(stop), int(step))):
        part(first, min(first + step, stop), *values)
    return True


def runnable(function: Function) -> Callable[..., Any]:
    """A function of loops as one of Python."""
    names: dict[str, Any] = {}
    exec(compile(module_text(function), f"<{function.name}>", "exec"), names)
    floats = {name: _as_ieee(getattr(math, name)) for name in ("sqrt", "floor", "ceil", "lgamma", "gamma", "fmod", "pow")}
    names |= {"np": _Module(np, empty=empty), "math": _Module(math, **floats)}
    names |= {"range": _Passes(), "lanes": _Any, "small_array": empty, "in_threads": _backwards}
    names |= dict.fromkeys(LOOKS, lambda *_: False)
    return names[function.name]


# ways to plan a graph -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A way to plan a graph: whether the last rows of its loops' results are wanted instead of all, small rows live in memory as large ones
    do, and results go into arrays of the caller."""

    is_last: bool = False
    is_in_memory: bool = False
    is_given: bool = False

    def graph(self, graph: Graph) -> Graph:
        return Graph(graph.inputs, tuple(_last(node) if self._is_cut(node) else node for node in graph.outputs))

    def expected(self, graph: Graph, values: Sequence[Any]) -> list[Any]:
        """What the graph gives, of what the one that was asked for gives. An IndexError where there is no last row."""
        return [np.asarray(value)[-1] if self._is_cut(node) else value for node, value in zip(graph.outputs, values, strict=True)]

    def _is_cut(self, node: Node) -> bool:
        return self.is_last and node.type.rank > 0 and _is_of_loop(node)

    def given(self, graph: Graph) -> list[bool]:
        return [self.is_given and node.type.rank > 0 and not may_end_early(node) for node in graph.outputs]

    def plan(self, graph: Graph, check_finite: bool, watch: Watch) -> None:
        target = replace(CPU, locals_limit=1) if self.is_in_memory else CPU
        graph, given = split_row_reads(self.graph(graph)), self.given(graph)
        plan(graph, target, "checked", given, check_finite, RESERVED, beginnings("checked"), watch=watch)


WAYS = (Way(), Way(is_in_memory=True), Way(is_last=True), Way(is_last=True, is_in_memory=True), Way(is_in_memory=True, is_given=True))


def two_ways(graph: Graph) -> tuple[Way, Way]:
    """As it was asked for, and one of the other ways, by the graph: two fifths of the time, and each way meets many graphs."""
    return WAYS[0], WAYS[1 + crc32(str(show(graph)).encode()) % (len(WAYS) - 1)]


def _is_of_loop(node: Node) -> bool:
    """Is a value all rows of a loop's result? Or, of a shared variable, the last one: then its own last element is read."""
    return node.op is SCAN or (node.op is ITEM and node.inputs[0].op is SCAN)


def _last(node: Node) -> Node:
    return sized(INDEX, (node,), (-1,))


# the check ----------------------------------------------------------------------------------------------------------


def check_plans(graph: Graph, arguments: Sequence[Any], check_finite: bool = False, ways: Sequence[Way] = WAYS) -> int:
    """How many functions give what the oracle gives: `ways` to plan a graph, after every pass.

    Raises PlanError where one does not, and, when all others are checked, TooLong for those that were left out.
    """
    stages = {way: _stages(way, graph, check_finite) for way in ways}
    values = _expected(graph, arguments, check_finite, stages[Way()]["built"])
    if values is None:
        return 0
    functions, too_long = 0, None
    for way, made in stages.items():
        try:
            functions += _check_way(way, graph, made, arguments, values)
        except TooLong as error:
            too_long = error
    if too_long is not None:
        raise too_long
    return functions


def _expected(graph: Graph, arguments: Sequence[Any], check_finite: bool, built: Plan) -> list[Any] | None:
    """What the oracle gives; None where it, or the plan as it was asked for, refuses. Raises TooLong where that is not worth its time."""
    try:
        run(built, arguments)
    except TooLong:
        raise
    except MemoryError:  # the oracle would take the steps before it runs out of memory
        return None
    except Exception as error:  # one that is not written in the plan is seen once more
        if str(error).startswith(("ERROR_", "('ERROR_", '("ERROR_')):
            return None
    try:
        with warnings.catch_warnings(action="ignore"):
            return (finite_run if check_finite else interpret)(graph, [np.array(value) for value in arguments])
    except Exception:
        return None


def _stages(way: Way, graph: Graph, check_finite: bool) -> dict[str, Plan]:
    """The plan after each pass that changes it, by the pass."""
    texts: set[str] = set()
    stages: dict[str, Plan] = {}

    def watch(word: str, made: Plan) -> None:
        text = module_text(made.function)
        try:
            check_loops(made.function)
        except IllegalGraphError as error:
            raise PlanError(f"{way}, {word}: {error}\n{text}") from error
        hidden = set(_hidden(made.function))
        if hidden:
            raise PlanError(f"{way}, {word}: passes do not see that {', '.join(sorted(hidden))} is read\n{text}")
        if text not in texts:
            texts.add(text)
            stages[word] = made

    way.plan(graph, check_finite, of_changes(watch))
    return stages


def of_changes(watch: Watch) -> Watch:
    """Tells `watch` of the function as it is built, and of each pass that changes it: four passes in five do not."""
    last: list[Function] = []

    def told(word: str, made: Plan) -> None:
        function = made.function
        if last and (function.arguments, function.rings, function.body) == (last[0].arguments, last[0].rings, last[0].body):
            return
        last[:] = [replace(function, body=_copied(function.body))]  # what a later pass changes in place is not changed here
        watch(word, Plan(last[0], made.constants))

    return told


def _hidden(function: Function) -> Iterator[str]:
    """The arrays that the text of a template names: what an expression reads stands in its operands, where passes look for it."""
    made = {stmt.name for stmt in walk(function.body) if isinstance(stmt, Alloc | Alias)}
    arrays = made | {argument.name for argument in function.arguments if argument.rank}
    exprs = [expr for stmt in walk(function.body) for expr in expressions(stmt)]
    while exprs:
        expr = exprs.pop()
        if isinstance(expr, Apply):
            yield from arrays & set(re.findall(r"(?<![\w.])\w+(?!\()\b", expr.template.text))
            exprs += expr.args
        elif isinstance(expr, Load):
            exprs += expr.index


def _check_way(way: Way, graph: Graph, stages: Mapping[str, Plan], arguments: Sequence[Any], values: Sequence[Any]) -> int:
    try:
        expected = way.expected(graph, values)
    except IndexError:
        return 0
    for word, made in stages.items():
        out = [
            empty(np.shape(value), np.asarray(value).dtype) for value, is_given in zip(expected, way.given(graph), strict=True) if is_given
        ]
        try:
            found = run(made, [*arguments, *out])
        except (TooLong, NotImplementedError) as error:
            raise TooLong from error
        except Exception as error:
            raise PlanError(f"{way}, {word}: {type(error).__name__}: {error}\n{module_text(made.function)}") from error
        for k, (actual, right) in enumerate(zip(found, expected, strict=True)):
            if not _is_same(actual, np.asarray(right)):
                raise PlanError(f"{way}, {word}: result {k} is\n{np.asarray(actual)}\nand should be\n{right}\n{module_text(made.function)}")
    return len(stages)


def run(made: Plan, arguments: Sequence[Any]) -> list[Any]:
    """The results of a plan."""
    values = [_argument(value, argument) for argument, value in zip(made.function.arguments, [*arguments, *made.constants], strict=True)]
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        results = runnable(made.function)(*values)
    return list(results) if isinstance(results, tuple) else [] if results is None else [results]


def _argument(value: Any, argument: Argument) -> Any:
    """A value as Python's function takes it: a number of its dtype, a watched copy of an array; memory for results itself."""
    if isinstance(value, Watched):
        return value
    return np.array(value, argument.dtype, order="C").view(Watched) if argument.rank else np.dtype(argument.dtype).type(value)


def _copied(stmts: Sequence[Stmt]) -> list[Stmt]:
    copies: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, For):
            copies.append(replace(stmt, body=_copied(stmt.body)))
        elif isinstance(stmt, If):
            copies.append(If(stmt.condition, _copied(stmt.then), _copied(stmt.otherwise)))
        else:
            copies.append(replace(stmt))
    return copies


def _is_same(actual: Any, expected: Any) -> bool:
    actual = np.asarray(actual)
    if actual.shape != expected.shape:  # how long rows are that no step has made may be for a step to say
        return expected.size == actual.size == 0 and actual.shape[:1] == expected.shape[:1] and actual.ndim == expected.ndim
    if expected.dtype.kind not in "fc":
        return bool((actual == expected).all())
    finite = expected[np.isfinite(expected)]
    tolerance = TOLERANCE.get(expected.dtype.name, DEFAULT_TOLERANCE)
    return np.allclose(actual, expected, rtol=tolerance, atol=tolerance * np.abs(finite).max(initial=0.0), equal_nan=True)


@dataclass
class Checks:
    """The functions that were run, what was found, and whether there were some that are too long for Python."""

    ways: Callable[[Graph], Sequence[Way]]
    functions: int = 0
    faults: list[PlanError] = field(default_factory=list)
    left_out: bool = False

    def of_kernel(self, kernel: Any, values: Sequence[Any]) -> None:
        graph, check_finite = kernel.unchecked
        try:
            self.functions += check_plans(graph, values, check_finite, self.ways(graph))
        except PlanError as error:
            self.faults.append(error)
        except TooLong:
            self.left_out = True


@contextmanager
def checked(ways: Callable[[Graph], Sequence[Way]] = lambda graph: WAYS) -> Iterator[Checks]:
    """Inside, every kernel is checked when it runs for the first time, its graph planned in these ways."""
    from numbascan import backends
    from numbascan import compile as stages

    checks = Checks(ways)
    make, run, lower = stages.Kernel.__init__, stages.Kernel.run, stages.plan

    def made(self: Any, *rest: Any) -> None:
        def lowered(graph: Graph, target: Target, name: str, given: Any, check_finite: bool, *rest: Any) -> Plan:
            self.unchecked = graph, check_finite
            return lower(graph, target, name, given, check_finite, *rest)

        with mock.patch.object(stages, "plan", lowered):
            make(self, *rest)

    def run_checked(self: Any, values: Sequence[Any], out: Sequence[Any] = ()) -> list[Any]:
        if getattr(self, "unchecked", None) is not None:  # made in here
            checks.of_kernel(self, values)
            self.unchecked = None
        getattr(self.function, "__globals__", {})["range"] = _Passes(20 * MOST_PASSES)
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            return run(self, values, out)

    generated = mock.patch.object(backends, "jit_is_off", return_value=False)  # what runs is the generated code, not NumPy in its place
    with generated, mock.patch.multiple(stages.Kernel, __init__=made, run=run_checked):
        yield checks
