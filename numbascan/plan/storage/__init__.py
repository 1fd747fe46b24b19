"""Where values live: which are never stored, which rows of a loop anybody reads, what holds a state between steps, how values are written.

It imports ir/, ops/ and builder.py, and knows neither lowerings nor loop passes.
lower/ calls it; compile.py calls `split_row_reads`, which makes a graph say which rows it reads.
"""
