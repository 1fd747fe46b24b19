"""Programs that change objects and arrays in branches and loops: `right` ones give what Python gives, `safe` ones may be refused."""

# ruff: noqa: B006, B007, B018, B023, B905, C416, C417, E731, F821, F841, RUF005, RUF059, B009 - programs as people write them

from __future__ import annotations

import contextlib
import copy
import functools
import heapq
import itertools
from collections import deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RIGHT: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
SAFE: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
Function = Callable[..., Any]


def right(*args: Any) -> Callable[[Function], Function]:
    """Decorator: a program that gives with these arguments what it gives under Python."""

    def noted(f: Function) -> Function:
        RIGHT.append((f, args))
        return f

    return noted


def safe(*args: Any) -> Callable[[Function], Function]:
    """Decorator: a program that does so, or is refused."""

    def noted(f: Function) -> Function:
        SAFE.append((f, args))
        return f

    return noted


A = np.arange(60.0).reshape(20, 3)
V = np.linspace(0.0, 1.0, 20)


# rows of arrays that loops write ----


@right(V)
def rows_written_later(a: Any) -> Any:
    a = a.copy()
    t = 0.0
    k = 0
    for v in a:
        t = t + v
        if k < 19:
            a[k + 1] = a[k + 1] + t
        k = k + 1
    return t, a


@right(V)
def enum_written(a: Any) -> Any:
    a = a.copy()
    t = 0.0
    for k, v in enumerate(a):
        a[19 - k] = v * 2
        t = t + v
    return t, a


@right(V)
def zip_written(a: Any) -> Any:
    a = a.copy()
    b = a * 2
    t = 0.0
    for v, w in zip(a, b):
        b[:] = b + v
        t = t + w
    return t, b


@right(A)
def row_view_written(a: Any) -> Any:
    a = a.copy()
    for row in a:
        row[0] = 1
    return a


@right(A)
def row_view_aug(a: Any) -> Any:
    a = a.copy()
    for row in a:
        row += 1
        row[1] *= 2
    return a


@right(A)
def row_view_written_enum(a: Any) -> Any:
    a = a.copy()
    for k, row in enumerate(a):
        row[k % 3] = k
    return a


@right(A)
def row_view_while_written(a: Any) -> Any:
    a = a.copy()
    t = 0.0
    for row in a:
        a[:, 0] = a[:, 0] + 1
        t = t + row[0]
    return t, a


@right(A)
def reversed_written(a: Any) -> Any:
    a = a.copy()
    t = 0.0
    for row in reversed(a):
        row[0] = t
        t = t + row[1]
    return a


@right(A, 2.0)
def slice_rows(a: Any, x: Any) -> Any:
    a = a.copy()
    for row in a[1:]:
        row[0] = x
    return a


@right(A, 2.0)
def rows_of_T(a: Any, x: Any) -> Any:
    a = a.copy()
    for col in a.T:
        col[0] = x
    for row in a[:, :2]:
        row[1] = row[0] + x
    return a


@safe(A)
def row_behind(a: Any) -> Any:
    a = a.copy()
    for row in a:
        row = row
    row[0] = 100.0
    return a


@safe(A)
def row_behind_read(a: Any) -> Any:
    a = a.copy()
    for k in range(20):
        row = a[k]
    a[19, 0] = 500.0
    return row


@safe(A)
def row_behind_write(a: Any) -> Any:
    a = a.copy()
    for k in range(20):
        row = a[k]
    row[0] = 500.0
    return a


@right(A)
def row_behind_ok(a: Any) -> Any:
    a = a.copy()
    s = 0.0
    for k in range(20):
        row = a[k]
        s = s + row.sum()
    return row, s


@right(A)
def row_kept_in_branch(a: Any) -> Any:
    a = a.copy()
    last = a[0]
    for row in a:
        if row[0] > 5:
            last = row
    last = last * 1
    a[3, 0] = -5
    return last, a


@safe(A)
def row_kept_written(a: Any) -> Any:
    a = a.copy()
    last = a[0]
    for row in a:
        if row[0] > 5:
            last = row
    last[0] = -7
    return a


@safe(A)
def prev_row(a: Any) -> Any:
    a = a.copy()
    prev = a[0]
    t = 0.0
    for row in a:
        t = t + prev[0]
        row[0] = row[0] * 2
        prev = row
    return t, a


@right(A, 3.0)
def nested_rows(a: Any, x: Any) -> Any:
    a = a.copy()
    t = 0.0
    for row in a:
        for k in range(len(row)):
            row[k] = row[k] * x + t
            t = t + row[k] * 0.01
    return a, t


@right(A, 3.0)
def nested_rows_iter(a: Any, x: Any) -> Any:
    a = a.copy()
    t = 0.0
    for row in a:
        for v in row:
            t = t + v
            row[2] = t
    return a, t


# one of two ----


def one_returned(x: Any, a: Any, b: Any) -> Any:
    if x > 0:
        return a
    return b


def one_returned_in_a_loop(x: Any, a: Any, b: Any) -> Any:
    for k in range(30):
        if x > k:
            return a
    return b


def one_by_expression(x: Any, a: Any, b: Any) -> Any:
    return a if x > 0 else b


def one_returned_or_written(x: Any, a: Any, b: Any) -> Any:
    for k in range(30):
        if a[0] > k:
            return a
        b[0] = b[0] + 1
    return b


