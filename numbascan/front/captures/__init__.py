"""What a traced function reads from outside: what it can reach, in which namespaces, and guards that tell whether it has changed.

A twin is guards with a frozen copy of the closure, which tell whether another function of the same code reads the same.

It imports `shared.py` alone. `tracing.py` makes the guards, and compiled functions ask them before every call.
"""
