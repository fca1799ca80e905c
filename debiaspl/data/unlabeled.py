"""Image sets without labels, for self-supervised algorithms."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from debiaspl.data.folder import left_in_files, read_listing
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.listing import list_images
from debiaspl.data.open import is_folder_of_images, open_data
from debiaspl.data.splits import Split


@dataclass(frozen=True)
class NoLabels:
    """Ignores all labels: uses every image of a folder, at any depth, or the training images of a known set."""

    takes_further: ClassVar[bool] = True

    def read(
        self,
        data: str,
        image_size: int,
        stream: bool,
        root: str | Path | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ImageSet:
        """The images at this size; with ``stream`` they stay in their files."""
        if not is_folder_of_images(data):
            whole = open_data(data, image_size, stream, root)
            further = whole.unlabeled
            return without_classes(whole.train if further is None else whole.train.joined(further))
        listing = list_images(Path(data).expanduser())
        return left_in_files(listing, image_size) if stream else read_listing(listing, image_size, progress=progress)[0]

    def split(self, labels: Tensor, seed: int) -> Split:
        return Split(torch.empty(0, dtype=torch.int64), torch.arange(len(labels)))


def without_classes(images: ImageSet) -> ImageSet:
    """The same images without classes and labels."""
    none = torch.full_like(images.labels, UNLABELED)
    return replace(images, labels=none, truth=none, classes=())
