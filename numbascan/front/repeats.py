"""Whether a function's trace holds at its next call, or at the next step: not where it changes what it reads from outside.

A function is traced once, and what it changes outside (a counter, a log, a cache) it changes only then. So one that does is traced again,
on what it left. If that gives another graph, the plain function gives another number at each call, and is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from ..ir.digest import digest_of
from ..ir.graph import Graph, free_inputs, substitute
from ..ir.node import Node, constant
from .captures.namespaces import ABSENT, content
from .captures.reachable import LIBRARY_PARTS, Reachable
from .converted.source import is_library_name
from .tracing import PART_OF, describe
from .variable import HOOKS, Variable

Made = TypeVar("Made")
_MUTATING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "fill", "insert", "pop", "popitem", "popleft", "remove"}
    | {"reverse", "rotate", "setdefault", "sort", "update", "set_item", "update_item", "del_item"}
)
"""Methods by which containers change, and functions of converted code that change elements."""
_BY_ANY_NAME = frozenset(
    {"set_attribute", "update_attribute", "del_attribute", "setattr", "delattr", "__setattr__", "__delattr__"}
    | {"__dict__", "vars", "globals", "locals", "exec", "eval"}
)
"""Ways to change attributes and variables whose names the code need not show; the first three are converted code's."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a trace gave: the graph, and what else a caller sees of it (`rest`, compared by ==).

    inputs: made for this trace alone, in an order of their own. arrays: those that it captured, and numbers, by the input that stands for
    each.
    """

    inputs: Sequence[Node]
    outputs: Sequence[Node]
    arrays: Mapping[Node, Any] = field(default_factory=dict)
    rest: Any = None


class _Outer(threading.local):
    """What there was before each function that is traced in this thread, outermost first."""

    def __init__(self) -> None:
        self.witnesses: list[Any] = []


_OUTER = _Outer()


def repeatable(fn: Callable[..., Any], make: Callable[[], tuple[Made, Callable[[], Meaning]]]) -> Made:
    """The result of `make`, which traces `fn`.

    Raises ValueError where `fn` changes something outside and its graph is another one after that, and where it changes what a function
    around it has made: that would see one change, and not one of each step.
    """
    if getattr(fn, PART_OF, None) is not None:  # a branch or body of a converted function: what it changes is carried along
        return make()[0]
    roots = list(_roots(fn))
    before = HOOKS["witness"]((), roots)
    _OUTER.witnesses.append(before)
    try:
        made, meaning = make()
        changes = _written(before, roots)
        if not changes:
            return made
        if len(_OUTER.witnesses) == 1:
            _check_no_traced(roots, changes)
        _check_same_again(roots, changes, make, meaning)
    finally:
        _OUTER.witnesses.pop()
    for record in changes:
        is_made_around = _OUTER.witnesses and not record.is_global and not any(one.knows(record.value) for one in _OUTER.witnesses)
        if is_made_around and _is_replaced(record):
            raise ValueError(
                f"{describe(roots[0])} changes {_place(record)}, which the function around it has made: it is traced once, so that would "
                "see one change and not one of each step; make it a state of the loop"
            )
    return made


def _check_no_traced(roots: Sequence[Any], changes: Sequence[Any]) -> None:
    """ValueError where a number in an object outside is now a traced value, which would stay there. All that can be is given back.

    Not of variables: what a function gives to `nonlocal` and `global` ones its helpers read, and nobody asks for them behind the call.
    """
    left = [record for record in changes if any(_is_traced_now(*pair) for pair in _pairs(record))]
    if left:
        for record in changes:
            record.give_back()
        raise ValueError(
            f"{describe(roots[0])} gives {_place(left[0])}, which it has not made, a value that only the run knows: it would hold no "
            "number; return that value, or change a copy"
        )


def _pairs(record: Any) -> list[tuple[Any, Any]]:
    """What each part of an object was, and is now."""
    parts = record.changed_parts()
    if parts is not None:
        return [] if {*parts} == {record.name} else list(parts.values())
    return list(zip(record.before, record.value, strict=False)) if isinstance(record.value, list) else []


def _is_traced_now(old: Any, new: Any) -> bool:
    return isinstance(new, Variable) and not isinstance(old, Variable) and old is not None and old is not ABSENT


def _check_same_again(
    roots: Sequence[Any], changes: Sequence[Any], make: Callable[[], tuple[Any, Callable[[], Meaning]]], meaning: Callable[[], Meaning]
) -> None:
    """ValueError where `make` gives another graph now. All that can be is given back."""
    left = HOOKS["witness"]((), roots)
    places = ", ".join(sorted({_place(record) for record in changes}))
    refused = ValueError(
        f"{describe(roots[0])} changes {places}, and what it gives depends on that: it is traced once, so later calls and steps would get "
        "what the first got; make it an argument and a result, or a state of the loop"
    )
    try:
        _, meaning_again = make()
    except Exception as error:
        raise refused from error
    finally:
        for record in left.changes():
            record.give_back()
    if not _are_one(meaning(), meaning_again()):
        raise refused


def of_branch(branch: Callable[..., Any], *args: Any, what: str) -> Any:
    """The result of a branch that only the run takes. ValueError where it gives something outside a new value: others would see that."""
    roots = list(_roots(branch))
    before = HOOKS["witness"]((), roots)
    value = branch(*args)
    for record in _written(before, roots):
        if _is_replaced(record):
            raise ValueError(
                f"{what}: {describe(roots[0])} changes {_place(record)}, and only the run knows whether it is taken; return what is to "
                "change, or write if"
            )
    return value


def _is_replaced(record: Any) -> bool:
    """Whether a variable, an attribute or an element of a dict has another value than before, where it had one."""
    return any(old is not None and old is not ABSENT for old, _ in (record.changed_parts() or {}).values())


def _roots(fn: Any) -> Iterator[Any]:
    """The functions of the user's that a function runs: itself, or those that a function of ours calls."""
    seen = set()
    todo = [fn]
    while todo:
        one = todo.pop(0)
        if id(one) in seen or not callable(one) or isinstance(one, (type, Variable)):
            continue
        seen.add(id(one))
        if isinstance(one, FunctionType) and is_library_name(one.__globals__.get("__name__")):
            parts = [content(cell) for cell in one.__closure__ or ()]
            todo += [part for whole in parts for part in (whole if isinstance(whole, (list, tuple)) else [whole])]
        elif str(type(one).__module__).startswith("numbascan"):
            todo += [vars(one).get(part) for part in LIBRARY_PARTS]
        else:
            yield one


