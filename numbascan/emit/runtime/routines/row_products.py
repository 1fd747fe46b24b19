"""Matrix products whose rows have the same bits whatever the other rows are, for njit.

BLAS picks its kernel by the shape, so a row of a product may have other bits among 8 rows than among 100. Here each element is the
sequence `total = fma(a[i, k], w[k, j], total)` for k = 0, 1, … from total = 0, in every tile. All NaNs have the same bits.

A product of a single row and a large matrix reads the matrix row by row, in the order of memory: 0.6 to 0.8 of the time of tiles. All
other products go in tiles.

A tile is a few rows times a few vectors of columns; its sums stay in registers over DEPTH values of k. What does not fill a tile is
computed twice, which needs no code of its own: a tile repeats the last row, and its last vector of columns overlaps the one before.

Vectors are written out here. LLVM's vectoriser would find them, too, but only of 32 bytes on Intel's processors, half of what BLAS uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ...inside.compiling import CACHE_LINE, ROUTINES
from ...inside.module_functions import called
from ...inside.vector_forms import has_fma

ROWS, DEPTH = 128, 128  # rows and columns of a in a block: the part of w that its tiles share fits into the first cache
COPIED_ROWS = 16  # rows of a above which that part is copied: with rows of 4096 bytes a column of w maps to few sets of a cache
FLAT_ROWS = 4  # rows of a up to which tiles of two rows are faster
CACHE = 1 << 15  # bytes of w above which a single row reads it row by row, and keeps its sums in memory
STREAMS = 8  # rows of w at a time
_IN_PYTHON = bool(vars(config)["DISABLE_JIT"])
_NUMBER, _PLACE = ir.IntType(64), ir.IntType(32)
_built: Any = intrinsic  # untyped: the first argument of an intrinsic is Numba's


def _features(context: Any) -> list[str]:
    """The features of the processor, such as "+avx2"."""
    return context.codegen().magic_tuple()[2].split(",")


def _is_x86(context: Any) -> bool:
    return context.codegen().magic_tuple()[0].startswith(("x86_64", "i686"))


def _lanes(context: Any, dtype: Any) -> int:
    """The numbers that a vector register holds. Only the speed depends on it: LLVM splits vectors that are too long."""
    features = _features(context)
    size = 64 if "+avx512f" in features else 32 if "+avx" in features else 16
    return size * 8 // dtype.bitwidth


def _sums(context: Any) -> int:
    """The vectors of sums that stay in registers: 16 of 32 registers, or 12 of 16."""
    return 12 if _is_x86(context) and "+avx512f" not in _features(context) else 16


def _is_matrix(x: Any, dtype: Any) -> bool:
    return isinstance(x, types.Array) and x.ndim == 2 and x.layout == "C" and x.aligned and x.dtype == dtype


@_built
def _lanes_of(typing: Any, x: Any) -> Any:
    """The elements of x that a vector register holds."""
    return types.intp(x), lambda context, builder, signature, args: _NUMBER(_lanes(context, x.dtype))


def _tiles(rows: int, vectors: int, part: int = 1) -> Any:
    """A function that computes the rows of out from `top` to `bottom`, in the columns of one tile from j on.

    rows, vectors: the rows of a tile, and its vectors of columns. part: a vector is this fraction of a register, half of it for 2.
    """

    @_built
    def tiles(typing: Any, a: Any, w: Any, out: Any, top: Any, bottom: Any, j: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.VectorType(context.get_data_type(out.dtype), max(1, _lanes(context, out.dtype) // part))
            views = [context.make_array(one)(context, builder, value) for one, value in zip((a, w, out), args, strict=False)]
            addresses = [builder.ptrtoint(view.data, _NUMBER) for view in views]
            depth, n = (builder.extract_value(view.shape, 1) for view in (views[0], views[2]))
            name = f"numbascan_row_products_{out.dtype}_{rows}_{vectors}_{kind.count}"
            height = min(rows, _sums(context) // vectors)
            write = partial(_write, kind=kind, rows=height, vectors=vectors, add_product=_fused if has_fma(context) else _rounded_twice)
            called(builder, name, ir.VoidType(), [*addresses, depth, n, *args[3:]], write, is_one=True)
            return context.get_dummy_value()

        known = out.dtype in (types.float32, types.float64) and all(_is_matrix(one, out.dtype) for one in (a, w, out))
        return (types.none(a, w, out, types.intp, types.intp, types.intp), code) if known and out.mutable else None

    return tiles


@_built
def _streamed(typing: Any, a: Any, w: Any, out: Any, columns: Any) -> Any:
    """Computes the first `columns` columns of out, a multiple of a vector's length, with sums in memory."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(context.get_data_type(out.dtype), _lanes(context, out.dtype))
        views = [context.make_array(one)(context, builder, value) for one, value in zip((a, w, out), args, strict=False)]
        addresses = [builder.ptrtoint(view.data, _NUMBER) for view in views]
        m, depth, n = (builder.extract_value(views[k].shape, axis) for k, axis in ((0, 0), (0, 1), (2, 1)))
        write = partial(_write_streamed, kind=kind, add_product=_fused if has_fma(context) else _rounded_twice)
        called(
            builder, f"numbascan_row_products_{out.dtype}_streamed", ir.VoidType(), [*addresses, m, depth, n, args[3]], write, is_one=True
        )
        return context.get_dummy_value()

    known = out.dtype in (types.float32, types.float64) and all(_is_matrix(one, out.dtype) for one in (a, w, out))
    return (types.none(a, w, out, types.intp), code) if known and out.mutable else None


