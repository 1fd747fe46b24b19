"""`ns.function`: a graph of variables as a function of arrays."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np

from ..compile import DTYPES, key_of, laid_out, remember
from ..errors import MissingInputError, UnusedInputError
from ..ir.graph import Graph, close, free_inputs, substitute
from ..ir.node import CONSTANT, Node, constant, constant_value, new_input
from ..modes import Mode, as_mode
from ..ops.algebra import dims_of
from ..ops.dims import known_type
from ..ops.gradient_identities import behind
from ..ops.of_shape import of_shape
from ..tracebacks import entry, shorten, with_entries
from ..types import TensorType
from .conversion import fit
from .export import Exportable, export, njit_of
from .graph_mode import mode_of
from .notebook import as_html
from .runner import Runner, assembled
from .shared import SharedVariable, shared_of
from .tree import LEAF, Structure, flatten, flattened
from .variable import Variable, as_variable, number_as

Pairs = Mapping[Variable, Any] | Iterable[tuple[Variable, Any]] | None


@entry
def function(
    inputs: Sequence[Variable],
    outputs: Any = None,
    updates: Pairs = None,
    givens: Pairs = None,
    mode: Mode | str | None = None,
    name: str | None = None,
    on_unused_input: str | None = "raise",
    allow_input_downcast: bool | None = None,
    profile: bool | None = False,
    *,
    no_default_updates: bool | list[Any] = False,
    accept_inplace: bool = False,
    trust_input: bool = False,
) -> Function:
    """A function that takes arrays for `inputs` and gives the values of `outputs`.

    Arguments:
        inputs: variables, also intermediate ones: what is behind them is cut.
        outputs: a variable, or a list, tuple or dict of them; None for none.
        updates: new values for shared variables, all computed from the old ones, and stored together after a run without errors.
        givens: variables and what stands in for them, all replaced at once, with their lengths; equal expressions are one variable.
        mode: see ns.Mode.
        name: for messages and generated code.
        on_unused_input: "raise" (or None), "warn" or "ignore". What a cost uses counts as used by its derivatives.
        allow_input_downcast: numbers, 0-d arrays and lists are taken where the input's dtype holds them exactly, as 3.0 for an int32;
            None: Python's floats may be rounded, too; False: nothing else; True: any real value, arrays as well.
        profile: measure tracing, compiling and running.
        no_default_updates, accept_inplace, trust_input: taken as PyTensor takes them, and without effect: there are no updates but
            `updates`, no operation of a graph writes into its operands, and arguments are looked at in any case, which costs next to
            nothing.

    Returns a Function; its results are NumPy arrays, structured as `outputs`.

    Raises MissingInputError and UnusedInputError, TypeError for what cannot be an input, update or given, ValueError for duplicates.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x, y = nt.dvectors("x y")
    >>> f = ns.function([x, y], x * y)
    >>> f([1.0, 2.0], [3.0, 5.0])
    array([ 3., 10.])
    """
    label = name or "function"
    if isinstance(updates, (str, Mode)):
        raise TypeError(f"{label}: updates is {updates!r}; a mode is given by name: ns.function(inputs, outputs, mode={updates!r})")
    ins = _checked_inputs(inputs, label)
    leaves: list[Any] = []
    structure: Structure = (list, None, ()) if outputs is None else flatten(outputs, leaves)
    changes = list(_checked_updates(updates, label))
    nodes = [as_variable(leaf).node for leaf in leaves] + [node for _, node in changes]
    replaced = _checked_givens(givens, label)
    _check_used(ins, nodes, replaced, on_unused_input, label)
    nodes, ins = _with_givens(nodes, ins, replaced)
    shared = [variable for node in free_inputs(nodes, bound=ins) if (variable := shared_of(node)) is not None]
    graph = close([*ins, *(variable.node for variable in shared)], nodes, own_names=True)
    _check_given(graph, label)
    recipe = Recipe(
        name=label,
        graph=graph,
        labels=tuple(node.name for node in ins),
        shared=tuple(shared),
        targets=tuple(target for target, _ in changes),
        structure=structure,
        mode=mode_of(nodes, None if mode is None else as_mode(mode), label),
        downcast=allow_input_downcast,
        profile=bool(profile),
    )
    return Function(recipe)


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that a Function is made from.

    The graph's inputs are the arguments, then the shared variables; its outputs are the results, then the updates.
    """

    name: str
    graph: Graph
    labels: tuple[str | None, ...]
    shared: tuple[SharedVariable, ...]
    targets: tuple[SharedVariable, ...]
    structure: Structure
    mode: Mode
    downcast: bool | None
    profile: bool


