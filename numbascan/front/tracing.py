"""Tracing: a Python function is called once, on Variables, and what it did is a graph.

`trace` calls it, `close_over` finds what it used from outside. The context says whether a trace runs and in which mode.
"""

from __future__ import annotations

import inspect
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from numbers import Number
from time import sleep
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from ..errors import GlobalDrawError, TracerBoolError, TracerError
from ..ir.graph import dependents, free_inputs, toposort
from ..ir.node import CONSTANT, INPUT, ITEM, Node, constant_value, named, new_input, next_serial
from ..modes import Mode
from ..ops.card import PLACE, is_library, is_users
from ..ops.dims import DIM
from ..ops.raising import RAISING, is_error
from ..types import TensorType
from .captures.guards import Guards, random_state
from .captures.numbers import Numbers
from .conversion import type_of
from .converted.source import code_that_runs, converted, is_converted
from .protocols import UNCONVERTED, UNREAD, of_object_array
from .tree import OpenList, Structure, classes_in, flattened, opened_lists, paths, unflatten
from .unsupported import given_to_library, holds_traced
from .variable import CAPTURE, HOOKS, Variable, op
from .views import NeedsTracedArrays

PAUSES = (0.01, 0.02, 0.04, 0.08, 0.16)  # seconds, before a function is traced again because another thread may have drawn
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What a traced function gave.

    value: what it returned. mark: every node with a smaller serial was there before. arrays: inputs made for the arrays that it
    captured, and for numbers (with `bind=True` only): whoever calls the graph hands these over. guards: what else it read from outside.
    numbers: those that it computed with.
    """

    value: Any
    mark: int
    arrays: dict[Node, Any] = field(default_factory=dict)
    guards: Guards | None = None
    numbers: Numbers | None = None


class Home:
    """A function that is being traced: the arrays that it makes, and arguments of its own, it may write.

    frozen: what it may not write any more, by id, and why (`front/plain/chosen.py`). rows: of frozen lists that are rows of a table, by
    id, these rows as arrays.
    """

    def __init__(self) -> None:
        self.frozen: dict[int, tuple[Any, str]] = {}
        self.rows: dict[int, tuple[list[Any], Variable]] = {}


_NUMERIC = (Variable, Number, np.ndarray, np.generic)


class Checks:
    """What a function that is traced checks by `assert` and `raise`.

    passed: True, or a traced value that exists only once all checks have held. born: the branch or pass in which the function is traced.
    """

    def __init__(self) -> None:
        self.passed: Any = True
        self.born = CAPTURE.frame

    def behind(self, value: Any, written: Sequence[Variable], fn: Callable[..., Any]) -> Any:
        """A function's result, made to wait for its checks. written: the arguments that it has written; they wait, too."""
        if self.passed is True:
            return value
        leaves, structure = flattened(value)
        if not written and not any(isinstance(leaf, _NUMERIC) for leaf in leaves):
            raise TracerBoolError(
                f"{describe(fn)} has an `assert` or a `raise` that only the run decides, and returns nothing that waits for it; return a "
                "number or an array"
            )
        results = [self._waiting(leaf) if isinstance(leaf, _NUMERIC) else leaf for leaf in leaves]  # before what they view changes
        for array in written:
            array._hold(self._waiting(array).node)
        return unflatten(structure, results)

    def _waiting(self, x: Any) -> Variable:
        return op(RAISING, x, self.passed, error="AssertionError", message="what is checked does not hold")


class _Checking(threading.local):
    """The checks of the function that is traced in this thread."""

    def __init__(self) -> None:
        self.checks: Checks | None = None


CHECKING = _Checking()


def _keep_checks(_: tuple[Any, ...]) -> Callable[[], None]:
    """A function that takes back the checks made from now on, before a second trace."""
    checks = CHECKING.checks
    passed = True if checks is None else checks.passed

    def take_back() -> None:
        if checks is not None:
            checks.passed = passed

    return take_back


