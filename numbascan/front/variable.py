"""Variables: what a user holds. A Variable is a node of the graph with Python's operators and NumPy's protocols.

`np.tanh(x)`, `x @ W`, `x[1:-1]` find their way here through `__array_ufunc__` and `__array_function__`; DISPATCH says which
function of ours stands behind which of NumPy's.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import inf
from types import FrameType
from typing import Any

import numpy as np

from ..ir.node import CONSTANT, Node, constant, constant_value, labelled
from ..ops.card import Card, apply, at_line, card_named
from ..ops.lowering import Elementwise
from ..tracebacks import entry, with_entries
from ..types import TensorType, dtype_name
from .protocols import PROTOCOLS, Protocols, missing, refuse_in_polynomials
from .unsupported import INSTEAD_OF_METHODS, NO_ADVICE, SPARSE, refuse, refuse_in_numba
from .views import Assumption, View

GREATEST_FLOAT = int(np.finfo(np.float64).max)

DISPATCH: dict[Any, Callable[..., Any]] = {}  # a NumPy (or SciPy) function -> ours, with NumPy's arguments
METHODS: dict[str, Callable[..., Any]] = {}  # names of functions that are methods of a Variable too: x.sum(axis=0)
PROPERTIES: dict[str, Callable[[Any], Any]] = {}  # names that are read without a call: x.real
HOOKS: dict[str, Callable[..., Any]] = {}  # what `front/plain/arrays.py` knows of arrays that are written
WRITERS: dict[Any, Callable[..., Any]] = {}  # a NumPy function, or the name of a method, that writes into arrays -> ours


def implements(*functions: Any, method: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: this function of ours answers when NumPy's `functions` are called on a Variable."""

    def note(ours: Callable[..., Any]) -> Callable[..., Any]:
        public = entry(ours)
        DISPATCH.update(dict.fromkeys(functions, public))
        if method is not None:
            METHODS[method] = public
        return public

    return note


class Deferred:
    """What stands for a number, and gives it where it is computed with."""

    def number(self) -> Variable:
        """The number."""
        raise NotImplementedError


_HANDS_ON = "numbascan.front.plain.calls"
"""The module of ours that calls what the user calls."""


def _asks_here(frame: FrameType | None) -> bool:
    """Whether code of ours hashes a variable, to find it again as an object, whatever its value."""
    while frame is not None and frame.f_globals.get("__name__") == _HANDS_ON:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("numbascan")


