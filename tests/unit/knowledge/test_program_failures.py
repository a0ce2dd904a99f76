"""Failures of programs that people train with: versions of Python, indices, saved models, in the words of their libraries."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

FAMILIES = {
    # Python
    "ImportError: cannot import name 'Literal' from 'typing' (/usr/lib64/python3.6/typing.py)": "python-too-old",
    "ImportError: cannot import name 'cached_property' from 'functools' (/usr/lib/python3.7/functools.py)": "python-too-old",
    "ModuleNotFoundError: No module named 'dataclasses'": "python-too-old",
    "AttributeError: 'str' object has no attribute 'removeprefix'": "python-too-old",
    "TypeError: __init__() got an unexpected keyword argument 'capture_output'": "python-too-old",
    "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'": "python-too-old",
    "NameError: name 'FileNotFoundError' is not defined": "python-too-old",
    "TypeError: super() takes at least 1 argument (0 given)": "python-too-old",
    "ImportError: cannot import name 'Mapping' from 'collections' (/lib/python3.10/collections/__init__.py)": "python-too-new",
    "AttributeError: module 'collections' has no attribute 'Iterable'": "python-too-new",
    "AttributeError: module 'time' has no attribute 'clock'": "python-too-new",
    "ModuleNotFoundError: No module named 'imghdr'": "python-too-new",
    "AttributeError: 'Thread' object has no attribute 'isAlive'": "python-too-new",
    "AttributeError: 'generator' object has no attribute 'next'": "python-2-code",
    "TypeError: object of type 'map' has no len()": "python-2-code",
    "NameError: name 'long' is not defined": "python-2-code",
    "IndexError: only integers, slices (`:`), ellipsis (`...`) are valid indices": "number-not-whole",
    # Packages that do not fit the program
    "ModuleNotFoundError: No module named 'torchvision.models.utils'": "submodule-missing",
    "ImportError: cannot import name 'iou3d_nms' from 'pcdet.ops' (unknown location)": "extension-not-built",
    "ModuleNotFoundError: No module named 'pointops_cuda'": "extension-not-built",
    "RuntimeError: module compiled against API version 0xa but this version of numpy is 0x9": "numpy-older-than-build",
    "UserWarning: RTX 3090 with CUDA capability sm_86 is not compatible with the current PyTorch installation.": (
        "gpu-not-supported-warning"
    ),
    "ValueError: GpuDnnConv images and kernel must have the same stack size": "shapes-incompatible",
    "RuntimeError: No such operator video_reader::probe_video_from_memory": "torch-parts-differ",
    "ModuleNotFoundError: No module named 'models'": "own-folder-not-found",
    "ModuleNotFoundError: No module named 'utils.general'": "own-folder-not-found",
    "TypeError: <tf.Tensor 'x:0'> is out of scope and cannot be used here. Use return values": "tensor-of-another-graph",
    # Memory
    "torch.OutOfMemoryError: Caught OutOfMemoryError in replica 0 on device 0.": "gpu-out-of-memory",
    # Data
    "`Trainer.fit` stopped: No training batches.": "data-ran-out",
    "decord._ffi.base.DECORDError: [17:31:57] /io/x.cc:90: Check failed: st_nb >= 0 (-1 vs. 0) ERROR": "data-file-damaged",
    "ValueError: Cannot load file containing pickled data when allow_pickle=False": "data-file-damaged",
    # Numbers of CUDA's errors
    "F tensorflow/core/x/gpu_device.cc:143] Check failed: err == cudaSuccess (77 vs. 0)": "cuda-illegal-access",
    "Check failed: error == cudaSuccess (30 vs. 0)  unknown error": "cuda-cannot-start",
    "Check failed: error == cudaSuccess (2 vs. 0)  out of memory": "gpu-out-of-memory",
    "Check failed: error == cudaSuccess (35 vs. 0)": "driver-too-old",
    "Check failed: error == cudaSuccess (48 vs. 0)": "no-kernel-image",
    # Indices and shapes
    "InvalidArgumentError: indices[23,617] = -26 is not in [0, 61196)": "index-out-of-range",
    "  (0) Invalid argument: indices[0] = 42 is not in [0, 42)": "index-out-of-range",
    "IndexError: index out of range in self": "index-out-of-range",
    "RuntimeError: index 512 is out of bounds for dimension 1 with size 512": "index-out-of-range",
    # Saved models
    "OSError: SavedModel file does not exist at: m/{saved_model.pbtxt|saved_model.pb}": "saved-file-missing",
    "OSError: Unable to open file (file signature not found)": "saved-file-damaged",
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge": "saved-file-damaged",
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory": "saved-file-damaged",
    "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded": "saved-file-with-code",
    "ValueError: Object arrays cannot be loaded when allow_pickle=False": "saved-file-with-code",
    "ValueError: unsupported pickle protocol: 5": "saved-by-newer-version",
    "ValueError: No model config found in the file at <tensorflow.python.platform.gfile.GFile>": "weights-without-model",
    "RuntimeError: Error(s) in loading state_dict for Net:": "saved-weights",
    "ValueError: File format not supported: filepath=m. Keras 3 only supports V3 `.keras` files": "keras-saving",
}


@for_each("line", FAMILIES)
def test_the_family_of_a_message_is_known(line: str) -> None:
    known = explain([f"{line}\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == FAMILIES[line]


def named(text: str) -> str:
    """The cause that a log shows."""
    known = explain([text.encode()], known_failures()).known
    assert known is not None
    return known.cause


RESTORE = """\
NotFoundError: Restoring from checkpoint failed. This is most likely due to a Variable name. Original error:

