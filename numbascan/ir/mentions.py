"""The names that statements of the loop tree mention."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from .loops import Alias, Alloc, Call, For, Index, Let, Load, Return, Stmt, Store, expressions, names_in, parts, walk, with_blocks
from .names import WORD

_WORD = re.compile(WORD)


def loads_in(expr: Index) -> Iterator[Load]:
    """Every Load in an expression, of elements and of whole arrays, those in indices included."""
    return (part for part in parts(expr) if isinstance(part, Load))


def memory_of(stmts: Iterable[Stmt]) -> dict[str, str]:
    """Views and arrays that have views, each with one name for the memory that they share: that of the array behind all views."""
    memory: dict[str, str] = {}

    def root(name: str) -> str:
        while memory.setdefault(name, name) != name:
            name = memory[name]
        return name

    for stmt in walk(stmts):
        if isinstance(stmt, Alias):
            memory[root(stmt.name)] = root(stmt.array)
    return {name: root(name) for name in list(memory)}


def mentioned(stmts: Iterable[Stmt]) -> set[str]:
    """Every local and array that statements, nested ones included, read, write or define."""
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
            texts = (stmt.name, stmt.array)
        elif isinstance(stmt, Call):
            texts = stmt.args
        elif isinstance(stmt, Return):
            texts = stmt.names
        found.update(word for text in texts for word in _WORD.findall(text))
    return found


def mentions_in(stmts: Iterable[Stmt]) -> Counter[str]:
    """The number of `stmts` that mention each name. A nested statement counts only if it is one of `stmts`."""
    return Counter(name for stmt in stmts for name in mentioned([with_blocks(stmt, lambda block: [])]))


def used_by_alone(loop: For, stmts: Iterable[Stmt]) -> list[Alloc | Alias]:
    """The arrays and views, made by one of `stmts` outside a loop, that the loop uses and nothing else does but others of them."""
    inside = {id(stmt) for stmt in walk([loop])}
    outside = [stmt for stmt in stmts if id(stmt) not in inside]
    uses, own = mentions_in(outside), list[Alloc | Alias]()
    for stmt in reversed(outside):
        if isinstance(stmt, Alloc | Alias) and uses[stmt.name] == 1:
            own.insert(0, stmt)
            uses.subtract(mentioned([stmt]))
    return own
