"""Functions that users compiled with Numba, as generated code calls them: `newton_1f…(results…, operands…)`.

A routine's name holds a digest of all that its function reads (`inside/frozen.py`), and so do the kernels that call it. A function that
reads what no text tells has a name of this process alone, and kernels that call it are not kept on disk. Arrays are passed read-only.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import types

from ....types import SUPPORTED_DTYPES
from ...inside.faults import faults_of, takes_memory
from ...inside.frozen import Draws as Draws
from ...inside.frozen import Frozen, frozen
from ..external_names import routine_of

Kind = tuple[str, int]  # a dtype and a rank
CONSTANTS = 60_000  # bytes; a GPU has 64 KiB for the constants of a kernel
NUMBERS = {"bool": types.boolean} | {name: getattr(types, name) for name in SUPPORTED_DTYPES if name != "bool"}
NAMES = {number: name for name, number in NUMBERS.items()}

_known: dict[str, Compiled] = {}
_lock = threading.RLock()


def __getattr__(name: str) -> Any:
    return known(name).call


def known(name: str) -> Compiled:
    """The function of a routine."""
    if name not in _known:
        raise AttributeError(f"no routine is called {name!r}")
    return _known[name]


class Compiled:
    """A function of Numba's, compiled for operands of given kinds. `__call__` returns its results as a tuple, without those that are None.

    copy: its frozen copy. places: for each value that it returns, False if that is None. is_tuple: True if it returns a tuple.
    returned: Numba's type of what it returns.
    """

    def __init__(self, source: Any, operands: tuple[Kind, ...], routine: str, digest: str, copy: Frozen) -> None:
        self.source, self.operands, self.routine, self.digest = source, operands, routine, digest
        self.name = str(source.py_func.__name__)
        self.copy = copy  # keeps alive the objects that its digest knows by their addresses
        self._function, returned = _compiled(copy, [_type(*kind) for kind in operands], self.name)
        self.returned = str(returned)
        self.is_tuple = isinstance(returned, types.BaseTuple)
        kinds = [_kind(one, self.name) for one in (returned.types if self.is_tuple else (returned,))]
        self.places = [kind is not None for kind in kinds]
        self.results = tuple(kind for kind in kinds if kind is not None)
        if not self.results:
            raise TypeError(f"ns.external: {self.name} returns nothing; return a number, an array, or a tuple of these")
        self.call = _caller(self._function, self)

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        arrays = [
            _readonly(np.asarray(value, dtype)) if rank else np.dtype(dtype).type(value)[()]
            for value, (dtype, rank) in zip(values, self.operands, strict=True)
        ]
        returned = self._function(*arrays)
        results = returned if self.is_tuple else (returned,)
        return tuple([np.asarray(one) for one, is_there in zip(results, self.places, strict=True) if is_there])

    @cached_property
    def unfit_for_gpu(self) -> str:
        """Why it cannot be compiled for a GPU, as far as its code for the CPU tells; "" if nothing is against it."""
        if any(rank for _, rank in self.results):
            return "returns an array, which code for a GPU cannot make; let it return numbers"
        for part in self.copy.parts():
            whose = "" if part is self.copy else f"calls {part.python.__name__}, which "
            if part.handles_errors:
                return f"{whose}raises, asserts or tries, and a GPU knows no errors; return a number that tells what went wrong"
            if part.signatures or part.options.get("locals") or "pipeline_class" in part.options:
                return f"{whose}was given types, locals= or a pipeline, which the CPU alone knows; leave them out"
        if self.copy.is_recursive:
            return "calls itself, or one that it calls does, as deep as no stack of a GPU is sure to be; write a loop"
        if self.copy.n_bytes > CONSTANTS:
            return f"reads arrays of {self.copy.n_bytes:,} bytes, and a GPU holds {CONSTANTS:,}; pass them as arguments"
        if takes_memory(self._function):
            return "makes arrays, lists or text, for which a GPU has no memory; keep to numbers, and to the arrays that it is given"
        for error, message in faults_of(self._function):
            instead = (
                "write @njit(error_model='numpy'), which divides as NumPy does"
                if error == "ZeroDivisionError"
                else "write what cannot fail"
            )
            return f"may raise {error}{f' ({message})' if message else ''}, and a GPU knows no errors; {instead}"
        return ""

    def wrong_shape(self, k: int) -> str:
        """The message for a result k that has not the shape told by shape=."""
        which = f"result {k} of {self.name}" if len(self.results) > 1 else f"the result of {self.name}"
        return f"{which} has another shape than shape= of ns.external says"

    def __reduce__(self) -> tuple[Any, ...]:
        return compiled, (self.source, self.operands)


def compiled(function: Any, operands: tuple[Kind, ...]) -> Compiled:
    """The function as it reads now, compiled for operands of these kinds."""
    copy = frozen(function)
    word = hashlib.sha256(f"{copy.told}\n{operands}".encode()).hexdigest()[:16]
    routine = routine_of(function.py_func.__name__, word, copy.is_alone)
    with _lock:
        if routine not in _known:
            _known[routine] = Compiled(function, operands, routine, word, copy)
        return _known[routine]


def _compiled(copy: Frozen, operands: Sequence[Any], name: str) -> tuple[Any, Any]:
    """The compiled function, and Numba's type of what it returns."""

    def make(python: FunctionType, of: Frozen) -> Any:
        signatures = [tuple(operands)] if of is copy and not of.signatures else of.signatures
        if of is copy:
            signatures = [_of_readonly(one) for one in signatures]
        later.append((numba.jit(**of.options)(python), signatures))
        return later[-1][0]

    later: list[tuple[Any, Any]] = []
    function = copy.built(make)
    try:
        for one, signatures in reversed(later):  # only now: all the functions that they call exist
            for signature in signatures:
                one.compile(signature)
            if signatures:
                one.disable_compile()
        if not copy.signatures:
            return function, function.nopython_signatures[0].return_type
        caller = numba.njit(
            new_function(f"def call({_names(len(operands))}):\n    return function({_names(len(operands))})", function=function)
        )
        caller.compile(tuple(operands))
        return caller, caller.nopython_signatures[0].return_type
    except numba.errors.NumbaError as error:
        raise _refusal(error, name, operands) from error


