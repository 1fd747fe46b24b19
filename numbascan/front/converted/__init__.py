"""Users' functions with their control flow handed to functions that ask whether a value is traced.

`lowering.py` changes the syntax tree, `source.py` finds it and makes the function. What converted code calls is in `front/plain`.
"""
