"""Values in other languages: each comes back unchanged, or is refused with a clear error."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from parts.scripts import HOSTILE, run, tclsh
from provision.errors import ConfigError
from provision.model import quoting
from provision.model.quoting import Code, bash, comment, directive, plain, quote_inside, shell_path, variable, words

HIDDEN = ("\n", "\r", "\t", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\udc80")


def printed(form: str) -> list[str]:
    """What bash prints for the words of this code, each to a NUL."""
    return run(["bash", "-c", f"printf '%s\\0' {form}"]).split("\0")[:-1]


def test_bash_gets_every_word_unchanged() -> None:
    assert printed(words(HOSTILE)) == list(HOSTILE)
    assert printed(bash("%s %s", "$(id)", Code("$((1 + 1))"))) == ["$(id)", "2"]


def test_bash_gets_every_text_inside_of_double_quotes_unchanged() -> None:
    assert printed(" ".join(f'"{quote_inside(text)}"' for text in HOSTILE)) == list(HOSTILE)


def test_a_path_for_the_node_expands_variables_and_nothing_else() -> None:
    assert run(["bash", "-c", f'printf %s "{shell_path("$A/x/${A}")}"'], environ={"A": "$(id) `id`"}) == (
        "$(id) `id`/x/$(id) `id`"
    )
    assert shell_path("/a/$USER/${X}") == "/a/$USER/${X}"
    assert shell_path("/a/$USER/${X}", unset_is_empty=True) == "/a/$USER/${X:-}"


@pytest.mark.parametrize(
    "text", ["", "$(id)", "`id`", "a b", "${x:-y}", "a}", 'a"', "a'", "a\\", "a;b", "a\n", "ü", "$", "${"]
)
def test_a_path_that_a_shell_would_run_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the path of a script"):
        shell_path(text)


@pytest.mark.parametrize("text", ["", "a b", "$x", "x\n", "ü", "a;b", "'", "~", "{", "\u0661"])
def test_a_value_that_is_not_plain_is_refused(text: str) -> None:
    for make in (plain, variable):
        with pytest.raises(ConfigError, match="is not"):
            make(text)
    assert plain(12) == "12"
    with pytest.raises(ConfigError, match="is not the name of a variable"):
        variable("2x")


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_comment_is_one_line_that_shows_what_it_contains(hidden: str) -> None:
    text = comment(f"a{hidden}b")
    assert text.isprintable()
    assert text == f"a{hidden.encode('unicode_escape').decode()}b"
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_directive_with_a_control_character_is_refused(hidden: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a directive of a job"):
        directive("#SBATCH", f"--comment=a{hidden}b")
    assert directive("#SBATCH", "--comment=ü") == "#SBATCH --comment=ü"


@pytest.mark.parametrize(
    "make", [quoting.quote_sh, quote_inside, quoting.quote_lua, quoting.quote_tcl, quoting.quote_python]
)
@pytest.mark.parametrize("text", ["a\0b", "a\udc80b"])
def test_text_that_no_file_can_contain_is_refused(make, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="cannot be written to a script") as caught:
        make(text)
    caught.value.message.encode()


def test_python_gets_every_text_unchanged_on_one_line() -> None:
    for text in (*HOSTILE, "\U0001f600", "\x7f"):
        assert eval(quoting.quote_python(text)) == text
        assert "\n" not in quoting.quote_python(text)


def test_tcl_reads_a_file_behind_a_control_z(tmp_path: Path) -> None:
    (tmp_path / "module.tcl").write_text(f"set found {quoting.quote_tcl(chr(26))}\nputs end\n", encoding="utf-8")
    (tmp_path / "run.tcl").write_text(f"source -encoding utf-8 {tmp_path}/module.tcl\n")
    assert run([tclsh(), str(tmp_path / "run.tcl")]) == "end\n"


def test_cmake_gets_every_text_unchanged(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("there is no cmake here")
    attack = f'") execute_process(COMMAND touch {tmp_path}/canary) #'
    texts = [*HOSTILE, attack, "$ENV{HOME} $CACHE{X} \\${HOME} @HOME@ @a@b@", "$ORIGIN/../.."]
    texts = [text for text in texts if "\r" not in text]  # CMake itself drops a carriage return
    lines = [
        f'set(HOME bad)\nset(X "{quoting.quote_cmake(text)}")\nfile(WRITE {tmp_path}/{index} "${{X}}")\n'
        for index, text in enumerate(texts)
    ]
    (tmp_path / "x.cmake").write_text("".join(lines), encoding="utf-8")
    run([cmake, "-P", str(tmp_path / "x.cmake")])
    assert [(tmp_path / str(index)).read_text(encoding="utf-8") for index in range(len(texts))] == texts
    assert not (tmp_path / "canary").exists()


def test_the_linker_gets_a_name_or_none(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc here")
    folder = tmp_path / "a b;$(id) 'x' # )"
    folder.mkdir()
    (tmp_path / "x.c").write_text("int x(void) { return 1; }\n")
    run([compiler, "-shared", "-fPIC", str(tmp_path / "x.c"), "-o", str(folder / "libx.so.1")])
    (tmp_path / "libx.so").write_text(f"INPUT({quoting.quote_linker(str(folder / 'libx.so.1'))})\n")
    (tmp_path / "main.c").write_text("int x(void); int main(void) { return x(); }\n")
    run([compiler, str(tmp_path / "main.c"), f"-L{tmp_path}", "-lx", "-o", str(tmp_path / "main")])
    for name in ('/a" "/b', "/a\n"):
        with pytest.raises(ConfigError, match="cannot be linked"):
            quoting.quote_linker(name)


def test_json_is_ascii_and_no_line_of_it_ends_a_here_document() -> None:
    value = {text: [text, "PROVISION_PLAN", "\u2028"] for text in HOSTILE}
    text = quoting.quote_json(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert "PROVISION_PLAN" not in text.splitlines()


def test_a_format_of_printf_prints_the_text() -> None:
    for text in HOSTILE:
        done = subprocess.run(
            ["bash", "-c", f"printf {quoting.quote_sh(quoting.printf_format(text))}"], capture_output=True, check=True
        )
        assert done.stdout.decode() == text


def test_only_code_is_joined_to_code() -> None:
    assert type(Code(" ").join([Code("a"), Code("b")])) is Code
    with pytest.raises(TypeError, match="'b c' is not code"):
        Code(" ").join([Code("a"), "b c"])
