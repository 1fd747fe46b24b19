"""Graphs into equal graphs that cost less. Each pass gives what it was given where there is nothing to do."""
