"""From a plan to something that runs: the text of kernels, loops in threads, the cache on disk, estimates of a call; standalone modules.

It may import `ir/`, `ops/` and `plan/`, and reaches Numba through its rooms `runtime/` and `inside/` alone, when something is compiled.
`compile.py` calls it, and the command line lists and clears the cache.
"""
