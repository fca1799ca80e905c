"""Reads CIFAR pickles without running code.

A pickle is a program: it can name any function and call it. The official batches name three things, which always mean
"an array of bytes". They are replaced by stand-ins, so that the file can call neither NumPy nor anything else. A
stand-in stores its arguments, has no attribute that a file could set, and checks every value.
"""

import io
import pickle
import pickletools
from typing import Any, NoReturn

import numpy as np

from debiaspl.data.errors import DataError

MOST_CONTAINERS = 1000
"""Lists, tuples, dictionaries and calls in a file; the official ones have fewer than 30. Python crashes on objects that
are nested a hundred thousand deep."""
_CONTAINERS = {
    *("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "EMPTY_LIST", "DICT", "EMPTY_DICT", "EMPTY_SET", "FROZENSET"),
    *("REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST"),
}


class _StandIn:
    """Accepts no state: the pickle command BUILD would otherwise set attributes."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise DataError(f"it sets the state of {type(self).__name__.strip('_')}, which has none")


class _DType(_StandIn):
    """Replaces ``numpy.dtype``: the call ``dtype('u1', 0, 1)`` and the state after it both mean bytes."""

    __slots__ = ()

    def __call__(self, *given: object) -> "_DType":
        if given[:1] not in (("u1",), (b"u1",)):
            raise DataError(f"it contains an array of type {given[:1]}, expected bytes ('u1')")
        return _DType()

    def __setstate__(self, state: object) -> None:
        # Byte order, fields and flags: a byte has none of them, and they are not used.
        if not isinstance(state, tuple):
            raise DataError("it sets a type's state to something other than a tuple")


class _NDArray(_StandIn):
    """Replaces ``numpy.ndarray``, which is only an argument of ``_reconstruct``."""

    __slots__ = ()


class _Array(_StandIn):
    """An array, empty until its state arrives."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = np.empty(0, dtype=np.uint8)

    def __setstate__(self, state: object) -> None:
        match state:
            case (1, tuple(shape), _DType(), False, bytes(content)):
                sizes = [size for size in shape if type(size) is int and size >= 0]
                if len(sizes) == len(shape) and int(np.prod(sizes, dtype=object)) == len(content):
                    self.values = np.frombuffer(content, dtype=np.uint8).reshape(sizes)
                    return
                raise DataError(f"it contains an array of shape {shape} with {len(content)} bytes")
        raise DataError("it sets an array's state to something other than version, shape, type, order and bytes")


class _Reconstruct(_StandIn):
    """Replaces ``numpy.core.multiarray._reconstruct``: makes the empty array."""

    __slots__ = ()

    def __call__(self, *given: object) -> _Array:
        if not given or not isinstance(given[0], _NDArray):
            raise DataError("it reconstructs something other than a numpy.ndarray")
        return _Array()


_STAND_INS: dict[tuple[str, str], type[_StandIn]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _Reconstruct,  # the name in NumPy 2
    ("numpy", "ndarray"): _NDArray,
    ("numpy", "dtype"): _DType,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise DataError(f"it uses {module}.{name}, which no official batch needs and which may do harm")
        return _STAND_INS[module, name]()

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
    except DataError as error:
        raise DataError(f"{file} was not read: {error}.") from None
    except Exception as error:  # a damaged pickle can fail in many ways
        reason = str(error)[:200] or type(error).__name__
        raise DataError(f"{file} is not a complete pickle of the official format: {reason}.") from error
    if not isinstance(found, dict):
        raise DataError(f"{file} contains a {type(found).__name__}, expected a dictionary.")
    return {_key(key): value.values if isinstance(value, _Array) else value for key, value in found.items()}


def _key(key: object) -> Any:
    return key.encode() if isinstance(key, str) else key
