"""Tracebacks in the forms of Rich, Colab, PyTorch's workers and TensorFlow's functions, and what they say about a program."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Finding
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
    "Colab": (
        COLAB,
        "`<ipython-input-11-06e85c7e5c31>`, line 10 calls `boxes`, which refuses what it got: `KeyError: 'x'`",
    ),
    "a worker": (WORKER, "an error in your program: `/home/u/lib/core/data.py`, line 44: `KeyError: 'label'`"),
    "a compiled function": (
        COMPILED,
        "`/home/u/model.py`, line 12 calls `keras`, which refuses what it got: `ValueError: the flux",
    ),
    "a progress bar": (BAR, "an error in your program: `/home/u/bin/train.py`, line 145: `ZeroDivisionError"),
    "a quotation": (QUOTED, "an error in your program: `/home/u/bin/train.py`, line 145: `ZeroDivisionError"),
}


@for_each("form", FORMS)
def test_a_traceback_of_each_form_is_read(form: str) -> None:
    text, cause = FORMS[form]
    assert cause in named(text).cause


def test_a_traceback_of_a_compiled_function_may_end_before_its_message() -> None:
    cut = named("".join(COMPILED.splitlines(keepends=True)[:-2]))
    assert "calls `keras`, which refuses what it got: `ValueError: in user code:`" in cut.cause


def test_a_cut_traceback_of_a_worker_has_the_exception_that_was_repeated() -> None:
    cut = named("".join(WORKER.splitlines(keepends=True)[:-2]))
    assert "Caught KeyError in DataLoader worker process 0." in cut.cause


@for_each(
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


def test_an_operation_of_tensorflow_that_refuses_its_input_is_an_error_of_the_program() -> None:
    text = """\
Traceback (most recent call last):
  File "train.py", line 78, in <module>
    sess.run(step)
  File "/env/lib/python3.6/site-packages/tensorflow/python/client/session.py", line 1394, in _do_call
    raise type(e)(node_def, op, message)
tensorflow.python.framework.errors_impl.InvalidArgumentError: the flux is inverted
"""
    assert "an error in your program: `train.py`, line 78 calls `tensorflow`" in named(text).cause
    summary = text.replace(
        "the flux is inverted", "2 root error(s) found.\n  (0) Invalid argument: the flux is inverted"
    )
    found = named(summary)
    assert found.failure.id == "tensorflow-reports" and found.cause.endswith("says: the flux is inverted")


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
    "IndexError: Target 10 is out of bounds.": "index-out-of-range",
    "TypeError: add got incompatible shapes for broadcasting: (3,), (4,).": "shapes-incompatible",
    "RuntimeError: Trying to backward through the graph a second time": "no-gradients",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn": "no-gradients",
    "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'": "dtype-mismatch",
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.": "gpu-not-seen",
    "  (1) INTERNAL: the flux is inverted": "tensorflow-reports",
    "InvalidArgumentError: {{function_node __wrapped__X}} the flux is inverted": "tensorflow-reports",
    "ValueError: Attempt to reuse RNNCell <GRUCell object> with a different variable scope": "graph-or-session",
    "CustomCall failed: jaxlib/cusolver_kernels.cc:44: operation cusolverDnCreate(&handle) failed: ": "cublas-failed",
    "RuntimeError: cuda runtime error (8) : invalid device function at /opt/x.cu:102": "no-kernel-image",
    "RuntimeError: CUDA error: peer access is not supported between these two devices": "nccl-ipc",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized": "gpu-fabric-manager",
    "F tensorflow/stream_executor/cuda/cuda_dnn.cc:194] Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)": "cudnn-other",
    "OOM when allocating tensor with shape[64] on /job:localhost/device:CPU:0 by allocator cpu": "out-of-memory",
    "RuntimeError: operator torchvision::nms does not exist": "torch-parts-differ",
    "TypeError: Unable to convert function return value to a Python type! The signature was": "numpy-abi",
    "RuntimeError: received 0 items of ancdata": "too-many-open-files",
    "KeyError: 'MASTER_ADDR'": "torch-distributed-not-started",
    "ImportError: gymnasium is not installed, run `pip install gymnasium`": "package-asked-for",
    "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.": "loss-is-nan",
    "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.": "worker-process-died",
    "F tensorflow/core/kernels/conv_ops.cc:659] Check failed: stream->parent()->GetConvolveAlgorithms(": "cudnn-not-initialised",
    "2020-01-01 10:00:00.1: F external/local_xla/xla/x.cc:1] the flux is inverted": "tensorflow-fatal",
    "AssertionError: train: No labels found in /d/labels.cache, can not start training. See": "data-ran-out",
    "TypeError: 'float' object is not iterable": "error-in-program",
}


@for_each("line", FAMILIES)
def test_the_family_of_a_message_is_known(line: str) -> None:
    assert explain([f"{line}\n".encode()], known_failures()).findings[0].failure.id == FAMILIES[line]


DECOYS = {
    "a download that works": "Please run pip install --upgrade pip to update\nrequirements: pip install -r requirements.txt\n",
    "a quoted answer": "> all is well\n> step 1\n",
    "a display that is there": "Using display :0\nheadless mode on\n",
    "a GPU that is fine": "CUDA error checking is on\nblock: [1,0,0], thread: [0,0,0] done\n",
    "a script of the site": "/etc/slurm/prolog.d/gpustats.sh: line 5: /run/gpustat/0: Permission denied\nstep 1\n",
    "a worker of a data loader": "worker 3 of 8 started\nCell 3: 12 seconds\nconfiguration: overrides none\n",
    "an option": "nltk_data is in /data/nltk_data\n--master_port MASTER_PORT\n",
}


@for_each("name", DECOYS)
def test_words_of_these_entries_accuse_no_healthy_log(name: str) -> None:
    found = explain([DECOYS[name].encode()], known_failures())
    assert found.verdict == "healthy", found.findings


def unpickling(raised: str) -> str:
    """A traceback of `torch.load`, which reads an object that a program saved."""
    return f"""\
