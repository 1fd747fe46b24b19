"""`ns.scan`: reads arguments and options, traces the step, reads what it returned, makes the loop, compiles it and finds it again.

Imports the files that all rooms share and a few of NumPy's functions. Called by users, `vmap` and random streams.
"""
