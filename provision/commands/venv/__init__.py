"""`provision venv`: a user's own virtual environment on top of a published environment."""
