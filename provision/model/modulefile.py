"""What loading a module does, as data; `provision.machine.rendering.render_modulefile` turns it into text."""

from dataclasses import dataclass
from typing import ClassVar

from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.model.stored import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulefile(Stored):
    """What loading the module does: which modules it loads, which PATH entries it prepends, and which variables it sets."""

    name: str
    version: str
    summary: str
    environment: str
    prefix: str
    modules: tuple[str, ...]
    prepend: tuple[tuple[str, str], ...]
    environ: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    """What `module help` shows: labels and values, including the proof."""
    unload: tuple[str, ...] = ()
    """Modules to unload before it is loaded, such as a site's default programming environment."""
    packages: tuple[tuple[str, str], ...] = ()
    """Names and versions of packages for which `module spider` finds this module."""
    defaults: tuple[tuple[str, str], ...] = TENSORFLOW.quiet
    """Variables that it sets unless the user has set them. Records without them are of environments with TensorFlow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Stored):
    """What is known of an environment before its proof, in its own folder: enough to publish it without planning it again."""

    SCHEMA: ClassVar[int] = 1
    site: str
    stack: str
    wheel: str | None
    """The key of the compiled Horovod; None if the stack has none."""
    wheels: tuple[str, ...] = ()
    """The keys of all compiled wheels."""
    modulefile: Modulefile
