"""Compiled objects as modules that stand alone, and as functions that other code compiled by Numba calls.

Both come from one text (`emit/export/module.py`). `export` writes the module where the user says; `njit_of` keeps it beside the generated
code and takes its function `name_njit`. What the function reads from outside is written in as it is now: arrays, numbers, shared variables,
states of streams.
"""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..compile import exported
from ..emit.cache import jit_is_off, load_module
from ..emit.export.module import Interface, Parameter
from ..ir.graph import Graph
from ..ir.names import parameter_name
from .runner import Runner
from .shared import STATES, SeededContainer
from .tree import LEAF, NONE, ListOf, Static, Structure, is_record, n_leaves

OF_KINDS = "; for other lengths export what {name}.lower(…) gives for them"
DECLARED = ", as it was declared"


@dataclass(frozen=True)
class Exportable:
    """A compiled graph, and how it is called.

    parameters: name and structure of each argument, in the order of the call. order: the graph's input for each of their leaves.
    arrays: the values of the inputs after those. returned: the structure of the results. is_kind: compiled for one kind of arguments, so
    that other dtypes are refused. n_by_name: the number of keyword-only parameters, which come last.
    """

    runner: Runner
    parameters: Sequence[tuple[str, Structure]]
    order: Sequence[int]
    arrays: Sequence[Any]
    returned: Structure
    is_kind: bool
    n_by_name: int = 0

    @property
    def name(self) -> str:
        """The name of the exported function."""
        return self.runner.program.name

    def text(self) -> str:
        """The text of the module. NotImplementedError for what a module cannot do."""
        program = self.runner.program
        if program.mode.target == "cuda":
            raise NotImplementedError(f"{self.name} is compiled for a GPU, and a module runs on the CPU; make it without mode='cuda'")
        if any(isinstance(variable.container, SeededContainer) for variable in self.runner.shared):
            raise NotImplementedError(
                f"{self.name} draws from one of NumPy's generators, which a module cannot advance; draw from a nt.random.RandomStream"
            )
        updated = [state for state in self.runner.targets if state.node not in STATES]
        if updated:
            names = ", ".join(state.name or repr(state) for state in updated)
            raise NotImplementedError(
                f"{self.name} updates {names}, and a module has no shared variables; make a function that takes the value as an "
                "argument, and returns the new one"
            )
        n_results = len(program.graph.outputs) - len(self.runner.targets)
        graph = Graph(program.graph.inputs, program.graph.outputs[:n_results])
        return exported(graph, program.mode, self.name, self._interface(graph))

    def _interface(self, graph: Graph) -> Interface:
        values = [*self.arrays, *self.runner.shared_values()]
        behind = len(graph.inputs) - len(values)
        order, parameters = iter(self.order), []
        for name, structure in self.parameters:
            inputs = tuple(next(order) for _ in range(n_leaves(structure)))
            parameters.append(Parameter(parameter_name(name), _form(structure, self.name, name), inputs))
        records: dict[str, Sequence[str]] = {}
        _note_records(self.returned, records)
        return Interface(
            parameters=parameters,
            n_by_name=self.n_by_name,
            inputs=[(node.name or f"argument_{k}", node.type) for k, node in enumerate(graph.inputs)],
            fixed={behind + k: value for k, value in enumerate(values)},
            results=[(node.type, copied) for node, (_, copied) in zip(graph.outputs, self.runner.outputs, strict=False)],
            returned=lambda names, called: _returned(self.returned, iter(names), self.name, called),
            records=records,
            casting="equiv" if self.is_kind else "safe",
            hint=OF_KINDS.format(name=self.name) if self.is_kind else DECLARED,
            notes=list(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        if self.arrays or self.runner.shared:
            yield "What it read from outside is written in as it was when this was exported."
        if self.runner.targets:
            yield "Its draws are those of the next call when this was exported, the same at every call."


def export(what: Exportable, path: str | os.PathLike[str]) -> Path:
    """Writes the module. An existing file is replaced only once the new text is complete."""
    target, text = Path(path), what.text()
    if target.suffix != ".py":
        raise ValueError(f"{what.name}.export: {str(target)!r} is no name of a Python module; write {str(target.with_suffix('.py'))!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{what.name}.export: there is no folder {str(target.parent)!r}")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return target


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def njit_of(what: Exportable) -> Any:
    """The function that code compiled by Numba calls."""
    text = what.text()
    if jit_is_off():
        raise NotImplementedError(f"{what.name}.njit: Numba is told to compile nothing (NUMBA_DISABLE_JIT); call {what.name} itself")
    return getattr(load_module(text, what.name), f"{what.name}_njit")


# structures as text -----------------------------------------------------------------------------------------------------


def _form(structure: Structure, label: str, name: str) -> str:
    """The form of an argument as Python text: `...` for an array, named tuples as tuples."""
    if structure in (LEAF, NONE):
        return "..." if structure == LEAF else "None"
    assert not isinstance(structure, str)
    cls, keys, children = structure
    if isinstance(cls, Static):
        raise NotImplementedError(f"{label} has the static argument {name}, which no array gives; export a function that sets it by itself")
    if is_record(cls):
        raise NotImplementedError(f"{label} takes a {cls.__name__}, which no module knows; export a function of a dict of its fields")
    forms = [_form(child, label, name) for child in children]
    return _nest(list if cls is list else dict if cls is dict else tuple, keys, forms, label)


def _returned(structure: Structure, names: Iterator[str], label: str, called: Mapping[str, str]) -> str:
    """The text that makes the nest of results. called: the names that classes have in the module."""
    if structure in (LEAF, NONE):
        return next(names) if structure == LEAF else "None"
    assert not isinstance(structure, str)
    cls, keys, children = structure
    if isinstance(cls, ListOf):
        if cls.of_numbers is None:
            raise NotImplementedError(
                f"{label} returns a list of nests whose length only the run knows, which no module makes; return arrays"
            )
        return f"{cls.of_numbers.__name__}({next(names)})"
    if is_record(cls):
        raise NotImplementedError(f"{label} returns a {cls.__name__}, which no module knows; return a dict of its fields")
    parts = [_returned(child, names, label, called) for child in children]
    if cls is dict:
        by_key = dict(zip(keys, parts, strict=True))
        return _nest(dict, keys.written, [by_key[key] for key in keys.written], label)
    return f"{called[cls.__name__]}({', '.join(parts)})" if hasattr(cls, "_fields") else _nest(cls, None, parts, label)


def _nest(cls: type, keys: Any, parts: Sequence[str], label: str) -> str:
    if cls is dict:
        for key in keys:
            if not _is_written_as_it_is(key):
                raise NotImplementedError(f"{label} has {key!r} as a key, which no module can write; use text or numbers")
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"
    if cls is list:
        return f"[{', '.join(parts)}]"
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _is_written_as_it_is(key: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(key)) == key)
    except (ValueError, SyntaxError):
        return False


def _note_records(structure: Structure, records: dict[str, Sequence[str]]) -> None:
    """Adds the fields of the named tuples in a structure to `records`, by the name of the class."""
    if isinstance(structure, str):
        return
    cls, _, children = structure
    if hasattr(cls, "_fields") and records.setdefault(cls.__name__, cls._fields) != cls._fields:
        raise NotImplementedError(f"two named tuples are called {cls.__name__}; rename one of them")
    for child in children:
        _note_records(child, records)
