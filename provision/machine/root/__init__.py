"""What is below the root: environments, wheels, downloads, locks, records, and whose files are believed."""
