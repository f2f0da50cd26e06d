"""Files that would run code when a pickle is read, and files made to break a reader: nothing runs,
and the error says why.
"""

import ast
import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file
from support.user_networks import NodeNet, write_project

from graphgauge.core.errors import BadFile, BadModel
from graphgauge.lifecycle import Project

SRC = Path(__file__).parents[2] / "src"


class Bomb:
    """Makes the folder ``mark`` when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


class Nested:
    """A pickle whose unpickling unpickles another."""

    def __init__(self, mark):
        self.inner = pickle.dumps(Bomb(mark))

    def __reduce__(self):
        return pickle.loads, (self.inner,)


class Builder:
    """Runs its code in __setstate__ (the opcode BUILD)."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __getstate__(self):
        return {"mark": self.mark}

    def __setstate__(self, state):
        os.mkdir(state["mark"])


def saved(thing, **options):
    file = io.BytesIO()
    torch.save(thing, file, **options)
    return file.getvalue()


def zipped(names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in names.items():
            made.writestr(name, content)
    return file.getvalue()


def tarred(content):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def array(mark):
    file = io.BytesIO()
    np.save(file, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    return file.getvalue()


def headed(header, content=b"", length=None):
    """A safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + content


def good(**changes):
    return {**{name: value.clone() for name, value in NodeNet().state_dict().items()}, **changes}


FLOATS = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}

#: files that run code when a pickle is read: name of the file, and its bytes
POISONED = {
    "a pickle": ("w.pkl", lambda mark: pickle.dumps(Bomb(mark))),
    "a pickle of the oldest protocol": ("w.bin", lambda mark: pickle.dumps(Bomb(mark), protocol=0)),
    "a pickle of the newest protocol": (
        "w.ckpt",
        lambda mark: pickle.dumps(Bomb(mark), protocol=5),
    ),
    "a pickle that builds": ("w.pth", lambda mark: pickle.dumps(Builder(mark))),
    "a pickle in a pickle": ("w.pt", lambda mark: pickle.dumps(Nested(mark))),
    "a pickle that says it is safetensors": (
        "w.safetensors",
        lambda mark: pickle.dumps(Bomb(mark)),
    ),
    "an old pickle that says it is safetensors": (
        "w.safetensors",
        lambda mark: pickle.dumps(Bomb(mark), protocol=0),
    ),
    "torch's zip": ("w.pt", lambda mark: saved({"first.bias": Bomb(mark)})),
    "torch's zip that says it is safetensors": (
        "w.safetensors",
        lambda mark: saved({"first.bias": Bomb(mark)}),
    ),
    "torch's old format": (
        "w.pth",
        lambda mark: saved(Bomb(mark), _use_new_zipfile_serialization=False),
    ),
    "torch's old format as safetensors": (
        "w.safetensors",
        lambda mark: saved(Bomb(mark), _use_new_zipfile_serialization=False),
    ),
    "torch's first format, a tar": ("w.tar", lambda mark: tarred(pickle.dumps(Bomb(mark)))),
    "a zip with code": (
        "w.pt",
        lambda mark: zipped({"m/data.pkl": pickle.dumps(Bomb(mark)), "m/code/a.py": "import os"}),
    ),
    "a zip with code, other letters": (
        "w.PT",
        lambda mark: zipped({"m/data.pkl": pickle.dumps(Bomb(mark)), "m/version": "3"}),
    ),
    "a packed pickle": ("w.safetensors", lambda mark: gzip.compress(pickle.dumps(Bomb(mark)))),
    "an array of objects": ("w.npy", array),
    "an array of objects as safetensors": ("w.safetensors", array),
    "safetensors with a pickle as its header": (
        "w.safetensors",
        lambda mark: headed(pickle.dumps(Bomb(mark))),
    ),
    "safetensors with a pickle behind its tensors": (
        "w.safetensors",
        lambda mark: save(good()) + pickle.dumps(Bomb(mark)),
    ),
    "safetensors with a pickle as its metadata": (
        "w.safetensors",
        lambda mark: headed({"__metadata__": {"net": repr(pickle.dumps(Bomb(mark)))}}),
    ),
}

#: files made to break a reader: bytes, and what the error says
BROKEN = {
    "nothing": (b"", BadFile, "cannot be read as weights"),
    "half a file": (save(good())[:-20], BadFile, "cannot be read as weights"),
    "half a header": (save(good())[:60], BadFile, "cannot be read as weights"),
    "a header of 2^63 bytes": (headed({}, length=2**63), BadFile, "cannot be read as weights"),
    "a header of a gigabyte": (headed({}, length=2**30), BadFile, "cannot be read as weights"),
    "a header that is no JSON": (headed(b"{'a': 1}"), BadFile, "cannot be read as weights"),
    "a header without an end": (headed(b"[" * 50_000), BadFile, "cannot be read as weights"),
    "a tensor outside the file": (
        headed({"a": {**FLOATS, "data_offsets": [0, 800]}}),
        BadFile,
        "cannot be read as weights",
    ),
    "tensors on top of each other": (
        headed({"a": FLOATS, "b": FLOATS}, bytes(8)),
        BadFile,
        "cannot be read as weights",
    ),
    "a shape that says too much": (
        headed({"a": {**FLOATS, "shape": [2**40, 2**40]}}, bytes(8)),
        BadFile,
        "cannot be read as weig",
    ),
    "a type that is not known": (
        headed({"a": {**FLOATS, "dtype": "OBJ"}}, bytes(8)),
        BadFile,
        "cannot be read as weights",
    ),
    "no tensors": (save({}), BadModel, "first.bias is missing in the file"),
    "NaN": (
        save(good(**{"first.bias": torch.full((4,), float("nan"))})),
        BadModel,
        "first.bias in .* holds NaN",
    ),
    "whole numbers": (
        save(good(**{"first.bias": torch.zeros(4).long()})),
        BadModel,
        r"holds torch.int64, but .* torch.float32",
    ),
    "another shape": (
        save(good(**{"first.bias": torch.zeros(9)})),
        BadModel,
        r"first.bias is \(9,\) in the file and \(4,\) in",
    ),
    "too many tensors": (save(good(more=torch.zeros(1))), BadModel, "more is not in the network"),
}


def test_the_poison_works_where_pickles_are_read(tmp_path):
    for name, (_, make) in list(POISONED.items())[:5]:
        pickle.loads(make(tmp_path / name))
        assert (tmp_path / name).is_dir()


@pytest.mark.parametrize("key", ["weights", "data"])
@pytest.mark.parametrize("name", POISONED)
def test_a_poisoned_file_runs_nothing_and_is_refused(tmp_path, name, key):
    file, make = POISONED[name]
    mark, path = tmp_path / "it ran", write_project(tmp_path)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / file).write_bytes(make(mark))
    with pytest.raises((BadFile, BadModel), match=r"bad/w\."):
        Project.read(path, {key: f"bad/{file}"}).model()
    assert not mark.exists()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_of_weights_is_refused_with_a_reason(tmp_path, name):
    content, error, message = BROKEN[name]
    path = write_project(tmp_path)
    (tmp_path / "bad.safetensors").write_bytes(content)
    with pytest.raises(error, match=message):
        Project.read(path, {"weights": "bad.safetensors"}).model()


def test_minus_infinity_is_a_number_that_masks_are_made_of(tmp_path):
    path = write_project(tmp_path)
    save_file(good(**{"first.bias": torch.full((4,), -float("inf"))}), tmp_path / "w.safetensors")
    assert Project.read(path).net().first.bias.isinf().all()


READERS = (
    "torch.load",
    "joblib.load",
    "pickle.load",
    "pickle.Unpickler",
    "cloudpickle.load",
    "torch.jit.load",
)


def unsafe_calls(tree):
    """Calls that read a pickle from a file, or allow it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if ast.unparse(node.func) in READERS or words.get("allow_pickle", "False") != "False":
                yield ast.unparse(node)


def test_the_library_has_no_way_of_reading_a_pickle_from_a_file():
    assert [
        found for path in SRC.rglob("*.py") for found in unsafe_calls(ast.parse(path.read_text()))
    ] == []
    assert (
        len(
            list(
                unsafe_calls(
                    ast.parse(
                        "torch.load(f); np.load(f, allow_pickle=True); np.load(f, "
                        "allow_pickle=False)"
                    )
                )
            )
        )
        == 2
    )
