"""Tensors and an object of JSON in one safetensors file, with a digest that covers both. Reading one executes nothing.

The digest finds damage: a bad disk, a copy that was broken off. Whoever means harm can write a new one. It is the last
value of the object itself, because safetensors writes several texts in any order, and the same content is to be the
same bytes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

_SEAL = re.compile(r'(?:, )?"sha256": "([0-9a-f]{64})"}')


class Damaged(ValueError):  # noqa: N818 - it names the file's fault
    """The file is not what was written; the message is a short reason, without the name of the file."""


class TensorFile(NamedTuple):
    """What such a file holds."""

    tensors: dict[str, Tensor]
    texts: dict[str, str]
    """By name, without the digest."""
    sealed: bool
    """Whether there is a digest, which then is right."""


def tensor_file(tensors: Mapping[str, Tensor], name: str, text: str) -> bytes:
    """The content of such a file; ``text`` is an object of JSON. Tensors lie on the CPU, each in memory of its own."""
    between = "" if text == "{}" else ", "
    whole = f'{text[:-1]}{between}"sha256": "{digest_of_tensors(tensors, name, text)}"}}'
    return save(dict(tensors), metadata={name: whole})


def read_tensor_file(path: Path, need_digest: bool = True) -> TensorFile:
    """Raises Damaged, or OSError. Earlier versions, and other programs, write no digest: such a file is read only where
    none is needed."""
    try:
        with safe_open(path, framework="pt") as file:
            texts = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise Damaged(f"it cannot be read as safetensors: {error}") from error
    for name, text in texts.items():
        seal = next((found for found in _SEAL.finditer(text) if found.end() == len(text)), None)
        if seal is not None:
            texts[name] = f"{text[: seal.start()]}}}"
            if seal[1] != digest_of_tensors(tensors, name, texts[name]):
                raise Damaged("its content does not match its digest")
            return TensorFile(tensors, texts, sealed=True)
    if need_digest:
        raise Damaged("it has no digest")
    return TensorFile(tensors, texts, sealed=False)


def digest_of_tensors(tensors: Mapping[str, Tensor], name: str = "", text: str = "") -> str:
    """Of names, kinds, shapes and numbers, and of the text, in hexadecimal."""
    digest = hashlib.sha256()
    if name:
        digest.update(json.dumps([name, text]).encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
