"""Gradients by hand in Numba: the states' trace is kept, small things are computed again, cotangents live in registers.

Products that only add up over the steps (the gradients of weights) are one matrix product after the loop.
"""

from __future__ import annotations

import math

import numpy as np
from hand import POWER_STEPS, add_product, flow, largest_sum, lorenz, rnn_paths, sigmoid, tanh
from numba import njit


@njit(error_model="numpy")
def power_grad(a):
    """The gradient of the sum of the last row."""
    n = a.shape[0]
    path = np.empty((POWER_STEPS, n))
    path[0] = 1.0
    for t in range(POWER_STEPS - 1):
        for i in range(n):
            path[t + 1, i] = path[t, i] * a[i]
    gradient, cotangent = np.zeros(n), np.ones(n)
    for t in range(POWER_STEPS - 1, -1, -1):
        for i in range(n):  # two loops: together they take 1.25 times as long
            gradient[i] += cotangent[i] * path[t, i]
        for i in range(n):
            cotangent[i] *= a[i]
    return gradient


@njit(inline="always")
def flow_vjp(x, y, z, u, v, w):
    """The Jacobian of the flow at (x, y, z), transposed, times (u, v, w)."""
    return (28.0 - z) * v + y * w - 10.0 * u, 10.0 * u - v + x * w, -x * v - 8 / 3 * w


@njit(error_model="numpy")
def lorenz_grad(start, h):
    """The gradient of the path's mean with respect to the start."""
    path = lorenz(start, h)
    n_steps = path.shape[0]
    share = 1.0 / (3 * n_steps)
    u = v = w = 0.0
    for t in range(n_steps - 1, -1, -1):
        x, y, z = (path[t - 1, 0], path[t - 1, 1], path[t - 1, 2]) if t > 0 else (start[0], start[1], start[2])
        u += share
        v += share
        w += share
        a, b, c = flow(x, y, z)
        x2, y2, z2 = x + h / 2 * a, y + h / 2 * b, z + h / 2 * c
        a, b, c = flow(x2, y2, z2)
        x3, y3, z3 = x + h / 2 * a, y + h / 2 * b, z + h / 2 * c
        a, b, c = flow(x3, y3, z3)
        x4, y4, z4 = x + h * a, y + h * b, z + h * c
        u6, v6, w6 = h / 6 * u, h / 6 * v, h / 6 * w
        a4, b4, c4 = flow_vjp(x4, y4, z4, u6, v6, w6)
        a3, b3, c3 = flow_vjp(x3, y3, z3, 2 * u6 + h * a4, 2 * v6 + h * b4, 2 * w6 + h * c4)
        a2, b2, c2 = flow_vjp(x2, y2, z2, 2 * u6 + h / 2 * a3, 2 * v6 + h / 2 * b3, 2 * w6 + h / 2 * c3)
        a1, b1, c1 = flow_vjp(x, y, z, u6 + h / 2 * a2, v6 + h / 2 * b2, w6 + h / 2 * c2)
        u += a1 + a2 + a3 + a4
        v += b1 + b2 + b3 + b4
        w += c1 + c2 + c3 + c4
    return np.array([u, v, w])


@njit(error_model="numpy")
def garch_grad(p, r):
    """Value and gradient."""
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
def rnn_grad(W, W1, W2, Wf, Wo, u, x0, y0):
    """The gradient of the sum of all y with respect to the matrices."""
    X, Y = rnn_paths(W, W1, W2, Wf, Wo, u, x0, y0)
    H, T = W.shape[0], u.shape[0] - 4
    a, b = np.empty(H), np.empty(H)
    # row t + 1 of d_Y is the cotangent of Y[t + 1], of which the cost has 1; d_Z holds that of the argument of tanh
    d_X, d_Y, d_Z = np.zeros((T + 3, H)), np.ones((T + 1, H)), np.empty((T, H))
    for t in range(T - 1, -1, -1):
        np.dot(Wo, d_Y[t + 1], a)
        for i in range(H):
            d_X[t, i] += a[i]
            d_Z[t, i] = d_X[t + 3, i] * (1.0 - X[t + 3, i] * X[t + 3, i])
        np.dot(W, d_Z[t], a)
        np.dot(Wf, d_Z[t], b)
        for i in range(H):
            d_X[t + 2, i] += a[i]
            d_Y[t, i] += b[i]
    return np.dot(X[2:-1].T, d_Z), np.dot(u[4:].T, d_Z), np.dot(u[:-4].T, d_Z), np.dot(Y[:-1].T, d_Z), np.dot(X[:T].T, d_Y[1:])


