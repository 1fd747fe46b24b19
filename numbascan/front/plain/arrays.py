"""Arrays by identity: a write is seen under every name of an array, in its views, and in what it is a view of.

While a function is traced, a Variable is an object that holds its current value. A view knows its base and its position there: writing it
gives the base a new value, reading it reads what the base holds now. Only the tracer writes; the graph knows values alone.

Invariant: two variables are one array, or share memory, if and only if NumPy's would. So a function whose result NumPy copies returns
neither its argument nor a view of it (`own`), and a function whose result is a view is in `VIEWS`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import TracerError
from ...ops.card import card_named
from ...ops.of_shape import of_shape
from ...tracebacks import entry
from ...types import show_shape
from ..numpy import indexing
from ..numpy.choices import where
from ..numpy.shape import broadcast_to
from ..numpy.shape_arguments import dim, sizes_of
from ..tracing import NeedsTracedArrays, is_tracing
from ..variable import CAPTURE, HOOKS, METHODS, PROPERTIES, Variable, as_variable, at_line, op
from ..views import Assumption, Either, FlatView, Moved, UnsureView, View, all_of, is_array, use
from .frames import FRAMES, Place, note

# writing --------------------------------------------------------------------------------------------------------------


def may_be_written() -> bool:
    """True while a function is traced: only then do arrays have an identity."""
    return is_tracing()


def written(x: Variable, index: Any, value: Any) -> None:
    """x[index] = value. ValueError for an array that may not be written, TypeError for a number, and for a variable of a graph."""
    check_may_write(x, "x[idx] = y")
    if (found := behind_mask(x, index)) is not None:
        part, mask, rest = found
        given = as_variable(value)
        if not part.ndim:
            written(x, rest, where(mask, _as_dtype(value, x), part))
            return
        if not given.ndim:
            _set(part, where(mask, _as_dtype(value, part), part))
            return
        if given.ndim > 1 and rest is Ellipsis and mask.ndim == x.ndim and _n_axes(index) == x.ndim:
            raise TypeError(f"x[mask] = values{at_line()}: a mask of all axes takes a number or a vector, not {given!r}")
    part = indexing.getitem(x, index)
    if not indexing.is_there(part, value):
        _set(x, indexing.set_subtensor(part, _as_dtype(value, x)))


def check_may_write(x: Variable, what: str) -> None:
    """Raises where an array may not be written."""
    base = x
    while base.view_of is not None:
        if isinstance(base.view_of, UnsureView):
            base.view_of.check()  # passed: nobody else has what it may be a view of
            base.view_of = None
            break
        if base.view_of.write is None:
            raise ValueError(
                f"assignment destination is read-only: {_name(x)} is a view that NumPy does not write{at_line()}; copy it first"
            )
        base = base.view_of.base
    if base.home is None or (CAPTURE.home is None and is_tracing()):
        raise _not_here(what, x)
    if not is_array(x):
        raise TypeError(f"{what}{at_line()}: {_name(x)} is a number, and numbers do not change; write x = y, or give it an axis")
    if isinstance(base.home, str):
        raise ValueError(f"{_name(base)} is written into{at_line()}, but it is {base.home}; copy it first, or make it a state")
    if base.home is not CAPTURE.home:
        raise ValueError(
            f"{_name(base)} is written into{at_line()}, but it is read from outside the function that is traced; copy it first, or make it "
            "a state"
        )


def _not_here(what: str, x: Any) -> TypeError:
    """The error for a write into a variable of a graph, or in a function that is not converted."""
    error = TracerError if is_tracing() else TypeError
    return error(f"{what} on {x!r}{at_line()}: a traced value cannot be written into; write {indexing.WRITING}")


def _set(x: Variable, value: Variable) -> None:
    """Gives an array a new value; a view passes it on to its base."""
    if x.view_of is not None:
        view = x.view_of
        assert view.write is not None
        use(view.fact)
        _set(view.base, view.write(view.base, value))
        return
    if FRAMES.stack:
        note((id(x.cell), None), _place_of(x))
        _move_aliases(x)
    x._hold(value.node)


def _move_aliases(x: Variable) -> None:
    """Forbids reading what loops carry under names that had x before them: in the first pass it is x, in later ones another array."""
    for one in FRAMES.stack:
        for ref in one.aliases.pop(id(x.cell), ()):
            if (alias := ref()) is not None:
                why = f"{_name(alias)} has the array {_name(x)} in the first pass of a loop, and another one in later ones"
                alias.view_of = Moved(Variable(alias.node), [], why)


def _place_of(x: Variable) -> Place:
    """An array as a place that is written. Refers to it weakly: an array that is gone need not be taken back."""
    ref, cell = weakref.ref(x), x.cell

    def write(value: Any) -> None:
        array = ref()
        if array is not None:
            array._hold(value.node)

    return Place(cell, _name(x), lambda: Variable(cell[0]), write, Variable(x.node), x.born)


def _as_dtype(value: Any, x: Variable) -> Any:
    """A value as it is stored in x, cast as NumPy casts on writes, lossy or not. TypeError for complex numbers into real ones."""
    given = as_variable(value)
    if given.dtype == x.dtype and not given.type.weak:
        return given
    if given.type.weak and not (given.type.kind == "c" and x.type.kind != "c"):
        return number_cast(given, x)
    if given.type.kind == "c" and x.type.kind != "c":
        raise TypeError(
            f"complex numbers are written into {_name(x)} ({x.type}){at_line()}, which would lose their imaginary parts; write .real"
        )
    return METHODS["astype"](given, x.type.dtype)


def number_cast(number: Variable, x: Variable) -> Variable:
    """A Python number as it is stored in x: a float becomes an integer by truncation, as in NumPy. Other numbers stay as they are."""
    if (number.type.kind == "f" and x.type.kind in "iub") or (number.type.kind == "i" and x.type.kind == "b"):
        return METHODS["astype"](number, x.type.dtype)
    return number


def _n_axes(index: Any) -> int:
    """The number of axes of a mask that is the whole index."""
    return as_variable(index[0] if isinstance(index, tuple) else index).ndim


def behind_mask(x: Variable, index: Any) -> tuple[Variable, Variable, Any] | None:
    """The part of x that a traced mask selects from, the mask aligned with its axes, and the index of the part.

    None unless one mask is beside slices and positions.
    """
    parts = index if isinstance(index, tuple) else (index,)
    masks = [k for k, part in enumerate(parts) if indexing.is_traced_mask(part)]
    if len(masks) != 1:
        return None
    (place,), mask = masks, parts[masks[0]]
    if len(parts) == 1:
        return x, _wide(x, mask, 0), Ellipsis
    if not _is_basic(parts[:place] + parts[place + 1 :]):
        return None
    rest = (*parts[:place], *(slice(None),) * mask.ndim, *parts[place + 1 :])
    part = getitem(x, rest)
    taken = sum(not (one is None or one is Ellipsis) for one in parts) - 1 + mask.ndim
    before = sum(
        x.ndim - taken if one is Ellipsis else 1 for one in parts[:place] if one is None or one is Ellipsis or isinstance(one, slice)
    )
    return part, _wide(part, mask, before), rest


def _wide(x: Variable, mask: Variable, before: int) -> Variable:
    """A mask with trailing axes added, so that it is aligned with x from axis `before` on.

    Raises IndexError where its lengths are not those of x; in the run ValueError, where only the run knows them.
    """
    if before + mask.ndim > x.ndim:
        raise IndexError(f"too many indices for array: {_name(x)} has {x.ndim} dimensions, and its mask {mask.ndim}{at_line()}")
    lengths = x.type.shape[before : before + mask.ndim]
    for k, (one, other) in enumerate(zip(lengths, mask.type.shape, strict=True)):
        if one is not None and other is not None and one != other:
            raise IndexError(
                f"boolean index did not match indexed array along axis {before + k}; size of axis is {one} but size of corresponding "
                f"boolean axis is {other}{at_line()}"
            )
    if lengths != mask.type.shape or None in lengths:
        sizes = sizes_of([dim(x, before + k) for k in range(mask.ndim)], "x[mask]")
        mask = Variable(of_shape(mask.node, sizes, "a mask in brackets"))
    return mask[(..., *(None,) * (x.ndim - before - mask.ndim))]


def changed_where(x: Variable, before: Variable, wide: Variable, operator: Callable[[Any, Any], Any], given: Variable) -> None:
    """`x[mask] += y` of a number y, for a traced mask, already aligned with x (`wide`); `before`: what x was when y was computed."""
    check_may_write(x, "x[mask] += y")
    # the operator gets 1 where the mask does not hold: what it does to the elements there is no part of the result or its derivative
    result = as_variable(operator(where(wide, before, before.dtype.type(1)), given))
    _check_fits(result, x, "x[mask] += y")
    _set(x, where(wide, _as_dtype(result, x), before))


def changed(x: Any, operator: Callable[[Any, Any], Any], value: Any, name: str = "x += y") -> Any:
    """`x += value` and its like. Writes into an array; for a number, and in the symbolic interface, gives a new value."""
    if x.home is None and not is_tracing():
        return operator(x, value)
    if isinstance(x.is_0d, Either):
        return x.is_0d.replaced(x, Variable(as_variable(operator(x, value)).node), CAPTURE.frame)
    if not is_array(x):
        use(x.is_0d)  # traced as a number: an array of rank 0 would be written
        return operator(x, value)
    check_may_write(x, name)
    result = as_variable(operator(x, value))
    if (
        result.ndim > x.ndim
        or any(
            a is not None and b not in (None, a)  # lengths that only the run knows it compares
            for a, b in zip(x.type.shape[x.ndim - result.ndim :], result.type.shape, strict=True)
        )
    ):
        raise ValueError(
            f"non-broadcastable output operand with shape {show_shape(x.type.shape)} doesn't match the broadcast shape "
            f"{show_shape(result.type.shape)}{at_line()}"
        )
    _check_fits(result, x, name)
    written(x, Ellipsis, result)
    return x


def _check_fits(result: Variable, x: Variable, name: str, casting: Any = "same_kind") -> None:
    """TypeError where NumPy does not write a result of that dtype into x."""
    if not np.can_cast(result.dtype, x.dtype, casting):
        raise TypeError(
            f"{name}: the result has dtype {result.dtype}, and {_name(x)} {x.dtype}{at_line()}; write x = x + y, or "
            f".astype({x.type.dtype!r})"
        )


def _name(x: Variable) -> str:
    return x.name or x.node.name or "the array"


# views ----------------------------------------------------------------------------------------------------------------


def _view(base: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], Any] | None, result: Any, name: str) -> Any:
    """A function's result as a view of its argument `base`; for a number as argument, a new array or a number."""
    value = Variable(result.node)
    value.is_0d = not value.ndim and (name not in _OF_NUMBERS or is_array(base))
    if not is_array(base):
        return of_argument(base, value)
    value.home = base.home
    if name in ("reshape", "ravel") and not base.is_c:
        value.view_of = UnsureView(Variable(value.node), [base], _ORDER)
        return value
    value.is_c = name in _KEEP_ORDER and base.is_c
    value.view_of = View(base, read, write, base.is_c if name in ("reshape", "ravel") else True)
    return value