class _Writes:
    """What the code of some functions may change: attributes and variables by name, elements of containers.

    Only what it may have changed is its own doing; another thread's is not.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        reached = [Reachable(root) for root in roots]
        self.stored = {name for reach in reached for name in reach.stored}
        called = {name for reach in reached for name in (*reach.attributes, *reach.builtins)}
        self.elements = "[]" in self.stored or not called.isdisjoint(_MUTATING)
        self.any_name = not called.isdisjoint(_BY_ANY_NAME)

    def may_include(self, record: Any) -> bool:
        """Whether the change of an object may be among them."""
        if not record.may_be_given_back:  # an iterator
            return True
        parts = record.changed_parts()
        if parts is None or isinstance(record.value, dict):
            return self.elements
        return self.any_name or not self.stored.isdisjoint(parts)


def _written(before: Any, roots: Sequence[Any]) -> list[Any]:
    """What has changed since a witness looked, and may have been changed by the code of `roots`."""
    changes = before.changes()
    writes = _Writes(roots) if changes else None
    return [record for record in changes if writes is not None and writes.may_include(record)]


def _place(record: Any) -> str:
    """What an error calls a place that was changed."""
    parts = record.changed_parts()
    if parts is None or {*parts} == {record.name}:
        return str(record.label)
    if isinstance(record.value, dict):
        return ", ".join(f"{record.name or 'a dict'}[{key!r}]" for key in parts)
    return ", ".join(f"{record.name or f'an object of {type(record.value).__name__}'}.{name}" for name in sorted(parts))


def _are_one(one: Meaning, other: Meaning) -> bool:
    return one.rest == other.rest and len(one.inputs) == len(other.inputs) and _digests(one, other) == _digests(other, one)


def _digests(one: Meaning, other: Meaning) -> str:
    """A digest of what a trace gave. A large array that both captured is an input; what one of them alone captured is a constant."""
    shared = sorted({id(array) for array in one.arrays.values()} & {id(array) for array in other.arrays.values() if _is_large(array)})
    places = {id(array): node for node, array in one.arrays.items()}
    alone = {node: constant(value, node.type.dtype) for node, value in one.arrays.items() if id(value) not in shared}
    outputs = substitute(one.outputs, alone)
    outside = sorted(
        {*free_inputs(one.outputs), *free_inputs(other.outputs)} - {*one.inputs, *one.arrays, *other.inputs, *other.arrays}, key=_serial
    )
    return digest_of(Graph((*one.inputs, *(places[key] for key in shared), *outside), outputs))


def _is_large(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.size > 1


def _serial(node: Node) -> int:
    return node.serial