@njit(error_model="numpy")
def lstm_grad(Wx, Wh, b, x, h0, c0):
    """The gradient of the sum of all h with respect to Wx, Wh and b."""
    T, batch, n = x.shape
    Z = np.dot(x.reshape(T * batch, n), Wx).reshape(T, batch, 4 * n)  # becomes the gates, then their cotangents
    h, c = np.empty((T + 1, batch, n)), np.empty((T + 1, batch, n))
    h[0], c[0] = h0, c0
    z = np.empty((batch, 4 * n))
    for t in range(T):
        np.dot(h[t], Wh, z)
        for k in range(batch):
            for j in range(4 * n):
                z[k, j] += Z[t, k, j] + b[j]
            for j in range(n):
                Z[t, k, j] = sigmoid(z[k, j])
                Z[t, k, n + j] = sigmoid(z[k, n + j])
                Z[t, k, 2 * n + j] = tanh(z[k, 2 * n + j])
                Z[t, k, 3 * n + j] = sigmoid(z[k, 3 * n + j])
                c[t + 1, k, j] = Z[t, k, n + j] * c[t, k, j] + Z[t, k, j] * Z[t, k, 2 * n + j]
                h[t + 1, k, j] = Z[t, k, 3 * n + j] * tanh(c[t + 1, k, j])
    d_h, d_c, Wh_transposed, d_b = np.zeros((batch, n)), np.zeros((batch, n)), np.ascontiguousarray(Wh.T), np.zeros(4 * n)
    for t in range(T - 1, -1, -1):
        for k in range(batch):
            for j in range(n):
                i, f, g, o = Z[t, k, j], Z[t, k, n + j], Z[t, k, 2 * n + j], Z[t, k, 3 * n + j]
                squashed, d_out = tanh(c[t + 1, k, j]), d_h[k, j] + 1.0
                d_cell = d_c[k, j] + d_out * o * (1.0 - squashed * squashed)
                d_c[k, j] = d_cell * f
                Z[t, k, j] = d_cell * g * i * (1.0 - i)
                Z[t, k, n + j] = d_cell * c[t, k, j] * f * (1.0 - f)
                Z[t, k, 2 * n + j] = d_cell * i * (1.0 - g * g)
                Z[t, k, 3 * n + j] = d_out * squashed * o * (1.0 - o)
            for j in range(4 * n):
                d_b[j] += Z[t, k, j]
        np.dot(Z[t], Wh_transposed, d_h)
    d_z = Z.reshape(T * batch, 4 * n)
    return np.dot(x.reshape(T * batch, n).T, d_z), np.dot(h[:-1].copy().reshape(T * batch, n).T, d_z), d_b


@njit(error_model="numpy")
def kalman_grad(F, H, Q, R, y):
    """The gradient with respect to F, Q and R; H = [1, 0, 0, 0] written in. P is symmetric, its cotangent is not."""
    T = y.shape[0]
    m, FP, S0, v = np.zeros((T + 1, 4)), np.zeros((T, 4, 4)), np.empty((T, 4)), np.empty(T)
    P, S, F_transposed = np.eye(4), np.empty((4, 4)), F.T.copy()
    predicted = np.empty(4)
    for t in range(T):
        for i in range(4):
            s = 0.0
            for j in range(4):
                s += F[i, j] * m[t, j]
            predicted[i] = s
        add_product(F, P, FP[t])
        S[:] = Q
        add_product(FP[t], F_transposed, S)
        v[t] = y[t, 0] - predicted[0]
        inverse = 1.0 / (S[0, 0] + R[0, 0])
        for i in range(4):
            S0[t, i] = S[0, i]
            gain = S[0, i] * inverse
            m[t + 1, i] = predicted[i] + gain * v[t]
            for j in range(4):
                P[i, j] = S[i, j] - gain * S[0, j]
    d_F, d_Q, d_R = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((1, 1))
    d_m, d_P, d_next = np.zeros(4), np.zeros((4, 4)), np.empty(4)
    gain, d_gain, both_ways, d_P_F = np.empty(4), np.empty(4), np.empty((4, 4)), np.empty((4, 4))
    for t in range(T - 1, -1, -1):
        inverse = 1.0 / (S0[t, 0] + R[0, 0])
        d_v, d_s = -v[t] * inverse, -0.5 * inverse * (1.0 - v[t] * v[t] * inverse)
        for i in range(4):
            gain[i] = S0[t, i] * inverse
            s = d_m[i] * v[t]
            for j in range(4):
                s -= d_P[i, j] * S0[t, j]
            d_gain[i] = s * inverse
            d_v += d_m[i] * gain[i]
            d_s -= d_gain[i] * gain[i]
        for j in range(4):
            for i in range(4):
                d_gain[j] -= gain[i] * d_P[i, j]
        for j in range(4):
            d_P[0, j] += d_gain[j]
        d_P[0, 0] += d_s
        d_R[0, 0] += d_s
        d_m[0] -= d_v
        # through S = F P Fᵀ + Q and F m
        for i in range(4):
            for j in range(4):
                d_Q[i, j] += d_P[i, j]
                d_F[i, j] += d_m[i] * m[t, j]
                both_ways[i, j] = d_P[i, j] + d_P[j, i]
        add_product(both_ways, FP[t], d_F)
        d_P_F[:] = 0.0
        add_product(d_P, F, d_P_F)
        d_P[:] = 0.0
        add_product(F_transposed, d_P_F, d_P)
        d_next[:] = 0.0
        for j in range(4):
            for i in range(4):
                d_next[i] += F[j, i] * d_m[j]
        d_m, d_next = d_next, d_m
    return d_F, d_Q, d_R


@njit(error_model="numpy")
def hmm_grad(moves, seen, first):
    """The gradient with respect to all inputs; the weights of the sums are kept, which takes less time than another exp for each."""
    n, T = moves.shape[0], seen.shape[0]
    weights, a, b = np.empty((T, n, n)), first + seen[0], np.empty(n)
    for t in range(1, T):
        for j in range(n):
            top = largest_sum(a, moves[:, j])
            s = 0.0
            for i in range(n):
                weights[t, j, i] = math.exp(a[i] + moves[i, j] - top)
                s += weights[t, j, i]
            for i in range(n):
                weights[t, j, i] /= s
            b[j] = math.log(s) + top + seen[t, j]
        a, b = b, a
    d_a, d_before = np.exp(a - a.max()), np.empty(n)
    d_a /= d_a.sum()
    d_moves, d_seen = np.zeros((n, n)), np.empty((T, n))
    for t in range(T - 1, 0, -1):
        d_seen[t] = d_a
        d_before[:] = 0.0
        for j in range(n):
            for i in range(n):
                share = d_a[j] * weights[t, j, i]
                d_moves[j, i] += share
                d_before[i] += share
        d_a, d_before = d_before, d_a
    d_seen[0] = d_a
    return d_moves.T.copy(), d_seen, d_a.copy()