_OF_NUMBERS = ("real", "imag")  # attributes that numbers have too; there they are numbers
_KEEP_ORDER = ("reshape", "ravel", "expand_dims", "squeeze", "atleast_1d", "atleast_2d", "atleast_3d", "view")


def of_argument(number: Variable, value: Variable) -> Variable:
    """A function's result for a number: an array of its own, but a view where the number is an argument that may be an array of rank 0."""
    if isinstance(number.is_0d, Assumption) and is_array(value):
        value.view_of = View(Variable(value.node), lambda base: base, lambda base, new: new, number.is_0d)
    return value


def getitem(x: Variable, index: Any) -> Any:
    """x[index]: a view for positions and slices, a copy for arrays of positions."""
    value = indexing.getitem(x, index)
    if not value.ndim and not isinstance(value, indexing.Part):
        value = indexing.of_whole(value)
    if not may_be_written() or not is_array(x):
        return value
    parts = index if isinstance(index, tuple) else (index,)
    fact = _is_basic(parts)
    if not fact or isinstance(x.view_of, FlatView):
        return value
    if not value.ndim and not any(part is Ellipsis for part in parts):
        return value
    value.home, value.is_c, value.is_0d = x.home, all_of([x.is_c, _keeps_order(parts)]), not value.ndim
    fixed = tuple(map(_fixed, parts))
    value.view_of = View(
        x,
        lambda base: indexing.getitem(base, fixed),
        lambda base, new: indexing.put_back(base, fixed, new),
        fact,
    )
    return value