@with_entries(but=("__call__",))
class Function:
    """A compiled function. Call it with one array or number per input, by position or by name."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.name, self.graph = recipe.name, recipe.graph
        self._runner = Runner(recipe.graph, recipe.mode, recipe.name, recipe.shared, recipe.targets, profile=recipe.profile)
        self._assembled = assembled(recipe.structure)
        types = [node.type for node in recipe.graph.inputs[: len(recipe.labels)]]
        self._known: dict[Any, None] = {}  # keys of arguments that need no conversion
        self._specs = [(np.dtype(type_.dtype), type_.rank, all(dim is None for dim in type_.shape), type_) for type_ in types]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            key = None if kwargs else key_of(args)
            if key is None and not kwargs:
                args = laid_out(args)
                key = key_of(args)
            if key is not None and key in self._known:
                results = self._runner.run(args, None, key)
            else:
                values = self._values(args, kwargs)
                if key is not None and all(map(operator.is_, args, values)):
                    remember(self._known, key, None)
                results = self._runner.run(values)
            return self._assembled(results)
        except Exception as error:
            shorten(error)
            raise

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments, checked and cast."""
        if kwargs or len(args) != len(self._specs):
            args = self._ordered(args, kwargs)
        return [
            value
            if (type(value) is np.ndarray and value.dtype is dtype and value.ndim == rank and free) or (not rank and _is_of(value, dtype))
            else self._fitted(k, value)
            for k, (value, (dtype, rank, free, _)) in enumerate(zip(args, self._specs, strict=True))
        ]

    def _fitted(self, k: int, value: Any) -> np.ndarray:
        return fit(value, self._specs[k][3], f"{self.name}: {self._label(k)}", self.recipe.downcast)

    def _label(self, k: int) -> str:
        name = self.recipe.labels[k]
        return f"argument {k} ({name})" if name else f"argument {k}"

    def _ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position. Raises TypeError unless there is exactly one for each input."""
        labels = self.recipe.labels
        if len(args) > len(labels):
            raise TypeError(f"{self.name} takes {len(labels)} arguments ({self._signature()}), but {len(args)} were given")
        values = dict(enumerate(args))
        for key, value in kwargs.items():
            places = [k for k, label in enumerate(labels) if label == key]
            places = places or [k for k, label in enumerate(labels) if label and normalize("NFKC", label) == key]  # as Python writes names
            if len(places) != 1:
                seen = "no input" if not places else f"{len(places)} inputs"
                raise TypeError(f"{self.name}: {seen} called {key!r}; the inputs are ({self._signature()})")
            if places[0] in values:
                raise TypeError(f"{self.name}: {self._label(places[0])} was given twice, by position and by name")
            values[places[0]] = value
        missing = [self._label(k) for k in range(len(labels)) if k not in values]
        if missing:
            raise TypeError(f"{self.name}: {', '.join(missing)} missing; the inputs are ({self._signature()})")
        return tuple(values[k] for k in range(len(labels)))

    def _signature(self) -> str:
        return ", ".join(f"{label or '_'}: {spec[3]}" for label, spec in zip(self.recipe.labels, self._specs, strict=True))

    def source(self, target: str = "cpu") -> str:
        """The generated code as text."""
        return self._runner.program.source(target)

    def memory(self) -> Any:
        """Bytes stored for results and work space."""
        return self._runner.program.memory()

    def lower(self, *args: Any, **kwargs: Any) -> Function:
        """Itself, compiled for arguments like these. Nothing runs."""
        self._runner.prepare(self._values(args, kwargs))
        return self

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Writes a Python module that needs NumPy and Numba alone; its function has the name and the inputs of this one, in their order.

        Shared variables are written in with their values of now. Beside the function for Python stands `name_njit`, as `.njit` gives it.

        Returns the path. Raises NotImplementedError, before anything is written, for updates of shared variables and for operations that
        need SciPy, LAPACK or a GPU; the guide's page on exporting lists them.
        """
        return export(self._exportable(), path)

    @property
    def njit(self) -> Any:
        """The function for code that Numba compiles: it takes arrays and numbers of the inputs' dtypes, and gives a result or a tuple.

        Shared variables have their values of now. Raises as `export`.

        >>> import numba, numpy as np, numbascan as ns, numbascan.tensor as nt
        >>> x, y = nt.dvectors("x y")
        >>> product = ns.function([x, y], x * y).njit
        >>> @numba.njit
        ... def total(x):
        ...     return product(x, x).sum()
        >>> total(np.array([1.0, 2.0, 3.0]))
        14.0
        """
        return njit_of(self._exportable())

    def _exportable(self) -> Exportable:
        labels = [label or f"argument_{k}" for k, label in enumerate(self.recipe.labels)]
        arguments = [(label, LEAF) for label in labels]
        return Exportable(self._runner, arguments, range(len(labels)), (), self.recipe.structure, False)

    @property
    def profile(self) -> Any:
        """Where the time went, with `profile=True`; None without."""
        return self._runner.program.profile

    def __reduce__(self) -> tuple[Any, ...]:
        return Function, (self.recipe,)

    def __repr__(self) -> str:
        n_updates = len(self.recipe.targets)
        updates = f", {n_updates} updates" if n_updates else ""
        return f"<function {self.name}({self._signature()}): {len(self.graph.outputs) - n_updates} results{updates}>"

    def _repr_html_(self) -> str:
        return as_html(self, None, [self._signature() or "no arguments"])


