"""NumPy's functions on variables, under NumPy's names and with its arguments, each composed of cards.

Imports `variable.py`, the files here, `ops/` and `ir/`, and no other room.
Called by NumPy itself, through `variable.DISPATCH`, by users, as `nt.sum`, and by the other rooms.
"""
