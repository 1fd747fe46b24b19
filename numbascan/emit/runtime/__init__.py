"""Functions that generated code calls at run time: scalar functions, random numbers, intrinsics; and for standalone modules the same
functions written with public names.

It may import Numba, `ops/` and `inside/`; nothing else of `emit/`. Generated modules import it: it is loaded when Numba compiles
one, or loads one from its own cache.
"""