def _refusal(error: Exception, name: str, operands: Sequence[Any]) -> TypeError:
    shown = ", ".join(f"{one.dtype}[{'?, ' * (one.ndim - 1)}?]" if isinstance(one, types.Array) else str(one) for one in operands)
    if "Cannot modify readonly array" in str(error):
        return TypeError(f"ns.external: {name} writes into an array that it is given; let it copy that first, and return the copy")
    return TypeError(f"ns.external: Numba does not compile {name} for ({shown}), arrays that may not be written: {reason_of(error)}")


def reason_of(error: Exception) -> str:
    """The first two lines of what Numba says."""
    lines = re.sub(r"\x1b\[\d*m", "", str(error)).splitlines()
    return " ".join([line.strip() for line in lines if line.strip() and not line.startswith("Failed in ")][:2])


def _of_readonly(signature: Any) -> Any:
    """A signature with its arrays read-only."""
    args, returned = (signature, None) if isinstance(signature, tuple) else (signature.args, signature.return_type)
    args = tuple(one.copy(readonly=True) if isinstance(one, types.Array) else one for one in args)
    return args if returned is None else returned(*args)


def _type(dtype: str, rank: int) -> Any:
    return types.Array(NUMBERS[dtype], rank, "C", readonly=True) if rank else NUMBERS[dtype]


def _kind(of: Any, name: str) -> Kind | None:
    """The dtype and rank of a result; None for None."""
    if isinstance(of, types.NoneType):
        return None
    number, rank = (of.dtype, of.ndim) if isinstance(of, types.Array) else (of, 0)
    if isinstance(of, types.Literal):
        number = of.literal_type
    if number not in NAMES or (isinstance(of, types.Array) and not rank):
        raise TypeError(f"ns.external: {name} returns {of}; return numbers, arrays of one axis or more, or a tuple of these")
    return NAMES[number], rank


def _readonly(array: np.ndarray) -> np.ndarray:
    view = np.ascontiguousarray(array)[...]
    view.flags.writeable = False
    return view


def _caller(function: Any, of: Compiled) -> Any:
    """The function that generated code calls: it writes the results into arrays that it is given."""
    n = len(of.results)
    operands, results = _names(len(of.operands)), [f"r{k}" for k in range(n)]
    lines = [f"def call({', '.join(results)}, {operands}):" if operands else f"def call({', '.join(results)}):"]
    lines.append(f"    returned = function({operands})")
    messages = {}
    places = [place for place, is_there in enumerate(of.places) if is_there]
    for k, (place, (_, rank)) in enumerate(zip(places, of.results, strict=True)):
        value = f"returned[{place}]" if of.is_tuple else "returned"
        if rank:
            messages[f"message_{k}"] = of.wrong_shape(k)
            lines += [f"    if {value}.shape != r{k}.shape:", f"        raise ValueError(message_{k})", f"    r{k}[...] = {value}"]
        else:
            lines.append(f"    r{k}[0] = {value}")
    return numba.njit(error_model="numpy")(new_function("\n".join(lines), function=function, **messages))


def _names(count: int) -> str:
    return ", ".join(f"x{k}" for k in range(count))


def new_function(text: str, **reads: Any) -> Callable[..., Any]:
    """The function `call` that a text defines, with `reads` as its globals."""
    namespace = {"__name__": __name__, **reads}
    exec(text, namespace)
    function: Callable[..., Any] = namespace["call"]
    return function
