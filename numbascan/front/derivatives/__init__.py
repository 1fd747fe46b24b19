"""Derivatives of functions (`ns.grad` and its like) and of variables (`nt.grad`), rules written by users, and their numeric check.

Imports `grad/`, which makes the graphs, `transforms.py`, which runs them, and the files that all rooms share; of `scan/` only `updates.py`.
Called by users, and by `vmap`, which is a transform like these.
"""
