"""Static arguments of `ns.jit`: Python objects that a function gets unchanged. It is traced anew for each value."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .tree import Static
from .variable import Variable

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Statics:
    """The static arguments of a function, by position and by name."""

    positions: frozenset[int]
    names: frozenset[str]

    def marked(self, args: tuple[Any, ...], keywords: dict[str, Any], label: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, static ones as parts of the structure. ValueError for one that is traced or has no hash."""
        marked = [_marked(value, f"{label}: static argument {k}") if k in self.positions else value for k, value in enumerate(args)]
        named = {
            name: _marked(value, f"{label}: static argument {name!r}") if name in self.names else value for name, value in keywords.items()
        }
        return tuple(marked), named

    def behind_self(self) -> Statics:
        """The same for the bound method: `self` is argument 0 of the function."""
        return Statics(frozenset(k - 1 for k in self.positions if k), self.names)


def _marked(value: Any, where: str) -> Static:
    if isinstance(value, Static):
        return value
    if isinstance(value, Variable):
        raise ValueError(f"{where} is traced ({value!r}), but a static argument must be a plain value; leave it out of the static ones")
    try:
        return Static(value)
    except TypeError:
        raise ValueError(
            f"{where} is {value!r} ({type(value).__name__}), which has no hash; give what cannot change, as a tuple for a list, or leave "
            "it out of the static ones"
        ) from None


def statics_of(f: Callable[..., Any], argnums: Any, argnames: Any, label: str) -> Statics:
    """The static arguments of `f`, by numbers and names. If only one of these is given, the signature supplies the other.

    Raises TypeError for anything but numbers and names, ValueError for those of no parameter.
    """
    numbers, names = _numbers(argnums, label), _names(argnames, label)
    try:
        parameters = list(
            inspect.signature(getattr(f, "__func__", f) if isinstance(f, (classmethod, staticmethod)) else f).parameters.values()
        )
    except (TypeError, ValueError):  # a builtin
        parameters = []
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    kinds = {parameter.kind for parameter in parameters}
    if parameters and inspect.Parameter.VAR_POSITIONAL not in kinds:
        for k in numbers:
            if not -len(positional) <= k < len(positional):
                raise ValueError(f"{label}: static_argnums has {k}, but the function takes {len(positional)} positional arguments")
    if parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
        known = [one.name for one in parameters if one.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)]
        for name in names:
            if name not in known:
                raise ValueError(f"{label}: static_argnames has {name!r}, but the arguments of the function are {', '.join(known)}")
    positions = {k + len(positional) if k < 0 else k for k in numbers}
    if min(positions, default=0) < 0:
        raise ValueError(f"{label}: static_argnums has {min(numbers)}, but it is not known how many arguments the function takes")
    if argnames is None:
        by_name = (one.name for k, one in enumerate(positional) if k in positions and one.kind is not inspect.Parameter.POSITIONAL_ONLY)
        names = [*names, *by_name]
    if argnums is None:
        positions |= {k for k, one in enumerate(positional) if one.name in names}
    return Statics(frozenset(positions), frozenset(names))


def _numbers(argnums: Any, label: str) -> list[int]:
    listed = [] if argnums is None else list(argnums) if isinstance(argnums, Iterable) else [argnums]
    try:
        return [operator.index(number) for number in listed]
    except TypeError:
        raise TypeError(f"{label}: static_argnums is {argnums!r}; give an int or a tuple of ints") from None


def _names(argnames: Any, label: str) -> list[str]:
    listed = [] if argnames is None else list(argnames) if isinstance(argnames, Iterable) and not isinstance(argnames, str) else [argnames]
    if not all(isinstance(name, str) for name in listed):
        raise TypeError(f"{label}: static_argnames is {argnames!r}; give a name or a tuple of names")
    return listed
