"""How a program is started, followed, stopped, and what is kept of its output."""
