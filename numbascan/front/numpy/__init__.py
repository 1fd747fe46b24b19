"""NumPy's functions on Variables."""
