"""Batch systems as pure pairs: what to submit and what the answer means. Nothing here runs a program."""