Traceback (most recent call last):
  File "predict.py", line 3, in <module>
    m = torch.load("m.pt")
  File "/env/lib/python3.8/site-packages/torch/serialization.py", line 851, in _load
    result = unpickler.load()
{raised}
"""


@pytest.mark.parametrize(
    "raised",
    [
        "ModuleNotFoundError: No module named 'boxes.storage'",
        "AttributeError: Can't get attribute 'Net' on <module '__main__' from 'predict.py'>",
    ],
)
def test_a_saved_object_whose_class_is_not_there_is_no_missing_package(raised: str) -> None:
    known = named(unpickling(raised))
    assert known.failure.id == "saved-by-another-version" and raised in known.cause
    assert named(unpickling("ImportError: libc10.so: cannot open shared object file")).failure.id != known.failure.id


def test_the_place_that_asked_for_an_attribute_is_named_not_the_one_that_refused() -> None:
    text = unpickling("AttributeError: 'GCNConv' object has no attribute 'weight'")
    text = text.replace("torch/serialization.py", "torch/nn/modules/module.py").replace("in _load", "in __getattr__")
    assert "than it was written for: `predict.py`, line 3: `AttributeError" in named(text).cause
    reraised = CALLED_BY_SIX.replace("{error}", "ValueError: the flux is inverted")
    assert "`train.py`, line 4 calls `boxes`" in named(reraised).cause


CALLED_BY_SIX = """\
Traceback (most recent call last):
  File "train.py", line 4, in <module>
    boxes.get()
  File "/env/lib/python3.8/site-packages/boxes/core.py", line 8, in get
    six.raise_from(error, e)
  File "<string>", line 3, in raise_from
{error}
"""


OLD_WORKER = """\
Traceback (most recent call last):
  File "train.py", line 47, in <module>
    for x in loader:
  File "/env/lib/python3.5/site-packages/torch/utils/data/dataloader.py", line 301, in _process_next_batch
    raise batch.exc_type(batch.exc_msg)
