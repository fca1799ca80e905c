"""Features of many images, computed once and stored on disk."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from debiaspl.augment import RandAugment, Weak
from debiaspl.data import ImageSet, in_order
from debiaspl.data.lazy import LazyImages
from debiaspl.data.tensor_file import read_tensor_file, tensor_file
from debiaspl.debias import ranks
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.files import parse_json, write_bytes
from debiaspl.models import scale

CHUNK = 512
"""Images per file, and so the most work that an interruption can lose."""
BATCH = {"cpu": 16, "cuda": 256}
"""Images per batch: on a CPU so few that activations fit in its cache."""
SKIPPED = "skipped"
_FORMAT = 2
Watch = Callable[[int, int], None]
"""Called with the number of images done and the total."""


@dataclass(frozen=True)
class EncodedViews:
    """Which views of every image are encoded, in addition to the image itself."""

    weak: int = 0
    strong: int = 0
    flip: bool = True
    """Whether a mirrored image shows the same thing."""
    change: Callable[[Tensor, torch.Generator], Tensor] = field(default_factory=RandAugment.fixmatch)
    """Turns a weak view into a strong one; its ``repr`` must show its settings."""

    def key(self) -> list[Any]:
        """Everything that the views depend on."""
        flip = self.flip and self.weak + self.strong > 0
        return [self.weak, self.strong, flip, repr(self.change) if self.strong else ""]


class Shared(Protocol):
    """Processes that share the work, such as the ranks of a run; by default a single one."""

    @property
    def number(self) -> int: ...

    @property
    def count(self) -> int: ...

    def everyone(self, own: Any) -> list[Any]: ...


class _Alone:
    number, count = 0, 1

    def everyone(self, own: Any) -> list[Any]:
        return [own]


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a set of images, in the order of the set."""

    plain: Tensor
    """float32, (N, D): of the original images."""
    weak: Tensor
    """float32, (V, N, D): of weak views."""
    strong: Tensor
    """float32, (W, N, D): of strong views."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Index -> why a file could not be read; its rows are zeros."""


@torch.no_grad()
def cached_features(
    encoder: Encoder,
    images: ImageSet,
    folder: Path | str,
    views: EncodedViews | None = None,
    progress: Watch = lambda done, total: None,
    shared: Shared | None = None,
) -> Features:
    """Features of every image. Those already in ``folder`` for the same encoder, views and image contents are not
    computed again. ``progress(done, total)`` is called after every batch; where ``is_stored``, all of them are kept.
    Processes that share the work must all call this."""
    views, place, group = views or EncodedViews(), Path(folder), shared or _Alone()
    # A GPU draws other views and computes in half precision.
    device = next(encoder.parameters()).device.type
    key = hashlib.sha256(json.dumps([_FORMAT, fingerprint(encoder), views.key(), device]).encode()).hexdigest()
    chunks = torch.split(torch.arange(len(images)), CHUNK)
    own: dict[int, tuple[dict[str, Tensor], dict[int, str]]] = {}
    for number in range(group.number, len(chunks), group.count):
        chunk = chunks[number]
        part = images.select(chunk)
        path = place / f"{_key_of(key, part, number)}.safetensors"
        kept = _read(path)
        if kept is None:
            with ranks.alone():  # one process computes a chunk: its views must not depend on the number of processes
                kept = _compute(encoder, part, views, number, partial(_from, int(chunk[0]), len(images), progress))
            # A file that could not be opened may be readable the next time; a damaged one stays damaged.
            if not any(reason.startswith("cannot be opened") for reason in kept[1].values()):
                _write(path, *kept)
        own[number] = kept
        progress(int(chunk[-1]) + 1, len(images))
    whole: dict[int, tuple[dict[str, Tensor], dict[int, str]]] = {}
    for parts in group.everyone(own):
        whole |= parts
    found = [whole[number] for number in range(len(chunks))]
    skipped = {int(chunk[at]): why for chunk, (_, bad) in zip(chunks, found, strict=True) for at, why in bad.items()}
    joined = {name: torch.cat([part[name] for part, _ in found], dim=-2) for name in ("plain", "weak", "strong")}
    return Features(joined["plain"].float(), joined["weak"].float(), joined["strong"].float(), skipped)


