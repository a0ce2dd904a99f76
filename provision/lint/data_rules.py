"""The rules for the input of a training script: data that is not used, that every rank reads, or that must be downloaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from provision.knowledge.keras_files import TFDS, WEIGHTS
from provision.lint.syntax import Fault, Script, dotted, given, last

MAKE_DATA = ("from_tensor_slices", "from_generator", "from_tensors", "TFRecordDataset", "TextLineDataset")
FEWEST_BYTES = 16384
"""A `buffer_size` of TFRecordDataset is in bytes; a smaller value was meant as a number of records."""
# Models of Keras whose default is weights from the internet.
APPLICATIONS = re.compile(
    r"(ResNet(50|101|152)(V2)?|VGG(16|19)|Inception(V3|ResNetV2)|Xception|MobileNet(V2|V3Small|V3Large)?|DenseNet(121|169|201)"
    r"|NASNet(Mobile|Large)|EfficientNet(V2)?[BSML][0-7]?|ConvNeXt\w{1,8}|RegNet[XY]\d{3})"
)
# What a program does with a rank or the number of ranks, other than splitting the data.
NOT_DATA = re.compile(
    r"lr|rate|scale|verbos|log|print|info|callback|warm|momentum|optimi|init|config|gpu|device", re.IGNORECASE
)


class Download(NamedTuple):
    """Something that a script fetches from the internet unless it is there already."""

    line: int
    what: str
    fetch: str
    """A command that fetches it beforehand, in Python."""
    name: str | None = None
    """The name with which `provision data fetch` fetches it; None if it cannot."""


def input_faults(script: Script) -> Iterator[Fault]:
    """Faults in data sets: one that is never used, or a buffer size that was not meant in bytes."""
    fits = [
        call for call in script.calls if isinstance(call.func, ast.Attribute) and call.func.attr == "fit" and call.args
    ]
    sets: dict[str, int] = {}
    reassigned: set[int] = set()  # uses of a name in its own assignment: `data = data.batch(32)`
    for node in script.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if any(last(part) in MAKE_DATA for part in ast.walk(node.value) if isinstance(part, ast.Call)):
            sets.setdefault(name, node.lineno)
        reassigned |= {id(part) for part in ast.walk(node.value) if isinstance(part, ast.Name) and part.id == name}
    used = {
        node.id
        for node in script.nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in reassigned
    }
    for name, line in sets.items():
        if fits and name not in used and len(script.assigned.get(name, ())) <= 4:
            yield Fault(
                rule="dataset-unused",
                line=line,
                message=f"`{name}` is never used: `fit` in line {fits[0].lineno} trains on other data",
                fix=f"`model.fit({name}, …)`",
            )
    for call in script.calls:
        size = given(call, "buffer_size")
        if (
            last(call) == "TFRecordDataset"
            and isinstance(size, ast.Constant)
            and isinstance(size.value, int)
            and 0 < size.value < FEWEST_BYTES
        ):
            yield Fault(
                rule="buffer-in-bytes",
                line=call.lineno,
                message=f"`buffer_size` of TFRecordDataset is in bytes, and {size.value} bytes are too small a buffer",
                fix="use the size of some batches in bytes, such as `8 << 20`, or remove it",
            )


def unsplit_fault(script: Script, aliases: set[str]) -> Iterator[Fault]:
    """Input of a script with Horovod that no rank splits. `aliases` are the names under which Horovod is imported.

    A use of the rank or of the number of ranks that is not known to be for something else counts as splitting.
    """
    made = [call for call in script.calls if last(call) in (*MAKE_DATA, "load_data", "image_dataset_from_directory")]
    made = [call for call in made if not _is_random(script, call)]
    trains = script.called & {"fit", "apply_gradients", "minimize", "fit_generator"}
    if not made or not trains or "shard" in script.called or not script.is_whole:
        return
    if any(
        given(call, "steps_per_epoch") is not None and _by_size(given(call, "steps_per_epoch"), script)
        for call in script.calls
    ):
        return
    for call in script.calls:
        receiver, _, name = dotted(call.func).rpartition(".")
        if name in ("rank", "size") and receiver in aliases and not _for_something_else(script, call):
            return
    # Horovod handed to a function may split the data there.
    for call in script.calls:
        if any(isinstance(argument, ast.Name) and argument.id in aliases for argument in call.args):
            return
    yield Fault(
        rule="input-not-split",
        line=made[0].lineno,
        message="every rank reads the same data: nothing splits it by rank",
        fix="`dataset = dataset.shard(hvd.size(), hvd.rank())` before `shuffle` and `batch`",
    )


RANDOM = re.compile(r"(tf|tensorflow|np|numpy)\.random\.\w{1,40}")


def _is_random(script: Script, call: ast.Call) -> bool:
    """Whether a data set is made of random numbers, as benchmarks do: then there is nothing to split."""
    if last(call) not in ("from_tensor_slices", "from_tensors") or not call.args:
        return False
    first = call.args[0]
    parts = first.elts if isinstance(first, ast.Tuple) else [first]
    values = [
        value
        for part in parts
        for value in (script.assigned.get(part.id, [part]) if isinstance(part, ast.Name) else [part])
    ]
    return all(isinstance(value, ast.Call) and RANDOM.fullmatch(dotted(value.func)) for value in values)


def _by_size(node: ast.expr | None, script: Script) -> bool:
    """Whether a value depends on the number of ranks."""
    names = {last(part) for part in ast.walk(node)} if node is not None else set()
    inner = {last(part) for name in names for value in script.assigned.get(name, ()) for part in ast.walk(value)}
    return "size" in names | inner


def _for_something_else(script: Script, call: ast.Call) -> bool:
    """Whether the rank or the number of ranks is used for a learning rate, a GPU, a condition or a text."""
    inner: ast.AST = call
    for outer in script.around(call):
        if isinstance(outer, ast.If | ast.IfExp | ast.While | ast.Assert):
            return inner is outer.test
        if isinstance(outer, ast.FormattedValue | ast.JoinedStr):
            return True
        if isinstance(outer, ast.keyword):
            return bool(outer.arg and NOT_DATA.search(outer.arg))
        if isinstance(outer, ast.Call) and inner is not outer.func:
            name = last(outer)
            if (
                NOT_DATA.search(name)
                or name == "format"
                or re.search(r"(Adam|SGD|RMSProp|RMSprop|Optimizer|Adagrad|Adadelta)\w*$", name)
            ):
                return True
            if name not in ("int", "float", "str", "max", "min"):
                return _names_file(script, outer)
        if isinstance(outer, ast.Assign):
            target = last(outer.targets[0])
            return bool(NOT_DATA.search(target)) or isinstance(outer.value, ast.Compare)
        if isinstance(outer, ast.stmt):
            return False
        inner = outer
    return False


def _names_file(script: Script, call: ast.Call) -> bool:
    """Whether the rank only makes the name of a download's file unique: `load_data(f"mnist-{rank}.npz")`."""
    return last(call) == "load_data"


