#!/usr/bin/env python3
"""Write provision/knowledge/keras_files.json: the files that Keras downloads, as Keras's own source names them.

    tools/keras-files.py PREFIX/lib/python3.11/site-packages/keras/src    # of Keras 3

The source is read, not run. A file whose hash is not in it (Fashion-MNIST, MobileNet, MobileNetV2) and MobileNetV3, whose
names are made at run time, are left out.
"""

import ast
import json
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "provision" / "knowledge" / "keras_files.json"
ARCHIVES = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}
# Networks whose hashes are in a table WEIGHTS_HASHES, top layer first: file, form of the file's name, form of the network's.
TABLES = (
    ("resnet.py", "{}_weights_tf_dim_ordering_tf_kernels", "ResNet{}"),
    ("efficientnet.py", "efficientnet{}", "EfficientNet{}"),
    ("efficientnet_v2.py", "efficientnetv2{}", "EfficientNetV2{}"),
    ("convnext.py", "{}", "ConvNeXt{}"),
)
# Networks with one call of get_file for each file.
CALLS = {
    "vgg16.py": ["VGG16"],
    "vgg19.py": ["VGG19"],
    "xception.py": ["Xception"],
    "inception_v3.py": ["InceptionV3"],
    "densenet.py": ["DenseNet121", "DenseNet169", "DenseNet201"],
    "nasnet.py": ["NASNetMobile", "NASNetLarge"],
}


def constants(tree):
    """The module's names for texts and tables."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = value(node.value, found)
    return found


def value(node, names):
    """The value of an expression of constants, or None."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = value(node.left, names), value(node.right, names)
        return left + right if isinstance(left, str) and isinstance(right, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [value(part.value if isinstance(part, ast.FormattedValue) else part, names) for part in node.values]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def downloads(tree, names):
    """File, address and hash of each call of get_file whose arguments are constants."""
    local = dict(names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found = value(node.value, local)
            if isinstance(found, str):
                local.setdefault(node.targets[0].id, found)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "load_data":
            defaults = [value(default, {}) for default in node.args.defaults]
            named = [argument.arg for argument in node.args.args][len(node.args.args) - len(defaults) :]
            local.update((name, text) for name, text in zip(named, defaults, strict=True) if name == "path")
            yield from calls(node, local)
    if not any(isinstance(node, ast.FunctionDef) and node.name == "load_data" for node in tree.body):
        yield from calls(tree, local)


def calls(tree, names):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "get_file":
            given = dict(zip(("fname", "origin"), node.args, strict=False))
            given.update((word.arg, word.value) for word in node.keywords)
            row = [value(given[key], names) if key in given else None for key in ("fname", "origin", "file_hash")]
            if all(row):
                yield row


def main(source):
    """Read the data sets, then the networks."""
    version = next(
        line.split('"')[1] for line in (source / "version.py").read_text().splitlines() if "__version__ =" in line
    )
    files = {}
    for path in sorted((source / "datasets").glob("*.py")):
        tree = ast.parse(path.read_text())
        for name, url, digest in downloads(tree, constants(tree)):
            file = ARCHIVES[path.stem] + ".tar.gz" if path.stem in ARCHIVES else name
            files.setdefault(path.stem, []).append({"url": url, "hash": digest, "folder": "datasets", "file": file})
    for name, form, network in TABLES:
        tree = ast.parse((source / "applications" / name).read_text())
        names = constants(tree)
        for key, hashes in names["WEIGHTS_HASHES"].items():
            stem = key if name in ("resnet.py", "convnext.py") else key.lstrip("-")
            called = {
                "resnet.py": stem.replace("resnet", "").replace("v2", "V2"),
                "convnext.py": {"xlarge": "XLarge"}.get(stem[9:], stem[9:].capitalize()),
            }.get(name, stem.upper())
            if "next" in stem and name == "resnet.py":
                continue  # ResNeXt, for which Keras has no function
            rows = files.setdefault("imagenet-weights:" + network.format(called), [])
            joined = form.format(f"-{stem}" if name == "efficientnet_v2.py" else stem)
            for suffix, digest in zip((".h5", "_notop.h5"), hashes, strict=True):
                file = joined + suffix
                rows.append(
                    {"url": names["BASE_WEIGHTS_PATH"] + file, "hash": digest, "folder": "models", "file": file}
                )
    for name, networks in CALLS.items():
        tree = ast.parse((source / "applications" / name).read_text())
        for file, url, digest in downloads(tree, constants(tree)):
            network = next((one for one in networks if one.lower() in file.replace("_", "")), networks[0])
            rows = files.setdefault("imagenet-weights:" + network, [])
            rows.append({"url": url, "hash": digest, "folder": "models", "file": file})
    TABLE.write_text(json.dumps({"keras": version, "files": dict(sorted(files.items()))}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