@with_entries(PROTOCOLS)
class Variable(Protocols, np.lib.mixins.NDArrayOperatorsMixin):
    """A value that is known by dtype and rank, and computed later. NumPy's functions and operators take it.

    >>> import numbascan.tensor as nt, numpy as np
    >>> x = nt.dvector("x")
    >>> np.tanh(x[1:] * 2).ndim
    1
    """

    __slots__ = ("__weakref__", "born", "cell", "home", "is_0d", "is_c", "view_of")
    __array_priority__ = 1000

    def __init__(self, node: Node) -> None:
        self.home: Any = CAPTURE.home  # the trace in which it may be written, or why it may not
        self.born = CAPTURE.frame  # the branch or pass in which it was made
        self.is_c: bool | Assumption = len(node.types) == 1 and node.types[0].rank < 2  # whether it lies in C order for sure
        self.is_0d: bool | Assumption = False  # whether it is an array of rank 0; an assumption: that it is a number
        self.view_of: View | None = None
        self.cell = [node]  # its value now, and what tells this array from all others, also when it is gone
        self._hold(node)

    def _hold(self, node: Node) -> None:
        self.cell[0] = node
        node.is_held = True
        if node.holder is None or node.holder() is None:
            node.holder = weakref.ref(self)

    @property
    def node(self) -> Node:
        """The node of its present value. A write into it, or into what it is a view of, gives it another."""
        if self.view_of is not None and (node := self.view_of.changed()) is not None:
            self._hold(node)
        return self.cell[0]

    @property
    def type(self) -> TensorType:
        return self.node.type

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.type.dtype)

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def name(self) -> str | None:
        return self.node.name

    @name.setter
    def name(self, value: str | None) -> None:
        if self.node.op is CONSTANT:
            self._hold(labelled(self.node, value))
        else:
            self.node.name = value

    def __repr__(self) -> str:
        return f"<{self.name or self.node.op.name}: {self.type}>"

    def __hash__(self) -> int:
        if self.home is not None and not _asks_here(sys._getframe(1)):
            raise TypeError(
                f"a traced value, {self!r}, is a key of a dict, an element of a set, or hashed{at_line()}: only the run knows which other "
                "values it equals; write an array and an index"
            )
        return hash(self.node)

    # NumPy's protocols ----------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        refuse_in_polynomials(self)
        if method != "__call__":
            return _ufunc_method(ufunc, method, inputs, kwargs)
        if kwargs.get("out") is not None or "where" in kwargs:
            return METHODS["__into__"](ufunc, inputs, kwargs)
        ours = _counterpart(ufunc)
        dtype, casting = kwargs.pop("dtype", None), kwargs.pop("casting", "same_kind")
        result = ours(*(inputs if dtype is None else _operands_for(ufunc, inputs, dtype, casting)), **kwargs)
        result = tuple(map(_as_element, result)) if isinstance(result, tuple) else _as_element(result)
        return HOOKS["elementwise"](ufunc, inputs, result) if HOOKS["may_be_written"]() else result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if (writer := _writer(func)) is not None:
            return writer(*args, **kwargs)
        return METHODS["__own__"](func.__name__, _called, _counterpart(func), func, args, kwargs)

    # Python's numbers ----------------------------------------------------------------------------------------------

    def item(self, *index: Any) -> Any:
        """A number of an array, as Python's. TracerError for a traced one where the function is not converted."""
        is_known = constant_value(self.node) is not None or not HOOKS["may_be_written"]()
        return super().item(*index) if is_known else HOOKS["item"](self, index)

    def __abs__(self) -> Any:
        return self._as_own_kind(np.absolute(_as_python_int(self) if self.type.weak else self))

    def __pos__(self) -> Any:
        return self._as_own_kind(np.positive(_as_python_int(self) if self.type.weak else self))

    def __round__(self, ndigits: int | None = None) -> Any:
        rounded = METHODS["round"](_as_python_int(self) if self.type.weak else self, ndigits or 0)
        # as Python does with one number
        return self._as_own_kind(rounded if ndigits is not None or self.ndim else rounded.astype("int64"))

    def _as_own_kind(self, result: Any) -> Any:
        """What Python computes from one of its numbers is such a number again; NumPy's functions give arrays' elements."""
        return op(card_named("python_number"), result) if self.type.weak else result

    def __getattr__(self, name: str) -> Any:
        if name in PROPERTIES:
            return METHODS["__own__"](name, _property, PROPERTIES[name], name, (self,), {})
        ours = METHODS.get(name)
        if ours is None:
            if name == "_numba_type_":
                refuse_in_numba()
            if (writer := _writer(name)) is not None:
                return functools.partial(writer, self)
            raise missing(self, name)
        return functools.partial(_method, ours, getattr(np.ndarray, name, name), name, self)

    def __copy__(self) -> Variable:
        return HOOKS["duplicate"](self)

    def __deepcopy__(self, memo: Any) -> Variable:
        return HOOKS["duplicate"](self)

    def __getitem__(self, index: Any) -> Variable:
        return METHODS["__getitem__"](self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        METHODS["__setitem__"](self, index, value)


def _writer(key: Any) -> Callable[..., Any] | None:
    """Our function for one that writes into arrays, where traced arrays may be written."""
    return WRITERS[key] if key in WRITERS and HOOKS["may_be_written"]() else None


def _as_element(result: Any) -> Any:
    """What a function of NumPy gives: elements of arrays, also where it was given Python's numbers."""
    return METHODS["astype"](result, result.dtype) if isinstance(result, Variable) and result.type.weak else result


def _is_python_number(value: Any) -> bool:
    """Whether it is one of Python's numbers, or what a traced function has in its place."""
    if isinstance(value, Variable):
        return value.type.weak
    return isinstance(value, (int, float, complex)) and not isinstance(value, np.generic)


def _as_python_int(value: Any) -> Any:
    """1 and 0 for True and False; other numbers as they are."""
    if isinstance(value, Variable) and value.type.kind == "b":
        return op(card_named("python_number"), METHODS["astype"](value, "int64"))
    return int(value) if isinstance(value, bool) else value


def _with_python_numbers(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    """The operator `name`. With Python numbers alone it computes as Python does: True + True is 2, and as weak as 2 is.

    NumPy's functions of the same meaning are not Python's: np.add(True, True) is np.True_.
    """
    of_arrays = getattr(Variable, name)

    def of_numbers(*values: Any) -> Any:
        return _counterpart(ufunc)(*(map(_as_python_int, values) if ufunc in _ARITHMETIC else values))

    def unary(self: Variable) -> Any:
        return of_numbers(self) if self.type.weak else of_arrays(self)

    def binary(self: Variable, other: Any) -> Any:
        if isinstance(other, Deferred):
            other = other.number()
        if ufunc is np.multiply and _is_count(self) and isinstance(other, (list, tuple)) and HOOKS["may_be_written"]():
            return HOOKS["repeated"](other, self)  # [x] * n
        if not (self.type.weak and _is_python_number(other)):
            return of_arrays(self, other)
        return of_numbers(other, self) if name in _REFLECTED else of_numbers(self, other)

    return unary if ufunc.nin == 1 else binary


def _is_count(x: Variable) -> bool:
    """Whether it is a whole number, by which a list can be repeated."""
    return not x.ndim and x.is_0d is not True and (x.type.kind in "iu" or (x.type.kind == "b" and x.type.weak))


_NAMES: dict[np.ufunc, str] = dict(
    [
        *((np.add, "add"), (np.subtract, "sub"), (np.multiply, "mul"), (np.true_divide, "truediv"), (np.floor_divide, "floordiv")),
        *((np.remainder, "mod"), (np.divmod, "divmod"), (np.power, "pow"), (np.left_shift, "lshift"), (np.right_shift, "rshift")),
        *((np.negative, "neg"), (np.invert, "invert")),
    ]
)
_ARITHMETIC = frozenset(_NAMES)  # they give integers for truth values; the operators added below give truth values for two of them
_NAMES |= {np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor"}
_REFLECTED = frozenset(f"__r{_name}__" for _ufunc, _name in _NAMES.items() if _ufunc.nin == 2)
_NAMES |= {np.less: "lt", np.less_equal: "le", np.equal: "eq", np.not_equal: "ne", np.greater: "gt", np.greater_equal: "ge"}
for _ufunc, _name in _NAMES.items():
    for _operator in {f"__{_name}__", *(_REFLECTED & {f"__r{_name}__"})}:
        setattr(Variable, _operator, entry(_with_python_numbers(_operator, _ufunc)))


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """`x += y`: into an array of the function that is traced; for numbers and variables of a graph `x = x + y`."""
    binary = getattr(Variable, f"__{name}__")
    return lambda self, other: METHODS["__in_place__"](self, binary, other)


for _name, _function in vars(np.lib.mixins.NDArrayOperatorsMixin).items():
    if callable(_function) and _name not in vars(Variable):
        setattr(Variable, _name, entry(_function))

for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    setattr(Variable, f"__i{_name}__", _in_place(_name))


_PYTHON: dict[str, Any] = {"b": np.dtype("bool"), "i": int, "u": int, "f": float, "c": complex}  # numbers without a dtype of their own


def _ufunc_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    ours = DISPATCH.get((ufunc, method))
    if (writer := _writer((ufunc, method))) is not None:
        return writer(*inputs, **kwargs)
    if kwargs.get("out") is not None and ours is not None:
        return METHODS["__own__"](f"{ufunc.__name__}.{method}", _called, ours, getattr(ufunc, method), inputs, kwargs)
    if ours is None:
        instead = INSTEAD_OF_METHODS.get(f"{ufunc.__name__}.{method}", INSTEAD_OF_METHODS.get(method, NO_ADVICE))
        raise TypeError(f"np.{ufunc.__name__}.{method} is not supported on traced values{at_line()}; {instead}")
    kwargs = {key: value for key, value in kwargs.items() if value is not None or key == "axis"}  # axis=None means all of them
    return ours(*inputs, **kwargs)


def _operands_for(ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: Any, casting: Any) -> list[Variable]:
    """The operands, cast for the loop of `ufunc` whose results are of `dtype`: NumPy casts before it computes."""
    result = np.dtype(dtype_name(dtype))
    operands = [as_variable(value) for value in inputs]
    dtypes = [_PYTHON[x.type.kind] if x.type.weak else x.dtype for x in operands]
    signature = (*(None,) * ufunc.nin, *(result,) * ufunc.nout)
    try:
        loop = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout), signature=signature, casting=casting)
    except TypeError as error:
        raise TypeError(f"np.{ufunc.__name__}(dtype={result.name!r}){at_line()}: {error}") from None
    pairs = zip(operands, [np.dtype("float32") if one == np.float16 else one for one in loop], strict=False)
    if all(x.type.weak for x in operands):
        return [number_as(x, one) for x, one in pairs]
    return [x if x.type.weak else METHODS["astype"](x, one) for x, one in pairs]


def number_as(number: Variable, dtype: Any) -> Variable:
    """A Python number in a dtype. An integer that does not fit is an error, as in NumPy, where astype would wrap it around."""
    is_checked = number.type.weak and number.type.kind in "iu" and np.dtype(dtype).kind in "iu" and number.dtype != dtype
    cast: Variable = number + np.zeros((), dtype) if is_checked else METHODS["astype"](number, dtype)
    return cast


@cache
def _parameters(ours: Callable[..., Any]) -> tuple[frozenset[str] | None, float]:
    """The parameter names of a function of ours, None for any, and how many arguments it takes by position."""
    parameters = inspect.signature(ours).parameters.values()
    kinds = [one.kind for one in parameters]
    most = sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    return (
        None if inspect.Parameter.VAR_KEYWORD in kinds else frozenset(one.name for one in parameters),
        inf if inspect.Parameter.VAR_POSITIONAL in kinds else most,
    )


def _property(ours: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return ours(*args)


@entry
def _method(ours: Callable[..., Any], func: Any, name: str, x: Variable, *args: Any, **kwargs: Any) -> Any:
    """What a method of ours gives."""
    return METHODS["__own__"](name, _called, ours, func, (x, *args), kwargs)


def _called(ours: Callable[..., Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of `ours`. TypeError, with its name, for a parameter that NumPy's `func` has and `ours` has not."""
    names, most = _parameters(ours)
    unknown = {} if names is None else {name: value for name, value in kwargs.items() if name not in names}
    if not unknown and len(args) <= most:
        return ours(*args, **kwargs)
    label = f"np.{func.__name__}" if callable(func) else f"x.{func}"
    try:
        theirs = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        theirs = []
    unknown.update((name, args[k]) for k, name in enumerate(theirs) if most <= k < len(args))
    for name, value in unknown.items():
        if value is not None and value is not np._NoValue:
            raise TypeError(f"{label}({name}=…) is not supported on traced values{at_line()}; leave {name} out")
    if len(args) > most and not theirs:
        raise TypeError(f"{label}: {len(args)} arguments were given{at_line()}, and {int(most)} are supported on traced values")
    return ours(*args[: int(min(most, len(args)))], **{name: value for name, value in kwargs.items() if name not in unknown})


def _counterpart(func: Any) -> Callable[..., Any]:
    """Our function for one of NumPy's, or for a ufunc of scipy.special by its name: SciPy need not be imported to be known."""
    ours = DISPATCH.get(func)
    if ours is None and isinstance(func, np.ufunc) and getattr(np, func.__name__, None) is not func:
        ours = DISPATCH.get(f"scipy.special.{func.__name__}")
    return ours or refuse(func)


# from values to nodes and back --------------------------------------------------------------------------------------


class _Capture(threading.local):
    home: Any = None
    makes_arrays: bool = False
    grows: bool = True
    has_grown: bool = False
    frame: Any = None
    array: Callable[[Any], Node | None] | None = None
    number: Callable[[Any, Node], Node] | None = None
    is_outside: Callable[[Any], bool] | None = None
    is_rule: bool = False


CAPTURE = _Capture()
"""Set while a function is traced whose arrays and numbers from outside are inputs.

- home: what marks variables that are made now as this trace's own.
- makes_arrays: whether np.zeros and its like make variables.
- grows: whether a loop may keep what it appends to a list as an array; has_grown: whether one did.
- frame: the branch or pass that is traced.
- array: NumPy array -> the node of its input; None for an array that gets none.
- number: (number, its constant) -> the input that stands for it, or the constant.
- is_outside: whether a NumPy array was found outside the function.
- is_rule: whether what runs now runs again, for derivatives, and must meet the same inputs then.
"""


def as_node(value: Any) -> Node:
    """The node of a Variable, a number (weak), an array, or a nest of these."""
    if isinstance(value, Variable):
        return value.node
    if isinstance(value, Deferred):
        return value.number().node
    refuse_other_arrays(value, "an array in the computation")
    if isinstance(value, np.generic):
        return constant(value)
    if isinstance(value, bool):
        return constant(value, "bool", weak=True)
    if isinstance(value, numbers.Number):
        return _number(value)
    if isinstance(value, (list, tuple)) or (type(value) is np.ndarray and value.dtype == object):
        return _nest(value)
    array = array_of(value, "an array in the computation")
    if array.dtype.kind not in "biufc":
        raise TypeError(f"what is computed with is {not_numbers(value)}{at_line()}; an array or a number is needed")
    return (CAPTURE.array(array) if CAPTURE.array is not None else None) or constant(array)


def refuse_other_arrays(value: Any, label: str) -> None:
    """TypeError for arrays whose operators are not those of an ndarray, and for times. `label` begins the message."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "mM":
        since = "(x - x[0])" if value.dtype.kind == "M" else "x"
        raise TypeError(
            f"{label} has dtype {value.dtype}{at_line()}, and a loop computes with numbers; pass {since} / np.timedelta64(1, 's'), "
            "a number of seconds (or of another unit)"
        )
    if type(value).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{label} is a {type(value).__name__} of scipy.sparse{at_line()}; {SPARSE}")
    if not isinstance(value, np.ndarray) or type(value) is np.ndarray:
        return
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{label} is a masked array, and its mask would be lost{at_line()}; pass value.filled(number)")
    if isinstance(value, np.matrix):
        raise TypeError(f"{label} is a np.matrix, whose * is a product of matrices{at_line()}; pass np.asarray(value), and write @ for *")


def not_numbers(value: Any) -> str:
    """How messages call what is no array of numbers."""
    if isinstance(value, dict):
        return f"a dict with the keys {list(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    if isinstance(value, Iterator):
        return f"{getattr(value, 'what', f'a {type(value).__name__}')}, for which write a list, as [… for …] or list(…)"
    return repr(value) if value is None or isinstance(value, str) else f"of the class {type(value).__name__}"


def array_of(value: Any, label: str) -> np.ndarray:
    """`value` as NumPy has it; OverflowError for a list of integers that NumPy would make floats or objects. `label` begins the message."""
    array = np.asarray(value)
    if array.dtype.kind in "fO" and isinstance(value, (list, tuple)) and array.size and _are_ints(value):
        raise OverflowError(f"{label} holds Python integers that no integer dtype holds{at_line()}; write np.array([...], dtype='float64')")
    return array


def _are_ints(values: Any) -> bool:
    return all(_are_ints(value) if isinstance(value, (list, tuple)) else type(value) is int for value in values)


def _number(value: Any) -> Node:
    if isinstance(value, numbers.Integral):
        value = int(value)
        if not -(2**63) <= value < 2**64:
            raise _out_of_bounds("", value, "int64")
        dtype = "int64" if -(2**63) <= value < 2**63 else "uint64"
    elif not isinstance(value, numbers.Complex):
        raise TypeError(f"what is computed with is {value!r}, with which NumPy does not compute either{at_line()}; write float(…)")
    else:
        dtype = "float64" if isinstance(value, numbers.Real) else "complex128"
    return constant(value, dtype, weak=True)


def _nest(values: Any) -> Node:
    """A list, or an object array as `np.array([x, y])` makes from Variables: stacked along a new first axis."""
    if isinstance(values, np.ndarray) and values.ndim == 0:
        return as_node(values.item())
    if not any(isinstance(value, (Variable, list, tuple, np.ndarray)) for value in values):
        return constant(array_of(list(values), "a list") if len(values) else np.asarray(values, dtype="float64"))
    return METHODS["_stack"](list(values)).node


def as_variable(value: Any) -> Variable:
    """The Variable that a value is or becomes."""
    return value if isinstance(value, Variable) else Variable(as_node(value))


def op(card: Card, *operands: Any, **attrs: Any) -> Variable:
    """A card applied to Variables, numbers and arrays. A Python number that the other operand's dtype cannot hold is an error."""
    nodes = [None if is_large(value) else as_node(value) for value in operands]
    if None in nodes:
        nodes = _with_large_integers(card, operands, nodes)
    known: list[Node] = [node for node in nodes if node is not None]
    _check_weak_integers(card, known)
    return Variable(apply(card, *_with_numbers(card, operands, known), **attrs))


def _with_numbers(card: Card, operands: Sequence[Any], nodes: list[Node]) -> list[Node]:
    """The operands' nodes, with inputs in the place of numbers from outside. Exponents stay in the code: some are multiplications."""
    numbers = [k for k, node in enumerate(nodes) if node.op is CONSTANT and not node.type.rank]
    if CAPTURE.number is None or not numbers or not isinstance(card.lower, Elementwise) or all(node.op is CONSTANT for node in nodes):
        return nodes
    loop = card.lower.loop(*(node.type for node in nodes))
    for k in numbers:
        if np.dtype(loop[k]).kind in "fc" and (card.name, k) != ("power", 1):
            nodes[k] = CAPTURE.number(operands[k], nodes[k])
    return nodes


def is_large(value: Any) -> bool:
    """Whether it is a Python integer that int64 does not hold."""
    return type(value) is int and not -(2**63) <= value < 2**63


def _with_large_integers(card: Card, operands: Sequence[Any], nodes: Sequence[Node | None]) -> list[Node | None]:
    """The operands' nodes. Python integers beyond int64 are floats or uint64 where the card computes with these; else OverflowError."""
    zero = constant(0, "int64", weak=True)
    loop = card.lower.loop(*((node or zero).type for node in nodes)) if isinstance(card.lower, Elementwise) else ("int64",) * len(nodes)
    result: list[Node | None] = []
    for value, node, dtype in zip(operands, nodes, loop, strict=False):
        if node is not None:
            result.append(node)
        elif dtype == "uint64" and 0 <= value < 2**64:
            result.append(constant(value, dtype, weak=True))
        elif np.dtype(dtype).kind in "fc" and abs(value) <= GREATEST_FLOAT:
            result.append(constant(float(value), "float64", weak=True))
        else:
            raise _out_of_bounds(f"np.{card.name}: ", value, dtype)
    return result


def _check_weak_integers(card: Card, nodes: list[Node]) -> None:
    if isinstance(card.lower, Elementwise):
        for node, dtype in zip(nodes, card.lower.loop(*(node.type for node in nodes)), strict=False):
            check_weak(Variable(node), dtype, f"np.{card.name}: ")
        return
    strong = [node.type.dtype for node in nodes if node.type.kind in "iu" and not node.type.weak]
    for node in nodes:
        for dtype in strong:
            check_weak(Variable(node), dtype, f"np.{card.name}: ")


def check_weak(x: Variable, dtype: Any, label: str) -> None:
    """OverflowError where x is a known Python integer that an integer dtype does not hold. `label` begins the message."""
    value = constant_value(x.node) if x.type.weak and x.type.kind in "iu" and np.dtype(dtype).kind in "iu" else None
    if value is not None and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
        raise _out_of_bounds(label, int(value), np.dtype(dtype).name)


def _out_of_bounds(label: str, value: int, dtype: str) -> OverflowError:
    return OverflowError(f"{label}the Python integer {value} is out of bounds for {dtype}{at_line()}")
