"""A kernel as a standalone module: everything that it calls is written into it, in public functions of NumPy and Numba.

    name_kernel   the generated code
    name_njit     for functions that Numba compiles: arguments of the exact types, checked; plain results, several as a tuple
    name          for Python: arguments converted, results in the structure of the original

It leaves out threads, looks for signals, and whatever only serves the SIMD unit; arrays on the stack are allocated instead.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from symtable import SymbolTable, symtable
from textwrap import wrap
from typing import Any

import numpy as np

from ...ir.loops import Alias, Alloc, Call, For, Function, Let, Literal, Stmt, rebuilt, walk
from ...ir.names import Names
from ...types import TensorType
from ..cpu.module import CALLED, RESERVED
from ..messages import named_messages, without_location
from ..names import HELPERS
from ..runtime.external_names import function_of
from ..text import literal, statements
from .sources import EMIT, NotPortable, Sources

MOST_NUMBERS = 10_000  # most numbers of arrays that are written into a module
CALLS = f"{EMIT}.runtime.portable_calls"
DECORATOR = "kept_by_numba"
CHECKS = ("argument_of", "in_compiled_code", "readable", "leaves_of")
OF_MODULE = (*RESERVED, DECORATOR, *CHECKS, "namedtuple", "dot", "dot_into")
"""The names that the text of a module uses besides Python's."""
OF_NUMBA = ("bool", "int64", "float64", "complex128")  # the dtypes that Numba's operators give
_CALLED_IN_NUMBERS = re.compile(r"\b(np(?=\.)|complex(?=\())")
_OPTIONS = 'error_model="numpy", nogil=True'


@dataclass(frozen=True)
class Parameter:
    """An argument of an exported function: its name, the text of its structure (`...` is an array), and the kernel's inputs in it."""

    name: str
    form: str
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Interface:
    """The arguments and results of an exported function.

    n_by_name: the number of last parameters that Python takes by name only; compiled code takes all by position.
    inputs: names and types of the kernel's inputs. fixed: the values of inputs that no argument gives, by position.
    results: the type of each, and whether its memory may be that of an argument. returned: from names of results, and other names of
    records, the text of the nest that is returned.
    records: the fields of named tuples in that nest, by class. casting: the dtypes that an array argument may have, as for np.can_cast.
    hint: what to do for other lengths than those compiled in. notes: further lines of the module's docstring.
    """

    parameters: Sequence[Parameter]
    n_by_name: int
    inputs: Sequence[tuple[str, TensorType]]
    fixed: Mapping[int, Any]
    results: Sequence[tuple[TensorType, bool]]
    returned: Callable[[Sequence[str], Mapping[str, str]], str]
    records: Mapping[str, Sequence[str]]
    casting: str
    hint: str
    notes: Sequence[str]


def module_text(function: Function, constants: Sequence[Any], interface: Interface, fastmath: str = "") -> str:
    """The whole module. Raises NotImplementedError, with the name of the operation, for what cannot be written into one."""
    sources = Sources()
    function = replace(function, body=_portable(function, sources))
    messages = named_messages(function)
    kernel = "\n".join(statements(function.body, messages)).replace("np.dot(", "dot(")  # calls of dot_into are there already
    called = set(CALLED.findall(kernel))
    for name in sorted(called.intersection({"dot", *(name for names in HELPERS.values() for name in names)})):
        _taken(sources.helper, name, function.name)
    _refuse_unknown(function, called - sources.names)
    decorator, checks = Sources(), Sources()
    decorator.take(CALLS, DECORATOR)
    for name in CHECKS if _has_nests(interface) else CHECKS[:-1]:
        checks.take(CALLS, name)
    taken = sources.names | decorator.names | checks.names
    _refuse_names(function, called, taken, interface.records)
    text = _Text(function, constants, interface, taken)
    options = f"{_OPTIONS}, fastmath={fastmath}" if fastmath else _OPTIONS
    lines = [
        *text.description(),
        "",
        *_imports({*text.imports(kernel), *sources.imports, *decorator.imports, *checks.imports}),
        "",
        f"__all__ = {text.names_exported()!r}",
        "",
        *(f"{name} = {_shown(without_location(message))!r}" for message, name in messages.items()),
        *text.arrays_from_outside(),
        *sources.text(),
        *decorator.text(),
        "",
        "",
        f"@{DECORATOR}({options})",
        f"def {function.name}_kernel({', '.join(argument.name for argument in function.arguments)}):",
        kernel,
        "",
        "",
        "# arguments and results --------------------------------------------------------------------------------------------------",
        *checks.text(),
        "",
        "",
        *text.for_compiled_code(),
        "",
        "",
        *text.for_python(),
        "",
    ]
    whole = "\n".join(lines)
    _refuse_used(function.name, whole)
    return whole