@contextmanager
def _checking(checks: Checks | None) -> Iterator[None]:
    """Sets where checks are noted while a function is traced. None: nobody waits for them."""
    outer, CHECKING.checks = CHECKING.checks, checks
    try:
        yield
    finally:
        CHECKING.checks = outer


PART_OF = "part_of"
"""The attribute of a step that is a part of a function: the home of that, whose arrays it writes."""
ITS_OWN = Home()
"""The home of arguments that belong to the function that gets them."""


@contextmanager
def at_home(home: Home | None) -> Iterator[None]:
    """Makes new variables belong to `home`, while a function or a part of one is traced."""
    outer, CAPTURE.home = CAPTURE.home, home
    try:
        yield
    finally:
        CAPTURE.home = outer


def called(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], is_inlined: bool = False) -> Any:
    """The result of a user's function, called within another one, or on variables of a graph. is_inlined: it is a part of the other one."""
    with _checking(CHECKING.checks if is_inlined else None):
        return _run(f, args, kwargs, CAPTURE.home or Home(), CHECKING.checks)


class _Context(threading.local):
    """The traces that run in this thread, outermost first: their marks and modes."""

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.modes: list[Mode] = []
        self.hidden: list[range] = []  # serials of nodes that were made for the other sides of choices


_CONTEXT = _Context()
_ENDED: weakref.WeakSet[Node] = weakref.WeakSet()  # placeholders of traces that are over


def tracing_level() -> int:
    """How many traces run in this thread, one inside the other."""
    return len(_CONTEXT.marks)


def is_tracing() -> bool:
    """Whether a function is being traced in this thread."""
    return bool(_CONTEXT.marks)


def current_mark() -> int:
    """The mark of the innermost trace: nodes with a smaller serial lie outside it. 0 outside every trace."""
    return _CONTEXT.marks[-1] if _CONTEXT.marks else 0


@contextmanager
def hidden(first: int, last: int) -> Iterator[None]:
    """Nodes with these serials, `last` not among them, lie outside no trace: they were made for the other side of a choice.

    What that side reads is not read on this one: a node that both make is one node, as old as the first of them.
    """
    _CONTEXT.hidden.append(range(first, last))
    try:
        yield
    finally:
        _CONTEXT.hidden.pop()


def is_traced_in(mark: int) -> bool:
    """Whether the trace with this mark runs in this thread, or one inside it."""
    return mark in _CONTEXT.marks


def current_mode() -> Mode | None:
    """The mode in which what is traced now will run; None where nobody said."""
    return _CONTEXT.modes[-1] if _CONTEXT.modes else None


@contextmanager
def in_step(fn: Callable[..., Any], scan: str) -> Iterator[None]:
    """Messages about what is traced inside say that it is in the step `fn` of `scan`."""
    outer, PLACE.step = PLACE.step, f"the step {getattr(fn, '__name__', type(fn).__name__)} of {scan}"
    try:
        yield
    finally:
        PLACE.step = outer


@contextmanager
def in_mode(mode: Mode | None) -> Iterator[None]:
    """Inside, code is traced to run in `mode`; None leaves the mode of the outside."""
    if mode is None:
        yield
        return
    _CONTEXT.modes.append(mode)
    try:
        yield
    finally:
        _CONTEXT.modes.pop()


