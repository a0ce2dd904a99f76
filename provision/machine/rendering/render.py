"""Render templates to text. The only importer of jinja2.

Templates contain no decisions, and undefined names are errors. There are no time stamps, so equal input gives equal bytes.
A template prints a value only through a filter of its language (`provision.model.quoting`): one without a filter is refused
when the template is read, also in a part that is not rendered. Templates run in the sandbox of Jinja, and reach no module.
"""

from __future__ import annotations

import functools
import hashlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.programs.secrets_here import secrets_here
from provision.model import quoting
from provision.model.quoting import Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import nodes
    from jinja2.sandbox import SandboxedEnvironment

# The language of a template is the last part of its name before `.j2`.
FILTERS: dict[str, dict[str, Callable[..., Code]]] = {
    "sh": {
        "code": quoting.check_code,
        "sh": quoting.quote_sh,
        "words": quoting.words,
        "inside": quoting.quote_inside,
        "path": quoting.shell_path,
        "variable": quoting.variable,
        "plain": quoting.plain,
        "comment": quoting.comment,
        "python": quoting.quote_python,
        "json": quoting.quote_json,
    },
    "fish": {"fish": quoting.quote_fish, "variable": quoting.variable, "comment": quoting.comment},
    "csh": {"csh": quoting.quote_csh, "variable": quoting.variable},
    "html": {"html": quoting.quote_html, "code": quoting.check_code},
    "md": {"md": quoting.quote_markdown, "line": quoting.comment},
    "lua": {"lua": quoting.quote_lua, "comment": quoting.comment},
    "tcl": {"tcl": quoting.quote_tcl, "comment": quoting.comment_tcl},
}


def render(template: str, **values: object) -> str:
    """The text of a shipped template (`jobs/…`, `modulefiles/…`) with these values.

    Raises:
        ConfigError: there is no such template, it has a fault, or the text would contain a secret.
    """
    import jinja2

    try:
        rendered = environment(template.split(".")[-2]).get_template(template).render(**values)
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        file, line = template, ""
        if isinstance(error, jinja2.TemplateSyntaxError):
            file, line = error.name or template, f"line {error.lineno}: "
        raise ConfigError(
            f"the template `{template}` cannot be rendered",
            evidence=[f"{line}{getattr(error, 'message', error)}"],
            hint=f"edit `{shipped.place_of(file)}/{file}`",
            kind="invalid-file",
        ) from error
    return refuse_secrets(template, rendered)


def read_template(name: str) -> tuple[str, None, Callable[[], bool]]:
    """The text of a template, and how jinja asks whether what it compiled of it is still true. Compiling takes the time."""
    text = shipped.read(name)
    return text, None, lambda: shipped.read(name) == text


def template_sha256(name: str) -> str:
    """The hash of a template: what was rendered from another one is of another version of the tool, or of the site."""
    return hashlib.sha256(shipped.read(name).encode()).hexdigest()


@functools.cache
def environment(language: str) -> SandboxedEnvironment:
    """What renders the templates of one language."""
    import jinja2
    from jinja2 import nodes
    from jinja2.compiler import CodeGenerator, Frame
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    filters = FILTERS[language]

    def is_code(node: nodes.Expr) -> bool:
        match node:
            case nodes.Const() | nodes.TemplateData():
                return True
            case nodes.Filter():
                return node.name in filters
            case nodes.CondExpr():
                return is_code(node.expr1) and (node.expr2 is None or is_code(node.expr2))
            case nodes.Concat():
                return all(map(is_code, node.nodes))
            case nodes.Call():  # the text of the block in the template that this one extends
                return isinstance(node.node, nodes.Name) and node.node.name == "super"
            case _:
                return False

    class Generator(CodeGenerator):
        def visit_Output(self, node: nodes.Output, frame: Frame) -> None:  # noqa: N802
            for value in node.nodes:
                if not is_code(value):
                    self.fail(
                        f"a value is printed without a filter of its language: {', '.join(filters)}", value.lineno
                    )
            super().visit_Output(node, frame)

    class Environment(ImmutableSandboxedEnvironment):
        code_generator_class = Generator

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            return super().is_safe_attribute(obj, attr, value) and not isinstance(value, ModuleType)

    made = Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        loader=jinja2.FunctionLoader(read_template),
    )
    made.filters.update(filters)
    return made


def refuse_secrets(template: str, text: str) -> str:
    """The text, which others can read, if it has no secret of this shell.

    Raises:
        ConfigError: it has one.
    """
    hidden = secrets_here().hide_known(text)
    if hidden == text:
        return text
    pairs = zip(text.splitlines(), hidden.splitlines(), strict=False)
    raise ConfigError(
        f"the text of `{template}` would contain a secret of this shell, and others could read it",
        evidence=[new.strip() for old, new in pairs if old != new][:3],
        hint="take it out of the command or the profile; a program can read it from a variable, or from a file with mode 600",
    )