IndexError: Traceback (most recent call last):
  File "/env/lib/python3.5/site-packages/torch/utils/data/dataloader.py", line 55, in _worker_loop
    samples = collate_fn([dataset[i] for i in batch_indices])
  File "/home/u/data.py", line 44, in __getitem__
    return self.rows[index]
IndexError: list index out of range
"""


def test_a_worker_of_an_old_pytorch_prints_its_traceback_behind_the_exception() -> None:
    assert "an error in your program: `/home/u/data.py`, line 44: `IndexError: list index" in named(OLD_WORKER).cause
    cut = "".join(OLD_WORKER.splitlines(keepends=True)[:-2])
    assert "Caught IndexError in a worker process" in named(cut + "  F\n").cause


def test_a_log_that_ends_within_a_traceback_names_the_place() -> None:
    cut = explain(["".join(BAR.splitlines(keepends=True)[:-1]).encode()], known_failures())
    assert cut.verdict == "unknown", "the place is not the cause"
    assert cut.findings[0].failure.id == "traceback-cut"
    assert "`/home/u/bin/train.py`, line 145" in cut.findings[0].cause
    library = explain(["".join(OLD_WORKER.splitlines(keepends=True)[:5]).encode()], known_failures())
    assert "line 47, which calls `torch`, but the log ends" in library.findings[0].cause


def test_a_notebook_whose_message_is_missing_names_what_failed() -> None:
    cut = """\
> AttributeError                            Traceback (most recent call last)
> ----> 1 import boxes
>
> /home/u/lib/python3.5/site-packages/boxes/__init__.py in <module>()
> ----> 3 from . import lids
"""
    assert named(cut).cause == "`boxes` fails while it is imported: `AttributeError`"
    loading = cut.replace("AttributeError", "OSError       ").replace("boxes/__init__", "tensorflow_hub/module_v2")
    assert named(loading.replace("<module>()", "load(handle, tags)")).failure.id == "saved-model-unreadable"


def test_a_quoted_traceback_is_read_and_a_dropped_file_name_is_replaced() -> None:
    quoted = "".join(f"> {line}\n" for line in BAR.replace("/home/u/bin/train.py", "").splitlines()[1:])
    assert "an error in your program: `<stdin>`, line 145: `ZeroDivisionError" in named(quoted).cause


def test_a_folder_without_git_is_not_why_a_program_failed() -> None:
    git = "fatal: not a git repository (or any of the parent directories): .git\n"
    assert "division by zero" in named(git + BAR).cause


def unreadable(code: str, says: str = "invalid syntax", file: str = "/home/u/shapes.py", runs: str = "") -> Finding:
    """What a log shows in which Python cannot read a file."""
    starts = f'  File "/env/lib/{runs}/importlib/__init__.py", line 9, in f\n    import shapes\n' if runs else ""
    text = (
        f'Traceback (most recent call last):\n{starts}  File "{file}", line 8\n    {code}\n    ^\nSyntaxError: {says}\n'
    )
    return named(text)


OTHER_PYTHON = {
    "print(f'{x} m')": "Python 3.6 or newer",
    "while (n := read()):": "Python 3.8 or newer",
    "match shape:": "Python 3.10 or newer",
    "size: int = 3": "Python 3.6 or newer",
    "async def f():": "Python 3.5 or newer",
    "def f(path: str) -> str:": "Python 3 or newer",
    "print('x', file=sys.stderr)": "Python 3 or newer",
    "a = f'{d['k']} m'": "Python 3.12 or newer",
    "except ValueError, e:": "Python 2",
    "raise ValueError, 'x'": "Python 2",
    "print 'x'": "Python 2",
    "if a <> b:": "Python 2",
    "pool.run(async=True)": "Python 3.6 or older",
}


@for_each("code", OTHER_PYTHON)
def test_a_line_that_another_python_understands_is_no_mistake(code: str) -> None:
    known = unreadable(code)
    assert (known.failure.id, known.sureness) == ("other-python", "likely")
    assert f"`/home/u/shapes.py`, line 8 is written for {OTHER_PYTHON[code]}, and" in known.cause


def test_the_python_that_runs_makes_it_sure() -> None:
    old = unreadable("print(f'{x} m')", runs="python3.5")
    assert old.sureness == "sure" and "Python 3.6 or newer, and Python 3.5 reads it" in old.cause
    new = unreadable("print(f'{x} m' y)", runs="python3.9")
    assert new.failure.id == "error-in-program" and "another version of Python: `python --version`" in new.hint
    assert unreadable("print 'x'", runs="python2.7").failure.id == "error-in-program"


@pytest.mark.parametrize("code", ["else: stop", "x = d['a': 3", "a = b ? c : d", "match = find(a)", "f(a b)"])
def test_a_line_that_no_python_understands_is_an_error_of_the_program(code: str) -> None:
    assert unreadable(code).failure.id == "error-in-program"


def test_a_package_that_python_cannot_read_is_no_error_of_the_program() -> None:
    known = unreadable("x = a b", file="/env/lib/python3.9/site-packages/boxes/core.py")
    assert not known.failure.program and "versions that `boxes` supports" in known.hint
    built = unreadable("def f(a: str):", file="/tmp/pip-build-eEf/boxes/setup.py")
    assert built.failure.id == "package-of-other-python" and "an older release of the package" in built.hint


def test_a_file_that_python_2_pickled_is_no_question_of_the_locale() -> None:
    text = BAR.replace(
        "ZeroDivisionError: division by zero", "UnicodeDecodeError: 'ascii' codec can't decode byte 0x8b"
    )
    assert named(text).failure.id == "unicode-locale"
    lines = text.splitlines()
    pickled = "\n".join([*lines[:-2], "    data = pickle.load(f)", lines[-1]])
    assert named(pickled).failure.id == "saved-by-another-version"


def test_an_entry_about_the_program_names_the_place() -> None:
    text = BAR.replace("ZeroDivisionError: division by zero", "IndexError: Target 10 is out of bounds.")
    assert named(text).cause.endswith("(at `/home/u/bin/train.py`, line 145)")


FOR_BUILD = """\
    File "/tmp/pip-build-env-x1/overlay/lib/python3.12/site-packages/setuptools/build_meta.py", line 313, in run_setup
      exec(code, locals())
    File "<string>", line 23, in <module>
  ModuleNotFoundError: No module named 'torch'
