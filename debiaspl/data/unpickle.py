"""Reads CIFAR pickles without running code.

A pickle is a program: it can name any function and call it. The official batches name three things, which always mean
"an array of bytes". Classes of this module replace them, so that the file can call neither NumPy nor anything else.
"""

import io
import pickle
import pickletools
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from debiaspl.data.errors import DataError

MOST_CONTAINERS = 1000
"""Lists, tuples, dictionaries and calls in a file; the official ones have fewer than 30. Python crashes on objects that
are nested a hundred thousand deep."""
_CONTAINERS = {
    *("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_LIST", "DICT", "EMPTY_DICT", "EMPTY_SET", "FROZENSET"),
    *("REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST"),
}


class _Bytes:
    """Replaces ``numpy.dtype``: the call ``dtype('u1', 0, 1)`` and the state after it both mean bytes."""

    __slots__ = ()

    def __init__(self, kind: object, *_: object) -> None:
        if kind not in ("u1", b"u1"):
            raise DataError(f"it contains an array of type {kind!r}, expected bytes ('u1')")

    def __setstate__(self, state: object) -> None:
        """Byte order, fields and flags: a byte has none of them, and they are not used."""


class _Array:
    """Replaces ``numpy.ndarray`` and the function that makes one, empty until its state arrives."""

    __slots__ = ("values",)

    def __init__(self, *_: object) -> None:
        self.values: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def __setstate__(self, state: object) -> None:
        match state:
            case (1, tuple(shape), _Bytes(), False, bytes(content)) if all(type(n) is int and n >= 0 for n in shape):
                self.values = np.frombuffer(content, dtype=np.uint8).reshape(shape)
            case _:
                raise DataError("it sets an array's state to something other than version, shape, type, order, bytes")


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,  # the name in NumPy 2
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Bytes,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise DataError(f"it uses {module}.{name}, which no official batch needs and which may do harm")
        return _STAND_INS[module, name]

    def persistent_load(self, pid: object) -> NoReturn:
        raise DataError(f"it uses the external object {pid!r:.40}, which no official batch needs")


def unpickle(content: bytes, file: object) -> dict[bytes, Any]:
    """The dictionary in a CIFAR pickle, with its keys as bytes; ``file`` is its name for messages.

    Values are numbers, bytes, strings, lists, dictionaries and arrays of bytes.
    """
    try:
        if sum(operation.name in _CONTAINERS for operation, _, _ in pickletools.genops(content)) > MOST_CONTAINERS:
            raise DataError(f"it contains more than {MOST_CONTAINERS:,} lists, tuples and dictionaries")
        found = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        values = {key: value.values if isinstance(value, _Array) else value for key, value in found.items()}
        return {key.encode() if isinstance(key, str) else key: value for key, value in values.items()}
    except Exception as error:  # a damaged pickle can fail in many ways
        reason = str(error)[:200] or type(error).__name__
        raise DataError(f"{file} is not a complete pickle of the official format: {reason}.") from error
