"""The verbs: each is a file or a folder here, with `run(args)`; `options/` declares what each takes.

This file is all that the command line reads for `--version` and `--help`, so it imports nothing.
"""

# groups of verbs as `provision --help` shows them: verb, what it does (at most 64 letters: the help fits on 80 columns)
GROUPS = (
    (
        "build and prove",
        (
            ("site", "list, show and check sites, write the profile of a new one"),
            ("doctor", "before a build: what is missing here, and how to get it"),
            ("fetch", "download the files of a build, for nodes without network"),
            ("plan", "show every step of a build without changing anything"),
            ("build", "build an environment, prove it, publish its module"),
        ),
    ),
    (
        "look after environments",
        (
            ("list", "list the environments of a site"),
            ("show", "show one environment: its parts, its build and its proof"),
            ("report", "write pages about the environments, as HTML or Markdown"),
            ("verify", "after a build: are environments and machine as when proved?"),
            ("test", "train again: repeat the proof of a published environment"),
            ("audit", "look up advisories: known weaknesses of the packages"),
            ("upgrade", "build newer packages on all archs, publish only if all succeed"),
            ("publish", "let users load a proved environment; default, hidden, deprecated"),
            ("unpublish", "take the module of an environment away from users"),
            ("rollback", "let users load what they loaded before the last publication"),
            ("pack", "make one image of an environment, for jobs of many nodes"),
            ("pin", "keep an environment from being removed"),
            ("remove", "remove one environment that users do not load"),
            ("prune", "remove old environments, and what no environment needs"),
        ),
    ),
    (
        "use an environment",
        (
            ("job", "write the script of a job, check a script, follow a job"),
            ("activate", "print shell code that loads an environment without modules"),
            ("explain", "find the errors in a log and explain the known failures"),
        ),
    ),
)

# The verbs that the first page leaves out, by the page that shows them: `provision help users`.
PAGES = {
    "users": (
        "more for users",
        (
            ("example", "list the example programs, copy one to begin from"),
            ("data", "write a script that copies data to the site, or results from it"),
            ("venv", "make your own virtual environment on an environment, check it"),
            ("kernel", "let Jupyter start notebooks in an environment or a container"),
            ("tensorboard", "show the curves of a job in the browser of your own machine"),
            ("scaling", "compare runs on 1, 2 and 4 GPUs: speed-up and efficiency"),
            ("startup", "estimate how long thousands of ranks take to start"),
            ("completion", "print the completion script for bash, zsh or fish"),
        ),
    ),
    "makers": (
        "for those who make stacks",
        (
            ("modules", "list what the site's modules offer: TensorFlow, CUDA, MPI"),
            ("stack", "list the stacks: their TensorFlow, Horovod and Pythons"),
            ("compat", "show which stacks work on a kind of node, and why others do not"),
            ("lock", "compile requirements/*.in to locks with hashes (needs network)"),
            ("spack", "set up Spack, write the environments for plain Spack"),
        ),
    ),
}

VERBS = tuple(verb for _, verbs in (*GROUPS, *PAGES.values()) for verb in verbs)
