"""What converted code calls: choices, loops, calls and writes that ask whether a value is traced.

Known values go Python's way. `front/converted` makes the code that comes here; `runtime.py` lists what it may call.
"""
