"""Each asks this machine one question."""
