"""Sorting and searching on contiguous arrays, for njit. NaN counts as greater than every number, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

RUN = 16  # up to so many elements insertion is the fastest sort, and needs no memory


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


def _ordering(comes_before: Callable[..., Any]) -> Callable[..., Any]:
    merge_sort = _merge_sort(comes_before)

    @njit
    def order(result: Any, keys: Any) -> None:
        for k in range(len(keys)):
            result[k] = k
        merge_sort(result, keys)

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


sort_into, sort_into_complex = _sorting(_by_value), _sorting(_by_complex_value)
argsort_into, argsort_into_complex = _ordering(_by_key), _ordering(_by_complex_key)
search_into, search_into_complex = _searching(_less), _searching(_less_complex)