"""


def test_a_package_that_a_build_lacks_may_be_installed() -> None:
    found = named(FOR_BUILD)
    assert found.cause.startswith("a package needs `torch` while pip builds it")
    assert "--no-build-isolation" in found.hint


CUT_CHAIN = """\
FluxError                                 Traceback (most recent call last)
File /env/lib/python3.10/site-packages/flurble/retry.py:592, in increment(pool)
    591 if not pool:
--> 592     raise FluxError(pool)

FluxError: the flux of 3 pools is not there

During handling of the above exception, another exception occurred:

ConnectionError                           Traceback (most recent call last)
File /env/lib/python3.10/site-packages/flurble/hub.py:12, in get(url)
     11 try:
---> 12     metadata = ask(url)
"""


def test_if_the_last_exception_is_cut_the_one_before_it_is_named() -> None:
    known = explain([CUT_CHAIN.encode()], known_failures()).known
    assert known is not None and "the flux of 3 pools is not there" in known.cause


def test_the_message_of_an_exception_may_be_in_the_lines_below() -> None:
    text = "flurble.errors.FluxException:\n        You asked for devices: [0, 1]\n        But the node has: [0]\n\n"
    known = explain([text.encode()], known_failures()).known
    assert known is not None and "You asked for devices: [0, 1] But the node has: [0]" in known.cause


LAYER = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model = load_model("flux.h5")
  File "/env/lib/python3.9/site-packages/keras/layers/core/lambda_layer.py", line 184, in get_slice
    return self.function(inputs)
NameError: Exception encountered when calling layer "lambda_1" (type Lambda).

name 'K' is not defined

Call arguments received:
  inputs=tf.Tensor(shape=(None, 900, 2), dtype=float32)
"""
SHOWN_BADLY = """\
ERROR:root:Internal Python error in the inspect module.
Below is the traceback from this internal error.

Traceback (most recent call last):
  File "/env/lib/python3.6/dist-packages/IPython/core/interactiveshell.py", line 2882, in run_code
    exec(code_obj, self.user_global_ns, self.user_ns)
  File "<ipython-input-22-ce52d11f71b2>", line 1, in <module>
    fit(flux_data)
NameError: name 'flux_data' is not defined

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/env/lib/python3.6/dist-packages/IPython/core/interactiveshell.py", line 1823, in showtraceback
    stb = value._render_traceback_()
AttributeError: 'NameError' object has no attribute '_render_traceback_'
"""
HDF5 = """\
Traceback (most recent call last):
  File "read.py", line 3, in <module>
    f = tables.open_file("flux.h5", "a")
tables.exceptions.HDF5ExtError: HDF5 error back trace

  File "H5F.c", line 509, in H5Fopen
    unable to open file
  File "H5FDsec2.c", line 959, in H5FD_sec2_lock
    unable to lock file, errno = 35, error message = 'Resource temporarily unavailable'

End of HDF5 error back trace
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAYER, "name 'K' is not defined"),
        (SHOWN_BADLY, "name 'flux_data' is not defined"),
        (HDF5, "the HDF5 file is open already"),
    ],
    ids=["a layer of Keras", "a notebook that cannot show it", "the places of HDF5"],
)
def test_what_happened_is_named_and_not_who_reports_it(text: str, says: str) -> None:
    known = explain([text.encode()], known_failures()).known
    assert known is not None and says in known.cause


def test_a_package_that_cmake_only_warns_of_is_not_the_cause() -> None:
    text = """\
