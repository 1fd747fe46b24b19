"""Memory of arrays, kept for the next ones so that its pages need not be taken from the system again.

A loop takes memory for traces and work rows in each call and gives it back at the end. The C library gives blocks of more than 128 KB back
to the system, and the first write to each page of 4 KB costs 0.25 to 2 µs: half of the time of a recurrent network's gradient. So a block
that nobody holds any more waits here, in one of SLOTS places, for an array of the same size class.

Code that is compiled once in a process (`_TEXT`) does this for all kernels, without a lock: a place is taken and filled by exchanging its
pointer in one atomic step, so whoever gets a block is its only owner. Sizes beside the places are hints; the size that counts stands in
front of the block. Blocks come from Python's allocator, so `tracemalloc` sees them.

- At most LIMIT bytes wait: beyond that, places are emptied in turn.
- A block larger than LIMIT does not wait.
- If the system has no memory left, all waiting blocks are given back.
"""

from __future__ import annotations

import sys
from functools import cache

from ...checkpoint import bytes_from_environment
from . import process_code

TAKE, GIVE = "numbascan_kept_take", "numbascan_kept_give"
BEGINNING = "numbascan_kept_"
FROM = 1 << 14  # bytes of an array; smaller ones stay in the C library's lists of free blocks
SLOTS = 128
VARIABLE, DEFAULT = "NUMBASCAN_KEPT_MEMORY", 128 * 10**6  # bytes
_HEADER, _LINE = 16, 64  # bytes before the elements: the block as it was taken, its size; the alignment of the elements


def limit() -> int:
    """The bytes that may wait: $NUMBASCAN_KEPT_MEMORY, a number or a text such as "500MB"; 128 MB if it is not set or cannot be read."""
    return min(bytes_from_environment(VARIABLE, DEFAULT, "Up to 128 MB are kept"), 2**62)


@cache
def addresses() -> dict[str, int]:
    """The addresses of the two functions, by name; LLVM knows them from now on. None on Windows, where LLVM does not find Python's."""
    if sys.platform == "win32":
        return {}
    return process_code.addresses(_TEXT.replace("LIMIT", str(limit())), (TAKE, GIVE))


