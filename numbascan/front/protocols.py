"""The protocols of Python and NumPy on traced values: what each of them does.

A traced value has a dtype and a rank, but no number. So a protocol that asks for numbers or memory gives those of a constant, and for
anything else raises an error that says what to write instead.

| protocol | who asks | a traced value |
|---|---|---|
| `__array_ufunc__`, `__array_function__` | NumPy's functions | a traced value (`variable.py`) |
| `__array__` | `np.asarray`, `np.array([x, y])`, and what calls these | an object array, as below; TracerError where that is wrong |
| `__len__`, `__iter__` | Python | of a known length, as for any sequence; else TracerError, once an element is asked for |
| `__bool__`, `__int__`, `__float__`, `__complex__`, `__index__` | Python, `math`, NumPy's casts | TracerError |
| `__array_interface__`, `__array_struct__`, `__dlpack__`, the buffer protocol | whoever wants the memory | there is none |

**Object arrays.** `np.asarray` accepts only an ndarray as the answer of an object. So the answer is an object array of the elements, each
traced by itself; TracerError if a length is open. It is read-only unless NumPy asks for a copy: writes would seem to go into x.
NumPy computes with each element of it alone, and where it goes by dtypes it sees "object". So sums would not widen booleans and short
integers, a float32 would not be cast beside a float64, real and imaginary parts would not be seen. Elements must therefore be float64 or
int64 (the dtype of lengths), or all float32. Functions that ask no element cannot be seen here: those in `_GOES_BY_DTYPE` are refused if
they are on the stack, or if user code on the stack names them; the guide lists the rest.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..errors import TracerBoolError, TracerError
from ..ir.node import constant_value, next_serial
from ..ops.card import at_line, is_users
from ..tracebacks import with_entries
from .unsupported import holds_traced, refuse_in_libraries

STACK = "np.stack([x, y, …]), which is one traced array, for np.array([x, y, …]) and for a list that NumPy is to make an array of"
_ELEMENTS = ("float64", "int64", "float32")
"""The dtypes that elements of object arrays may have: NumPy does not widen their sums. float32 may not be mixed with others."""

_GOES_BY_DTYPE = {"nan_to_num": "fi", "reciprocal": "i", "full_like": "fi", "imag": "fi", "ones_like": "fi", "zeros_like": "fi"}
"""Functions of NumPy that go by the dtype of an array without asking its elements, and the kinds of numbers for which that is wrong."""

_NAMED = ("nan_to_num", "reciprocal")
"""Those of them that give wrong values, not only wrong dtypes: no object array is made for code that names one."""

_AS_INDEX = {"b": "; np.where(mask, value, array) for array[mask]", "i": "; nt.take(array, k) for array[k]"}
"""What to write for an index of a NumPy array, by the kind of a traced value."""

_NO_MEMORY = "a traced value has no memory before it is computed; return it, and hand on the result"
_NOT_WRITTEN = "it works in place, and a traced value is never written into; write "
_INSTEAD = {
    **dict.fromkeys(("__array_interface__", "__array_struct__", "__dlpack__", "__dlpack_device__", "__cuda_array_interface__"), _NO_MEMORY),
    **dict.fromkeys(("base", "ctypes", "data", "device", "flags", "strides", "to_device", "getfield"), _NO_MEMORY),
    **dict.fromkeys(("dump", "dumps", "tobytes", "tofile"), _NO_MEMORY),
    "argpartition": "write np.argsort(x)",
    "byteswap": "only its values count here; leave it out",
    "fill": f"{_NOT_WRITTEN}y = np.full_like(y, value)",
    "itemset": f"{_NOT_WRITTEN}y = nt.set_subtensor(y[index], value)",
    "itemsize": "write x.dtype.itemsize",
    "nbytes": "write x.size * x.dtype.itemsize",
    "partition": f"{_NOT_WRITTEN}y = np.sort(y)",
    "put": f"{_NOT_WRITTEN}y = nt.set_subtensor(y[index], values)",
    "resize": f"{_NOT_WRITTEN}y = np.reshape(y, shape), or np.concatenate for more elements",
    "setfield": f"{_NOT_WRITTEN}y = nt.set_subtensor(y[index], value)",
    "setflags": f"{_NOT_WRITTEN}nothing: it is read-only in any case",
    "sort": f"{_NOT_WRITTEN}y = np.sort(y)",
    "tolist": "write x itself, or list(x) where its length is fixed",
}
"""What to write instead of attributes that ndarrays have and traced values lack."""


UNCONVERTED: dict[tuple[CodeType, str], str] = {}
"""Why functions are not converted, by code and file; filled by `front/converted`."""
UNREAD = "its source cannot be read"
"""The reason that a trace tells at the beginning of its error."""


def _why_not_converted() -> str:
    """The part of a message that says why the user's function that asks is not converted; "" if that is not known."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    why = "" if frame is None else UNCONVERTED.get((frame.f_code, frame.f_code.co_filename), "")
    return f" in {frame.f_code.co_name}, which is not converted, since {why}" if frame is not None and why not in ("", UNREAD) else ""