def _shown(message: str) -> str:
    """The text of an error as it is raised: literal braces are doubled only if numbers are put in later."""
    try:
        return message.format()
    except IndexError:
        return message


def _has_nests(interface: Interface) -> bool:
    return any(parameter.form != "..." for parameter in interface.parameters)


def _imports(names: set[tuple[str, str, str]]) -> list[str]:
    """The import lines for (module, name there, name here): Python's own modules first, whole modules before names from modules."""
    lines = [f"import {module}" + f" as {here}" * (here != module) for module, name, here in sorted(names) if not name]
    for module in sorted({module for module, name, _ in names if name}):
        parts = [name + f" as {here}" * (here != name) for source, name, here in sorted(names) if source == module and name]
        lines.append(f"from {module} import {', '.join(parts)}")
    return sorted(lines, key=lambda line: line.split()[1].partition(".")[0] in ("numba", "numpy", "scipy"))


# what the kernel calls ------------------------------------------------------------------------------------------------


def _portable(function: Function, sources: Sources) -> list[Stmt]:
    """The statements of a kernel in public functions; the routines that they call are taken into `sources`."""

    def change(stmt: Stmt) -> list[Stmt] | None:
        if isinstance(stmt, Alloc):
            return [replace(stmt, on_stack=False)]
        if isinstance(stmt, Call):
            return [replace(stmt, routine=_taken(sources.routine, stmt.routine, function.name))]
        if isinstance(stmt, For) and stmt.kind == "simd":
            return rebuilt([replace(stmt, kind="sequential")], change)
        return None

    return rebuilt(function.body, change)


def _taken(take: Callable[[str], str], name: str, label: str) -> str:
    if function := function_of(name):
        raise NotImplementedError(
            f"{label} cannot be written as a module of its own: it calls {function}, a function of ns.external; call that outside"
        )
    try:
        return take(name)
    except NotPortable as error:
        operation = name.rpartition(".")[2].removesuffix("_into").removesuffix("_real").removesuffix("_complex")
        raise NotImplementedError(
            f"{label} cannot be written as a module of its own: it computes {operation}, and {error}; compute that outside of {label}"
        ) from None


def _refuse_unknown(function: Function, names: set[str]) -> None:
    """Raises NotImplementedError if a kernel calls a function that is neither Python's nor in the module."""
    unknown = sorted(names - set(dir(builtins)))
    if unknown:
        raise NotImplementedError(
            f"{function.name} cannot be written as a module of its own: it calls {unknown[0]}; call that outside of it"
        )


def _refuse_names(function: Function, called: set[str], taken: set[str], records: Mapping[str, Any]) -> None:
    """Raises NotImplementedError if the module needs one of the user's names for something else."""
    functions = {function.name, f"{function.name}_kernel", f"{function.name}_njit"}
    names = {stmt.name for stmt in walk(function.body) if isinstance(stmt, Let | For | Alloc | Alias)}
    names |= {argument.name for argument in function.arguments}
    clashes = sorted(names & taken & called) or sorted((functions & taken) | (records.keys() & {*functions, *taken, *OF_MODULE, "np"}))
    if clashes:
        raise NotImplementedError(f"{function.name} cannot be a module: it needs a function {clashes[0]} of its own; rename yours")


def _refuse_used(name: str, text: str) -> None:
    """Raises NotImplementedError if functions of the module read the name as something else, such as Python's `tuple`."""
    if name in _read_from_outside(symtable(text, name, "exec")):
        raise NotImplementedError(f"{name} cannot be a module: it needs {name} for something else; rename yours")


def _read_from_outside(table: SymbolTable) -> set[str]:
    """The names that the functions in a text read from the module around them, or from Python."""
    inner = set().union(*map(_read_from_outside, table.get_children()))
    return inner | {symbol.get_name() for symbol in table.get_symbols() if table.get_type() == "function" and symbol.is_global()}


# the text around the kernel -------------------------------------------------------------------------------------------


