"""Backends: the steps that make an environment. Pure: they return steps."""
