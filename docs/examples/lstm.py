"""
An LSTM on oil prices
=====================

A small recurrent network reads the returns of crude oil day by day and says how
much tomorrow's will vary. It is trained by the gradient through 2,000 days (S.
Hochreiter and J. Schmidhuber, 1997, with the forget gate of F. Gers and others,
2000).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import check_grad, minimize

import numbascan as ns
from numbascan.demo import oil_returns

returns = oil_returns()[4_000:7_000]
train, test = returns[:2_000], returns[2_000:]
units = 4
shapes = (4 * units, units), (4 * units,), (4 * units,), (units,), (1,)


def parts(p):
    """The weights of the flat vector p, by their shapes."""
    ends = np.cumsum([0] + [int(np.prod(shape)) for shape in shapes])
    return [
        p[a:b].reshape(shape)
        for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    ]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_variances(p, returns):
    """What the network says of each day after it has read the days before."""
    recurrent, read, bias, out, base = parts(p)
    h, c = np.zeros(units), np.zeros(units)
    said = np.zeros(len(returns))
    for t in range(len(returns)):
        said[t] = np.sum(out * h) + base[0]
        gates = recurrent @ h + read * np.abs(returns[t]) / 3 + bias
        keep, take, show = (
            sigmoid(gates[:4] + 2),
            sigmoid(gates[4:8]),
            sigmoid(gates[8:12]),
        )
        c = keep * c + take * np.tanh(gates[12:])
        h = show * np.tanh(c)
    return said


def loss(p, returns):
    """Minus the mean log-likelihood of a day."""
    said = log_variances(p, returns)
    return 0.5 * np.mean(np.log(2 * np.pi) + said + returns**2 * np.exp(-said))


start = 0.1 * np.random.default_rng(0).normal(size=sum(int(np.prod(s)) for s in shapes))
start[-1] = np.log(np.mean(train**2))
fit = minimize(
    ns.value_and_grad(loss), start, (train,), jac=True, options={"maxiter": 60}
)
constant = 0.5 * np.mean(
    np.log(2 * np.pi * np.mean(train**2)) + test**2 / np.mean(train**2)
)

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.plot(test, color="silver", linewidth=0.5, label="return (%), days it has not seen")
axes.plot(
    2 * np.exp(0.5 * ns.jit(log_variances)(fit.x, test)),
    label="twice the deviation it says",
)
axes.set_xlabel("day")
axes.legend()
plt.show()

# %%
# The checks: the gradient by finite differences, and better than one variance for
# all days.

gap = check_grad(ns.jit(loss), ns.grad(loss), start, train)
print(f"loss {loss(fit.x, test):.3f}, constant variance {constant:.3f}")
assert gap < 1e-6
assert loss(fit.x, test) < constant - 0.01
