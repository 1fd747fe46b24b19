"""From a graph to something that runs. The one file that names every stage."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from .backends import BACKENDS, OF_LANGUAGES, backend_of
from .emit.cache import is_of_numba, not_compiled
from .emit.cpu.module import FINITE_OR_NOT, beginnings
from .emit.estimates import Memory, memory_of, steps_of, work_of
from .emit.export import module as exporting
from .emit.inside.looks import cause
from .emit.messages import error_texts
from .emit.runtime.device_array import DeviceArray
from .errors import ScanTypeError
from .grad.mit_mots import plain_graphs
from .ir.graph import Graph, folded, substitute, toposort
from .ir.loop_node import SCAN, loop_spec
from .ir.messages import ONE_SHAPE
from .ir.names import RESERVED as OF_PYTHON
from .ir.names import identifier
from .ir.node import ARG, INPUT, Node, arg
from .modes import Mode
from .ops.card import Card, at_line
from .ops.control import inlined
from .ops.dims import DIM
from .ops.indexing import INDEX
from .ops.lowering import Elementwise, View
from .ops.raising import as_own
from .oracle.debug import debug_run
from .oracle.finite import finite_run
from .oracle.interpret import LoopRun, interpret
from .oracle.recomputed_steps import steps_run_again
from .plan.cpu import CPU
from .plan.plan import Plan, plan
from .plan.storage.save_mem import split_row_reads
from .profile import Profile
from .progress import compiling
from .rewrite.factor_once import factor_once
from .rewrite.pipeline import MOVING, rewritten
from .types import SUPPORTED_DTYPES, TensorType

LARGEST_FIXED = 16  # a dimension up to this length may be compiled in
MOST_LENGTHS = 8  # most lengths of one dimension that are compiled in; further ones are left to the run
ARRAYS = (np.ndarray, DeviceArray)
PLAIN = 0x101  # flags.num: C-contiguous and aligned
MOST_KEYS = 4096  # entries of a table by keys, which hold lengths: one that is full is emptied

# the dtype of a number of each class, where kernels take it unconverted (a Python int only where 64 bits hold it: see `key_of`)
DTYPES: dict[type, str] = {bool: "bool", float: "float64", complex: "complex128"} | {np.dtype(name).type: name for name in SUPPORTED_DTYPES}
NUMBERS = frozenset(DTYPES)

Axes = tuple[int | None, ...]


class FixedLengths:
    """The lengths of a function's arguments that are compiled in: small ones, and of each dimension only the first that are seen."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], set[int]] = {}  # by argument and dimension

    def fixed(self, axis: tuple[int, int], length: int) -> int | None:
        """`length` where it is compiled in, None where it is left to the run."""
        lengths = self._seen.setdefault(axis, set())
        if length > LARGEST_FIXED or (length not in lengths and len(lengths) >= MOST_LENGTHS):
            return None
        lengths.add(length)
        return length


