"""Streams of random numbers: base draws, the distributions made from them, `RandomStream`, and NumPy's generators in traced functions.

Imports NumPy's functions on variables, `draw_scopes.py`, which hands out keys and numbers, and `scan`, for multinomial draws.
Called by users, as `nt.random`.
"""