def swapped_pair(x: Any, a: Any, b: Any) -> Any:
    if x > 0:
        r = (a, b)
    else:
        r = (b, a)
    return r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_the_returned_one(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_returned(x, a, b)
    r[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_one_behind_the_returned(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_returned(x, a, b)
    a[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_what_a_loop_returned(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_returned_in_a_loop(x, a, b)
    r[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_one_behind_a_loop(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_returned_in_a_loop(x, a, b)
    a[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_the_expression(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_by_expression(x, a, b)
    r[0] = 5.0
    return a, b, r


@right(1.0, np.ones(3), np.zeros(3))
def computes_with_the_returned_one(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_returned_or_written(x, a, b)
    r = r * 2
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_one_that_others_wrote(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = one_returned_or_written(x, a, b)
    r[1] = 2
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_one_of_a_pair(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r, q = swapped_pair(x, a, b)
    r[1] = 2
    return a, b, r, q


@right(1.0, np.ones(3), np.zeros(3))
def writes_behind_a_return(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    if x > 0:
        return a
    a[0] = 5.0
    b[1] = 7.0
    return b


@right(1.0, np.ones(3), np.zeros(3))
def returned_of_returned(x: Any, a: Any, b: Any) -> Any:
    return one_returned(x, one_returned(x, a, b) + 1, b) * 2


@right(1.0, np.ones(3), np.zeros(3))
def writes_one_of_two_new(x: Any, a: Any, b: Any) -> Any:
    r = one_returned(x, a + 1, b + 1)
    r[0] = 5.0
    return r


@safe(1.0, np.ones(3), np.zeros(3))
def writes_one_of_two_views(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()

    def v():
        if x > 0:
            return a[1:]
        return a[:2]

    r = v()
    r[0] = 5.0
    return a


@safe(1.0, np.ones(3), np.zeros(3))
def list_of_arrays_swapped(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    l = [a, b.copy()]
    m = l
    if x > 0:
        l = [l[1], l[0]]
    l[0][0] = 3
    return m[0], m[1]


@safe(1.0)
def list_rebound_and_written(x: Any) -> Any:
    l = [x, 1.0]
    m = l
    if x > 0:
        l = [x, 2.0]
    l[0] = 7.0
    return m[0], l[0], l[1]


@safe(-1.0)
def other_name_of_a_list_written(x: Any) -> Any:
    l = [x, 1.0]
    m = l
    if x > 0:
        l = [x, 2.0]
    m[0] = 7.0
    return m[0], l[0], l[1]


@safe(-1.0)
def list_by_expression_written(x: Any) -> Any:
    l = [1.0, 2.0]
    m = [3.0, 4.0]
    r = l if x > 0 else m
    r[0] = 7.0
    return m[0], l[0], r[0]


@safe(-1.0)
def returned_list_appended(x: Any) -> Any:
    l = [1.0, 2.0]
    m = [3.0, 4.0]

    def p():
        if x > 0:
            return l
        return m

    r = p()
    r.append(1)
    return m[0], len(l), len(r), len(m)


@right(-1.0)
def lists_that_change_places(x: Any) -> Any:
    l = [1.0, 2.0]
    m = [3.0, 4.0]
    for k in range(20):
        l, m = m, l
        l[0] = l[0] + x
    return l[0], m[0]


@right(1.0)
def list_made_anew_in_passes(x: Any) -> Any:
    l = [x, 2.0]
    m = l
    for k in range(20):
        x = x + 1
        l = [x, l[1] + 1]
    l[0] = 0
    return l[0], m[0]


@safe(1.0, np.ones(3), np.zeros(3))
def writes_one_of_two_known(x: Any, a: Any, b: Any) -> Any:
    Z = np.zeros(3)
    W = np.ones(3)
    r = one_returned(x, Z, W)
    r[0] = 9
    return Z, W


@safe(1.0, np.ones(3), np.zeros(3))
def writes_a_known_one_behind(x: Any, a: Any, b: Any) -> Any:
    Z = np.zeros(3)
    W = np.ones(3)
    r = one_returned(x, Z, W)
    Z[0] = 9
    return r


@safe(1.0)
def dict_rebound_and_written(x: Any) -> Any:
    d = {"a": 1.0}
    e = d
    if x > 0:
        d = {"a": x}
    d["a"] = 5.0
    return e["a"], d["a"]


# iterators, and lists at traced places ----


@safe(V)
def zip_read_twice(a: Any) -> Any:
    z = zip(a, a * 2)
    t = 0.0
    for p, q in z:
        t = t + p * q
    for p, q in z:
        t = t + 100
    return t


@safe(V, 2.0)
def next_of_enumerate(a: Any, x: Any) -> Any:
    z = enumerate(a)
    k, v = next(z)
    t = v * 0
    for k, v in z:
        t = t + k * v * x
    return t if x > 0 else -t


@safe(V, 2.0)
def reversed_read_twice(a: Any, x: Any) -> Any:
    z = reversed(a)
    s = [v for v in z]
    r = [v for v in z]
    return (s[0] + len(r)) if x > 0 else x


@safe(V, 2.0)
def zip_made_before_a_branch(a: Any, x: Any) -> Any:
    z = zip(a, a)
    t = 0.0
    if x > 0:
        for p, q in z:
            t = t + p
    return t


@right(V, 2.0)
def enumerate_of_zip(a: Any, x: Any) -> Any:
    t = 0.0
    for k in range(3):
        for j, (p, q) in enumerate(zip(a, a)):
            t = t + p * q * j * x
    return t if x > 0 else -x


@safe(V, 2.0)
def iterator_behind_a_break(a: Any, x: Any) -> Any:
    it = iter([1.0, 2.0, 3.0, 4.0])
    for v in it:
        x = x + v
        if x > 4:
            break
    return x + next(it)


@safe(V, 2.0)
def dict_and_list_of_zip(a: Any, x: Any) -> Any:
    d = dict(zip(range(3), a))
    l = list(enumerate(a))
    m = max(zip(range(3), range(3)))
    return d[2] * x + l[3][1] + m[0] if x > 0 else x


@safe(V, 2.0)
def map_read_twice(a: Any, x: Any) -> Any:
    m = map(lambda v: v * x, a)
    s = sum(m)
    r = len(list(m))
    return s + r if x > 0 else x


@safe(V, 2.0)
def next_of_enumerate_in_passes(a: Any, x: Any) -> Any:
    z = enumerate(a)
    for k in range(20):
        j, v = next(z)
        x = x + v * j
    return x if x > 0 else -x


@safe(V, 1)
def array_in_a_list_written(a: Any, i: Any) -> Any:
    p = np.zeros(3)
    q = np.ones(3)
    l = [p, q]
    l[i][0] = 5.0
    return p, q


@right(V, 1)
def array_in_a_list_read(a: Any, i: Any) -> Any:
    p = a[:3] * 2
    q = a[3:6] * 2
    r = [p, q][i]
    r = r + 1
    return r


@safe(V, 1)
def array_in_a_list_read_later(a: Any, i: Any) -> Any:
    p = a[:3] * 2
    q = a[3:6] * 2
    r = [p, q][i]
    q[0] = 100.0
    return r


@right(V, 1)
def row_of_a_known_array_written(a: Any, i: Any) -> Any:
    A = np.zeros((3, 3))
    A[i][0] = 4.0
    row = A[i]
    row[1] = 5.0
    return A


@right(V, 1)
def row_of_a_known_array_read_later(a: Any, i: Any) -> Any:
    A = np.zeros((3, 3))
    row = A[i]
    A[1, 0] = 7
    return row * 1


@safe(V, 1)
def list_written_at_a_traced_place(a: Any, i: Any) -> Any:
    l = [1.0, 2.0]
    l[i] = 3.0
    return l[0], l[1]


@right(V, 1)
def list_read_at_a_traced_place(a: Any, i: Any) -> Any:
    return [1.0, 2.0, 3.0][i] * 2, (a[0], a[5])[i]


@right(V, 1)
def list_of_arrays_written_in_passes(a: Any, i: Any) -> Any:
    l = [np.zeros(2), np.ones(2)]
    for k in range(20):
        l[k % 2] = l[k % 2] + a[k]
    return l[0], l[1]


@right(V, 2)
def rows_of_a_known_array(a: Any, i: Any) -> Any:
    A = np.arange(9.0).reshape(3, 3)
    t = 0.0
    for k in range(i):
        for v in A[k]:
            t = t + v
    return t


# names that a loop or a branch may leave unbound ----


@right(3)
def left_by_a_loop(n: Any) -> Any:
    for k in range(n):
        y = k * 2.0
    return y


@safe(0)
def left_by_no_step(n: Any) -> Any:
    for k in range(n):
        y = k * 2.0
    return y


@right(0)
def kept_by_no_step(n: Any) -> Any:
    y = 5.0
    for k in range(n):
        y = k * 2.0
    return y


@right(0)
def used_within_no_step(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        for j in range(n):
            y = k * 2.0 + j
            t = t + y
    return t


@safe(0)
def number_of_no_step(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        t = t + k
    return t * k


@safe(5)
def bound_in_some_passes(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        if k > 1:
            w = k * 3.0
        t = t + k
    return t * w


@safe(5.0)
def left_by_a_while_of_no_step(x: Any) -> Any:
    while x > 10:
        y = x
        x = x - 1
    return y + x


@right(15.0)
def left_by_a_while(x: Any) -> Any:
    while x > 10:
        y = x
        x = x - 1
    return y + x


@safe(15.0)
def left_behind_a_break(x: Any) -> Any:
    for k in range(40):
        if x < 10:
            break
        y = x
        x = x - 1
    return y + x


@safe(5.0)
def left_behind_a_first_break(x: Any) -> Any:
    for k in range(40):
        if x < 10:
            break
        y = x
        x = x - 1
    return y + x


@right(15.0)
def left_before_a_break(x: Any) -> Any:
    for k in range(40):
        y = x
        x = x - 1
        if x < 10:
            break
    return y + x + k


@safe(5.0)
def left_behind_a_break_of_few(x: Any) -> Any:
    for k in range(10):
        if x < 10:
            break
        y = x
        x = x - 1
    return y + x


@safe(5.0)
def bound_in_one_branch(x: Any) -> Any:
    if x > 6:
        y = 1.0
    return y + x


@safe(5.0)
def bound_and_used_in_branches(x: Any) -> Any:
    if x > 6:
        y = 1.0
    if x > 6:
        return y
    return x


@safe(4)
def previous_of_a_guard(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        if k > 0:
            t = t + prev
        prev = k * 2.0
    return t


@safe(4)
def left_by_some_inner_loops(n: Any) -> Any:
    t = 0.0
    for i in range(n):
        for j in range(i):
            y = j + 1.0
        t = t + i
    return t + y


@right(30)
def left_by_inner_loops_and_guarded(n: Any) -> Any:
    t = 0.0
    for k in range(30):
        for j in range(k):
            q = j * 1.0
        t = t + (q if k > 0 else 0.0)
    return t


@right(3.0)
def deleted_in_a_pass(x: Any) -> Any:
    for k in range(30):
        del_me = x + k
        x = x + del_me
        del del_me
    return x


@safe(np.zeros(0))
def left_by_an_empty_array(a: Any) -> Any:
    for v in a:
        y = v + 1
    return y


@right(np.zeros(3))
def left_by_rows(a: Any) -> Any:
    for k in range(len(a)):
        y = a[k] + 1
    return y


@right(np.zeros(3))
def left_by_a_while_over_rows(a: Any) -> Any:
    k = 0
    while k < len(a):
        y = a[k] + 1
        k += 1
    return y


@safe(3)
def left_by_a_while_in_a_loop(n: Any) -> Any:
    for k in range(n):
        y = k
        while y < 10:
            y = y + 3
            w = y
        z = w
    return z


@safe(0)
def caught_name_error(n: Any) -> Any:
    for k in range(1, n + 1):
        y = k * 1.0
    try:
        return y
    except NameError:
        return -1.0


@right(0)
def number_kept_by_no_step(n: Any) -> Any:
    k = -1
    for k in range(n):
        pass
    return k


@right(np.zeros(4))
def number_at_a_break(a: Any) -> Any:
    i = 0
    for i in range(len(a)):
        if a[i] > 0:
            break
    else:
        i = 99
    return i


@right(3)
def function_left_by_a_loop(n: Any) -> Any:
    for k in range(n):

        def h(v):
            return v + k

        y = h(1.0)
    return y


@right(2.0)
def breaks_of_an_inner_loop(x: Any) -> Any:
    total = 0.0
    for i in range(20):
        for j in range(20):
            if x * i + j > 30:
                break
            total = total + j
    return total


# what loops of unknown length leave ----


@right(3)
def carried_from_an_inner_loop(n: Any) -> Any:
    z = 0.0
    for k in range(n):
        y = k
        while y < 10:
            y = y + 3
            w = y
        z = w
    return z


@right(3)
def carried_from_inner_loops_of_no_step(n: Any) -> Any:
    z = 0.0
    for k in range(n):
        for j in range(k):
            q = j * 2.0
        if k > 1:
            z = q
    return z


@right(3, np.zeros(4))
def array_left_and_written(n: Any, a: Any) -> Any:
    for k in range(n):
        b = a + k
    b[0] = 7
    return b


@right(0, np.zeros(4))
def array_left_and_guarded(n: Any, a: Any) -> Any:
    for k in range(n):
        b = a + k
    if n > 0:
        return b
    return a


@safe(3, np.zeros((4, 2)))
def view_left_and_written(n: Any, a: Any) -> Any:
    a = a.copy()
    for k in range(n):
        row = a[k]
    row[0] = 7
    return a


@safe(3, np.zeros((4, 2)))
def view_left_and_read_later(n: Any, a: Any) -> Any:
    a = a.copy()
    for k in range(n):
        row = a[k]
    a[:] = 7
    return row


@right(3, np.zeros((4, 2)))
def view_left_and_read(n: Any, a: Any) -> Any:
    a = a.copy()
    for k in range(n):
        row = a[k]
    return row.sum()


@safe(3, np.zeros((4, 2)))
def two_names_left(n: Any, a: Any) -> Any:
    for k in range(n):
        p = a[0] * k
        q = p
    p[0] = 5
    return q


@safe(3, np.zeros((4, 2)))
def two_names_left_by_known_passes(n: Any, a: Any) -> Any:
    for k in range(20):
        p = a[0] * k * n
        q = p
    p[0] = 5
    return q


@safe(0, np.zeros((4, 2)))
def guarded_twice(n: Any, a: Any) -> Any:
    for k in range(n):
        w = k
    s = 0.0
    if n > 0:
        s = s + w
    t = 0.0
    if n > 1:
        t = t + w * 2
    return s, t


@right(3, np.zeros((4, 2)))
def tuple_left(n: Any, a: Any) -> Any:
    for k in range(n):
        pair = (k, a[k] * 2)
    return pair[0] + pair[1]


@right(np.arange(30.0))
def numbers_of_two_nests(a: Any) -> Any:
    for i in range(len(a)):
        for j in range(i, len(a)):
            m = a[i] * a[j]
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            m = a[i] * a[j]
            a = a + m * 1e-9
    return a


# passes that are taken back ----


class Empty:
    pass


@right(2.0)
def keys_in_their_order(x: Any) -> Any:
    d = {"a": 1.0}
    for k in range(40):
        d.pop("a", None)
        d["b"] = 2.0
        d["a"] = 3.0
        x = x + d["a"]
    return x + list(d).index("a")


@right(2.0)
def attribute_made_and_deleted(x: Any) -> Any:
    o = Empty()
    o.v = 0.0
    for k in range(40):
        o.w = k
        o.v = o.v + x
        del o.w
    return o.v + (1 if hasattr(o, "w") else 0)


@right(2.0)
def list_that_moves_on(x: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    for k in range(40):
        del l[0]
        l.append(4.0)
        x = x + k
    return x + sum(l) + len(l)


@right(2.0)
def deque_of_traced(x: Any) -> Any:
    q = deque([1.0, 2.0], maxlen=5)
    for k in range(40):
        q.append(x + k)
    return sum(q)


@right(2.0)
def set_of_seen(x: Any) -> Any:
    seen = set()
    n = 0
    for k in range(100):
        if k % 7 not in seen:
            seen.add(k % 7)
            n += 1
    return x * n if x > 0 else x


@right(2.0)
def memo_of_known_calls(x: Any) -> Any:
    memo = {}

    def f(n):
        if n < 2:
            return n
        if n in memo:
            return memo[n]
        memo[n] = f(n - 1) + f(n - 2)
        return memo[n]

    for k in range(60):
        x = x + f(k % 20)
    return x if x > 0 else -x


@right(2.0)
def dict_filled_before(x: Any) -> Any:
    memo = {}
    for k in range(60):
        memo[k] = k * k
    s = 0.0
    for k in range(60):
        s = s + memo[k] * x
    return s if x > 0 else 0.0


@right(2.0)
def list_filled_before(x: Any) -> Any:
    l = []
    for k in range(60):
        l.append(k)
    for k in range(60):
        l[k] = l[k] + 1
    s = 0
    for v in l:
        s = s + v * x
    return s if x > 0 else s + 1


@right(2.0)
def list_of_traced(x: Any) -> Any:
    l = []
    for k in range(60):
        l.append(x * k)
    return sum(l) if x > 0 else x


@safe(2)
def match_by_class(k: Any) -> Any:
    match k:
        case 1 | 2 as q:
            return q * 10
        case int() as w:
            return w
    return 0


@right(2.0)
def match_with_names(k: Any) -> Any:
    match k:
        case 1 | 2 as q:
            return q * 10
        case 5:
            return 1.0
        case z if z > 3:
            return z
    return 0.0


@right(2.0)
def list_of_numbers_in_passes(x: Any) -> Any:
    l = [1.0, 2.0]
    m = l
    for k in range(40):
        l[k % 2] = l[k % 2] + 1.0
        x = x * 0.99
    return m[0], m[1], x


@right(2.0)
def list_of_an_object(x: Any) -> Any:
    o = Empty()
    o.l = [0.0, 0.0]
    for k in range(40):
        o.l[0] += x
        if o.l[0] > 20:
            o.l[1] += 1
    return o.l[0], o.l[1]


@right(2.0)
def counts_of_known(x: Any) -> Any:
    d = {}
    for k in range(40):
        d[k % 4] = d.get(k % 4, 0) + 1
    return x + d[3] if x > 0 else x


@right(2.0)
def dict_of_traced(x: Any) -> Any:
    d = {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}
    for k in range(40):
        d[k % 4] = d[k % 4] + x
    return d[3]


@right(2.0)
def row_made_and_written(x: Any) -> Any:
    A = np.zeros((20, 2))
    for k in range(20):
        A[k] = [x, k]
        r = A[k]
        r += 1
    return A


@safe(2.0)
def filled_and_sorted(x: Any) -> Any:
    z = np.zeros(5)
    z.fill(3.0)
    z.sort()
    z[0] = x
    return z


@right(2.0)
def added_in_place(x: Any) -> Any:
    z = np.zeros(5)
    for k in range(30):
        np.add(z, 1.0, out=z)
    return z * x if x > 0 else z


@right(2.0)
def nonlocal_count_of_passes(x: Any) -> Any:
    n = 0

    def inc():
        nonlocal n
        n += 1

    for k in range(50):
        inc()
    for k in range(50):
        inc()
        x = x + n
    return x


@right(2.0)
def iterator_in_passes(x: Any) -> Any:
    it = iter(range(1000))
    s = 0.0
    for k in range(30):
        s = s + next(it) * x
    return s


# objects of all kinds ----


@dataclass
class Particle:
    p: float
    v: float


class Link:
    def __init__(self, v):
        self.v = v
        self.next = None


class Stack:
    def __init__(self):
        self.items = [0.0] * 10
        self.n = 0

    def push(self, x):
        self.items[self.n] = x
        self.n += 1

    def top(self):
        return self.items[self.n - 1]


class CountsReads:
    def __init__(self):
        self._c = 0

    @property
    def c(self):
        self._c += 1
        return self._c


class CountsObjects(type):
    def __call__(cls, *a):
        MADE.append(1)
        return super().__call__(*a)


MADE = []


class Counted(metaclass=CountsObjects):
    def __init__(self, x):
        self.x = x


class Noisy:
    def __get__(self, o, t=None):
        return o.__dict__.get("_d", 0)

    def __set__(self, o, v):
        o.__dict__["_d"] = v + 1
        o.__dict__["cnt"] = o.__dict__.get("cnt", 0) + 1


class WithNoise:
    d = Noisy()


def numbers(n: Any) -> Any:
    for k in range(n):
        yield k * 1.0


@functools.lru_cache(None)
def shared_list() -> Any:
    return [1.0]


def into_its_default(x: Any, acc: Any = []) -> Any:
    acc.append(x)
    return len(acc)


def counts_its_calls(x: Any) -> Any:
    counts_its_calls.n = getattr(fattr, "n", 0) + 1
    return x


@right(2.0)
def record_that_moves(x: Any) -> Any:
    s = Particle(1.0, 2.0)
    for k in range(40):
        s.p = s.p + s.v * 0.1
        if s.p > 3:
            s.v = -s.v
        if s.p < 0:
            s.v = abs(s.v) + x
    return s.p, s.v


@safe(2.0)
def record_rebound_and_written(x: Any) -> Any:
    s = Particle(1.0, 2.0)
    r = s
    if x > 0:
        s = Particle(x, 3.0)
    s.p = 10.0
    return r.p, s.p


@safe(-2.0)
def other_name_of_a_record(x: Any) -> Any:
    s = Particle(1.0, 2.0)
    r = s
    if x > 0:
        s = Particle(x, 3.0)
    r.p = 10.0
    return r.p, s.p


@safe(2.0)
def stack_in_a_branch(x: Any) -> Any:
    st = Stack()
    if x > 0:
        st.push(x)
    st.push(5.0)
    return st.top(), st.n


@safe(2.0)
def stack_in_passes(x: Any) -> Any:
    st = Stack()
    st.push(1.0)
    for k in range(30):
        if x > k:
            st.push(x) if st.n < 9 else None
    return st.top()


@safe(2.0)
def getter_that_counts(x: Any) -> Any:
    p = CountsReads()
    y = p.c
    if x > 0:
        y = y + p.c
    return y + p.c


@safe(2.0)
def metaclass_that_counts(x: Any) -> Any:
    MADE.clear()
    w = Counted(x)
    if x > 0:
        w2 = Counted(x + 1)
        x = w2.x
    return x + len(MADE)


@safe(2.0)
def descriptor(x: Any) -> Any:
    h = WithNoise()
    if x > 0:
        h.d = 5
    return h.d + x


@safe(2.0)
def descriptor_set_before(x: Any) -> Any:
    h = WithNoise()
    h.d = 1.0
    if x > 0:
        h.d = 5.0
    return h.d + x


@safe(2.0)
def generator_behind_a_break(x: Any) -> Any:
    g = numbers(10)
    s = 0.0
    for v in g:
        s = s + v * x
        if s > 5:
            break
    r = sum(g)
    return s + r


@right(2.0)
def generator_with_a_break(x: Any) -> Any:
    s = 0.0
    for v in numbers(10):
        s = s + v * x
        if s > 5:
            break
    return s


@safe(2.0)
def cached_list(x: Any) -> Any:
    if x > 0:
        shared_list().append(2.0)
    return len(shared_list()) + x


@safe(2.0)
def default_list(x: Any) -> Any:
    y = into_its_default(x)
    if x > 0:
        y = y + into_its_default(x)
    return y + into_its_default(1)


@right(2.0)
def starred_copy(x: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    a, *b = l
    if x > 0:
        b[0] = 7.0
        l[2] = 9.0
    return a, b[0], l[2], b[1]


@right(2.0)
def inner_list_by_other_name(x: Any) -> Any:
    l = [[1.0, 2.0], [3.0, 4.0]]
    m = [r for r in l]
    if x > 0:
        m[0][1] = x
    return l[0][1]


@right(2.0)
def one_inner_list_twice(x: Any) -> Any:
    l = [[0.0] * 2] * 2
    if x > 0:
        l[0][1] = x
    return l[1][1]


@safe(2.0)
def link_by_choice(x: Any) -> Any:
    n = Link(1.0)
    n.next = Link(2.0)
    cur = n
    if x > 0:
        cur = n.next
    cur.v = 5.0
    return n.v, n.next.v


@safe(2.0)
def count_in_a_branch(x: Any) -> Any:
    c = itertools.count()
    if x > 0:
        next(c)
    return next(c) + x


@safe(2.0)
def loop_over_a_count(x: Any) -> Any:
    c = itertools.count()
    if x > 0:
        for k in c:
            if k > 3:
                break
    return next(c) + x


@safe(2.0)
def islice_in_a_branch(x: Any) -> Any:
    it = iter([1.0, 2.0, 3.0, 4.0])
    if x > 0:
        a, b = itertools.islice(it, 2)
    return next(it) + x


@safe(2.0)
def membership_in_an_iterator(x: Any) -> Any:
    it = iter([1.0, 2.0, 3.0, 4.0])
    if x > 0:
        y = 2.0 in it
    return next(it) + x


@safe(2.0)
def starred_iterator(x: Any) -> Any:
    it = iter([1.0, 2.0, 3.0, 4.0])
    if x > 0:
        [*it]
    return next(it, 9.0) + x


@safe(2.0)
def islice_of_a_count(x: Any) -> Any:
    c = itertools.count()
    if x > 0:
        a, b = itertools.islice(c, 2)
    return next(c) + x


@safe(2.0)
def bound_method(x: Any) -> Any:
    l = [1.0]
    f = l.append
    if x > 0:
        f(2.0)
    return len(l) + x


@safe(2.0)
def partial_of_a_method(x: Any) -> Any:
    l = [1.0]
    f = functools.partial(l.append, 3.0)
    if x > 0:
        f()
    return len(l) + x


@safe(2.0)
def exit_stack(x: Any) -> Any:
    l = [1.0]
    with contextlib.ExitStack() as s:
        s.callback(lambda: l.append(1))
        if x > 0:
            s.callback(lambda: l.append(1))
    return len(l) + x


@right(2.0)
def deep_copy(x: Any) -> Any:
    d = {"a": [1.0]}
    if x > 0:
        e = copy.deepcopy(d)
        e["a"].append(x)
        x = x + len(e["a"])
    return len(d["a"]) + x


@safe(2.0)
def sorted_copy(x: Any) -> Any:
    l = [3.0, 1.0, 2.0]
    if x > 0:
        l = sorted(l)
        l.append(1.0)
        x = x + l[0]
    return x


@safe(2.0)
def list_added_in_place(x: Any) -> Any:
    l = [3.0, 1.0, 2.0]
    m = l
    if x > 0:
        l += [1.0]
    return len(m) + x


@right(2.0)
def window_of_numbers(x: Any) -> Any:
    l = [3.0, 1.0, 2.0]
    for k in range(30):
        l = l[1:] + [x + k]
    return l[0] + l[2]


@right(2.0)
def queue_of_a_while(x: Any) -> Any:
    q = [0.0, 0.0, 0.0]
    k = 0
    while x < 50:
        q = [x] + q[:-1]
        x = x + sum(q) * 0.1 + 1
    return q[0], q[1], q[2]


@right(2.0)
def best_so_far(x: Any) -> Any:
    best = None
    for k in range(30):
        if best is None or x * k > best:
            best = x * k
    return best


@safe(2.0)
def appends_in_a_while(x: Any) -> Any:
    hist = []
    while x > 1:
        hist.append(x)
        x = x / 2
    return len(hist)


@safe(2.0)
def text_by_choice(x: Any) -> Any:
    log = ""
    if x > 0:
        log += "a"
    return len(log) + x


@safe(2.0)
def refusal_in_a_try(x: Any) -> Any:
    try:
        l = [1.0]
        if x > 0:
            l.append(1)
    except TypeError:
        return -1.0
    return len(l) + x


@right(2.0)
def global_of_a_helper(x: Any) -> Any:
    global GG
    GG = 1.0

    def h():
        global GG
        GG = GG * 2

    if x > 0:
        h()
    for k in range(30):
        if x > k:
            h()
    return GG


@safe(2.0)
def new_key_in_branches(x: Any) -> Any:
    d = {}
    if x > 0:
        d["k"] = 1.0
    else:
        d["k"] = 2.0
    return d["k"]


@safe(2.0)
def array_rebound(x: Any) -> Any:
    A = np.zeros(3)
    B = A
    if x > 0:
        A = A + 1
    B[0] = x
    return A, B


@safe(2.0)
def array_rebound_and_written(x: Any) -> Any:
    A = np.zeros(3)
    B = A
    if x > 0:
        A = np.ones(3)
    A[0] = x
    return A, B


@right(2.0)
def flat_of_a_view(x: Any) -> Any:
    A = np.zeros(3)
    v = A[1:]
    if x > 0:
        v[:] = 5.0
    A.flat[0] = 3
    return A * x


@right(2.0)
def list_that_turns(x: Any) -> Any:
    t = 0.0
    l = [x, x + 1, x + 2]
    for k in range(30):
        l[0], l[1], l[2] = l[1], l[2], l[0] + 0.1
    return l[0], l[1], l[2]


@right(2.0)
def two_closures(x: Any) -> Any:
    def outer():
        c = 0.0

        def add(v):
            nonlocal c
            c += v
            return c

        return add

    add = outer()
    add2 = outer()
    for k in range(30):
        if x > k:
            add(k)
        add2(x)
    return add(0.0), add2(0.0)


@right(2.0)
def list_of_functions(x: Any) -> Any:
    fs = []
    for k in range(3):
        fs.append(lambda v, k=k: v * k)
    y = 0.0
    if x > 0:
        for f in fs:
            y = y + f(x)
    return y


@right(np.arange(40.0))
def insertion_sort(a: Any) -> Any:
    a = a.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] < key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


@right(2.0)
def named_tuple(x: Any) -> Any:
    P = namedtuple("P", "a b")
    p = P(1.0, 2.0)
    for k in range(30):
        p = p._replace(a=p.a + x)
    return p.a, p.b


@safe(2.0)
def refusal_suppressed(x: Any) -> Any:
    with contextlib.suppress(TypeError):
        l = [1.0]
        if x > 0:
            l.append(1)
        return len(l) + x
    return -1.0


@right(2.0)
def key_error_caught(x: Any) -> Any:
    d = {"a": 1.0}
    try:
        y = d["b"]
    except KeyError:
        y = 5.0
    return y if x > 0 else x


@right(2.0)
def errors_caught(x: Any) -> Any:
    k = "b"
    d = {"a": 1.0}
    try:
        y = d[k]
    except KeyError as e:
        y = 5.0 + len(str(e))
    try:
        float("q")
    except ValueError:
        y = y + 1
    try:
        assert k == "a"
    except AssertionError:
        y = y + 1
    try:
        raise ValueError("x")
    except (ValueError, TypeError):
        y += 1
    try:
        next(iter([]))
    except StopIteration:
        y += 1
    try:
        [1][3]
    except IndexError:
        y += 1
    return y if x > 0 else x


@right(2.0)
def array_in_a_try(x: Any) -> Any:
    try:
        z = np.zeros(3)
        z[0] = x
    except ValueError:
        return -1.0 * x
    return z


@right(2.0)
def expression_in_a_try(x: Any) -> Any:
    try:
        y = x + 1 if x > 0 else x
    except Exception:
        return -1.0 * x
    return y


# dicts, lists, arrays that change places ----


@safe(2)
def dict_read_at_traced_keys(n: Any) -> Any:
    d = {0: 1.0, 1: 5.0, 2: 7.0}
    s = 0.0
    for k in range(n + 1):
        s = s + d.get(k, 0.0)
    return s


@safe(2)
def dict_read_at_a_traced_key(n: Any) -> Any:
    d = {0: 1.0, 1: 5.0, 2: 7.0}
    return d[n]


@right(2)
def items_written(n: Any) -> Any:
    d = {"a": 1.0, "b": 2.0}
    if n > 1:
        d["a"], d["b"] = d["b"], d["a"]
    for k, v in d.items():
        d[k] = v * n
    return d["a"] - d["b"]


@safe(2)
def index_in_a_list(n: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    return l.index(n) + l.count(n)


@safe(2)
def slice_in_a_branch(n: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    if n > 1:
        l[:] = [4.0, 5.0, 6.0]
    return sum(l)


@right(2)
def slice_in_passes(n: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    for k in range(30):
        l[:] = [v + n for v in l]
    return sum(l)


@safe(2)
def memo_of_traced_calls(n: Any) -> Any:
    memo = {}

    def f(k):
        if k in memo:
            return memo[k]
        memo[k] = k * 2.0
        return memo[k]

    s = 0.0
    for k in range(n + 1):
        s = s + f(k)
    return s


@right(2.0)
def attribute_of_a_class(x: Any) -> Any:
    class C:
        total = 0.0

        def add(self, v):
            C.total += v

    c = C()
    for k in range(30):
        if x > k:
            c.add(k)
    return C.total


@right(2.0)
def continue_and_finally(x: Any) -> Any:
    s = 0.0
    for k in range(3):
        try:
            if k == 1:
                continue
            s = s + x
        finally:
            s = s + 1
    return s if x > 0 else x


@right(2.0)
def places_of_none(x: Any) -> Any:
    out = [None] * 3
    if x > 0:
        out[0] = x
        out[1] = 1.0
        out[2] = 0.0
    else:
        out[0] = 0.0
        out[1] = 1.0
        out[2] = x
    return out[0] + out[1] + out[2]


@right(2.0)
def arrays_in_a_dict(x: Any) -> Any:
    state = {"p": np.zeros(3), "n": 0}
    for k in range(30):
        state["p"][k % 3] += x
        state["n"] += 1
        if x > k:
            state["p"] = state["p"] * 2
    return state["p"], state["n"]


@safe(2.0)
def array_of_a_dict_rebound(x: Any) -> Any:
    p = np.zeros(3)
    state = {"p": p}
    if x > 0:
        state["p"] = state["p"] + 1
    p[0] = 5.0
    return state["p"], p


@safe(-2.0)
def array_of_a_dict_one_of_two(x: Any) -> Any:
    p = np.zeros(3) * x
    state = {"p": p}
    if x > 0:
        state["p"] = state["p"] + 1
    state["p"][0] = 5.0
    return state["p"], p


@right(2.0)
def list_by_two_names(x: Any) -> Any:
    a = [0.0, 0.0]
    b = a
    for k in range(30):
        if x > k:
            a[0] = a[0] + 1
            b[1] = b[1] + a[0]
    return a[0], a[1], b[0], b[1]


@right(2.0)
def lists_swapped_and_written(x: Any) -> Any:
    a = [0.0]
    b = [1.0]
    for k in range(30):
        a, b = b, a
        if x > k:
            a[0] = a[0] + k
    return a[0], b[0]


@right(3)
def lists_swapped_in_traced_passes(n: Any) -> Any:
    a = [0.0]
    b = [1.0]
    for k in range(n):
        a, b = b, a
        a[0] = a[0] + k + 10
    return a[0], b[0]


@right(3)
def arrays_swapped_in_traced_passes(n: Any) -> Any:
    a = np.zeros(2)
    b = np.ones(2)
    for k in range(n):
        a, b = b, a
        a[0] = a[0] + k + 10
    return a, b


@right(3.0)
def array_rebound_in_a_while(x: Any) -> Any:
    a = np.zeros(2)
    b = a
    while x > 0:
        b = b + 1
        a[0] = x
        x = x - 1
    return a, b


@right(3.0)
def array_handed_through_a_helper(x: Any) -> Any:
    a = np.zeros(2)

    def w(v, z):
        z[0] = v
        return z

    for k in range(30):
        b = w(k * x, a)
        b[1] = k
    return a, b


# what elements and attributes hold ----


class Holder:
    pass


@safe(2.0)
def attribute_is_one_of_two_lists(x: Any) -> Any:
    s = Holder()
    s.l = [1.0, 2.0]
    m = [3.0, 4.0]
    if x > 0:
        s.l = m
    s.l[0] = 9.0
    return m[0]


@safe(2.0)
def attribute_becomes_a_list_in_passes(x: Any) -> Any:
    s = Holder()
    s.l = [1.0, 2.0]
    m = [3.0, 4.0]
    for k in range(30):
        if x > k:
            s.l = m
    s.l[0] = 9.0
    return m[0]


@right(2.0)
def attribute_is_a_new_list(x: Any) -> Any:
    s = Holder()
    s.l = [1.0, 2.0]
    m = s.l
    for k in range(30):
        s.l = [s.l[0] + x, s.l[1]]
    s.l[1] = 9.0
    return m[0], m[1], s.l[0], s.l[1]


@right(2.0)
def attribute_is_a_new_list_in_a_while(x: Any) -> Any:
    s = Holder()
    s.l = [1.0, 2.0]
    m = s.l
    while x < 30:
        s.l = [s.l[0] + x, s.l[1]]
        x = x + 1
    return m[0], m[1], s.l[0], s.l[1]


@safe(2.0)
def attribute_of_a_while_written(x: Any) -> Any:
    s = Holder()
    s.l = [1.0, 2.0]
    m = s.l
    while x < 30:
        s.l = [s.l[0] + x, s.l[1]]
        x = x + 1
    s.l[1] = 5.0
    return m[0], m[1], s.l[0], s.l[1]


@right(2.0)
def element_swapped_with_a_list(x: Any) -> Any:
    d = {"q": [1.0, 2.0]}
    m = [5.0, 6.0]
    for k in range(30):
        d["q"], m = m, d["q"]
        m[0] = m[0] + x
    return m[0], d["q"][0]


@safe(2.0)
def nonlocal_is_one_of_two_lists(x: Any) -> Any:
    n = [0.0]

    def put(l):
        nonlocal n
        n = l

    m = [1.0]
    if x > 0:
        put(m)
    n[0] = 7.0
    return m[0], n[0]


@right(2.0)
def grid_of_lists(x: Any) -> Any:
    grid = [[0.0, 0.0], [0.0, 0.0]]
    for k in range(30):
        if x > k:
            grid[k % 2][0] = grid[k % 2][0] + x
    return grid[0][0] + grid[1][0]


@safe(2.0)
def row_of_a_grid_by_choice(x: Any) -> Any:
    grid = [[0.0, 0.0], [1.0, 1.0]]
    if x > 0:
        grid[0] = grid[1]
    grid[0][0] = 5.0
    return grid[1][0]


@right(2.0)
def attribute_that_was_none(x: Any) -> Any:
    s = Holder()
    s.n = None
    for k in range(30):
        if s.n is None:
            s.n = x * k
        else:
            s.n = s.n + k
    return s.n


# small programs ----


class Acc:
    def __init__(self):
        self.total = 0.0
        self.hist = np.zeros(40)
        self.k = 0

    def add(self, v):
        self.total = self.total + v
        self.hist[self.k] = self.total
        self.k += 1

    def reset_if(self, lim):
        if self.total > lim:
            self.total = 0.0


@right(2.0)
def accumulator(x: Any) -> Any:
    a = Acc()
    for k in range(40):
        a.add(x * k)
        a.reset_if(100.0)
    return a.hist, a.total, a.k


@right(2.0)
def accumulator_in_a_while(x: Any) -> Any:
    a = Acc()
    k = 0
    while a.total < 50.0 and k < 40:
        a.add(x)
        k += 1
    return a.hist, a.total, k


class Congruential:
    def __init__(self, s):
        self.s = s

    def next(self):
        self.s = (self.s * 1103515245 + 12345) % 2147483648
        return self.s / 2147483648


@right(7)
def pi_by_darts(s: Any) -> Any:
    r = Congruential(s)
    n = 0
    for k in range(100):
        a, b = r.next(), r.next()
        if a * a + b * b < 1:
            n += 1
    return n, r.s


@right(2.0)
def accept_and_reject(x: Any) -> Any:
    # accept/reject with counters in a dict
    st = {"acc": 0, "rej": 0, "x": x}
    for k in range(50):
        prop = st["x"] + np.sin(k)
        if abs(prop) < 2.5:
            st["x"] = prop
            st["acc"] += 1
        else:
            st["rej"] += 1
    return st["x"], st["acc"], st["rej"]


@right(np.arange(12.0).reshape(3, 4))
def elimination_with_pivots(A: Any) -> Any:
    A = A.copy()
    n, m = A.shape
    for i in range(n):
        p = i
        for r in range(i + 1, n):
            if abs(A[r, i]) > abs(A[p, i]):
                p = r
        if p != i:
            tmp = A[i].copy()
            A[i] = A[p]
            A[p] = tmp
        for r in range(i + 1, n):
            A[r] -= A[i] * (A[r, i] / (A[i, i] + 1e-3))
    return A


@right(2.0)
def bisection(x: Any) -> Any:
    def bis(f, a, b):
        for _ in range(60):
            m = 0.5 * (a + b)
            if f(m) > 0:
                b = m
            else:
                a = m
        return m

    return bis(lambda z: z * z - x, 0.0, 5.0)


@right(np.array([3.0, 1.0, 2.0, 5.0, 4.0] * 8))
def bubble_sort_by_a_helper(a: Any) -> Any:
    a = a.copy()

    def swap(i, j):
        a[i], a[j] = a[j], a[i]

    for i in range(len(a)):
        for j in range(len(a) - 1):
            if a[j] > a[j + 1]:
                swap(j, j + 1)
    return a


@safe(np.array([3.0, 1.0, 2.0, 5.0, 4.0] * 8))
def heap_of_traced(a: Any) -> Any:
    h = []
    for v in a:
        heapq.heappush(h, v)
    return h[0]


@right(2.0)
def descent_of_a_list(x: Any) -> Any:
    cfg = {"lr": 0.1, "steps": 30}
    p = [x, 1.0]
    for _ in range(cfg["steps"]):
        g = [2 * p[0], 4 * p[1]]
        p = [a - cfg["lr"] * b for a, b in zip(p, g)]
        if p[0] < 0.1:
            break
    return p[0], p[1]


@right(2.0)
def descent_in_place(x: Any) -> Any:
    p = [x, 1.0]
    for _ in range(30):
        for i in range(len(p)):
            p[i] -= 0.1 * p[i]
        if p[0] < 0.1:
            p[0] = 1.0
    return p[0], p[1]


@right(5)
def fibonacci(n: Any) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@right(np.arange(30.0))
def moving_buffer(a: Any) -> Any:
    out = np.zeros_like(a)
    buf = np.zeros(3)
    for k, v in enumerate(a):
        buf[1:] = buf[:-1].copy()
        buf[0] = v
        out[k] = buf.mean()
    return out


@safe(np.arange(30.0))
def differences_from_none(a: Any) -> Any:
    out = np.zeros_like(a)
    prev = None
    for k in range(len(a)):
        if prev is not None:
            out[k] = a[k] - prev
        prev = a[k]
    return out


@right(3.0)
def cache_of_traced(x: Any) -> Any:
    cache = {}

    def g(k):
        if k not in cache:
            cache[k] = x * k
        return cache[k]

    s = 0.0
    for k in range(40):
        s = s + g(k % 5)
    return s


@right(3.0)
def events_of_tuples(x: Any) -> Any:
    events = [(0.5, "a"), (1.5, "b"), (9.0, "c")]
    s = 0.0
    for t, name in events:
        if x > t:
            s = s + len(name) + t
    return s


@right(3.0)
def indices_of_a_grid(x: Any) -> Any:
    m = np.zeros((5, 5))
    for i, j in np.ndindex(5, 5):
        if x > i:
            m[i, j] = i + j
        elif j > 2:
            m[i, j] = -x
    return m


@right(3.0)
def particles_that_bounce(x: Any) -> Any:
    class P:
        def __init__(s, q):
            s.q = q
            s.v = 0.0

        def step(s):
            s.v = s.v - s.q * 0.1
            s.q = s.q + s.v * 0.1
            if s.q < 0:
                s.q = -s.q
                s.v = -s.v

    ps = [P(x), P(1.0), P(0.5)]
    for _ in range(50):
        for p in ps:
            p.step()
    return ps[0].q, ps[1].q, ps[2].v


@right(3.0)
def iterator_advanced_within(x: Any) -> Any:
    s = 0.0
    it = iter(range(5))
    for k in it:
        s = s + k * x
        next(it, None)
    return s if s > 0 else x


# arrays that are read from outside ----

ARRAYS = {"A": np.zeros(3)}
LISTED = [np.zeros(3), np.ones(3)]


class Owner:
    def __init__(self):
        self.a = np.zeros(3)

    def get(self):
        return self.a

    def both(self):
        return [self.a]


OWNER = Owner()


def reset() -> Any:
    ARRAYS["A"][:] = 0
    LISTED[0][:] = 0
    LISTED[1][:] = 1
    OWNER.a[:] = 0


@safe(2.0)
def array_of_a_dict_got(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    ARRAYS.get("A")[0] = 5.0
    return z + ARRAYS["A"]


@safe(2.0)
def array_of_a_method(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    OWNER.get()[0] = x
    return z + OWNER.a


@safe(2.0)
def array_in_a_list_of_a_method(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    OWNER.both()[0][0] = 1.0
    return z + OWNER.a


@safe(2.0)
def array_by_getattr(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    a = getattr(OWNER, "a")
    a[0] = 3.0
    return z + OWNER.a


@right(2.0)
def arrays_of_an_own_object(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    h = Owner()
    h.get()[0] = x
    h.both()[0][1] = x
    l = h.both()
    l[0] = None
    return z + h.a


@safe(2.0)
def asarray_of_a_known_one(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    a = np.asarray(LISTED[0])
    a[0] = 3.0
    return z + LISTED[0]


@right(2.0)
def reshaped_and_ravelled(x: Any) -> Any:
    z = np.zeros(6)
    z[0] = x
    a = z.reshape(2, 3)
    a[1, 1] = x
    b = np.ravel(a)
    b[2] = 7
    return z, a


@right(2.0)
def array_by_two_names(x: Any) -> Any:
    z = np.zeros(6)
    z[0] = x
    m = np.array([1.0, 2.0])
    n = m
    m[0] = 9
    a, b = np.meshgrid(m, m)
    a[0, 0] = x
    return n, a, b, z


@right(2.0)
def new_arrays_of_numpy(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x
    p = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    p[0, 0] = x
    q = np.split(np.linspace(0.0, 1.0, 6), 2)
    q[0][0] = x
    r = np.linspace(0.0, 1.0, 6)[::2]
    r[1] = x
    s = list(np.linspace(0.0, 1.0, 6).reshape(2, 3))
    return z, p, q[0], r, s[1]


# classes of the user ----


class Pair:
    def __init__(s, a, b):
        s.a = a
        s.b = b

    def __add__(s, o):
        return Pair(s.a + o.a, s.b + o.b)

    def __mul__(s, k):
        return Pair(s.a * k, s.b * k)

    def __neg__(s):
        return Pair(-s.a, -s.b)

    def __eq__(s, o):
        return s.a == o.a

    def norm(s):
        return (s.a**2 + s.b**2) ** 0.5


class CountedGrid:
    def __init__(s, n):
        s.d = np.zeros((n, n))
        s.writes = 0

    def __setitem__(s, k, v):
        s.d[k] = v
        s.writes += 1

    def __getitem__(s, k):
        return s.d[k]

    def __len__(s):
        return len(s.d)

    def __contains__(s, v):
        return bool((s.d == v).any())

    def __call__(s, i, j):
        return s.d[i, j]


class Timer:
    def __init__(s):
        s.log = []

    def __enter__(s):
        return s

    def __exit__(s, *a):
        s.log.append(1)
        return False


class Lazy:
    def __init__(s):
        s._v = None

    @property
    def v(s):
        if s._v is None:
            s._v = np.arange(5.0)
        return s._v


@safe(2.0)
def objects_by_choice(x: Any) -> Any:
    p = Pair(x, 1.0)
    v = Pair(0.5, -0.2)
    for k in range(30):
        p = p + v * 0.1
        if p.norm() > 3:
            v = -v
    return p.a, p.b


@right(2.0)
def grid_of_the_user(x: Any) -> Any:
    g = CountedGrid(4)
    for k in range(4):
        for j in range(4):
            g[k, j] = x * k + j
            if g[k, j] > 5:
                g[k, j] = 5.0
    return g.d, g.writes, g(1, 2), len(g)


@right(2.0)
def context_that_logs(x: Any) -> Any:
    t = Timer()
    for k in range(30):
        with t:
            x = x * 0.9
    return x + len(t.log) if x > 0 else x


@safe(2.0)
def lazy_attribute(x: Any) -> Any:
    z = Lazy()
    if x > 0:
        y = z.v.sum() * x
    else:
        y = z.v[0]
    return y


@right(2.0)
def lazy_attribute_read_before(x: Any) -> Any:
    z = Lazy()
    z.v
    if x > 0:
        y = z.v.sum() * x
    else:
        y = z.v[0]
    return y


@right(2.0)
def histogram(x: Any) -> Any:
    counts = np.zeros(5, dtype=int)
    for k in range(50):
        x = (x * 3.7) % 5
        counts[int(x)] += 1
    return counts


@right(2.0)
def dict_of_names(x: Any) -> Any:
    names = ["a", "b"]
    vals = {}
    for n in names:
        vals[n] = x * len(n)
    if x > 1:
        for n in names:
            vals[n] = vals[n] + 1
    return vals["a"] + vals["b"]


@right(2.0)
def log_of_passes(x: Any) -> Any:
    msgs = []

    def log(m):
        msgs.append(m)

    for k in range(40):
        x = x * 0.9
        log("step")
    return x + len(msgs) if x > 0 else x


@right(2.0)
def recursion_with_a_sum(x: Any) -> Any:
    s = 0.0

    def rec(d):
        nonlocal s
        s = s + x
        if d > 0:
            rec(d - 1)

    rec(5)
    if x > 0:
        rec(2)
    return s


@right(np.arange(20.0))
def records_of_a_sequence(a: Any) -> Any:
    best = -np.inf
    arg = -1
    path = np.zeros(20, dtype=int)
    n = 0
    for i, v in enumerate(a):
        if v % 7 > best:
            best = v % 7
            arg = i
            path[n] = i
            n += 1
    return best, arg, path, n


@safe(np.arange(20.0))
def largest_three(a: Any) -> Any:
    top = np.full(3, -np.inf)
    for v in np.sin(a):
        if v > top[0]:
            top[0] = v
            top.sort()
    return top


@safe(np.arange(20.0))
def smoothing_in_place(a: Any) -> Any:
    w = np.zeros(4)
    tmp = np.empty(4)
    for v in a:
        np.multiply(w, 0.5, out=tmp)
        w[:] = tmp
        w[0] += v
    return w


@right(2.0)
def setitem_of_a_dict(x: Any) -> Any:
    d = {"n": 0}
    f = lambda: d.__setitem__("n", d["n"] + 1)
    for k in range(40):
        if x > k:
            f()
    return d["n"]


@right(2.0)
def update_of_a_dict(x: Any) -> Any:
    d = {"n": 0}
    for k in range(40):
        x = x + 1
        d.update(n=d["n"] + k)
    return d["n"] + x


@right(2.0)
def counts_in_a_list(x: Any) -> Any:
    l = [0] * 5
    for k in range(40):
        l[k % 5] += 1
        if x > k:
            l[k % 5] += x
    return l[0] + l[1] + l[4]


@right(2.0)
def walk_of_a_nest(x: Any) -> Any:
    def walk(t, acc):
        if isinstance(t, tuple):
            for u in t:
                walk(u, acc)
        else:
            acc.append(t)
        return acc

    ls = walk((x, (1.0, (2.0, x))), [])
    return sum(ls) if x > 0 else x


@right(2.0)
def rows_made_in_passes(x: Any) -> Any:
    total = 0
    for i in range(20):
        row = []
        for j in range(3):
            row.append(i * j * x)
        total = total + max(row)
    return total


# what is made in branches ----


class Thing:
    pass


@right(2.0)
def list_made_in_a_branch_and_filled(x: Any) -> Any:
    l = [1.0, 1.0]
    if x > 0:
        l = [0.0, 0.0]
        for k in range(30):
            l[k % 2] = k * 1.0
    return l[0] + l[1]


@right(2.0)
def list_made_in_a_branch_and_filled_with_traced(x: Any) -> Any:
    l = [1.0, 1.0]
    if x > 0:
        l = [0.0, 0.0]
        for k in range(30):
            l[k % 2] = k * x
    return l[0] + l[1]


@right(2.0)
def object_made_in_a_branch(x: Any) -> Any:
    y = 0.0
    if x > 0:
        s = Thing()
        s.v = 0.0
        for k in range(30):
            s.v = s.v + k
        y = s.v
    return y


@right(2.0)
def list_grown_in_a_branch(x: Any) -> Any:
    y = 0.0
    if x > 0:
        p = []
        for k in range(30):
            p.append(x * k)
        y = sum(p)
    return y


@right(2.0)
def list_made_in_a_branch_of_branches(x: Any) -> Any:
    l = [1.0, 1.0]
    if x > 0:
        l = [0.0, 0.0]
        if x > 1:
            l[0] = 5.0
        if x > 5:
            l[1] = 6.0
    return l[0] + l[1]


@right(2.0)
def dict_made_in_a_branch(x: Any) -> Any:
    l = [1.0, 1.0]
    if x > 0:
        l = [0, 0]
        for k in range(30):
            l[k % 2] += 1
        d = {}
        for k in range(30):
            d[k] = k
        x = x + d[29]
    return l[0] + l[1] + x


@right(2.0)
def buffers_of_a_helper(x: Any) -> Any:
    def h(v):
        buf = [0.0, 0.0]
        for k in range(30):
            buf[k % 2] = buf[k % 2] + v * k
        n = 0

        def inc():
            nonlocal n
            n += 1

        for k in range(30):
            inc()
        return buf, n

    for k in range(20):
        if x > k:
            b, n = h(x)
            x = x + b[0] * 1e-9 + n
    return x
