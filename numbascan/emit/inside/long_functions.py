"""What Numba asks of every local in every block of a function, answered without going through all of them for each.

Its own answers take time, and memory, that grow with the square of a function's length: of a kernel of 2,800 lines, 75 s and a gigabyte."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from .shortcuts import LONG_FUNCTIONS as NUMBA

_mentioned: dict[int, tuple[Any, list[Any], set[str]]] = {}  # of blocks, while one function is looked at


def replace(stack: ExitStack) -> None:
    """Has Numba ask this way until the stack is closed."""
    if NUMBA.is_taken():
        stack.enter_context(NUMBA.replaced(compute_live_map=live_map, fixup_var_define_in_scope=define_everywhere))
        stack.enter_context(NUMBA.replaced(_run_block_rewrite=rewritten_blocks, _run_ssa=run_ssa))


def live_map(cfg: Any, blocks: Mapping[int, Any], uses: Mapping[int, set[str]], definitions: Mapping[int, set[str]]) -> dict[int, set[str]]:
    """The locals that must be alive at the entry of each block: read there or later, and defined on some way there."""
    names = sorted(set().union(*uses.values(), *definitions.values()))
    place = {name: k for k, name in enumerate(names)}

    def bits(locals_: set[str]) -> int:
        return sum(1 << place[name] for name in locals_)

    used, defined = ({block: bits(names_of[block]) for block in blocks} for names_of in (uses, definitions))
    order = cfg.topo_order()
    reaching, before = dict.fromkeys(blocks, 0), None
    while before != reaching:
        before = dict(reaching)
        for block in order:
            reaching[block] |= used[block] | defined[block]
            for after, _ in cfg.successors(block):
                reaching[after] |= reaching[block]
    alive, before = dict(used), None
    while before != alive:
        before = dict(alive)
        for block in reversed(order):
            for earlier, _ in cfg.predecessors(block):
                alive[earlier] |= alive[block] & reaching[earlier] & ~defined[earlier]
    return {block: {names[k] for k in _ones(locals_)} for block, locals_ in alive.items()}


def _ones(number: int) -> list[int]:
    """The places of the ones in a number."""
    text = bin(number)[:1:-1]
    places, k = [], text.find("1")
    while k >= 0:
        places.append(k)
        k = text.find("1", k + 1)
    return places


def define_everywhere(blocks: Mapping[int, Any]) -> None:
    """Every local that a function uses is known to every scope of it; there is one scope, as a rule, for thousands of blocks."""
    used = {variable.name: variable for block in blocks.values() for stmt in block.body for variable in stmt.list_vars()}
    for scope in {id(block.scope): block.scope for block in blocks.values()}.values():
        for name, variable in used.items():
            if name not in scope.localvars:
                scope.localvars.define(name, variable)


def rewritten_blocks(blocks: Mapping[int, Any], states: dict[str, Any], handler: Any) -> dict[int, Any]:
    """The blocks with a local's names changed; those that do not mention it stay as they are."""
    name = states["varname"]
    rewritten = dict(blocks)
    for label, block in blocks.items():
        names = _names_in(block)
        if name in names:
            changed = NUMBA._run_block_rewrite({label: block}, states, handler)[label]
            _mentioned[id(changed)] = changed, changed.body, names  # other names of this local are never asked for
            rewritten[label] = changed
    return rewritten


def run_ssa(blocks: Mapping[int, Any]) -> dict[int, Any]:
    """The blocks with one definition for each local."""
    _mentioned.clear()
    try:
        single: dict[int, Any] = NUMBA._run_ssa(blocks)
    finally:
        _mentioned.clear()
    return single


def _names_in(block: Any) -> set[str]:
    """The locals that a block mentions: found once, and again where it was given other statements."""
    known, body, names = _mentioned.get(id(block), (None, [], set()))
    if known is not block or body is not block.body:
        names = {variable.name for stmt in block.body for variable in stmt.list_vars()}
        _mentioned[id(block)] = block, block.body, names
    return names
