"""From a plan to something that runs: the text of kernels, the threads' part of it, the cache on disk, estimates of what a call will take;
and to a module that runs without numbascan.

It may import `ir/`, `ops/` and `plan/`, and reaches Numba through its rooms `runtime/` and `inside/` alone, when something is compiled.
`compile.py` calls it, and the command line lists and clears the cache.
"""
