"""Python's own functions for traced values: `len`, `range`, `max`, `float`, `math.sin`, … with Python's meaning.

Each takes the arguments of the function that it replaces, and calls that for known values.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from ...ops.card import card_named
from ...ops.raising import RAISING
from ...types import SUPPORTED_DTYPES
from ..numpy import indexing
from ..numpy.creation import arange, empty, eye, full, identity, linspace, logspace, ones, tri, zeros, zeros_like
from ..numpy.fourier import fftfreq, rfftfreq
from ..numpy.places import flatnonzero
from ..numpy.shape import broadcast_to, specify_shape
from ..numpy.shape_arguments import dim, shape_of
from ..tree import OpenList
from ..unsupported import refuse
from ..variable import CAPTURE, METHODS, Variable, as_variable, at_line, implements, number_as, op
from ..views import Assumption, UnsureView, all_of, is_array, use
from .arrays import of_argument
from .calls import callee, replaces
from .choices import value_of
from .collected import with_no_lists
from .elements import Generated, each_of, is_open, is_run, run
from .lists import Listed, list_of
from .loops import UNROLLED, repeat
from .made import InPlaceOfAList
from .rows import Once, PythonNumbers, Rows, TracedRange, places, rows_of, turned, zipped
from .stores import holds_traced, keys, outside
from .stores import key as key_of
from .truth import is_traced, python_bool, truth


def _is_traced(*values: Any) -> bool:
    return any(isinstance(value, Variable) or is_traced(value) for value in values)


def _number(value: Any, dtype: str) -> Variable:
    """A value of one element as Python's own number, which takes the dtype of the arrays that it meets. TypeError for several elements."""
    x = as_variable(value)
    if x.ndim:
        if any(size != 1 for size in x.type.shape):
            raise TypeError(
                f"only 0-dimensional arrays can be converted to Python scalars{at_line()}: {x!r}; for an array write NumPy's function, as "
                "np.exp for math.exp"
            )
        x = x.reshape(())
    cast = x if x.type.dtype == dtype else METHODS["astype"](x, dtype)
    return cast if cast.type.weak else op(card_named("python_number"), cast)


# numbers --------------------------------------------------------------------------------------------------------------


@replaces(float)
def _float(*args: Any) -> Any:
    if not (len(args) == 1 and _is_traced(args[0])):
        return float(*args)
    if as_variable(args[0]).type.kind == "c":
        raise TypeError(f"float() argument must be a real number, not complex{at_line()}")
    return _number(args[0], "float64")


@replaces(complex)
def _complex(*args: Any) -> Any:
    if not _is_traced(*args):
        return complex(*args)
    real, imag = (*args, 0.0)[:2]
    return _number(args[0], "complex128") if len(args) == 1 else _number(as_variable(real) + 1j * as_variable(imag), "complex128")


@replaces(bool)
def _bool(*args: Any) -> Any:
    return python_bool(truth(args[0])) if len(args) == 1 and _is_traced(args[0]) else bool(*args)


@replaces(int)
def _int(*args: Any) -> Any:
    if not (len(args) == 1 and _is_traced(args[0])):
        return int(*args)
    if as_variable(args[0]).type.kind == "c":
        raise TypeError(f"int() argument must be a real number, not complex{at_line()}")
    return _whole(args[0])


@replaces(abs)
def _abs(x: Any) -> Any:
    return abs(as_variable(x)) if _is_traced(x) else abs(x)


@replaces(math.pow)
def _float_pow(base: Any, exp: Any) -> Any:
    return _number(np.power(_number(base, "float64"), _number(exp, "float64")), "float64") if _is_traced(base, exp) else math.pow(base, exp)


