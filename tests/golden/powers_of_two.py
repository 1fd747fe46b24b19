import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import interrupted_at

ERROR_1 = "ERROR_1: scan 'powers_of_two': n_steps is {0}; it must be 0 or more"


@njit((types.int64, types.float64, types.float64), cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def powers_of_two(n_steps, power, limit):
    if n_steps < 0:
        raise ValueError(ERROR_1, n_steps)
    power_2 = power
    steps = n_steps
    power_rows = np.empty(n_steps)
    for t in range(n_steps):
        product = power_2 * 2.0
        stop = product > limit
        power_2 = product
        power_rows[t] = power_2
        if stop:
            steps = t + 1
            break
        if interrupted_at(256, t, n_steps):
            raise InterruptedError
    power_rows_2 = power_rows[0:steps].copy()
    return power_rows_2
