"""Derivatives: graphs made from graphs."""