class Program:
    """A graph made ready to run in a mode. Call it with one array or number per input; it gives a list of arrays.

    `specialise`: small dimensions that the graph leaves open are compiled in, one kernel per kind of argument. Dimensions of 1 are in any
    case, unless only loops read the rows (`rows_alone`).
    """

    def __init__(self, graph: Graph, mode: Mode, name: str = "scan", specialise: bool = True, profile: bool = False) -> None:
        self.graph, self.mode, self.name = graph, mode, _identifier(name, mode)
        self.profile = Profile(name, target=mode.target) if profile else None
        self._last: tuple[Kernel, Sequence[Any]] | None = None
        self.specialise = specialise
        self._length_axes = length_axes(graph)
        self._rows_alone = rows_alone(graph)
        self._fixed_lengths = FixedLengths()
        self._kernels: dict[tuple[tuple[Axes, ...], tuple[bool, ...]], Kernel] = {}
        self._quick: dict[Any, Kernel] = {}
        self._graphs: dict[tuple[Axes, ...], Graph] = {}  # as interpreted
        self._whole = (False,) * len(graph.outputs)
        self._converters = [_converter(node.type) for node in graph.inputs]
        self._lock = threading.RLock()  # held while a kernel is made, and while a call is added to the profile

    def __call__(self, arguments: Sequence[Any], out: Sequence[Any] | None = None) -> list[Any]:
        """As `run`."""
        return self.run(arguments, out)

    def run(self, arguments: Sequence[Any], out: Sequence[Any] | None = None, key: Any = None) -> list[Any]:
        """Runs; `out` gives an array to write each result into (None entries: a new one).

        `key`: decides the kind of the arguments, where the caller knows it (default: `key_of`). Arguments of a kind seen before go straight
        to the kernel, so the key must hold everything that kernels trust. What it does not mention must be as every kernel takes it:
        native, C-contiguous, aligned, of the dtype and shape that its input declares.
        """
        if out is None:
            key = key_of(arguments) if key is None else key
            known = self._quick.get(key)
            if known is not None:
                self._last = known, arguments
                return known.run(arguments)
        backend = BACKENDS.get(self.mode.target)
        if backend is None or not backend.takes_device_arrays:
            self._refuse_device_arrays(arguments)
        if backend is None:
            return self._interpreted(arguments, out)
        values = [convert(value) for convert, value in zip(self._converters, arguments, strict=True)]
        given = self._whole if out is None else tuple(array is not None for array in out)
        kernel = self.kernel(self._kind(values), given)
        self._last = kernel, values
        if out is None and key is not None and self.profile is None and all(map(operator.is_, arguments, values)):
            remember(self._quick, key, kernel)
        arrays = [] if out is None else [array for array in out if array is not None]
        return kernel.run(values, arrays) if self.profile is None else self._profiled(kernel, values, arrays, self.profile)

    def _refuse_device_arrays(self, arguments: Sequence[Any]) -> None:
        for k, value in enumerate(arguments):
            if isinstance(value, DeviceArray):
                name = self.graph.inputs[k].name or f"argument {k}"
                raise TypeError(
                    f"{self.name}: {name} is on a GPU; write {name}.copy_to_host(), or mode='cuda' for a function that runs there"
                )

    def lower(self, arguments: Sequence[Any] | None = None) -> None:
        """Compiles for arguments like these (default: as the graph declares them), without running."""
        if self.mode.target not in BACKENDS:
            return
        if arguments is None:
            self.kernel(tuple(node.type.shape for node in self.graph.inputs))
            return
        values = [convert(value) for convert, value in zip(self._converters, arguments, strict=True)]
        self._last = self.kernel(self._kind(values)), values

    def kernel(self, kind: tuple[Axes, ...], given: tuple[bool, ...] | None = None) -> Kernel:
        """The compiled function for one kind of argument."""
        key = (kind, self._whole if given is None else given)
        known = self._kernels.get(key)
        if known is not None:
            return known
        with self._lock:
            if key not in self._kernels:
                with compiling(self.name):
                    kernel = self._kernels[key] = Kernel(specialised(self.graph, kind), self.mode, self.name, key[1])
                if self.profile is not None:
                    for stage, seconds in kernel.seconds.items():
                        setattr(self.profile, stage, getattr(self.profile, stage) + seconds)
            return self._kernels[key]

    def _profiled(self, kernel: Kernel, values: list[Any], out: Sequence[Any], profile: Profile) -> list[Any]:
        start = perf_counter()
        results = kernel.run(values, out)
        seconds = perf_counter() - start
        function = kernel.plan.function
        work, memory = work_of(function, [*values, *out, *kernel.plan.constants]), memory_of(function, values)
        with self._lock:
            profile.run += seconds
            profile.calls += 1
            profile.steps += steps_of(function, values)
            profile.operations += work.operations
            profile.bytes += (
                sum((value if isinstance(value, DeviceArray) else np.asarray(value)).nbytes for value in values)
                + memory.results
                + 2 * (memory.trace + memory.checkpoints)
            )
            profile.loops = work.loops
            profile.kernels[function.name] = profile.kernels.get(function.name, 0.0) + seconds
        return results

    def memory(self) -> Memory:
        """Bytes that a call stores, for the arguments last seen."""
        if self._last is None:
            raise ValueError(f"{self.name}: memory() speaks of the arguments last seen; call the function, or .lower(...), first")
        kernel, values = self._last
        return kernel.memory(values)

    def source(self, target: str = "cpu") -> str:
        """The generated code of the kernel that ran last; of the graph as it is declared if there is none."""
        if target not in OF_LANGUAGES:
            raise ValueError(
                f"source(target={target!r}): the targets are {' and '.join(map(repr, OF_LANGUAGES))}, of functions and steps 'python', too"
            )
        mode = self.mode if self.mode.target == OF_LANGUAGES[target] else replace(self.mode, target=OF_LANGUAGES[target])
        kernels = {kernel: kind for (kind, _), kernel in self._kernels.items()}
        kernel = self._last[0] if self._last is not None else next(reversed(kernels), None)
        if kernel is not None and mode is self.mode:
            return kernel.text
        kind = tuple(node.type.shape for node in self.graph.inputs) if kernel is None else kernels[kernel]
        return planned(lean_graph(specialised(self.graph, kind), mode), mode, _identifier(self.name, mode), self._whole)[1]

    def _kind(self, values: Sequence[Any]) -> tuple[Axes, ...]:
        """The kind of the arguments: their dimensions, None for those that are not compiled in."""
        return tuple(
            self._fixed_axes(k, node.type.shape, np.shape(value)) if node.type.shape else ()
            for k, (node, value) in enumerate(zip(self.graph.inputs, values, strict=True))
        )

    def _fixed_axes(self, k: int, shape: Axes, lengths: tuple[int, ...]) -> Axes:
        axes: list[int | None] = []
        for axis, (known, dim) in enumerate(zip(shape, lengths, strict=True)):
            if known is not None and known != dim:
                name = self.graph.inputs[k].name or f"argument {k}"
                raise ValueError(f"{self.name}: {name} has length {dim} along axis {axis}, where {known} was declared")
            if known is None and dim == 1:  # must be known to broadcast
                known = None if (k, axis) in self._rows_alone else 1
            elif known is None and self.specialise and (k, axis) not in self._length_axes:
                known = self._fixed_lengths.fixed((k, axis), dim)
            axes.append(known)
        return tuple(axes)

    def _graph_for(self, kind: tuple[Axes, ...]) -> Graph:
        """The graph for one kind of argument: a dimension of 1 that it leaves open must be known to broadcast."""
        if kind not in self._graphs:
            self._graphs[kind] = specialised(self.graph, kind)
        return self._graphs[kind]

    def _interpreted(self, arguments: Sequence[Any], out: Sequence[Any] | None) -> list[Any]:
        graph = self._graph_for(self._kind(arguments))
        if self.mode.target == "debug":
            compiled = Mode(check_finite=self.mode.check_finite)
            results = debug_run(graph, arguments, lambda graph, name: Program(graph, compiled, name), self.name)
        else:
            results = _by_numpy(graph, self.mode, arguments)
        return _written(results, out or (), self.name)