def _item(x: Variable, index: tuple[Any, ...]) -> Any:
    """x.item(), of an array of one element, and x.item(k), of all elements in C order, or at a place."""
    place = index[0] if len(index) == 1 else index
    one = x.reshape(()) if not index else x[place] if isinstance(place, tuple) else x.ravel()[place]
    return op(card_named("python_number"), one)


def _fixed(part: Any) -> Any:
    """A part of an index with its present value: what is written into it later does not show."""
    if isinstance(part, slice):
        return slice(*map(_fixed, (part.start, part.stop, part.step)))
    return Variable(part.node) if isinstance(part, Variable) else part


def _is_basic(parts: tuple[Any, ...]) -> bool | Assumption:
    """Whether an index is basic, so that NumPy gives a view: positions and slices. An array of rank 0 is no position."""
    facts: list[bool | Assumption] = []
    for part in parts:
        if part is None or part is Ellipsis or isinstance(part, slice):
            continue
        if isinstance(part, Variable):
            facts.append(False if is_array(part) or part.type.kind == "b" else part.is_0d or True)
        else:
            facts.append(not isinstance(part, (list, tuple, np.ndarray, bool, np.bool_)))
    return all_of(facts)


def _keeps_order(parts: tuple[Any, ...]) -> bool:
    """Whether an index takes one contiguous stretch in C order: positions, then a slice without a step, then full slices."""
    entries = [part for part in parts if part is not None]
    if any(part is Ellipsis for part in entries[:-1]):
        return False  # it may stand for several axes: not looked into
    slices = [part for part in entries if isinstance(part, slice)]
    is_ordered = all(isinstance(part, slice) or part is Ellipsis for part in entries[len(entries) - len(slices) :])
    return is_ordered and all(_has_no_step(part) for part in slices) and all(_is_all(part) for part in slices[1:])


