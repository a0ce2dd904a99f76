"""Locks: every package is pinned and hashed, the header names the input, and shipped locks match their stacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_files import Words
from parts.loops import for_each
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import shipped_root
from provision.model.lock import Lock, check_lock, lock_header, parse_lock, without_markers

INPUT = "numpy\nhorovod==0.28.1\n"
ONE, TWO = "1" * 64, "2" * 64
LOCK = f"""\
# Written by `provision lock` for Python 3.11 from it.in; edit that, not this.
{lock_header(INPUT)}
Horo_vod[tensorflow]==0.28.1 \\
    --hash=sha256:{ONE}

# a remark
numpy==1.26.4 ; python_version >= "3.9" \\
    --hash=sha256:{ONE} \\
    --hash=sha256:{TWO}
"""
REQUIREMENTS = Path(shipped_root()) / "requirements"


def lock(text: str = LOCK) -> Lock:
    """The lock in `text`."""
    return parse_lock(text, "/site/it-py311.txt")


def test_a_lock_may_name_another_index_for_its_installer() -> None:
    index = "--extra-index-url https://download.pytorch.org/whl/cpu\n"
    read = lock(LOCK.replace("numpy==", f"{index}numpy==", 1))
    assert read.pins == lock().pins
    assert read.without("numpy").startswith(index)
    for other in ("--index-url https://x/simple", "--extra-index-url https://ada:secret@x/simple", "--no-deps"):
        with pytest.raises(ConfigError):
            lock(f"{LOCK}{other}\n")


def test_a_lock_is_parsed_with_versions_and_hashes() -> None:
    read = lock()
    assert [(pin.name, pin.version) for pin in read.pins] == [("horo-vod", "0.28.1"), ("numpy", "1.26.4")]
    assert read.pins[1].hashes == (f"sha256:{ONE}", f"sha256:{TWO}")
    assert {read.pin(name) for name in ("horo-vod", "Horo.Vod", "horo__vod")} == {read.pins[0]}
    assert read.pin("horovod") is None
    assert read.sha256 != lock(LOCK + "# more\n").sha256
    check_lock(read, INPUT, "/site/it.in")


def test_without_removes_one_package_and_keeps_the_others() -> None:
    rest = lock().without("HORO-VOD")
    assert rest == f'numpy==1.26.4 ; python_version >= "3.9" \\\n    --hash=sha256:{ONE} \\\n    --hash=sha256:{TWO}\n'
    assert [pin.name for pin in lock(f"{lock_header(INPUT)}\n{rest}").pins] == ["numpy"]
    assert lock().without("six") == "".join(pin.text for pin in lock().pins)


def test_a_marker_of_the_input_is_left_out_because_the_lock_is_for_one_python() -> None:
    assert without_markers(LOCK) == LOCK.replace(' ; python_version >= "3.9"', "")
    assert without_markers('pip==21.3.1; python_version < "3.7"\n') == "pip==21.3.1\n"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("six", "not a pinned package: six"),
        ("six>=1.17", "not a pinned package: six>=1.17"),
        (f"six~=1.17 \\\n    --hash=sha256:{ONE}", "not a pinned package: six~=1.17"),
        (f"six==1.* --hash=sha256:{ONE}", "not a pinned package: six==1.*"),
        (f"six @ https://example.org/six.whl --hash=sha256:{ONE}", "not a pinned package: six @"),
        ("-e .", "not a pinned package: -e ."),
        ("--index-url https://example.org/", "not a pinned package: --index-url"),
        ("six==1.17.0", "no hash: six==1.17.0"),
        ("six==1.17.0 \\\n    --hash=sha256:1234", "no hash: six==1.17.0"),
        (f"six==1.17.0 --hash=md5:{'1' * 32}", "no hash: six==1.17.0"),
    ],
)
def test_a_line_that_is_not_pinned_and_hashed_is_refused(line: str, fault: str) -> None:
    """All of them at once."""
    with pytest.raises(ConfigError, match="is not a lock") as caught:
        lock(f"{LOCK}{line}\nwheel==1\n")
    first, second = caught.value.evidence
    assert first.startswith(fault) and second.startswith("no hash: wheel")
    assert "provision lock" in str(caught.value.hint)


@pytest.mark.parametrize(
    "text", ["", lock_header("") + "\n", LOCK.replace("# input", "# Input"), LOCK.replace("sha256: ", "sha256: x")]
)
def test_a_lock_that_does_not_name_its_input_or_pins_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"it-py311\.txt"):
        lock(text)


@pytest.mark.parametrize("edited", [INPUT + "six\n", INPUT.replace("0.28.1", "0.28.2"), INPUT + "\n", ""])
def test_a_lock_is_refused_if_its_input_was_edited(edited: str) -> None:
    with pytest.raises(ConfigError, match=r"`/site/it\.in`") as caught:
        check_lock(lock(), edited, "/site/it.in")
    assert "provision lock" in str(caught.value.hint)


def test_a_missing_lock_is_refused_with_its_expected_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "own.in").write_text("six\n")
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    for name, named in (("own", f"{tmp_path}/requirements/own-py311.txt"), ("nosuch", "`requirements/nosuch.in`")):
        with pytest.raises(ConfigError) as caught:
            shipped.load_lock(name, "3.11")
        said = "\n".join(caught.value.to_lines())
        assert named in said
        words("lock", said)


@for_each("path", sorted(REQUIREMENTS.glob("*.txt")), ids=lambda path: path.name)
def test_every_shipped_lock_is_valid_and_matches_its_input(path: Path) -> None:
    source = path.with_name(path.stem.rsplit("-py", 1)[0] + ".in")
    text = path.read_text()
    check_lock(parse_lock(text, str(path)), source.read_text(), str(source))
    assert without_markers(text) == text, "the pip of another Python would leave packages out of the wheelhouse"


# The wheels are on an index of PyTorch: a site compiles the locks.
WITHOUT_LOCKS = ("pytorch-2.14.1-cpu",)


@for_each("name", [name for name in shipped.known("stacks") if name not in WITHOUT_LOCKS])
def test_the_locks_of_a_shipped_stack_pin_its_versions(name: str) -> None:
    stack = shipped.load_stack(name)
    for minor in stack.pythons:
        locked = shipped.load_lock(name, minor)
        named = [(stack.framework.package, stack.framework.version)]
        named += [("horovod", stack.horovod)] if stack.horovod else []
        assert stack.horovod or not {pin.name for pin in locked.pins} & {"horovod", "cmake", "ninja"}
        for package, version in named:
            pin = locked.pin(package)
            assert pin is not None, f"{locked.path} does not pin {package}"
            assert pin.version == version
        shipped.load_lock("build", minor)
