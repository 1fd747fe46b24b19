"""Loop fusion: neighbouring loops over one range become one loop, with fewer passes over memory.

    # before: for i in …: a[i] = f(i)          # after: for i in …: a[i] = f(i)
    #         for i in …: b[i] = g(a[i])       #                    b[i] = g(a[i])

Allowed if both loops nest equally deep and each touches what the other writes only at the same index, or in other rows.
Not handled:
- loops with calls or views inside
- accumulators that the second loop reads
- shifted ranges
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ...ir.accesses import Access, Effects, Memory, Passes
from ...ir.loops import For, Function, Index, Name, Stmt, mapped, walk, with_blocks, with_values
from ..target import Target


@dataclass(frozen=True)
class _Loops:
    """What the loops of a function do."""

    memory: Memory
    known: dict[int, tuple[For, Effects]] = field(default_factory=dict)  # by the loop's id: a loop that grows is not analysed again

    def effects_of(self, loop: For) -> Effects:
        """The effects of a loop's passes."""
        if id(loop) not in self.known:
            self.known[id(loop)] = loop, self.memory.effects(loop.body)
        return self.known[id(loop)][1]


def fusion(function: Function, target: Target) -> Function:
    """The function with neighbouring loops merged, inside out."""
    return replace(function, body=_fused(function.body, _Loops(Memory(function.body, function.rings))))


def _fused(stmts: Sequence[Stmt], loops: _Loops) -> list[Stmt]:
    result: list[Stmt] = []
    for stmt in stmts:
        merged = _with_one_before(result, stmt, loops) if isinstance(stmt, For) else None
        if merged is None:
            result.append(stmt)
        else:
            result[-len(merged) :] = merged
    return [with_blocks(stmt, lambda block: _fused(block, loops)) for stmt in result]


def _with_one_before(before: Sequence[Stmt], loop: For, loops: _Loops) -> list[Stmt] | None:
    """The last statements with `loop` fused into the last, or into the last but one if these two may change places; None if neither may."""
    last = before[-1] if before else None
    if not isinstance(last, For):
        return None
    merged = _merged(last, loop, loops)
    if merged is not None:
        return [merged]
    other = before[-2] if len(before) > 1 else None
    if not isinstance(other, For) or not _may_change_places(other, last, loops):
        return None
    merged = _merged(other, loop, loops)
    return None if merged is None else [last, merged]


def _may_change_places(first: For, second: For, loops: _Loops) -> bool:
    """True if neither loop touches what the other writes."""
    ours, theirs = (loops.memory.effects([loop]) for loop in (first, second))
    return ours.is_plain and theirs.is_plain and ours.may_change_places(theirs)


def _depth(loop: For) -> int:
    """The depth of a loop nest; 1 for a loop without inner loops."""
    return 1 + max((_depth(stmt) for stmt in loop.body if isinstance(stmt, For)), default=0)


def _merged(first: For, second: For, loops: _Loops) -> For | None:
    """The fused loop; None if fusion could change a value or is not handled."""
    if (first.start, first.stop, first.step) != (second.start, second.stop, second.step):
        return None
    if _depth(first) != _depth(second):  # the deeper one's inner loops would have no partner to fuse with later
        return None
    if _counts_with(second.body, first.name):  # an inner loop would shadow the renamed counter
        return None
    body = [with_values(stmt, lambda expr: _renamed(expr, second.name, first.name)) for stmt in second.body]
    ours, theirs = loops.effects_of(first), loops.memory.effects(body)
    if not (ours.is_plain and theirs.is_plain and _may_interleave(ours, theirs, Passes(first, loops.memory, ours, theirs))):
        return None
    kinds = {first.kind, second.kind}
    kind = first.kind if len(kinds) == 1 else "time" if "time" in kinds else "sequential"
    merged = For(first.name, first.start, first.stop, [*first.body, *body], first.step, kind)
    ours.add(theirs)
    loops.known[id(merged)] = merged, ours
    return merged


def _counts_with(stmts: Sequence[Stmt], name: str) -> bool:
    """True if a loop among the statements has this counter."""
    return any(isinstance(stmt, For) and stmt.name == name for stmt in walk(stmts))


def _may_interleave(first: Effects, second: Effects, passes: Passes) -> bool:
    # an outer scalar that one loop reassigns: fused, the other could see its value after each pass, not after the last
    if not (first.changed <= first.made and second.changed <= second.made):
        return False
    return all(
        _may_meet(one, other, passes)
        for effects, others in ((first, second), (second, first))
        for root in effects.written
        for one, other in product(effects.written[root], others.touched(root))
    )


def _may_meet(one: Access, other: Access, passes: Passes) -> bool:
    """True if both are the same element, another one in each pass, or never one."""
    return (one == other and passes.counter in one.place) or passes.are_apart(one, other)


def _renamed(expr: Index, old: str, new: str) -> Index:
    """The expression with a loop's counter renamed."""
    return mapped(expr, lambda part: Name(part.dtype, new) if isinstance(part, Name) and part.name == old else None)
