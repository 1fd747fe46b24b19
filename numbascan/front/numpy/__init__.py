"""NumPy's functions on variables, under NumPy's names and with its arguments, each composed of cards.

A file imports `variable.py`, its neighbours here, `ops/` and `ir/`, and no other room.
NumPy itself calls them, by way of `variable.DISPATCH`, users as `nt.sum`, and the other rooms by name.
"""
