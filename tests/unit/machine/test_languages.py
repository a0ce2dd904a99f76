"""No value runs: hostile texts in every place of every script, which is then run in real bash, Lua and Tcl."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import jinja2
import pytest

from parts.languages import MODULEFILE, Script, replaced, run_harmlessly, scripts, texts
from parts.loops import for_each
from parts.scripts import lua, tclsh
from provision.errors import ConfigError
from provision.machine.configuration.search_path import shipped_root
from provision.machine.rendering import render as render_module
from provision.machine.rendering.render import FILTERS, environment, render
from provision.machine.rendering.render_modulefile import emit_modulefile

TEMPLATES = sorted(
    f"{path.parent.name}/{path.name}"
    for folder in ("jobs", "modulefiles", "pages")
    for path in (Path(shipped_root()) / folder).glob("*.j2")
)
# What makes the file CANARY if it stands in a word, in quotes of either kind, in a comment, in an expression, in a format.
ATTACKS = (
    "x'\n: >CANARY\n'",
    "x\nINSIDE\n: >CANARY\nSETUP\n: >CANARY\nPROVISION_PLAN\n: >CANARY\nPYTHON\n: >CANARY\n",
    "$(: >CANARY)`: >CANARY`",
    "'$(: >CANARY)'",
    "'; : >CANARY; '",
    '"; : >CANARY; "',
    "; : >CANARY #",
    "\\$(: >CANARY)\\",
    "Größe ✓ %s",
)


@pytest.fixture(autouse=True)
def _each_template_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.cache
    def kept(language: str):  # type: ignore[no-untyped-def]
        made = environment(language)
        made.from_string = functools.cache(made.from_string)
        return made

    monkeypatch.setattr(render_module, "environment", kept)


@pytest.mark.parametrize("script", scripts(), ids=[script.name for script in scripts()])
def test_no_value_of_a_script_is_run_by_bash(script: Script, tmp_path: Path) -> None:
    canary, file = tmp_path / "canary", tmp_path / "script.sh"

    def write(values: object) -> str | None:
        """The script; None if it is refused, also by accident: only readers refuse an unknown scheduler."""
        try:
            return script.write(values)
        except Exception:
            return None

    plain = write(script.values)
    written = [path for path, _ in texts(script.values) if write(replaced(script.values, path, "other")) != plain]
    for attack in ATTACKS:
        hostile, values, places = attack.replace("CANARY", str(canary)), script.values, 0
        for path in written:
            attacked = replaced(values, path, hostile)
            if write(attacked) is not None:
                values, places = attacked, places + 1
        assert places, "no text is written"
        file.write_text(script.write(values), encoding="utf-8")
        subprocess.run(["bash", "-n", str(file)], check=True)
        done = run_harmlessly(file)
        assert not canary.exists(), f"{attack!r} ran: {done.stderr.decode()}"


@pytest.mark.parametrize("line", ["%s", "set -e; false; %s", "stop x; exit; %s", "srun bash -c '%s'", 'x="$(%s)"'])
def test_a_line_of_a_script_that_runs_is_noticed(line: str, tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(line % f": >{tmp_path}/canary" + "\n", encoding="utf-8")
    run_harmlessly(file)
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "attack",
    [
        '"); io.open("CANARY", "w"); ("',
        ']] io.open("CANARY", "w") --[[',
        '\nio.open("CANARY", "w")\n',
        '\\"); io.open("CANARY", "w"); ("',
        "[open CANARY w]",
        '"; open CANARY w; "',
        "\nopen CANARY w\n",
        "\\\nopen CANARY w\n",
        "}; open CANARY w; proc x { } {",
    ],
)
def test_no_value_of_a_modulefile_is_run_by_lua_or_tcl(attack: str, tmp_path: Path) -> None:
    canary, module = tmp_path / "canary", MODULEFILE
    for path, _ in texts(MODULEFILE):
        module = replaced(module, path, attack.replace("CANARY", str(canary)))
    verdict = attack.replace("CANARY", str(canary))
    commands = ("whatis", "help", "conflict", "unload", "depends_on", "setenv", "prepend_path", "isFile", "LmodError")
    commands += ("LmodMessage", "add_property")
    stubs = "".join(f"function {name}(...) end\n" for name in commands) + 'function mode() return "load" end\n'
    text = emit_modulefile(module, "lua", verdict, warning=verdict)
    (tmp_path / "module.lua").write_text(stubs + text, encoding="utf-8")
    subprocess.run([lua(), str(tmp_path / "module.lua")], check=True)
    names = ("module-whatis", "conflict", "module", "depends-on", "setenv", "prepend-path")
    stubs = "".join(f"proc {name} {{ args }} {{ }}\n" for name in names)
    stubs += "proc module-info { args } { return 1 }\nproc break { } { }\n"
    text = f"{stubs}{emit_modulefile(module, 'tcl', verdict, warning=verdict)}\nModulesHelp\n"
    (tmp_path / "module.tcl").write_text(text, encoding="utf-8")
    subprocess.run([tclsh(), str(tmp_path / "module.tcl")], check=True, capture_output=True)
    assert not canary.exists()


def language(template: str) -> str:
    """The language of a template."""
    return template.split(".")[-2]


@for_each("template", TEMPLATES)
def test_a_template_without_one_of_its_filters_is_refused(template: str) -> None:
    text = (Path(shipped_root()) / template).read_text(encoding="utf-8")
    names = "|".join(FILTERS[language(template)])
    printed = [match.span() for match in re.finditer(r"\{\{.*?\}\}", text)]
    filters = [
        match for match in re.finditer(rf" \| ({names})\b", text) if any(a < match.start() < b for a, b in printed)
    ]
    assert filters or not printed
    environment(language(template)).compile(text)
    for match in filters[:: len(filters) // 4 or 1]:
        with pytest.raises(jinja2.TemplateSyntaxError, match="a value is printed without a filter of its language: "):
            environment(language(template)).compile(text[: match.start()] + text[match.end() :])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{{ title }}", "line 1: a value is printed without a filter of its language: code, sh, words, "),
        ("{% if false %}{{ title }}{% endif %}", "line 1: a value is printed without"),
        ("{{ (title | sh) ~ title }}", "line 1: a value is printed without"),
        ("{{ title | sh | upper }}", "line 1: a value is printed without"),
        ("{{ title | sh if title else title }}", "line 1: a value is printed without"),
        ("{% macro m() %}x{% endmacro %}{{ m() }}", "line 1: a value is printed without"),
        ("{% set x %}{{ title | sh }}{% endset %}{{ x }}", "line 1: a value is printed without"),
        ("{{ title | lua }}", "line 1: a value is printed without"),
        ("{{ title | code }}", "'a title' is not code: it needs the filter of its language"),
        ("{{ title.__class__ | sh }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ (title | attr('__class__')) | sh }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ '{0.__class__}'.format(title) | sh }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ module.sys | sh }}", "access to attribute 'sys' of 'module' object is unsafe."),
        ("{{ nothing | sh }}", "'nothing' is undefined"),
        ("{{ 1 / 0 | sh }}", "line 1: a value is printed without"),
        ("{{ (1 / 0) | plain }}", "division by zero"),
        ("{% include 'jobs/other.sh.j2' %}", "line 2: a value is printed without"),
    ],
)
def test_a_template_of_a_site_with_a_fault_is_refused_with_its_file(
    text: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "mine.sh.j2").write_text(text, encoding="utf-8")
    (tmp_path / "jobs" / "other.sh.j2").write_text("\n{{ title }}\n", encoding="utf-8")
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    with pytest.raises(ConfigError, match=r"`jobs/mine\.sh\.j2`") as caught:
        render("jobs/mine.sh.j2", title="a title", module=subprocess)
    assert caught.value.evidence[0].startswith(fault)
    assert caught.value.hint == f"edit `{tmp_path}/jobs/{'other' if 'include' in text else 'mine'}.sh.j2`"
