"""The verbs, one file each: `add_arguments(parser)` and `run(args) -> Outcome`. What they share stands in shared/."""
