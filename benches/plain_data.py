"""Programs in plain Python and NumPy, the same text for `numbascan.jit` and `numba.njit`, and their arguments.

A name is that of a function below, or NAME-grad: the gradient of the sum of its results in the arguments that `DIFFERENTIATED` names.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["DIFFERENTIATED", "PROGRAMS", "inputs"]

# numbers ----------------------------------------------------------------------------------------------------------------


def collatz(n):  # type: ignore[no-untyped-def]
    best = longest = 0
    for start in range(1, n):
        k, length = start, 1
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            length += 1
        if length > longest:
            best, longest = start, length
    return best, longest


def sieve(n):  # type: ignore[no-untyped-def]
    is_prime = np.ones(n + 1, np.bool_)
    is_prime[:2] = False
    for k in range(2, int(math.sqrt(n)) + 1):
        if is_prime[k]:
            for multiple in range(k * k, n + 1, k):
                is_prime[multiple] = False
    return is_prime.sum()


def mandelbrot(width, height, limit):  # type: ignore[no-untyped-def]
    counts = np.zeros((height, width), np.int64)
    for row in range(height):
        for column in range(width):
            c = complex(-2.0 + 3.0 * column / width, -1.0 + 2.0 * row / height)
            z = 0j
            for k in range(limit):
                z = z * z + c
                if abs(z) > 2:
                    counts[row, column] = k
                    break
            else:
                counts[row, column] = limit
    return counts


def implied_volatilities(prices, strikes, spot, rate, time):  # type: ignore[no-untyped-def]
    found = np.empty(len(prices))
    for i in range(len(prices)):
        low, high = 1e-4, 5.0
        while high - low > 1e-10:
            middle = 0.5 * (low + high)
            d1 = (math.log(spot / strikes[i]) + (rate + middle**2 / 2) * time) / (middle * math.sqrt(time))
            d2 = d1 - middle * math.sqrt(time)
            price = spot * 0.5 * (1 + math.erf(d1 / math.sqrt(2))) - strikes[i] * math.exp(-rate * time) * 0.5 * (
                1 + math.erf(d2 / math.sqrt(2))
            )
            if price > prices[i]:
                high = middle
            else:
                low = middle
        found[i] = 0.5 * (low + high)
    return found


def gauss_legendre(n):  # type: ignore[no-untyped-def]
    nodes, weights = np.zeros(n), np.zeros(n)
    for i in range((n + 1) // 2):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        while True:
            before, p = 1.0, x
            for k in range(2, n + 1):
                before, p = p, ((2 * k - 1) * x * p - (k - 1) * before) / k
            slope = n * (x * p - before) / (x * x - 1)
            step = p / slope
            x -= step
            if abs(step) < 1e-14:
                break
        nodes[i], nodes[n - 1 - i] = -x, x
        weights[i] = weights[n - 1 - i] = 2 / ((1 - x * x) * slope * slope)
    return nodes, weights


# tables -----------------------------------------------------------------------------------------------------------------


def levenshtein(a, b):  # type: ignore[no-untyped-def]
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a) + 1):
        d[i, 0] = i
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[len(a), len(b)]


def knapsack(weights, values, capacity):  # type: ignore[no-untyped-def]
    best = np.zeros(capacity + 1)
    for i in range(len(weights)):
        for c in range(capacity, weights[i] - 1, -1):
            best[c] = max(best[c], best[c - weights[i]] + values[i])
    return best[capacity]


def warping(x, y):  # type: ignore[no-untyped-def]
    n, m = len(x), len(y)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            distance = (x[i - 1] - y[j - 1]) ** 2
            cost[i, j] = distance + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[n, m]


def matrix_chain(dims):  # type: ignore[no-untyped-def]
    n = len(dims) - 1
    cost = np.zeros((n, n), np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = 2**60
            for k in range(i, j):
                candidate = cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                if candidate < cost[i, j]:
                    cost[i, j] = candidate
    return cost[0, n - 1]


def viterbi(log_start, log_moves, log_seen):  # type: ignore[no-untyped-def]
    steps, states = log_seen.shape
    score = np.zeros((steps, states))
    come_from = np.zeros((steps, states), np.int64)
    score[0] = log_start + log_seen[0]
    for t in range(1, steps):
        for s in range(states):
            best, place = -np.inf, 0
            for r in range(states):
                candidate = score[t - 1, r] + log_moves[r, s]
                if candidate > best:
                    best, place = candidate, r
            score[t, s] = best + log_seen[t, s]
            come_from[t, s] = place
    path = np.zeros(steps, np.int64)
    path[-1] = np.argmax(score[-1])
    for t in range(steps - 2, -1, -1):
        path[t] = come_from[t + 1, path[t + 1]]
    return path


def floyd_warshall(lengths):  # type: ignore[no-untyped-def]
    d = lengths.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def value_iteration(capital, productivity, beta, tolerance):  # type: ignore[no-untyped-def]
    n = len(capital)
    value, policy = np.zeros(n), np.zeros(n, np.int64)
    change = 1.0
    while change > tolerance:
        new = np.empty(n)
        for i in range(n):
            best = -1e300
            for j in range(n):
                consumption = productivity * capital[i] ** 0.3 + 0.9 * capital[i] - capital[j]
                if consumption <= 0:
                    break
                candidate = math.log(consumption) + beta * value[j]
                if candidate > best:
                    best = candidate
                    policy[i] = j
            new[i] = best
        change = np.max(np.abs(new - value))
        value = new
    return value, policy


# arrays in place --------------------------------------------------------------------------------------------------------


def insertion_sort(x):  # type: ignore[no-untyped-def]
    x = x.copy()
    for i in range(1, len(x)):
        key, j = x[i], i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def life(grid, steps):  # type: ignore[no-untyped-def]
    rows, columns = grid.shape
    for _ in range(steps):
        new = np.zeros_like(grid)
        for i in range(rows):
            for j in range(columns):
                near = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            near += grid[(i + di) % rows, (j + dj) % columns]
                if near == 3 or (near == 2 and grid[i, j] == 1):
                    new[i, j] = 1
        grid = new
    return grid


def ising(spins, places, uniforms, beta):  # type: ignore[no-untyped-def]
    spins = spins.copy()
    n = spins.shape[0]
    for t in range(len(uniforms)):
        i, j = places[t, 0], places[t, 1]
        near = spins[(i + 1) % n, j] + spins[(i - 1) % n, j] + spins[i, (j + 1) % n] + spins[i, (j - 1) % n]
        change = 2 * spins[i, j] * near
        if change <= 0 or uniforms[t] < math.exp(-beta * change):
            spins[i, j] = -spins[i, j]
    return spins.sum()


def components(image):  # type: ignore[no-untyped-def]
    rows, columns = image.shape
    labels = np.zeros((rows, columns), np.int64)
    stack = np.empty((rows * columns, 2), np.int64)
    count = 0
    for i in range(rows):
        for j in range(columns):
            if image[i, j] and labels[i, j] == 0:
                count += 1
                labels[i, j] = count
                stack[0, 0], stack[0, 1] = i, j
                top = 1
                while top > 0:
                    top -= 1
                    y, x = stack[top, 0], stack[top, 1]
                    for k in range(4):
                        v, u = y + (k == 0) - (k == 1), x + (k == 2) - (k == 3)
                        if 0 <= v < rows and 0 <= u < columns and image[v, u] and labels[v, u] == 0:
                            labels[v, u] = count
                            stack[top, 0], stack[top, 1] = v, u
                            top += 1
    return labels, count


def histogram(x, low, high, bins):  # type: ignore[no-untyped-def]
    counts = np.zeros(bins, np.int64)
    for value in x:
        if low <= value < high:
            counts[int((value - low) / (high - low) * bins)] += 1
    return counts


def convolved(image, kernel):  # type: ignore[no-untyped-def]
    rows, columns = image.shape
    k = kernel.shape[0] // 2
    out = np.zeros_like(image)
    for i in range(k, rows - k):
        for j in range(k, columns - k):
            total = 0.0
            for a in range(-k, k + 1):
                for b in range(-k, k + 1):
                    total += image[i + a, j + b] * kernel[a + k, b + k]
            out[i, j] = total
    return out


def heat(u, alpha, steps):  # type: ignore[no-untyped-def]
    u = u.copy()
    for _ in range(steps):
        new = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + alpha * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        u = new
    return u


def wave(u, speed, steps):  # type: ignore[no-untyped-def]
    before, now = u.copy(), u.copy()
    for _ in range(steps):
        after = 2 * now - before
        after[1:-1] += speed**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        after[0] = after[-1] = 0.0
        before, now = now, after
    return now


# linear algebra ---------------------------------------------------------------------------------------------------------


def product(a, b):  # type: ignore[no-untyped-def]
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


def lu_solve(a, b):  # type: ignore[no-untyped-def]
    a, x = a.copy(), b.copy()
    n = len(x)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            x[k], x[pivot] = x[pivot], x[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            x[i] -= factor * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def cholesky(a):  # type: ignore[no-untyped-def]
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= low[i, k] * low[j, k]
            low[i, j] = math.sqrt(total) if i == j else total / low[j, j]
    return low


def thomas(below, diagonal, above, right):  # type: ignore[no-untyped-def]
    n = len(right)
    c, x = np.zeros(n), np.zeros(n)
    c[0], x[0] = above[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - below[i] * c[i - 1]
        c[i] = above[i] / pivot
        x[i] = (right[i] - below[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


def conjugate_gradients(a, b, tolerance):  # type: ignore[no-untyped-def]
    x = np.zeros_like(b)
    residual = b - a @ x
    direction = residual.copy()
    square = residual @ residual
    while math.sqrt(square) > tolerance:
        image = a @ direction
        size = square / (direction @ image)
        x += size * direction
        residual -= size * image
        new = residual @ residual
        direction = residual + (new / square) * direction
        square = new
    return x


# series -----------------------------------------------------------------------------------------------------------------


def garch(returns, omega, alpha, beta):  # type: ignore[no-untyped-def]
    variance = np.var(returns)
    total = 0.0
    for r in returns:
        total += 0.5 * (math.log(2 * math.pi * variance) + r * r / variance)
        variance = omega + alpha * r * r + beta * variance
    return total


def kalman(y, transition, seen, q, r):  # type: ignore[no-untyped-def]
    mean, cov = np.zeros(2), np.eye(2)
    likelihood = 0.0
    for t in range(len(y)):
        mean = transition @ mean
        cov = transition @ cov @ transition.T + q
        innovation = y[t] - seen @ mean
        scale = seen @ cov @ seen + r
        gain = cov @ seen / scale
        mean = mean + gain * innovation
        cov = cov - np.outer(gain, seen @ cov)
        likelihood -= 0.5 * (math.log(2 * math.pi * scale) + innovation**2 / scale)
    return likelihood


def forward(start, moves, seen):  # type: ignore[no-untyped-def]
    alpha = start * seen[0]
    total = 0.0
    for t in range(1, len(seen)):
        scale = alpha.sum()
        total += np.log(scale)
        alpha = (alpha / scale) @ moves * seen[t]
    return total + np.log(alpha.sum())


def strength(close, window):  # type: ignore[no-untyped-def]
    out = np.full(len(close), np.nan)
    up = down = 0.0
    for t in range(1, len(close)):
        change = close[t] - close[t - 1]
        gain, loss = max(change, 0.0), max(-change, 0.0)
        if t <= window:
            up += gain / window
            down += loss / window
        else:
            up += (gain - up) / window
            down += (loss - down) / window
        if t >= window:
            out[t] = 100.0 if down == 0 else 100 - 100 / (1 + up / down)
    return out


def largest_sum(x):  # type: ignore[no-untyped-def]
    best = current = x[0]
    start = first = last = 0
    for i in range(1, len(x)):
        if current < 0:
            current, start = x[i], i
        else:
            current += x[i]
        if current > best:
            best, first, last = current, start, i
    return best, first, last


# simulations ------------------------------------------------------------------------------------------------------------


def lorenz(start, sigma, rho, beta, dt, steps):  # type: ignore[no-untyped-def]
    def slope(s):  # type: ignore[no-untyped-def]
        return np.array([sigma * (s[1] - s[0]), s[0] * (rho - s[2]) - s[1], s[0] * s[1] - beta * s[2]])

    path = np.empty((steps + 1, 3))
    path[0] = start
    for t in range(steps):
        s = path[t]
        k1 = slope(s)
        k2 = slope(s + dt / 2 * k1)
        k3 = slope(s + dt / 2 * k2)
        k4 = slope(s + dt * k3)
        path[t + 1] = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return path


def bodies(place, speed, mass, dt, steps):  # type: ignore[no-untyped-def]
    place, speed = place.copy(), speed.copy()
    n = len(mass)
    for _ in range(steps):
        force = np.zeros((n, 3))
        for i in range(n):
            for j in range(i + 1, n):
                dx = place[j, 0] - place[i, 0]
                dy = place[j, 1] - place[i, 1]
                dz = place[j, 2] - place[i, 2]
                inverse = 1.0 / (dx * dx + dy * dy + dz * dz + 1e-3) ** 1.5
                force[i, 0] += mass[j] * dx * inverse
                force[i, 1] += mass[j] * dy * inverse
                force[i, 2] += mass[j] * dz * inverse
                force[j, 0] -= mass[i] * dx * inverse
                force[j, 1] -= mass[i] * dy * inverse
                force[j, 2] -= mass[i] * dz * inverse
        speed += dt * force
        place += dt * speed
    return place


def binomial_put(spot, strike, rate, volatility, time, steps):  # type: ignore[no-untyped-def]
    dt = time / steps
    up = math.exp(volatility * math.sqrt(dt))
    p = (math.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = math.exp(-rate * dt)
    values = np.empty(steps + 1)
    for i in range(steps + 1):
        values[i] = max(strike - spot * up ** (2 * i - steps), 0.0)
    for t in range(steps - 1, -1, -1):
        for i in range(t + 1):
            held = discount * (p * values[i + 1] + (1 - p) * values[i])
            values[i] = max(held, strike - spot * up ** (2 * i - t))
    return values[0]


def epidemic(susceptible, infected, rates, recovery, days):  # type: ignore[no-untyped-def]
    people = susceptible + infected
    recovered = peak = 0.0
    for day in range(days):
        new = rates[day] * susceptible * infected / people
        gone = recovery * infected
        susceptible, infected, recovered = susceptible - new, infected + new - gone, recovered + gone
        if infected > peak:
            peak = infected
    return infected, recovered, peak


def bouncing(height, restitution, dt, steps):  # type: ignore[no-untyped-def]
    heights = np.zeros(steps)
    y, v = height, 0.0
    for t in range(steps):
        v -= 9.81 * dt
        y += v * dt
        if y < 0:
            y = -y
            v = -restitution * v
        heights[t] = y
    return heights


def adaptive(y, end, tolerance):  # type: ignore[no-untyped-def]
    t, h, rejected = 0.0, 0.01, 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = -2 * y + math.sin(5 * t)
        k2 = -2 * (y + h * k1 / 2) + math.sin(5 * (t + h / 2))
        k3 = -2 * (y + h * 3 / 4 * k2) + math.sin(5 * (t + 3 / 4 * h))
        new = y + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        k4 = -2 * new + math.sin(5 * (t + h))
        error = abs(h * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8))
        if error <= tolerance:
            t += h
            y = new
        else:
            rejected += 1
        h *= min(2.0, max(0.2, 0.9 * (tolerance / (error + 1e-300)) ** (1 / 3)))
    return y, rejected


def queue(arrivals, services):  # type: ignore[no-untyped-def]
    time = free = waited = 0.0
    longest = 0.0
    for k in range(len(arrivals)):
        time += arrivals[k]
        start = max(time, free)
        waited += start - time
        longest = max(longest, start - time)
        free = start + services[k]
    return waited / len(arrivals), longest


def means(points, centres, steps):  # type: ignore[no-untyped-def]
    centres = centres.copy()
    labels = np.zeros(len(points), np.int64)
    for _ in range(steps):
        for i in range(len(points)):
            best = np.inf
            for k in range(len(centres)):
                distance = 0.0
                for d in range(points.shape[1]):
                    distance += (points[i, d] - centres[k, d]) ** 2
                if distance < best:
                    best = distance
                    labels[i] = k
        sums = np.zeros_like(centres)
        counts = np.zeros(len(centres))
        for i in range(len(points)):
            sums[labels[i]] += points[i]
            counts[labels[i]] += 1
        for k in range(len(centres)):
            if counts[k] > 0:
                centres[k] = sums[k] / counts[k]
    return centres, labels


def network(inputs, targets, hidden, out, rate, steps):  # type: ignore[no-untyped-def]
    hidden, out = hidden.copy(), out.copy()
    for _ in range(steps):
        h = np.tanh(inputs @ hidden)
        error = h @ out - targets
        d_out = h.T @ error / len(inputs)
        d_hidden = inputs.T @ ((error @ out.T) * (1 - h * h)) / len(inputs)
        hidden -= rate * d_hidden
        out -= rate * d_out
    return hidden, out


def asian_option(normals, spot, strike, rate, volatility, time):  # type: ignore[no-untyped-def]
    paths, steps = normals.shape
    dt = time / steps
    total = 0.0
    for i in range(paths):
        price, mean = spot, 0.0
        for t in range(steps):
            price *= math.exp((rate - volatility**2 / 2) * dt + volatility * math.sqrt(dt) * normals[i, t])
            mean += price / steps
        total += max(mean - strike, 0.0)
    return math.exp(-rate * time) * total / paths


# ------------------------------------------------------------------------------------------------------------------------

_rng = np.random.default_rng(0)
_square = _rng.normal(size=(60, 60))
_walk = 100 + _rng.normal(size=20_000).cumsum() * 0.1


def _rows(*shape: int) -> np.ndarray:
    """Positive numbers whose rows add up to 1."""
    numbers = _rng.uniform(0.1, 1.0, shape)
    return numbers / numbers.sum(axis=-1, keepdims=True)


_ARGUMENTS: dict[Any, tuple[Any, ...]] = {
    collatz: (3000,),
    sieve: (100_000,),
    mandelbrot: (80, 60, 100),
    implied_volatilities: (_rng.uniform(4.0, 12.0, 200), _rng.uniform(95.0, 105.0, 200), 100.0, 0.02, 0.5),
    gauss_legendre: (60,),
    levenshtein: (_rng.integers(0, 4, 200), _rng.integers(0, 4, 220)),
    knapsack: (_rng.integers(1, 40, 60), _rng.uniform(1.0, 10.0, 60), 1000),
    warping: (_rng.normal(size=150), _rng.normal(size=160)),
    matrix_chain: (_rng.integers(2, 40, 50),),
    viterbi: (np.log(_rows(8)), np.log(_rows(8, 8)), np.log(_rows(500, 8))),
    floyd_warshall: (_rng.uniform(1.0, 10.0, (60, 60)),),
    value_iteration: (np.linspace(0.1, 4.0, 60), 1.0, 0.9, 1e-4),
    insertion_sort: (_rng.normal(size=500),),
    life: (_rng.integers(0, 2, (50, 60)), 10),
    ising: (_rng.choice(np.array([-1, 1]), (40, 40)), _rng.integers(0, 40, (20_000, 2)), _rng.random(20_000), 0.44),
    components: (_rng.random((60, 60)) < 0.6,),
    histogram: (_rng.normal(size=50_000), -3.0, 3.0, 50),
    convolved: (_rng.normal(size=(80, 90)), _rng.normal(size=(5, 5))),
    heat: (_rng.normal(size=(40, 50)), 0.2, 40),
    wave: (np.sin(np.linspace(0, np.pi, 200)), 0.8, 300),
    product: (_square, _square.T.copy()),
    lu_solve: (_square + 3 * np.eye(60), _rng.normal(size=60)),
    cholesky: (_square @ _square.T + np.eye(60),),
    thomas: (_rng.random(5000), 3 + _rng.random(5000), _rng.random(5000), _rng.normal(size=5000)),
    conjugate_gradients: (_square @ _square.T + 10 * np.eye(60), _rng.normal(size=60), 1e-8),
    garch: (_rng.normal(size=5000), 0.1, 0.1, 0.8),
    kalman: (_walk[:1000] - 100, np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0]), 0.01 * np.eye(2), 0.5),
    forward: (_rows(10), _rows(10, 10), _rng.uniform(0.1, 1.0, (1000, 10))),
    strength: (_walk, 14),
    largest_sum: (_rng.normal(size=20_000),),
    lorenz: (np.array([1.0, 1.0, 1.0]), 10.0, 28.0, 8 / 3, 0.01, 2000),
    bodies: (_rng.normal(size=(12, 3)), np.zeros((12, 3)), _rng.uniform(0.5, 1.5, 12), 0.001, 100),
    binomial_put: (100.0, 105.0, 0.03, 0.25, 1.0, 200),
    epidemic: (9990.0, 10.0, _rng.uniform(0.1, 0.4, 2000), 0.15, 2000),
    bouncing: (10.0, 0.9, 0.001, 20_000),
    adaptive: (1.0, 20.0, 1e-8),
    queue: (_rng.exponential(1.0, 20_000), _rng.exponential(0.9, 20_000)),
    means: (_rng.normal(size=(300, 3)), _rng.normal(size=(5, 3)), 20),
    network: (_rng.normal(size=(50, 8)), _rng.normal(size=(50, 2)), _rng.normal(size=(8, 16)), _rng.normal(size=(16, 2)), 0.1, 100),
    asian_option: (_rng.normal(size=(200, 100)), 100.0, 100.0, 0.02, 0.3, 1.0),
}

PROGRAMS = {f.__name__: f for f in _ARGUMENTS}

DIFFERENTIATED: dict[str, tuple[int, ...]] = {
    "warping": (0, 1),
    "floyd_warshall": (0,),
    "convolved": (0, 1),
    "heat": (0, 1),
    "wave": (0, 1),
    "product": (0, 1),
    "lu_solve": (0, 1),
    "cholesky": (0,),
    "thomas": (0, 1, 2, 3),
    "conjugate_gradients": (1,),
    "garch": (1, 2, 3),
    "kalman": (1, 2, 3, 4),
    "forward": (0, 1, 2),
    "lorenz": (0, 1, 2, 3),
    "bodies": (0, 1, 2),
    "binomial_put": (0, 1, 2, 3, 4),
    "epidemic": (0, 1, 2, 3),
    "bouncing": (0, 1),
    "adaptive": (0,),
    "queue": (0, 1),
    "network": (0, 1, 2, 3),
    "asian_option": (0, 1, 2, 3, 4),
}


def inputs(name: str) -> tuple[Any, ...]:
    """The arguments of a program."""
    return _ARGUMENTS[PROGRAMS[name.removesuffix("-grad")]]
