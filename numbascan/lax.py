"""Loops and choices under JAX's names, with JAX's order of arguments: `import numbascan.lax as lax`.

A loop here is an `ns.scan`, a choice an `nt.ifelse`. On arrays they run now, compiled once per function and kind of argument; on traced
values and variables they are part of the graph. All of them have reverse mode.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from keyword import iskeyword
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from .checkpoint import Checkpoint
from .errors import ScanTypeError
from .front.captures.twins import one_of_all, reads_little
from .front.control import ifelse
from .front.derivatives.of_functions import Transformed
from .front.derivatives.of_variables import disconnected_grad
from .front.dynamic_slices import (
    array_of,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from .front.instead_of_jax import advice_for
from .front.numpy.creation import zeros
from .front.numpy.shape_arguments import axis_of, dim, shape_of, sizes_of
from .front.repeats import of_branch
from .front.scan.arguments import Arguments, Options, step_name
from .front.scan.returns import until
from .front.scan.scan import scan as _ns_scan
from .front.scan.trace import StepTracer
from .front.tracing import called, describe, parameter_names
from .front.transforms import Jitted, jit, mode_given_to
from .front.tree import NONE, Structure, flattened, is_record, paths, unflatten
from .front.tree import describe as _shown
from .front.variable import Variable, as_variable, number_as
from .ir.node import constant_value
from .ops.last_state import last_state
from .ops.of_shape import of_shape
from .ops.runtime_attributes import sized
from .ops.shape import ARANGE
from .tracebacks import entries
from .types import TensorType, show_shape

_MOST_STEPS = 2**63 - 1  # n_steps of a loop that only its condition ends
_KEPT = Checkpoint("64MB")  # the states that a while_loop keeps for its gradient; beyond that it computes some again
_RANGE = {"i": "iufc", "f": "fc", "c": "c"}  # the kinds of dtypes that a Python number of a kind may take


# loops ----------------------------------------------------------------------------------------------------------------


def scan(
    f: Callable[..., Any], init: Any, xs: Any = None, length: Any = None, reverse: bool = False, unroll: int | bool = 1
) -> tuple[Any, Any]:
    """`f` over the rows of `xs`, with a carry: `carry, y = f(carry, x)`. Gives the last carry, and the stacked ys.

    Arguments:
        f: takes the carry and one row of `xs`, returns the next carry and what is kept of the step.
        init: the carry at first. The carry keeps its structure, dtypes and shapes; a Python number takes the dtype of the step's result.
        xs: arrays with a leading axis of one length; None: `f` gets None.
        length: the number of steps, where `xs` does not tell it; an int or an integer scalar variable.
        reverse: rows are read from the last to the first; ys stand beside the rows they belong to.
        unroll: taken for JAX's sake: how often a step is written out is decided by the compiler, and no result depends on it.

    Carry, `xs` and ys may be nests of tuples, lists, dicts, named tuples and None. No rows: the carry is `init`, ys have no rows.

    Raises TypeError where the carry changes, with its leaf and both types, ValueError for lengths that differ.

    >>> import numbascan.lax as lax, numpy as np
    >>> total, means = lax.scan(
    ...     lambda s, x: (s + x, (s + x) / 2), 0, np.array([1.0, 2.0, 4.0])
    ... )
    >>> total, means
    (array(7.), array([0.5, 1.5, 3.5]))
    """
    _check_unroll(unroll, "lax.scan")
    return _run(_scanned, (f,), (init, xs, _count(length, "lax.scan: length")), reverse=bool(reverse))


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], init: Any, *, max_steps: Any = None) -> Any:
    """`init` after as many steps of `body` as `cond` holds before. It is asked before the first one, too: there may be none.

    Arguments:
        cond: takes the carry, returns a boolean scalar.
        body: takes the carry, returns the next one, of the same structure, dtypes and shapes.
        init: the carry at first.
        max_steps: the most steps, an int or an integer scalar variable; the loop ends there whatever `cond` says.

    A gradient stores the states of all steps while they fit into 64 MB, then fewer, and computes the others again.

    Raises TypeError where the carry changes, and for a condition that is no boolean scalar.

    >>> import numbascan.lax as lax
    >>> lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (3, 0))
    (array(192), array(6))
    """
    return _run(_while, (body, cond), (init, _count(max_steps, "lax.while_loop: max_steps")))


def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any, *, unroll: int | bool | None = None) -> Any:
    """`init` after `carry = body(i, carry)` for i = lower, …, upper - 1; `init` itself where upper <= lower.

    Arguments:
        lower, upper: integer scalars of one dtype, which i gets; known to the run alone or before.
        body: takes i and the carry, returns the next carry, of the same structure, dtypes and shapes.
        init: the carry at first.
        unroll: taken for JAX's sake; no result depends on it.

    Raises TypeError where the carry changes, and for bounds that are no integers of one dtype.

    >>> import numbascan.lax as lax
    >>> lax.fori_loop(1, 6, lambda i, product: product * i, 1)
    array(120)
    """
    _check_unroll(unroll, "lax.fori_loop")
    return _run(_fori, (body,), (lower, upper, init))


def map(f: Callable[..., Any], xs: Any, batch_size: int | None = None) -> Any:
    """`f` of each row of `xs`, stacked.

    Arguments: f, a function of one row; xs, arrays, or a nest of them, with a leading axis of one length; batch_size, taken for JAX's sake:
    rows go to the SIMD unit and to threads by themselves, and no result depends on it.

    Raises ValueError for lengths that differ, and for a `batch_size` that is no int of 1 or more.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.map(lambda x: {"sum": x.sum()}, np.array([[1.0, 2.0], [3.0, 4.0]]))
    {'sum': array([3., 7.])}
    """
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1):
        raise ValueError(f"lax.map: batch_size is {batch_size!r}; give an int of 1 or more, or leave it out: no result depends on it")
    return _run(_mapped, (f,), (xs,))


def associative_scan(fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The elements up to each place along an axis, combined by `fn`: x[0], fn(x[0], x[1]), fn(fn(x[0], x[1]), x[2]), …

    Arguments:
        fn: takes two nests like `elems`, in which the axis has length 1, and returns one.
        elems: arrays, or a nest of them, of one length along the axis.
        reverse: from the last element to the first.
        axis: along which; negative ones count from the end of the first array.

    The order is that of a loop: where `fn` rounds, last bits may differ from JAX's, and an `fn` that is not associative is computed as
    written.

    Raises TypeError where `fn` changes structure, dtype or shape, ValueError for lengths that differ and for an axis that is not there.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.associative_scan(np.multiply, np.array([2, 3, 4]), reverse=True)
    array([24, 12,  4])
    """
    return _run(_combined, (fn,), (elems,), reverse=bool(reverse), axis=operator.index(axis))


