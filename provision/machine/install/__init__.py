"""Carry out the steps of a build."""