def trace(
    fn: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: dict[str, Any] | None = None,
    *,
    bind: bool = False,
    placeholders: Iterable[Node] = (),
    arrays: dict[Node, Any] | None = None,
    before: Numbers | None = None,
) -> TraceResult:
    """Calls `fn` once on Variables (or nests of them) and gives what it returned, with notes.

    The user's local variables give their names to the nodes they hold. With `bind=True` arrays that `fn` finds outside become inputs
    (`TraceResult.arrays`), and `guards` tells later whether anything it read has changed. `placeholders`: inputs made for this trace
    alone; `refuse_leaked` finds them where they are used later. `arrays`: what an earlier trace of the same function captured; its
    inputs stand for these arrays again. `before`: the numbers of an earlier trace for arguments of this kind.

    Raises TypeError if `fn` draws random numbers while it is traced: they would be frozen.
    """
    leaves, structure = flattened((tuple(arguments), keywords))
    given = [*classes_in(structure), *(leaf for leaf in leaves if not isinstance(leaf, Variable))]  # static arguments among them
    guards = Guards(fn, given) if bind else None
    state, numbers = random_state(guards), Numbers(before)
    mark = next_serial()
    arrays = {} if arrays is None else arrays
    own = list(placeholders)
    _ENDED.difference_update([*own, *arrays])  # a step may be traced again on the same inputs
    home = getattr(fn, PART_OF, None) or Home()
    for leaf in leaves:
        if isinstance(leaf, Variable) and leaf.home is ITS_OWN:
            leaf.home = home
    _CONTEXT.marks.append(mark)
    try:
        with _binding(guards, arrays, numbers), _naming(fn, mark):
            value = _run(fn, arguments, keywords or {}, home)
    except Exception as error:
        explained = _explained(error)  # no name may hold the error itself: it would keep its frames, whose lists are then known elsewhere
        if isinstance(explained or error, TracerError):
            _tell_of_source(explained or error, error)
        if explained is None:
            raise
        raise explained from error
    finally:
        _CONTEXT.marks.pop()
        _ENDED.update([*own, *arrays])
    numbers.before = None
    if random_state(guards) != state:
        raise GlobalDrawError(
            f"{describe(fn)} draws random numbers while it is traced: they would be the same at every step and call; "
            "draw from a nt.random.RandomStream, or before (rng.normal(size=n_steps)) and pass the numbers as a sequence; NumPy's "
            "generators draw in functions that are converted, and as arguments of others. If it was another thread that drew: give that a "
            "generator of its own"
        )
    if guards is not None and (names := [] if guards.hold() else guards.written_arrays()):
        raise ValueError(
            f"{describe(fn)} writes into {names[0] or 'an array'} while it is traced, which is read from outside: it would not at a call; "
            "copy it first, or make it an argument or a state"
        )
    if guards is not None and not guards.hold() and not guards.changed_elsewhere():
        guards = Guards(fn, given)  # what the function itself changed (a list it appends to) is no reason to trace it again
    return TraceResult(value, mark, arrays, guards, numbers)


def _run(fn: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any], home: Home, waits: Checks | None = None) -> Any:
    """A function's result, in its converted form where it has one.

    waits: checks of the function traced around this one, which the result waits for. None: the result waits for this function's own checks.
    """
    if getattr(fn, PART_OF, None) is not None:
        with at_home(home):
            return fn(*arguments, **keywords)
    form = converted(fn)
    if form is fn and not is_converted(fn):
        with at_home(None), _checking(waits):
            return fn(*arguments, **keywords)
    try:
        if waits is not None:
            return _run_converted(fn, form, arguments, keywords, home)
        given = [(leaf, leaf.node) for leaf in flattened((tuple(arguments), dict(keywords)))[0] if isinstance(leaf, Variable)]
        checks = Checks()
        with _checking(checks):
            value = _run_converted(fn, form, arguments, keywords, home)
            return checks.behind(value, [array for array, node in given if array.node is not node], fn)
    except NameError as error:
        if isinstance(error, UnboundLocalError) or "free variable" not in str(error):
            raise
        raise UnboundLocalError(
            f"{error.name} is read{_line_where(error)}, and some way through a choice or a loop that only the run decides leaves it "
            "unbound; give it a value before"
        ) from error