def _is_of(value: Any, dtype: np.dtype[Any]) -> bool:
    """True for a number that kernels take as one of `dtype`."""
    kind = type(value)
    return DTYPES.get(kind) == dtype.name or (kind is int and dtype.name == "int64" and -(2**63) <= value < 2**63)


# the arguments of `function` ------------------------------------------------------------------------------------------


def _checked_inputs(inputs: Sequence[Variable], label: str) -> list[Node]:
    if isinstance(inputs, Variable) or not isinstance(inputs, (list, tuple)):
        raise TypeError(f"{label}: inputs must be a list of variables, not {inputs!r}; write inputs=[x]")
    nodes: list[Node] = []
    for position, variable in enumerate(inputs):
        if not isinstance(variable, Variable):
            raise TypeError(
                f"{label}: input {position} is {variable!r} ({type(variable).__name__}), not a variable; make one with nt.scalar, …"
            )
        if variable.node.op is CONSTANT:
            raise TypeError(f"{label}: input {position} is a constant ({variable!r}); an input must be a variable such as nt.dscalar('x')")
        if shared_of(variable.node) is not None:
            raise TypeError(
                f"{label}: input {position} is the shared variable {variable!r}, which needs no argument; "
                "leave it out, or put a variable in its place with givens={shared: x}"
            )
        if variable.node in nodes:
            raise ValueError(f"{label}: input {position} ({variable!r}) is input {nodes.index(variable.node)} too; give each variable once")
        nodes.append(variable.node)
    return nodes


def _pairs(pairs: Pairs, label: str, what: str) -> list[tuple[Any, Any]]:
    """The pairs of a dict or of a list of pairs."""
    if pairs is None:
        return []
    listed = list(pairs.items()) if isinstance(pairs, Mapping) else list(pairs)
    for pair in listed:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{label}: {what} must be a dict or a list of pairs, but holds {pair!r}")
    return [(pair[0], pair[1]) for pair in listed]


def _checked_updates(updates: Pairs, label: str) -> Iterator[tuple[SharedVariable, Node]]:
    seen: set[Node] = set()
    for target, value in _pairs(updates, label, "updates"):
        shared = shared_of(target.node) if isinstance(target, Variable) else None
        if shared is None:
            raise TypeError(f"{label}: updates has {target!r} as a key, which is no shared variable; make one with ns.shared")
        if shared.node in seen:
            raise ValueError(f"{label}: updates gives {shared!r} two new values; give one")
        seen.add(shared.node)
        yield shared, _of_type(value, shared.type, f"{label}: the update of {shared.name or 'a shared variable'}")


