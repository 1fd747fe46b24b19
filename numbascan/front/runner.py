"""A compiled graph together with the shared variables that it reads and replaces."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ..compile import Program
from ..emit.runtime.device_array import DeviceArray
from ..ir.graph import Graph
from ..ir.loop_node import SCAN
from ..ir.node import Node, owner_of
from ..modes import Mode
from ..ops.card import Card
from ..ops.lowering import View
from .shared import Container, SeededContainer, SharedVariable, begin
from .tree import LEAF, Structure, unflatten

_VALUE = itertools.repeat("value")
Seen = dict[Container, np.ndarray]


class Runner:
    """Runs a graph whose inputs are the arguments, then `shared`, and whose outputs are the results, then the new values of `targets`.

    New values are stored together, and only after a run without errors. Results are arrays that nobody else holds.
    outputs: the dtype of each output of the graph, and whether its array must be copied.
    """

    def __init__(
        self,
        graph: Graph,
        mode: Mode,
        name: str,
        shared: Sequence[SharedVariable] = (),
        targets: Sequence[SharedVariable] = (),
        specialise: bool = True,
        profile: bool = False,
    ) -> None:
        self.program = Program(graph, mode, name, specialise, profile)
        self.shared, self.targets = tuple(shared), tuple(targets)
        self._shared = [variable.container for variable in shared]
        self._targets = [variable.container for variable in targets]
        self._locks = sorted({id(c): c for c in (*self._shared, *self._targets)}.values(), key=id)
        self._seeded = [container for container in self._shared if isinstance(container, SeededContainer)]
        copied = _aliases(graph) if mode.target == "numba" else [True] * len(graph.outputs)  # NumPy's results may be views
        self.outputs = [(np.dtype(node.type.dtype), copy) for node, copy in zip(graph.outputs, copied, strict=True)]
        self._n_results = len(graph.outputs) - len(self._targets)
        self._is_plain = not any(copied for _, copied in self.outputs)
        self._is_direct = self._is_plain and not self._locks

    def run(self, values: Sequence[Any], out: list[np.ndarray] | None = None, key: Any = None) -> list[np.ndarray]:
        """The results. values: one per argument, already checked. out: an array per result to write into. key: that of the values' kind."""
        if self._is_direct and out is None:
            return self.program.run(values, None, key)
        if not self._locks:
            return self._run(values, out, key)
        with _Held(self._locks):
            if self._seeded:
                begin(self._seeded)
            values = [*values, *(container.value for container in self._shared)]
            if self._targets:
                return self._run_updating(values, out)
        return self._run(values, out)

    def _run_updating(self, values: Sequence[Any], out: list[np.ndarray] | None) -> list[np.ndarray]:
        """The results, with the new values of `targets` stored."""
        results = self._run(values, out)
        deque(map(setattr, self._targets, _VALUE, results[self._n_results :]), maxlen=0)  # in C, so that no signal handler runs between two
        return results[: self._n_results]

    def seen(self) -> Seen:
        """Copies of the values of shared variables that a run starts from."""
        with _Held(self._locks):
            begin(self._seeded)
            return {container: container.value.copy() for container in self._shared}

    def recorded(self, values: Sequence[Any]) -> tuple[list[np.ndarray], Seen]:
        """The results of `run`, and copies of the values of shared variables that it started from."""
        with _Held(self._locks):
            seen = self.seen()
            return self._run_updating([*values, *seen.values()], None), seen

    def reading(self, shared: Sequence[SharedVariable], targets: Sequence[SharedVariable]) -> Runner | None:
        """The same code with other shared variables in the same places; None unless only states of seeded streams differ."""
        containers, others = [variable.container for variable in shared], [variable.container for variable in targets]
        if others != self._targets or not all(
            one is other or (isinstance(one, SeededContainer) and isinstance(other, SeededContainer))
            for one, other in zip(containers, self._shared, strict=True)
        ):
            return None
        if containers == self._shared:
            return self
        runner = copy(self)
        runner.shared, runner._shared = tuple(shared), containers
        runner._locks = sorted({id(c): c for c in (*containers, *others)}.values(), key=id)
        runner._seeded = [container for container in containers if isinstance(container, SeededContainer)]
        return runner

    def replayed(self, values: Sequence[Any], seen: Seen) -> list[np.ndarray]:
        """The results for earlier values of shared variables, `seen`. Nothing is stored."""
        return self._run([*values, *(seen.get(container, container.value) for container in self._shared)], None)[: self._n_results]

    def shared_values(self) -> list[np.ndarray]:
        """Copies of the values of shared variables, all from one moment."""
        with _Held(self._locks):
            return [container.value.copy() for container in self._shared]

    def prepare(self, values: list[Any]) -> None:
        """Compiles for arguments like these, without running."""
        self.program.lower(values + [container.value for container in self._shared])

    def _run(self, values: Sequence[Any], out: list[np.ndarray] | None, key: Any = None) -> list[np.ndarray]:
        if out is not None:
            return self._into(values, out)
        results = self.program.run(values, None, key)
        if self._is_plain:
            return results
        pairs = zip(results, self.outputs, strict=True)
        return [self._taken(k, value, dtype, copied) for k, (value, (dtype, copied)) in enumerate(pairs)]

    def _taken(self, k: int, value: Any, dtype: np.dtype[Any], copied: bool) -> Any:
        """Result `k` as an array of its own. Results stay on a GPU; new values of shared variables come to the host."""
        if type(value) is DeviceArray and k < self._n_results:
            return value
        return value if type(value) is np.ndarray and not copied else np.array(value, dtype)

    def _into(self, values: Sequence[Any], out: list[np.ndarray]) -> list[np.ndarray]:
        """Results in the caller's arrays: whole, or their first rows where a loop ended early."""
        values = [_apart(value, out) for value in values]
        raw = self.program(values, [array if array.ndim else None for array in out] + [None] * len(self._targets))
        for value, array in zip(raw, out, strict=False):
            if not array.ndim:
                array[()] = value
        written = [
            array if array.ndim == 0 or len(value) == len(array) else array[: len(value)] for value, array in zip(raw, out, strict=False)
        ]
        new = zip(raw[len(out) :], self.outputs[len(out) :], strict=True)
        return [*written, *(np.array(value, dtype) for value, (dtype, _) in new)]


