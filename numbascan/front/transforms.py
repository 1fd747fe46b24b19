"""Functions of arrays, made from functions of arrays: `ns.jit`."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from ..compile import NUMBERS, key_of, laid_out, remember
from ..errors import TracerError
from ..ir.digest import digest_of
from ..ir.graph import Graph, close, free_inputs, substitute
from ..ir.node import Node, constant, new_input
from ..modes import Mode, as_mode
from ..progress import compiling
from ..tracebacks import entry, shorten, with_entries
from ..types import TensorType
from .captures.guards import Guards
from .captures.numbers import Numbers
from .converted.source import converted_text
from .draw_scopes import DrawGuards, call_draws
from .export import Exportable, export, njit_of
from .graph_mode import mode_of
from .labels import is_labelled, refuse_other_labels
from .methods import PerInstance, as_attribute, bound_to, is_function, method_behind
from .notebook import as_html
from .repeats import Meaning, repeatable
from .runner import Runner, Seen, as_captured, assembled
from .seeded import has_generators, has_seeds, opened, seeded
from .shared import SharedVariable, shared_of
from .specialisation import Specialisations, Types, prepared, quick_key, sequence_axes, small_type, without
from .statics import Statics, statics_of
from .tracing import (
    ITS_OWN,
    beside_threads,
    called,
    held,
    in_mode,
    is_tracing,
    keywords_in_order,
    name_in_module,
    parameter_names,
    refuse_changed,
    refuse_leaked,
    trace,
)
from .tree import Static, Structure, flatten, flattened, n_leaves, opened_lists, paths, unflatten
from .variable import Variable, as_variable
from .views import Assumption, asking_same

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


@overload
def jit(
    f: Callable[P, R],
    *,
    mode: Mode | str | None = None,
    name: str | None = None,
    profile: bool = False,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Jitted[P, R]: ...


@overload
def jit(
    f: None = None,
    *,
    mode: Mode | str | None = None,
    name: str | None = None,
    profile: bool = False,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


@entry
def jit(
    f: Callable[..., Any] | None = None,
    *,
    mode: Mode | str | None = None,
    name: str | None = None,
    profile: bool = False,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """`f` compiled: NumPy code, which may call scans, traced once per kind of argument.

    Arguments:
        f: a function of arrays, numbers, and nested tuples, lists and dicts of these. Without it the result is a decorator.
        mode: see ns.Mode.
        name: for messages and generated code; that of `f` if None.
        profile: measure tracing, compiling and running.
        static_argnums: numbers of arguments that `f` gets as they are: any Python objects that have a hash. Each value of another type, or
            that is not equal, compiles anew. Negative numbers count from the last parameter, that of a method's `self` is 0.
        static_argnames: names of such arguments. If numbers or names alone are given, the signature tells the others.

    Returns a Jitted, called like `f`; its results are NumPy arrays, structured as `f` returned them. Called on variables it is `f` itself.
    A dimension up to 16 is fixed in the code unless a scan runs over it or many values of it were seen.

    Raises TypeError for arguments that are neither arrays nor numbers, TracerError where `f` does with a traced value what the run alone
    could do, ValueError for numbers and names of no argument, and for static arguments without a hash.

    >>> import numbascan as ns, numpy as np
    >>> @ns.jit
    ... def norms(v):
    ...     return {"one": np.sum(np.abs(v)), "two": np.sqrt(np.sum(v * v))}
    >>> norms(np.array([3.0, -4.0]))
    {'one': array(7.), 'two': array(5.)}
    """
    if f is None:
        return lambda function: jit(
            function, mode=mode, name=name, profile=profile, static_argnums=static_argnums, static_argnames=static_argnames
        )
    if not is_function(f):
        raise TypeError(f"ns.jit needs a function, not {f!r}")
    chosen = None if mode is None else as_mode(mode)
    if static_argnums is None and static_argnames is None:
        return Jitted(f, chosen, name, profile)
    return StaticJitted(f, chosen, name, profile, statics_of(f, static_argnums, static_argnames, f"ns.jit({getattr(f, '__name__', 'f')})"))


Same = tuple[int, ...]
Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Traced:
    """A function as a graph for one kind of argument. The graph's inputs: arguments, arrays from outside, shared variables."""

    inputs: tuple[Node, ...]
    arrays: dict[Node, np.ndarray]
    shared: tuple[SharedVariable, ...]
    outputs: tuple[Node, ...]
    written: dict[int, Node]  # the new content of arguments that the function writes into, by the number of the leaf
    same: Same  # for each argument, the first argument that is the same array
    asks_same: bool  # whether it asks which arguments are one array
    arrays_0d: Places  # arguments that are arrays of rank 0
    assumed: dict[int, bool]  # arguments assumed to be in C order (True), or to be numbers rather than arrays of rank 0 (False)
    updates: dict[SharedVariable, Node]  # the new states of the random streams that it draws from
    structure: Structure
    guards: Guards | None
    numbers: Numbers | None
    is_symbolic: bool  # it uses variables without a value here, or draws within another trace

    def meaning(self) -> Meaning:
        """The part of the trace that a call can observe, for comparison with another trace."""
        outputs = [*self.outputs, *self.written.values(), *self.updates.values()]
        return Meaning(self.inputs, outputs, self.arrays, (self.structure, [*self.written], [*map(id, self.updates)]))


