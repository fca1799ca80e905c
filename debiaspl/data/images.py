"""ImageSet: images with labels, for the whole package."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, cast

import numpy as np
import torch
from torch import Tensor

UNLABELED = -1
DIGESTED = 2**28
"""In bytes: of more numbers than that, every second, third, ... of each image is read for a digest."""


class Files(Protocol):
    """Image files by position, readable from any process."""

    def stamp(self, position: int) -> tuple[int, int]:
        """Size in bytes and time of the last change, in nanoseconds: a file whose stamp is the same is not read again.
        (-1, -1) if there is no such file."""

    def read(self, position: int) -> bytes: ...

    def part(self, position: int) -> bytes:
        """Some of its bytes, for a digest."""


class StoredImages(ABC):
    """Images that stay where they are until they are needed; indexed by positions, like a tensor. A dataclass."""

    positions: Tensor
    dtype = torch.uint8

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @abstractmethod
    def __getitem__(self, positions: Tensor) -> Tensor: ...

    def is_same(self, other: Self) -> bool:
        raise NotImplementedError

    def digest(self) -> bytes:
        raise NotImplementedError

    def select(self, positions: Tensor) -> Self:
        return self._at(self.positions[positions])

    def joined(self, other: Self) -> Self:
        """With more images of the same place."""
        return self._at(torch.cat((self.positions, other.positions)))

    def _at(self, positions: Tensor) -> Self:
        return replace(cast(Any, self), positions=positions)


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of one size with their labels, in memory or on disk.

    ``labels`` are for learning. ``truth`` is for monitors and tables: no loss reads it. The two differ for images whose
    label is hidden from the method; for unlabeled photos truth is -1 too.
    """

    images: Tensor | StoredImages
    """uint8, (N, C, H, W), C = 1 or 3, as a tensor or anything that converts to one; or features, floats, (N, D)."""
    labels: Tensor
    """int64, (N,), as a tensor or anything that converts to one; -1 if the image has no label for learning."""
    classes: tuple[str, ...]
    """Class names; label k is classes[k]. Empty if no image has a label: such a set may contain no image at all."""
    ids: tuple[str, ...] = ()
    """One name per image, for tables of predictions; by default its position."""
    truth: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    """int64, (N,), only for monitors; by default the labels."""

    def __post_init__(self) -> None:
        for name in ("images", "labels", "truth"):
            if isinstance(getattr(self, name), np.ndarray | list | tuple):
                made = _tensor(name, getattr(self, name))
                whole = name != "images" and not made.is_floating_point() and made.dtype != torch.bool
                object.__setattr__(self, name, made.long() if whole else made)
        if not self.is_encoded:
            check_pixels(self.images)
        shape = tuple(self.images.shape)
        if 0 in shape[1:] or (shape[0] == 0 and self.classes):
            raise ValueError(f"images have shape {shape}, expected at least one image of at least one pixel.")
        if len(self.classes) == 1 or len(set(self.classes)) != len(self.classes):
            raise ValueError(f"classes are {self.classes!r}, expected two or more different names.")
        self._check_labels("labels", self.labels)
        if not self.ids:
            object.__setattr__(self, "ids", tuple(str(position) for position in range(len(self))))
        if len(self.ids) != len(self):
            raise ValueError(f"{len(self.ids)} ids for {len(self)} images, expected one id per image.")
        if self.truth.numel() == 0:
            object.__setattr__(self, "truth", self.labels)
        self._check_labels("truth", self.truth)

    def __len__(self) -> int:
        return self.images.shape[0]

    def __repr__(self) -> str:  # not every id: a set may have a million
        shape = " x ".join(map(str, self.images.shape[1:]))
        return f"ImageSet({len(self)} of {shape}, {sum(self.counts())} with labels, classes={self.classes})"

    @classmethod
    def of(cls, images: Any, labels: Any, classes: Sequence[str] = ()) -> "ImageSet":
        """An image set from arrays: images (N, H, W), (N, H, W, C) or (N, C, H, W) of bytes, or of numbers from 0 to
        1; a class number for each, -1 for none, or None for all. Without ``classes``, their names are the numbers."""
        pixels = _pixels(_tensor("images", images))
        check_pixels(pixels)
        numbers = torch.full((len(pixels),), UNLABELED) if labels is None else _tensor("labels", labels)
        if numbers.is_floating_point() or numbers.dtype == torch.bool:
            raise ValueError(f"labels have dtype {numbers.dtype}, expected class numbers from 0 on, -1 for no label.")
        most = max(numbers.flatten().tolist(), default=UNLABELED)
        names = tuple(classes) or tuple(str(number) for number in range(most + 1))
        return cls(pixels, numbers.long(), names)

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        size: int | tuple[int, int] | None = None,
        channels: int = 3,
        image: str | None = None,
        label: str | None = None,
        classes: Sequence[str] = (),
    ) -> "ImageSet":
        """An image set in memory from a data set of Hugging Face ``datasets``, of torchvision, or any sequence of
        (image, label).

        Args:
            dataset: has a length; its items are pairs, or images and labels by the names of columns. An image is one of
                Pillow or an array; a label is a class number or name; -1 or None: no label.
            size: side, or height and width, that every image gets, as in photos: scaled until it covers it, and
                cropped to the centre. By default that of the first image.
            channels: 3 or 1.
            image: name of the column of images; by default ``image`` or ``img``.
            label: name of the column of labels; by default ``label``, ``labels`` or ``fine_label``.
            classes: names of the classes; by default those of the data set, or the numbers.
        """
        from debiaspl.data.sequence import read_sequence  # it imports this module

        return read_sequence(dataset, size, channels, (image, label), classes)

    @property
    def is_encoded(self) -> bool:
        """Whether it contains features instead of images."""
        return len(self.images.shape) == 2 and self.images.dtype.is_floating_point

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def channels(self) -> int:
        return self.images.shape[1]

    def counts(self) -> list[int]:
        """Number of labels per class; images without a label are not counted."""
        return torch.bincount(self.labels[self.labels >= 0], minlength=self.num_classes).tolist()

    def select(self, indices: Tensor | Sequence[int]) -> "ImageSet":
        """The images at these positions, in this order."""
        chosen = torch.as_tensor(indices, dtype=torch.int64)
        ids = tuple(self.ids[position] for position in chosen.tolist())
        here = chosen.to(self.images.device)
        images = self.images[here] if isinstance(self.images, Tensor) else self.images.select(here)
        own = chosen.to(self.labels.device)
        return replace(self, images=images, labels=self.labels[own], truth=self.truth[own], ids=ids)

    def joined(self, other: "ImageSet") -> "ImageSet":
        """These images, followed by those of another part of the same set."""
        one, two = self.images, cast(Any, other.images)
        if isinstance(one, Tensor):
            # One part may have stayed off the device because it did not fit; then both go there.
            where = one.device if one.device == two.device else torch.device("cpu")
            images: Tensor | StoredImages = torch.cat((one.to(where), two.to(where)))
        else:
            images = one.joined(two)
        labels, truth = (torch.cat(pair) for pair in ((self.labels, other.labels), (self.truth, other.truth)))
        return replace(self, images=images, labels=labels, truth=truth, ids=self.ids + other.ids)

    def without_labels(self) -> "ImageSet":
        """The same images with every label hidden; the truth is kept for monitors."""
        return replace(self, labels=torch.full_like(self.labels, UNLABELED), truth=self.truth)

    def to(self, device: torch.device) -> "ImageSet":
        """Move to the device: labels always, images if they are in memory and fit beside the training."""
        images = self.images
        if isinstance(images, Tensor) and _fits(images, device):
            images = images.to(device)
        return replace(self, images=images, labels=self.labels.to(device), truth=self.truth.to(device))

    def _check_labels(self, name: str, labels: Tensor) -> None:
        if labels.dtype != torch.int64 or labels.shape != (len(self),):
            found = f"{name} have shape {tuple(labels.shape)} and dtype {labels.dtype}"
            raise ValueError(f"{found}, expected int64 ({len(self)},): one class number per image, -1 for none.")
        low, high = (int(labels.min()), int(labels.max())) if len(labels) else (UNLABELED, UNLABELED)
        if low < UNLABELED or high >= self.num_classes:
            expected = f"-1 (no label) to {self.num_classes - 1}, as there are {self.num_classes} classes"
            raise ValueError(f"{name} run from {low} to {high}, expected {expected}.")


