"""Alias metadata for arrays in a loop that share no memory: LLVM then vectorises the loop without comparing addresses at run time.

By itself it compares few pairs of addresses, and leaves a loop over more arrays as it is.

An array that the function takes (allocates) shares memory with no other array that lives at the same time, and with no argument; two
arguments may share memory. So each array that is taken has a scope in each innermost loop in which it lives from begin to end. An access
names the scopes of the arrays that it may be in (`alias.scope` in LLVM's reference), and of those that it is not in (`noalias`): two
accesses are apart if one names all of the other's scopes as those that it is not in.

*Relies on*: a local has the memory of one of the arrays that `text.memories` finds, and an array that the loop itself takes has no scope
there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from . import text

MOST = 64  # arrays with scopes in a loop, at most: the lists of scopes grow with the square


class Apart:
    """The scopes of the arrays in an innermost loop.

    memories: by local, the arrays whose memory it may have (`text.memories`). taken: the arrays that the function takes.
    """

    def __init__(self, module: Any, place: str, loop: ast.For, memories: dict[str, frozenset[str]], taken: Iterable[str]) -> None:
        self._module, self._place = module, place
        inside = {one for name in text.names(loop) for one in memories.get(name, ())}
        anew = {text.named(stmt) for stmt in ast.walk(loop)}
        self._arrays = sorted(inside.intersection(taken) - anew)[:MOST]
        self._lists: dict[tuple[str, ...], Any] = {}

    def tell(self, instructions: Iterable[Any], memories: frozenset[str]) -> None:
        """Marks the loads and stores of an array that has the memory of one of these."""
        own = tuple(name for name in self._arrays if name in memories)
        others = tuple(name for name in self._arrays if name not in memories)
        for one in instructions:
            if isinstance(one, ir.LoadInstr | ir.StoreInstr):
                if own and len(own) == len(memories):
                    one.set_metadata("alias.scope", self._list(own))
                if others:
                    one.set_metadata("noalias", self._list(others))

    def _list(self, arrays: tuple[str, ...]) -> Any:
        if arrays not in self._lists:
            domain = self._module.add_metadata([self._place])
            scopes = [self._module.add_metadata([f"{self._place} {name}", domain]) for name in arrays]
            self._lists[arrays] = self._module.add_metadata(scopes)
        return self._lists[arrays]
