"""Cards become loops."""
