"""Streams of random numbers: base draws, distributions of whole and of real numbers made from them, `RandomStream`.

It imports NumPy's functions on variables, `draw_scopes.py`, which hands out keys and numbers, and `scan`, for multinomial draws.
Users call it as `nt.random`.
"""
