"""One card per op: what it is called, its type and value, its derivatives, and how it becomes loops.

Imports `ir/` and the files beside this folder. Everybody else reads the cards, and `emit/runtime/` compiles the functions written on them.
"""