# LLVM's text ------------------------------------------------------------------------------------------------------------


def _write(builder: Any, kind: Any, rows: int, vectors: int, add_product: Callable[..., Any]) -> None:
    """Writes the function of tiles: loops over blocks of k, over tiles, and over k within a block.

    On 512 x 512 numbers: 35 GFLOP/s without blocks, 55 with blocks, 75 with copies, as fast as BLAS.
    """
    builder.function.attributes.add("optsize")  # loops are not unrolled: as fast, and compiled in 0.28 s instead of 0.34
    a, w, out, depth, n, top, bottom, j = builder.function.args
    size, width = 8 if isinstance(kind.element, ir.DoubleType) else 4, _NUMBER(vectors * kind.count)
    pairs = list(product(range(rows), range(vectors)))
    last = builder.sub(bottom, _NUMBER(1))
    is_copied = builder.and_(builder.icmp_signed(">", builder.sub(bottom, top), _NUMBER(COPIED_ROWS)), ir.IntType(1)(rows > FLAT_ROWS))
    memory = builder.alloca(ir.ArrayType(kind, DEPTH * vectors))
    memory.align = CACHE_LINE
    zeros, nans = (ir.Constant(kind, [number] * kind.count) for number in (0.0, float("nan")))

    def address(start: Any, row: Any, length: Any, column: Any) -> Any:
        """The address of the element (row, column), in the matrix at `start` with rows of this length."""
        return builder.add(start, builder.mul(builder.add(builder.mul(row, length), column), _NUMBER(size)))

    def at(start: Any, row: Any, length: Any, column: Any, type_: Any = kind) -> Any:
        return builder.inttoptr(address(start, row, length, column), type_.as_pointer())

    def block(start: Any, _: Any) -> list[Any]:
        end = _smaller(builder, builder.add(start, _NUMBER(DEPTH)), depth)
        copy = address(builder.ptrtoint(memory, _NUMBER), builder.neg(start), width, _NUMBER(0))  # as if it held all rows of w
        factors = builder.select(is_copied, copy, address(w, _NUMBER(0), n, j)), builder.select(is_copied, width, n)
        with builder.if_then(is_copied):
            _loop(builder, start, end, 1, [], partial(copy_row, factors))
        return _loop(builder, top, bottom, rows, [], partial(tile, start, end, factors))

    def copy_row(factors: tuple[Any, Any], k: Any, _: Any) -> list[Any]:
        for step in range(vectors):
            column = _NUMBER(step * kind.count)
            numbers = builder.load(at(w, k, n, builder.add(j, column)), align=size)
            builder.store(numbers, at(factors[0], k, factors[1], column), align=size)
        return []

    def tile(start: Any, end: Any, factors: tuple[Any, Any], i: Any, _: Any) -> list[Any]:
        numbers = [_smaller(builder, builder.add(i, _NUMBER(row)), last) for row in range(rows)]
        a_rows = [at(a, number, depth, _NUMBER(0), kind.element) for number in numbers]
        places = [at(out, numbers[row], n, builder.add(j, _NUMBER(step * kind.count))) for row, step in pairs]
        is_first = builder.icmp_signed("==", start, _NUMBER(0))
        sums = [builder.select(is_first, zeros, builder.load(place, align=size)) for place in places]
        sums = _loop(builder, start, end, 1, sums, partial(add_products, a_rows, factors))
        for place, total in zip(places, sums, strict=True):
            # one NaN for all: of two an instruction takes the first operand, and LLVM may exchange the operands
            builder.store(builder.select(builder.fcmp_unordered("uno", total, total), nans, total), place, align=size)
        return []

    def add_products(a_rows: list[Any], factors: tuple[Any, Any], k: Any, sums: list[Any]) -> list[Any]:
        w_vectors = [builder.load(at(factors[0], k, factors[1], _NUMBER(step * kind.count)), align=size) for step in range(vectors)]
        numbers = [_in_all_lanes(builder, builder.load(builder.gep(row, [k]), align=size), kind) for row in a_rows]
        return [add_product(builder, numbers[row], w_vectors[step], total) for (row, step), total in zip(pairs, sums, strict=True)]

    at_least_one = builder.select(builder.icmp_signed("<", depth, _NUMBER(1)), _NUMBER(1), depth)  # empty sums are written, too: zeros
    _loop(builder, _NUMBER(0), at_least_one, DEPTH, [], block)
    builder.ret_void()


