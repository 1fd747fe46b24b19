"""From a graph to something that runs. The one file that names every stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from .emit.cache import load
from .emit.cpu import RESERVED, error_texts, module_text
from .emit.sizes import Memory, memory_of, steps_of
from .errors import CudaUnavailableError
from .grad.mit_mots import plain_graphs
from .ir.graph import Graph, substitute, toposort
from .ir.node import ARG, INPUT, Node, arg
from .ir.ports import SCAN, loop_spec
from .modes import Mode
from .ops.card import Card
from .ops.control import inlined
from .ops.lowering import Elementwise, View
from .oracle.debug import debug_run
from .oracle.interpret import interpret
from .oracle.turns import steps_run_again
from .plan.plan import Plan, plan
from .plan.save_mem import split_row_reads
from .profile import Profile
from .rewrite.pipeline import rewritten
from .types import TensorType

SPECIALISED_DIM = 16  # a dimension up to this length may be compiled in
SPECIALISED_KINDS = 8  # so many lengths of one dimension, then it is left to the run

Axes = tuple[int | None, ...]


class Program:
    """A graph made ready to run in a mode. Call it with one array or number per input; it gives a list of arrays.

    `specialise`: small dimensions that the graph leaves open are compiled in, one kernel per kind of argument. Those of 1 always are.
    """

    def __init__(self, graph: Graph, mode: Mode, name: str = "scan", specialise: bool = True, profile: bool = False) -> None:
        self.graph, self.mode, self.name = graph, mode, _identifier(name)
        self.profile = Profile(name) if profile else None
        self._last: tuple[Kernel, list[Any]] | None = None
        self.specialise = specialise
        self._lengths = length_axes(graph)
        self._seen: dict[tuple[int, int], set[int]] = {}
        self._kernels: dict[tuple[tuple[Axes, ...], tuple[bool, ...]], Kernel] = {}
        self._graphs: dict[tuple[Axes, ...], Graph] = {}  # as interpreted
        self._whole = (False,) * len(graph.outputs)
        self._converters = [_converter(node.type) for node in graph.inputs]

    def __call__(self, arguments: Sequence[Any], out: Sequence[Any] | None = None) -> list[Any]:
        """Runs; `out` gives an array to write each result into (None entries: a new one)."""
        if self.mode.target != "numba":
            return self._interpreted(arguments, out)
        values = [convert(value) for convert, value in zip(self._converters, arguments, strict=True)]
        given = self._whole if out is None else tuple(array is not None for array in out)
        kernel = self.kernel(self._kind(values), given)
        self._last = kernel, values
        arrays = [] if out is None else [array for array in out if array is not None]
        return kernel(values, arrays) if self.profile is None else self._profiled(kernel, values, arrays, self.profile)

    def lower(self, arguments: Sequence[Any] | None = None) -> None:
        """Compiles for arguments like these (default: as the graph declares them), without running."""
        if self.mode.target != "numba":
            return
        if arguments is None:
            self.kernel(tuple(node.type.shape for node in self.graph.inputs))
            return
        values = [convert(value) for convert, value in zip(self._converters, arguments, strict=True)]
        self._last = self.kernel(self._kind(values)), values

    def kernel(self, kind: tuple[Axes, ...], given: tuple[bool, ...] | None = None) -> Kernel:
        """The compiled function for one kind of argument."""
        key = (kind, self._whole if given is None else given)
        if key not in self._kernels:
            kernel = self._kernels[key] = Kernel(specialised(self.graph, kind), self.mode, self.name, key[1])
            if self.profile is not None:
                self.profile.generate += kernel.seconds[0]
                self.profile.compile += kernel.seconds[1]
        return self._kernels[key]

    @staticmethod
    def _profiled(kernel: Kernel, values: list[Any], out: Sequence[Any], profile: Profile) -> list[Any]:
        start = perf_counter()
        results = kernel(values, out)
        seconds = perf_counter() - start
        profile.run += seconds
        profile.calls += 1
        profile.steps += steps_of(kernel.plan.function, values)
        profile.kernels[kernel.plan.function.name] = profile.kernels.get(kernel.plan.function.name, 0.0) + seconds
        return results

    def memory(self) -> Memory:
        """Bytes that a call stores, for arguments as they were last."""
        if self._last is None:
            raise ValueError(f"{self.name}: memory() speaks of the arguments last seen; call the function, or .lower(...), first")
        kernel, values = self._last
        return memory_of(kernel.plan.function, values, steps_run_again(kernel.graph, values))

    def source(self, target: str = "cpu") -> str:
        """The generated code, of the kernel that ran last, or of the graph as it stands."""
        if target != "cpu":
            raise ValueError(f"source(target={target!r}): the only target in this version is 'cpu'")
        if self._kernels:
            return next(reversed(self._kernels.values())).text
        plain = tuple(node.type.shape for node in self.graph.inputs)
        return Kernel(specialised(self.graph, plain), self.mode, self.name, self._whole).text

    def _kind(self, values: Sequence[Any]) -> tuple[Axes, ...]:
        """Which dimensions of the arguments are compiled in."""
        return tuple(
            self._fixed_axes(k, node.type.shape, np.shape(value)) if node.type.shape else ()
            for k, (node, value) in enumerate(zip(self.graph.inputs, values, strict=True))
        )

    def _fixed_axes(self, k: int, shape: Axes, found: tuple[int, ...]) -> Axes:
        axes: list[int | None] = []
        for axis, (known, dim) in enumerate(zip(shape, found, strict=True)):
            if known is not None and known != dim:
                name = self.graph.inputs[k].name or f"argument {k}"
                raise ValueError(f"{self.name}: {name} has length {dim} along axis {axis}, where {known} was declared")
            if known is None and dim <= SPECIALISED_DIM and (self.specialise or dim == 1) and (k, axis) not in self._lengths:
                seen = self._seen.setdefault((k, axis), set())
                if dim == 1 or dim in seen or len(seen) < SPECIALISED_KINDS:  # one of 1 must be known to broadcast
                    seen.add(dim)
                    known = dim
            axes.append(known)
        return tuple(axes)

    def _graph_for(self, kind: tuple[Axes, ...]) -> Graph:
        """The graph for one kind of argument: a dimension of 1 that it leaves open must be known to broadcast."""
        if kind not in self._graphs:
            self._graphs[kind] = specialised(self.graph, kind)
        return self._graphs[kind]

    def _interpreted(self, arguments: Sequence[Any], out: Sequence[Any] | None) -> list[Any]:
        if self.mode.target == "cuda":
            raise CudaUnavailableError("mode='cuda': this version generates code for the CPU only; use mode=None")
        graph = self._graph_for(self._kind(arguments))
        if self.mode.target == "debug":
            results = debug_run(graph, arguments, lambda graph, name: Program(graph, Mode(), name), self.name)
        else:
            results = interpret(graph, arguments)
        for k, array in enumerate(out or ()):
            if array is not None:
                if len(array) < len(results[k]):
                    raise ValueError(f"scan {self.name!r}: out= has {len(array)} rows, the loop makes {len(results[k])}")
                array[: len(results[k])] = results[k]
                results[k] = array[: len(results[k])]
        return results


class Kernel:
    """One compiled function: trace → … → plan → text → machine code."""

    def __init__(self, graph: Graph, mode: Mode, name: str, given: tuple[bool, ...]) -> None:
        start = perf_counter()
        self.graph = graph
        lean = rewritten(Graph(graph.inputs, plain_graphs(graph.outputs)), mode.without)
        self.plan: Plan = plan(split_row_reads(lean), name, given, mode.check_finite, RESERVED)
        self.text = module_text(self.plan.function, mode.fastmath)
        self._error_texts = error_texts(self.plan.function)
        generated = perf_counter()
        self.function: Callable[..., Any] = load(self.text, name)
        self.seconds = generated - start, perf_counter() - generated
        self._dtypes = [np.dtype(node.type.dtype) for node in graph.outputs]

    def __call__(self, values: list[Any], out: Sequence[Any]) -> list[Any]:
        try:
            results = self.function(*values, *out, *self.plan.constants)
        except Exception as error:
            raise readable(error, self._error_texts) from None
        if len(self._dtypes) == 1:
            results = (results,)
        elif results is None:
            return []
        return [
            value if isinstance(value, np.ndarray) else np.asarray(value, dtype) for value, dtype in zip(results, self._dtypes, strict=True)
        ]


def readable(error: Exception, texts: Mapping[str, str]) -> Exception:
    """An error of a kernel as its user reads it: with the place in the code, and the numbers that were seen."""
    if not error.args or not isinstance(error.args[0], str):
        return error
    name, *_ = error.args[0].split(":", 1)
    return type(error)(texts[name].format(*error.args[1:])) if name in texts else error


def _converter(type_: TensorType) -> Callable[[Any], Any]:
    """What brings an argument into the form that a kernel takes: a number, or a C-contiguous aligned array."""
    dtype = np.dtype(type_.dtype)
    if not type_.rank:
        plain = {"float64": float, "int64": int, "bool": bool, "complex128": complex}.get(type_.dtype)
        return plain if plain is not None else dtype.type

    def convert(value: Any) -> Any:
        array = np.ascontiguousarray(value, dtype)
        return array if array.flags.aligned else array.copy()

    return convert


def specialised(graph: Graph, kind: tuple[Axes, ...]) -> Graph:
    """The graph with fixed dimensions put into its inputs' types, its inner types inferred again."""
    inputs = tuple(arg(k, node.type.with_shape(axes), node.name) for k, (node, axes) in enumerate(zip(graph.inputs, kind, strict=True)))
    return Graph(inputs, substitute(graph.outputs, dict(zip(graph.inputs, inputs, strict=True))))


def length_axes(graph: Graph) -> frozenset[tuple[int, int]]:
    """The (input, axis) pairs whose length is the length of a sequence: never compiled in."""
    position = {node: k for k, node in enumerate(graph.inputs)}
    found: set[tuple[int, int]] = set()
    for node in toposort(inlined(graph.outputs)):
        if node.op is SCAN:
            for seq in loop_spec(node).seqs:
                found |= {(position[leaf], 0) for leaf in _rows_behind(seq.outer) if leaf in position}
    return frozenset(found)


def _rows_behind(node: Node) -> set[Node]:
    """The leaves whose rows a sequence takes, through slices and elementwise work."""
    leaves: set[Node] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node.op in (INPUT, ARG):
            leaves.add(node)
        elif isinstance(node.op, Card) and isinstance(node.op.lower, View):
            stack.append(node.inputs[0])
        elif isinstance(node.op, Card) and isinstance(node.op.lower, Elementwise):
            stack += [parent for parent in node.inputs if parent.type.rank == node.type.rank]
    return leaves


def _identifier(name: str) -> str:
    """`name` as a name for a function."""
    cleaned = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)
    return cleaned if cleaned.isidentifier() else f"scan_{cleaned}".rstrip("_")
