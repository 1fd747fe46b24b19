"""What LLVM is told of arrays in a loop that share no memory: then it vectorises the loop without looking at addresses when it runs.

It looks at few pairs, and leaves a loop over more arrays as it is. An array that the function takes shares memory with no other that is
there at the same time, and with no argument; two arguments may share it. So each array that is taken has a scope in each innermost loop
around which it lives. An access tells the scopes of the arrays that it may be in, and those that it is not in (`alias.scope` and `noalias`
in LLVM's reference): two are apart if one tells that it is in none of the other's scopes.

Relied on: a local has the memory of one of the arrays that `text.memories` finds, and an array that a loop takes anew is none of those of
that loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from . import text

MOST = 64  # arrays of a loop that have scopes: lists of them grow with the square


class Apart:
    """The scopes of the arrays in an innermost loop.

    memories: by local, the arrays whose memory it may be (`text.memories`). taken: the arrays that the function takes.
    """

    def __init__(self, module: Any, place: str, loop: ast.For, memories: dict[str, frozenset[str]], taken: Iterable[str]) -> None:
        self._module, self._place = module, place
        inside = {one for name in text.names(loop) for one in memories.get(name, ())}
        anew = {text.named(stmt) for stmt in ast.walk(loop)}
        self._arrays = sorted(inside.intersection(taken) - anew)[:MOST]
        self._lists: dict[tuple[str, ...], Any] = {}

    def tell(self, instructions: Iterable[Any], memories: frozenset[str]) -> None:
        """Marks the loads and stores of an array whose memory is one of these."""
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
