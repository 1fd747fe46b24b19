"""Arrays by identity: what is written into an array is seen by every name of it, by its views, and by what it is a view of.

Within a traced function a Variable is an object that holds its current value. A view knows its base and how it lies there: writing makes
the base a new value, and reading a view reads what the base holds now. The graph knows nothing of it: only the tracer writes.

The condition that all of this relies on: two variables are one array, or share memory, if and only if NumPy's would. So a function whose
result NumPy copies never gives the object that it got, nor a view of it (`own`), and one whose result is a view is in `VIEWS`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import TracerError
from ...tracebacks import entry
from ...types import show_shape
from ..numpy import indexing
from ..numpy.choices import where
from ..tracing import Plain, is_tracing
from ..variable import CAPTURE, METHODS, PROPERTIES, Variable, as_variable, at_line
from ..views import UnsureView, View
from .frames import FRAMES, Place, note

# writing --------------------------------------------------------------------------------------------------------------


def written(x: Variable, index: Any, value: Any) -> None:
    """x[index] = value. ValueError for an array that may not be written, TypeError for a variable of the symbolic interface."""
    _check_may_write(x, "x[idx] = y")
    if (mask := _traced_mask(index)) is not None:
        _set(x, _masked(x, mask, value))
        return
    _set(x, indexing.set_subtensor(x[index], _as_dtype(value, x)))


def _check_may_write(x: Variable, what: str) -> None:
    base = x
    while base.view_of is not None:
        if isinstance(base.view_of, UnsureView):
            base.view_of.check()  # nobody else has what it may be a view of
            base.view_of = None
            break
        if base.view_of.write is None:
            raise ValueError(
                f"assignment destination is read-only: {_name(x)} is a view that NumPy does not write{at_line()}; copy it first"
            )
        base = base.view_of.base
    if base.home is None or (CAPTURE.home is None and is_tracing()):
        error = TracerError if is_tracing() and Plain.is_on else TypeError  # the first makes the function that is traced a converted one
        raise error(f"{what} on {x!r}{at_line()}: a traced value cannot be written into; write {indexing.WRITING}")
    if isinstance(base.home, str):
        raise ValueError(f"{_name(base)} is written into{at_line()}, but it is {base.home}; copy it first, or make it a state")
    if base.home is not CAPTURE.home:
        raise ValueError(
            f"{_name(base)} is written into{at_line()}, but it is read from outside the function that is traced; copy it first, or make it "
            "a state"
        )


def _set(x: Variable, value: Variable) -> None:
    """Gives an array, and what it is a view of, another value."""
    if x.view_of is not None:
        view = x.view_of
        assert view.write is not None
        _set(view.base, view.write(view.base, value))
        return
    if FRAMES.stack:
        note((id(x.cell), None), _place_of(x))
    x._hold(value.node)


def _place_of(x: Variable) -> Place:
    """An array as a place that is written. It does not keep the array: one that is gone needs not be taken back."""
    ref, cell = weakref.ref(x), x.cell

    def write(value: Any) -> None:
        array = ref()
        if array is not None:
            array._hold(value.node)

    return Place(cell, _name(x), lambda: Variable(cell[0]), write, Variable(x.node), x.born)


def value_itself(x: Variable) -> Variable:
    """An array's value as one of its own."""
    return Variable(x.node)


def _as_dtype(value: Any, x: Variable) -> Any:
    """A value as it is stored: NumPy casts what is written, whatever is lost."""
    given = as_variable(value)
    if given.type.weak or given.dtype == x.dtype:
        return number_cast(given, x) if given.type.weak else given
    if given.type.kind == "c" and x.type.kind != "c":
        raise TypeError(
            f"complex numbers are written into {_name(x)} ({x.type}){at_line()}, which would lose their imaginary parts; write .real"
        )
    return METHODS["astype"](given, x.type.dtype)


def number_cast(number: Variable, x: Variable) -> Variable:
    """A Python number in the dtype of an array: a float is cut to an integer, as NumPy does."""
    if number.type.kind == "f" and x.type.kind in "iub":
        return METHODS["astype"](number, x.type.dtype)
    return number


def _traced_mask(index: Any) -> Variable | None:
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    if isinstance(index, Variable) and index.type.kind == "b" and indexing.known_mask(index) is None:
        return index
    return None


def _masked(x: Variable, mask: Variable, value: Any) -> Variable:
    """x with the value where the mask holds. ValueError for several values: how many are needed only the run knows."""
    given = as_variable(value)
    if given.ndim:
        raise ValueError(
            f"x[mask] = values{at_line()}: how many values the mask takes only the run knows; write one number, or "
            "x[:] = np.where(mask, other, x)"
        )
    wide = mask[(..., *(None,) * (x.ndim - mask.ndim))]
    return where(wide, _as_dtype(given, x), x)


