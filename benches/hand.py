"""The workloads as a good engineer writes them by hand in Numba: what generated code is held against."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from data import STEPS
from numba import njit, prange

POWER_STEPS, LORENZ_STEPS, HEAT_STEPS, BATCH_STEPS = (STEPS[name] for name in ("power", "lorenz", "heat1d", "batch-lorenz"))

PACKAGES = ()


@njit(error_model="numpy")
def cumsum(x):
    out = np.empty(x.shape[0])
    s = 0.0
    for t in range(x.shape[0]):
        s += x[t]
        out[t] = s
    return out


@njit(error_model="numpy")
def power(a):
    p = np.ones_like(a)
    for _ in range(POWER_STEPS):
        for i in range(a.shape[0]):
            p[i] *= a[i]
    return p


@njit(inline="always")
def flow(x, y, z):
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z


@njit(inline="always")
def runge_kutta_step(x, y, z, h):
    a1, b1, c1 = flow(x, y, z)
    a2, b2, c2 = flow(x + h / 2 * a1, y + h / 2 * b1, z + h / 2 * c1)
    a3, b3, c3 = flow(x + h / 2 * a2, y + h / 2 * b2, z + h / 2 * c2)
    a4, b4, c4 = flow(x + h * a3, y + h * b3, z + h * c3)
    return x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4), z + h / 6 * (c1 + 2 * c2 + 2 * c3 + c4)


@njit(error_model="numpy")
def lorenz(start, h):
    out = np.empty((LORENZ_STEPS, 3))
    x, y, z = start
    for t in range(LORENZ_STEPS):
        x, y, z = runge_kutta_step(x, y, z, h)
        out[t, 0] = x
        out[t, 1] = y
        out[t, 2] = z
    return out


@njit(parallel=True, error_model="numpy")
def batch_lorenz(starts, h):
    """Tiles of 64 lanes, the loop over time outside the loop over lanes: LLVM makes SIMD of the latter."""
    out = np.empty_like(starts)
    for tile in prange((len(starts) + 63) // 64):
        first = 64 * tile
        n = min(64, len(starts) - first)
        x, y, z = np.zeros(64), np.zeros(64), np.zeros(64)
        for i in range(n):
            x[i], y[i], z[i] = starts[first + i, 0], starts[first + i, 1], starts[first + i, 2]
        for _ in range(BATCH_STEPS):
            for i in range(64):
                x[i], y[i], z[i] = runge_kutta_step(x[i], y[i], z[i], h)
        for i in range(n):
            out[first + i, 0], out[first + i, 1], out[first + i, 2] = x[i], y[i], z[i]
    return out


@njit(error_model="numpy")
def garch(p, r):
    omega, alpha, beta = p
    variance, total = 1e-4, 0.0
    for t in range(r.shape[0]):
        r2 = r[t] * r[t]
        total += math.log(variance) + r2 / variance
        variance = omega + alpha * r2 + beta * variance
    return 0.5 * total


@njit(error_model="numpy")
def heat1d(u):
    u, v = u.copy(), np.empty_like(u)
    n = u.shape[0]
    for _ in range(HEAT_STEPS):
        v[0] = u[0]
        v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i] = u[i] + 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1])
        u, v = v, u
    return u


@njit(inline="always")
def add_product(a, b, out):
    """out += a @ b, all of them 4 × 4: bounds that LLVM sees, rows that fit a SIMD register."""
    for i in range(4):
        for k in range(4):
            for j in range(4):
                out[i, j] += a[i, k] * b[k, j]


@njit(error_model="numpy")
def kalman(F, H, Q, R, y):
    """4 states, the first one observed: H = [1, 0, 0, 0] written in."""
    m, predicted, F_transposed = np.zeros(4), np.empty(4), F.T.copy()
    P, FP, S = np.eye(4), np.empty((4, 4)), np.empty((4, 4))
    total = 0.0
    for t in range(y.shape[0]):
        for i in range(4):
            s = 0.0
            for j in range(4):
                s += F[i, j] * m[j]
            predicted[i] = s
        FP[:] = 0.0
        add_product(F, P, FP)
        S[:] = Q
        add_product(FP, F_transposed, S)
        v, s = y[t, 0] - predicted[0], S[0, 0] + R[0, 0]
        total -= 0.5 * (math.log(s) + v * v / s + math.log(2 * math.pi))
        for i in range(4):
            gain = S[0, i] / s
            m[i] = predicted[i] + gain * v
            for j in range(4):
                P[i, j] = S[i, j] - gain * S[0, j]
    return total


@njit(inline="always")
def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@njit(inline="always")
def tanh(x):
    """By way of exp, which takes a fifth of the time of math.tanh: right to 1e-16, though not relative to a small x."""
    return 2.0 * sigmoid(2.0 * x) - 1.0


@njit(error_model="numpy")
def rnn_paths(W, W1, W2, Wf, Wo, u, x0, y0):
    """Both states with their initial rows; the products with the input are pushed out of the loop."""
    H, T = W.shape[0], u.shape[0] - 4
    X, Y = np.empty((T + 3, H)), np.empty((T + 1, H))
    X[:3], Y[0] = x0, y0
    U = np.dot(u[4:], W1) + np.dot(u[:-4], W2)
    a, b = np.empty(H), np.empty(H)
    for t in range(T):
        np.dot(X[t + 2], W, a)
        np.dot(Y[t], Wf, b)
        for i in range(H):
            X[t + 3, i] = tanh(a[i] + b[i] + U[t, i])
        np.dot(X[t], Wo, Y[t + 1])
    return X, Y


@njit(error_model="numpy")
def rnn(W, W1, W2, Wf, Wo, u, x0, y0):
    X, Y = rnn_paths(W, W1, W2, Wf, Wo, u, x0, y0)
    return X[3:], Y[1:]


@njit(error_model="numpy")
def lstm(Wx, Wh, b, x, h0, c0):
    """The products with the input are pushed out of the loop."""
    T, batch, n = x.shape
    Z = np.dot(x.reshape(T * batch, n), Wx).reshape(T, batch, 4 * n)
    out = np.empty((T, batch, n))
    h, c, z = h0, c0.copy(), np.empty((batch, 4 * n))
    for t in range(T):
        np.dot(h, Wh, z)
        for k in range(batch):
            for j in range(4 * n):
                z[k, j] += Z[t, k, j] + b[j]
            for j in range(n):
                c[k, j] = sigmoid(z[k, n + j]) * c[k, j] + sigmoid(z[k, j]) * tanh(z[k, 2 * n + j])
                out[t, k, j] = sigmoid(z[k, 3 * n + j]) * tanh(c[k, j])
        h = out[t]
    return out


@njit(error_model="numpy")
def logsumexp(a):
    top = a.max()
    s = 0.0
    for i in range(a.shape[0]):
        s += math.exp(a[i] - top)
    return math.log(s) + top


@njit(inline="always")
def largest_sum(a, column):
    top = -np.inf
    for i in range(a.shape[0]):
        top = max(top, a[i] + column[i])
    return top


@njit(error_model="numpy")
def hmm(moves, seen, first):
    n = moves.shape[0]
    a, b = first + seen[0], np.empty(n)
    for t in range(1, seen.shape[0]):
        for j in range(n):
            top = largest_sum(a, moves[:, j])
            s = 0.0
            for i in range(n):
                s += math.exp(a[i] + moves[i, j] - top)
            b[j] = math.log(s) + top + seen[t, j]
        a, b = b, a
    return logsumexp(a)


@njit(error_model="numpy")
def add(x, s):
    out = np.empty_like(x)
    for t in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[t, i] = (out[t - 1, i] if t else s[i]) + x[t, i]
    return out


def call(name: str, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """The workload as a call without arguments."""
    import hand_gradients

    f = getattr(hand_gradients, name.replace("-", "_"), None) or globals()[name.replace("-", "_")]
    return lambda: f(*inputs)