def _run_converted(
    fn: Callable[..., Any], form: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any], home: Home
) -> Any:
    """The result of a function's converted form. It may run again:

    - with all its arrays traced, if it puts a traced value into a NumPy array;
    - with Python's own lists, if it is refused where a loop has kept what it appends to a list as an array.
    """
    code = code_of(fn)
    known = CAPTURE.makes_arrays, CAPTURE.grows, CAPTURE.has_grown
    CAPTURE.makes_arrays = CAPTURE.makes_arrays or code in _WRITERS
    CAPTURE.grows = CAPTURE.grows and code not in _WITHOUT_GROWTH
    taken_back = [keep((fn, arguments, keywords)) for keep in KEPT]
    refused: Exception | None = None  # why it runs again with Python's own lists
    try:
        while True:
            CAPTURE.has_grown = False
            try:
                with at_home(home):
                    value = HOOKS["returned"](form(*arguments, **keywords))
                    if refused is not None:
                        _WITHOUT_GROWTH.add(code)
                    if not CAPTURE.has_grown:
                        return value
                    leaves, structure = flattened(value)
                    value = unflatten(structure, [leaf.closed() if isinstance(leaf, OpenList) else leaf for leaf in leaves])
                    opened_lists(*flattened(value))  # which may refuse one
                    return value
            except Exception as error:
                if not CAPTURE.makes_arrays and (isinstance(error, NeedsTracedArrays) or _asks_for_at(error)):
                    CAPTURE.makes_arrays = True
                    _WRITERS.add(code)
                elif CAPTURE.grows and CAPTURE.has_grown:
                    CAPTURE.grows, refused = False, error
                elif refused is not None and not HOOKS["is_refusal"](refused):
                    raise refused from None  # an error of the program's own, which has nothing to do with its lists
                else:
                    raise
            for take_back in taken_back:
                take_back()
    finally:
        CAPTURE.makes_arrays, CAPTURE.grows, CAPTURE.has_grown = known


def _asks_for_at(error: Exception) -> bool:
    """True if x.at[index] was asked of a NumPy array, which a traced one has."""
    return isinstance(error, AttributeError) and error.name == "at" and isinstance(error.obj, np.ndarray)


KEPT: list[Callable[[tuple[Any, ...]], Callable[[], None]]] = []
"""For what a trace changes besides the graph: (function, arguments, keywords) -> a function that takes the changes back."""
KEPT.append(_keep_checks)
_WRITERS: set[CodeType | None] = set()  # code that writes traced values into arrays that it makes
_WITHOUT_GROWTH: set[CodeType | None] = set()  # code whose lists have to be Python's own


def beside_threads(make: Callable[[], Made]) -> Made:
    """The result of `make`, which traces a function. Calls it again where another thread, as Dask's do, may have drawn meanwhile.

    A function that draws itself does so each time. Not handled: threads that draw all the time.
    """
    is_alone = is_tracing() or threading.active_count() == 1  # the outermost trace sees all draws
    for pause in () if is_alone else PAUSES:
        try:
            return make()
        except GlobalDrawError:
            sleep(pause)
    return make()


def refuse_leaked(nodes: Sequence[Node], where: str) -> None:
    """TracerError if `nodes` use an input of a trace that has ended: nobody will ever give it a value."""
    leaked = [node for node in free_inputs(nodes) if node in _ENDED] if len(_ENDED) else []
    if leaked:
        names = ", ".join(node.name or str(node.type) for node in leaked)
        raise TracerError(
            f"{where} uses {names}, a traced value of a call that has ended (it was kept in a list, an attribute or a global variable); "
            "return the value from the function that has it, and pass the result on as an argument"
        )


_NO_ARRAY = "setting an array element with a sequence."


