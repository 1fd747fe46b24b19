import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import interrupted_at, wrapping_sub
from numbascan.emit.runtime.vecmath import tanh_in_lanes

float64_2d = types.Array(types.float64, 2, "C", readonly=True)
float64_1d = types.Array(types.float64, 1, "C", readonly=True)
ERROR_1 = "ERROR_1: scan 'network': sequence 0 (u_tm4) has {0} rows, but n_steps={2} with taps [-4, 0] needs {1}; give a longer sequence or a smaller n_steps"
ERROR_2 = 'ERROR_2: matrix product: lengths {0} and {1} of the summed axes differ'
ERROR_3 = "ERROR_3: matrix product: lengths {0} and {1} of the summed axes differ in the step of scan 'network'"
ERROR_4 = "ERROR_4: add: operands do not broadcast: dimension 0 is {0} in one and {1} in another in the step of scan 'network'"
ERROR_5 = "ERROR_5: scan 'network': the step changes the shape of state x_tm3: dimension 0 is {0} on entry and {1} in its result; an initial value and the step's result must have one shape"
ERROR_6 = "ERROR_6: scan 'network': the step changes the shape of state y_tm1: dimension 0 is {0} on entry and {1} in its result; an initial value and the step's result must have one shape"


@njit((float64_2d, float64_2d, float64_1d, float64_2d, float64_2d, float64_2d, float64_2d), cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)
def network(u_tm4, x_tm3, y_tm1, W, W_in, W_back, W_out):
    n_steps = max(wrapping_sub(u_tm4.shape[0], 4), 0)
    if u_tm4.shape[0] - 4 < n_steps:
        raise ValueError(ERROR_1, u_tm4.shape[0], min(n_steps, 9223372036854775803) + 4, n_steps)
    if u_tm4.shape[1] != W_in.shape[0]:
        raise ValueError(ERROR_2, u_tm4.shape[1], W_in.shape[0])
    contract = np.empty((u_tm4.shape[0], W_in.shape[1]))
    np.dot(u_tm4, W_in, contract)
    x_tm3_path = np.empty((n_steps + 3, x_tm3.shape[1]))
    for i in range(x_tm3.shape[1]):
        x_tm3_path[0, i] = x_tm3[0, i]
        x_tm3_path[1, i] = x_tm3[1, i]
        x_tm3_path[2, i] = x_tm3[2, i]
    y_tm1_path = np.empty((n_steps + 1, y_tm1.shape[0]))
    for i in range(y_tm1.shape[0]):
        y_tm1_path[0, i] = y_tm1[i]
    if n_steps > 0 and x_tm3.shape[1] != W.shape[0]:
        raise ValueError(ERROR_3, x_tm3.shape[1], W.shape[0])
    contract_2 = np.empty(W.shape[1])
    if n_steps > 0 and W.shape[1] != W_in.shape[1]:
        raise ValueError(ERROR_4, W.shape[1], W_in.shape[1])
    if n_steps > 0 and y_tm1.shape[0] != W_back.shape[0]:
        raise ValueError(ERROR_3, y_tm1.shape[0], W_back.shape[0])
    contract_3 = np.empty((3, W_back.shape[1]))
    if n_steps > 0 and W_in.shape[1] != W_back.shape[1]:
        raise ValueError(ERROR_4, W_in.shape[1], W_back.shape[1])
    if n_steps > 0 and W.shape[0] != W_back.shape[1]:
        raise ValueError(ERROR_5, W.shape[0], W_back.shape[1])
    if n_steps > 0 and W_back.shape[1] != W_out.shape[0]:
        raise ValueError(ERROR_3, W_back.shape[1], W_out.shape[0])
    if n_steps > 0 and W_back.shape[0] != W_out.shape[1]:
        raise ValueError(ERROR_6, W_back.shape[0], W_out.shape[1])
    # 3 steps at a time: products with rows that are known by then
    for t0 in range(0, n_steps, 3):
        t1 = min(t0 + 3, n_steps)
        x_tm3_path_strip = x_tm3_path[t0:t1]
        y_tm1_path_strip = y_tm1_path[t0 + 1:t1 + 1]
        np.dot(x_tm3_path_strip, W_out, y_tm1_path_strip)
        y_tm1_path_strip_2 = y_tm1_path[t0:t1]
        contract_3_strip = contract_3[:t1 - t0]
        np.dot(y_tm1_path_strip_2, W_back, contract_3_strip)
        for t in range(t0, t1):
            x_tm3_path_row = x_tm3_path[t + 2]
            np.dot(W.T, x_tm3_path_row, contract_2)
            for i in range(W_back.shape[1]):
                x_tm3_path[t + 3, i] = tanh_in_lanes(contract_2[i] + contract[t + 4, i] + contract[t, i] + contract_3[t - t0, i])
        if interrupted_at(8, t0, n_steps):
            raise InterruptedError
    x_tm3_v2 = x_tm3_path[3:]
    y_tm1_v2 = y_tm1_path[1:]
    return x_tm3_v2, y_tm1_v2
