"""What users hold: variables, scan, function, and NumPy's functions on them."""
