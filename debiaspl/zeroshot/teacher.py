"""Zero-shot models: their interface, those that encode each image once, CLIP, and how to find one by name."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import ImageSet, LazyImages
from debiaspl.data.lazy import left_in_files
from debiaspl.data.listing import list_images
from debiaspl.data.manifest import stored_for
from debiaspl.encoders import Encoder, features_of, load_encoder
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.text import TextSide

Progress = Callable[[str, int, int | None], None]
"""Called with the current activity, the amount done, and the total; an activity ends where both are equal."""
CHUNK = 4096
SMALL = 128
"""Side to which an encoder of any size enlarges small photos at most: four times as fast, for a small loss."""


def open_photos(root: Path, classes: Sequence[str]) -> ImageSet:
    """Every image below ``root``, left in its file, without labels; or those whose features it holds."""
    listing = list_images(root)
    stored = stored_for(root, listing.files)
    return left_in_files(replace(listing, classes=tuple(classes)), stored.side if stored else 0)


def sized(images: ImageSet, encoder: Encoder, features: Path) -> ImageSet:
    """Read images from files at the size of the encoder, or as it has read those whose ``features`` are kept. Images in
    memory do not change."""
    if not isinstance(images.images, LazyImages):
        return images
    stored = stored_for(features, images.ids, encoder.name)
    side = stored.side if stored and stored.image_size == encoder.image_size else encoder.image_size
    return replace(images, images=replace(images.images, size=(side, side), channels=3))


def lite0_size(images: ImageSet, features: Path | None = None) -> int:
    """Side of these images inside efficientnet-lite0: of the ``features`` that a user named, or by the first image."""
    if stored := stored_for(features, images.ids, NAME):
        return stored.image_size
    return SMALL if min(images.images.shape[2:]) <= SMALL else 224


def no_progress(what: str, done: int, total: int | None) -> None:
    """Show no progress."""


class Teacher(Protocol):
    """Class names and templates -> probabilities for every image."""

    name: str
    """Its name in a table."""
    about: str
    """One honest line: what it is, how weak, and whether its pre-training saw such classes."""
    default_templates: str

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Probabilities, (N, C), in float32 on the CPU, and index -> reason of images that cannot be read."""


class EncodingTeacher(Teacher):
    """Encodes each image once, which is slow, and reads any class names from the vectors, which is fast."""

    encoder: Encoder
    folder: Path
    vectors: Tensor
    """(N, D), of the images that were predicted last."""

    @abstractmethod
    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Probabilities, (N, C), from these vectors."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Rows of images that cannot be read are uniform."""
        watch = partial(progress, f"{self.encoder.name} looks")
        self.vectors, skipped = features_of(sized(images, self.encoder, self.folder), self.encoder, self.folder, watch)
        reading = "reading the class names"  # seconds: the text model is loaded first
        progress(reading, 0, len(classes))
        probabilities = self.read(self.vectors, classes, templates)
        progress(reading, len(classes), len(classes))
        probabilities[list(skipped)] = 1 / len(classes)
        return probabilities, skipped


class ClipTeacher(EncodingTeacher):
    """CLIP (Radford et al., 2021): ``softmax(scale * cos(image, class))``, with the model's own scale.

    SigLIP (Zhai et al., 2023) gives each pair an independent probability, ``sigmoid(scale * cos + bias)``; if exactly
    one class is true, the class probabilities are the softmax of those logits, in which the bias cancels.
    """

    default_templates = "general"

    def __init__(self, name_or_folder: str, folder: Path, device: torch.device) -> None:
        self.text, self.folder = TextSide(name_or_folder), folder
        self.encoder = load_encoder(name_or_folder).to(device)
        self.name = self.encoder.name
        kind = f"a vision-language model of type {self.text.config.model_type}"
        self.about = f"{self.name}, {kind}, which has most likely seen images of such classes with their names."

    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        directions, scale = self.text.classifier(classes, templates)
        parts = [F.normalize(part, dim=-1) for part in torch.split(vectors, CHUNK)]
        return torch.cat([(scale * part @ directions.T).softmax(-1) for part in parts])


def find_teacher(name: str | None, size: int, folder: Path, device: torch.device) -> Teacher:
    """``conse``, the default; a file of arrays; or a CLIP or SigLIP by hub name or folder. ``size`` is what
    ``lite0_size`` says, and ``folder`` is where features are kept."""
    if name is None or name.lower() == "conse":
        from debiaspl.zeroshot.conse import ConseTeacher

        return ConseTeacher(size, folder, device)
    from debiaspl.zeroshot.arrays import ENDINGS, ArraysTeacher

    return ArraysTeacher(name) if name.endswith(ENDINGS) else ClipTeacher(name, folder, device)
