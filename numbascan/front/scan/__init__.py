"""`ns.scan` and what it makes of a step."""