def _write_streamed(builder: Any, kind: Any, add_product: Callable[..., Any]) -> None:
    """Writes the function with sums in memory: loops over rows, over a few values of k at a time, and over vectors of columns."""
    a, w, out, m, depth, n, columns = builder.function.args
    size = 8 if isinstance(kind.element, ir.DoubleType) else 4
    zeros, nans = (ir.Constant(kind, [number] * kind.count) for number in (0.0, float("nan")))

    def at(start: Any, row: Any, length: Any, column: Any, type_: Any) -> Any:
        place = builder.add(builder.mul(row, length), column)
        return builder.inttoptr(builder.add(start, builder.mul(place, _NUMBER(size))), type_.as_pointer())

    def row(i: Any, _: Any) -> list[Any]:
        def clear(j: Any, _: Any) -> list[Any]:
            builder.store(zeros, at(out, i, n, j, kind), align=size)
            return []

        def add_rows(count: int, k: Any, _: Any) -> list[Any]:
            rows = [builder.add(k, _NUMBER(step)) for step in range(count)]
            factors = [_in_all_lanes(builder, builder.load(at(a, i, depth, one, kind.element), align=size), kind) for one in rows]

            def add_products(j: Any, _: Any) -> list[Any]:
                place = at(out, i, n, j, kind)
                total = builder.load(place, align=size)
                for one, factor in zip(rows, factors, strict=True):
                    total = add_product(builder, factor, builder.load(at(w, one, n, j, kind), align=size), total)
                builder.store(builder.select(builder.fcmp_unordered("uno", total, total), nans, total), place, align=size)
                return []

            return _loop(builder, _NUMBER(0), columns, kind.count, [], add_products)

        _loop(builder, _NUMBER(0), columns, kind.count, [], clear)
        whole = builder.mul(builder.sdiv(depth, _NUMBER(STREAMS)), _NUMBER(STREAMS))
        _loop(builder, _NUMBER(0), whole, STREAMS, [], partial(add_rows, STREAMS))
        return _loop(builder, whole, depth, 1, [], partial(add_rows, 1))

    _loop(builder, _NUMBER(0), m, 1, [], row)
    builder.ret_void()


