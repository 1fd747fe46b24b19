"""A chunk of cases as lanes of one loop, compiled once for any number of cases; and the search for cases that fail."""

from __future__ import annotations

import hashlib
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..backends import BACKENDS
from ..errors import CompilationError, CudaUnavailableError
from ..front.captures.twins import reads_little
from ..front.derivatives.of_functions import Transformed
from ..front.draw_scopes import steps_from
from ..front.specialisation import Types
from ..front.transforms import Compiled, Jitted, marked, mode_given_to
from ..front.tree import LEAF, Keys, Structure, flatten, flattened, n_leaves, unflatten
from ..front.variable import as_variable
from ..front.vmap import over_lanes
from ..modes import Mode
from ..types import TensorType
from .inputs import Cases, structure_text

MOST_KNOWN = 4  # functions whose code is held for the next batch
MOST_BYTES = 1 << 20  # of the arrays that such a function reads, which are held with it
FIRST = "numbascan_first_case"  # the argument that is the number of the first case
Failed = list[tuple[int, str]]
Piece = tuple[int, int, list[np.ndarray] | None]  # from, to, results; None: the case failed
Pieces = list[Piece]
OUR_OWN = (MemoryError, ImportError, CompilationError, CudaUnavailableError)  # errors of the batch, not of a case


class _Lanes(Transformed):
    """A function of one case, called on lanes that are the cases from number FIRST on: they draw as all cases at once would."""

    what = "ns.batch"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        first = kwargs.pop(FIRST)
        leaves, structure = flattened(marked(self.__wrapped__, args, kwargs))
        with steps_from(as_variable(first)):
            returned, results = over_lanes(self.__wrapped__, leaves, structure, self.options["axes"], self.__name__)
        return unflatten(returned, results)


def _with_first(structure: Structure) -> tuple[Structure, int]:
    """(the structure of arguments with the number of the first case among them, the place of that leaf)."""
    assert not isinstance(structure, str)
    args, named = structure[2]
    children = {**dict(zip(named[1], named[2], strict=True)), FIRST: LEAF}
    keys = Keys([*named[1].written, FIRST])
    place = n_leaves(args) + sum(n_leaves(children[key]) for key in keys[: keys.index(FIRST)])
    return (tuple, None, (args, (dict, keys, tuple(children[key] for key in keys)))), place


class CaseFailed(Exception):
    """A case failed; the error is its cause."""

    def __init__(self, case: int, error: Exception) -> None:
        super().__init__(case, error)
        self.case, self.error = case, error


_known: OrderedDict[tuple[Any, ...], tuple[Jitted, Compiled]] = OrderedDict()
_knowing = threading.Lock()


def _compiled(f: Callable[..., Any], axes: tuple[int | None, ...], structure: Structure, types_: Types, mode: Mode | None) -> Compiled:
    """The code for lanes of `f`: that of an earlier batch if what `f` reads is unchanged. The last few functions are held."""
    function: Jitted[..., Any] = Jitted(_Lanes(f, axes=list(axes)), mode)
    if not isinstance(f, types.FunctionType) or not reads_little(f):
        return function.compiled_as(structure, types_)
    key = f, axes, structure, types_, mode
    with _knowing:
        known = _known.get(key)
    if known is not None and known[1].is_current():
        return known[1]
    compiled = function.compiled_as(structure, types_)
    if compiled.guards is None or compiled.guards.bytes_watched() > MOST_BYTES:
        return compiled
    with _knowing:
        _known[key] = function, compiled  # the function too: its guards ask it
        _known.move_to_end(key)
        while len(_known) > MOST_KNOWN:
            _known.popitem(last=False)
    return compiled


