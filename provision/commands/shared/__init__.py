"""What the verbs share: naming what to build, the outcome and its JSON envelope, and running a verb to an exit code."""
