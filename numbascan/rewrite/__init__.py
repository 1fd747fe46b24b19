"""Graphs made leaner, with the same values: each file is one rewrite, or what several share; `pipeline.py` lists them in order.

It imports `ir/` and `ops/`, and neither its sibling `grad/` nor anything that knows memory.
`compile.py` calls it, and `ns.show`.
"""
