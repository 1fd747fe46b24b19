"""Computations (nodes, graphs, the ports of a loop), plans (the loop tree), and both as text.

It imports `types.py` and `errors.py` alone. Every stage calls it, and it calls none: an op is whatever has a name and can be rebuilt.
"""

from . import pickling, show  # noqa: F401 - what gives nodes and graphs their pickles, and graphs their text
