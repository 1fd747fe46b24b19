import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import interrupted_at

float64_1d = types.Array(types.float64, 1, "C", readonly=True)
ERROR_1 = "ERROR_1: scan 'heat': n_steps is {0}; it must be 0 or more"
ERROR_2 = "ERROR_2: scan 'heat': the last row of u was asked for, but the loop ran 0 steps"


@njit((types.int64, float64_1d, types.float64), cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def heat(n_steps, u, rate):
    if n_steps < 0:
        raise ValueError(ERROR_1, n_steps)
    u_rows = np.empty((2, u.shape[0]))
    for i in range(u.shape[0]):
        u_rows[0, i] = u[i]
    u_now = 1
    u_before = 0
    for t in range(n_steps):
        for i in range(min(1, u.shape[0])):
            u_rows[u_now, i] = u_rows[u_before, i]
        for i in range(max(u.shape[0] - 2, 0)):
            u_rows[u_now, i + 1] = u_rows[u_before, i + 1] + rate * (u_rows[u_before, i + 2] - 2.0 * u_rows[u_before, i + 1] + u_rows[u_before, i])
        for i in range(min(1, max(u.shape[0] - 1, 0))):
            u_rows[u_now, u.shape[0] - i - 1] = u_rows[u_before, u.shape[0] - i - 1]
        u_before_next = u_now
        u_now = u_before
        u_before = u_before_next
        if interrupted_at(8, t, n_steps):
            raise InterruptedError
    if n_steps <= 0:
        raise IndexError(ERROR_2)
    result = np.empty(u.shape[0])
    for i in range(u.shape[0]):
        result[i] = u_rows[u_before, i]
    return result