{error}
"""


def test_the_original_error_says_why_a_checkpoint_was_not_restored() -> None:
    missing = named(RESTORE.replace("{error}", "./m/model.ckpt.data-00000-of-00001; No such file or directory"))
    assert missing.startswith("a file of a checkpoint is not there: `./m/model.ckpt.data-00000-of-00001`")
    assert "do not fit the model" in named(RESTORE.replace("{error}", "Key a/b not found in checkpoint"))


WORKERS = """\
Traceback (most recent call last):
  File "train.py", line 11, in <module>
    model.fit_generator(batches)
  File "/usr/lib/python3.5/site-packages/keras/utils/data_utils.py", line 702, in get
    inputs = future.get(timeout=30)
  File "/usr/lib/python3.5/multiprocessing/pool.py", line 608, in get
    raise self._value
{error}
"""


def test_an_exception_that_a_pool_passes_on_is_not_the_pools() -> None:
    known = named(WORKERS.replace("{error}", "UnboundLocalError: local variable 'img' referenced before assignment"))
    assert known.startswith(
        "an error in your program, in a worker process or thread that `train.py`, line 11 waits for"
    )
    empty = WORKERS.replace("multiprocessing/pool", "site-packages/keras/utils").replace("{error}", "StopIteration")
    assert "the generator that `train.py`, line 11 reads gives no data" in named(empty)
    local = WORKERS.replace("{error}", "AttributeError: Can't pickle local object 'f.<locals>.g'")
    assert "cannot be pickled" in named(local)


USES = """\
Traceback (most recent call last):
  File "/home/u/model.py", line 167, in on_epoch
    {code}
{error}
"""


def test_an_attribute_or_a_signature_may_be_of_another_version() -> None:
    trainer = "AttributeError: 'Trainer' object has no attribute 'accelerator_backend'"
    either = "an error in your program, or a package of another version than it was written for: `/home/u/model.py`, line 167"
    assert named(USES.format(code="self.trainer.accelerator_backend.setup()", error=trainer)).startswith(either)
    call = "TypeError: get_updates() takes exactly 3 arguments (4 given)"
    assert named(USES.format(code="optimizer.get_updates(a, b, c)", error=call)).startswith(either)
    own = "AttributeError: 'Separation' object has no attribute 'use_amp'"
    assert named(USES.format(code="if self.use_amp:", error=own)).startswith(
        "an error in your program: `/home/u/model.py`"
    )
    builtin = "AttributeError: 'list' object has no attribute 'keys'"
    assert named(USES.format(code="a.keys()", error=builtin)).startswith("an error in your program: `/home/u/model.py`")


def test_a_library_is_known_by_a_path_that_begins_with_it() -> None:
    text = USES.format(code="a + b", error="TypeError: the flux is inverted").replace(
        "/home/u/model.py", "transformers/models/wav/modeling_wav.py"
    )
    assert not named(text).startswith("an error in your program")


def test_a_check_of_the_program_is_quoted_with_what_it_needs() -> None:
    gpus = named(USES.format(code="assert n >= 2, text", error="AssertionError: require 2 GPUs, but only 1"))
    assert gpus.startswith("an error in your program or in its call: a check of the program at `/home/u/model.py`")
    bare = named(USES.format(code="assert size == dim", error="AssertionError"))
    assert bare.endswith("`AssertionError: assert size == dim`")


ARROWS = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
<ipython-input-3-1b2c> in <module>()
      4 a = {}
----> 5 print(a['x'])

KeyError: 'x'
"""


