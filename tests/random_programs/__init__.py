"""Random scan programs: each is run by a plain Python loop, by the oracle and compiled, and the results are compared."""
