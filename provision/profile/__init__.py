"""Read profiles (sites/*.toml) and stacks (stacks/*.toml) into frozen values, and list every fault.

One file for each table of a profile, named like the table; `arch.py` has the small ones of an arch. Pure: text and variables
come in, values go out.
"""
