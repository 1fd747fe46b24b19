import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import interrupted_at
from numbascan.emit.runtime.vecmath import log

float64_1d = types.Array(types.float64, 1, "C", readonly=True)


@njit((float64_1d, types.float64, types.float64, types.float64, types.float64), cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def local_level(flow, level, variance, noise, drift):
    level_2 = level
    variance_2 = variance
    term = np.empty(flow.shape[0])
    level_rows = np.empty(flow.shape[0])
    variance_rows = np.empty(flow.shape[0])
    for t in range(flow.shape[0]):
        predicted = variance_2 + drift
        spread = predicted + noise
        gain = predicted / spread
        error = flow[t] - level_2
        term[t] = -0.5 * (log(spread) + error * error / spread)
        level_2 += gain * error
        variance_2 = predicted * (1.0 - gain)
        level_rows[t] = level_2
        variance_rows[t] = variance_2
        if interrupted_at(256, t, flow.shape[0]):
            raise InterruptedError
    return level_rows, variance_rows, term
