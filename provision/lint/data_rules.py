"""The rules for the data of a training script: what is not used, read by every rank or downloaded, and output that is lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from provision.knowledge.keras_files import TFDS, WEIGHTS
from provision.lint.job_script import JobScript
from provision.lint.rule import Found, Shown, advice, warning
from provision.lint.syntax import Syntax, dotted, first_part, given, last, number_of, unpacks, value_of
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
# Names in programs that split the data, or need not: samplers, data sets that divide themselves, random data. Those of tests say
# that a set for training and one for tests are made.
SPLITS = re.compile(
    r"sampler|shard|split|subset|partition|iterable|webdataset|randn?$|fake|synth|^uniform$", re.IGNORECASE
)
OF_TESTS = {"random_split", "train_test_split", "validation_split", "split"}
# The number of a process or of all processes, and what a program does with it other than choosing its data.
PROCESS = re.compile(r"rank|world_?size", re.IGNORECASE)
NOT_DATA = re.compile(
    r"lr|rate|scale|verbos|log|print|info|callback|warm|momentum|optimi|init|config|gpu|device|rank|world|parallel|args|reduce|save"
    r"|^(to|cuda|setup|main|spawn|barrier|environ|DDP)$|^(Adam|SGD|RMSProp|Adagrad|Adadelta)",
    re.IGNORECASE,
)


@warning("`{0}` is never used: `fit` in line {1} trains on other data", "`model.fit({0}, …)`")
def dataset_unused(script: Syntax) -> Found:
    """A data set that is never used."""
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
    "`buffer_size` of TFRecordDataset is in bytes, and {0} bytes are too small a buffer",
    "use the size of some batches in bytes, such as `8 << 20`, or remove it",
)
def buffer_in_bytes(script: Syntax) -> Found:
    """A buffer size that was not meant in bytes."""
    for call in script.calls_of("TFRecordDataset"):
        size = number_of(given(call, "buffer_size"))
        if size is not None and 0 < size < FEWEST_BYTES:
            yield call, size


@warning("every rank reads the same data: nothing splits it by rank", "{0}")
def input_not_split(program: TrainingProgram, script: Syntax) -> Found:
    """Data that every rank reads as a whole."""
    aliases, scripts = program.aliases, program.scripts.values()
    together = aliases or (program.uses_torch and "ddp" in program.uses)
    whole = program.is_whole and script.runs and program.trains is not None
    if not together or not whole or program.modules & OVER_TORCH:
        return
    yield from ((call, f"`DataLoader(…, sampler={name})`") for call, name in _samplers_unused(script))
    words = {*program.names, *(name for one in scripts for name in one.arguments)} - OF_TESTS
    # Horovod handed to a function may split the data there.
    handed = any(last(value) in aliases for one in scripts for call in one.calls for value in call.args)
    if handed or any(SPLITS.search(word) for word in words):
        return
    for one in scripts:
        for node in one.reads():
            of_horovod = isinstance(node, ast.Attribute) and node.attr == "size" and last(node.value) in aliases
            number = of_horovod or PROCESS.search(last(node))
            # A use that is not known to be for something else counts as splitting.
            if number and not _for_something_else(one, node):
                return
    made = script.calls_of(*MAKE_DATA, "load_data", "image_dataset_from_directory")
    fix = "`dataset = dataset.shard(hvd.size(), hvd.rank())` before `shuffle` and `batch`"
    if program.uses_torch:
        made = [call for call in script.calls_of("DataLoader") if not unpacks(call)]
        made = [call for call in made if not given(call, "sampler") and not given(call, "batch_sampler")]
        fix = "`DataLoader(data, sampler=DistributedSampler(data), …)` of `torch.utils.data`"
    yield from [(call, fix) for call in made[:1]]


def _samplers_unused(script: Syntax) -> Iterator[tuple[ast.Call, str]]:
    """The samplers of training data that no data loader gets, with their names."""
    for call in script.calls_of("DistributedSampler"):
        for name in (one.id for one in script.targets(call) if isinstance(one, ast.Name)):
            handed = any(last(script.parents[id(node)]) != "set_epoch" for node in script.reads(name))
            if not handed and not re.search(r"val|test|eval", name, re.IGNORECASE):
                yield call, name


def _for_something_else(script: Syntax, call: ast.expr) -> bool:
    """Whether the rank or the number of ranks is used for a learning rate, a GPU, a condition or a text."""
    for inner, outer in script.steps(call):
        match outer:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                return inner is test
            case ast.FormattedValue() | ast.JoinedStr():
                return True
            case ast.keyword(arg=word):
                return bool(word and NOT_DATA.search(word))
            case ast.Call(func=func) if inner is not func:
                name = last(outer)
                if NOT_DATA.search(name) or name == "format":
                    return True
                if name not in ("int", "float", "str", "max", "min"):
                    return name == "load_data"  # only the name of a download's file: `load_data(f"mnist-{rank}.npz")`
            case ast.Assign(targets=[target, *_], value=value):
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                named = " ".join(last(one.value if isinstance(one, ast.Subscript) else one) for one in parts)
                return bool(NOT_DATA.search(named)) or isinstance(value, ast.Compare)
            case ast.stmt():
                return False
            case _:
                pass
    return False


@warning(
    "compute nodes of `{0}` do not reach the internet: this fetches {1} unless it is already in a folder that the job reads",
    "run `{2}` once on {3}",
    name="downloads",
)
def downloads_on_nodes(program: TrainingProgram, site: Site, job_script: JobScript | None) -> Found:
    """Data or weights that are fetched on nodes without internet."""
    proxied = job_script is not None and job_script.proxies & {"http_proxy", "https_proxy"}
    where = site.network.where_to_download or "a machine with internet"
    unset = job_script is not None and "https_proxy" in job_script.unset
    alone = site.network.compute == "no" or (site.network.compute == "proxy" and unset)
    for one in program.downloads if alone and not proxied else ():
        yield Shown(one.line, one.fetch), site.name, one.what, fetch_command(one, site), where


def fetch_command(download: Download, site: Site) -> str:
    """The command that fetches a download beforehand."""
    return f"provision data fetch {download.name} --site {site.typed}" if download.name else download.fetch


def downloads(script: Syntax) -> tuple[Download, ...]:
    """What the script fetches from the internet, unless it is in a cache."""
    return tuple(sorted(_downloads(script)))


def _downloads(script: Syntax) -> Iterator[Download]:
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


def _of_torch(script: Syntax, call: ast.Call) -> tuple[str, str] | None:
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


def _imported(script: Syntax, name: str) -> bool:
    imports = (node for node in script.of(ast.ImportFrom) if "applications" in (node.module or ""))
    return any(alias.name == name for node in imports for alias in node.names)


def _address(script: Syntax, node: ast.expr | None) -> bool:
    """Whether a value is an address on the internet, as far as it is written in the script."""
    sources = script.sources(start) if (start := first_part(node)) else ()
    return any(re.match("(https?|ftp)://", str(value_of(first_part(source)) or "")) for source in sources)


# Output below /tmp. Data, caches and files that are only read may be there: many sites advise to copy data to the node.
# Names of functions that read or look, of what a script writes, and of what it reads.
LOOKS = re.compile(r"load|read|restore|exists|is_?(file|dir)|list_?dir|glob|rmtree|remove|unlink|assert", re.IGNORECASE)
WRITTEN = re.compile(
    r"out|save|log|ckpt|check_?point|model|export|result|writ|backup|eval|train_|summar|plot|fig", re.IGNORECASE
)
READ = re.compile(
    r"data|input|image|annot|csv|json|cache|te?mp|scratch|sock|lock|port|src|source|record|prefix|__file__",
    re.IGNORECASE,
)


@warning("`{0}` is on the node and is lost after the job", 'write to a folder below `os.environ["PROVISION_OUTPUT"]`')
def node_local_output(script: Syntax) -> Found:
    """Output below /tmp, which is lost after the job."""
    if script.modules & {"unittest", "pytest", "absl.testing"} or "TestCase" in script.names:
        return
    for node in script.of(ast.Constant):
        if isinstance(node.value, str) and node.value.startswith("/tmp/"):
            is_docstring = isinstance(script.parents.get(id(node)), ast.Expr)
            if not is_docstring and not _is_read(script, node, node.value):
                yield node, node.value[:100]


def _is_read(script: Syntax, path: ast.Constant, text: str) -> bool:
    """Whether the nearest name that shows it is one of something that is read: data, a cache, a file that exists already."""
    for outer in script.around(path):
        match outer:
            case ast.Compare():
                return True
            case ast.keyword(arg=str(word)):
                name = word
            case ast.Call(args=words) if last(outer) == "open":
                mode = given(outer, "mode", 1)
                return mode is None or "r" in str(value_of(mode) or "")
            case ast.Call(args=words):
                name = " ".join((last(outer), *(str(value_of(word)) for word in words if word is not path)))
                if LOOKS.search(last(outer)):
                    return True
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
                name = last(target)
            case _:
                name = ""
        if WRITTEN.search(name) or READ.search(name):
            return not WRITTEN.search(name)
        if isinstance(outer, ast.stmt):
            break
    return bool(READ.search(text[5:])) and not WRITTEN.search(text)
