"""Shortcuts through private parts of Numba, llvmlite, NumPy and SciPy, each with the names that it needs (`shortcuts.py`).

It imports nothing of numbascan, and of Numba at the top only what is public. `emit/` calls it where a kernel is compiled or loaded, and
`runtime/` where generated code needs more than Numba's public interface gives.
"""
