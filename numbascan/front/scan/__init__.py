"""One call of `ns.scan`: arguments and options read, the step traced, what it returned, the loop made, compiled and found again.

It imports the files that all rooms share, and of NumPy's functions a few. `vmap` and random streams call it, and users.
"""