def _explained(error: Exception) -> TracerError | None:
    """A clear error for NumPy's own where a plain array met a traced value. None for every other error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    users = [k for k, frame in enumerate(frames) if is_users(frame)]
    line = _line_where(error)
    calls = [frame for frame in frames[users[-1] :] if is_library(frame)] if users else []
    if calls and not isinstance(error, TracerError):
        local = calls[0].f_locals
        if holds_traced([*local.values(), getattr(local.get("self"), "__dict__", None)], (Variable,)):
            return TracerError(given_to_library(calls, line))
    if isinstance(error, IndexError) and str(error).startswith(("only integers, slices", "arrays used as indices")):
        return TracerError(
            f"a NumPy array was indexed with what is no index for it{line}; of a traced integer, write nt.take(array, k) or "
            "nt.as_tensor_variable(array)[k], or pass the array in non_sequences; of a traced mask, np.where(mask, value, array)"
        )
    if isinstance(error, TypeError) and str(error).startswith("expected a sequence of integers or a single integer, got '<"):
        return TracerError(f"a NumPy function was given a traced size{line}; write nt.zeros(k), nt.ones(k) or nt.full(k, value)")
    if isinstance(error, ValueError) and (isinstance(error.__cause__, TracerError) or str(error) == _NO_ARRAY):
        return TracerError(
            f"a traced value was to be put into a NumPy array{line}, which holds numbers only; write np.stack([x, y, ...]), or "
            "nt.set_subtensor(nt.as_tensor_variable(array)[k], x) for a new array, x.astype('float64') for np.float64(x), and "
            "nt.random.RandomStream for NumPy's random numbers"
        )
    explanation = of_object_array(error, frames[users[-1] :], line) if users else None
    return None if explanation is None else TracerError(explanation)


def _line_where(error: Exception) -> str:
    """The user's line that raised an error, for messages; "" if there is none."""
    users = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if is_users(frame)]
    return f" ({users[-1][0].f_code.co_filename}, line {users[-1][1]})" if users else ""


def _tell_of_source(explained: Exception, error: Exception) -> None:
    """Lets the message begin with the reason, if the user's function that raised the error was not converted without its source."""
    users = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if is_users(frame)]
    code = users[-1].f_code if users else None
    if code is None or UNCONVERTED.get((code, code.co_filename)) != UNREAD or _NO_SOURCE in str(explained):
        return
    explained.args = (
        f"{_NO_SOURCE} {code.co_name} cannot be read, as of what is typed at the bare prompt, given by `python -c` or made by exec: in a "
        f"file, a notebook or IPython it may run as it stands. Without it: {explained}",
    )


_NO_SOURCE = "the source of"


@contextmanager
def _binding(guards: Guards | None, arrays: dict[Node, Any], numbers: Numbers) -> Iterator[None]:
    """While this runs, arrays and numbers from outside the traced function become inputs of their own instead of constants."""
    if guards is None:
        yield
        return
    known: dict[Any, Node] = {id(array): node for node, array in arrays.items()}
    outer, outer_number = CAPTURE.array, CAPTURE.number

    def new(key: Any, value: Any, type_: TensorType, name: str) -> Node:
        known[key] = new_input(type_, name if name.isidentifier() else None)
        arrays[known[key]] = value  # also keeps it alive, and with it its id
        return known[key]

    def capture(array: np.ndarray) -> Node | None:
        if id(array) in known:
            return known[id(array)]
        if array.size <= 1 or not guards.holds_array(array):
            return None if outer is None else outer(array)
        return new(id(array), array, type_of(array), guards.array_names.get(id(array), ""))

    def capture_number(value: Any, number: Node) -> Node:
        name = guards.numbers.get(id(value))
        if not numbers.is_input(number, name is not None, CAPTURE.is_rule):
            return number
        key: Any = (len(numbers.met),) if name is None else id(value)
        return known[key] if key in known else new(key, constant_value(number) if name is None else value, number.type, name or "")

    outer_outside = CAPTURE.is_outside

    def is_outside(array: np.ndarray) -> bool:
        return guards.holds_array(array) or (outer_outside is not None and outer_outside(array))

    CAPTURE.array, CAPTURE.number, CAPTURE.is_outside = capture, capture_number, is_outside
    try:
        yield
    finally:
        CAPTURE.array, CAPTURE.number, CAPTURE.is_outside = outer, outer_number, outer_outside


