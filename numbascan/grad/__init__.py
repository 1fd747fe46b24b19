"""Graphs made from graphs: reverse and forward mode, of cards, loops and choices, with and without checkpoints.

It imports `ir/`, `ops/` and `checkpoint.py`, and neither its sibling `rewrite/` nor anything that knows memory.
`front/derivatives/` calls it, and `compile.py`, for which `mit_mots.py` turns buffers of cotangents into states.
"""
