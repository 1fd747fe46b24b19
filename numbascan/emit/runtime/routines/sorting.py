"""Sorting and searching on contiguous arrays, for njit. NaN counts as greater than every number, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from ...inside import numpy_sorts

RUN = 16  # elements up to which insertion is the fastest sort; it needs no memory


@njit
def _less(a: Any, b: Any) -> Any:
    return a < b or (b != b and a == a)


@njit
def _less_complex(a: Any, b: Any) -> Any:
    """By real, then by imaginary part; a NaN in the imaginary part comes after all numbers, one in the real part after that."""
    a_class = 2 * (a.real != a.real) + (a.imag != a.imag)
    b_class = 2 * (b.real != b.real) + (b.imag != b.imag)
    if a_class != b_class:
        return a_class < b_class
    return a.real < b.real or (not (b.real < a.real) and a.imag < b.imag)


def _merge_sort(comes_before: Callable[..., Any]) -> Callable[..., Any]:
    """A stable sort of `items` in place, by `comes_before(keys, a, b)`."""

    @njit
    def insertion(items: Any, keys: Any, first: int, last: int) -> None:
        for i in range(first + 1, last):
            moved = items[i]
            k = i
            while k > first and comes_before(keys, moved, items[k - 1]):
                items[k] = items[k - 1]
                k -= 1
            items[k] = moved

    @njit
    def merge(source: Any, target: Any, keys: Any, first: int, middle: int, last: int) -> None:
        left, right = first, middle
        for k in range(first, last):
            takes_right = left >= middle or (right < last and comes_before(keys, source[right], source[left]))
            if takes_right:
                target[k] = source[right]
                right += 1
            else:
                target[k] = source[left]
                left += 1

    @njit
    def sort(items: Any, keys: Any) -> None:
        n = len(items)
        for first in range(0, n, RUN):
            insertion(items, keys, first, min(first + RUN, n))
        if n <= RUN:
            return
        source, target = items, np.empty_like(items)
        width = RUN
        n_passes = 0
        while width < n:
            for first in range(0, n, 2 * width):
                merge(source, target, keys, first, min(first + width, n), min(first + 2 * width, n))
            source, target = target, source
            width *= 2
            n_passes += 1
        if n_passes % 2:
            target[:] = source

    return sort


@njit
def _by_value(keys: Any, a: Any, b: Any) -> Any:
    return _less(a, b)


@njit
def _by_key(keys: Any, a: Any, b: Any) -> Any:
    return _less(keys[a], keys[b])


@njit
def _by_complex_value(keys: Any, a: Any, b: Any) -> Any:
    return _less_complex(a, b)


@njit
def _by_complex_key(keys: Any, a: Any, b: Any) -> Any:
    return _less_complex(keys[a], keys[b])


def _sorting(comes_before: Callable[..., Any]) -> Callable[..., Any]:
    merge_sort = _merge_sort(comes_before)

    @njit
    def sort(result: Any, values: Any) -> None:
        result[:] = values
        merge_sort(result, result)

    return sort


@njit
def _copied(row: Any, values: Any) -> Any:
    """Copies the values into `row`; True if one of them is 0."""
    has_zero = False
    for k in range(len(values)):
        row[k] = values[k]
        has_zero |= values[k] == 0
    return has_zero


@njit
def _zeros_in_order(row: Any, values: Any) -> None:
    """Puts the zeros of a sorted `row` in the order of the `values`: 0.0 and -0.0 are equal, and a stable sort keeps their order."""
    first, last = 0, len(row)
    while first < last:
        middle = (first + last) // 2
        if row[middle] < 0:
            first = middle + 1
        else:
            last = middle
    if first + 1 < len(row) and row[first + 1] == 0:
        for value in values:
            if value == 0:
                row[first] = value
                first += 1


def sort_into(result: Any, values: Any) -> None:
    """Sorts real numbers by NumPy's fastest sort of their dtype, with the result of a stable sort."""
    result[:] = np.sort(values, kind="stable")


_merge_sort_into = _sorting(_by_value)
_external: Any = types.ExternalFunction


@overload(sort_into, jit_options={"forceinline": True}, strict=False)  # 500 us for 10,000 rows of 10 numbers; 730 with a call for each row
def _typed_sort_into(result: Any, values: Any) -> Callable[..., Any]:
    symbol = f"{numpy_sorts.BEGINNING}{values.dtype}"
    if symbol not in numpy_sorts.addresses():
        return lambda result, values: _merge_sort_into(result, values)
    sort = _external(symbol, types.intc(types.uintp, types.intp, types.uintp))

    def by_numpy(result: Any, values: Any) -> None:
        has_zero = _copied(result, values)
        sort(result.ctypes.data, len(result), 0)
        if has_zero:
            _zeros_in_order(result, values)

    return by_numpy


