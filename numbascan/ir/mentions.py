"""What statements of the loop tree mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .loops import Alias, Alloc, Apply, Call, Fail, For, If, Index, Let, Load, Return, Stmt, Store, names_in, parts_of, walk
from .names import WORD

_WORD = re.compile(WORD)
_NAME = re.compile(rf"(?<![\w.]){WORD}")


def loads_in(expr: Index) -> Iterator[Load]:
    """The elements of arrays, and the whole arrays, that an expression reads, also as indices of others."""
    if isinstance(expr, Load):
        yield expr
    for part in expr.index if isinstance(expr, Load) else expr.args if isinstance(expr, Apply) else ():
        yield from loads_in(part)


def memory_of(stmts: Iterable[Stmt]) -> dict[str, str]:
    """For each view, and each array that has views: one name for the memory that they share."""
    found: dict[str, str] = {}

    def root(name: str) -> str:
        while found.setdefault(name, name) != name:
            name = found[name]
        return name

    for stmt in walk(stmts):
        if isinstance(stmt, Alias):
            for array in _NAME.findall(stmt.text.text):
                found[root(array)] = root(stmt.name)
    return {name: root(name) for name in list(found)}


def expressions(stmt: Stmt) -> tuple[Index, ...]:
    """The expressions of any statement itself, not of those inside it."""
    if isinstance(stmt, Let | Store):
        return parts_of(stmt)
    if isinstance(stmt, For):
        return stmt.start, stmt.stop
    if isinstance(stmt, If):
        return (stmt.condition,)
    if isinstance(stmt, Alloc):
        return stmt.shape
    if isinstance(stmt, Alias):
        return stmt.args
    return stmt.numbers if isinstance(stmt, Fail) else ()


def mentioned(stmts: Iterable[Stmt]) -> set[str]:
    """Every local and array that statements read, write or make, and those inside them."""
    found: set[str] = set()
    for stmt in walk(stmts):
        for expr in expressions(stmt):
            found.update(name for name, _ in names_in(expr))
        texts: tuple[str, ...] = ()
        if isinstance(stmt, Let | Alloc | For):
            texts = (stmt.name,)
        elif isinstance(stmt, Store):
            texts = (stmt.array,)
        elif isinstance(stmt, Alias):
            texts = (stmt.name, stmt.text.text)
        elif isinstance(stmt, Call):
            texts = stmt.args
        elif isinstance(stmt, Return):
            texts = stmt.names
        found.update(word for text in texts for word in _WORD.findall(text))
    return found
