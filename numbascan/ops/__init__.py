"""One card per op: its name, type, value, derivatives, and lowering to loops.

Imports `ir/` and the files beside this folder. Other folders read the cards; `emit/runtime/` compiles the functions written beside them.
"""