def _taking_middles(sort: Callable[..., Any]) -> Callable[..., Any]:
    @njit
    def middles(result: Any, values: Any) -> None:
        """The two middle values in sorted order, twice the same if their number is odd; NaN if a value is NaN."""
        items, n = np.empty_like(values), len(values)
        sort(items, values)
        last = items[n - 1]
        result[0], result[1] = (last, last) if last != last else (items[(n - 1) // 2], items[n // 2])

    return middles


def _ordering(comes_before: Callable[..., Any]) -> Callable[..., Any]:
    merge_sort = _merge_sort(comes_before)

    @njit
    def order(result: Any, keys: Any) -> None:
        for k in range(len(keys)):
            result[k] = k
        merge_sort(result, keys)

    return order


MANY = 400  # elements from which radix sort is faster than merge sort
DIGIT = 11  # bits


@njit
def _radix_sort(keys: Any, items: Any) -> None:
    """Sorts unsigned keys, and items along with them: stable, digit by digit from the last one (Knuth, vol. 3, 5.2.5)."""
    n, mask, n_digits = len(keys), (1 << DIGIT) - 1, (8 * keys.itemsize + DIGIT - 1) // DIGIT
    counts = np.zeros((n_digits, mask + 1), np.int64)
    for k in range(n):
        key = np.uint64(keys[k])
        for digit in range(n_digits):
            counts[digit, (key >> np.uint64(DIGIT * digit)) & np.uint64(mask)] += 1
    source, target = keys, np.empty_like(keys)
    carried, put = items, np.empty_like(items)
    n_passes = 0
    for digit in range(n_digits):
        shift, row = np.uint64(DIGIT * digit), counts[digit]
        if n and row[(np.uint64(source[0]) >> shift) & np.uint64(mask)] == n:  # all keys have the same digit
            continue
        place = 0
        for digits in range(mask + 1):
            count = row[digits]
            row[digits] = place
            place += count
        for k in range(n):
            value = (np.uint64(source[k]) >> shift) & np.uint64(mask)
            place = row[value]
            row[value] = place + 1
            target[place] = source[k]
            put[place] = carried[k]
        source, target = target, source
        carried, put = put, carried
        n_passes += 1
    if n_passes % 2:
        items[:] = carried


def _counting(bits: type, is_float: bool) -> Callable[..., Any]:
    """A function for the order of numbers: by radix sort of unsigned keys; by merge sort for short rows, and where there is a -0.0."""
    merge_order = _merge_sort(_by_key)
    sign, shift = bits(1 << (8 * np.dtype(bits).itemsize - 1)), 8 * np.dtype(bits).itemsize - 1

    @njit
    def key_of(number: Any) -> Any:
        return bits(~number) if is_float and number >> bits(shift) else bits(number ^ sign)

    @njit
    def counted(values: Any) -> int:
        """The number of values that are not NaN; -1 for merge sort: in short rows, or with a -0.0, whose key differs from that of 0.0."""
        if len(values) < MANY:
            return -1
        numbers, count = values.view(bits), 0
        for k in range(len(values)):
            count += values[k] == values[k]
            if is_float and values[k] == 0 and numbers[k] != 0:
                return -1
        return count

    @njit
    def order(result: Any, values: Any) -> None:
        count = counted(values)
        if count < 0:
            for k in range(len(values)):
                result[k] = k
            merge_order(result, values)
            return
        numbers, first, last = values.view(bits), 0, count
        keys: Any = np.empty(count, bits)
        for k in range(len(values)):
            if values[k] == values[k]:
                keys[first] = key_of(numbers[k])
                result[first] = k
                first += 1
            else:
                result[last] = k
                last += 1
        _radix_sort(keys, result[:count])

    return order


def _searching(less: Callable[..., Any]) -> Callable[..., Any]:
    @njit
    def search(result: Any, values: Any, keys: Any, is_right: bool) -> None:
        for k in range(len(keys)):
            first, last = 0, len(values)
            while first < last:
                middle = (first + last) // 2
                goes_on = not less(keys[k], values[middle]) if is_right else less(values[middle], keys[k])
                if goes_on:
                    first = middle + 1
                else:
                    last = middle
            result[k] = first

    return search


sort_into_complex = _sorting(_by_complex_value)
argsort_into, argsort_into_complex = _ordering(_by_key), _ordering(_by_complex_key)
argsort_float64_into = _counting(np.uint64, True)
argsort_float32_into = _counting(np.uint32, True)
argsort_int64_into = _counting(np.uint64, False)
argsort_int32_into = _counting(np.uint32, False)
middles_into, middles_into_complex = _taking_middles(sort_into), _taking_middles(sort_into_complex)
search_into, search_into_complex = _searching(_less), _searching(_less_complex)