def is_stored(done: int, total: int) -> bool:
    """Whether no features are lost if the work stops here."""
    return done == total or done % CHUNK == 0


def _from(first: int, total: int, progress: Watch, done: int) -> None:
    progress(first + done, total)


def _key_of(key: str, images: ImageSet, number: int) -> str:
    """The contents count, not the names: a renamed photo is the same photo."""
    found = hashlib.sha256(f"{key} {number} {tuple(images.images.shape)}".encode())
    stored = images.images
    if isinstance(stored, LazyImages):
        for position in stored.positions.tolist():
            try:
                found.update(hashlib.sha256(stored.files.read(position)).digest())
            except ValueError as error:  # cannot be opened
                found.update(str(error).encode())
    else:
        pixels = stored[torch.arange(len(images), device=stored.device)]
        found.update(pixels.cpu().contiguous().numpy().data)
    return found.hexdigest()


def _compute(
    encoder: Encoder, images: ImageSet, views: EncodedViews, number: int, progress: Callable[[int], None]
) -> tuple[dict[str, Tensor], dict[int, str]]:
    device = next(encoder.parameters()).device
    # Each chunk has its own generator, so that it can be computed without those before it.
    generator = torch.Generator(device).manual_seed(number)
    width, count = encoder.num_features, len(images)
    # Views in half precision: the error is far smaller than the difference between two views of an image.
    made = {
        "plain": torch.zeros((count, width)),
        "weak": torch.zeros((views.weak, count, width), dtype=torch.float16),
        "strong": torch.zeros((views.strong, count, width), dtype=torch.float16),
    }
    weak = Weak(flip=views.flip)
    skipped: dict[int, str] = {}
    for parameter in encoder.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    for before, drawn in enumerate(in_order(images, BATCH[device.type])):
        if before:
            progress(before * BATCH[device.type])  # not after the last batch: the chunk is not stored yet
        skipped |= drawn.skipped
        if not len(drawn.positions):
            continue
        pictures = drawn.pictures[0].to(device)
        made["plain"][drawn.positions] = _embedded(encoder, pictures)
        for view in range(views.weak):
            made["weak"][view, drawn.positions] = _embedded(encoder, weak(pictures, generator)).half()
        for view in range(views.strong):
            changed = views.change(weak(pictures, generator), generator)
            made["strong"][view, drawn.positions] = _embedded(encoder, changed).half()
    return made, skipped


def _embedded(encoder: Encoder, pictures: Tensor) -> Tensor:
    with torch.autocast(pictures.device.type, dtype=torch.bfloat16, enabled=pictures.is_cuda):
        features = encoder.embed(scale(pictures).contiguous(memory_format=torch.channels_last)).float()
    if not bool(features.isfinite().all()) or float(features.abs().max()) > torch.finfo(torch.float16).max:
        raise ValueError(f"the encoder {encoder.name} returns features that are not finite numbers. Use another one.")
    return features.cpu()


def _read(path: Path) -> tuple[dict[str, Tensor], dict[int, str]] | None:
    try:
        tensors, texts, _ = read_tensor_file(path)
        # Files that could not be read are reported the next time too.
        told = parse_json(texts[SKIPPED])
        skipped = {int(position): str(reason) for position, reason in told.items()}
        return {name: tensors[name] for name in ("plain", "weak", "strong")}, skipped
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None  # missing, damaged, or of an earlier version without a digest: computed again


def _write(path: Path, tensors: dict[str, Tensor], skipped: dict[int, str]) -> None:
    write_bytes(path, tensor_file(tensors, SKIPPED, json.dumps(skipped)))