CMake Error at CMakeLists.txt:35 (file):
  file failed to open for reading (No such file or directory):

    /home/ada/flux/Macros.h


CMake Warning at CMakeLists.txt:40 (find_package):
  By not providing "Findflurble.cmake" in CMAKE_MODULE_PATH this
  project has asked CMake to find a package configuration file provided by
  "flurble", but CMake did not find one.
"""
    known = explain([text.encode()], known_failures()).known
    assert known is not None and "Macros.h" in known.cause


CALLED = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    y = model(x)
  File "/env/lib/python3.9/site-packages/keras/engine/base.py", line 184, in call
    return self.function(inputs)
ValueError: Exception encountered when calling layer "dense_1" (type Dense).
"""


def test_the_text_of_an_exception_of_a_layer_is_in_a_line_without_any_word_of_errors() -> None:
    known = explain([f"{CALLED}\nDimensions of slice 3 are 5 and 7\n\ndone".encode()], known_failures()).known
    assert known is not None and "Dimensions of slice 3" in known.cause


def test_the_arguments_of_a_layer_are_not_the_text_of_its_exception() -> None:
    text = f"{CALLED}\nCall arguments received:\n  inputs=tf.Tensor(shape=(None, 900, 2), dtype=float32)\n"
    known = explain([text.encode()], known_failures()).known
    assert known is not None and "Call arguments" not in known.cause and "inputs=" not in known.cause


def test_an_exception_that_is_excused_before_its_text_comes_is_forgotten() -> None:
    lines = [f"[1,0]<stderr>:{line}" for line in CALLED.splitlines()]
    lines += ["[1,1]<stderr>:the above error can be ignored", "[1,0]<stderr>:", "[1,0]<stderr>:Input 0 has no shape"]
    assert explain(["\n".join((*lines, "")).encode()], known_failures()).verdict == "healthy"


def test_another_traceback_below_the_one_that_a_notebook_could_not_show_is_not_its_consequence() -> None:
    other = 'Traceback (most recent call last):\n  File "plot.py", line 3, in <module>\n    x = 1 / 0\n'
    text = f"{SHOWN_BADLY}\n{other}ZeroDivisionError: division by zero\n"
    explanation = explain([text.encode()], known_failures())
    causes = " ".join(found.cause for found in explanation.findings)
    assert "flux_data" in causes and "ZeroDivisionError" in causes