class _Text:
    """The text around a kernel."""

    def __init__(self, function: Function, constants: Sequence[Any], interface: Interface, taken: set[str]) -> None:
        self.name, self.interface = function.name, interface
        functions = self.name, f"{self.name}_kernel", f"{self.name}_njit"
        names, local = Names((*OF_MODULE, *taken, *functions), ("ERROR_",)), Names()
        called = "np", "complex", "Exception", "ValueError", *CHECKS, *functions[1:], *interface.records
        self.given = [k for parameter in interface.parameters for k in parameter.inputs]
        self.parameters = _parameters(interface, local)
        local.used |= {*called, *functions}  # for leaves of nests, which are named here
        whole = {one.inputs[0]: name for one, name in zip(interface.parameters, self.parameters, strict=True) if one.form == "..."}
        labels = [name for name, _ in interface.inputs]
        self.inputs = [whole.get(k) or (local.fresh(label) if k in self.given else "") for k, label in enumerate(labels)]
        names.used |= local.used
        self.called = {name: names.fresh(name) if name in self.parameters else name for name in called}
        self.inputs = [name or names.fresh(label) for name, label in zip(self.inputs, labels, strict=True)]
        self.takers = {k: names.fresh(f"take_{self.inputs[k]}") for k in self.given}
        n_results = len(interface.results)
        self.results = [names.fresh(f"result_{k}" if n_results > 1 else "result") for k in range(n_results)]
        self.error = names.fresh("error")
        fixed = {self.inputs[k]: value for k, value in interface.fixed.items()}
        self.arrays = {name: value for name, value in fixed.items() if np.ndim(value)}
        self.arrays |= {names.fresh(f"TABLE_{k}"): value for k, value in enumerate(constants)}
        numbers = {self.inputs[k]: _number(value, self._type(k).dtype) for k, value in interface.fixed.items() if not np.ndim(value)}
        self.numbers = {name: _CALLED_IN_NUMBERS.sub(lambda match: self.called[match[0]], text) for name, text in numbers.items()}
        self._refuse_large()

    def _type(self, k: int) -> TensorType:
        return self.interface.inputs[k][1]

    def _refuse_large(self) -> None:
        size = sum(array.size for array in self.arrays.values())
        if size > MOST_NUMBERS:
            raise NotImplementedError(
                f"{self.name} reads {size:,} numbers of arrays from outside ({', '.join(self.arrays)}), and a module takes "
                f"{MOST_NUMBERS:,} at most; make them arguments"
            )

    def _signature(self) -> str:
        """The parameters of the function for Python."""
        by_position = len(self.parameters) - self.interface.n_by_name
        return ", ".join([*self.parameters[:by_position], *["*"] * (self.interface.n_by_name > 0), *self.parameters[by_position:]])

    def imports(self, kernel: str) -> Iterator[tuple[str, str, str]]:
        """The imports of the text itself."""
        yield "numpy", "", "np"
        yield "numba", "njit", "njit"
        if "math." in kernel:
            yield "math", "", "math"
        if self.interface.records:
            yield "collections", "namedtuple", "namedtuple"

    def description(self) -> Iterator[str]:
        """The module's docstring."""
        yield f'"""{self.name}({self._signature()}), as numbascan compiled it. It needs NumPy and Numba alone.'
        yield ""
        given = ", ".join(self.inputs[k] for k in self.given)
        yield f"{self.name} is for Python, {self.name}_njit({given}) for functions that Numba compiles."
        for note in self.interface.notes:
            yield from wrap(note, 120)
        yield '"""'

    def arrays_from_outside(self) -> Iterator[str]:
        """The lines that make the arrays from outside."""
        for name, array in self.arrays.items():
            yield from _array(name, array)

    def names_exported(self) -> list[str]:
        """The names that the module exports: functions, and the classes of named tuples in their results."""
        return [self.name, f"{self.name}_njit", *self.interface.records]

    def for_compiled_code(self) -> Iterator[str]:
        """The function that checks compiled code's arguments and calls the kernel, with what it needs."""
        for record, fields in self.interface.records.items():
            yield f"{record} = namedtuple({record!r}, {list(fields)!r})"
        for k, taker in self.takers.items():
            type_ = self._type(k)
            yield f"{taker} = in_compiled_code({self._label(k)!r}, {type_.dtype!r}, {type_.rank})"
        yield from ("", "", *self._njit())

    def _label(self, k: int) -> str:
        return f"{self.name}: {self.inputs[k]}"

    def _njit(self) -> Iterator[str]:
        given = [self.inputs[k] for k in self.given]
        yield f"@{DECORATOR}({_OPTIONS})"
        yield f"def {self.name}_njit({', '.join(given)}):"
        yield f'    """{self.name} for functions that Numba compiles: {self._told()}."""'
        for k in self.given:
            yield f"    {self.inputs[k]} = {self.takers[k]}({self.inputs[k]})"
        for k in self.given:
            yield from self._checks(k)
        values = [self.numbers.get(name, name) for name in self.inputs]
        values += [name for name in self.arrays if name not in self.inputs]
        call = f"{self.called[f'{self.name}_kernel']}({', '.join(values)})"
        yield f"    {', '.join(self.results)} = {call}" if self.results else f"    {call}"
        if self.results:
            yield f"    return {', '.join(map(self._handed_out, range(len(self.results))))}"

    def _told(self) -> str:
        results = self.interface.results
        return "one result" if len(results) == 1 else f"a tuple of {len(results)} results" if results else "no result"

    def _checks(self, k: int) -> Iterator[str]:
        for axis, dim in enumerate(self._type(k).shape):
            if dim is not None:
                length = f"{self.inputs[k]}.shape[{axis}]"
                text = f"{self._label(k)} has length {{0}} along axis {axis}, where {dim} is compiled in{self.interface.hint}"
                yield f"    if {length} != {dim}:"
                yield f"        raise {self.called['ValueError']}({text!r}, {length})"

    def _handed_out(self, k: int) -> str:
        type_, is_copied = self.interface.results[k]
        if not type_.rank and type_.dtype not in OF_NUMBA:
            return f"{self._dtype(type_.dtype)}({self.results[k]})"
        return f"{self.results[k]}.copy()" if type_.rank and is_copied else self.results[k]

    def for_python(self) -> Iterator[str]:
        """The function that takes whatever NumPy converts to arguments, and returns arrays in the original's structure."""
        others = [f"{other} = {name}  # {name} is an argument" for name, other in self.called.items() if other != name]
        yield from (*others, "", "") if others else ()
        yield f"def {self.name}({self._signature()}):"
        yield f'    """{self.name} for Python, called as the original.'
        yield ""
        for k in self.given:
            yield f"    {self.inputs[k]}: {self._type(k)}"
        yield '    """'
        for name, parameter in zip(self.parameters, self.interface.parameters, strict=True):
            if parameter.form != "...":
                leaves = "".join(f"{self.inputs[k]}, " for k in parameter.inputs)
                assigned = f"{leaves.rstrip() if len(parameter.inputs) == 1 else leaves.rstrip(', ')} = " if leaves else ""
                yield f"    {assigned}{self.called['leaves_of']}({f'{self.name}: {name}'!r}, {name}, {parameter.form})"
        for k in self.given:
            type_ = self._type(k)
            what = f"{self._label(k)!r}, {self.inputs[k]}, {type_.dtype!r}, {type_.rank}, {self.interface.casting!r}"
            yield f"    {self.inputs[k]} = {self.called['argument_of']}({what})"
        call = f"{self.called[f'{self.name}_njit']}({', '.join(self.inputs[k] for k in self.given)})"
        yield "    try:"
        yield f"        {', '.join(self.results)} = {call}" if self.results else f"        {call}"
        yield f"    except {self.called['Exception']} as {self.error}:"
        yield f"        raise {self.called['readable']}({self.error}) from None"
        yield f"    return {self.interface.returned(list(map(self._in_python, range(len(self.results)))), self.called)}"

    def _in_python(self, k: int) -> str:
        type_, _ = self.interface.results[k]
        return self.results[k] if type_.rank else f"{self.called['np']}.array({self.results[k]}, {self._dtype(type_.dtype)})"

    def _dtype(self, dtype: str) -> str:
        return _dtype(dtype, self.called["np"])


