"""A plan as a Python module with one Numba function for the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...ir.loops import Argument, Call, Function, walk
from ...ir.names import WORD
from ..messages import named_messages, without_location
from ..names import HELPERS, ROUTINES
from ..text import statements
from .in_lanes import with_lanes
from .looks import Looks
from .outlining import OutlinedLoop, outlined_loops
from .vector_places import with_places

RESERVED = (*(name for names in HELPERS.values() for name in names), *ROUTINES, "njit", "types", "first", "last")
"""The names that the text uses besides Python's."""
FINITE_OR_NOT = '{"afn", "arcp", "contract", "nsz", "reassoc"}'
"""Numba's `fastmath` without the promise that nothing is NaN or infinite: that would let the compiler remove checks for these."""
CALLED = re.compile(rf"(?<![\w.])({WORD})\(")  # exp(x), not np.exp(x)
_NUMBA_NAMES = {"bool": "boolean"}


def module_text(function: Function, fastmath: str = "", threads: int | None = None) -> str:
    """The whole module: imports, messages, signature, function. It holds all it needs except named helpers of numbascan.

    fastmath: Numba's option, if it is to be given. threads: the most threads of a loop over lanes; None: as many as there are processors.
    """
    messages = named_messages(function)
    names = function.names.copy()
    function = replace(function, body=with_lanes(with_places(function.body, names)), names=names)
    # no wrapper for callers in C: nobody needs it, and it takes 8 % of the time to compile
    options = ['error_model="numpy"', "nogil=True", "no_cfunc_wrapper=True", *([f"fastmath={fastmath}"] if fastmath else [])]
    # outlined for one thread, too: the same machine code gives the same bits. Python never calls them, so they need no wrapper
    outlined = outlined_loops(function, ", ".join([*options, "no_cpython_wrapper=True"]))
    looks = Looks(function.names, bool(fastmath))
    functions = [line for loop in outlined for line in (*loop.function(messages, looks), "", "")]
    body = "\n".join(_body(function, outlined, messages, threads or 0, looks))
    types = [_type_name(argument) for argument in function.arguments]
    signature = f"({types[0]},)" if len(types) == 1 else f"({', '.join(types)})"
    lines = [
        *_imports(function, "\n".join([*functions, body])),
        "",
        *_array_types(function.arguments),
        *(f"{name} = {name + ': ' + without_location(message)!r}" for message, name in messages.items()),
        "",
        "",
        *functions,
        f"@njit({signature}, cache=True, {', '.join(options)})",
        f"def {function.name}({', '.join(argument.name for argument in function.arguments)}):",
        body,
        "",
    ]
    return "\n".join(lines)


def beginnings(name: str) -> tuple[str, ...]:
    """The prefixes of names that the text makes up: of messages, and of loops outlined from the function `name`."""
    return "ERROR_", f"{name}_lanes"


def _body(function: Function, outlined: Sequence[OutlinedLoop], messages: Mapping[str, str], threads: int, looks: Looks) -> Iterator[str]:
    """The lines of the function, with calls for outlined loops."""
    own = {id(stmt) for loop in outlined for stmt in loop.own}
    loops = {id(loop.loop): loop for loop in outlined}
    for stmt in function.body:
        if id(stmt) in loops:
            yield from loops[id(stmt)].call(threads, looks)
        elif id(stmt) not in own:
            yield from statements(looks.within([stmt]), messages)


def _scalar_type(dtype: str) -> str:
    return f"types.{_NUMBA_NAMES.get(dtype, dtype)}"


def _type_name(argument: Argument) -> str:
    """The name of an argument's type in the signature: Numba's for a number, one defined above it for an array."""
    return f"{argument.dtype}_{argument.rank}d{'_out' * argument.is_written}" if argument.rank else _scalar_type(argument.dtype)


def _array_types(arguments: Sequence[Argument]) -> list[str]:
    named = {}
    for argument in arguments:
        if argument.rank:
            access = "" if argument.is_written else ", readonly=True"
            named[_type_name(argument)] = f'types.Array({_scalar_type(argument.dtype)}, {argument.rank}, "C"{access})'
    return [f"{name} = {text}" for name, text in named.items()]


def _imports(function: Function, body: str) -> list[str]:
    lines = ["import math", ""] if "math." in body else []
    lines += ["import numpy as np"] if "np." in body else []
    lines += ["from numba import njit, types"]
    called = set(CALLED.findall(body))
    for module, names in HELPERS.items():
        used = sorted(called.intersection(names))
        if used:
            lines.append(f"from numbascan.emit.runtime.{module} import {', '.join(used)}")
    routines = {stmt.routine for stmt in walk(function.body) if isinstance(stmt, Call) and not stmt.routine.startswith("np.")}
    modules = sorted({routine.split(".")[0] for routine in routines})
    lines += [f"from numbascan.emit.runtime.routines import {', '.join(modules)}"] if modules else []
    return lines
