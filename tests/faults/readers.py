"""Bad files for every reader: the structure of a good file, with values that no program of ours would write.

Each reader must take such a file or refuse it with an error that the command line says in plain words.
"""

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from hypothesis import strategies as st

from debiaspl.data.cifar import unpickle
from debiaspl.data.decode import decode
from debiaspl.data.label_table import read_label_table
from debiaspl.data.open import read_place
from debiaspl.data.packed import open_packed
from debiaspl.data.tensor_file import tensor_file
from debiaspl.data.text import DataError
from debiaspl.deploy.saved import load_model
from debiaspl.files import FileError
from debiaspl.predictions import PredictionsError, read_predictions
from debiaspl.report.audit import audit
from debiaspl.report.audit.findings import findings
from debiaspl.report.runs import read_run, runs_page
from debiaspl.training import Choice, Run, RunError
from debiaspl.training.run import newest_checkpoint
from tests.data.photos import add, encoded, jpeg, patch
from tests.data.test_tar import header as tar_header
from tests.data.test_unpickle import BATCH, python2_pickle
from tests.training.tiny import TINY

PLAIN = (DataError, PredictionsError, RunError, FileError)

Files = dict[str, bytes]
PIPE, LINK = b"<pipe>", b"<link>"
"""Content that stands for a pipe, and for a link to a file with the rest of the content."""


@dataclass(frozen=True)
class Reader:
    """``files`` makes the content of a folder by name, ``read`` looks at it."""

    files: st.SearchStrategy[Files]
    read: Callable[[Path], object]


def refused_or_read(reader: Reader, folder: Path, files: Files) -> bool:
    """Whether it was read. Raises anything but plain errors."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content == PIPE:
            os.mkfifo(path)
        elif content.startswith(LINK):
            (folder / "linked").write_bytes(content.removeprefix(LINK))
            path.symlink_to(folder / "linked")
        else:
            path.write_bytes(content)
    try:
        reader.read(folder)
    except PLAIN:
        return False
    return True


# Values that break programs: of other kinds, at the edges of numbers, with letters that are no letters.
numbers = st.sampled_from([0, 1, -1, 2, 3, 12, 2**31, 2**63, -(2**63), 10**30, 0.5, 1.0, -0.0, 1e308])
strange = st.sampled_from([float("nan"), float("inf"), -float("inf")])
words = st.sampled_from(
    ["", "a", "b", "0", "1", "-1", "nan", "None", "é", "\x1b[2J", "\0", "=1+1", "'", "a,b", '"', "\ud800"]
)
scalars = st.one_of(st.none(), st.booleans(), numbers, strange, words)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """A good file with a few bytes changed, or cut short, or with more at its end."""
    places = st.lists(st.tuples(st.integers(0, max(len(content) - 1, 0)), st.integers(0, 255)), max_size=4)

    def change(changes: list[tuple[int, int]], length: int, more: bytes) -> bytes:
        made = bytearray(content)
        for place, value in changes:
            if made:
                made[place] = value
        return bytes(made[:length]) + more

    return st.builds(change, places, st.integers(0, len(content)) | st.just(len(content)), st.binary(max_size=4))


def altered(good: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A good object in which up to three values are others, or missing."""
    keys = st.sampled_from(sorted(good))
    other = st.one_of(values, st.just(...))

    def change(changes: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in {**good, **changes}.items() if value is not ...}

    return st.builds(change, st.dictionaries(keys, other, max_size=3))


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _one(name: str, content: st.SearchStrategy[bytes]) -> st.SearchStrategy[Files]:
    return content.map(lambda made: {name: made})


def _looked_at(name: str) -> Callable[[Path], object]:
    return lambda folder: findings(audit(read_predictions(folder / name), 0.5))