class Kernel:
    """One compiled function: trace → … → plan → text → machine code."""

    def __init__(self, graph: Graph, mode: Mode, name: str, given: tuple[bool, ...]) -> None:
        started = perf_counter()
        self.graph, self.mode, self._given, self._backend = graph, mode, given, backend_of(mode)
        self._backend.require()
        lean = lean_graph(graph, mode)
        lean_at = perf_counter()
        self.plan, self.text = planned(lean, mode, name, given)
        self._error_texts = error_texts(self.plan.function)
        generated = perf_counter()
        self._constants = [np.require(array, requirements=("C", "A")) for array in self.plan.constants]
        self.function: Callable[..., Any] = self._loaded(name)
        self.seconds = {"rewrite": lean_at - started, "generate": generated - lean_at, "compile": perf_counter() - generated}
        self._dtypes = [np.dtype(node.type.dtype) for node in graph.outputs]
        self._is_single = len(self._dtypes) == 1
        self._has_numbers = not all(node.type.rank for node in graph.outputs)

    def _loaded(self, name: str) -> Callable[..., Any]:
        """The compiled function."""
        return self._backend.loaded(self.plan, self.text, name, self.mode.device) or self._by_numpy

    def memory(self, values: Sequence[Any]) -> Memory:
        """Bytes that a call with these values stores, and on a GPU what kernels take."""
        return self._backend.memory(self.plan, self.function, values, steps_run_again(self.graph, values), self.mode.device)

    def run(self, values: Sequence[Any], out: Sequence[Any] = ()) -> list[Any]:
        """The results. Unchecked: values have the dtypes, ranks and fixed dimensions of this kernel, and are C-contiguous and aligned."""
        try:
            results = self.function(*values, *out, *self._constants)
        except InterruptedError:
            raise cause() from None
        except Exception as error:
            explained = readable(error, self._error_texts)
            raise self._too_large(values, error) if explained is error and is_about_memory(error) else explained from None
        if self._is_single:
            return [results if isinstance(results, ARRAYS) else np.array(results, self._dtypes[0])]
        if self._has_numbers:
            return [
                value if isinstance(value, ARRAYS) else np.array(value, dtype) for value, dtype in zip(results, self._dtypes, strict=True)
            ]
        return [] if results is None else list(results)

    def _by_numpy(self, *arguments: Any) -> Any:
        """The results of the machine code, by NumPy. The text run as Python would give others: 1 / 0 raises, integers do not wrap."""
        values, arrays = arguments[: len(self.graph.inputs)], iter(arguments[len(self.graph.inputs) :])
        out = [next(arrays) if is_given else None for is_given in self._given]
        loop = None if _is_there(memory_of(self.plan.function, values).total) else _WithoutMemory
        results = _written(_by_numpy(self.graph, self.mode, values, loop), out, self.plan.function.name)
        return results[0] if self._is_single else results

    def _too_large(self, values: Sequence[Any], error: Exception) -> MemoryError:
        """The error for arrays for which there is no memory."""
        if text := self._backend.too_large(self.plan, values, error, self.mode.device):
            return MemoryError(text)
        size, steps = memory_of(self.plan.function, values).total, steps_of(self.plan.function, values)
        what = f"{self.plan.function.name}{at_line()}: there is no memory for its arrays" + (
            f", which take {size:,} bytes" if size > 0 else ""
        )
        return MemoryError(what + (f" in {steps:,} steps; a smaller n_steps, keep_last or save_every keep fewer rows" if steps > 0 else ""))


