"""Tracebacks in the forms of Rich, Colab, PyTorch's workers and TensorFlow's functions, and what they say about a program."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.findings import Finding
from provision.knowledge.failures.log_reader import explain
from provision.machine.tables import known_failures


def named(text: str) -> Finding:
    """The cause that a log shows."""
    known = explain([text.encode()], known_failures()).known
    assert known is not None, text
    return known


RICH = """\
╭─────────────────────── Traceback (most recent call last) ────────────────────────╮
│ /home/u/train.py:53 in <module>                                                  │
│                                                                                  │
│   50                                                                             │
│ ❱ 53 │   main()                                                                  │
│                                                                                  │
│ /home/u/envs/a/lib/py                                                            │
│ thon3.9/site-packages/rich_text/panel.py:12 in show                              │
│ ❱ 12 │   raise Panel("a")                                                        │
╰──────────────────────────────────────────────────────────────────────────────────╯
PanelError: the flux is inverted
"""
COLAB = """\
KeyError                                  Traceback (most recent call last)
[<ipython-input-11-06e85c7e5c31>](https://localhost:8080/#) in <cell line: 0>()
      9 b = a[:3]
---> 10 c = a["x"]

[/usr/local/lib/python3.11/dist-packages/boxes/core.py](https://localhost:8080/#) in get(self, name)
--> 303     return self.kept[name]

KeyError: 'x'
"""
WORKER = """\
Traceback (most recent call last):
  File "train.py", line 135, in <module>
    for x in loader:
  File "/env/lib/python3.9/site-packages/torch/_utils.py", line 369, in reraise
    raise self.exc_type(msg)
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/env/lib/python3.9/site-packages/torch/utils/data/_utils/worker.py", line 178, in _worker_loop
    data = fetcher.fetch(index)
  File "/home/u/lib/core/data.py", line 44, in __getitem__
    return self.rows[index]["label"]
KeyError: 'label'
"""
COMPILED = """\
Traceback (most recent call last):
  File "train.py", line 60, in <module>
    model.fit(x, y)
  File "/env/lib/python3.9/site-packages/keras/engine/training.py", line 853, in train_function
    raise e.ag_error_metadata.to_exception(e)
ValueError: in user code:

    /home/u/model.py:12 call  *
        return self.flux(x)
    /env/lib/python3.9/site-packages/keras/layers/flux.py:9 flux  **
        raise ValueError("x")

    ValueError: the flux is inverted
"""
BAR = """\
  0%|          | 0/3567 [00:00<?, ?it/s]Traceback (most recent call last):
  File "/home/u/bin/train.py", line 145, in <module>
    run(config)
ZeroDivisionError: division by zero
"""
QUOTED = BAR.replace("  0%|          | 0/3567 [00:00<?, ?it/s]", "> ")
FORMS = {
    "Rich": (
        RICH,
        "your program calls `rich_text` at `/home/u/train.py`, line 53, which stopped it, and says: `PanelError: the",
    ),
    "Colab": (COLAB, "`<ipython-input-11-06e85c7e5c31>` calls `boxes`, which refuses what it got: `KeyError: 'x'`"),
    "a worker": (WORKER, "an error in your program: `/home/u/lib/core/data.py`, line 44: `KeyError: 'label'`"),
    "a compiled function": (
        COMPILED,
        "`/home/u/model.py`, line 12 calls `keras`, which refuses what it got: `ValueError: the flux",
    ),
    "a progress bar": (BAR, "an error in your program: `/home/u/bin/train.py`, line 145: `ZeroDivisionError"),
    "a quotation": (QUOTED, "an error in your program: `/home/u/bin/train.py`, line 145: `ZeroDivisionError"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_traceback_of_each_form_is_read(form: str) -> None:
    text, cause = FORMS[form]
    assert cause in named(text).cause


def test_a_traceback_of_a_compiled_function_may_end_before_its_message() -> None:
    cut = named("".join(COMPILED.splitlines(keepends=True)[:-2]))
    assert "calls `keras`, which refuses what it got: `ValueError: in user code:`" in cut.cause


def test_a_cut_traceback_of_a_worker_has_the_exception_that_was_repeated() -> None:
    cut = named("".join(WORKER.splitlines(keepends=True)[:-2]))
    assert "Caught KeyError in DataLoader worker process 0." in cut.cause


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/home/u/lib/core/data.py", True),
        ("F:\\work\\lib\\core\\data.py", True),
        ("/opt/a/bin/train.py", True),
        ("/opt/a/bin/train", False),
        ("C:\\Python39\\lib\\argparse.py", False),
        ("/home/u/keras/keras/models.py", False),
    ],
)
def test_a_library_is_known_by_its_folder(file: str, own: bool) -> None:
    text = f"""\
Traceback (most recent call last):
  File "train.py", line 1, in run
    f()
  File "{file}", line 7, in f
    g()
ValueError: the flux is inverted
"""
    assert ("line 7" in named(text).cause) is own


def test_a_saved_model_that_a_library_cannot_read_is_named_whatever_it_raises() -> None:
    text = """\
Traceback (most recent call last):
  File "predict.py", line 3, in <module>
    m = load_model("m.h5")
  File "/env/lib/python3.8/site-packages/keras/src/legacy/saving/legacy_h5_format.py", line 156, in load_model_from_hdf5
    compile_args(config)
  File "/env/lib/python3.8/site-packages/keras/src/losses/loss.py", line 9, in get
    return config["a"]
TypeError: string indices must be integers
"""
    found = named(text)
    assert found.failure.id == "saved-model-unreadable" and "`keras`: `TypeError: string indices" in found.cause
    saving = named(text.replace("in load_model_from_hdf5", "in save_model_to_hdf5"))
    assert saving.failure.id == "error-in-program"
    full = named(
        text.replace("TypeError: string indices must be integers", "OSError: [Errno 28] No space left on device")
    )
    assert full.failure.id == "disk-full"


def test_a_value_that_is_none_gets_a_hint_of_its_own() -> None:
    text = BAR.replace("ZeroDivisionError: division by zero", "TypeError: 'NoneType' object is not subscriptable")
    assert "a value is None there" in named(text).hint


@pytest.mark.parametrize("name", ["CalledProcessError: Command 'x' returned non-zero exit status 1.", "SystemExit: 2"])
def test_an_exception_that_only_follows_from_another_is_not_quoted_as_a_cause(name: str) -> None:
    text = f"""\
Traceback (most recent call last):
  File "run.py", line 3, in <module>
    call()
  File "/usr/lib/python3.9/subprocess.py", line 373, in check_call
    raise CalledProcessError(retcode, cmd)
{name}
"""
    known = explain([text.encode()], known_failures()).known
    assert known is None or known.failure.id != "library-stopped"


def test_a_package_that_was_installed_in_the_end_failed_nowhere() -> None:
    text = RICH.replace("│ /home/u/train.py:53 in <module>  ", "│ /env/lib/python3.9/site-packages/a/b.py:5 in c")
    assert explain([f"{text}Successfully installed a-1\n".encode()], known_failures()).verdict == "healthy"


FAMILIES = {
    "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)": "shapes-incompatible",
    "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7]": "shapes-incompatible",
    "RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0": "shapes-incompatible",
    "IndexError: Target 10 is out of bounds.": "shapes-incompatible",
    "TypeError: add got incompatible shapes for broadcasting: (3,), (4,).": "shapes-incompatible",
    "RuntimeError: Trying to backward through the graph a second time": "no-gradients",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn": "no-gradients",
    "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'": "dtype-mismatch",
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.": "gpu-not-seen",
    "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded": "saved-weights",
    "jaxlib is version 0.4.7, but this version of jax requires version >= 0.4.14.": "jax-versions",
    "AttributeError: 'NoneType' object has no attribute 'shape'": "image-not-read",
    "  (1) INTERNAL: the flux is inverted": "tensorflow-reports",
}


@pytest.mark.parametrize("line", FAMILIES)
def test_the_family_of_a_message_is_known(line: str) -> None:
    assert named(f"{line}\n").failure.id == FAMILIES[line]


def test_a_folder_without_git_is_not_why_a_program_failed() -> None:
    git = "fatal: not a git repository (or any of the parent directories): .git\n"
    assert "division by zero" in named(git + BAR).cause