def _named(name: str) -> str | None:
    """The name for `provision data fetch`, unless Keras's source has no hash of the files, or only at run time."""
    return None if re.search("fashion_mnist|MobileNet|InceptionResNet", name) else name


def downloads(script: Script) -> tuple[Download, ...]:
    """What the script fetches from the internet, unless it is in a cache."""
    return tuple(sorted(_downloads(script)))


def _downloads(script: Script) -> Iterator[Download]:
    for call in script.calls:
        name, path = last(call), dotted(call.func)
        if name == "load_data" and re.search(
            r"(^|\.)(mnist|fashion_mnist|cifar10|cifar100|imdb|reuters|boston_housing|california_housing)\.load_data$",
            path,
        ):
            where = given(call, "path", 0)
            text = where.value if isinstance(where, ast.Constant) else None
            if (
                where is None
                or (isinstance(text, str) and not text.startswith("/"))
                or isinstance(where, ast.BinOp | ast.JoinedStr)
            ):
                what = path.rpartition(".")[0].rpartition(".")[2]
                yield Download(
                    call.lineno, f"the data set {what}", f"tf.keras.datasets.{what}.load_data()", _named(what)
                )
        elif path in ("tfds.load", "tensorflow_datasets.load") and given(call, "data_dir", 2) is None:
            no = given(call, "download", 4)
            if not (isinstance(no, ast.Constant) and no.value is False):
                first = script.ending(given(call, "name", 0)) or "NAME"
                fetched_by = None if first == "NAME" else f"{TFDS}{first}"
                yield Download(call.lineno, f"the data set `{first}`", f"tfds.load({first!r})", fetched_by)
        elif APPLICATIONS.fullmatch(name) and ("applications" in path or _imported(script, name)):
            weights = given(call, "weights", 1)
            fetches = weights is None or (isinstance(weights, ast.Constant) and weights.value == "imagenet")
            if fetches and not any(word.arg is None for word in call.keywords):
                yield Download(
                    call.lineno, f"the weights of {name}", f"tf.keras.applications.{name}()", _named(f"{WEIGHTS}{name}")
                )
        elif name == "get_file" and _address(script, given(call, "origin", 1)):
            yield Download(call.lineno, "a file", "tf.keras.utils.get_file(…)")
        elif name in ("urlretrieve", "urlopen") and _address(script, given(call, "url", 0)):
            yield Download(call.lineno, "a file", "urllib.request.urlretrieve(…)")
        elif path in ("hub.load", "hub.KerasLayer", "tensorflow_hub.load") and _address(
            script, given(call, "handle", 0)
        ):
            yield Download(call.lineno, "a model of TensorFlow Hub", "hub.load(…)")


def _imported(script: Script, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and "applications" in (node.module or "")
        and any(alias.name == name for alias in node.names)
        for node in script.nodes
    )


def _address(script: Script, node: ast.expr | None) -> bool:
    """Whether a value is an address on the internet, as far as it is written in the script."""
    while isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.Name):
        values = script.assigned.get(node.id, [])
        node = values[0] if len(values) == 1 else node
    while isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(("http://", "https://", "ftp://"))
    )
