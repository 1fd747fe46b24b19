"""How many lanes go through a product together, and rows of lanes in blocks of as many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.loops import Expr, Index, Literal, add, compare, floor_div, least, mod, mul, sub
from ..ir.node import Node
from ..types import TensorType
from .card import Card, apply, register
from .dims import dim_node
from .elementwise import compiled
from .lowering import Elementwise, Generate, Indices, Operands, View
from .runtime_attributes import HOLE, SizedCard, filled, not_negative, run_numbers, sized


def lanes_of_block(n: int) -> int:
    """Of 8 to 16, the number whose multiple is n or the least that is more; n where that is less than 8.

    More are no faster, and leave fewer blocks to the threads.

    >>> [lanes_of_block(n) for n in (0, 7, 13, 64, 100, 31, 37, 257)]
    [1, 7, 13, 8, 10, 8, 13, 10]
    """
    size = max(min(n, 8), 1)
    spare = -n % size
    for more in range(9, 17):
        if n > 8 and -n % more < spare:
            size, spare = more, -n % more
    return size


_LANES_OF_BLOCK = compiled(lanes_of_block)


def block_size(n: Node) -> Node:
    """The number of lanes in a block, computed at run time: the same code serves every number of lanes."""
    return apply(BLOCK_SIZE, n)


BLOCK_SIZE = register(
    Card(
        "block_size",
        np.vectorize(lanes_of_block, otypes=["int64"]),
        lambda n: TensorType("int64", (), weak=True),
        Elementwise(lambda *types: ("int64", "int64"), lambda *loop: _LANES_OF_BLOCK),
        samples=lambda: [((np.int64(n),), {}) for n in (0, 1, 254)],
        no_gradient="a number of lanes is an integer",
        folds=False,
    )
)


# rows of lanes as blocks --------------------------------------------------------------------------------------------


def _lanes(numbers: tuple[Any, ...], blocks: Any) -> Any:
    count, size = map(int, filled(blocks, iter(numbers)))
    return np.arange(count * size).reshape(count, size)


def _in_blocks(x: Any, *numbers: Any, blocks: Any) -> Any:
    return x[np.minimum(_lanes(numbers, blocks), len(x) - 1)]


def _spread(x: Any, *numbers: Any, blocks: Any) -> Any:
    rows = _in_blocks(x, *numbers, blocks=blocks)
    rows[_lanes(numbers, blocks) >= len(x)] = 0
    return rows


def _type(x: TensorType, *holes: TensorType, blocks: tuple[Any, ...]) -> TensorType:
    return TensorType(x.dtype, (*(None if one == HOLE else one for one in blocks), *x.shape[1:]))


def _dims(view: Operands) -> Indices:
    blocks: Indices = run_numbers(view, view.attrs["blocks"], 1)
    for number in blocks:
        not_negative(view, number, "blocks of lanes")
    return (*blocks, *view.dims(0)[1:])


def _lane(view: Operands, index: Indices) -> Index:
    return add(mul(index[0], run_numbers(view, view.attrs["blocks"], 1)[1]), index[1])


def _index(view: Operands, index: Indices) -> Indices:
    return (least(_lane(view, index), sub(view.dims(0)[0], 1)), *index[2:])


def _spread_element(view: Operands, index: Indices) -> Expr:
    lane = _lane(view, index)
    zero = Literal(view.types[0].dtype, 0)
    return view.chosen(compare("<", lane, view.dims(0)[0]), lambda: view.at(0, (lane, *index[2:])), lambda: zero)


def _in_blocks_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    """What fills the last block counts for nothing: `from_blocks` drops what comes of it, so its cotangent is 0, or NaN for 0 * inf."""
    return from_blocks(cotangent, dim_node(node.inputs[0], 0)), *(None for _ in node.inputs[1:])


def _samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    return [((np.arange(21.0).reshape(7, 3) / 9,), {"blocks": (3, 3)}), ((np.arange(4.0), 2), {"blocks": (HOLE, 2)})]


LANES_IN_BLOCKS = register(
    SizedCard(
        "lanes_in_blocks",  # as (blocks, lanes of a block, ...); the last lane fills the last block, what comes of that is dropped
        _in_blocks,
        _type,
        View(_dims, _index, repeats=True),
        samples=_samples,
        linear=(0,),
        vjp=_in_blocks_back,
        holder="blocks",
    )
)
LANES_SPREAD = register(
    SizedCard(
        "lanes_spread",  # the same, filled with zeros
        _spread,
        _type,
        Generate(_dims, _spread_element, from_operand=True),
        samples=_samples,
        linear=(0,),
        vjp=lambda node, cotangent: (from_blocks(cotangent, dim_node(node.inputs[0], 0)), *(None for _ in node.inputs[1:])),
        holder="blocks",
    )
)
LANES_OF_BLOCKS = register(
    SizedCard(
        "lanes_of_blocks",  # the lanes of blocks in one axis; the last ones may be left out
        lambda rows, *numbers, lanes: rows.reshape(-1, *rows.shape[2:])[: int(filled(lanes, iter(numbers))[0])],
        lambda rows, *holes, lanes: TensorType(rows.dtype, (None if lanes[0] == HOLE else lanes[0], *rows.shape[2:])),
        View(
            lambda view: (run_numbers(view, view.attrs["lanes"], 1)[0], *view.dims(0)[2:]),
            lambda view, index: (floor_div(index[0], view.dims(0)[1]), mod(index[0], view.dims(0)[1]), *index[1:]),
        ),
        samples=lambda: [
            ((np.arange(24.0).reshape(4, 3, 2) / 9,), {"lanes": (11,)}),
            ((np.arange(4.0).reshape(2, 2), 3), {"lanes": (HOLE,)}),
        ],
        linear=(0,),
        vjp=lambda node, cotangent: (
            sized(LANES_SPREAD, (cotangent,), tuple(dim_node(node.inputs[0], axis) for axis in (0, 1))),
            *(None for _ in node.inputs[1:]),
        ),
        holder="lanes",
    )
)


def in_blocks(x: Node, count: Node, size: Node) -> Node:
    """Lanes (n, ...) as (count, size, ...); count * size is n or more. There is a lane, unless `count` is 0.

    The caller makes sure that `from_blocks` drops the results of the lanes beyond n: their cotangents are taken for 0.
    """
    return sized(LANES_IN_BLOCKS, (x,), (count, size))


def from_blocks(rows: Node, n: Node) -> Node:
    """The n lanes of blocks: of (count, size, ...), whose count * size is n or more."""
    return sized(LANES_OF_BLOCKS, (rows,), (n,))