@contextmanager
def _naming(fn: Callable[..., Any], mark: int) -> Iterator[None]:
    """While this runs, local variables of `fn` name the nodes that they hold when it returns."""
    codes = {code_of(fn), code_that_runs(converted(inspect.unwrap(fn)))} - {None}
    previous = sys.getprofile()
    if not codes or not (previous is None or inspect.isroutine(previous)):  # a profiler written in C could not be put back
        yield
        return

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code in codes:
            name_nodes(frame.f_locals, mark)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(previous)


def name_nodes(names: dict[str, Any], mark: int) -> None:
    """Names the nodes made since `mark` by the variables that hold them, where they have no name yet."""
    for name, value in names.items():
        if isinstance(value, Variable):
            node = value.cell[0]  # as it was last read: `value.node` may refuse to be read, and here only names are given
            _name(node, name, mark)
            for index, element in _elements(node):
                _name(element, "_".join((name, *map(str, index))), mark)
        elif issubclass(type(value), np.ndarray) and value.dtype == object:  # np.array([x, y]) of traced values
            for index, part in np.ndenumerate(value):
                if isinstance(part, Variable):
                    _name(part.node, "_".join((name, *map(str, index))), mark)


def _elements(node: Node, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    """The numbers of np.array([x, y]), by their places."""
    if node.op.name != "concatenate" or node.number("axis") != 0:
        return
    for k, part in enumerate(node.inputs):
        if part.op.name != "index" or part.type.shape[:1] != (1,) or len(part.inputs) != 1:
            return
        (element,) = part.inputs
        if element.type.shape:
            yield from _elements(element, (*place, k))
        else:
            yield (*place, k), element


def _name(node: Node, name: str, mark: int) -> None:
    if node.serial >= mark:
        named(node, name)


def code_of(fn: Callable[..., Any]) -> CodeType | None:
    """The code that runs when `fn` is called: behind partial, methods, wrappers and callable objects. None for builtins."""
    seen: Any = inspect.unwrap(fn)
    while hasattr(seen, "func") and not hasattr(seen, "__code__"):
        seen = inspect.unwrap(seen.func)
    seen = getattr(seen, "__func__", seen)
    if not hasattr(seen, "__code__"):
        seen = inspect.getattr_static(type(seen), "__call__", None)
    return getattr(seen, "__code__", None)


def describe(fn: Callable[..., Any]) -> str:
    """A function as messages show it: its name, file and line."""
    code = code_of(fn)
    name = getattr(fn, "__name__", type(fn).__name__)
    return f"{name} ({code.co_filename}, line {code.co_firstlineno})" if code is not None else str(name)


Held = list[tuple[list[Any], Structure]]


def held(nests: Sequence[Any]) -> Held:
    """What lists, dicts and objects hold before a function gets them, for `refuse_changed`."""
    return [flattened(nest) for nest in nests]


def refuse_changed(where: str, names: Sequence[str | None], nests: Sequence[Any], before: Held) -> None:
    """ValueError where a traced function has changed what a list, dict or object among its arguments holds.

    What it changed is its own: the caller's, or the next step's, would hold the old.
    """
    for k, (name, nest, (leaves, structure)) in enumerate(zip(names, nests, before, strict=True)):
        now, now_structure = flattened(nest)
        label = name or f"argument_{k}"
        places = [label]
        if now_structure == structure:
            places = [place for place, old, new in zip(paths(structure, label), leaves, now, strict=True) if old is not new]
        if places:
            raise ValueError(
                f"{where} changes what its argument {label} holds ({type(nest).__name__}{f': {places[0]}' if places[0] != label else ''}), "
                f"which outside would stay as it was; change a copy, copy.copy({label}) or copy.deepcopy({label}), and return it"
            )


def parameter_names(fn: Callable[..., Any], count: int) -> list[str]:
    """Names for `count` positional arguments: those of the parameters where they are known, else `arg0`, `arg1`, …"""
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):  # a builtin
        names = []
    return [*names[:count], *(f"arg{k}" for k in range(len(names), count))]


