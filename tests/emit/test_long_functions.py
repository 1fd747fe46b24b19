"""What changes in Numba while a kernel compiles gives what Numba gives."""

from contextlib import ExitStack

import numpy as np
from numba import njit
from numba.core import analysis, ssa, types
from numba.core.compiler import run_frontend
from numba.core.postproc import VariableLifetime
from shortcuts_taken import needs

import numbascan as ns
from numbascan.emit.inside import long_functions, plain_locals

pytestmark = needs("plain_locals", "long_functions")


def walk(x, n, flag):
    total, last = 0.0, x[0]
    for i in range(n):
        if flag:
            for j in range(i):
                total += x[j] * last
                if total > 1e9:
                    break
        else:
            last = x[i] - total
        while last > 3:
            last -= 1.0
    return total + last


def test_the_map_is_that_of_numba():
    lifetime = VariableLifetime(run_frontend(walk).blocks)
    arguments = lifetime.cfg, lifetime._blocks, lifetime.usedefs.usemap, lifetime.usedefs.defmap
    wanted = analysis.compute_live_map(*arguments)
    assert long_functions.live_map(*arguments) == wanted
    assert any(wanted.values())


def test_a_function_compiled_with_them_gives_the_same():
    x = np.random.default_rng(0).normal(size=30) * 3
    with ExitStack() as stack:
        plain_locals.replace(stack)
        long_functions.replace(stack)
        compiled = njit((types.float64[::1], types.int64, types.boolean))(walk)
    for flag in (True, False):
        for n in (0, 1, 30):
            assert compiled(x, n, flag) == walk(x, n, flag)


def test_arrays_are_freed_as_before():
    from numba.core.runtime import _nrt_python, rtsys

    @ns.scan
    def step(y, a):
        return np.tanh(a @ y) + np.concatenate([y[1:], y[:1]])

    y, a = np.ones(40), np.eye(40) / 3
    step(outputs_info=y, non_sequences=a, n_steps=20)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(5):
        step(outputs_info=y, non_sequences=a, n_steps=20)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


def test_one_definition_for_each_local_as_numba_finds_them():
    def text(blocks):
        return [(label, list(map(str, block.body))) for label, block in blocks.items()]

    wanted = text(ssa._run_ssa(run_frontend(walk).blocks))
    with ExitStack() as stack:
        long_functions.replace(stack)
        found = text(ssa._run_ssa(run_frontend(walk).blocks))
    assert found == wanted
    assert any("phi" in stmt for _, body in wanted for stmt in body)
