"""The rules for the input of a training script: data that is not used, that every rank reads, or that must be downloaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from provision.knowledge.keras_files import TFDS, WEIGHTS
from provision.lint.job_script import JobScript
from provision.lint.rule import Found, Shown, advice, warning
from provision.lint.syntax import ShellScript, dotted, first_part, given, last, number_of, unpacks, value_of
from provision.lint.training_script import OVER_TORCH, Download, TrainingProgram
from provision.profile.site import Site

MAKE_DATA = ("from_tensor_slices", "from_generator", "from_tensors", "TFRecordDataset", "TextLineDataset")
FEWEST_BYTES = 16384
"""A `buffer_size` of TFRecordDataset is in bytes; a smaller value was meant as a number of records."""
DATASETS = re.compile(
    r"(?:.*\.)?(mnist|fashion_mnist|cifar10|cifar100|imdb|reuters|boston_housing|california_housing)\.load_data"
)
# Models of Keras whose default is weights from the internet.
APPLICATIONS = re.compile(
    r"(ResNet(50|101|152)(V2)?|VGG(16|19)|Inception(V3|ResNetV2)|Xception|MobileNet(V2|V3Small|V3Large)?|DenseNet(121|169|201)"
    r"|NASNet(Mobile|Large)|EfficientNet(V2)?[BSML][0-7]?|ConvNeXt\w{1,8}|RegNet[XY]\d{3})"
)
# Calls with an address: the name and position of that argument, what they fetch, and a command that does so beforehand.
FETCHES = {
    "get_file": ("origin", 1, "a file", "tf.keras.utils.get_file(…)"),
    "urlretrieve": ("url", 0, "a file", "urllib.request.urlretrieve(…)"),
    "urlopen": ("url", 0, "a file", "urllib.request.urlretrieve(…)"),
    "hub.load": ("handle", 0, "a model of TensorFlow Hub", "hub.load(…)"),
    "hub.KerasLayer": ("handle", 0, "a model of TensorFlow Hub", "hub.load(…)"),
    "tensorflow_hub.load": ("handle", 0, "a model of TensorFlow Hub", "hub.load(…)"),
}
# What a program does with a rank or the number of ranks, other than splitting the data.
NOT_DATA = re.compile(
    r"lr|rate|scale|verbos|log|print|info|callback|warm|momentum|optimi|init|config|gpu|device", re.IGNORECASE
)
# Names in programs of PyTorch that may split the data: samplers, data sets that divide themselves, random data.
SPLITS = re.compile(r"sampler|shard|split|subset|partition|iterable|webdataset|randn?$|fake|synth", re.IGNORECASE)
PROCESS = re.compile(r"rank|world_?size", re.IGNORECASE)
NOT_DATA_OF_TORCH = re.compile(
    rf"{NOT_DATA.pattern}|rank|world|^(to|cuda|setup|main|spawn|barrier|environ|int|str)$|parallel|^DDP$|args|reduce|save",
    re.IGNORECASE,
)
OPTIMIZER = re.compile(r"(Adam|SGD|RMSProp|RMSprop|Optimizer|Adagrad|Adadelta)\w*$")
RANDOM = re.compile(r"(tf|tensorflow|np|numpy)\.random\.\w{1,40}")


@warning("dataset-unused", "`{0}` is never used: `fit` in line {1} trains on other data", "`model.fit({0}, …)`")
def dataset_unused(program: TrainingProgram) -> Found:
    """A data set that is never used."""
    script = program.script
    fits = [call for call in script.methods("fit") if call.args]
    sets: dict[str, int] = {}
    reassigned: set[int] = set()  # uses of a name in its own assignment: `data = data.batch(32)`
    for node in script.of(ast.Assign):
        name = last(node.targets[0]) if isinstance(node.targets[0], ast.Name) else None
        for part in ast.walk(node.value) if name else ():
            if isinstance(part, ast.Call) and last(part) in MAKE_DATA:
                sets.setdefault(str(name), node.lineno)
            elif isinstance(part, ast.Name) and part.id == name:
                reassigned.add(id(part))
    uses = (node for node in script.of(ast.Name) if isinstance(node.ctx, ast.Load) and id(node) not in reassigned)
    used = {node.id for node in uses}
    for name, line in sets.items() if fits else ():
        if name not in used and len(script.assigned.get(name, ())) <= 4:
            yield line, name, fits[0].lineno


@advice(
    "buffer-in-bytes",
    "`buffer_size` of TFRecordDataset is in bytes, and {0} bytes are too small a buffer",
    "use the size of some batches in bytes, such as `8 << 20`, or remove it",
)
def buffer_in_bytes(program: TrainingProgram) -> Found:
    """A buffer size that was not meant in bytes."""
    for call in program.script.calls_of("TFRecordDataset"):
        size = number_of(given(call, "buffer_size"))
        if size is not None and 0 < size < FEWEST_BYTES:
            yield call, size


@warning(
    "input-not-split",
    "every rank reads the same data: nothing splits it by rank",
    "{0}",
)
def input_not_split(program: TrainingProgram) -> Found:
    """Data that every rank reads as a whole."""
    script, aliases = program.script, program.aliases
    if program.uses_torch:
        loader = _unsplit_loader(program)
        yield from [(loader, "`DataLoader(data, sampler=DistributedSampler(data), …)` of `torch.utils.data`")] * bool(
            loader
        )
        return
    trains = script.called & {"fit", "apply_gradients", "minimize", "fit_generator"}
    if not aliases or not trains or "shard" in script.called or not script.is_whole:
        return
    made = script.calls_of(*MAKE_DATA, "load_data", "image_dataset_from_directory")
    made = [call for call in made if not _is_random(script, call)]
    steps = (given(call, "steps_per_epoch") for call in script.calls)
    # Horovod handed to a function may split the data there.
    handed = any(isinstance(value, ast.Name) and value.id in aliases for call in script.calls for value in call.args)
    # A use of the rank or of the number of ranks that is not known to be for something else counts as splitting.
    splits = any(
        dotted(call.func).rpartition(".")[0] in aliases and not _for_something_else(script, call)
        for call in script.calls_of("rank", "size")
    )
    if made and not handed and not splits and not any(step is not None and _by_size(step, script) for step in steps):
        yield made[0], "`dataset = dataset.shard(hvd.size(), hvd.rank())` before `shuffle` and `batch`"


def _unsplit_loader(program: TrainingProgram) -> ast.Call | None:
    """The first loader of PyTorch from which every process reads the same data, as far as it can be seen."""
    script, words = program.script, (*program.names, *program.script.arguments)
    if not (program.ddp or program.horovod) or program.modules & OVER_TORCH or not program.is_whole:
        return None
    # These make a set for training and one for tests, `split` names one of them.
    of_tests = {"random_split", "train_test_split", "split"}
    if any(SPLITS.search(word) for word in words if word not in of_tests) or program.trains is None:
        return None
    made = [call for call in script.calls_of("DataLoader") if not unpacks(call)]
    plain = [call for call in made if not any(given(call, name) for name in ("sampler", "batch_sampler"))]
    # A number of a process that is used for more than its place, its GPU or a condition may choose its data.
    of_any: list[ast.Name | ast.Attribute] = [*script.of(ast.Name), *script.of(ast.Attribute)]
    named = (node for node in of_any if isinstance(node.ctx, ast.Load))
    numbers = [node for node in named if PROCESS.search(last(node))]
    chosen = [node for node in numbers if not _for_something_else(script, node, NOT_DATA_OF_TORCH)]
    return plain[0] if plain and not chosen else None


def _is_random(script: ShellScript, call: ast.Call) -> bool:
    """Whether a data set is made of random numbers, as benchmarks do: then there is nothing to split."""
    if last(call) not in ("from_tensor_slices", "from_tensors") or not call.args:
        return False
    first = call.args[0]
    parts = first.elts if isinstance(first, ast.Tuple) else [first]
    values = [value for part in parts for value in script.sources(part)]
    return all(isinstance(value, ast.Call) and RANDOM.fullmatch(dotted(value.func)) for value in values)


def _by_size(node: ast.expr, script: ShellScript) -> bool:
    """Whether a value depends on the number of ranks."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return any(
        last(part) == "size" for one in (node, *names) for value in script.sources(one) for part in ast.walk(value)
    )


