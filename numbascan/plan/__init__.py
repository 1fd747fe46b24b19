"""From graphs to loops: where values live, and what computes them."""
