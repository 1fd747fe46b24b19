"""
Stochastic volatility, sampled by NUTS
======================================

The log variance h of a day's return is a random process: each day its distance from
the mean mu shrinks by a factor phi, and a normal number of deviation sigma is added.
NUTS (the package nutpie) samples its path over 2,000 days and the parameters, by a
gradient in 2,003 dimensions. PyMC 5.28.5, with a model written for it, finds the
posterior means phi 0.98324 ± 0.00015 and sigma 0.12709 ± 0.00054.
"""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc

import numbascan as ns
from numbascan.demo import oil_returns

returns = oil_returns()[4_000:6_000]
n = len(returns)
rough = np.log(returns**2 + 1e-3) + 1.27  # about h, with noise of variance π² / 2


def unpack(q, rough):
    """Parameters and path from what is sampled, and the log determinant of dh / dz.

    A Kalman filter of the rough path, then a run backwards: z tells how many deviations
    each day is away from what they expect. Each path has its z, so nothing is lost, and
    the numbers in z are nearly independent: NUTS needs 15 gradients a draw.
    """
    mu, phi, sigma, z = q[0], np.tanh(q[1]), np.exp(q[2]), q[3:]
    noise = np.pi**2 / 2
    b = sigma**2 - (1 - phi**2) * noise
    ahead = (b + np.sqrt(b**2 + 4 * noise * sigma**2)) / 2  # variance of a forecast
    gain = ahead / (ahead + noise)
    now = gain * noise  # variance when the day's return is known
    spread = sigma * np.sqrt(now / ahead)  # deviation when the next day is known, too
    filtered, last = np.zeros(n), 0.0
    for t in range(n):
        last = phi * last + gain * (rough[t] - mu - phi * last)
        filtered[t] = last
    x = np.zeros(n)
    x[-1] = filtered[-1] + np.sqrt(now) * z[-1]
    for t in reversed(range(n - 1)):
        pull = phi * now / ahead * (x[t + 1] - phi * filtered[t])
        x[t] = filtered[t] + pull + spread * z[t]
    log_det = 0.5 * np.log(now) + (n - 1) * np.log(spread)
    return {"mu": mu, "phi": phi, "sigma": sigma, "h": mu + x}, log_det


def log_density(q, returns, rough):
    model, log_det = unpack(q, rough)
    mu, phi, sigma, h = model.values()
    x = (h - mu) / sigma
    path = -0.5 * np.sum((x[1:] - phi * x[:-1]) ** 2) - n * np.log(sigma)
    path += 0.5 * np.log(1 - phi**2) - 0.5 * (1 - phi**2) * x[0] ** 2
    # mu: normal, of deviation 10; (phi + 1) / 2: Beta(20, 1.5); sigma: half normal
    prior = -0.5 * (mu / 10) ** 2 + np.log(sigma) - 0.5 * sigma**2
    prior += 20 * np.log(1 + phi) + 1.5 * np.log(1 - phi)
    return log_det + path + prior - 0.5 * np.sum(h + returns**2 * np.exp(-h))


value_and_grad, expand = ns.value_and_grad(log_density), ns.jit(unpack)
posterior = from_pyfunc(
    n + 3,
    lambda: lambda q: value_and_grad(q, returns, rough),  # for each chain
    lambda *chain: lambda q: expand(q, rough)[0],
    ["float64"] * 4,
    [(), (), (), (n,)],
    ["mu", "phi", "sigma", "h"],
)
start = np.concatenate([[np.log(returns.var()), 2.0, -2.0], np.zeros(n)])
options = {"draws": 500, "tune": 400, "chains": 4, "seed": 1, "progress_bar": False}
trace = nutpie.sample(posterior, init_mean=start, **options)

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
year = 1986 + np.arange(4_000, 6_000) / 252
band = np.quantile(2 * np.exp(trace.posterior["h"] / 2), [0.05, 0.95], axis=(0, 1))
axes.plot(year, returns, color="silver", linewidth=0.6, zorder=0)
axes.fill_between(year, *band, color="tab:red", linewidth=0)
axes.set(xlabel="year", ylabel="return, and twice its deviation (%)", ylim=(-20, 20))
plt.show()

# %%
# The check: four chains that agree, and PyMC's means within the Monte Carlo errors.
# Those come from 6,000 draws with PyTensor 2.38.3, where z are the pushes themselves.

table = az.summary(trace, var_names=["mu", "phi", "sigma"], round_to="none")
print(table[["mean", "sd", "mcse_mean", "ess_bulk", "r_hat"]].round(4))
assert trace.sample_stats["diverging"].sum() == 0
assert table["r_hat"].max() < 1.03
for name, mean, error in ("phi", 0.98324, 0.00015), ("sigma", 0.12709, 0.00054):
    here = table.loc[name]
    assert abs(here["mean"] - mean) < 4 * np.hypot(here["mcse_mean"], error)
