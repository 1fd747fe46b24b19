import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import interrupted_at

float64_1d = types.Array(types.float64, 1, "C", readonly=True)
ERROR_1 = "ERROR_1: scan 'lorenz': n_steps is {0}; it must be 0 or more"


@njit((types.int64, float64_1d, types.float64, types.float64, types.float64, types.float64), cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def lorenz(n_steps, y, dt, sigma, rho, beta):
    if n_steps < 0:
        raise ValueError(ERROR_1, n_steps)
    y_0 = y[0]
    y_1 = y[1]
    y_2 = y[2]
    y_rows = np.empty((n_steps, 3))
    for t in range(n_steps):
        dy_0 = sigma * (y_1 - y_0)
        dy_1 = y_0 * (rho - y_2) - y_1
        dy_2 = y_0 * y_1 - beta * y_2
        y_0 += dt * dy_0
        y_1 += dt * dy_1
        y_2 += dt * dy_2
        y_rows[t, 0] = y_0
        y_rows[t, 1] = y_1
        y_rows[t, 2] = y_2
        if interrupted_at(256, t, n_steps):
            raise InterruptedError
    return y_rows
