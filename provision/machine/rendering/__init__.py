"""Templates to scripts and modulefiles."""
