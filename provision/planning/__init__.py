"""What is wanted, what was observed and what exists, to a plan. Pure."""
