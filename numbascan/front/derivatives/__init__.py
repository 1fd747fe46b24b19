"""Derivatives: of functions of arrays, and of variables."""
