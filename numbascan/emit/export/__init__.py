"""Standalone modules: a plan's text, with the sources of all that it calls."""