PROTOCOLS = (
    *("__array__", "__array_function__", "__array_ufunc__", "__init__"),
    *("__abs__", "__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__pos__", "__round__", "__trunc__"),
    *("__contains__", "__getattr__", "__getitem__", "__iter__", "__len__", "__setitem__"),
)
"""The protocols of Python and NumPy that a Variable has: they are public entries."""


@with_entries(PROTOCOLS)
class Protocols:
    """The protocols of a Variable that ask for numbers, lengths or memory."""

    __slots__ = ()

    # arrays ---------------------------------------------------------------------------------------------------------

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        known = constant_value(self.node)
        if known is not None and self.ndim:
            return np.array(known, dtype)
        self._refuse_as_array(dtype, copy)
        shape = self.type.shape
        elements = np.empty(int(np.prod(shape)), object)
        for k, place in enumerate(np.ndindex(shape)):
            elements[k] = self[place] if place else self
        array = elements.reshape(shape)
        array.flags.writeable = bool(copy)
        return array

    def _refuse_as_array(self: Any, dtype: Any, copy: bool | None) -> None:
        refuse_in_libraries()
        if dtype is not None and np.dtype(dtype) != object:
            name = np.dtype(dtype).name
            is_index = np.dtype(dtype).kind in "iu" and self.type.kind in "iu"
            instead = "nt.take(array, k) for np.take(array, k), " if is_index else ""
            raise TracerError(
                f"a traced value, {self._seen}, was to be put into a NumPy array of dtype {name}{at_line()}, which holds numbers only; "
                f"write {instead}x.astype({name!r}) for np.asarray(x, dtype=…), np.stack([x, y, …]) for np.array([x, y, …], dtype=…), "
                "nt.set_subtensor(nt.as_tensor_variable(array)[k], x) for array[k] = x, and nt.random.RandomStream for NumPy's random "
                "numbers"
            )
        if copy is False:
            raise ValueError(f"np.array(x, copy=False): {self._seen} has no memory that could be shared{at_line()}; write x itself")
        if None in self.type.shape:
            raise TracerError(
                f"np.asarray(x), or a function that calls it, needs a fixed shape, but that of {self._seen} is open{at_line()}; leave "
                "np.asarray out, a traced value is an array already (np.stack([x, y]) for np.array([x, y]), np.concatenate for np.r_ and "
                f"np.c_, np.copy(x) for np.array(x)){_AS_INDEX.get(self.type.kind, '')}"
            )
        if self.type.dtype not in _ELEMENTS:
            raise TracerError(
                f"np.array of a traced value of dtype {self.type.dtype} ({self._seen}){at_line()}: NumPy would compute with each element "
                f"alone, and neither widen sums nor see a common dtype; write x itself, or {STACK}"
                f"{_AS_INDEX.get(self.type.kind, '')}"
            )
        if self.type.dtype in _COLLECTED.dtypes_with(self.type.dtype):
            raise TracerError(
                f"np.array of traced values of dtypes {' and '.join(sorted(_COLLECTED.dtypes))}{at_line()}: NumPy would compute with each "
                f"element alone, and not see the common dtype; write {STACK}"
            )
        if name := _goes_by_dtype(self.type.kind):
            raise TracerError(
                f"np.{name} goes by the dtype of its argument{at_line()}, which np.array and lists of traced values have not; write {STACK}"
            )

    # numbers --------------------------------------------------------------------------------------------------------

    @property
    def _seen(self: Any) -> str:
        """The value's name and type in messages."""
        return f"{self.name or 'this value'} ({self.type})"

    def _known(self: Any, use: str, instead: str, error: Callable[[str], TracerError] = TracerError) -> Any:
        value = constant_value(self.node)
        if value is None:
            refuse_in_libraries()
            why = _why_not_converted()
            raise error(f"{use} needs a concrete value, but {self._seen} is traced{at_line()}{why}; write {instead}")
        return value

    def __bool__(self: Any) -> bool:
        hint = (
            "np.where(condition, a, b), nt.ifelse(condition, a, b) for a lazy choice, or return ns.until(condition) to end the loop "
            "(where NumPy asked: nt.arange(k) for np.arange(k), np.stack([x, y]) for np.array([x, y]))"
        )
        if self.node.op.name == "equal" and self.node.inputs[0] is self.node.inputs[1]:
            hint = f"{hint}; keys of one dict that are the same expression are compared by Python: make it once, and give it one value"
        return bool(self._known("Python control flow (if, while, and, or, not, bool())", hint, TracerBoolError))

    def __int__(self: Any) -> int:
        return int(self._known("int(), or an index of a NumPy array,", "x.astype('int64'), or nt.take(array, k) for np.take(array, k)"))

    def __float__(self: Any) -> float:
        return float(
            self._known("float(), or a function of the math module,", "the NumPy function (np.sin for math.sin), or np.stack for an array")
        )

    def __trunc__(self: Any) -> int:
        return math.trunc(self._known("math.trunc()", "np.trunc(x)"))

    def __complex__(self: Any) -> complex:
        return complex(self._known("complex()", "x.astype('complex128')"))

    def item(self: Any, *index: Any) -> Any:
        """The number of a known value, as Python's; TracerError for a traced one."""
        return self._known("x.item()", "x itself, or x.reshape(()) of an array of one element: a 0-d value, known to the run").item(*index)

    def __format__(self: Any, spec: str) -> str:
        return format(self._known(f"the format {spec!r}", "the value to a result, and format that") if spec else str(self), spec)

    def __index__(self: Any) -> int:
        hint = "nt.take(array, k) for array[k], nt.zeros(k) for np.zeros(k), nt.arange(k) for np.arange(k), ns.scan for range(k)"
        return int(self._known("an index, a size or range()", hint))

    def __len__(self: Any) -> int:
        if not self.ndim:
            raise TypeError(f"len() of a 0-d value: {self._seen} has no axis{at_line()}; give it one, as np.stack([x]), or leave len() out")
        length = self.type.shape[0]
        if length is None:
            refuse_in_libraries()
            raise TracerError(f"len() needs a fixed length, but that of {self._seen} is traced{at_line()}; write x.shape[0]")
        self.node.is_measured = True
        return length

    def __iter__(self: Any) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError(
                f"a Python loop over a 0-d value, or unpacking it: {self._seen} is one number{at_line()}; use it as such, or give an "
                "array with one more axis"
            )
        return self._rows()

    def _rows(self: Any) -> Iterator[Any]:
        """x[0], x[1], …. For an open length the first element raises, not `iter`: NumPy takes a value without an iterator for a number."""
        if self.type.shape[0] is None:
            refuse_in_libraries()
            raise TracerError(
                f"a Python loop over {self.name or 'a value'} ({self.type}), or unpacking it, needs a fixed length, but that is traced"
                f"{at_line()}; write array code for all elements at once, ns.scan(step, sequences=x) for one after the other, or give the "
                "array a fixed shape, as nt.tensor('float64', shape=(3,))"
            )
        yield from (self[k] for k in range(len(self)))

    def __contains__(self: Any, value: Any) -> bool:
        return bool((self == value).any()._known("`value in x`", "(x == value).any()"))


