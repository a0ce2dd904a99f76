"""Read profiles (sites/*.toml) and stacks (stacks/*.toml) into frozen values, and list every fault.

One file for each table of a profile, named like the table; `site.py` and `arch.py` have the small ones of both. Pure: text and
variables come in, values go out.
"""