def changed(x: Any, operator: Callable[[Any, Any], Any], value: Any, name: str = "x += y") -> Any:
    """`x += value` and its like: into an array; for a number, and in the symbolic interface, a new value."""
    if not x.ndim or not Plain.is_on or (x.home is None and not is_tracing()):
        return operator(x, value)
    _check_may_write(x, name)
    result = as_variable(operator(x, value))
    if result.ndim != x.ndim or any(
        a is not None and b is not None and a != b for a, b in zip(result.type.shape, x.type.shape, strict=True)
    ):
        raise ValueError(
            f"non-broadcastable output operand with shape {show_shape(x.type.shape)} doesn't match the broadcast shape "
            f"{show_shape(result.type.shape)}{at_line()}"
        )
    if not np.can_cast(result.dtype, x.dtype, "same_kind"):
        raise TypeError(
            f"{name}: the result has dtype {result.dtype}, and {_name(x)} {x.dtype}{at_line()}; write x = x + y, or "
            f".astype({x.type.dtype!r})"
        )
    written(x, Ellipsis, result)
    return x


def _name(x: Variable) -> str:
    return x.name or x.node.name or "the array"


# views ----------------------------------------------------------------------------------------------------------------


def _view(base: Any, read: Callable[[Any], Any], write: Callable[[Any, Any], Any] | None, result: Any, name: str) -> Any:
    """What a function gives of an array, as a view of it. A number is none."""
    value = Variable(result.node)
    if not result.ndim:
        return value
    value.home = base.home
    if name in ("reshape", "ravel") and not base.is_c:
        value.view_of = UnsureView(value_itself(value), [base], _ORDER)
    else:
        value.is_c = name in ("reshape", "ravel", "expand_dims", "squeeze", "atleast_1d", "atleast_2d", "atleast_3d") and base.is_c
        value.view_of = View(base, read, write)
    return value


def getitem(x: Variable, index: Any) -> Any:
    """x[index]: a view for positions and slices, a copy for arrays of positions."""
    value = indexing.getitem(x, index)
    if x.home is None or not value.ndim or not _is_basic(index):
        return value
    value.home, value.is_c = x.home, x.is_c and _keeps_order(index)
    value.view_of = View(
        x, lambda base: indexing.getitem(base, index), lambda base, new: indexing.set_subtensor(indexing.getitem(base, index), new)
    )
    return value


def _is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is Ellipsis or isinstance(part, slice) or (np.ndim(part) == 0 and not isinstance(part, list)) for part in parts
    )


def _keeps_order(index: Any) -> bool:
    """Whether an index takes what lies together: positions, then at most one slice without a step."""
    parts = index if isinstance(index, tuple) else (index,)
    slices = [k for k, part in enumerate(parts) if isinstance(part, slice)]
    return (
        all(np.ndim(part) == 0 for part in parts) and slices in ([], [len(parts) - 1]) and all(_is_one(parts[k].step) for k in slices)
    )


def _is_one(step: Any) -> bool:
    return step is None or (not isinstance(step, Variable) and bool(step == 1))


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
    "T": lambda base, new: METHODS["transpose"](new),
    "mT": lambda base, new: METHODS["swapaxes"](new, -1, -2),
    "diagonal": None,
    "diag": None,
    "broadcast_to": None,
    "matrix_transpose": lambda base, new: METHODS["swapaxes"](new, -1, -2),
    "permute_dims": _transposed,
    "rollaxis": None,
}
"""How the base looks with other elements in a view of it, by the name of the function that gives the view; None: nobody writes it.
`reshape` and `ravel` are views of what lies in C order, and every traced array does that was not transposed."""


SAME = frozenset(
    {
        "asarray",
        "asanyarray",
        "ascontiguousarray",
        "asfortranarray",
        "broadcast_arrays",
        "split",
        "array_split",
        "hsplit",
        "vsplit",
        "dsplit",
        "unstack",
        "__getitem__",
        "set",
        "inc",
        "__setitem__",
    }
)
"""Functions that see to views themselves: what they give may be what they got, or made of its views."""


Run = Callable[[Any, Any, Any, Any], Any]


def own(name: str, run: Run, ours: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy gives of traced arrays: a view where NumPy gives one, else an array of its own.

    run: calls `ours`, which is our function for NumPy's `func`.
    """
    value = run(ours, func, args, kwargs)
    x = args[0] if args else None
    if x is None and name in VIEWS and any(isinstance(value, Variable) for value in kwargs.values()):
        raise TypeError(f"np.{name}: give the array by its place, not by its name{at_line()}; a view of it is traced so")
    if not isinstance(x, Variable) or x.home is None:
        return value
    if name in VIEWS and isinstance(value, Variable) and not (name == "diag" and x.ndim == 1):
        inverse, rest = VIEWS[name], args[1:]
        write = None if inverse is None else lambda base, new: inverse(base, new, *rest, **kwargs)
        return _view(x, lambda base: run(ours, func, (base, *rest), kwargs), write, value, name)
    return value if name in SAME else _apart(value)


def _apart(value: Any) -> Any:
    """A result that is no view, nor what was given."""
    if isinstance(value, Variable):
        return Variable(value.node) if value.view_of is not None else value
    if type(value) in (tuple, list):
        return type(value)(map(_apart, value))
    return value


METHODS.update({"__getitem__": entry(getitem), "__setitem__": entry(written), "__in_place__": entry(changed), "__own__": entry(own)})
