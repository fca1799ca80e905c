"""Tensors and a JSON object in one safetensors file, with a digest of both. Reading it executes no code.

The digest detects damage, such as a bad disk or an incomplete copy, but not tampering. It is the last value of the JSON
object itself, because safetensors writes several texts in any order, and the same content should give the same bytes.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from debiaspl.files import parse_json

_SEAL = re.compile(r'(?:, )?"sha256": "([0-9a-f]{64})"}')


class Damaged(ValueError):  # noqa: N818 - it names what is wrong with the file
    """The file is not what was written; the message is a short reason, without the name of the file."""


def tensor_file(tensors: Mapping[str, Tensor], name: str, text: str) -> bytes:
    """The bytes of such a file; ``text`` is a JSON object. Tensors must be on the CPU, each with its own memory."""
    between = "" if text == "{}" else ", "
    whole = f'{text[:-1]}{between}"sha256": "{digest_of_tensors(tensors, name, text)}"}}'
    return save(dict(tensors), metadata={name: whole})


def read_tensor_file(
    path: Path, need_digest: bool = True, only: Sequence[str] = ()
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and texts by name; the texts without the digest. Raises Damaged or OSError. Files of other programs have
    no digest: they are only read without ``need_digest``. With ``only`` some tensors are read, unchecked."""
    try:
        with safe_open(path, framework="pt") as file:
            texts = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in only or file.keys()}
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise Damaged(f"it cannot be read as safetensors: {error}") from error
    for name, text in texts.items():
        seal = next((found for found in _SEAL.finditer(text) if found.end() == len(text)), None)
        if seal is not None:
            texts[name] = f"{text[: seal.start()]}}}"
            if not only and seal[1] != digest_of_tensors(tensors, name, texts[name]):
                raise Damaged("its content does not match its digest")
            return tensors, texts
    if need_digest:
        raise Damaged("it has no digest")
    return tensors, texts


def classes_of_run(folder: Path) -> tuple[str, ...] | None:
    """All class names, including classes never predicted, from the header of ``model.safetensors``; None without it."""
    try:
        with safe_open(folder / "model.safetensors", framework="np") as file:  # no tensor is read
            facts = parse_json((file.metadata() or {}).get("debiaspl", "{}"))
    except (OSError, SafetensorError, ValueError):
        return None
    names = facts.get("classes") if isinstance(facts, dict) else None
    return tuple(map(str, names)) if isinstance(names, list) else None


def digest_of_tensors(tensors: Mapping[str, Tensor], name: str = "", text: str = "") -> str:
    """Digest of names, dtypes, shapes and numbers, and of the text, in hexadecimal."""
    digest = hashlib.sha256()
    if name:
        digest.update(json.dumps([name, text]).encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