def _apart(value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """`value`, copied if writing into `arrays` would change it while later steps still read it."""
    overlaps = isinstance(value, np.ndarray) and any(np.may_share_memory(value, array) for array in arrays)
    return value.copy() if overlaps else value


def as_captured(arrays: Mapping[Node, Any]) -> list[Any]:
    """Captured arrays in the one form that kernels take: native, C-contiguous, aligned, of the traced dtype and shape. Numbers stay.

    The key of a call covers its arguments alone, and an equal graph keeps the kernels of an earlier trace. So a captured array may have no
    other layout: it is copied here, once, if it has; otherwise its memory is shared.
    """
    return [_laid_out(node, array) if node.type.rank else _number(array) for node, array in arrays.items()]


def _laid_out(node: Node, array: np.ndarray) -> np.ndarray:
    plain = np.require(array, node.type.dtype, ("C", "A", "E")).view(np.ndarray)
    if plain.shape != node.type.shape:
        raise ValueError(
            f"{node.name or 'an array'}, which a function reads from outside, had the shape {node.type.shape} when it was traced, and has "
            f"{plain.shape} now; another thread must not change it meanwhile"
        )
    return plain


def _number(value: Any) -> Any:
    """A captured number in a form that kernels take without conversion."""
    number: Any = np.asarray(value)[()]
    return number.item() if isinstance(number, (np.float64, np.complex128, np.int64)) else number


def assembled(structure: Structure) -> Callable[[list[Any]], Any]:
    """The function that nests results. One array, a tuple and a list of arrays, which most are, have fast functions of their own."""
    if structure is LEAF:
        return operator.itemgetter(0)
    if not isinstance(structure, str) and structure[0] in (tuple, list) and all(child is LEAF for child in structure[2]):
        kind: type[Any] = structure[0]
        return kind
    return functools.partial(unflatten, structure)


class _Held:
    """Holds the locks of containers. Callers give these in one order, so that two functions never wait for each other."""

    __slots__ = ("containers",)

    def __init__(self, containers: Sequence[Container]) -> None:
        self.containers = containers

    def __enter__(self) -> None:
        held: list[Container] = []
        try:
            for container in self.containers:
                container.lock.acquire()
                held.append(container)
        except BaseException:  # Ctrl-C while waiting for another thread's run
            for container in held:
                container.lock.release()
            raise

    def __exit__(self, *exc: object) -> None:
        for container in self.containers:
            container.lock.release()


def _aliases(graph: Graph) -> list[bool]:
    """For each output, whether it must be copied, since its array may be that of an argument, a constant or an earlier output."""
    seen: set[Node] = set()
    result = []
    for node in graph.outputs:
        while isinstance(node.op, Card) and isinstance(node.op.lower, View):
            node = node.inputs[0]
        source = owner_of(node)[0]
        computed = source.op is SCAN or (isinstance(source.op, Card) and bool(source.inputs))
        result.append(not computed or node in seen)
        seen.add(node)
    return result
