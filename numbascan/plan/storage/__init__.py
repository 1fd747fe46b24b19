"""Where values live."""