def _has_no_step(part: slice) -> bool:
    return part.step is None or (type(part.step) is int and part.step == 1)


def _is_all(part: slice) -> bool:
    return part.start is None and part.stop is None and _has_no_step(part)


_ORDER = "reshape and ravel give a view or a copy, depending on the order in which an array lies, which is not known here"
Inverse = Callable[..., Any]


def _shaped(base: Any, new: Any, *_: Any, **__: Any) -> Any:
    return METHODS["reshape"](new, base.shape)


def _transposed(base: Any, new: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int | np.integer) else axes
    if not order or order is None:
        return METHODS["transpose"](new)
    return METHODS["transpose"](new, [int(k) for k in np.argsort([int(axis) % base.ndim for axis in order])])


def _real(base: Any) -> Any:
    return PROPERTIES["real"](base)


def _imag(base: Any) -> Any:
    return PROPERTIES["imag"](base)


def _rolled(rank: int, axis: int, start: int) -> int:
    """The axis to which `rollaxis` moves an axis."""
    place = start % rank if start < 0 else start
    return place - (axis % rank < place)


VIEWS: dict[str, Inverse | None] = {
    "transpose": _transposed,
    "swapaxes": lambda base, new, one, other: METHODS["swapaxes"](new, one, other),
    "moveaxis": lambda base, new, source, destination: np.moveaxis(new, destination, source),
    "reshape": _shaped,
    "ravel": _shaped,
    "squeeze": _shaped,
    "expand_dims": _shaped,
    "atleast_1d": _shaped,
    "atleast_2d": _shaped,
    "atleast_3d": _shaped,
    "flip": lambda base, new, axis=None: np.flip(new, axis),
    "fliplr": lambda base, new: np.fliplr(new),
    "flipud": lambda base, new: np.flipud(new),
    "rot90": lambda base, new, k=1, axes=(0, 1): np.rot90(new, -k, axes),
    "real": lambda base, new: new + 1j * _imag(base) if base.type.kind == "c" else new,
    "imag": lambda base, new: _real(base) + 1j * new,
    "flat": _shaped,
    "view": lambda base, new: new,
    "T": lambda base, new: METHODS["transpose"](new),
    "mT": lambda base, new: METHODS["swapaxes"](new, -1, -2),
    "diagonal": None,
    "diag": None,
    "broadcast_to": None,
    "matrix_transpose": lambda base, new: METHODS["swapaxes"](new, -1, -2),
    "permute_dims": _transposed,
    "rollaxis": lambda base, new, axis, start=0: np.moveaxis(new, _rolled(base.ndim, axis, start), axis),
}
"""By the name of a function that gives a view: (base, new elements of the view) -> the base with them. None: the view is read-only.

`reshape` and `ravel` give views of arrays in C order only.
"""


