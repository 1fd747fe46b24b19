"""Tracebacks of users' own lines, the refused line last. Every public call that fails ends here.

`NUMBASCAN_TRACEBACK=full` leaves ours in, and so does a fault of ours: a name, an attribute or a key that one of our lines does not find.
"""

from __future__ import annotations

import dis
import functools
import os
from collections.abc import Callable, Collection, Iterable
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

VARIABLE = "NUMBASCAN_TRACEBACK"
BETWEEN = ("numpy/lib/mixins.py", "/contextlib.py", "/functools.py", "concurrent/futures/")
"""Files of others that only pass on what ours call: NumPy's operators, and parts of Python's library."""

REFUSAL = "_is_refusal"
FAULTS = (AssertionError, AttributeError, LookupError, NameError)

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def shorten(error: BaseException) -> None:
    """Takes our frames out of the traceback of an error that leaves a public call, and out of those of its causes.

    To be called as `except Exception as error: shorten(error); raise`: such a `raise` does not add the frame that it stands in.
    """
    if os.environ.get(VARIABLE) == "full" or (not _is_refusal(error) and _is_fault(error)):
        return
    if hasattr(error, "__dict__"):
        error.__dict__[REFUSAL] = True  # for the public call around this one, which does not see who raised it
    seen: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        one = chain.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _of_users(one.__traceback__)
            chain += [one.__cause__, one.__context__]


def entry(f: F) -> F:
    """`f` as a public function, whose errors have the traceback of the caller. Where 0.1 us counts, it calls `shorten` itself."""

    @functools.wraps(f)
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            return f(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    public.__dict__["is_entry"] = True
    return public  # type: ignore[return-value]


def entries(names: dict[str, Any], public: Iterable[str]) -> None:
    """Makes public functions of those that a module defines under these names; `names`: its globals()."""
    made: dict[int, Any] = {}
    for name in public:
        f = names[name]
        if isinstance(f, FunctionType) and f.__module__ == names["__name__"] and not is_entry(f):
            names[name] = made.setdefault(id(f), entry(f))


def with_entries(protocol: Collection[str] = ("__init__",), but: Collection[str] = ()) -> Callable[[C], C]:
    """A decorator: the public methods and properties of a class, and these of Python's protocols, are public calls. `but`: those that
    call `shorten` themselves."""

    def decorated(cls: C) -> C:
        for name, value in list(vars(cls).items()):
            if name in but or (name.startswith("_") and name not in protocol):
                continue
            if isinstance(value, FunctionType):
                setattr(cls, name, entry(value))
            elif isinstance(value, property) and value.fget is not None:
                setattr(cls, name, property(entry(value.fget), value.fset and entry(value.fset), value.fdel, value.__doc__))
        return cls

    return decorated


def is_entry(f: Any) -> bool:
    """True for a function that `entry` made."""
    return bool(getattr(f, "__dict__", {}).get("is_entry"))


def _of_users(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without our frames, and without those of the files in BETWEEN."""
    places = []
    while traceback is not None:
        if not _is_ours(traceback.tb_frame) and not any(part in _file(traceback.tb_frame) for part in BETWEEN):
            places.append(traceback)
        traceback = traceback.tb_next
    shorter: TracebackType | None = None
    for place in reversed(places):
        shorter = TracebackType(shorter, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return shorter


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).split(".")[0] == __package__


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename.replace(os.sep, "/")


def _is_refusal(error: BaseException) -> bool:
    return bool(getattr(error, "__dict__", {}).get(REFUSAL))


def _is_fault(error: BaseException) -> bool:
    """True for one of FAULTS in a line of ours that neither raises an error nor calls anything."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not isinstance(error, FAULTS) or not _is_ours(last.tb_frame):
        return False
    code, place = last.tb_frame.f_code.co_code, last.tb_lasti
    while dis.opname[code[place]] == "CACHE":  # which a call into Python leaves behind it
        place -= 2
    return isinstance(error, AssertionError) or not dis.opname[code[place]].startswith(("RAISE", "RERAISE", "CALL", "PRECALL"))