def _for_something_else(script: ShellScript, call: ast.expr, names: re.Pattern[str] = NOT_DATA) -> bool:
    """Whether the rank or the number of ranks is used for a learning rate, a GPU, a condition or a text."""
    inner: ast.AST = call
    for outer in script.around(call):
        match outer:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                return inner is test
            case ast.FormattedValue() | ast.JoinedStr():
                return True
            case ast.keyword(arg=word):
                return bool(word and names.search(word))
            case ast.Call(func=func) if inner is not func:
                name = last(outer)
                if names.search(name) or name == "format" or OPTIMIZER.search(name):
                    return True
                if name not in ("int", "float", "str", "max", "min"):
                    return name == "load_data"  # only the name of a download's file: `load_data(f"mnist-{rank}.npz")`
            case ast.Assign(targets=[target, *_], value=value):
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                named = " ".join(last(one.value if isinstance(one, ast.Subscript) else one) for one in parts)
                return bool(names.search(named)) or isinstance(value, ast.Compare)
            case ast.stmt():
                return False
            case _:
                pass
        inner = outer
    return False


@warning(
    "downloads",
    "compute nodes of `{0}` do not reach the internet: this fetches {1} unless it is already in a folder that the job reads",
    "run `{2}` once on {3}",
)
def downloads_on_nodes(program: TrainingProgram, site: Site, script: JobScript | None) -> Found:
    """Data or weights that are fetched on nodes without internet."""
    proxied = {name.lower() for name in script.variables} & {"http_proxy", "https_proxy"} if script else set()
    where = site.network.where_to_download or "a machine with internet"
    unset = (
        {word for command in script.commands if command.name == "unset" for word in command.words} if script else set()
    )
    alone = site.network.compute == "no" or (site.network.compute == "proxy" and "https_proxy" in unset)
    for one in program.downloads if alone and not proxied else ():
        yield Shown(one.line, one.fetch), site.name, one.what, fetch_command(one, site), where


