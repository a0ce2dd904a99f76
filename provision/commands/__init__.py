"""The verbs: each is a file or a folder here, with `add_arguments(parser)` and, unless it has sub-verbs, `run(args)`.

This file is all that the command line reads for `--version` and `--help`, so it imports nothing.
"""

# verb, what it does (at most 64 letters: the help fits on 80 columns)
VERBS = (
    ("doctor", "check what a build needs, and say how to fix what is missing"),
    ("lock", "compile requirements/*.in to locks with hashes (needs network)"),
    ("fetch", "download everything a build installs, for offline nodes"),
    ("plan", "show every step of a build; changes nothing"),
    ("build", "build an environment, prove it, publish its module"),
    ("test", "run the proof of a published environment again"),
    ("verify", "compare what this shell has loaded with what was proved"),
    ("job", "write the script of a job, check a script, follow a job"),
    ("data", "write a script that copies a data set to the site's scratch"),
    ("scaling", "compare runs on 1, 2 and 4 GPUs: speed-up and efficiency"),
    ("site", "list the sites, show one, write a profile for your own"),
    ("stack", "list the stacks: which TensorFlow, Horovod and Pythons"),
    ("list", "list the environments of a site"),
    ("show", "show one environment: its parts, its build and its proof"),
    ("activate", "print shell code that loads an environment without modules"),
    ("explain", "explain what a log means"),
    ("completion", "print the completion script for bash, zsh or fish"),
)
