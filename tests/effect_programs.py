"""Programs that change objects and arrays in branches and loops: `right` ones give what Python gives, `safe` ones may be refused."""

# ruff: noqa: B007, B023, B905, C416, C417, E742, F821, F841 - programs as people write them

from __future__ import annotations

from collections import deque
from collections.abc import Callable
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


def pick(x: Any, a: Any, b: Any) -> Any:
    if x > 0:
        return a
    return b


def pick2(x: Any, a: Any, b: Any) -> Any:
    for k in range(30):
        if x > k:
            return a
    return b


def pick3(x: Any, a: Any, b: Any) -> Any:
    return a if x > 0 else b


def pick4(x: Any, a: Any, b: Any) -> Any:
    for k in range(30):
        if a[0] > k:
            return a
        b[0] = b[0] + 1
    return b


def pick5(x: Any, a: Any, b: Any) -> Any:
    if x > 0:
        r = (a, b)
    else:
        r = (b, a)
    return r


@safe(1.0, np.ones(3), np.zeros(3))
def w1(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick(x, a, b)
    r[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def w2(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick(x, a, b)
    a[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def w3(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick2(x, a, b)
    r[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def w4(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick2(x, a, b)
    a[0] = 5.0
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def w5(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick3(x, a, b)
    r[0] = 5.0
    return a, b, r


@right(1.0, np.ones(3), np.zeros(3))
def w6(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick4(x, a, b)
    r = r * 2
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def w7(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r = pick4(x, a, b)
    r[1] = 2
    return a, b, r


@safe(1.0, np.ones(3), np.zeros(3))
def w8(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    r, q = pick5(x, a, b)
    r[1] = 2
    return a, b, r, q


@right(1.0, np.ones(3), np.zeros(3))
def w9(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    b = b.copy()
    if x > 0:
        return a
    a[0] = 5.0
    b[1] = 7.0
    return b


@right(1.0, np.ones(3), np.zeros(3))
def w10(x: Any, a: Any, b: Any) -> Any:
    return pick(x, pick(x, a, b) + 1, b) * 2


@right(1.0, np.ones(3), np.zeros(3))
def w11(x: Any, a: Any, b: Any) -> Any:
    r = pick(x, a + 1, b + 1)
    r[0] = 5.0
    return r


@safe(1.0, np.ones(3), np.zeros(3))
def w12(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()

    def v():
        if x > 0:
            return a[1:]
        return a[:2]

    r = v()
    r[0] = 5.0
    return a


@safe(1.0, np.ones(3), np.zeros(3))
def w13(x: Any, a: Any, b: Any) -> Any:
    a = a.copy()
    l = [a, b.copy()]
    m = l
    if x > 0:
        l = [l[1], l[0]]
    l[0][0] = 3
    return m[0], m[1]


@safe(1.0)
def w14(x: Any) -> Any:
    l = [x, 1.0]
    m = l
    if x > 0:
        l = [x, 2.0]
    l[0] = 7.0
    return m[0], l[0], l[1]


@safe(-1.0)
def w15(x: Any) -> Any:
    l = [x, 1.0]
    m = l
    if x > 0:
        l = [x, 2.0]
    m[0] = 7.0
    return m[0], l[0], l[1]


@safe(-1.0)
def w16(x: Any) -> Any:
    l = [1.0, 2.0]
    m = [3.0, 4.0]
    r = l if x > 0 else m
    r[0] = 7.0
    return m[0], l[0], r[0]


@safe(-1.0)
def w17(x: Any) -> Any:
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
def w18(x: Any) -> Any:
    l = [1.0, 2.0]
    m = [3.0, 4.0]
    for k in range(20):
        l, m = m, l
        l[0] = l[0] + x
    return l[0], m[0]


@right(1.0)
def w19(x: Any) -> Any:
    l = [x, 2.0]
    m = l
    for k in range(20):
        x = x + 1
        l = [x, l[1] + 1]
    l[0] = 0
    return l[0], m[0]


@safe(1.0, np.ones(3), np.zeros(3))
def w20(x: Any, a: Any, b: Any) -> Any:
    Z = np.zeros(3)
    W = np.ones(3)
    r = pick(x, Z, W)
    r[0] = 9
    return Z, W


@safe(1.0, np.ones(3), np.zeros(3))
def w21(x: Any, a: Any, b: Any) -> Any:
    Z = np.zeros(3)
    W = np.ones(3)
    r = pick(x, Z, W)
    Z[0] = 9
    return r


@safe(1.0)
def w22(x: Any) -> Any:
    d = {"a": 1.0}
    e = d
    if x > 0:
        d = {"a": x}
    d["a"] = 5.0
    return e["a"], d["a"]


# iterators, and lists at traced places ----


@safe(V)
def i1(a: Any) -> Any:
    z = zip(a, a * 2)
    t = 0.0
    for p, q in z:
        t = t + p * q
    for p, q in z:
        t = t + 100
    return t


@safe(V, 2.0)
def i2(a: Any, x: Any) -> Any:
    z = enumerate(a)
    k, v = next(z)
    t = v * 0
    for k, v in z:
        t = t + k * v * x
    return t if x > 0 else -t


@safe(V, 2.0)
def i3(a: Any, x: Any) -> Any:
    z = reversed(a)
    s = [v for v in z]
    r = [v for v in z]
    return (s[0] + len(r)) if x > 0 else x


@safe(V, 2.0)
def i4(a: Any, x: Any) -> Any:
    z = zip(a, a)
    t = 0.0
    if x > 0:
        for p, q in z:
            t = t + p
    return t


@right(V, 2.0)
def i5(a: Any, x: Any) -> Any:
    t = 0.0
    for k in range(3):
        for j, (p, q) in enumerate(zip(a, a)):
            t = t + p * q * j * x
    return t if x > 0 else -x


@safe(V, 2.0)
def i6(a: Any, x: Any) -> Any:
    it = iter([1.0, 2.0, 3.0, 4.0])
    for v in it:
        x = x + v
        if x > 4:
            break
    return x + next(it)


@safe(V, 2.0)
def i7(a: Any, x: Any) -> Any:
    d = dict(zip(range(3), a))
    l = list(enumerate(a))
    m = max(zip(range(3), range(3)))
    return d[2] * x + l[3][1] + m[0] if x > 0 else x


@safe(V, 2.0)
def i8(a: Any, x: Any) -> Any:
    m = map(lambda v: v * x, a)
    s = sum(m)
    r = len(list(m))
    return s + r if x > 0 else x


@safe(V, 2.0)
def i9(a: Any, x: Any) -> Any:
    z = enumerate(a)
    for k in range(20):
        j, v = next(z)
        x = x + v * j
    return x if x > 0 else -x


@safe(V, 1)
def l1(a: Any, i: Any) -> Any:
    p = np.zeros(3)
    q = np.ones(3)
    l = [p, q]
    l[i][0] = 5.0
    return p, q


@right(V, 1)
def l2(a: Any, i: Any) -> Any:
    p = a[:3] * 2
    q = a[3:6] * 2
    r = [p, q][i]
    r = r + 1
    return r


@safe(V, 1)
def l3(a: Any, i: Any) -> Any:
    p = a[:3] * 2
    q = a[3:6] * 2
    r = [p, q][i]
    q[0] = 100.0
    return r


@right(V, 1)
def l4(a: Any, i: Any) -> Any:
    A = np.zeros((3, 3))
    A[i][0] = 4.0
    row = A[i]
    row[1] = 5.0
    return A


@right(V, 1)
def l5(a: Any, i: Any) -> Any:
    A = np.zeros((3, 3))
    row = A[i]
    A[1, 0] = 7
    return row * 1


@safe(V, 1)
def l7(a: Any, i: Any) -> Any:
    l = [1.0, 2.0]
    l[i] = 3.0
    return l[0], l[1]


@right(V, 1)
def l8(a: Any, i: Any) -> Any:
    return [1.0, 2.0, 3.0][i] * 2, (a[0], a[5])[i]


@right(V, 1)
def l9(a: Any, i: Any) -> Any:
    l = [np.zeros(2), np.ones(2)]
    for k in range(20):
        l[k % 2] = l[k % 2] + a[k]
    return l[0], l[1]


@right(V, 2)
def l10(a: Any, i: Any) -> Any:
    A = np.arange(9.0).reshape(3, 3)
    t = 0.0
    for k in range(i):
        for v in A[k]:
            t = t + v
    return t


# names that a loop or a branch may leave unbound ----


@right(3)
def z1(n: Any) -> Any:
    for k in range(n):
        y = k * 2.0
    return y


@safe(0)
def z2(n: Any) -> Any:
    for k in range(n):
        y = k * 2.0
    return y


@right(0)
def z3(n: Any) -> Any:
    y = 5.0
    for k in range(n):
        y = k * 2.0
    return y


@right(0)
def z4(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        for j in range(n):
            y = k * 2.0 + j
            t = t + y
    return t


@safe(0)
def z5(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        t = t + k
    return t * k


@safe(5)
def z6(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        if k > 1:
            w = k * 3.0
        t = t + k
    return t * w


@safe(5.0)
def z7(x: Any) -> Any:
    while x > 10:
        y = x
        x = x - 1
    return y + x


@right(15.0)
def z8(x: Any) -> Any:
    while x > 10:
        y = x
        x = x - 1
    return y + x


@safe(15.0)
def z9(x: Any) -> Any:
    for k in range(40):
        if x < 10:
            break
        y = x
        x = x - 1
    return y + x


@safe(5.0)
def z10(x: Any) -> Any:
    for k in range(40):
        if x < 10:
            break
        y = x
        x = x - 1
    return y + x


@right(15.0)
def z11(x: Any) -> Any:
    for k in range(40):
        y = x
        x = x - 1
        if x < 10:
            break
    return y + x + k


@safe(5.0)
def z12(x: Any) -> Any:
    for k in range(10):
        if x < 10:
            break
        y = x
        x = x - 1
    return y + x


@safe(5.0)
def z13(x: Any) -> Any:
    if x > 6:
        y = 1.0
    return y + x


@safe(5.0)
def z14(x: Any) -> Any:
    if x > 6:
        y = 1.0
    if x > 6:
        return y
    return x


@safe(4)
def z15(n: Any) -> Any:
    t = 0.0
    for k in range(n):
        if k > 0:
            t = t + prev
        prev = k * 2.0
    return t


@safe(4)
def z16(n: Any) -> Any:
    t = 0.0
    for i in range(n):
        for j in range(i):
            y = j + 1.0
        t = t + i
    return t + y


@right(30)
def z17(n: Any) -> Any:
    t = 0.0
    for k in range(30):
        for j in range(k):
            q = j * 1.0
        t = t + (q if k > 0 else 0.0)
    return t


@right(3.0)
def z18(x: Any) -> Any:
    for k in range(30):
        del_me = x + k
        x = x + del_me
        del del_me
    return x


@safe(np.zeros(0))
def z19(a: Any) -> Any:
    for v in a:
        y = v + 1
    return y


@right(np.zeros(3))
def z20(a: Any) -> Any:
    for k in range(len(a)):
        y = a[k] + 1
    return y


@right(np.zeros(3))
def z21(a: Any) -> Any:
    k = 0
    while k < len(a):
        y = a[k] + 1
        k += 1
    return y


@safe(3)
def z22(n: Any) -> Any:
    for k in range(n):
        y = k
        while y < 10:
            y = y + 3
            w = y
        z = w
    return z


@safe(0)
def z23(n: Any) -> Any:
    for k in range(1, n + 1):
        y = k * 1.0
    try:
        return y
    except NameError:
        return -1.0


@right(0)
def z24(n: Any) -> Any:
    k = -1
    for k in range(n):
        pass
    return k


@right(np.zeros(4))
def z25(a: Any) -> Any:
    i = 0
    for i in range(len(a)):
        if a[i] > 0:
            break
    else:
        i = 99
    return i


@right(3)
def z26(n: Any) -> Any:
    for k in range(n):

        def h(v):
            return v + k

        y = h(1.0)
    return y


@right(2.0)
def z27(x: Any) -> Any:
    total = 0.0
    for i in range(20):
        for j in range(20):
            if x * i + j > 30:
                break
            total = total + j
    return total


# what loops of unknown length leave ----


@right(3)
def y1(n: Any) -> Any:
    z = 0.0
    for k in range(n):
        y = k
        while y < 10:
            y = y + 3
            w = y
        z = w
    return z


@right(3)
def y2(n: Any) -> Any:
    z = 0.0
    for k in range(n):
        for j in range(k):
            q = j * 2.0
        if k > 1:
            z = q
    return z


@right(3, np.zeros(4))
def y3(n: Any, a: Any) -> Any:
    for k in range(n):
        b = a + k
    b[0] = 7
    return b


@right(0, np.zeros(4))
def y4(n: Any, a: Any) -> Any:
    for k in range(n):
        b = a + k
    if n > 0:
        return b
    return a


@safe(3, np.zeros((4, 2)))
def y5(n: Any, a: Any) -> Any:
    a = a.copy()
    for k in range(n):
        row = a[k]
    row[0] = 7
    return a


@safe(3, np.zeros((4, 2)))
def y6(n: Any, a: Any) -> Any:
    a = a.copy()
    for k in range(n):
        row = a[k]
    a[:] = 7
    return row


@right(3, np.zeros((4, 2)))
def y7(n: Any, a: Any) -> Any:
    a = a.copy()
    for k in range(n):
        row = a[k]
    return row.sum()


@safe(3, np.zeros((4, 2)))
def y8(n: Any, a: Any) -> Any:
    for k in range(n):
        p = a[0] * k
        q = p
    p[0] = 5
    return q


@safe(3, np.zeros((4, 2)))
def y9(n: Any, a: Any) -> Any:
    for k in range(20):
        p = a[0] * k * n
        q = p
    p[0] = 5
    return q


@safe(0, np.zeros((4, 2)))
def y10(n: Any, a: Any) -> Any:
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
def y11(n: Any, a: Any) -> Any:
    for k in range(n):
        pair = (k, a[k] * 2)
    return pair[0] + pair[1]


@right(np.arange(30.0))
def y12(a: Any) -> Any:
    for i in range(len(a)):
        for j in range(i, len(a)):
            m = a[i] * a[j]
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            m = a[i] * a[j]
            a = a + m * 1e-9
    return a


# passes that are taken back ----


class O:
    pass


@right(2.0)
def t1(x: Any) -> Any:
    d = {"a": 1.0}
    for k in range(40):
        d.pop("a", None)
        d["b"] = 2.0
        d["a"] = 3.0
        x = x + d["a"]
    return x + list(d).index("a")


@right(2.0)
def t2(x: Any) -> Any:
    o = O()
    o.v = 0.0
    for k in range(40):
        o.w = k
        o.v = o.v + x
        del o.w
    return o.v + (1 if hasattr(o, "w") else 0)


@right(2.0)
def t3(x: Any) -> Any:
    l = [1.0, 2.0, 3.0]
    for k in range(40):
        del l[0]
        l.append(4.0)
        x = x + k
    return x + sum(l) + len(l)


@right(2.0)
def t4(x: Any) -> Any:
    q = deque([1.0, 2.0], maxlen=5)
    for k in range(40):
        q.append(x + k)
    return sum(q)


@right(2.0)
def t5(x: Any) -> Any:
    seen = set()
    n = 0
    for k in range(100):
        if k % 7 not in seen:
            seen.add(k % 7)
            n += 1
    return x * n if x > 0 else x


@right(2.0)
def t6(x: Any) -> Any:
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
def t7(x: Any) -> Any:
    memo = {}
    for k in range(60):
        memo[k] = k * k
    s = 0.0
    for k in range(60):
        s = s + memo[k] * x
    return s if x > 0 else 0.0


@right(2.0)
def t8(x: Any) -> Any:
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
def t9(x: Any) -> Any:
    l = []
    for k in range(60):
        l.append(x * k)
    return sum(l) if x > 0 else x


@safe(2)
def t10(k: Any) -> Any:
    match k:
        case 1 | 2 as q:
            return q * 10
        case int() as w:
            return w
    return 0


@right(2.0)
def t11(k: Any) -> Any:
    match k:
        case 1 | 2 as q:
            return q * 10
        case 5:
            return 1.0
        case z if z > 3:
            return z
    return 0.0


@right(2.0)
def t12(x: Any) -> Any:
    l = [1.0, 2.0]
    m = l
    for k in range(40):
        l[k % 2] = l[k % 2] + 1.0
        x = x * 0.99
    return m[0], m[1], x


@right(2.0)
def t13(x: Any) -> Any:
    o = O()
    o.l = [0.0, 0.0]
    for k in range(40):
        o.l[0] += x
        if o.l[0] > 20:
            o.l[1] += 1
    return o.l[0], o.l[1]


@right(2.0)
def t14(x: Any) -> Any:
    d = {}
    for k in range(40):
        d[k % 4] = d.get(k % 4, 0) + 1
    return x + d[3] if x > 0 else x


@right(2.0)
def t15(x: Any) -> Any:
    d = {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}
    for k in range(40):
        d[k % 4] = d[k % 4] + x
    return d[3]


@right(2.0)
def t16(x: Any) -> Any:
    A = np.zeros((20, 2))
    for k in range(20):
        A[k] = [x, k]
        r = A[k]
        r += 1
    return A


@safe(2.0)
def t17(x: Any) -> Any:
    z = np.zeros(5)
    z.fill(3.0)
    z.sort()
    z[0] = x
    return z


@right(2.0)
def t18(x: Any) -> Any:
    z = np.zeros(5)
    for k in range(30):
        np.add(z, 1.0, out=z)
    return z * x if x > 0 else z


@right(2.0)
def t19(x: Any) -> Any:
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
def t20(x: Any) -> Any:
    it = iter(range(1000))
    s = 0.0
    for k in range(30):
        s = s + next(it) * x
    return s