def _checked_givens(givens: Pairs, label: str) -> dict[Node, Node]:
    replaced: dict[Node, Node] = {}
    for variable, value in _pairs(givens, label, "givens"):
        if not isinstance(variable, Variable):
            raise TypeError(f"{label}: givens has {variable!r} as a key, which is no variable")
        if variable.node in replaced:
            raise ValueError(f"{label}: givens replaces {variable!r} twice; give one replacement")
        replaced[variable.node] = _of_type(
            value, known_type(variable.node), f"{label}: what is given for {variable.name or repr(variable)}"
        )
    return replaced


def _of_type(value: Any, type_: TensorType, where: str) -> Node:
    """The node of a replacement. A variable must have the dtype and rank of what it replaces; a number or an array is made to fit.

    Fixed dimensions of what it replaces must be those of the replacement: if only the run can tell, the run checks.
    """
    if not isinstance(value, Variable):
        leaves, _ = flattened(value)
        if not any(isinstance(leaf, Variable) for leaf in leaves):
            return constant(fit(value, type_, where), type_.dtype, type_.weak)
    variable = as_variable(value)
    if variable.type.weak and not type_.weak:
        known = constant_value(variable.node)
        variable = number_as(variable, type_.dtype) if known is None else as_variable(fit(known.item(), type_, where))
    if (variable.type.dtype, variable.type.rank) != (type_.dtype, type_.rank):
        fix = (
            f".astype({type_.dtype!r})"
            if variable.type.rank == type_.rank
            else f", of rank {type_.rank}, as np.broadcast_to or .reshape gives"
        )
        raise TypeError(f"{where} is {variable.type}, but {type_} is needed; write value{fix}")
    dims = [mine if dim is None else dim for mine, dim in zip(dims_of(variable.node), type_.shape, strict=True)]
    return of_shape(variable.node, dims, where)


def _with_givens(nodes: Sequence[Node], inputs: Sequence[Node], givens: Mapping[Node, Node]) -> tuple[list[Node], list[Node]]:
    """`nodes` with the givens in place, and the inputs.

    An input that is computed in the graph becomes a fresh variable, with all fixed dimensions that are known of it: what is behind it is
    cut off.
    """
    fresh = {node: new_input(known_type(node), node.name) if node.inputs else node for node in inputs}
    return list(substitute(nodes, {**fresh, **givens})), list(fresh.values())


def _check_used(inputs: Sequence[Node], outputs: Sequence[Node], givens: Mapping[Node, Node], on_unused: str | None, label: str) -> None:
    """UnusedInputError, or a warning, for an input that is not used in the graph as the user made it, before any simplification.

    An input whose length was read counts as used: a fixed length is a plain number, and the graph does not show where it went.
    """
    if on_unused not in (None, "raise", "warn", "ignore"):
        raise ValueError(f"{label}: on_unused_input is {on_unused!r}; it must be 'raise' (or None), 'warn' or 'ignore'")
    if on_unused == "ignore":
        return
    seen = behind(outputs, stop=(*inputs, *givens))
    used = (seen - givens.keys()) | {node for node in behind(value for node, value in givens.items() if node in seen) if not node.inputs}
    for position, node in enumerate(inputs):
        if node in used or node.is_measured:
            continue
        unused = f"{label}: input {position} ({node.name or node}) plays no part in the outputs or updates"
        text = f"{unused}; leave it out, or set on_unused_input='ignore'"
        if on_unused != "warn":
            raise UnusedInputError(text)
        warnings.warn(text, UserWarning, stacklevel=4)


def _check_given(graph: Graph, label: str) -> None:
    """MissingInputError for a variable without a value. One whose fixed lengths alone are read needs none."""
    for node in free_inputs(graph.outputs):
        at = f" (made in {node.origin[0]}, line {node.origin[1]})" if node.origin else ""
        raise MissingInputError(
            f"{label}: the outputs need {node.name or 'a variable without a name'} ({node.type}){at}, "
            f"but it is neither an input nor shared; add it to inputs, or give it a value: givens={{{node.name or 'variable'}: value}}"
        )