@dataclass(frozen=True)
class TrainTest:
    """A set and its test set."""

    train: ImageSet
    test: ImageSet


def same_images(one: ImageSet, other: ImageSet) -> bool:
    """Whether images of the same name are the same images, wherever both sets have the name."""
    place = {name: number for number, name in enumerate(other.ids)}
    shared = [(number, place[name]) for number, name in enumerate(one.ids) if name in place]
    if not shared:
        return True
    ours, theirs = zip(*shared, strict=True)
    first: Any = one.select(ours).images
    second: Any = other.select(theirs).images
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.equal(first.cpu(), second.cpu())
    return type(first) is type(second) and bool(first.is_same(second))


def content_digest(images: Tensor | StoredImages) -> bytes:
    """A quick digest that changes when images change or swap places: of the numbers in memory, and of the sizes and
    parts of files. Copies of the same files have the same digest."""
    if not isinstance(images, Tensor):
        return images.digest()
    every = max(1, images.numel() * images.dtype.itemsize // DIGESTED)
    part = images.flatten(1)[:, ::every].contiguous().cpu() if images.numel() else images.cpu()
    return hashlib.blake2b(part.view(torch.uint8).numpy().data, digest_size=16).digest()


def _fits(images: Tensor, device: torch.device) -> bool:
    """Whether they fit into half of the device's free memory."""
    size = images.numel() * images.dtype.itemsize
    return device.type != "cuda" or size < torch.cuda.mem_get_info(device)[0] / 2


def _tensor(name: str, values: Any) -> Tensor:
    try:
        return torch.as_tensor(values if isinstance(values, Tensor) else np.asarray(values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} are no tensor: {error} Expected one number type and shape.") from error


def check_pixels(images: Tensor | StoredImages) -> None:
    shape = tuple(images.shape)
    if images.dtype != torch.uint8 or len(shape) != 4 or shape[1] not in (1, 3):
        found = f"images have shape {shape} and dtype {images.dtype}, expected uint8 (N, C, H, W) with C = 1 or 3"
        raise ValueError(f"{found}. For other layouts: ImageSet.of, or (images * 255).to(torch.uint8), permute.")


def _pixels(images: Tensor) -> Tensor:
    """Convert to uint8, (N, C, H, W)."""
    if images.ndim == 3:
        images = images.unsqueeze(1)
    elif images.ndim == 4 and images.shape[1] not in (1, 3) and images.shape[3] in (1, 3):
        images = images.permute(0, 3, 1, 2)
    if images.dtype not in (torch.uint8, torch.bool) and images.numel():
        floats = images.is_floating_point()
        if bool(((images >= 0) & (images <= (1 if floats else 255))).all()):
            images = (images * 255 if floats else images).round().to(torch.uint8)
    return images.contiguous()
