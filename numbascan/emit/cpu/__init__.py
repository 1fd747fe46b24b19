"""Text for the CPU: a module with one Numba function; loops over lanes as functions for threads, vector forms, polling for signals."""
