"""Known failures: the catalogue (`*.toml` in this folder), and the reader that finds them in logs."""