class ChunkFunction:
    """The compiled function of a chunk. Results are lists of arrays, in the places of `structure`."""

    def __init__(self, f: Callable[..., Any], cases: Cases, mode: Mode | None) -> None:
        chosen = mode if mode is not None else mode_given_to(f)
        self._axes = [leaf.axis is not None for leaf in cases.leaves]
        structure, self._place = _with_first(cases.structure)
        types = [leaf.type for leaf in cases.leaves]
        types.insert(self._place, TensorType("int64"))
        self.compiled = _compiled(f, tuple([None if leaf.axis is None else 0 for leaf in cases.leaves]), structure, tuple(types), chosen)
        self.structure: Structure = self.compiled.traced.structure
        self.mode = self.compiled.runner.program.mode
        self.seen = self.compiled.runner.seen()
        self.dtypes = [np.dtype(node.type.dtype) for node in self.compiled.traced.outputs]
        if not self.dtypes:
            raise TypeError(f"ns.batch: {getattr(f, '__name__', 'f')} returns nothing; return an array, or a nest of arrays")
        self.trailing: list[tuple[int, ...]] | None = None  # shapes of the results of a case, once they are known

    def _arguments(self, first: int, values: Sequence[Any]) -> list[Any]:
        arguments = list(values)
        arguments.insert(self._place, np.int64(first))
        return arguments

    def prepare(self, values: Sequence[Any]) -> None:
        """Compiles; nothing runs."""
        self.compiled.prepare(self._arguments(0, values))

    def bytes_of(self, values: Sequence[Any]) -> int:
        """Bytes that a call stores; 0 in a mode that compiles nothing."""
        if self.mode.target not in BACKENDS:
            return 0
        self.prepare(values)
        return int(self.compiled.runner.program.memory().total)

    def run(self, first: int, values: Sequence[Any]) -> list[np.ndarray]:
        """The results of the cases from number `first` on."""
        results = flatten_arrays(self.compiled.replayed(self._arguments(first, values), self.seen))
        self.check(results)
        return results

    def check(self, results: Sequence[np.ndarray]) -> None:
        """ValueError where results have other shapes than those of earlier cases; the first ones set the shapes."""
        if not results or not len(results[0]):
            return
        shapes = [result.shape[1:] for result in results]
        if self.trailing is None:
            self.trailing = shapes
        if shapes != self.trailing:
            seen = ", ".join(f"{one} instead of {other}" for one, other in zip(shapes, self.trailing, strict=True) if one != other)
            raise ValueError(f"the results of cases have different shapes: {seen}; return results of one shape, as keep_last=1 does")

    def shapes(self, values: Sequence[Any]) -> list[tuple[int, ...]]:
        """The shapes of the results of a case: those seen, else those declared, else those of a run on `values`, arguments of no cases."""
        if self.trailing is not None:
            return self.trailing
        declared = self.declared()
        if declared is not None:
            return declared
        results = flatten_arrays(self.compiled.replayed(self._arguments(0, values), self.seen))
        return [result.shape[1:] for result in results]

    def declared(self) -> list[tuple[int, ...]] | None:
        """The shapes of the results of a case, where their types fix them; else None."""
        shapes = [node.type.shape[1:] for node in self.compiled.traced.outputs]
        return None if any(None in shape for shape in shapes) else [tuple(dim for dim in shape if dim is not None) for shape in shapes]

    def first_failure(self, first: int, values: Sequence[Any], count: int, error: Exception) -> CaseFailed:
        """The first case that fails, where the chunk has failed with `error`. By bisection."""
        low, high = 0, count  # before `low` all succeed; among those up to `high` one fails
        while high - low > 1:
            middle = (low + high) // 2
            failure = self._failure(first, self._part(values, low, middle), low)
            low, high, error = (middle, high, error) if failure is None else (low, middle, failure)
        alone = self._failure(first, self._part(values, low, high), low)
        return CaseFailed(first + low, alone or error)

    def _failure(self, first: int, values: Sequence[Any], low: int) -> Exception | None:
        try:
            self.run(first + low, values)
        except OUR_OWN:
            raise
        except Exception as error:
            return error
        return None

    def each(self, first: int, values: Sequence[Any], count: int, failed: Failed) -> Pieces:
        """Results of runs of cases, (from, to, arrays), by bisection; None for a case that failed, which is added to `failed`."""
        try:
            return [(0, count, self.run(first, values))]
        except OUR_OWN:
            raise
        except Exception as error:
            if count == 1:
                failed.append((first, words_of(error)))
                return [(0, 1, None)]
        middle = count // 2
        before = self.each(first, self._part(values, 0, middle), middle, failed)
        behind = self.each(first + middle, self._part(values, middle, count), count - middle, failed)
        return before + [(low + middle, high + middle, arrays) for low, high, arrays in behind]

    def _part(self, values: Sequence[Any], low: int, high: int) -> list[Any]:
        """The values of some of the cases of a chunk."""
        return [value[low:high] if is_swept else value for value, is_swept in zip(values, self._axes, strict=True)]

    def digest(self) -> str:
        """A digest of the program: its graph, target, fastmath, structure of results and check_finite."""
        text = f"{self.compiled.digest} {self.mode.target} {self.mode.fastmath} {structure_text(self.structure)}"
        if self.mode.check_finite:  # more cases fail then
            text += " check_finite"
        return hashlib.sha256(text.encode()).hexdigest()

    def outside(self) -> str:
        """A digest of the values of shared variables, and of arrays and numbers from outside."""
        total = hashlib.sha256()
        for value in (*self.compiled.arrays, *self.seen.values()):
            array = np.ascontiguousarray(value)
            total.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
        return total.hexdigest()


def words_of(error: Exception) -> str:
    """The text of the error of a case that ran alone, without its lane: that was lane 0, which says nothing."""
    return f"{type(error).__name__}: {error}".replace(", lane 0", "", 1)


def flatten_arrays(results: Any) -> list[np.ndarray]:
    """The arrays of a nest of results."""
    leaves: list[Any] = []
    flatten(results, leaves)
    return [np.asarray(leaf) for leaf in leaves]


def seconds_of(call: Callable[[], object]) -> float:
    """The time of a call, in seconds."""
    started = perf_counter()
    call()
    return perf_counter() - started
