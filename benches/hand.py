"""The workloads as a good engineer writes them by hand in Numba: what generated code is held against."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(error_model="numpy")
def cumsum(x):
    out = np.empty(x.shape[0])
    s = 0.0
    for t in range(x.shape[0]):
        s += x[t]
        out[t] = s
    return out


@njit(error_model="numpy")
def power(a, n_steps):
    p = np.ones_like(a)
    for _ in range(n_steps):
        for i in range(a.shape[0]):
            p[i] *= a[i]
    return p


@njit(inline="always")
def _flow(x, y, z):
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z


@njit(error_model="numpy")
def lorenz(start, h, n_steps):
    out = np.empty((n_steps, 3))
    x, y, z = start
    for t in range(n_steps):
        a1, b1, c1 = _flow(x, y, z)
        a2, b2, c2 = _flow(x + h / 2 * a1, y + h / 2 * b1, z + h / 2 * c1)
        a3, b3, c3 = _flow(x + h / 2 * a2, y + h / 2 * b2, z + h / 2 * c2)
        a4, b4, c4 = _flow(x + h * a3, y + h * b3, z + h * c3)
        x += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        y += h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
        z += h / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
        out[t, 0] = x
        out[t, 1] = y
        out[t, 2] = z
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
def heat1d(u, n_steps):
    u, v = u.copy(), np.empty_like(u)
    n = u.shape[0]
    for _ in range(n_steps):
        v[0] = u[0]
        v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i] = u[i] + 0.1 * (u[i + 1] - 2 * u[i] + u[i - 1])
        u, v = v, u
    return u


@njit(error_model="numpy")
def kalman(F, Q, R, y):
    """4 states, the first one observed: H = [1, 0, 0, 0] written in."""
    m, P = np.zeros(4), np.eye(4)
    predicted, T, K = np.empty(4), np.empty((4, 4)), np.empty(4)
    total = 0.0
    for t in range(y.shape[0]):
        for i in range(4):
            s = 0.0
            for j in range(4):
                s += F[i, j] * m[j]
            predicted[i] = s
        for i in range(4):
            for j in range(4):
                s = 0.0
                for k in range(4):
                    s += F[i, k] * P[k, j]
                T[i, j] = s
        for i in range(4):
            for j in range(4):
                s = 0.0
                for k in range(4):
                    s += T[i, k] * F[j, k]
                P[i, j] = s + Q[i, j]
        v = y[t, 0] - predicted[0]
        S = P[0, 0] + R[0, 0]
        total += -0.5 * (math.log(S) + v * v / S + math.log(2 * math.pi))
        for i in range(4):
            K[i] = P[0, i] / S
        for i in range(4):
            m[i] = predicted[i] + K[i] * v
        for j in range(4):
            p0 = P[0, j]
            for i in range(4):
                T[i, j] = P[i, j] - K[i] * p0
        P, T = T, P
    return total


@njit(error_model="numpy")
def rnn(u, W, W1, W2, Wf, Wo, x0, y0):
    """The guide's network; the products with the input are pushed out of the loop."""
    H, T = W.shape[0], u.shape[0] - 4
    X, Y = np.empty((T + 3, H)), np.empty((T + 1, H))
    X[:3], Y[0] = x0, y0
    U = np.dot(u[4:], W1) + np.dot(u[:-4], W2)
    a, b = np.empty(H), np.empty(H)
    for t in range(T):
        np.dot(X[t + 2], W, a)
        np.dot(Y[t], Wf, b)
        for i in range(H):
            X[t + 3, i] = math.tanh(a[i] + b[i] + U[t, i])
        np.dot(X[t], Wo, Y[t + 1])
    return X[3:], Y[1:]


# adjoints: the states' trace is kept, all else is computed again; cotangents live in registers ------------------------


@njit(inline="always")
def _flow_vjp(x, y, z, u, v, w):
    """The Jacobian of the flow at (x, y, z), transposed, times (u, v, w)."""
    return (28.0 - z) * v + y * w - 10.0 * u, 10.0 * u - v + x * w, -x * v - 8 / 3 * w


@njit(error_model="numpy")
def lorenz_grad(start, h, n_steps):
    """The gradient of the path's mean with respect to the start."""
    path = lorenz(start, h, n_steps)
    share = 1.0 / (3 * n_steps)
    u = v = w = 0.0
    for t in range(n_steps - 1, -1, -1):
        x, y, z = (path[t - 1, 0], path[t - 1, 1], path[t - 1, 2]) if t > 0 else (start[0], start[1], start[2])
        u += share
        v += share
        w += share
        a, b, c = _flow(x, y, z)
        x2, y2, z2 = x + h / 2 * a, y + h / 2 * b, z + h / 2 * c
        a, b, c = _flow(x2, y2, z2)
        x3, y3, z3 = x + h / 2 * a, y + h / 2 * b, z + h / 2 * c
        a, b, c = _flow(x3, y3, z3)
        x4, y4, z4 = x + h * a, y + h * b, z + h * c
        u6, v6, w6 = h / 6 * u, h / 6 * v, h / 6 * w
        a4, b4, c4 = _flow_vjp(x4, y4, z4, u6, v6, w6)
        a3, b3, c3 = _flow_vjp(x3, y3, z3, 2 * u6 + h * a4, 2 * v6 + h * b4, 2 * w6 + h * c4)
        a2, b2, c2 = _flow_vjp(x2, y2, z2, 2 * u6 + h / 2 * a3, 2 * v6 + h / 2 * b3, 2 * w6 + h / 2 * c3)
        a1, b1, c1 = _flow_vjp(x, y, z, u6 + h / 2 * a2, v6 + h / 2 * b2, w6 + h / 2 * c2)
        u += a1 + a2 + a3 + a4
        v += b1 + b2 + b3 + b4
        w += c1 + c2 + c3 + c4
    return np.array([u, v, w])


@njit(error_model="numpy")
def garch_value_and_grad(p, r):
    omega, alpha, beta = p
    n = r.shape[0]
    path = np.empty(n)
    variance, total = 1e-4, 0.0
    for t in range(n):
        path[t] = variance
        r2 = r[t] * r[t]
        total += math.log(variance) + r2 / variance
        variance = omega + alpha * r2 + beta * variance
    cotangent = d_omega = d_alpha = d_beta = 0.0
    for t in range(n - 1, -1, -1):
        variance = path[t]
        r2 = r[t] * r[t]
        d_omega += cotangent
        d_alpha += cotangent * r2
        d_beta += cotangent * variance
        inverse = 1.0 / variance
        cotangent = cotangent * beta + 0.5 * inverse * (1.0 - r2 * inverse)
    return 0.5 * total, np.array([d_omega, d_alpha, d_beta])


@njit(error_model="numpy")
def power_grad(a, n_steps):
    """The gradient of the sum of the last row."""
    n = a.shape[0]
    path = np.empty((n_steps, n))
    path[0] = 1.0
    for t in range(n_steps - 1):
        for i in range(n):
            path[t + 1, i] = path[t, i] * a[i]
    gradient, cotangent = np.zeros(n), np.ones(n)
    for t in range(n_steps - 1, -1, -1):
        for i in range(n):  # two loops: together they take 1.25 times as long
            gradient[i] += cotangent[i] * path[t, i]
        for i in range(n):
            cotangent[i] *= a[i]
    return gradient
