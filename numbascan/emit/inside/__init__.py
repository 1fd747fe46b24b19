"""What reaches into private parts of Numba, llvmlite, NumPy and SciPy. Imported when something is compiled, by `emit/` alone."""
