"""Profiles, stacks, locks and templates: where they are searched, read, and who may write them."""