def test_the_arrow_of_a_notebook_gives_the_line() -> None:
    assert "`<ipython-input-3-1b2c>`, line 5" in named(ARROWS)


DECOYS = {
    "the types of a program": "mode: typing\ntypes: 3\nfrom collections import Mapping is deprecated since Python 3.3\n",
    "a module of the standard library": "loading cgi\npipes: 4\n",
    "numbers": "index 512 of 1024 done, labels [0, 10)\nindices[3] = 4\n",
    "a checkpoint": "Restoring parameters from a/m.ckpt-3\ncheckpoint a/m.ckpt-3 found\nIndices of labels: 3\n",
    "a warning": "DeprecationWarning: `np.load` with allow_pickle needs care\nloaded with weights_only=False\n",
}


@pytest.mark.parametrize("name", DECOYS)
def test_words_of_these_entries_accuse_no_healthy_log(name: str) -> None:
    found = explain([DECOYS[name].encode()], known_failures())
    assert found.verdict == "healthy", found.findings


LOGGING = """\
--- Logging error ---
Traceback (most recent call last):
  File "/env/lib/python3.8/logging/__init__.py", line 373, in getMessage
    msg = msg % self.args
TypeError: not all arguments converted during string formatting
Call stack:
  File "train.py", line 392, in main
    log.info("loaded", name)
Message: 'loaded'
Arguments: ('m',)
"""


def test_an_error_in_a_call_of_logging_ends_no_program() -> None:
    assert explain([LOGGING.encode()], known_failures()).verdict == "healthy"
    assert "division" in named(LOGGING + USES.format(code="a / b", error="ZeroDivisionError: division by zero"))


IMPORTS = """\
Traceback (most recent call last):
  File "run.py", line 14, in <module>
    import theano
  File "/env/lib/python3.6/site-packages/theano/__init__.py", line 88, in <module>
    from theano.configdefaults import config
  File "/env/lib/python3.6/site-packages/theano/configparser.py", line 346, in __set__
    self.val = self.filter(val)
{error}
"""


def test_a_library_that_fails_while_it_is_imported_got_nothing_from_the_program() -> None:
    assert named(IMPORTS.format(error="ValueError: the old GPU back-end")).startswith("`theano` fails while it is imp")
    called = IMPORTS.replace("__init__.py", "core.py").replace("line 88, in <module>", "line 88, in set")
    assert "`run.py`, line 14 calls `theano`, which refuses" in named(called.format(error="ValueError: 3"))
    unbound = called.format(error="UnboundLocalError: local variable 'a' referenced before assignment")
    assert named(unbound).startswith("your program calls `theano` at `run.py`, line 14, which stopped it")


def test_a_traceback_that_was_pasted_further_in_keeps_its_end() -> None:
    lines = USES.format(code="a / b", error="ZeroDivisionError: division by zero").splitlines()
    moved = "\n".join([lines[0], *(f"    {line}" for line in lines[1:])])
    assert "division by zero" in named(moved + "\n")


def test_of_a_test_that_failed_the_exception_is_the_cause_and_not_the_heading() -> None:
    log = """\
test_flux (tests.TestRing) ... ERROR

======================================================================
ERROR: test_flux (tests.TestRing)
Test for the flux of a ring
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/home/ada/src/tests/test_ring.py", line 12, in test_flux
    EasyConfig("x.eb")
  File "/home/ada/src/easybuild/framework/easyconfig/easyconfig.py", line 400, in __init__
    self.parse()
easybuild.tools.build_log.EasyBuildError: "the ring is open"

----------------------------------------------------------------------
Ran 2 tests in 0.012s

FAILED (errors=1)
"""
    known = explain([log.encode()], known_failures()).known
    assert known is not None
    assert "test_ring.py`, line 12" in known.cause
    assert "the ring is open" in known.cause