COLUMNS = st.sampled_from(
    ["label", "truth", "confidence", "file_name", "probability:a", "probability:b", "logit_a", "logit_b", "x"]
)
GOOD: dict[str, list[Any]] = {
    "label": ["a", "b", "a"],
    "truth": ["a", "b", ""],
    "confidence": [0.5, 1, 0.25],
    "file_name": ["x.jpg", "y.jpg", "=z.jpg"],
    "x": ["1", "2", ""],
    "probability:a": [0.5, 0, 1],
    "probability:b": [0.5, 1, 0],
}
"""Columns of three good predictions."""

# CSV
cells = st.one_of(
    words, st.sampled_from(["0.5", "1", "a", "b", "1e999", "-0", "0x1", "\N{FULLWIDTH DIGIT ONE}", "1_0"])
)


def _csv_text(header: list[str], rows: list[list[Any]], end: str, begin: str) -> bytes:
    lines = [",".join(map(str, row)) for row in (header, *rows)]
    return (begin + end.join(lines) + end).encode(errors="surrogatepass")


@st.composite
def table(draw: st.DrawFn) -> tuple[list[str], list[list[Any]]]:
    """A good table of predictions with a few odd cells."""
    header = draw(st.lists(st.sampled_from(sorted(GOOD)), unique=True, min_size=1, max_size=6))
    rows = [[GOOD[name][number] for name in header] for number in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(0, 2)) if rows else 0):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(header) - 1))] = draw(cells)
    return header, rows


ENDS, BEGINS = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]), st.sampled_from(["", "", "\ufeff", "\n", '"'])
csv_files = st.one_of(
    st.builds(lambda made, end, begin: _csv_text(*made, end, begin), table(), ENDS, BEGINS),
    st.builds(
        _csv_text, st.lists(COLUMNS, max_size=5), st.lists(st.lists(cells, max_size=5), max_size=5), ENDS, BEGINS
    ),
)


# JSON lines, and tasks of Label Studio
objects = st.dictionaries(st.one_of(COLUMNS, st.sampled_from(["probabilities", "logits"])), values, max_size=5)
json_tables = table().map(lambda made: [dict(zip(made[0], row, strict=True)) for row in made[1]])
json_lines = st.one_of(st.lists(objects, max_size=4), json_tables).map(lambda rows: b"\n".join(map(as_json, rows)))
deep = st.sampled_from([b"[" * 100_000, b'{"label":' * 50_000, b"\xff", b"", b"nul", b"[1", b"\xef\xbb\xbf[]"])
task = altered(
    {
        "data": {"image": "a.jpg", "file_name": "a.jpg"},
        "predictions": [{"score": 0.5, "result": [{"from_name": "label", "value": {"choices": ["a"]}}]}],
        "annotations": [{"result": [{"from_name": "label", "value": {"choices": ["b"]}}]}],
    }
)
other_task = json.loads('{"data": {"image": "b.jpg"}, "predictions": [{"result": [{"value": {"choices": ["b"]}}]}]}')
tasks = st.lists(task, max_size=3).map(lambda some: as_json([other_task, *some]))
# npz
DTYPES = ("<f8", "<f4", "<f2", "<i8", "|u1", "|b1", "<U3", "|S3", "<c8", "<m8[s]", "<M8[D]", "|V3", "<f16", ">f8")


def _npy(dtype: str, shape: tuple[int, ...], told: tuple[int, ...] | None, extra: bytes) -> bytes:
    """An array whose header may tell another shape."""
    content = io.BytesIO()
    array = np.zeros(shape, dtype)
    descr = np.lib.format.dtype_to_descr(array.dtype)
    np.lib.format.write_array_header_1_0(content, {"descr": descr, "fortran_order": False, "shape": told or shape})
    return content.getvalue() + array.tobytes() + extra


npy = st.builds(
    _npy,
    st.sampled_from(DTYPES),
    st.sampled_from([(3,), (3, 2), (0,), (3, 0), (), (2, 2, 2), (1,), (3, 1)]),
    st.sampled_from([None, None, None, (3, 2), (10**12,), (-1,), (2**62, 2**62), (3,)]),
    st.sampled_from([b"", b"", b"x"]),
)


