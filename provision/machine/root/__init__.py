"""What is below the root: environments, wheels, downloads, records, and what users load."""