class _Collected(threading.local):
    """The dtypes of the elements that one call of np.array has asked so far: from one place in the code, with nothing traced between."""

    def __init__(self) -> None:
        self.place: tuple[int, int, int] | None = None
        self.dtypes: set[str] = set()

    def dtypes_with(self, dtype: str) -> set[str]:
        """The dtypes met so far, if a float32 is among several; else none."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not is_users(frame):
            frame = frame.f_back
        place = (id(frame), frame.f_lasti if frame is not None else 0, next_serial())
        is_same = self.place is not None and place[:2] == self.place[:2] and place[2] == self.place[2] + 1
        self.place, self.dtypes = place, {dtype, *(self.dtypes if is_same else ())}
        return self.dtypes if len(self.dtypes) > 1 and "float32" in self.dtypes else set()


_COLLECTED = _Collected()


def _goes_by_dtype(kind: str) -> str | None:
    """The NumPy function that would be wrong about an object array of this kind: on the stack, or named by user code there; else None."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_name
        if _is_numpys(frame) and kind in _GOES_BY_DTYPE.get(name, ""):
            return name
        if kind == "i" and str(frame.f_globals.get("__name__")).startswith("numpy.polynomial."):  # which makes floats of integers
            return f"polynomial…{name}"
        if is_users(frame):
            named = [name for name in _NAMED if name in frame.f_code.co_names and kind in _GOES_BY_DTYPE[name]]
            if named:
                return named[0]
        frame = frame.f_back
    return None


