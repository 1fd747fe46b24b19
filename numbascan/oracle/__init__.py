"""A graph computed by NumPy, one node and one step at a time: `mode="python"`, and what `mode="debug"` holds compiled code against.

It imports `ir/` and `ops/`, and none of the stages that it judges.
`compile.py` calls it, and tests.
"""
