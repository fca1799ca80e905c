"""The CIFAR pickles are read; whatever else a pickle can say is refused, and nothing of it runs."""

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from debiaspl.data.cifar import unpickle
from debiaspl.data.text import DataError

GLOBALS = b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n"
RECONSTRUCT, NDARRAY, DTYPE = GLOBALS
EMPTY_ARRAY = RECONSTRUCT + b"(" + NDARRAY + b"K\x00\x85U\x01bt" + b"R"
BYTE_TYPE = DTYPE + b"(U\x02u1K\x00K\x01tR"
BYTE_STATE = b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t"


def python2_pickle(value: object) -> bytes:
    """A pickle as Python 2 wrote the official files: strings are bytes, NumPy is numpy.core."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value: object) -> bytes:
    match value:
        case dict():
            return b"}(" + b"".join(_python2(key) + _python2(item) for key, item in value.items()) + b"u"
        case list():
            return b"](" + b"".join(map(_python2, value)) + b"e"
        case tuple():
            return b"(" + b"".join(map(_python2, value)) + b"t"
        case bool():
            return b"\x88" if value else b"\x89"
        case int():
            return b"J" + struct.pack("<i", value)
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case np.ndarray():
            state = BYTE_TYPE + BYTE_STATE + b"b"
            return EMPTY_ARRAY + b"(K\x01" + _python2(value.shape) + state + b"\x89" + _python2(value.tobytes()) + b"tb"
    raise TypeError(type(value))


BATCH = {b"batch_label": b"one", b"labels": [3, 0], b"data": np.arange(12, dtype=np.uint8).reshape(2, 6)}


def python3_pickle(value: dict[bytes, object]) -> bytes:
    return pickle.dumps({key.decode(): item for key, item in value.items()}, protocol=4)


@pytest.mark.parametrize("write", [python2_pickle, python3_pickle])
def test_batches_are_read(write):
    read = unpickle(write(BATCH), "batch")
    assert list(read) == list(BATCH)
    assert read[b"labels"] == [3, 0]
    assert read[b"batch_label"] == b"one"
    assert np.array_equal(read[b"data"], BATCH[b"data"])
    assert read[b"data"].dtype == np.uint8


class Call:
    """Pickles to a call."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call


def harmful(path: Path) -> dict[str, tuple[bytes, str]]:
    """Pickles that would make the file ``path``, each with the name that the message must tell."""
    touch, python = f"touch {path}".encode(), f"__import__('pathlib').Path({str(path)!r}).touch()"
    line = b"S'" + touch + b"'\n"
    return {
        "os.system": (b"cos\nsystem\n(" + line + b"tR.", "os.system"),
        "posix": (pickle.dumps(Call(os.system, touch.decode())), f"{os.system.__module__}.system"),
        "eval": (pickle.dumps(Call(eval, python)), "builtins.eval"),
        "python 2 eval": (b"c__builtin__\neval\n(S" + repr(python).encode() + b"\ntR.", "__builtin__.eval"),
        "nested": (python3_pickle({b"a": [{"b": Call(os.system, touch.decode())}]}), "system"),
        "obj": (b"(cos\nsystem\n" + line + b"o.", "os.system"),
        "stack global": (b"\x80\x04\x8c\x02os\x8c\x06system\x93" + line + b"\x85R.", "os.system"),
        "dotted name": (b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.", "numpy.dtype.__init__"),
        "another numpy": (b"cnumpy\nload\n(" + line + b"tR.", "numpy.load"),
        "getattr": (b"c__builtin__\ngetattr\n(" + RECONSTRUCT + b"S'__globals__'\ntR.", "__builtin__.getattr"),
        "persistent id": (b"P" + touch + b"\n.", "persistent id"),
        "extension": (b"\x82\x01.", "extension"),
    }


@pytest.mark.parametrize("trick", harmful(Path("x")))
def test_harmful_pickles_are_refused_and_named(tmp_path, trick):
    sign = tmp_path / "ran"
    content, name = harmful(sign)[trick]
    with pytest.raises(DataError, match=r"^data_batch_1 ") as refused:
        unpickle(content, "data_batch_1")
    assert name in str(refused.value)
    assert not sign.exists()


@pytest.mark.parametrize(
    "content",
    [
        # An array type that holds pointers, and a list where a dictionary is expected.
        DTYPE + b"(U\x01OK\x00K\x01tR.",
        b"](K\x01e.",
        # BUILD sets attributes, or calls __setstate__ with whatever the file likes.
        NDARRAY + b"}(U\x08__call__U\x01xub.",
        EMPTY_ARRAY + b"}(U\x01aU\x01bub.",
        EMPTY_ARRAY + b"(K\x01K\x04\x85" + BYTE_TYPE + b"\x89U\x03abctb.",
        EMPTY_ARRAY + b"(K\x01(J\xff\xff\xff\xffJ\xfd\xff\xff\xfft" + BYTE_TYPE + b"\x89U\x03abctb.",
        # Commands that call methods of what is on the stack, and an array that was never made.
        EMPTY_ARRAY + b"K\x01a.",
        EMPTY_ARRAY + b".",
        b"}U\x01a" + NDARRAY + b")\x81s.",
    ],
)
def test_names_that_are_allowed_cannot_be_misused(content):
    with pytest.raises(DataError, match="official format"):
        unpickle(content, "data_batch_1")


def test_no_pickle_changes_what_the_next_one_reads():
    for content in (RECONSTRUCT, NDARRAY, DTYPE, EMPTY_ARRAY, BYTE_TYPE):
        with pytest.raises(DataError):
            unpickle(content + b"N}(U\x09__class__K\x01U\x06valuesK\x01u\x86b.", "data_batch_1")
    assert np.array_equal(unpickle(python2_pickle(BATCH), "batch")[b"data"], BATCH[b"data"])


@pytest.mark.parametrize("keep", [0, 1, 20, -10, -1])
def test_cut_pickles_are_told(keep):
    with pytest.raises(DataError, match="data_batch_1 is not a complete pickle of the official format"):
        unpickle(python2_pickle(BATCH)[:keep], "data_batch_1")
