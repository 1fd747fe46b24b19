"""What users hold: variables, `scan`, `function`, `jit`, derivatives, random streams, NumPy's functions on variables.

Imports every stage, through `compile.py` where something runs; a layer contract in pyproject.toml orders the imports within.
Called by users, through `numbascan` and `numbascan.tensor`, and by the command line.
"""