def _npz(arrays: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, array in arrays.items():
            pack.writestr(name, array)
    return content.getvalue()


NPZ_NAMES = ("label", "truth", "confidence", "file_name", "classes", "probabilities", "logits", "x")
ODD_NAMES = st.sampled_from([*(f"{name}.npy" for name in NPZ_NAMES), "label", "../label.npy"])


@cache
def good_arrays() -> dict[str, bytes]:
    scores = np.array([[0.5, 0.5], [0, 1], [1, 0]])
    arrays = {"label": np.array(["a", "b", "a"]), "truth": np.array(["a", "b", ""])}
    arrays |= {"probabilities": scores, "classes": np.array(["a", "b"]), "confidence": np.array([0.5, 1, 0.25])}
    made = {}
    for name, array in arrays.items():
        content = io.BytesIO()
        np.save(content, array)
        made[f"{name}.npy"] = content.getvalue()
    return made


npz_files = st.one_of(
    st.dictionaries(ODD_NAMES, npy, max_size=4).map(_npz),
    st.builds(
        lambda names, odd: _npz({name: good_arrays()[name] for name in names} | odd),
        st.lists(st.sampled_from(["label.npy", "truth.npy", "probabilities.npy", "confidence.npy"])),
        st.dictionaries(ODD_NAMES, npy, max_size=1),
    ),
)
# Parquet
KINDS = (
    pa.float64(), pa.float16(), pa.int8(), pa.uint64(), pa.string(), pa.bool_(), pa.null(), pa.binary(),
    pa.decimal128(5, 2), pa.timestamp("us"), pa.date32(), pa.list_(pa.float32()), pa.list_(pa.string()),
    pa.list_(pa.float64(), 2), pa.struct([("a", pa.int8())]), pa.dictionary(pa.int8(), pa.string()),
    pa.large_string(), pa.large_list(pa.float32()), pa.map_(pa.string(), pa.int8()), pa.duration("s"),
)  # fmt: skip
PARQUET_NAMES = st.one_of(COLUMNS, st.sampled_from(["probabilities", "logits"]))


def _parquet(columns: list[tuple[str, pa.DataType]], rows: int, nulls: bool) -> bytes:
    arrays = [pa.nulls(rows, kind) if nulls else _filled(kind, rows) for _, kind in columns]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, [name for name, _ in columns]), content)
    return content.getvalue()


@cache
def _filled(kind: pa.DataType, rows: int) -> pa.Array:
    for value in (0, "a", True, b"\xff", 0.5, [0.5, 0.5], ["a", "b"], {"a": 1}, [("k", 1)]):
        try:
            return pa.array([value] * rows, kind)
        except (pa.ArrowException, TypeError, ValueError, AttributeError):
            continue
    return pa.nulls(rows, kind)


def _good_parquet(names: list[str], odd: dict[str, pa.DataType]) -> bytes:
    columns = {name: pa.array(GOOD[name]) for name in names} | {name: _filled(kind, 3) for name, kind in odd.items()}
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


parquet_files = st.one_of(
    st.builds(
        _parquet,
        st.lists(st.tuples(PARQUET_NAMES, st.sampled_from(KINDS)), max_size=4),
        st.integers(0, 3),
        st.booleans(),
    ),
    st.builds(
        _good_parquet,
        st.lists(st.sampled_from(sorted(GOOD)), unique=True, min_size=1, max_size=6),
        st.dictionaries(PARQUET_NAMES, st.sampled_from(KINDS), max_size=1),
    ),
)


@cache
def good_parquet() -> bytes:
    return _good_parquet(["label", "probability:a", "probability:b"], {})


