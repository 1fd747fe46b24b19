"""Derivatives of functions (`ns.grad` and its like), of variables (`nt.grad`), rules of the user's own, and their numeric check.

It imports `grad/`, which makes the graphs, `transforms.py`, which runs them, and the files that all rooms share; not `scan/`.
Users call it, and `vmap`, which is a transform as these are.
"""