_TEXT = f"""
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)

@blocks = internal global [{SLOTS} x ptr] zeroinitializer
@sizes = internal global [{SLOTS} x i64] zeroinitializer
@waiting = internal global i64 0  ; bytes
@oldest = internal global i64 0

; A size class: bytes rounded up to a multiple of an eighth of their power of two.
define private i64 @class(i64 %size) {{
  %zeros = call i64 @llvm.ctlz.i64(i64 %size, i1 false)
  %bits = sub i64 60, %zeros
  %step = shl i64 1, %bits
  %less = sub i64 %step, 1
  %up = add i64 %size, %less
  %mask = xor i64 %less, -1
  %rounded = and i64 %up, %mask
  ret i64 %rounded
}}

define private i64 @size_of(ptr %data) {{
  %place = getelementptr i8, ptr %data, i64 -8
  %size = load i64, ptr %place
  ret i64 %size
}}

define private void @free(ptr %data) {{
  %place = getelementptr i8, ptr %data, i64 -{_HEADER}
  %block = load ptr, ptr %place
  call void @PyMem_RawFree(ptr %block)
  ret void
}}

; Empties a place: the block that waited there, or null.
define private ptr @leave(i64 %i) {{
  %place = getelementptr ptr, ptr @blocks, i64 %i
  %data = atomicrmw xchg ptr %place, ptr null acq_rel
  %is_empty = icmp eq ptr %data, null
  br i1 %is_empty, label %end, label %there
there:
  %size = call i64 @size_of(ptr %data)
  %before = atomicrmw sub ptr @waiting, i64 %size monotonic
  br label %end
end:
  ret ptr %data
}}

; A block of the size class that waits, or null.
define private ptr @find(i64 %class) {{
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%following, %on]
  %is_end = icmp eq i64 %i, {SLOTS}
  br i1 %is_end, label %none, label %compare
compare:
  %hint_place = getelementptr i64, ptr @sizes, i64 %i
  %hint = load atomic i64, ptr %hint_place monotonic, align 8
  %may_fit = icmp eq i64 %hint, %class
  br i1 %may_fit, label %exchange, label %on
exchange:
  %data = call ptr @leave(i64 %i)
  %is_empty = icmp eq ptr %data, null
  br i1 %is_empty, label %on, label %look
look:
  %size = call i64 @size_of(ptr %data)
  %fits = icmp eq i64 %size, %class
  br i1 %fits, label %found, label %other
other:
  call void @free(ptr %data)
  br label %on
found:
  ret ptr %data
on:
  %following = add i64 %i, 1
  br label %next
none:
  ret ptr null
}}

; Gives the block in the place whose turn it is back to the system. Returns that place, now empty.
define private i64 @drop() {{
  %count = atomicrmw add ptr @oldest, i64 1 monotonic
  %i = urem i64 %count, {SLOTS}
  %data = call ptr @leave(i64 %i)
  %is_empty = icmp eq ptr %data, null
  br i1 %is_empty, label %end, label %there
there:
  call void @free(ptr %data)
  br label %end
end:
  ret i64 %i
}}

; Memory for %size bytes, at a multiple of {_LINE}; null if there is none left.
define ptr @{TAKE}(i64 %size) {{
  %class = call i64 @class(i64 %size)
  %kept = call ptr @find(i64 %class)
  %is_kept = icmp ne ptr %kept, null
  br i1 %is_kept, label %again, label %new
again:
  ret ptr %kept
new:
  %more = add i64 %class, {_HEADER + _LINE}
  %first = call ptr @PyMem_RawMalloc(i64 %more)
  %is_there = icmp ne ptr %first, null
  br i1 %is_there, label %write, label %drop_one
drop_one:  ; what waits goes back to the system, and it is asked again
  %dropped = phi i64 [0, %new], [%dropped_now, %drop_one]
  %place = call i64 @drop()
  %dropped_now = add i64 %dropped, 1
  %is_all = icmp eq i64 %dropped_now, {SLOTS}
  br i1 %is_all, label %retry, label %drop_one
retry:
  %second = call ptr @PyMem_RawMalloc(i64 %more)
  %is_none = icmp eq ptr %second, null
  br i1 %is_none, label %none, label %write
none:
  ret ptr null
write:
  %block = phi ptr [%first, %new], [%second, %retry]
  %start = ptrtoint ptr %block to i64
  %behind = add i64 %start, {_HEADER + _LINE - 1}
  %aligned = and i64 %behind, {-_LINE}
  %data = inttoptr i64 %aligned to ptr
  %block_place = getelementptr i8, ptr %data, i64 -{_HEADER}
  store ptr %block, ptr %block_place
  %size_place = getelementptr i8, ptr %data, i64 -8
  store i64 %class, ptr %size_place
  ret ptr %data
}}

; Puts a block into a place. False if the place has one already.
define private i1 @put(ptr %data, i64 %size, i64 %i) {{
  %place = getelementptr ptr, ptr @blocks, i64 %i
  %there = load atomic ptr, ptr %place monotonic, align 8
  %is_empty = icmp eq ptr %there, null
  br i1 %is_empty, label %fill, label %no
fill:
  %pair = cmpxchg ptr %place, ptr null, ptr %data acq_rel monotonic
  %is_filled = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %is_filled, label %note, label %no
note:
  %hint_place = getelementptr i64, ptr @sizes, i64 %i
  store atomic i64 %size, ptr %hint_place monotonic, align 8
  ret i1 true
no:
  ret i1 false
}}

; Lets a block wait. The other two arguments are those of Numba's destructors.
define void @{GIVE}(ptr %data, i64 %unused, ptr %nothing) {{
entry:
  %size = call i64 @size_of(ptr %data)
  %is_large = icmp ugt i64 %size, LIMIT
  br i1 %is_large, label %large, label %count
large:
  call void @free(ptr %data)
  ret void
count:
  %others = atomicrmw add ptr @waiting, i64 %size monotonic
  br label %next
next:
  %i = phi i64 [0, %count], [%following, %try]
  %is_end = icmp eq i64 %i, {SLOTS}
  br i1 %is_end, label %replace, label %try
try:
  %is_put = call i1 @put(ptr %data, i64 %size, i64 %i)
  %following = add i64 %i, 1
  br i1 %is_put, label %bound, label %next
replace:  ; no place is empty
  %t = call i64 @drop()
  %has_replaced = call i1 @put(ptr %data, i64 %size, i64 %t)
  br i1 %has_replaced, label %bound, label %replace
bound:
  %tries = phi i64 [0, %try], [0, %replace], [%more_tries, %one]
  %now = load atomic i64, ptr @waiting monotonic, align 8
  %is_less = icmp ule i64 %now, LIMIT
  %is_tried = icmp ugt i64 %tries, {SLOTS}
  %is_done = or i1 %is_less, %is_tried
  br i1 %is_done, label %end, label %one
one:
  %u = call i64 @drop()
  %more_tries = add i64 %tries, 1
  br label %bound
end:
  ret void
}}
"""