_NOT_KNOWN: tuple[Any, bool] = (None, False)
_ARE_NUMBERS = {*NUMBERS, int}  # if all arguments are of these classes, there are no arrays to check


class Compiled:
    """The code for one kind of argument."""

    def __init__(self, traced: Traced, mode: Mode, name: str, profile: bool) -> None:
        nodes = [*traced.inputs, *traced.arrays, *(variable.node for variable in traced.shared)]
        self.graph = close(nodes, [*traced.outputs, *traced.written.values(), *traced.updates.values()], own_names=True)
        self.runner = Runner(self.graph, mode, name, traced.shared, tuple(traced.updates), specialise=False, profile=profile)
        self.traced, self.arrays, self.guards = traced, as_captured(traced.arrays), traced.guards
        self._assembled = assembled(traced.structure)
        self.is_checked = bool(traced.written or traced.assumed or traced.asks_same)  # a call must look at the arguments as given

    def run(self, values: Sequence[Any], key: Any = None) -> Any:
        """The results. key: that of the values' kind, if known."""
        return self._assembled(self.runner.run([*values, *self.arrays] if self.arrays else values, None, key))

    def run_writing(self, values: Sequence[Any], given: Sequence[Any], name: str) -> Any:
        """The results. What the function writes into arguments is stored in these, as they were given."""
        check_assumed(self.traced, given, name)
        check_writable(self.traced, given, self.arrays, name)
        results = self.runner.run([*values, *self.arrays])
        n_results = len(self.traced.outputs)
        for k, value in zip(self.traced.written, results[n_results:], strict=True):
            given[k][...] = value
        return self._assembled(results[:n_results])

    def refuse_writes(self, why: str) -> None:
        """ValueError if the function writes into an argument."""
        if self.traced.written:
            names = ", ".join(str(self.traced.inputs[k].name) for k in self.traced.written)
            raise ValueError(f"the function writes into its argument {names}: {why}; copy it first, as {names}.copy()")

    def recorded(self, structure: Structure, values: Sequence[Any]) -> tuple[Any, Run]:
        """The results, and the Run that they come from."""
        self.refuse_writes("what it is the derivative of must stay as it was")
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in values]
        arrays = {node: copy(array) for node, array in zip(self.traced.arrays, self.arrays, strict=True)}
        results, seen = self.runner.recorded([*copies, *arrays.values()])
        return self._assembled(results), Run(self, structure, copies, arrays, seen)

    def replayed(self, values: Sequence[Any], seen: Seen) -> Any:
        """The results for earlier values of shared variables, `seen`. Nothing is stored."""
        self.refuse_writes("what it is the derivative of must stay as it was")
        return self._assembled(self.runner.replayed([*values, *self.arrays], seen))

    def prepare(self, values: list[Any]) -> None:
        """Compiles without running."""
        self.runner.prepare(values + self.arrays)

    def take_over(self, before: Compiled) -> bool:
        """Takes over the code of an earlier trace if both led to the same graph; whether it did."""
        runner = None
        if self.graph == before.graph and len(self.traced.shared) == len(before.traced.shared):
            runner = before.runner.reading(self.traced.shared, tuple(self.traced.updates))
        self.runner = runner or self.runner
        return runner is not None

    @functools.cached_property
    def digest(self) -> str:
        """A text that identifies the graph, the same in every process."""
        return digest_of(self.graph)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its trace without guards: compiled again on unpickling, with the captured values."""
        program = self.runner.program
        return Compiled, (replace(self.traced, guards=None, numbers=None), program.mode, program.name, program.profile is not None)

    def is_current(self) -> bool:
        """Whether what the function read from outside has not changed since the trace."""
        return self.guards is None or self.guards.hold()


@dataclass(frozen=True, slots=True)
class Run:
    """A call that has run: the code, the structure of the arguments, and copies of all that it saw.

    values: the leaves of the arguments. arrays: the captured ones. seen: the values of shared variables.
    """

    compiled: Compiled
    structure: Structure
    values: list[Any]
    arrays: dict[Node, np.ndarray]
    seen: Seen


def same_arrays(given: Sequence[Any]) -> Same:
    """For each argument, the number of the first one that is the same array: with the same memory, shape, strides and dtype."""
    places = [_place(value) if isinstance(value, np.ndarray) and value.ndim else k for k, value in enumerate(given)]
    return tuple([places.index(place) for place in places])


def _place(array: np.ndarray) -> Any:
    memory = array.__array_interface__
    return memory["data"], memory["shape"], array.strides, memory["typestr"]


def check_assumed(traced: Traced, given: Sequence[Any], name: str) -> None:
    """ValueError if an argument is not what the trace assumes of it."""
    for k, is_order in traced.assumed.items():
        array, label = given[k], f"{name}: argument {traced.inputs[k].name}"
        if not isinstance(array, np.ndarray):
            continue
        if is_order and not array.flags.c_contiguous:
            raise ValueError(
                f"{label} does not lie in C order, and the function writes into what reshape, ravel or a function of the same order gives "
                "of it, which is a view of such an array alone; pass np.ascontiguousarray(x), or copy it in the function first"
            )
        if not is_order and not array.ndim:
            raise ValueError(f"{label} is an array of rank 0, which x += y writes into, as it does not into a number; pass x[()]")


def check_writable(traced: Traced, given: Sequence[Any], captured: Sequence[Any], name: str) -> None:
    """ValueError or TypeError unless each argument written is a writable array of the traced dtype that shares no memory with another."""
    for k in traced.written:
        label = f"{name}: argument {traced.inputs[k].name}"
        array = given[k]
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"{label} is written into, and is a {type(array).__name__}; pass a NumPy array, or copy it in the function first"
            )
        if not array.flags.writeable:
            raise ValueError(f"{label}: assignment destination is read-only; copy it first")
        if array.dtype.newbyteorder("=") != np.dtype(traced.inputs[k].type.dtype):
            raise TypeError(
                f"{label} is written into, and has dtype {array.dtype}, which is not computed with; pass {traced.inputs[k].type.dtype}"
            )
        others = [other for j, other in enumerate(given) if traced.same[j] != k] + list(captured)
        if any(isinstance(other, np.ndarray) and np.may_share_memory(array, other) for other in others):
            raise ValueError(f"{label} is written into, and shares memory with another array that the function reads; pass a copy of one")


Tables = tuple[Specialisations[Compiled], dict[Any, tuple[Compiled, bool]]]


def _tables() -> Tables:
    """Empty tables: compiled kinds, and code by the keys of `key_of`, for plain arguments that need no conversion."""
    return Specialisations(), {}


@with_entries(but=("__call__",))
class Jitted(Generic[P, R]):
    """A function of arrays, compiled once per kind of argument. `__wrapped__` is the function itself."""

    def __init__(self, f: Callable[..., Any], mode: Mode | None, name: str | None = None, profile: bool = False) -> None:
        functools.update_wrapper(self, f, updated=())  # attributes of `f` would hide methods of the same name
        self.mode, self.given_mode, self._profile = mode or Mode(), mode, profile
        self.name = name or str(getattr(f, "__name__", "function"))
        self.__wrapped__ = f
        self._methods: PerInstance[Tables] = PerInstance(_tables)
        self._use(_tables())

    @property
    def _home(self) -> Any:
        """The owner of the arguments while tracing. A function may write into its arguments, a transform of it may not."""
        what = getattr(self.__wrapped__, "what", None)
        return ITS_OWN if what is None else f"an argument of {what}({self.name})"

    def _use(self, tables: Tables) -> None:
        """Makes these the tables in which compiled code is looked up and stored."""
        self._kinds, self._known = tables

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type | None = None) -> Jitted[Q, R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The bound method, compiled. Each instance has its own compiled code, freed with the instance."""
        f = bound_to(self.__wrapped__, instance, owner)
        holder = None if f is self.__wrapped__ else method_behind(f)
        if holder is None:
            return self
        method = object.__new__(type(self))
        vars(method).update(vars(self), __wrapped__=f)
        method._use(self._methods.of(holder.__self__))
        return method

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            values: tuple[Any, ...] = args
            key = None if kwargs else key_of(values)
            if key is None and not kwargs:
                values = laid_out(values)
                key = key_of(values)
            known, is_checked = self._known.get(key, _NOT_KNOWN)
            if known is not None and (known.guards is None or known.guards.hold()):
                self._kinds.latest = known
                return self._checked(known, values, args, kwargs) if is_checked else known.run(values, key)
            return self._called(values, kwargs, key, args)
        except Exception as error:
            shorten(error)
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any, given: tuple[Any, ...]) -> Any:
        """The long way, for arguments of a new kind and those that must be converted."""
        leaves, structure = flattened((args, kwargs))
        if any(isinstance(leaf, Variable) for leaf in leaves):
            return self._inlined(args, kwargs)
        if has_generators(leaves):
            if is_tracing():
                return self._inlined(args, kwargs)
            leaves, structure = seeded(leaves, structure)
        values, compiled = self._find(structure, leaves)
        if compiled is None:
            return self._inlined(args, kwargs)
        if key is not None and all(map(operator.is_, args, values)):
            remember(self._known, key, (compiled, compiled.is_checked and not _ARE_NUMBERS.issuperset(key)))
        if compiled.is_checked:
            return self._checked(compiled, values, given, kwargs)
        return compiled.run(values, key)

    def _checked(self, compiled: Compiled, values: Sequence[Any], given: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a function that writes into its arguments, or assumes something of them.

        If an array was given twice, or an array of rank 0 in place of a number, it runs a form that was traced so.
        """
        leaves, structure = flattened((given, kwargs))
        while True:
            traced = compiled.traced
            same = same_arrays(leaves) if traced.written or traced.asks_same else traced.same
            numbers = {k for k, is_order in traced.assumed.items() if not is_order}
            arrays_0d = tuple(
                sorted({*traced.arrays_0d, *(k for k in numbers if isinstance(leaves[k], np.ndarray) and not leaves[k].ndim)})
            )
            if (same, arrays_0d) == (traced.same, traced.arrays_0d):
                return compiled.run_writing(values, leaves, self.name)
            key = structure, same, arrays_0d, tuple([quick_key(value) for value in values])
            build = functools.partial(self._build, structure, same=same, arrays_0d=arrays_0d)
            found = self._kinds.get(key) or self._added(key, (structure, same, arrays_0d), structure, values, build)
            assert found is not None  # it is no more symbolic than the other form
            compiled = found  # it may assume more of its arguments: check again

    def _inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of the function itself, called on variables."""
        return called(self.__wrapped__, args, kwargs, is_inlined=True)

    def recorded(self, *args: Any) -> tuple[Any, Run] | None:
        """The results of a call, and the Run that they come from; None if they have no value here."""
        values, compiled = self._kind_of(args)
        if compiled is None:
            return None
        check_assumed(compiled.traced, flattened((args, {}))[0], self.name)
        return compiled.recorded(flatten((args, {}), []), values)

    def replayed(self, seen: Seen, *args: Any) -> Any:
        """The results of a call for earlier values of shared variables, and so with the same draws. Nothing is stored."""
        values, compiled = self._kind_of(args)
        if compiled is not None:
            return compiled.replayed(values, seen)
        leaves: list[Any] = []
        with call_draws() as draws:
            structure = flatten(self._inlined(args, {}), leaves)
        states = [stream.state for stream in draws.next if not stream.is_local]
        known = {state.node: constant(seen[state.container]) for state in states if state.container in seen}
        return unflatten(structure, map(Variable, substitute([as_variable(leaf).node for leaf in leaves], known)))

    def _kind_of(self, args: Sequence[Any]) -> tuple[list[Any], Compiled | None]:
        leaves, structure = flattened((args, {}))
        if any(isinstance(leaf, Variable) for leaf in leaves):
            return [], None
        if has_generators(leaves):
            if is_tracing():
                return [], None
            leaves, structure = seeded(leaves, structure)
        return self._find(structure, leaves)

    def _find(self, structure: Structure, leaves: list[Any]) -> tuple[list[Any], Compiled | None]:
        """The arguments as compiled code takes them, and the code; None if the function uses variables without a value."""
        values = [self._prepared(k, value, structure) for k, value in enumerate(leaves)]
        if any(map(operator.is_not, values, leaves)) and any(map(is_labelled, leaves)):
            refuse_other_labels([f"{self.name}: {name}" for name in self._names(structure)], leaves)
        key = structure, tuple([quick_key(value) for value in values])
        compiled = self._kinds.get(key)
        if compiled is None:
            compiled = self._added(key, structure, structure, values, functools.partial(self._build, structure))
        return values, compiled

    def _added(self, key: Any, kind: Any, structure: Structure, values: Sequence[Any], build: Callable[..., Any]) -> Compiled | None:
        """The code for arguments of a new kind."""
        label = "" if self.mode.target == "python" else self.name
        return self._kinds.add(key, kind, tuple(map(small_type, values)), build, functools.partial(self._names, structure), label)

    def _prepared(self, k: int, value: Any, structure: Structure) -> Any:
        if type(value) is float:
            return value
        try:
            return prepared(value, "")
        except (TypeError, ValueError, OverflowError):
            return prepared(value, f"{self.name}: argument {self._names(structure)[k]}")  # raises again, with the name

    def _names(self, structure: Structure) -> list[str]:
        """A name for each leaf of the arguments: the parameter's, then keys and positions."""
        return [path for root, child in self._parameters(structure) for path in paths(child, root)]

    def _parameters(self, structure: Structure) -> list[tuple[str, Structure]]:
        """Name and structure of each argument."""
        assert not isinstance(structure, str)  # of (args, kwargs)
        positional, keyword = structure[2]
        roots = parameter_names(self.__wrapped__, len(positional[2]))
        return [*zip(roots, positional[2], strict=True), *zip(keyword[1], keyword[2], strict=True)]

    def _build(
        self,
        structure: Structure,
        types: Types,
        may_open: bool,
        before: Compiled | None,
        same: Same | None = None,
        arrays_0d: Places = (),
    ) -> tuple[Compiled | None, Types]:
        """The code for arguments of these types, and the types traced with; None if the function uses variables without a value."""
        start = perf_counter()
        numbers = None if before is None else before.traced.numbers
        with compiling(self.name):
            traced = self._trace(structure, types, numbers, same, arrays_0d)
            if may_open:
                traced, types = self._opened(structure, traced, types, numbers)
        seconds = perf_counter() - start
        compiled = None if traced.is_symbolic else self.compiled(traced, self.name)
        if compiled is not None and before is not None and not compiled.take_over(before):
            self._kinds.note_fixed(before.guards, self.name)
        if compiled is not None and compiled.runner.program.profile is not None:
            compiled.runner.program.profile.trace += seconds
        return compiled, types

    def compiled(self, traced: Traced, name: str) -> Compiled:
        """The code for a graph, in the mode of this function."""
        mode = mode_of([*traced.outputs, *traced.updates.values()], self.given_mode, name)
        return Compiled(traced, mode, name, self._profile)

    def compiled_as(self, structure: Structure, types: Types) -> Compiled:
        """The code for exactly these types, apart from the kinds that calls compile. TypeError if variables have no value."""
        traced = self._trace(structure, types)
        if traced.is_symbolic:
            raise TypeError(f"{self.name} uses variables without a value, so there is nothing to compile; use ns.function")
        return self.compiled(traced, self.name)

    def _opened(self, structure: Structure, traced: Traced, types: Types, numbers: Numbers | None) -> tuple[Traced, Types]:
        """The trace and its types, with the dimensions that scans run over left open, if the function can be traced so."""
        axes = sequence_axes(traced.inputs, traced.outputs)
        if not axes:
            return traced, types
        opened = without(types, axes)
        try:
            again = self._trace(structure, opened, numbers, traced.same, traced.arrays_0d)
        except TracerError:
            return traced, types
        self._kinds.leave_open(structure, types, axes)
        return again, opened

    def _trace(
        self,
        structure: Structure,
        types: Sequence[TensorType],
        numbers: Numbers | None = None,
        same: Same | None = None,
        arrays_0d: Places = (),
    ) -> Traced:
        apart = tuple(range(len(types)))

        def make() -> tuple[Traced, Callable[[], Meaning]]:
            traced = self._trace_once(structure, types, numbers, apart if same is None else same, arrays_0d)
            return traced, traced.meaning

        return beside_threads(lambda: repeatable(self.__wrapped__, make))

    def _trace_once(
        self, structure: Structure, types: Sequence[TensorType], numbers: Numbers | None, same: Same, arrays_0d: Places
    ) -> Traced:
        names = self._names(structure)
        inputs = tuple(new_input(type_, name) for type_, name in zip(types, names, strict=True))
        variables = [Variable(node) for node in inputs]
        variables = [variables[first] for first in same]
        for k, variable in enumerate(variables):
            variable.home = self._home
            if variable.ndim:
                variable.is_c = Assumption()
            elif k in arrays_0d:
                variable.is_0d = True
            elif not variable.type.weak:
                variable.is_0d = Assumption()
        facts = [variable.is_c if variable.ndim else variable.is_0d for variable in variables]
        args, kwargs = opened(structure, variables)
        nests = [*args, *(kwargs[name] for name in sorted(kwargs))]
        before = held(nests)
        with in_mode(self.mode), call_draws() as draws, asking_same() as asked:
            result = trace(self.__wrapped__, args, kwargs, bind=True, placeholders=inputs, before=numbers)
        if self._home is ITS_OWN:
            refuse_changed(self.name, [name for name, _ in self._parameters(structure)], nests, before)
        leaves, returned = opened_lists(*flattened(result.value))
        outputs = tuple(as_variable(leaf).node for leaf in leaves)
        written = {k: variables[k].node for k, node in enumerate(inputs) if same[k] == k and variables[k].node is not node}
        assumed = {
            k: bool(variable.ndim)
            for k, (variable, fact) in enumerate(zip(variables, facts, strict=True))
            if isinstance(fact, Assumption) and fact.is_used
        }
        updates = {state: value.node for state, value in draws.updates().items()}
        free = free_inputs([*outputs, *written.values(), *updates.values()], bound=(*inputs, *result.arrays))
        refuse_leaked(free, self.name)
        shared = [variable for variable in map(shared_of, free) if variable is not None]
        guards = DrawGuards(result.guards) if draws.next and result.guards is not None else result.guards
        is_symbolic = draws.is_part or len(shared) < len(free)
        return Traced(
            inputs,
            result.arrays,
            tuple(shared),
            outputs,
            written,
            same,
            bool(asked),
            arrays_0d,
            assumed,
            updates,
            returned,
            guards,
            result.numbers,
            is_symbolic,
        )

    # what was compiled ----------------------------------------------------------------------------------------------

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Self:
        """Itself, traced and compiled for arguments like these."""
        leaves, structure = flattened((args, kwargs))
        if has_generators(leaves):
            leaves, structure = seeded(leaves, structure, is_drawn=False)
        values, compiled = self._find(structure, leaves)
        if compiled is None:
            raise TypeError(f"{self.name} uses variables without a value, so there is nothing to compile; use ns.function")
        compiled.prepare(values)
        self._kinds.lowered = compiled
        return self

    def _of_latest(self) -> Compiled:
        if self._kinds.latest is None:
            raise ValueError(f"{self.name} has not been compiled yet; call it, or {self.name}.lower(...), with arguments first")
        return self._kinds.latest

    @property
    def graph(self) -> Graph:
        """The graph of the latest kind of argument."""
        return self._of_latest().graph

    def source(self, target: str = "cpu") -> str:
        """The generated code for the latest kind of argument; of target 'python' what the function became (`front/converted`)."""
        return converted_text(self.__wrapped__) if target == "python" else self._of_latest().runner.program.source(target)

    def memory(self) -> Any:
        """Bytes stored for results and work space, for the latest kind of argument."""
        return self._of_latest().runner.program.memory()

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Writes a Python module that needs NumPy and Numba alone, with this function for one kind of argument.

        The kind is that given to `lower` last, or the only one seen. What the function reads from outside, and the states of the streams
        that it draws from, are written in as they are now. Beside the function for Python stands `name_njit`, as `.njit` gives it.

        Returns the path. Raises ValueError where there is no kind, or one of several; NotImplementedError, before anything is written, for
        static arguments and for operations that need SciPy, LAPACK or a GPU.
        """
        return export(self._exportable(), path)

    @property
    def njit(self) -> Any:
        """The function for code that Numba compiles, for one kind of argument as `export` takes it.

        It takes the arrays and numbers of all arguments, nests leaf by leaf, and gives a result or a tuple of results. Raises as `export`.

        >>> import numba, numbascan as ns, numpy as np
        >>> slope = ns.grad(lambda x: np.sum(x**3)).lower(np.ones(20)).njit
        >>> @numba.njit
        ... def descent(x):
        ...     return x - 0.1 * slope(x)
        >>> descent(np.ones(20))[:2]
        array([0.7, 0.7])
        """
        return njit_of(self._exportable())

    def _exportable(self) -> Exportable:
        structure, compiled = self._kinds.to_export(self.name)
        compiled.refuse_writes("an exported function gives results alone")
        if has_seeds(structure):
            raise NotImplementedError(
                f"{self.name} draws from one of NumPy's generators, which an exported function cannot take; give it the numbers"
            )
        assert not isinstance(structure, str)  # of (args, kwargs)
        positional, keyword = structure[2]
        n_positional, leaf = len(positional[2]), iter(range(len(compiled.traced.inputs)))
        arguments = [(name, child, [next(leaf) for _ in range(n_leaves(child))]) for name, child in self._parameters(structure)]
        named = dict(zip(keyword[1], arguments[n_positional:], strict=True))
        in_place, by_name = keywords_in_order(self.__wrapped__, n_positional, keyword[1].written, self.name)
        called = [*arguments[:n_positional], *(named[name] for name in (*in_place, *by_name))]
        parameters, order = [(name, child) for name, child, _ in called], [k for _, _, leaves in called for k in leaves]
        return Exportable(compiled.runner, parameters, order, compiled.arrays, compiled.traced.structure, True, len(by_name))

    @property
    def profile(self) -> Any:
        """Where the time went for the latest kind of argument, with `profile=True`; None without."""
        return self._of_latest().runner.program.profile

    def __reduce__(self) -> Any:
        # a decorated function is found by its name; the function behind it is not
        return as_attribute(self) or name_in_module(self) or (Jitted, (self.__wrapped__, self.given_mode, self.name, self._profile))

    def __repr__(self) -> str:
        return f"<jit {self.name}: {len(self._kinds)} kinds of arguments>"

    def _repr_html_(self) -> str:
        return as_html(self, self.__wrapped__, self._kinds.described())


@with_entries(("__call__",))
class StaticJitted(Jitted[P, R]):
    """A function of arrays with static arguments. These are part of the arguments' structure, so that each value is a kind of its own."""

    def __init__(self, f: Callable[..., Any], mode: Mode | None, name: str | None, profile: bool, statics: Statics) -> None:
        super().__init__(f, mode, name, profile)
        self.statics = statics

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        method = super().__get__(instance, owner)
        if method is not self and isinstance(method, StaticJitted):
            method.statics = self.statics.behind_self()
        return method

    def marked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, static ones as parts of the structure."""
        return self.statics.marked(args, kwargs, self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        places, names = self.marked(args, kwargs)
        return super().__call__(*places, **names)

    def _inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.__wrapped__(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def recorded(self, *args: Any) -> tuple[Any, Run] | None:
        return super().recorded(*self.marked(args, {})[0])

    def replayed(self, seen: Seen, *args: Any) -> Any:
        return super().replayed(seen, *self.marked(args, {})[0])

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Self:
        places, names = self.marked(args, kwargs)
        return super().lower(*places, **names)

    def __reduce__(self) -> Any:
        known = super().__reduce__()
        own = self.__wrapped__, self.given_mode, self.name, self._profile, self.statics
        return (StaticJitted, own) if isinstance(known, tuple) and known[0] is Jitted else known


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Static) else value


def mode_given_to(f: Any) -> Mode | None:
    """The mode given to a jitted function, also within `functools.partial`; None if none was given, or it is not jitted."""
    while isinstance(f, functools.partial):
        f = f.func
    return f.given_mode if isinstance(f, Jitted) else None


def marked(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call of `f`, its static ones as parts of the structure."""
    return f.marked(args, kwargs) if isinstance(f, StaticJitted) else (args, kwargs)