def _parameters(interface: Interface, names: Names) -> list[str]:
    """The parameters' names: those of the original's arguments, since callers use them; further ones of the same name get fresh names."""
    parameters: list[str] = []
    names.used = {one.name for one in interface.parameters}
    for one in interface.parameters:
        parameters.append(one.name if one.name not in parameters else names.fresh(one.name))
    return parameters


def _dtype(dtype: str, np: str = "np") -> str:
    return f"{np}.bool_" if dtype == "bool" else f"{np}.{dtype}"


def _number(value: Any, dtype: str) -> str:
    return literal(Literal(dtype, np.asarray(value, dtype)[()].item()))[0]


def _array(name: str, array: np.ndarray) -> Iterator[str]:
    """The lines that make an array of numbers."""
    shape, dtype = array.shape, _dtype(array.dtype.name)
    if not array.size:
        yield f"{name} = np.empty({shape}, {dtype})"
        return
    kind = {"f": "float64", "c": "complex128", "b": "bool"}.get(array.dtype.kind, "int64")
    numbers = [literal(Literal(kind, value))[0] if kind != "int64" else str(value) for value in array.ravel().tolist()]
    yield f"{name} = np.array("
    yield "    ["
    yield from (f"        {line}" for line in wrap(", ".join(numbers), 120, break_long_words=False))
    yield "    ],"
    yield f"    {dtype},"
    yield ")" if len(shape) == 1 else f").reshape({shape})"
