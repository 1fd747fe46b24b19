"""What generated code calls at run time: scalar functions, random numbers, intrinsics; and what modules that stand alone call,
in public words.

It may import Numba, `ops/` and `inside/`; nothing else of `emit/`. Generated modules import it, so that it is
loaded when Numba compiles one or loads one from its own cache.
"""
