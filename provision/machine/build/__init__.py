"""Carries out the steps of a plan."""
