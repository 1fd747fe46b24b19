"""The oracle: graphs computed by NumPy, and compiled code held against it."""
