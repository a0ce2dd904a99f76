"""What people write about a site and a stack, read: sites/*.toml and stacks/*.toml to frozen values, every fault listed.

One file per table of a profile, named like the table. Pure: text and variables come in, values go out.
"""