# choices --------------------------------------------------------------------------------------------------------------


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` where `pred` holds, else `false_fun(*operands)`; only the one that is needed is computed.

    Arguments: pred, a scalar, which holds where it is not 0; two functions of the operands that return the same nest, with the same dtypes
    and shapes. A Python number takes the other's dtype.

    Raises TypeError for a `pred` that is no scalar, and where the results differ, with the leaf and both types.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.cond(True, lambda x: np.sqrt(x), lambda x: x * 0, 9.0)
    array(3.)
    """
    return _run(_cond, (true_fun, false_fun), (pred, *operands))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; the first branch below 0, the last one beyond the end. Only that one is computed.

    Arguments: index, an integer scalar; branches, functions of the operands that return the same nest, with the same dtypes and shapes.

    Raises TypeError for an index that is no integer scalar, and where the results differ, ValueError without branches.

    >>> import numbascan.lax as lax
    >>> lax.switch(7, [lambda x: x, lambda x: -x], 2.0)
    array(-2.)
    """
    if not branches:
        raise ValueError("lax.switch: branches is empty; give at least one function")
    return _run(_switched, tuple(branches), (index, *operands))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred` holds, else `on_false`, elementwise.

    Arguments: pred, booleans: a scalar, or of the shape of the others; on_true, on_false, arrays of one dtype and shape.

    Raises TypeError where dtypes or shapes differ: nothing broadcasts, which `np.where` does.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.select(np.array([True, False]), np.array([1, 2]), np.array([10, 20]))
    array([ 1, 20])
    """
    which, a, b = [array_of(x) for x in (pred, on_true, on_false)]
    if a.dtype != b.dtype or not _may_agree(a, b):
        raise TypeError(
            f"lax.select: on_true is {_type(a)}, on_false {_type(b)}; dtype and shape must be the same: write "
            "np.where(pred, on_true, on_false), which makes them so"
        )
    if which.dtype != bool or (which.ndim and not _may_agree(which, a)):
        raise TypeError(
            f"lax.select: pred is {_type(which)}, and the values {_type(a)}; give booleans, one or as many: write pred != 0 for numbers, "
            "np.where for shapes that broadcast"
        )
    return np.where(which, a, b)


def stop_gradient(x: Any) -> Any:
    """`x`, which derivatives take as a constant: no way leads through it.

    Arguments: x, an array, or a nest of tuples, lists, dicts, named tuples and None. Arrays come back as new ones.

    >>> import numbascan as ns, numbascan.lax as lax
    >>> ns.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    array(3.)
    """
    leaves, structure = flattened(x)
    return unflatten(structure, [*builtins.map(_held, leaves)])


def _held(leaf: Any) -> Any:
    held = array_of(leaf)
    if isinstance(held, Variable):
        return disconnected_grad(held)
    return held.copy() if isinstance(leaf, np.ndarray) else leaf


# running sums and their like ------------------------------------------------------------------------------------------


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The sums of the elements up to each place along an axis, in the dtype of `operand`; with `reverse` from each place on.

    Raises TypeError for booleans, AxisError (a ValueError) for an axis that is not there.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.cumsum(np.array([1, 2, 4]), reverse=True)
    array([7, 6, 4])
    """
    return _running("cumsum", lambda x, along: np.cumsum(x, along, x.dtype), operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The products of the elements up to each place along an axis. Arguments and errors as for `cumsum`.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.cumprod(np.array([1, 2, 4]))
    array([1, 2, 8])
    """
    return _running("cumprod", lambda x, along: np.cumprod(x, along, x.dtype), operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The greatest of the elements up to each place along an axis; NaN from a NaN on. Arguments and errors as for `cumsum`.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.cummax(np.array([1, 4, 2]))
    array([1, 4, 4])
    """
    return _running("cummax", np.maximum.accumulate, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The least of the elements up to each place along an axis; NaN from a NaN on. Arguments and errors as for `cumsum`.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.cummin(np.array([2, 1, 4]))
    array([2, 1, 1])
    """
    return _running("cummin", np.minimum.accumulate, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """log(exp(x[0]) + … + exp(x[k])) at each place k along an axis, without overflow. Arguments as for `cumsum`.

    Raises TypeError for anything but real floats.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.cumlogsumexp(np.array([1000.0, 1000.0]))
    array([1000. , 1000.69...])
    """
    if (seen := array_of(operand)).dtype.kind != "f":
        raise TypeError(f"lax.cumlogsumexp: the operand is {_type(seen)}; give real floats, as operand.astype('float64')")
    return associative_scan(np.logaddexp, operand, reverse, axis)


def _running(name: str, function: Callable[[Any, int], Any], operand: Any, axis: int, reverse: bool) -> Any:
    x = array_of(operand)
    if x.dtype.kind == "b":
        raise TypeError(f"lax.{name}: the operand is {_type(x)}; give numbers, as operand.astype('int64')")
    along = axis_of(axis, x.ndim, f"lax.{name}")
    return np.flip(function(np.flip(x, along), along), along) if reverse else function(x, along)


# running now ----------------------------------------------------------------------------------------------------------


class _Program(Transformed):
    """A loop or a choice as a function of its operands, with the user's functions bound, for `ns.jit` to trace."""

    what = "lax"

    def __init__(self, build: Callable[..., Any], functions: tuple[Callable[..., Any], ...], **settings: Any) -> None:
        super().__init__(functions[0], functions=functions)
        self.build, self.settings = build, settings
        own = list(inspect.signature(build).parameters.values())[1:]
        self.__signature__ = inspect.Signature([one for one in own if one.kind is not one.KEYWORD_ONLY])  # names of arguments in messages

    def __call__(self, *operands: Any) -> Any:
        return self.build([*builtins.map(_plain, self.options["functions"])], *operands, **self.settings)


def _run(build: Callable[..., Any], functions: tuple[Callable[..., Any], ...], operands: tuple[Any, ...], **settings: Any) -> Any:
    """The result of `build(functions, *operands)`: variables if an operand is symbolic, else arrays."""
    for function in functions:
        if not callable(function):
            raise TypeError(f"{_NAMES[build]}: {function!r} cannot be called; give a function")
    leaves, _ = flattened(operands)
    if any(isinstance(leaf, Variable) for leaf in leaves):
        return build([*builtins.map(_plain, functions)], *operands, **settings)
    return _compiled(build, functions, settings)(*operands)


def _plain(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, which may be ordinary Python, with copies of its nests: its changes to a list or dict reach no other function."""
    if isinstance(f, (FunctionType, MethodType)):
        return functools.wraps(f)(lambda *args: called(f, _own(args), {}))
    return functools.wraps(f)(lambda *args: f(*_own(args))) if isinstance(f, partial) else f


def _own(nest: Any) -> Any:
    leaves, structure = flattened(nest)
    return unflatten(structure, leaves)


def _compiled(build: Callable[..., Any], functions: tuple[Callable[..., Any], ...], settings: dict[str, Any]) -> Jitted:
    """The code for these functions, kept from earlier calls. The cache keeps functions alive, so only a few that may hold large arrays."""
    known = one_of_all(functions)
    key = build, known, tuple(settings.items())
    if not all(isinstance(function, _KNOWN_BY_IDENTITY) for function in known):
        return _jitted(*key)  # not cached: other objects may be equal and do different things
    is_small = all(one is not function or _is_small(one) for one, function in zip(known, functions, strict=True))  # so are frozen ones
    return (_with_small if is_small else _with_large)(*key)


def _is_small(function: Any) -> bool:
    return isinstance(function, np.ufunc) or (isinstance(function, FunctionType) and reads_little(function))


def _jitted(build: Callable[..., Any], functions: tuple[Callable[..., Any], ...], settings: tuple[tuple[str, Any], ...]) -> Jitted:
    program = _Program(build, functions, **dict(settings))
    compiled: Jitted = jit(program, mode=mode_given_to(functions[0]), name=_NAMES[build])
    return compiled


_KNOWN_BY_IDENTITY = (FunctionType, MethodType, Jitted, np.ufunc, partial)
_with_small, _with_large = lru_cache(maxsize=128)(_jitted), lru_cache(maxsize=8)(_jitted)


# the loops as scans ---------------------------------------------------------------------------------------------------


class _Carry:
    """The carry of a loop, flattened. what, label: the names of the loop and of the carry in messages."""

    def __init__(self, init: Any, what: str, label: str = "carry") -> None:
        leaves, self.structure = flattened(init)
        self.what, self.label = what, label
        self.initial = [as_variable(leaf) for leaf in leaves]

    def nest(self, leaves: Sequence[Variable]) -> Any:
        return unflatten(self.structure, leaves)

    def checked(self, new: Any, before: Sequence[Variable], f: Callable[..., Any]) -> list[Variable]:
        """The leaves of the carry that `f` returned. ScanTypeError unless structure, dtypes and shapes are those of the one before."""
        leaves, structure = flattened(new)
        _check_structure(self.structure, structure, f"{self.what}: {self.label}", f"{describe(f)} returns")
        after = [as_variable(leaf) for leaf in leaves]
        if any(was.dtype != now.dtype and _follows(was, now) for was, now in zip(before, after, strict=True)):
            # the step is traced again, with that number in the dtype of the result: others may be of their dtype then
            after = [number_as(now, was.type.dtype) if _follows(now, was) else now for was, now in zip(before, after, strict=True)]
        for label, was, now in zip(_labels(self.structure, self.label), before, after, strict=True):
            if not _may_agree(was, now) or (was.dtype != now.dtype and not _follows(was, now)):
                raise ScanTypeError(
                    f"{self.what}: {label} is {was.type.strong()}, but {describe(f)} returns {now.type.strong()}{_line(now)}; dtype and "
                    f"shape must stay the same: write {_remedy(was, now)}"
                )
        return after

    def last(self, rows: Sequence[Variable], n_steps: Any) -> Any:
        """The carry after the last step; the initial one if there was no step."""
        if isinstance(n_steps, int) and n_steps > 0:
            return self.nest([row[-1] for row in rows])
        pairs = zip(self.first(rows), rows, strict=True)
        return self.nest([Variable(last_state(first.node, row.node)) for first, row in pairs])

    def first(self, rows: Sequence[Variable]) -> list[Variable]:
        """The initial leaves, Python numbers in the dtypes of `rows`."""
        return [number_as(x, row.type.dtype) if x.type.weak else x for x, row in zip(self.initial, rows, strict=True)]

    def settle(self, step: Callable[..., Any]) -> None:
        """Gives Python numbers the dtypes that they take in a loop of `step`."""
        if any(x.type.weak for x in self.initial):
            tracer = StepTracer(step, Arguments(None, self.initial, None), self.initial, Options(name=step.__name__, in_graph=True))
            groups = [group for group in tracer.run().states if group is not None]
            self.initial = self.first([Variable(leaf.outer) for group in groups for leaf in group.leaves])


def _named(step: Callable[..., Any], f: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """`step`, which calls `f`, with the name of `f` and these argument names, which messages and generated code show."""
    is_clear = len(set(names)) == len(names) and all(name.isidentifier() and not iskeyword(name) for name in names)
    labels = names if is_clear else [f"arg{k}" for k in range(len(names))]
    signature = inspect.Signature([inspect.Parameter(label, inspect.Parameter.POSITIONAL_ONLY) for label in labels])
    vars(step).update(__wrapped__=f, __signature__=signature)
    step.__name__ = step_name(f)
    return step


def _looped(step: Callable[..., Any], outputs_info: list[Any], n_steps: Any, **options: Any) -> list[Any]:
    """The rows of all results."""
    options |= {"name": step.__name__, "return_list": True, "return_updates": False}
    rows: list[Any] = _ns_scan(step, outputs_info=outputs_info, n_steps=as_variable(n_steps), **options)
    return rows


def _scanned(functions: Sequence[Callable[..., Any]], init: Any, xs: Any, length: Any, *, reverse: bool) -> tuple[Any, Any]:
    (f,) = functions

    def call(carry: Any, x: Any) -> tuple[Any, Any]:
        pair = f(carry, x)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"lax.scan: {describe(f)} returns {_shown(flattened(pair)[1])}; return a pair, as (carry, y), with None for no y"
            )
        return pair[0], pair[1]

    return _over_rows(call, f, _Carry(init, "lax.scan"), xs, length, parameter_names(f, 2), reverse)


def _mapped(functions: Sequence[Callable[..., Any]], xs: Any) -> Any:
    (f,) = functions
    return _over_rows(lambda _, x: (None, f(x)), f, _Carry(None, "lax.map"), xs, None, ["", *parameter_names(f, 1)], False)[1]


def _over_rows(
    call: Callable[..., Any], f: Callable[..., Any], carry: _Carry, xs: Any, length: Any, names: Sequence[str], reverse: bool
) -> tuple[Any, Any]:
    leaves, structure = flattened(xs)
    sequences = _of_one_length([as_variable(leaf) for leaf in leaves], list(_labels(structure, "xs")), 0, length, carry.what)
    n_steps = dim(sequences[0], 0) if sequences else length
    returned: list[Structure] = []

    def step(*parts: Variable) -> list[Any]:
        rows, before = parts[: len(sequences)], parts[len(sequences) :]
        after, y = call(carry.nest(before), unflatten(structure, rows))
        kept, nest = flattened(y)
        returned.append(nest)
        # a dict: a tuple of one might be taken for updates, a list of numbers for an array
        return [*carry.checked(after, before, f), {"y": tuple([as_variable(leaf) for leaf in kept])}]

    named = _named(step, f, [*paths(structure, names[1]), *paths(carry.structure, names[0])])
    *states, ys = _looped(named, [*carry.initial, None], n_steps, sequences=sequences, go_backwards=reverse)
    return carry.last(states, n_steps), unflatten(returned[-1], [y[::-1] if reverse else y for y in ys["y"]])


def _while(functions: Sequence[Callable[..., Any]], init: Any, max_steps: Any) -> Any:
    body, cond = functions
    carry = _Carry(init, "lax.while_loop")
    if not carry.initial:
        return _of_nothing(cond, carry, max_steps)

    def goes_on(leaves: Sequence[Variable]) -> Variable:
        condition = as_variable(cond(carry.nest(leaves)))
        if condition.ndim or condition.type.kind != "b":
            raise TypeError(
                f"lax.while_loop: cond {describe(cond)} returns {condition.type.strong()}{_line(condition)}; a boolean scalar is needed: "
                "write a comparison, with .all() or .any() of an array"
            )
        return condition

    def step(*before: Variable) -> list[Any]:
        after = carry.checked(body(carry.nest(before)), before, body)
        return [*after, until(np.logical_not(goes_on(after)))]

    named = _named(step, body, paths(carry.structure, *parameter_names(body, 1)))
    carry.settle(named)  # before the first condition is asked
    most = _MOST_STEPS if max_steps is None else as_variable(max_steps).astype("int64")
    n_steps = np.where(goes_on(carry.initial), most, 0)
    return carry.last(_looped(named, carry.initial, n_steps, checkpoint=_KEPT), None)


def _of_nothing(cond: Callable[..., Any], carry: _Carry, max_steps: Any) -> Any:
    """The result of a loop whose carry has no arrays. ValueError without `max_steps`, unless the condition is known to be false.

    No step can change what the condition sees.
    """
    nest = carry.nest([])
    holds = constant_value(as_variable(cond(nest)).node)
    if max_steps is None and (holds is None or holds):
        raise ValueError(
            f"lax.while_loop: init is {_shown(carry.structure)}, without an array that a step could change: the loop would not end where "
            f"cond {describe(cond)} holds; give an array, or max_steps=1"
        )
    return nest


def _fori(functions: Sequence[Callable[..., Any]], lower: Any, upper: Any, init: Any) -> Any:
    (body,) = functions
    carry = _Carry(init, "lax.fori_loop")
    start, stop = _bounds(lower, upper)
    wide = "uint64" if start.type.dtype == "uint64" else "int64"  # where narrower ones would wrap
    n_steps: Any = np.where(stop > start, stop.astype(wide) - start.astype(wide), 0).astype("int64")
    known = constant_value(n_steps.node)
    counter = sized(ARANGE, (start.node, number_as(as_variable(1), start.type.dtype).node), (n_steps.node,), dtype=start.type.dtype)
    indices = Variable(counter)  # made where a step reads it

    def step(i: Variable, *before: Variable) -> list[Variable]:
        return carry.checked(body(i, carry.nest(before)), before, body)

    names = parameter_names(body, 2)
    named = _named(step, body, [names[0], *paths(carry.structure, names[1])])
    rows = _looped(named, carry.initial, n_steps, sequences=[indices])
    return carry.last(rows, None if known is None else int(known))


def _bounds(lower: Any, upper: Any) -> tuple[Variable, Variable]:
    """The bounds, in one dtype; a Python int takes that of the other."""
    bounds = [as_variable(lower), as_variable(upper)]
    for bound, other in (bounds, bounds[::-1]):
        if bound.ndim or bound.type.kind not in "iu":
            raise TypeError(f"lax.fori_loop: a bound is {bound.type.strong()}; give integer scalars, as bound.astype('int64')")
        if bound.dtype != other.dtype and not (bound.type.weak or other.type.weak):
            raise TypeError(
                f"lax.fori_loop: lower is {bound.type}, upper {other.type}; the bounds must have one dtype: write "
                f"upper.astype({bound.dtype.name!r})"
            )
    dtype = next((bound.type.dtype for bound in bounds if not bound.type.weak), "int64")
    start, stop = [number_as(bound, dtype) if bound.type.weak else bound for bound in bounds]
    return start, stop


def _combined(functions: Sequence[Callable[..., Any]], elems: Any, *, reverse: bool, axis: int) -> Any:
    (fn,) = functions
    leaves, structure = flattened(elems)
    if not leaves:
        raise ValueError("lax.associative_scan: elems holds no array; give at least one")
    arrays = [as_variable(leaf) for leaf in leaves]
    along = axis_of(axis, arrays[0].ndim, "lax.associative_scan")
    arrays = _of_one_length(arrays, list(_labels(structure, "elems")), along, None, "lax.associative_scan")
    forward: list[Any] = [np.moveaxis(x, along, 0) for x in arrays]  # type: ignore[type-var]  # a Variable takes NumPy's functions
    rows = [row[::-1] for row in forward] if reverse else forward
    carry = _Carry(unflatten(structure, [_first_row(row) for row in rows]), "lax.associative_scan", "elems")

    def step(*parts: Variable) -> list[Variable]:
        whole: list[Any] = [np.expand_dims(part, along) for part in parts]
        other, one = whole[: len(rows)], whole[len(rows) :]
        return [x[(slice(None),) * along + (0,)] for x in carry.checked(fn(carry.nest(one), carry.nest(other)), one, fn)]

    names = parameter_names(fn, 2)
    named = _named(step, fn, [label for name in (names[1], names[0]) for label in paths(structure, name)])
    n_steps = np.maximum(dim(rows[0], 0) - 1, 0)
    later = _looped(named, carry.initial, n_steps, sequences=[row[1:] for row in rows])
    results: list[Any] = [np.concatenate([row[:1], rest]) for row, rest in zip(rows, later, strict=True)]
    return unflatten(structure, [np.moveaxis(x[::-1] if reverse else x, 0, along) for x in results])


def _first_row(rows: Any) -> Any:
    """The first row; zeros if there is none, since no step reads them then."""
    if isinstance(dim(rows, 0), int) and dim(rows, 0) > 0:
        return rows[0]
    return np.concatenate([rows[:1], zeros((1, *shape_of(rows)[1:]), rows.type.dtype)])[0]


def _of_one_length(arrays: Sequence[Variable], labels: Sequence[str], axis: int, length: Any, what: str) -> list[Variable]:
    """The arrays, which must have one length along an axis: `length`, else that of the first. ValueError now if known, else at the run."""
    if not arrays and length is None:
        raise ValueError(
            f"{what}: xs holds no array, so the number of steps is not known; give xs" + (", or length=100" if what == "lax.scan" else "")
        )
    for x, label in zip(arrays, labels, strict=True):
        if not x.ndim > axis:
            raise ValueError(f"{what}: {label} is {x.type.strong()}, without axis {axis} to run over; give an array that has it")
    shapes = [shape_of(x) for x in arrays]
    common = shapes[0][axis] if length is None else length
    wanted = [sizes_of((*shape[:axis], common, *shape[axis + 1 :]), "length") for shape in shapes]
    parts = zip(arrays, wanted, labels, strict=True)
    return [Variable(of_shape(x.node, sizes, f"{what}: {label}")) for x, sizes, label in parts]


# the choices ----------------------------------------------------------------------------------------------------------


class _Branches:
    """Functions of the same operands, one of which is called. Their results are checked against those traced before."""

    def __init__(self, what: str, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> None:
        self.what, self.functions, self.operands = what, functions, operands
        self.first: Callable[..., Any] | None = None
        self.structure: Structure = NONE
        self.known: list[Variable] = []

    def results(self, k: int) -> list[Variable]:
        """The leaves of the result of branch k. ScanTypeError unless structure, dtypes and shapes are those of the branch traced first."""
        f = self.functions[k]
        leaves, structure = flattened(of_branch(f, *self.operands, what=self.what))
        values = [as_variable(leaf) for leaf in leaves]
        if self.first is None:
            self.first, self.structure, self.known = f, structure, values
            return values
        _check_structure(self.structure, structure, f"{self.what}: the result of {describe(self.first)}", f"{describe(f)} returns")
        for label, a, b in zip(_labels(structure, "result"), self.known, values, strict=True):
            is_one = a.dtype == b.dtype or (a.type.weak != b.type.weak and (_follows(a, b) or _follows(b, a)))
            if not is_one or not _may_agree(a, b):
                raise ScanTypeError(
                    f"{self.what}: {label} is {a.type.strong()} from {describe(self.first)}, but {b.type.strong()} from "
                    f"{describe(f)}{_line(b)}; dtype and shape must be the same: write {_remedy(a, b)}"
                )
        self.known = [b if a.type.weak else a for a, b in zip(self.known, values, strict=True)]
        return values

    def nest(self, leaves: Sequence[Variable]) -> Any:
        return unflatten(self.structure, leaves)


def _cond(functions: Sequence[Callable[..., Any]], pred: Any, *operands: Any) -> Any:
    which = as_variable(pred)
    if which.ndim:
        raise TypeError(
            f"lax.cond: pred is {which.type}; a scalar is needed: write pred.all() or pred.any(), or lax.select(pred, …) for a choice at "
            "each element"
        )
    branches = _Branches("lax.cond", functions, operands)
    return branches.nest(ifelse(which, lambda: branches.results(0), lambda: branches.results(1)))


def _switched(functions: Sequence[Callable[..., Any]], index: Any, *operands: Any) -> Any:
    place = as_variable(index)
    if place.ndim or place.type.kind not in "iu":
        raise TypeError(f"lax.switch: index is {place.type.strong()}; give an integer scalar, as index.astype('int64')")
    branches = _Branches("lax.switch", functions, operands)

    def chosen(first: int, last: int) -> list[Variable]:
        if first == last:
            return branches.results(first)
        middle = (first + last) // 2  # by halves: each nested choice is a nested graph, so depth must be logarithmic
        leaves: list[Variable] = ifelse(place <= middle, lambda: chosen(first, middle), lambda: chosen(middle + 1, last))
        return leaves

    return branches.nest(chosen(0, len(functions) - 1))


_NAMES: dict[Callable[..., Any], str] = {
    _scanned: "lax.scan",
    _while: "lax.while_loop",
    _fori: "lax.fori_loop",
    _mapped: "lax.map",
    _combined: "lax.associative_scan",
    _cond: "lax.cond",
    _switched: "lax.switch",
}


# arguments and messages -----------------------------------------------------------------------------------------------


def _count(value: Any, where: str) -> Any:
    """A number of steps, or None. ValueError for anything else."""
    if value is None:
        return value
    seen = array_of(value)
    if seen.ndim or seen.dtype.kind not in "iu" or (not isinstance(seen, Variable) and seen < 0):
        raise ValueError(f"{where} is {value!r}; give an int of 0 or more, or an integer scalar variable")
    return value


def _check_unroll(unroll: Any, what: str) -> None:
    if unroll is not None and (not isinstance(unroll, int | np.integer) or (unroll < 1 and unroll is not False)):
        raise ValueError(f"{what}: unroll is {unroll!r}; give a bool or an int of 1 or more, or leave it out: no result depends on it")


def _type(x: Any) -> TensorType:
    return as_variable(x).type.strong()


def _may_agree(a: Any, b: Any) -> bool:
    """True if two values have one shape, as far as it is known."""
    one, other = _type(a).shape, _type(b).shape
    return len(one) == len(other) and all(x is None or y is None or x == y for x, y in zip(one, other, strict=True))


def _follows(number: Variable, other: Variable) -> bool:
    """True if `number` is a Python number whose kind the dtype of `other` holds."""
    return number.type.weak and other.type.kind in _RANGE.get(number.type.kind, "")


def _children(structure: Structure, label: str) -> Iterator[tuple[str, Structure]]:
    """The parts of a nest, each with the Python expression that reaches it."""
    assert not isinstance(structure, str)
    cls, keys, children = structure
    fields = keys if is_record(cls) else getattr(cls, "_fields", None)
    names = [f".{field}" for field in fields] if fields else [f"[{key!r}]" for key in keys or range(len(children))]
    return zip([label + name for name in names], children, strict=True)


def _labels(structure: Structure, label: str) -> Iterator[str]:
    """The Python expression that reaches each leaf, as `carry['a'][0]`."""
    if not isinstance(structure, str):
        for name, child in _children(structure, label):
            yield from _labels(child, name)
    elif structure != NONE:
        yield label


def _check_structure(known: Structure, seen: Structure, label: str, whose: str) -> None:
    """ScanTypeError if two structures differ, with the first place where they do."""
    if not isinstance(known, str) and not isinstance(seen, str):
        same_class, same_keys = known[0] is seen[0], tuple(known[1] or ()) == tuple(seen[1] or ())
        if same_class and same_keys and len(known[2]) == len(seen[2]):
            for (name, one), other in zip(_children(known, label), seen[2], strict=True):
                _check_structure(one, other, name, whose)
            return
    if known != seen:
        raise ScanTypeError(f"{label} is {_shown(known)}, but {whose} {_shown(seen)} there; the structure must be the same")


def _line(value: Variable) -> str:
    origin = value.node.origin
    return f" ({origin[0]}, line {origin[1]})" if origin else ""


def _remedy(was: Variable, now: Variable) -> str:
    if not _may_agree(was, now):
        return f"a result of shape {show_shape(was.type.shape)}"
    return f"result.astype({was.type.dtype!r}), or .astype({now.type.dtype!r}) where it comes from"


__all__ = [
    "associative_scan",
    "cond",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "fori_loop",
    "map",
    "scan",
    "select",
    "stop_gradient",
    "switch",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # asked for by Python and by tools
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"numbascan.lax has no {name!r}; {advice_for(name)}")


entries(globals(), __all__)
