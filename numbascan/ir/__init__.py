"""What a computation is, and what a plan is."""