def lean_graph(graph: Graph, mode: Mode) -> Graph:
    """The graph as it is planned for a mode: rewritten."""
    without = (*mode.without, *MOVING) if mode.check_finite else mode.without
    if not backend_of(mode).machine.calls_routines:  # whole systems can be written out, solutions by factors cannot
        without = (*without, factor_once.__name__)
    return split_row_reads(rewritten(_plain(graph), without))


def planned(graph: Graph, mode: Mode, name: str, given: tuple[bool, ...]) -> tuple[Plan, str]:
    """The loops of a rewritten graph, and the text of a module with them."""
    backend = backend_of(mode)
    result = plan(graph, backend.machine, name, given, mode.check_finite, backend.reserved, beginnings(name), mode.without)
    return result, backend.text(result.function, mode)


def exported(graph: Graph, mode: Mode, name: str, interface: exporting.Interface) -> str:
    """A graph as the text of a module that stands alone. `interface` describes its arguments."""
    graph = specialised(graph, _known_axes(graph, interface.fixed))
    taken = (*backend_of(mode).reserved, *exporting.OF_MODULE)
    given = (False,) * len(graph.outputs)
    result = plan(lean_graph(graph, mode), CPU, name, given, mode.check_finite, taken, beginnings(name), mode.without)
    fastmath = FINITE_OR_NOT if mode.check_finite else "True"
    return exporting.module_text(result.function, result.constants, interface, fastmath * mode.fastmath)


