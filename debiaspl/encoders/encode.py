"""Turns a task of images into a task of an encoder's vectors, for the same training loop."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data import DataError, Hints, ImageSet, Task
from debiaspl.data.errors import shown
from debiaspl.data.images import same_images
from debiaspl.data.vectors import Vectors
from debiaspl.encoders.cache import EncodedViews, Features, Shared, cached_features
from debiaspl.encoders.network import EncoderNetwork
from debiaspl.models import Network, Scaling

WEAK, STRONG = 2, 2
"""Number of views of each image, in addition to the image itself, if views are computed."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """A task of vectors, and what is needed to go back to images."""

    task: Task
    network: EncoderNetwork
    """The network for images; its encoder and scaling made the vectors."""
    skipped: dict[str, str]
    """Files that could not be read, with the reason; they are not in the task."""
    lengths: tuple[float, float]
    """Mean lengths of the features, relative to their mean and to 0, before scaling."""

    def whole(self, trained: Network) -> Network:
        """The network for images with the classifier of ``trained``, a network for the vectors."""
        network = deepcopy(self.network)
        network.head.load_state_dict(trained.head.state_dict())
        return network.eval()


def encode(
    task: Task,
    network: EncoderNetwork,
    folder: Path,
    change: Callable[..., Tensor] | None = None,
    flip: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
    shared: Shared | None = None,
) -> Encoded:
    """The same task with vectors instead of images.

    Args:
        task: a task of images.
        network: a frozen encoder with its own weights. Its classifier is not used, and its scaling is replaced.
        folder: where features are stored. They are computed once: another task of the same images, with other labels,
            finds them there.
        change: turns a weak view of an image into a strong one. Two weak and two strong views of each are computed; if
            it is None, none are, and strong views must be made from the vectors.
        flip: whether a mirrored image shows the same thing.
        progress: called with the number of images done and the total.
        shared: processes that share the work; all of them must call this.
    """
    views = EncodedViews() if change is None else EncodedViews(WEAK, STRONG, flip, change)

    def features_of(images: ImageSet, views: EncodedViews) -> tuple[ImageSet, Features]:
        return images, cached_features(network.encoder, images, folder, views, progress, shared)

    learned_from = features_of(task.every_image(), views)
    images, features = learned_from
    bad = {images.ids[place]: why for place, why in features.skipped.items()}
    plain = features.plain[[place for place in range(len(images)) if place not in features.skipped]]
    if not len(plain):
        raise DataError(f"none of {len(images):,} images can be read: {shown([f'{n} ({w})' for n, w in bad.items()])}.")
    scaling = Scaling.of(plain, unit=True)

    def encoded(part: ImageSet, apart: bool = False) -> ImageSet:
        nonlocal bad
        own = apart and not (set(part.ids) <= set(images.ids) and same_images(part, images))
        home, found = features_of(part, EncodedViews()) if own else learned_from
        bad = bad | {home.ids[place]: why for place, why in found.skipped.items()}
        return _encoded(part, home, found, scaling)

    _refuse_lost(task.labeled, bad)
    unlabeled = encoded(task.unlabeled)
    validation = None if task.validation is None else encoded(task.validation, apart=True)
    hints = task.hints
    if hints is not None and len(unlabeled) < len(task.unlabeled):
        read = torch.tensor([name not in bad for name in task.unlabeled.ids])
        hints = Hints(hints.label[read], hints.confidence[read])
    whole = Task(encoded(task.labeled), unlabeled, encoded(task.test, apart=True), validation, hints)
    made = deepcopy(network)
    made.scaling = scaling.to(next(network.parameters()).device)
    lengths = float((plain - scaling.mean).norm(dim=-1).mean()), float(plain.norm(dim=-1).mean())
    return Encoded(whole, made, bad, lengths)


def _encoded(part: ImageSet, home: ImageSet, found: Features, scaling: Scaling) -> ImageSet:
    """The readable images of this part, as vectors; ``found`` are the features of all images of ``home``."""
    place = {name: number for number, name in enumerate(home.ids)}
    rows = torch.tensor([place[name] for name in part.ids])
    kept = [number for number, row in enumerate(rows.tolist()) if row not in found.skipped]
    if not kept:
        raise DataError(f"none of {len(part):,} images of a part of the task can be read, such as {part.ids[0]}.")
    read = torch.tensor(kept)
    rows = rows[read]
    views = [found.plain[None], found.weak, found.strong]
    values = torch.stack([scaling(view[rows]) for views_of_kind in views for view in views_of_kind], 1)
    ids = tuple(part.ids[number] for number in read.tolist())
    return ImageSet(Vectors(values, len(found.strong)), part.labels[read], part.classes, ids, part.truth[read])


def _refuse_lost(labeled: ImageSet, bad: dict[str, str]) -> None:
    read = torch.tensor([name not in bad for name in labeled.ids])
    lost = set(labeled.labels.tolist()) - set(labeled.labels[read].tolist())
    if lost:
        names = ", ".join(labeled.classes[label] for label in sorted(lost))
        raise DataError(f"no labeled image of {names} can be read. Every class needs one. Replace these files.")