def fetch_command(download: Download, site: Site) -> str:
    """The command that fetches a download beforehand."""
    return f"provision data fetch {download.name} --site {site.typed}" if download.name else download.fetch


def downloads(script: ShellScript) -> tuple[Download, ...]:
    """What the script fetches from the internet, unless it is in a cache."""
    return tuple(sorted(_downloads(script)))


def _downloads(script: ShellScript) -> Iterator[Download]:
    for call in script.calls:
        name, path, line = last(call), dotted(call.func), call.lineno
        dataset = DATASETS.fullmatch(path)
        if dataset:
            where = given(call, "path", 0)
            text = value_of(where)
            written = isinstance(where, ast.BinOp | ast.JoinedStr) or (isinstance(text, str) and text[:1] != "/")
            if where is None or written:
                what = dataset[1]
                yield Download(line, f"the data set {what}", f"tf.keras.datasets.{what}.load_data()", _named(what))
        elif path in ("tfds.load", "tensorflow_datasets.load") and given(call, "data_dir", 2) is None:
            if value_of(given(call, "download", 4)) is not False:
                first = script.ending(given(call, "name", 0))
                shown = first or "NAME"
                yield Download(
                    line, f"the data set `{shown}`", f"tfds.load({shown!r})", f"{TFDS}{first}" if first else None
                )
        elif APPLICATIONS.fullmatch(name) and ("applications" in path or _imported(script, name)):
            weights = given(call, "weights", 1)
            if (weights is None or value_of(weights) == "imagenet") and not unpacks(call):
                yield Download(
                    line, f"the weights of {name}", f"tf.keras.applications.{name}()", _named(f"{WEIGHTS}{name}")
                )
        elif fetch := FETCHES.get(path) or FETCHES.get(name):
            argument, position, what, command = fetch
            if _address(script, given(call, argument, position)):
                yield Download(line, what, command)
        elif fetched := _of_torch(script, call):
            yield Download(line, *fetched)


def _of_torch(script: ShellScript, call: ast.Call) -> tuple[str, str] | None:
    """What a call of PyTorch or of Hugging Face's packages fetches, and a command that does so beforehand."""
    name, path, first = last(call), dotted(call.func), value_of(call.args[0] if call.args else None)
    packages = {module.partition(".")[0] for module in script.modules}
    if packages & {"torchvision", "torchaudio", "torchtext"} and value_of(given(call, "download")) is True:
        return f"the data set {name}", f"{path}(…, download=True)"
    if "torchvision" in packages and re.search(r"(^|\.)models\.\w+$", path):
        weights = given(call, "weights")
        if value_of(given(call, "pretrained", 0)) is True or (weights is not None and value_of(weights) is not None):
            return f"the weights of {name}", ast.unparse(call)[:100]
    if path == "torch.hub.load" and value_of(given(call, "source")) != "local":
        return "a model of PyTorch Hub", ast.unparse(call)[:100]
    by_name = isinstance(first, str) and re.match(r"[\w.-]+(/[\w.-]+)?$", first) and not first.startswith(".")
    if name == "from_pretrained" and by_name and value_of(given(call, "local_files_only")) is not True:
        return f"`{first}` of Hugging Face", ast.unparse(call)[:100]
    return None


def _named(name: str) -> str | None:
    """The name for `provision data fetch`, unless Keras's source has no hash of the files, or only at run time."""
    return None if re.search("fashion_mnist|MobileNet|InceptionResNet", name) else name


def _imported(script: ShellScript, name: str) -> bool:
    imports = (node for node in script.of(ast.ImportFrom) if "applications" in (node.module or ""))
    return any(alias.name == name for node in imports for alias in node.names)


def _address(script: ShellScript, node: ast.expr | None) -> bool:
    """Whether a value is an address on the internet, as far as it is written in the script."""
    sources = script.sources(start) if (start := first_part(node)) else ()
    return any(re.match("(https?|ftp)://", str(value_of(first_part(source)) or "")) for source in sources)
