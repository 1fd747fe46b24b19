"""Routines on whole arrays: linear algebra, sorting, recurrences, draws of many numbers.

They may import what `runtime/` may, and its scalar functions. Generated code calls them as `routine(results…, operands…)`, by the names
that `Library` cards in `ops/` give.
"""
