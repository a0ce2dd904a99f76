"""All rules of the linter. `docs/reference/lint-rules.md` is written from them."""

from __future__ import annotations

from provision.lint import (  # noqa: F401  each registers its rules
    WEIGHTS,
    container_rules,
    data_rules,
    horovod_rules,
    launch_rules,
    module_rules,
    pair_rules,
    path_rules,
    shell_rules,
    site_rules,
    strategy_rules,
    tensorflow_rules,
    thread_rules,
    together_rules,
    version_rules,
)
from provision.lint.rule import RULES

__all__ = ["RULES", "WEIGHTS"]
