"""What users hold: variables, `scan`, `function`, `jit`, derivatives, random streams, NumPy's functions on variables.

It imports every stage, through `compile.py` where something runs; who imports whom within it, pyproject.toml says as a layer contract.
Users call it, by way of `numbascan` and `numbascan.tensor`, and so does the command line.
"""