def _known_axes(graph: Graph, values: Mapping[int, Any]) -> tuple[Axes, ...]:
    """The dimensions of the inputs. Those of known values are fixed if they are 1, or small and not the length of a sequence."""
    lengths = length_axes(graph)

    def axes(k: int, shape: Axes) -> Axes:
        seen = zip(shape, np.shape(values[k]), strict=True)
        small = [length == 1 or (length <= LARGEST_FIXED and (k, axis) not in lengths) for axis, length in enumerate(np.shape(values[k]))]
        return tuple(length if is_small else dim for (dim, length), is_small in zip(seen, small, strict=True))

    return tuple(axes(k, node.type.shape) if k in values else node.type.shape for k, node in enumerate(graph.inputs))


def _by_numpy(graph: Graph, mode: Mode, arguments: Sequence[Any], loop: type[LoopRun] | None = None) -> list[Any]:
    return finite_run(_plain(graph), arguments) if mode.check_finite else interpret(graph, arguments, loop=loop)


class _WithoutMemory(LoopRun):
    """A loop without memory for its rows: its arguments are checked, then its first step raises MemoryError."""

    def step(self, t: int) -> bool:
        raise MemoryError


def _is_there(size: int) -> bool:
    """True if there is memory for `size` bytes."""
    try:
        np.empty(size, "uint8")
    except (MemoryError, OverflowError, ValueError):
        return False
    return True


def _written(results: list[Any], out: Sequence[Any], name: str) -> list[Any]:
    """`results`, each written into its array in `out` where there is one."""
    for k, array in enumerate(out):
        if array is not None:
            if len(array) < len(results[k]):
                raise ValueError(f"scan {name!r}: out= has {len(array)} rows, the loop makes {len(results[k])}")
            array[: len(results[k])] = results[k]
            results[k] = array[: len(results[k])]
    return results


def _plain(graph: Graph) -> Graph:
    """The graph with loops without buffers of cotangents."""
    return Graph(graph.inputs, plain_graphs(graph.outputs))


def is_about_memory(error: Exception) -> bool:
    """True if an error says that there was no memory for an array."""
    return isinstance(error, MemoryError) or "array is too big" in str(error)


def readable(error: Exception, texts: Mapping[str, str]) -> Exception:
    """An error of a kernel as its user reads it: with the place in the code, and the numbers that were seen."""
    if is_of_numba(error):  # Numba compiles kernels of a GPU when they are launched
        return not_compiled("a kernel", error, ".source('cuda') shows the code")
    if not error.args or not isinstance(error.args[0], str):
        return error
    name, *_ = error.args[0].split(":", 1)
    if name not in texts:
        return error
    kind = ScanTypeError if ONE_SHAPE in texts[name] else type(error)
    return as_own(kind(texts[name].format(*error.args[1:])))


def key_of(values: Sequence[Any], rows: Sequence[Any] = ()) -> Any:
    """The key by which a kernel is found for arguments that it may take unconverted; None where one of them must be looked at more closely.

    Every table of kinds is looked up by this key, and kernels trust it. It holds the dtype (byte order included) and all dimensions of an
    array, and the class of a number. Only C-contiguous, aligned arrays have a key, and ints only where 64 bits hold them.

    `rows`: sequences of a loop, put before the values. Of their lengths the key says only whether they are 1: no kernel fixes others.
    """
    key: list[Any] = []
    for value in rows:
        if type(value) is not np.ndarray or value.flags.num & PLAIN != PLAIN:
            return None
        shape = value.shape
        if not shape:
            return None
        key.append(value.dtype)
        key.append(shape[0] == 1)
        key.append(shape[1:])
    kinds = tuple(map(type, values))
    if NUMBERS.issuperset(kinds):  # what the loop gives, in a third of the time
        return (*key, *kinds) if key else kinds
    for kind, value in zip(kinds, values, strict=True):
        if kind is np.ndarray:
            if value.flags.num & PLAIN != PLAIN:
                return None
            key.append(value.dtype)
            key.append(value.shape)
        elif kind in DTYPES or (kind is int and -(2**63) <= value < 2**63):
            key.append(kind)
        else:
            return None
    return tuple(key)


