"""ScanSaveMem: which rows of each result any reader can see.

A result of which only the end, or every k-th row, is read costs memory for those rows alone. What the readers may be:
`out[-1]` (Last), `out[-k:]` (Tail), `out[s::k]` (Every), anything else (All).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir.graph import Graph
from ..ir.node import ITEM, Node


@dataclass(frozen=True)
class All:
    pass


@dataclass(frozen=True)
class Last:
    pass


@dataclass(frozen=True)
class LastRows:
    k: int


@dataclass(frozen=True)
class Every:
    start: int
    k: int


Request = All | Last | LastRows | Every


def requests(node: Node, readers: Mapping[Node, Sequence[Node]], outputs: Sequence[Node]) -> list[dict[Node, Request]]:
    """For each result of a Scan node: the nodes that stand for some of its rows, and which rows these are."""
    found: list[dict[Node, Request]] = [{} for _ in node.types]
    sources = [(0, node)] if len(node.types) == 1 else [(int(str(reader.attr("index"))), reader) for reader in set(readers[node])]
    for position, source in sources:
        if len(node.types) > 1 and source.op is not ITEM:
            continue
        for reader in set(readers[source]):
            request = row_request(reader) if reader is not source else All()
            found[position][source if isinstance(request, All) else reader] = request
        if source in outputs:
            found[position][source] = All()
    return found


def row_request(reader: Node) -> Request:
    """Which rows of its operand a node reads."""
    return All()


def split_row_reads(graph: Graph) -> Graph:
    """The graph where a read of some rows of a loop's result, and of some part of these, are two nodes."""
    return graph
