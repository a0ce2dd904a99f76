"""Make a plan from the request, the facts of the machine and what exists. Pure."""
