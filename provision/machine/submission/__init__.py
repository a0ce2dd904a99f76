"""Jobs: their scripts, their submission, and how they end."""