def keywords_in_order(fn: Callable[..., Any], n_positional: int, keywords: Sequence[str], label: str) -> tuple[list[str], list[str]]:
    """The keywords of a call that may go by position, in the order of the signature, and those that go by name only.

    Raises NotImplementedError

    - if a parameter before one of the first was left out: by position it would get the value of another;
    - if a keyword has the name of a positional-only parameter.
    """
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # a builtin
        return [], list(keywords)
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][n_positional:]
    given = [one.name for one in places if one.name in keywords and one.kind is not one.POSITIONAL_ONLY]
    first = [one.name for one in places[: len(given)]]
    if given != first:
        left_out = next(name for name in first if name not in given)
        raise NotImplementedError(
            f"{label} was compiled for {given[-1]} without {left_out}, which stands before it, so that its arguments have no places; give "
            f"{left_out} too, or set it by functools.partial(…, {left_out}=…)"
        )
    if twice := [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY and one.name in keywords]:
        raise NotImplementedError(f"{label} has two arguments called {twice[0]}, by position and by name; rename one of them")
    alone = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.name in keywords]
    return given, [*alone, *(name for name in keywords if name not in (*given, *alone))]


def name_in_module(value: Any) -> str | None:
    """The name under which pickle finds what decorators made of a function; None where something else bears that name, or nothing."""
    holder: Any = sys.modules.get(value.__module__)
    name = str(getattr(inspect.unwrap(value), "__qualname__", ""))
    for part in name.split("."):
        holder = getattr(holder, part, None)
    return name if holder is value else None


def close_over(inputs: Sequence[Node], outputs: Sequence[Node], mark: int = 0, changing: Sequence[Node] = ()) -> list[Node]:
    """What `outputs` use from outside, in the order it is met: free variables, nodes older than `mark`, and constant arrays.

    - `inputs` are inside, and nothing behind them is looked at.
    - Constants of one element are inside: code holds them, while arrays are handed to it.
    - An error is inside, however old: nothing that it is made of says where it is raised.
    - What depends on `changing` (shared variables that every step replaces) is inside, however old.
    - Of a computed value that is only measured, the dimensions are given.
    """
    inside = dependents(outputs, changing)
    seen = {*inputs, *changing}
    outside: list[Node] = []
    stack = list(reversed(outputs))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is CONSTANT:
            if node.type.size != 1:
                outside.append(node)
        elif node not in inside and _is_outer(node, mark) and not is_error(node):
            outside.append(node)
        else:
            stack.extend(reversed(node.inputs))
    return measured(outside, outputs)


def measured(outside: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """`outside`, with the dimensions in the place of computed values that `outputs` only measure."""
    known = set(outside)
    readers: dict[Node, list[Node]] = {node: [] for node in known.difference(outputs) if node.inputs}
    for node in toposort(outputs, stop=known) if readers else ():
        for parent in node.inputs if node not in known else ():
            if parent in readers:
                readers[parent].append(node)
    nodes = [dims if (dims := readers.get(node)) and all(one.op is DIM for one in dims) else [node] for node in outside]
    return list(dict.fromkeys(chain.from_iterable(nodes)))


def _is_outer(node: Node, mark: int) -> bool:
    # an item is one output of its node: where the node is from outside, so is the item, made late or not
    return node.op is INPUT or _is_before(node, mark) or (node.op is ITEM and _is_before(node.inputs[0], mark))


def _is_before(node: Node, mark: int) -> bool:
    return node.serial < mark and not any(node.serial in serials for serials in _CONTEXT.hidden)
