"""Files and folders as the system has them: read, written, removed and judged."""