BY_ITSELF = frozenset({"split", "array_split", "hsplit", "vsplit", "dsplit", "__getitem__", "set", "inc", "__setitem__"})
"""Functions that handle views themselves: a result may be the argument, or made of views of it."""
LIKE = frozenset({"zeros_like", "ones_like", "full_like", "empty_like"})
COPIES = LIKE | {
    *("copy", "flatten", "round", "around", "take", "repeat", "concatenate", "append", "astype", "tile"),
    *("clip", "cumprod", "cumsum", "max", "mean", "min", "nan_to_num", "prod", "roll", "sort", "sum", "tril", "triu", "where"),
    *("cholesky", "cross", "dot", "inv", "kron", "matmul", "outer", "pinv", "solve"),
}
"""Functions that never return their argument, even where nothing changes in it."""
UNSURE = frozenset({"einsum", "histogram", "histogram_bin_edges", "trim_zeros"})
"""Functions whose results are views in cases that only NumPy knows."""
NEW_0D = LIKE | {"where", "select", "tensordot"}
"""Functions that give an array of rank 0 where others give a number."""

Run = Callable[[Any, Any, Any, Any], Any]


def own(name: str, run: Run, ours: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a NumPy function of traced arrays: a view where NumPy gives one, else an array of its own.

    run: calls `ours`, our function for NumPy's `func`.
    """
    if kwargs.get("out") is not None and may_be_written():
        return _into_one(name, func, args, kwargs)
    x = args[0] if args else None
    if not may_be_written():
        return run(ours, func, args, kwargs)
    if kwargs.get("copy") is False and name == "nan_to_num":
        raise TypeError(f"np.nan_to_num(copy=False){at_line()} writes into its argument; write x[...] = np.nan_to_num(x)")
    _check_order(name, args, kwargs)
    value = run(ours, func, args, kwargs)
    if x is None and (name in VIEWS or name in UNSURE) and any(isinstance(value, Variable) for value in kwargs.values()):
        raise TypeError(f"np.{name}: give the array by its place, not by its name{at_line()}; a view of it is traced so")
    if name == "broadcast_arrays":
        return tuple(_read_only(one, array) for one, array in zip(value, args, strict=True))
    if name in VIEWS and isinstance(value, tuple):  # np.atleast_1d of several arrays
        return tuple(own(name, run, ours, func, (array,), kwargs) for array in args)
    is_method = func is not getattr(np, name, None)
    if name in ("conj", "conjugate") and is_method and x is not None and x.type.kind != "c":
        return x
    if name == "astype" and isinstance(x, Variable) and _is_itself(x, value, args, kwargs):
        return x
    if name in VIEWS and isinstance(value, Variable) and not (name == "diag" and x is not None and np.ndim(x) == 1):
        if not isinstance(x, Variable):
            return of_plain(x, value)
        if name == "imag" and x.type.kind != "c" and is_array(x):  # NumPy gives read-only zeros
            return _read_only(value, value)
        inverse, rest = VIEWS[name], args[1:]
        write = None if inverse is None else lambda base, new: inverse(base, new, *rest, **kwargs)
        result = _view(x, lambda base: run(ours, func, (base, *rest), kwargs), write, value, name)
        if name == "flat" and result.view_of is not None:
            result.view_of = FlatView(x, lambda base: Variable(PROPERTIES["flat"](base).node), write)
        return result
    if name in BY_ITSELF:
        return value
    return _apart(name, value, args, kwargs, is_method)


def _is_itself(x: Variable, value: Variable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether `x.astype(dtype, copy=False)` is x."""
    copy = args[5] if len(args) > 5 else kwargs.get("copy", True)
    return not copy and value.dtype == x.dtype and not x.type.weak


def _check_order(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """TypeError for order='A' or 'K' where the memory layout decides the order of elements and is not known."""
    order = kwargs.get("order", args[-1] if args and name in ("ravel", "flatten", "reshape") else None)
    x = args[0] if args else None
    if (
        isinstance(order, str)
        and order in ("A", "K")
        and name in ("ravel", "flatten", "reshape")
        and isinstance(x, Variable)
        and x.ndim > 1
    ):
        if not x.is_c:
            raise TypeError(
                f"{name}(order={order!r}){at_line()}: how {_name(x)} lies in memory decides that, and is not known here; write order='C'"
            )
        use(x.is_c)


def _read_only(value: Variable, array: Any) -> Variable:
    """A read-only view: of an array broadcast with others, or the imaginary part of a real one."""
    result = Variable(value.node)
    base = array if isinstance(array, Variable) else Variable(value.node)
    result.view_of = View(base, lambda base: broadcast_to(base, value.shape), None)
    result.is_c, result.is_0d = False, not value.ndim
    return result


def of_plain(array: Any, value: Variable) -> Variable:
    """A traced part of a NumPy array. It is read-only, and may be read only until that array is written."""
    result = Variable(value.node)
    if CAPTURE.is_outside is not None and CAPTURE.is_outside(array):
        result.home = "a part of an array that is read from outside"
    elif type(array) is np.ndarray and value.ndim:
        result.view_of = UnsureView(Variable(value.node), [], "a view of an array of NumPy's", arrays=[array])
    return result


def _apart(name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_method: bool) -> Any:
    """A result as an array of its own; unsure where NumPy may have returned its argument, having nothing to do."""
    if isinstance(value, (tuple, list)):
        name = "nonzero" if name == "where" else name  # of a condition alone
        parts = [_apart(name, one, args, kwargs, is_method) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if not isinstance(value, Variable):
        return value
    result = Variable(value.node)
    given = [one for one in (*args, *kwargs.values()) if isinstance(one, Variable)]
    if not value.ndim:
        result.is_0d = name in NEW_0D or (name in ("copy", "astype") and (not is_method or (bool(given) and given[0].is_0d is True)))
        return result
    if name in UNSURE or (name not in COPIES and any(one.ndim and one.node is value.node for one in given)):
        result.view_of = UnsureView(Variable(value.node), given, f"whether np.{name} gives a view, or what it got, is not known here")
        result.is_c = False
    elif (name in LIKE or name in ("copy", "astype")) and value.ndim > 1:
        order = kwargs.get("order", "C" if name == "copy" and is_method else "K")
        result.is_c = order == "C" or (order == "K" and bool(given) and given[0].node.type.rank == value.ndim and given[0].is_c)
    elif name in ("concatenate", "stack", "vstack") and isinstance(args[0], (list, tuple)):
        result.is_c = all_of([one.is_c if isinstance(one, Variable) else one.flags.c_contiguous for one in map(_array, args[0])])
    elif name in ("dot", "outer"):
        result.is_c = True
    elif name in ("eig", "eigvals", "nonzero", "unravel_index"):
        result.is_c = False  # strided views of an array: the real parts of complex numbers, a column for each axis
    return result


def _array(value: Any) -> Any:
    return value if isinstance(value, Variable) else np.asarray(value)


def elementwise(ufunc: np.ufunc, operands: tuple[Any, ...], result: Any) -> Any:
    """The results of a ufunc: never an operand itself, even with the same values. Their memory layout follows the operands'."""
    if isinstance(result, tuple):
        return tuple(elementwise(ufunc, operands, one) for one in result)
    if not isinstance(result, Variable):
        return result
    new = Variable(result.node) if any(result is operand for operand in operands) or result.view_of is not None else result
    if new.ndim > 1 and ufunc.signature is None:
        new.is_c = all_of([_lies_in_order(operand, new.ndim) for operand in operands])
    elif ufunc is np.matmul:
        new.is_c = True
    return new


def _lies_in_order(operand: Any, rank: int) -> bool | Assumption:
    if isinstance(operand, Variable):
        return operand.is_c if operand.ndim == rank else operand.ndim < 1
    if isinstance(operand, np.ndarray):
        return operand.ndim < 1 or (operand.ndim == rank and operand.flags.c_contiguous)
    return np.ndim(operand) == 0


def duplicate(x: Variable) -> Variable:
    """`copy.copy(x)`, `copy.deepcopy(x)`: an array of its own."""
    if type(x) not in (Variable, indexing.Part):
        made = x.__reduce__()
        assert isinstance(made, tuple)
        copied: Variable = made[0](*made[1])
        return copied
    new = Variable(x.node)
    new.is_0d = x.is_0d is True
    new.is_c = new.is_c or all_of([x.is_c])
    return new


# results that are written into arrays ------------------------------------------------------------------------------------


def into(ufunc: np.ufunc, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """np.add(x, y, out=z, where=mask)."""
    what = f"np.{ufunc.__name__}(out=…, where=…)"
    out, mask = kwargs.pop("out", None), kwargs.pop("where", True)
    if not may_be_written():
        raise TypeError(f"{what} cannot write into a traced value{at_line()}; use the result, or np.where")
    if out is None or len(out) != ufunc.nout or any(one is None for one in out):
        raise TypeError(f"{what}{at_line()}: elements without a value would be left; give out= for each result")
    check_destinations(out, what)
    casting = kwargs.get("casting", "same_kind")
    results = ufunc(*operands, **kwargs)
    results = results if isinstance(results, tuple) else (results,)
    for one, result in zip(out, results, strict=True):
        if ufunc.signature is not None and as_variable(result).ndim != one.ndim:
            raise TypeError(
                f"{what}{at_line()}: the result has {as_variable(result).ndim} axes, and out {one.ndim}; write z[...] = the result"
            )
        store(one, result, what, casting, mask)
    return out if len(out) > 1 else out[0]


def _into_one(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """np.sum(x, out=z) and its like."""
    what, out = f"np.{name}(out=…)", kwargs["out"]
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    check_destinations((out,), what)
    rest = {key: value for key, value in kwargs.items() if key != "out"}
    is_function = callable(func) and func is not getattr(np.ndarray, name, None)
    result = as_variable(func(*args, **rest) if is_function else getattr(args[0], name)(*args[1:], **rest))
    if result.dtype != out.dtype or result.ndim != out.ndim:
        raise TypeError(f"{what}{at_line()}: the result is {result.type}, and out is {out.type}; write z[...] = the result")
    sizes = sizes_of([dim(out, k) for k in range(out.ndim)], what)
    store(out, Variable(of_shape(result.node, sizes, f"{what}: the result")), what, "no")
    return out


def check_destinations(arrays: Sequence[Any], what: str) -> None:
    """Raises where traced values cannot be written into one of the arrays: a read-only one, or one of NumPy's."""
    for array in arrays:
        if isinstance(array, Variable):
            check_may_write(array, what)
        elif CAPTURE.home is None:
            raise _not_here(what, array)
        else:
            raise NeedsTracedArrays(
                f"{what} writes what only the run knows into an array that is read from outside{at_line()}; copy it first"
            )


def store(x: Variable, value: Any, what: str, casting: Any = "same_kind", mask: Any = True) -> None:
    """Writes a value into x where the mask holds. Raises where its shape or dtype does not fit."""
    given = as_variable(value)
    if given.ndim > x.ndim:
        raise ValueError(f"{what}{at_line()}: a value of shape {show_shape(given.type.shape)} does not go into {show_shape(x.type.shape)}")
    if not given.type.weak:
        _check_fits(given, x, what, casting)
    elif given.type.kind not in "b" and "biufc".index(given.type.kind.replace("u", "i")) > "biufc".index(x.type.kind):
        raise TypeError(f"{what}{at_line()}: {value!r} does not go into {x.type}")
    if mask is True:
        written(x, Ellipsis, given)
        return
    if as_variable(mask).type.kind != "b":
        raise TypeError(f"{what}{at_line()}: where= takes truth values, not {as_variable(mask).type}")
    if as_variable(mask).ndim > x.ndim:
        raise ValueError(f"{what}{at_line()}: where= has more axes than the array that is written")
    written(x, Ellipsis, where(mask, _as_dtype(given, x), x))


METHODS.update(
    {
        "__getitem__": entry(getitem),
        "__setitem__": entry(written),
        "__in_place__": entry(changed),
        "__own__": entry(own),
        "__into__": entry(into),
    }
)
HOOKS.update(may_be_written=may_be_written, elementwise=elementwise, duplicate=duplicate, item=_item)
