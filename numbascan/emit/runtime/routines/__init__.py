"""Routines on whole arrays that generated code calls."""