@replaces(divmod)
def _divmod(a: Any, b: Any) -> Any:
    return (a // b, a % b) if _is_traced(a, b) else divmod(a, b)


@replaces(len)
def _len(x: Any) -> Any:
    if isinstance(x, Rows | OpenList):
        return x.length
    if not _is_traced(x):
        return len(x)
    array = as_variable(x)
    return len(array) if not array.ndim or isinstance(array.type.shape[0], int) else _number(dim(array, 0), "int64")


# loops ----------------------------------------------------------------------------------------------------------------


@replaces(range)
def _range(*args: Any) -> Any:
    if not _is_traced(*args):
        return range(*args)
    for arg in args:
        if as_variable(arg).ndim or as_variable(arg).type.kind not in "iu":
            raise TypeError(f"'{as_variable(arg).type.dtype}' object cannot be interpreted as an integer{at_line()}")
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    numbers = TracedRange(start, stop, step)
    return Rows((numbers,), "*", numbers.length)


def _kept(items: Any) -> Any:
    """What a loop runs over, a list without its filter."""
    return items.kept() if isinstance(items, Listed) else items


@replaces(enumerate)
def _enumerate(items: Any, start: Any = 0) -> Any:
    items = _kept(items)
    rows = rows_of(items)
    return enumerate(items, start) if rows is None else Once(_counted(rows, start))


def _is_known(rows: Rows) -> bool:
    return isinstance(rows.length, int)


def _counted(rows: Rows, start: Any) -> Rows:
    if _is_known(rows) and not _is_traced(start):
        numbers: Any = range(start, start + rows.length)
    else:
        numbers = TracedRange(start, as_variable(start) + rows.length, 1)
    return zipped([Rows((numbers,), "*", rows.length), rows])


@replaces(zip)
def _zip(*items: Any, strict: bool = False) -> Any:
    items = tuple(map(_kept, items))
    is_pythons = any(isinstance(part, Once) for part in items) and not any(map(is_open, items))  # which may run out before
    is_pythons = is_pythons or any(hasattr(part, "__next__") and not isinstance(part, Once) for part in items)
    parts = [] if is_pythons else [rows_of(part) for part in items]
    if not parts or any(part is None for part in parts):
        return zip(*items, strict=strict)
    known = [part for part in parts if part is not None]
    if strict and len({part.length for part in known if _is_known(part)}) > 1:
        return zip(*items, strict=True)
    return Once(zipped(known))


@replaces(reversed)
def _reversed(items: Any) -> Any:
    items = _kept(items)
    rows = None if isinstance(items, Once) else rows_of(items)  # as Python, which refuses it
    return reversed(items) if rows is None else Once(turned(rows))


@replaces(map)
def _map(f: Any, *items: Any) -> Any:
    function = callee(f)
    source = items[0] if len(items) == 1 else _zip(*items)
    call = function if len(items) == 1 else lambda item: function(*item)
    return Generated(source, lambda parts, each: [each(call(part)) for part in parts]) if CAPTURE.home else map(function, *items)


@replaces(np.ndindex)
def _ndindex(*shape: Any) -> Any:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    is_short = not _is_traced(*sizes) and (not CAPTURE.home or math.prod(sizes) <= UNROLLED)
    if not sizes or is_short:
        return np.ndindex(*shape)
    return Once(places([size if is_traced(size) else operator.index(size) for size in sizes]))


@replaces(np.ndenumerate)
def _ndenumerate(arr: Any) -> Any:
    if not (isinstance(arr, Variable) and arr.ndim):
        return np.ndenumerate(arr)
    found = places([dim(arr, axis) for axis in range(arr.ndim)])
    elements = arr if arr.ndim == 1 else arr.reshape(-1)
    return Once(Rows((*found.sources, elements), (tuple, None, (found.structure, "*")), found.length))


@replaces(np.nditer)
def _nditer(*args: Any, **kwargs: Any) -> Any:
    if holds_traced([*args]):  # in the order of memory, which is the run's
        refuse(np.nditer)
    return np.nditer(*args, **kwargs)


@replaces(functools.reduce)
def _reduce(f: Any, items: Iterable[Any], /, *initial: Any) -> Any:
    function = callee(f)
    if not is_open(items):
        return functools.reduce(function, items, *initial)
    if initial:
        total, rest = initial[0], items
    else:
        every = list_of(items)
        total, rest = every[0], every[1:]

    def reduce(element: Any) -> None:
        nonlocal total
        total = function(total, element)

    run(rest, reduce, ("total",))
    return total


_ACCUMULATED: dict[Any, np.ufunc] = {None: np.add, operator.add: np.add, operator.mul: np.multiply}


@replaces(itertools.accumulate)
def _accumulate(items: Iterable[Any], func: Any = None, *, initial: Any = None) -> Any:
    if not is_open(items):
        return Generated(list(itertools.accumulate(items, None if func is None else callee(func), initial=initial)), each_of)
    every = list_of(items)
    values = every.array()
    if initial is not None or func not in (*_ACCUMULATED, max, min) or values.type.kind == "b" or (func in (max, min) and values.ndim > 1):
        raise TypeError(
            f"itertools.accumulate over as many items as only the run knows{at_line()}: it takes operator.add, operator.mul, max and min "
            "of numbers, without `initial`; write a `for` loop that writes an array"
        )
    if func in _ACCUMULATED:
        result = as_variable(_ACCUMULATED[func].accumulate(values, dtype=values.dtype))
    else:
        result = _running_extreme(func, values)
    return Once(Rows((PythonNumbers(result) if every.holds_pythons() else result,), "*", dim(values, 0)))


def _running_extreme(func: Any, values: Variable) -> Variable:
    """`accumulate(values, max)`: as Python's max, which a NaN at the start alone goes through."""
    if values.type.kind == "f":
        is_later = arange(dim(values, 0)) > 0
        values = as_variable(np.where(np.isnan(values) & is_later, values.dtype.type(-np.inf if func is max else np.inf), values))
    return as_variable((np.maximum if func is max else np.minimum).accumulate(values))


@replaces(filter)
def _filter(f: Any, items: Iterable[Any]) -> Any:
    is_kept = (lambda item: item) if f is None else callee(f)
    if not CAPTURE.home:
        return filter(None if f is None else is_kept, items)
    return Generated(items, lambda parts, each: [each.when(is_kept(part), lambda: each(part)) for part in parts])  # noqa: B023 - run at once


# what a value is --------------------------------------------------------------------------------------------------------


def _stand_in(x: Any) -> Any:
    """A value of the class that a traced one has under Python."""
    if isinstance(x, InPlaceOfAList):
        return x.kind()
    if not isinstance(x, Variable):
        return x
    use(x.is_0d)  # an array of rank 0 is of another class
    if is_array(x):
        return np.empty((0,) * x.ndim, x.type.dtype)
    return {"b": False, "i": 0, "f": 0.0, "c": 0j}[x.type.kind] if x.type.weak else np.zeros((), x.type.dtype)[()]


@replaces(isinstance)
def _isinstance(x: Any, classes: Any) -> bool:
    return isinstance(x, classes) or isinstance(_stand_in(x), classes)


@replaces(type)
def _type(*args: Any, **kwargs: Any) -> Any:
    return type(_stand_in(args[0])) if len(args) == 1 else type(*args, **kwargs)


def class_of(x: Any) -> Any:
    """`x.__class__`."""
    return _stand_in(x).__class__


def _seen_by(x: Any, name: str) -> Any:
    """The object that is asked for an attribute: the value under Python, or for what that cannot have (`type`, `node`) the variable."""
    return _stand_in(x) if isinstance(x, Variable) and any(hasattr(kind, name) for kind in _OF_NUMBERS) else x


_OF_NUMBERS = (np.ndarray, int, float, complex)


@replaces(hasattr)
def _hasattr(x: Any, name: str) -> bool:
    return hasattr(_seen_by(x, name), name)


@replaces(getattr)
def _getattr(x: Any, name: str, *default: Any) -> Any:
    return getattr(x if hasattr(_seen_by(x, name), name) else _stand_in(x), name, *default)


@replaces(hash)
def _hash(x: Any) -> int:
    return hash(key_of(x))


@replaces(np.isscalar)
def _isscalar(x: Any) -> bool:
    return np.isscalar(_stand_in(x))


def _collection(known: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: known(*map(keys, args)) if args and holds_traced([*args]) else known(*args, **kwargs)


for _known_collection in (set, frozenset):
    replaces(_known_collection)(_collection(_known_collection))


@replaces(callable)
def _callable(x: Any) -> bool:
    return not isinstance(x, Variable) and callable(x)


@replaces(print)
def _print(*args: Any, **kwargs: Any) -> None:
    print(*[repr(arg) if isinstance(arg, Variable) else arg for arg in args], **kwargs)


def _whole(x: Any) -> Any:
    """A number as Python's int. NaN, infinity and numbers beyond 64 bits are errors at the run."""
    x = as_variable(x)
    if x.type.kind == "f":
        x = op(RAISING, x, x == x, error="ValueError", message="cannot convert float NaN to integer")
        what = "cannot convert float infinity, or a number beyond 64 bits, to integer"
        x = op(RAISING, x, abs(x) < 2.0**63, error="OverflowError", message=what)
    return _number(x, "int64")


def _rounded(rounding: Callable[..., Any], x: Any) -> Any:
    return _whole(rounding(x))


@replaces(round)
def _round(x: Any, ndigits: Any = None) -> Any:
    if not _is_traced(x, ndigits):
        return round(x, ndigits)
    return _rounded(np.round, x) if ndigits is None else round(as_variable(x), ndigits)


# modules math and cmath -----------------------------------------------------------------------------------------------

_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh",
    "fabs": "fabs", "dist": "", "fsum": "", "prod": "", "pow": "",
}  # fmt: skip


_OF_THEIR_OWN = "floor ceil trunc isnan isinf isfinite isclose gcd lcm modf frexp ldexp remainder pow"
_OTHERWISE = frozenset(_OF_THEIR_OWN.split())
"""Functions of `math` whose arguments or results are not those of NumPy's function of that name."""


def _of_math(known: Callable[..., Any], ours: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        if not _is_traced(*args):
            return known(*args, **kwargs)
        return _number(ours(*[_number(arg, dtype) if _is_traced(arg) else arg for arg in args], **kwargs), dtype)

    return function


for _module, _dtype in ((math, "float64"), (cmath, "complex128")):
    for _name, _known in vars(_module).items():
        _ours = None if _name in _OTHERWISE else getattr(np, _NAMES.get(_name, _name), None)
        if builtins.callable(_known) and isinstance(_ours, np.ufunc):
            replaces(_known)(_of_math(_known, _ours, _dtype))


for _known, _name in ((math.gamma, "gamma"), (math.lgamma, "gammaln"), (math.erf, "erf"), (math.erfc, "erfc")):
    replaces(_known)(_of_math(_known, partial(op, card_named(_name)), "float64"))


def _of_one(known: Callable[..., Any], finish: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x: finish(as_variable(x)) if _is_traced(x) else known(x)


for _name in ("floor", "ceil", "trunc"):
    replaces(getattr(math, _name))(_of_one(getattr(math, _name), partial(_rounded, getattr(np, _name))))


def _told_of(known: Callable[[Any], bool], ours: Callable[[Any], Any], dtype: str) -> Callable[[Any], Any]:
    return lambda x: python_bool(ours(_number(x, dtype))) if _is_traced(x) else known(x)


def _is_near(known: Callable[..., bool], dtype: str) -> Callable[..., Any]:
    def isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
        if not _is_traced(a, b, rel_tol, abs_tol):
            return known(a, b, rel_tol=rel_tol, abs_tol=abs_tol)
        a, b = _number(a, dtype), _number(b, dtype)
        is_near = abs(a - b) <= np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol)
        return python_bool((a == b) | (np.isfinite(a) & np.isfinite(b) & is_near))

    return isclose


for _module, _dtype in ((math, "float64"), (cmath, "complex128")):
    replaces(_module.isclose)(_is_near(_module.isclose, _dtype))
    for _name in ("isnan", "isinf", "isfinite"):
        replaces(getattr(_module, _name))(_told_of(getattr(_module, _name), getattr(np, _name), _dtype))


def _to_base(known: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    logarithm = _of_math(known, np.log, dtype)

    def log(x: Any, *base: Any) -> Any:
        if not _is_traced(x, *base):
            return known(x, *base)
        return logarithm(x) / logarithm(*base) if base else logarithm(x)

    return log


for _module, _dtype in ((math, "float64"), (cmath, "complex128")):
    replaces(_module.log)(_to_base(_module.log, _dtype))


@replaces(math.hypot)
def _hypot(*coordinates: Any) -> Any:
    if not _is_traced(*coordinates):
        return math.hypot(*coordinates)
    total: Any = 0.0
    for one in coordinates:
        total = np.hypot(total, _number(one, "float64"))
    return _number(total, "float64")


@replaces(math.dist)
def _dist(p: Any, q: Any) -> Any:
    p, q = list(p), list(q)
    if not _is_traced(*p, *q):
        return math.dist(p, q)
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return _hypot(*[a - b for a, b in zip(p, q, strict=True)])


@replaces(math.fsum)
def _fsum(items: Any, /) -> Any:
    values = list_of(items)
    if isinstance(values, Listed):
        return _number(np.sum(values.array()), "float64")
    return _number(sum(values), "float64") if _is_traced(*values) else math.fsum(values)


@replaces(math.prod)
def _prod(items: Any, /, *, start: Any = 1) -> Any:
    if not (is_run(items) or holds_traced([items, start])):
        return math.prod(items, start=start)
    product = start

    def multiply(element: Any) -> None:
        nonlocal product
        product = product * element

    run(items, multiply, ("product",))
    return product


@replaces(math.modf)
def _modf(x: Any) -> Any:
    if not _is_traced(x):
        return math.modf(x)
    x = _number(x, "float64")
    whole = np.trunc(x)
    fraction = np.copysign(np.where(np.isinf(x), 0.0, x - whole), x)
    return _number(fraction, "float64"), _number(whole, "float64")


@replaces(np.trim_zeros)
def _trim_zeros(filt: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(filt, list | tuple) and holds_traced(filt):
        raise TypeError(f"np.trim_zeros of a {type(filt).__name__} that holds traced values{at_line()}: give it np.array of that")
    return np.trim_zeros(filt, *args, **kwargs)


@replaces(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    if not holds_traced([x, condlist, *funclist, *args]):
        return np.piecewise(x, condlist, [callee(f) if builtins.callable(f) else f for f in funclist], *args, **kw)
    values = as_variable(x)
    first = condlist[0]
    if not isinstance(condlist, (list, tuple)) and np.ndim(condlist) > 1:
        condlist = list(condlist)
    elif values.ndim and not (isinstance(condlist, (list, tuple)) and np.ndim(first)):
        condlist = [condlist]  # as NumPy: one condition
    elif not isinstance(condlist, (list, tuple)):
        condlist = list(condlist)
    conditions: list[Any] = [np.logical_not(np.logical_not(as_variable(one))) for one in condlist]
    if len(funclist) == len(conditions) + 1:
        conditions.append(np.logical_not(functools.reduce(np.logical_or, conditions)))
    if len(funclist) != len(conditions):
        raise ValueError(f"np.piecewise: {len(funclist)} functions for {len(conditions)} conditions{at_line()}; one for each, or one more")
    result = zeros_like(values)
    for condition, f in zip(conditions, funclist, strict=True):
        fitting = specify_shape(condition, shape_of(values))
        if builtins.callable(f):
            result = _with_piece(result, values, fitting, _given(f, args, kw))
        else:
            result = np.where(fitting, METHODS["astype"](as_variable(f), values.dtype), result)
    return result


def _given(f: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda part: callee(f)(part, *args, **kw)


def _with_piece(result: Variable, values: Variable, condition: Variable, f: Callable[[Any], Any]) -> Any:
    """The result with f of the elements at which a condition holds. As in NumPy f is not called for none."""
    found = flatnonzero(condition)
    flat = result.reshape(-1)[found]
    piece = value_of(
        dim(found, 0) > 0,
        lambda: broadcast_to(METHODS["astype"](as_variable(f(values.reshape(-1)[found])), values.dtype), shape_of(found)),
        lambda: flat + 0,
    )
    return indexing.set_subtensor(flat, piece).reshape(values.shape)


# whole numbers --------------------------------------------------------------------------------------------------------


def _is_whole(x: Any, name: str) -> bool:
    """Whether a traced value is Python's int, which `math` asks for. TypeError where it is a float."""
    if isinstance(x, Variable) and x.type.kind not in "biu":
        raise TypeError(f"'float' object cannot be interpreted as an integer: math.{name} of {x!r}{at_line()}")
    return True


def _of_whole(known: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def function(*numbers: Any) -> Any:
        if not _is_traced(*numbers):
            return known(*numbers)
        return ours(*[_number(x, "int64") for x in numbers if _is_whole(x, known.__name__)])

    return function


def _checked(x: Any, holds: Any, message: str, error: str = "ValueError") -> Any:
    return op(RAISING, as_variable(x), as_variable(holds), error=error, message=message)


def _gcd(*numbers: Any) -> Any:
    return functools.reduce(_gcd_of_two, numbers, 0)


def _gcd_of_two(one: Any, other: Any) -> Any:
    """The greatest common divisor, by Euclid's algorithm."""
    a, b = abs(one), abs(other)

    def divide() -> None:
        nonlocal a, b
        a, b = b, a % b

    repeat(lambda: b != 0, divide, ("a", "b"), ())
    return a


def _lcm(*numbers: Any) -> Any:
    return functools.reduce(lambda one, other: abs(one * (other // np.maximum(_gcd_of_two(one, other), 1))), numbers, 1)


def _isqrt(n: Any) -> Any:
    """The whole part of the root. The rounded root of the float is at most one off, and is corrected by one."""
    n = _checked(n, n >= 0, "isqrt() argument must be nonnegative")
    root = METHODS["astype"](np.floor(np.sqrt(METHODS["astype"](n, "float64"))), "int64")
    root = np.minimum(root, 3037000499)  # the largest number whose square fits into 64 bits
    root = np.where(root * root > n, root - 1, root)
    is_less = (root < 3037000499) & ((root + 1) * (root + 1) <= n)
    return _number(np.where(is_less, root + 1, root), "int64")


_FACTORIALS = np.array([math.factorial(k) for k in range(21)])


def _factorial(n: Any) -> Any:
    n = _checked(n, n >= 0, "factorial() not defined for negative values")
    n = _checked(n, n <= 20, "factorial() of more than 20 does not fit into 64 bits", "OverflowError")
    return _number(as_variable(_FACTORIALS)[n], "int64")


_BINOMIALS = np.array([[math.comb(n, k) for k in range(34)] for n in range(67)])  # those of 67 things do not fit into 64 bits


def _comb(n: Any, k: Any) -> Any:
    n = _checked(n, n >= 0, "n must be a non-negative integer")
    k = _checked(k, k >= 0, "k must be a non-negative integer")
    n = _checked(n, n <= 66, "comb() of more than 66 things may not fit into 64 bits", "OverflowError")
    least = np.minimum(k, n - k)
    return _number(np.where(k > n, 0, as_variable(_BINOMIALS)[n, np.maximum(least, 0)]), "int64")


_ORDERED = np.array([[min(math.perm(n, k), 2**63 - 1) for k in range(67)] for n in range(67)])  # the last number: it does not fit


def _perm(n: Any, k: Any = None) -> Any:
    if k is None:
        return _factorial(n)
    n = _checked(n, n >= 0, "n must be a non-negative integer")
    k = _checked(k, k >= 0, "k must be a non-negative integer")
    n = _checked(n, n <= 66, "perm() of more than 66 things may not fit into 64 bits", "OverflowError")
    found = as_variable(_ORDERED)[n, np.minimum(k, 66)]
    return _number(
        _checked(np.where(k > n, 0, found), (found < 2**63 - 1) | (k > n), "perm() does not fit into 64 bits", "OverflowError"), "int64"
    )


def _magnitude(x: Variable, name: str) -> Variable:
    """The absolute value as an unsigned number: that of -2**63 is its own bits."""
    if x.ndim or x.type.kind not in "iu":
        raise AttributeError(f"{x!r} has no attribute {name!r}{at_line()}")
    return METHODS["astype"](METHODS["astype"](abs(METHODS["astype"](x, "int64")), "uint64") if x.type.kind == "i" else x, "uint64")


_POWERS = np.uint64(1) << np.arange(64, dtype=np.uint64)


@implements(method="bit_length")
def _bit_length(x: Variable) -> Any:
    return _number(np.sum(_magnitude(x, "bit_length") >= _POWERS), "int64")


@implements(method="bit_count")
def _bit_count(x: Variable) -> Any:
    return _number(np.sum((_magnitude(x, "bit_count") & _POWERS) != 0), "int64")


_OF_WHOLE: dict[Any, Callable[..., Any]] = {
    math.gcd: _gcd,
    math.lcm: _lcm,
    math.isqrt: _isqrt,
    math.factorial: _factorial,
    math.comb: _comb,
    math.perm: _perm,
}
for _known, _ours in _OF_WHOLE.items():
    replaces(_known)(_of_whole(_known, _ours))


# arrays that are made -------------------------------------------------------------------------------------------------


def _constructor(known: Callable[..., Any], ours: Callable[..., Any]) -> None:
    def made(*args: Any, **kwargs: Any) -> Any:
        if not ((CAPTURE.makes_arrays and not isinstance(known, type)) or holds_traced([*args, *kwargs.values()])):
            return known(*args, **kwargs)
        return ours(*args, **kwargs)

    replaces(known)(made)


def _new(ours: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its new array marked as lying in C order."""

    def made(*args: Any, like: Any = None, device: Any = None, **kwargs: Any) -> Any:
        result = Variable(ours(*args, **kwargs).node)
        result.is_c, result.is_0d = True, not result.ndim
        return result

    return made


def _array(
    obj: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0, like: Any = None
) -> Any:
    obj = with_no_lists(obj)
    if copy is False:
        raise TypeError(f"np.array(copy=False){at_line()}: write np.asarray(x)")
    x = _in_order(_as_array(obj, dtype, bool(copy)), order or "K")
    while x.ndim < ndmin:
        x = x[np.newaxis]
    return x


def _as_array(obj: Any, dtype: Any, is_copied: bool) -> Variable:
    """An array of numbers, arrays, or nests of these; with `is_copied` always a new one."""
    x = as_variable(obj)
    cast = METHODS["astype"](x, x.type.dtype if dtype is None else dtype) if dtype is not None or x.type.weak else x
    if cast.dtype == x.dtype and isinstance(obj, Variable) and is_array(obj) and not is_copied:
        return obj
    result = Variable(cast.node)
    if type(obj) is np.ndarray and not is_copied:
        result.home = "an array that is read from outside, or of an object"
    result.is_0d = not result.ndim
    result.is_c = result.is_c or not isinstance(obj, (Variable, np.ndarray)) or all_of([x.is_c])
    if isinstance(obj, Variable) and isinstance(obj.is_0d, Assumption) and not is_copied:
        return of_argument(obj, result)
    return result


def _in_order(x: Variable, order: str) -> Variable:
    """An array in a memory order: x itself where it is known to lie so, else one that may be x or a copy."""
    if order in ("K", "A"):
        if order == "A":
            raise TypeError(f"order='A'{at_line()} goes by how an array lies in memory; write order='C' or 'K'")
        return x
    if (x.ndim < 2 and x.is_c is True) or (order == "C" and x.is_c is True):
        return x
    result = Variable(x.node)
    why = f"an array in order {order!r} is the array itself or a copy, as that lies in memory, which is not known here"
    result.view_of, result.is_c = UnsureView(Variable(x.node), [x], why), order == "C"
    return result


def _asarray(obj: Any, dtype: Any = None, order: Any = None, **_: Any) -> Any:
    x = outside(obj)  # a NumPy array is not copied, so that it may not be written
    return _array(x, dtype, copy=None, order=order)


def _ordered(order: str) -> Callable[..., Any]:
    return lambda a, dtype=None, **_: np.atleast_1d(_array(a, dtype, copy=None, order=order))


def _as(name: str) -> Callable[..., Any]:
    """`np.float64(x)` and its like. Of Python's numbers, those that an integer dtype lacks are an error of the run, as in NumPy."""

    def number(x: Any = 0) -> Variable:
        is_whole = np.dtype(name).kind in "iu" and as_variable(x).type.weak
        return number_as(as_variable(_int(x)), name) if is_whole else METHODS["astype"](as_variable(x), name)

    return number


def _from_elements(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    if count != -1:
        raise TypeError(f"np.fromiter(count=…){at_line()}; write np.array of a list")
    return _array(list_of(iter), dtype)


_CONSTRUCTORS: dict[Any, Callable[..., Any]] = {
    np.zeros: _new(zeros),
    np.ones: _new(ones),
    np.empty: _new(empty),
    np.full: _new(full),
    np.arange: _new(arange),
    np.eye: _new(eye),
    np.identity: _new(identity),
    np.tri: _new(tri),
    np.array: _array,
    **dict.fromkeys((np.asarray, np.asanyarray), _asarray),
    np.ascontiguousarray: _ordered("C"),
    np.asfortranarray: _ordered("F"),
    np.fromiter: _from_elements,
    np.linspace: linspace,
    np.logspace: logspace,
    np.fft.fftfreq: fftfreq,
    np.fft.rfftfreq: rfftfreq,
    **{np.dtype(name).type: _as(name) for name in SUPPORTED_DTYPES},
}
for _known, _ours in _CONSTRUCTORS.items():
    _constructor(_known, _ours)