# Packed sets
INDEX = {"classes": ["a", "b"], "labels": [0, 1, -1], "ids": ["x", "y", "z"]}
good_images = _npy("|u1", (3, 3, 2, 2), None, b"")
packed = st.builds(
    lambda index, pixels: {"index.json": as_json(index), "images.npy": pixels},
    altered(INDEX),
    st.just(good_images) | npy | mutated(good_images),
)


def _read_picture(folder: Path) -> None:
    with mock.patch("debiaspl.data.decode.PIXEL_LIMIT", 10**6):
        decode(folder / "a", (8, 8))


def _read_packed(folder: Path) -> None:
    images = open_packed(folder)
    images.images[torch.arange(len(images))]  # every pixel can be read


# Checkpoints and models: with a digest that is right, so that what they say is looked at
TENSORS = {"w": torch.arange(3.0)}
FACTS = {"recipe": TINY.to_json(), "device": "cpu", "data": "d", "seconds": 1.0, "log_length": 10}
FACTS |= {"skipped": {}, "files": {}}


def sealed(text: str) -> bytes:
    return tensor_file(TENSORS, "debiaspl", text)


checkpoint_headers = st.one_of(
    altered({"format": 2, "step": 4, "facts": FACTS}),
    altered(FACTS).map(lambda facts: {"format": 2, "step": 4, "facts": facts}),
    altered(TINY.to_json()).map(lambda told: {"format": 2, "step": 4, "facts": {**FACTS, "recipe": told}}),
    values,
).map(lambda header: sealed(json.dumps(header)))
CHECKPOINT = "checkpoint/step-000000004.safetensors"
CONFIG = as_json({"debiaspl": "0", "recipe": TINY.to_json()})
MODEL = {"network": {"name": "small", "settings": {"width": 4}}, "classes": ["a", "b"], "channels": 1, "size": [8, 8]}


@cache
def good_weights() -> dict[str, torch.Tensor]:
    network = Choice("small", {"width": 4}).build("network", num_classes=2, channels=1)
    return {name: value.clone() for name, value in network.state_dict().items()}


