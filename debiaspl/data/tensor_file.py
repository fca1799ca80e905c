"""Tensors and a few texts in one safetensors file, with a digest that covers both. Reading one executes nothing.

The digest finds damage: a bad disk, a copy that was broken off. Whoever means harm can write a new one.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

DIGEST = "sha256"


class Damaged(ValueError):  # noqa: N818 - it names the file's fault
    """The file is not what was written; the message is a short reason, without the name of the file."""


def tensor_file(tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> bytes:
    """The content of such a file. Tensors lie on the CPU, each in memory of its own."""
    return save(dict(tensors), metadata={**texts, DIGEST: digest_of_tensors(tensors, texts)})


def read_tensor_file(path: Path, need_digest: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and texts, the digest among them. Raises Damaged, or OSError. Earlier versions, and other programs,
    write no digest: such a file is read only where none is needed."""
    try:
        with safe_open(path, framework="pt") as file:
            texts = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise Damaged(f"it cannot be read as safetensors: {error}") from error
    covered = {name: text for name, text in texts.items() if name != DIGEST}
    if need_digest and DIGEST not in texts:
        raise Damaged("it has no digest")
    if DIGEST in texts and texts[DIGEST] != digest_of_tensors(tensors, covered):
        raise Damaged("its content does not match its digest")
    return tensors, texts


def digest_of_tensors(tensors: Mapping[str, Tensor], texts: Mapping[str, str] | None = None) -> str:
    """Of names, kinds, shapes and numbers, and of the texts, in hexadecimal."""
    digest = hashlib.sha256()
    if texts is not None:
        digest.update(json.dumps(sorted(texts.items())).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
