"""One card per op."""
