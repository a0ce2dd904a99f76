"""`provision data`: data sets and results of users' jobs."""