def _loop(builder: Any, first: Any, end: Any, step: int, carried: list[Any], body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """`for i in range(first, end, step): carried = body(i, carried)`; returns `carried`."""
    before, head, inside, after = builder.block, *(builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    i, *values = phis = [builder.phi(value.type) for value in (first, *carried)]
    builder.cbranch(builder.icmp_signed("<", i, end), inside, after)
    builder.position_at_end(inside)
    following = [*body(i, values), builder.add(i, _NUMBER(step))]
    for phi, start, value in zip(phis, (first, *carried), (following[-1], *following[:-1]), strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return values


def _smaller(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.icmp_signed("<", x, y), x, y)


def _in_all_lanes(builder: Any, number: Any, kind: Any) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    vector = builder.insert_element(nothing, number, _PLACE(0))
    return builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(_PLACE, kind.count), [0] * kind.count))


def _fused(builder: Any, x: Any, y: Any, total: Any) -> Any:
    """x * y + total, rounded once. llvmlite's own `fma` does not know vectors."""
    name = f"llvm.fma.v{x.type.count}f{64 if isinstance(x.type.element, ir.DoubleType) else 32}"
    function = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(x.type, [x.type] * 3), name)
    return builder.call(function, [x, y, total])


def _rounded_twice(builder: Any, x: Any, y: Any, total: Any) -> Any:
    """x * y + total, rounded twice, in every tile of a processor without that instruction: libm's fma is a call for each number."""
    return builder.fadd(builder.fmul(x, y), total)


# the product ------------------------------------------------------------------------------------------------------------

_few, _wide, _narrow, _half, _single = _tiles(2, 4), _tiles(8, 2), _tiles(8, 1), _tiles(8, 1, 2), _tiles(8, 1, 16)


def _row_products(out: Any, a: Any, w: Any) -> None:
    """out = a @ w of C-contiguous matrices of one dtype, float32 or float64; row i of out depends on row i of a and on w alone.

    *Relies on*: the three do not overlap, and their lengths agree.
    """
    m, n = out.shape
    lanes = _lanes_of(out)
    half = max(1, lanes // 2)
    first = 0
    if m == 1 and w.size * w.itemsize > CACHE:
        first = n // lanes * lanes
        _streamed(a, w, out, first)
    for top in range(0, m, ROWS):
        bottom = min(top + ROWS, m)
        j = first
        while m <= FLAT_ROWS and n - j >= 4 * lanes:
            _few(a, w, out, top, bottom, j)
            j += 4 * lanes
        while n - j >= 2 * lanes:
            _wide(a, w, out, top, bottom, j)
            j += 2 * lanes
        while n >= lanes and j < n:
            _narrow(a, w, out, top, bottom, min(j, n - lanes))
            j += lanes
        while n >= half and j < n:
            _half(a, w, out, top, bottom, min(j, n - half))
            j += half
        while j < n:
            _single(a, w, out, top, bottom, j)
            j += 1


def _in_python(out: Any, a: Any, w: Any) -> None:
    """The same where Numba compiles nothing."""
    for i in range(len(out)):
        np.dot(a[i : i + 1], w, out[i : i + 1])


row_products: Any = _in_python if _IN_PYTHON else numba.njit(error_model="numpy", nogil=True)(_row_products)
if not _IN_PYTHON:
    ROUTINES.append(row_products)