_OF_LOOPS = (
    "ufunc '",
    "loop of ufunc does not support",
    "Cannot cast array data from dtype('O')",
    "Cannot cast ufunc",
    "type Variable",
)


def of_object_array(error: Exception, frames: Sequence[FrameType], line: str) -> str | None:
    """A clear message for a NumPy error about an object array or a list of traced values; None for any other error.

    frames: those of the traceback from the innermost frame of user code on.
    """
    if any(not _is_numpys(frame) for frame in frames[1:]) or not holds_traced(frames[-1].f_locals.values(), (Protocols,)):
        return None
    if isinstance(error, ValueError) and "read-only" in str(error):
        return (
            f"np.asarray of a traced value was written into{line}, which would write into the value; write np.array(x), which is a copy, "
            "or nt.set_subtensor(x[k], y) for a new value"
        )
    if len(frames) == 1 and not _is_of_loop(error):
        return None  # raised by the user's own code, or clear enough
    name = f"np.{frames[1].f_code.co_name}" if len(frames) > 1 else "a function of NumPy"
    return (
        f"{name} was given a list of traced values, or np.array of them{line}, and computes with numbers or traced arrays only ({error}); "
        f"write {STACK}"
    )


def _is_of_loop(error: Exception) -> bool:
    """True for an error of a compiled NumPy loop over the elements of an object array."""
    if isinstance(error, AttributeError) and isinstance(error.obj, (int, float, complex)):  # a number has no method arctan2
        return isinstance(getattr(np, str(error.name), None), np.ufunc)
    return isinstance(error, BufferError) or (isinstance(error, TypeError) and str(error).startswith(_OF_LOOPS))


def refuse_in_polynomials(x: Any) -> None:
    """TracerError if a function of numpy.polynomial that checks for an ndarray would take a traced array for a number."""
    frame = sys._getframe(2)
    while str(frame.f_globals.get("__name__")).startswith(("numpy.lib.mixins", "numbascan.")) and frame.f_back is not None:
        frame = frame.f_back
    module = str(frame.f_globals.get("__name__"))
    if not module.startswith("numpy.polynomial.") or not x.ndim:
        return
    name, local = frame.f_code.co_name, frame.f_locals
    if name == "polyvalfromroots" or (local.get("tensor", False) and np.ndim(local.get("c", 0)) > 1):
        raise TracerError(
            f"{module}.{name} of several polynomials was given a traced array{at_line()}; write [np.polyval(c[::-1], x) for c in …], or "
            "a loop over the coefficients of each"
        )


def _is_numpys(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).split(".")[0] == "numpy"


def missing(value: Any, name: str) -> AttributeError:
    """The error for an attribute that traced values lack."""
    instead = _INSTEAD.get(name)
    return AttributeError(
        f"{type(value).__name__!r} object has no attribute {name!r}" + (f"{at_line()}: {instead}" if instead is not None else "")
    )
