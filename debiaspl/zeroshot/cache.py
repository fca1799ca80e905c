"""Stores zero-shot predictions on disk, to be found again by their inputs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from debiaspl.data import DataError, ImageSet, LazyImages
from debiaspl.data.decode import BadImage
from debiaspl.files import parse_json, write_bytes
from debiaspl.zeroshot.teacher import Progress, Teacher, no_progress

_CHUNK = 100


def predict_once(
    teacher: Teacher,
    images: ImageSet,
    classes: Sequence[str],
    templates: Sequence[str],
    folder: Path | None,
    progress: Progress = no_progress,
) -> tuple[Tensor, dict[int, str], bool]:
    """Probabilities and unreadable images of ``teacher.predict``, and whether they came from ``folder``.

    They are found by model, templates, classes and the contents of the images: if one of these changes, they are
    computed again. Names, labels and true labels do not count; so a teacher that uses names and no pixels is never
    cached.
    """
    if folder is None or teacher.size is None:
        return *teacher.predict(images, classes, templates, progress), False
    facts = {
        "teacher": teacher.identity(),
        "classes": list(classes),
        "templates": list(templates),
        "size": teacher.size,
        "images": contents(images, progress),
    }
    path = folder / f"{_digest(json.dumps(facts, sort_keys=True).encode())[:32]}.safetensors"
    if path.exists():
        return *_read(path, (len(images), len(classes))), True
    probabilities, skipped = teacher.predict(images, classes, templates, progress)
    _write(path, probabilities, skipped, facts)
    return probabilities, skipped, False


def contents(images: ImageSet, progress: Progress = no_progress) -> str:
    """A digest of the images: of the files' bytes, or of the pixels if they are in memory."""
    found, stored, total = hashlib.sha256(), images.images, len(images)
    if isinstance(stored, LazyImages):
        for done, position in enumerate(stored.positions.tolist()):
            try:
                content = stored.files.read(position)
            except BadImage:
                content = b""
            found.update(hashlib.sha256(content).digest())
            if done % _CHUNK == 0:
                progress("reading the files", done, total)
        progress("reading the files", total, total)
    else:
        found.update(json.dumps(list(stored.shape)).encode())
        for positions in torch.split(torch.arange(total), _CHUNK):
            found.update(stored[positions.to(stored.device)].cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def _write(path: Path, probabilities: Tensor, skipped: Mapping[int, str], facts: Mapping[str, Any]) -> None:
    table = probabilities.contiguous()
    about = {"sha256": _digest(table.numpy().tobytes()), "skipped": list(skipped.items()), "made from": facts}
    write_bytes(path, to_bytes({"probabilities": table}, metadata={"debiaspl": json.dumps(about)}))


def _read(path: Path, shape: tuple[int, int]) -> tuple[Tensor, dict[int, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            about = parse_json(file.metadata()["debiaspl"])
            probabilities: Tensor = file.get_tensor("probabilities")
        if about["sha256"] != _digest(probabilities.numpy().tobytes()):
            raise ValueError("its numbers are not those that were written")
        if tuple(probabilities.shape) != shape:
            raise ValueError(f"it contains {tuple(probabilities.shape)} numbers, expected {shape}")
        return probabilities, {int(position): str(reason) for position, reason in about["skipped"]}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"the stored predictions in {path} are damaged ({error}), for example by a full disk or an incomplete "
            "copy. Delete this file: they will be computed again."
        ) from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