def laid_out(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values; an array that has no key because of its layout is copied into one that has."""
    return tuple(
        [np.array(value, order="C") if type(value) is np.ndarray and value.flags.num & PLAIN != PLAIN else value for value in values]
    )


def remember(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Puts a value into a table of bounded size."""
    if len(table) >= MOST_KEYS:
        table.clear()
    table[key] = value


def _converter(type_: TensorType) -> Callable[[Any], Any]:
    """The function that converts an argument into the form that a kernel takes: a number, or a C-contiguous aligned array."""
    dtype = np.dtype(type_.dtype)
    if not type_.rank:
        plain = {"float64": float, "int64": int, "bool": bool, "complex128": complex}.get(type_.dtype, dtype.type)
        return lambda value: value if type(value) is dtype.type else plain(value)

    def convert(value: Any) -> Any:
        if isinstance(value, DeviceArray):
            return value
        array = np.ascontiguousarray(value, dtype)
        return array if array.flags.aligned else array.copy()

    return convert


def specialised(graph: Graph, kind: tuple[Axes, ...]) -> Graph:
    """The graph with fixed dimensions put into its inputs' types, its inner types inferred again."""
    inputs = tuple(arg(k, node.type.with_shape(axes), node.name) for k, (node, axes) in enumerate(zip(graph.inputs, kind, strict=True)))
    return Graph(inputs, substitute(graph.outputs, dict(zip(graph.inputs, inputs, strict=True))))


def length_axes(graph: Graph) -> frozenset[tuple[int, int]]:
    """The (input, axis) pairs whose length is the length of a sequence: not compiled in, unless it is 1."""
    position = {node: k for k, node in enumerate(graph.inputs)}
    scans = [node for node in toposort(inlined(graph.outputs)) if node.op is SCAN]
    leaves = [leaf for node in scans for seq in loop_spec(node).seqs for leaf in _rows_behind(seq.outer)]
    return frozenset((position[leaf], 0) for leaf in leaves if leaf in position)


def rows_alone(graph: Graph) -> frozenset[tuple[int, int]]:
    """The (input, axis) pairs whose rows are read by loops alone, so that even a length of 1 need not be known."""
    users: dict[Node, list[Node]] = {}
    for node in toposort(inlined(graph.outputs)):
        for parent in dict.fromkeys(node.inputs):
            users.setdefault(parent, []).append(node)

    def rows_are_read(node: Node) -> bool:
        return all(user.op in (DIM, INDEX) or (user.op is SCAN and _is_sequence(node, user)) for user in users.get(node, ()))

    def slices(node: Node) -> list[Node]:
        return [user for user in users.get(node, ()) if user.op is INDEX]

    return frozenset(
        (k, axis) for k, axis in length_axes(graph) if folded(graph.inputs[k], slices, lambda node, rest: rows_are_read(node) and all(rest))
    )


def _is_sequence(node: Node, loop: Node) -> bool:
    """True if a loop reads a value only as a sequence."""
    return sum(parent is node for parent in loop.inputs) == sum(seq.outer is node for seq in loop_spec(loop).seqs)


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


def _identifier(name: str, mode: Mode) -> str:
    """`name` as a name for a function, chosen so that neither it nor a name made up from it is one that its text uses."""
    word = identifier(name, "scan")
    taken = backend_of(mode).reserved
    is_taken = word in {*taken, *OF_PYTHON} or any(name.startswith(beginnings(word)) for name in (word, *taken))
    return f"scan_{word}" if is_taken else word
