"""What is below the root: environments, wheels, downloads, locks, records, and who may write there."""
