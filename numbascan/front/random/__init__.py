"""Streams of random numbers."""
