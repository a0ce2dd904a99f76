"""Who may write below a root, and one process at a time."""