models = altered(MODEL).map(lambda facts: tensor_file(good_weights(), "debiaspl", json.dumps(facts)))
# Tar
TAR_SIZES = st.sampled_from([0, 1, 5, 512, 513, 10**6, -1, -512, -1024, 2**40, 2**62, -(2**62)])
good_members = st.builds(
    lambda name, body: tar_header(name, len(body)) + body.ljust(-(-len(body) // 512) * 512, b"\0"),
    st.sampled_from(["0.jpg", "0.cls", "1.jpg", "1.cls", "2.jpg", "d/3.png", "2.cls", "x.txt"]),
    st.sampled_from([b"0", b"1", b"a\n", b"\xff", b"", b"x" * 600]),
)
odd_members = st.builds(
    lambda name, size, kind, body: tar_header(name, size, kind) + body,
    st.sampled_from(["0.jpg", "0.cls", "1.jpg", "1.cls", "a/../b.jpg", "", ".x", "0", "é.jpg"]),
    TAR_SIZES,
    st.sampled_from([bytes([kind]) for kind in b"0125LKxgSZ\0"]),
    st.sampled_from([b"", bytes(512), b"0".ljust(512, b"\0"), b"20 size=-1024\n".ljust(512, b"\0"), b"x" * 512]),
)
GOOD_TAR = 5120
tars = st.builds(
    lambda good, odd, more: b"".join([good_tar()[:GOOD_TAR], *good, *odd, *more]) + bytes(1024),
    st.lists(good_members, max_size=6),
    st.lists(odd_members, max_size=2),
    st.lists(good_members, max_size=3),
)


@cache
def good_tar() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for number in range(2):
            add(tar, f"{number}.jpg", jpeg(patch(number, 0, 8)))
            add(tar, f"{number}.cls", str(number).encode())
    return content.getvalue()


def _read_tar(folder: Path) -> None:
    images = read_place(folder / "a.tar", 8).images
    for position in range(len(images.positions)):
        images.files.read(position)


# Runs
RESULTS = {
    "accuracy": 0.5, "recall": [0.5, 0.5], "confusion": [[1, 1], [1, 1]], "test": 4, "worst_recall": 0.5,
    "recipe": TINY.to_json(), "timing": {"seconds": 1.0, "device": "cpu"}, "labels": [1, 1], "unlabeled": 4,
}  # fmt: skip
LINE = {
    "step": 5,
    "losses": {"labeled": 0.5},
    "seconds": 1.0,
    "pseudo_labels": [1, 2],
    "prior": [0.5, 0.5],
    "kept": 0.5,
}
configs = st.one_of(
    altered(TINY.to_json()).map(lambda recipe: {"debiaspl": "0", "recipe": recipe}), altered({"recipe": {}}), values
).map(as_json)
log_files = st.lists(altered(LINE).map(as_json), max_size=3).map(lambda lines: b"\n".join([*lines, b""]))
run_files = st.one_of(
    _one("config.json", configs),
    _one("results.json", altered(RESULTS).map(as_json) | deep),
    _one("log.jsonl", log_files | deep),
).map(lambda files: {"config.json": CONFIG, **files})


def _read_run(folder: Path) -> None:
    runs_page([read_run(folder)])


# Pickles nested deeply
nested = st.builds(
    lambda depth, code, end: b"\x80\x02}U\x01a)" + code * depth + end,
    st.sampled_from([0, 1, 999, 1001, 300_000]),
    st.sampled_from([b"\x85", b"]", b"}", b"(", b")\x85"]),
    st.sampled_from([b"s.", b".", b"a.", b"", b"t."]),
)
batches = nested | st.deferred(lambda: mutated(python2_pickle(BATCH)))

PICTURES = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
READERS: dict[str, Reader] = {
    "csv": Reader(_one("a.csv", csv_files), _looked_at("a.csv")),
    "labels": Reader(_one("labels.csv", csv_files), lambda folder: read_label_table(folder / "labels.csv")),
    "jsonl": Reader(_one("a.jsonl", json_lines | deep), _looked_at("a.jsonl")),
    "label tasks": Reader(
        _one("a.json", tasks | values.map(as_json) | deep), lambda folder: read_label_table(folder / "a.json")
    ),
    "npz": Reader(_one("a.npz", npz_files), _looked_at("a.npz")),
    "parquet": Reader(_one("a.parquet", parquet_files), _looked_at("a.parquet")),
    "parquet bytes": Reader(_one("a.parquet", st.deferred(lambda: mutated(good_parquet()))), _looked_at("a.parquet")),
    "packed": Reader(packed, _read_packed),
    "checkpoint": Reader(
        _one(CHECKPOINT, checkpoint_headers).map(lambda files: {**files, "config.json": CONFIG}),
        lambda folder: Run(folder).checkpoint(),
    ),
    "checkpoint bytes": Reader(
        _one("step-000000004.safetensors", mutated(sealed(json.dumps({"format": 2, "step": 4, "facts": FACTS})))),
        newest_checkpoint,
    ),
    "model": Reader(_one("model.safetensors", models), load_model),
    "tar": Reader(_one("a.tar", tars), _read_tar),
    "tar bytes": Reader(_one("a.tar", st.deferred(lambda: mutated(good_tar()))), _read_tar),
    "config": Reader(_one("config.json", configs | deep), lambda folder: Run(folder).recipe()),
    "run": Reader(run_files, _read_run),
    "pickle": Reader(_one("a", batches), lambda folder: unpickle((folder / "a").read_bytes(), "a")),
    "picture": Reader(
        _one("a", st.sampled_from(PICTURES).flatmap(lambda kind: mutated(encoded(patch(0, 0, 16), kind)))),
        _read_picture,
    ),
}
