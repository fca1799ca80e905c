"""CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023) as teachers, with ``transformers``."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import DataError, ImageSet, in_order
from debiaspl.encoders.pretrained import Pretrained
from debiaspl.encoders.text import KINDS, class_directions, load_both_sides
from debiaspl.zeroshot.looking import Looking, in_parts
from debiaspl.zeroshot.photos import sized
from debiaspl.zeroshot.teacher import Progress, no_progress

# CLIP's own, for folders without these values; otherwise the model decides.
MEAN, STD = (0.4815, 0.4578, 0.4082), (0.2686, 0.2613, 0.2758)


class ClipTeacher(Looking):
    """``softmax(scale * cos(image, class))``, with the model's own scale.

    Class names are encoded by ``debiaspl.encoders.text``. SigLIP gives each pair an independent probability,
    ``sigmoid(scale * cos + bias)``; if exactly one class is true, the class probabilities are the softmax of those
    logits, in which the bias cancels.
    """

    default_templates = "general"

    def __init__(self, name_or_folder: str, device: torch.device | None = None, batch: int = 64) -> None:
        self.source, self.batch = Pretrained(name_or_folder), batch
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.config = self.source.config()
        if self.config.model_type not in KINDS:
            raise DataError(
                f"{name_or_folder} is a model of type {self.config.model_type!r}, expected {' or '.join(KINDS)}, which "
                "read both images and texts."
            )
        self.name = name_or_folder.rstrip("/").rpartition("/")[2]
        self.size: int | None = self.config.vision_config.image_size
        self.about = f"{self.name}, a vision-language model of type {self.config.model_type}."
        self.note = f"{self.name} has most likely seen images of such classes, with captions that name them."
        # Half of the memory and much faster on a GPU; too inexact and slow on a CPU.
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self._model: Any = None

    def identity(self) -> dict[str, Any]:
        return {"kind": self.config.model_type, "weights": self.source.identity(), "dtype": str(self.dtype)}

    @property
    def model(self) -> Any:
        if self._model is None:
            self._model = load_both_sides(self.source, self.config.model_type).to(self.device, self.dtype)
        return self._model

    @torch.no_grad()
    def class_features(self, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        """(C, D), each of length 1."""
        return class_directions(self.model, self.source.tokenizer(), self.config, classes, templates)

    @torch.no_grad()
    def image_features(self, images: Tensor) -> Tensor:
        """Features of uint8 images, (N, 3, size, size): (N, D), each of length 1."""
        told = self.source.preprocessing()
        mean, std = (torch.tensor(told.get(key) or own) for key, own in (("image_mean", MEAN), ("image_std", STD)))
        shape = (1, -1, 1, 1)
        pixels = images.to(self.device).float() / 255
        pixels = (pixels - mean.view(shape).to(pixels)) / std.view(shape).to(pixels)
        pooled = self.model.vision_model(pixel_values=pixels.to(self.dtype)).pooler_output
        if self.config.model_type == "clip":
            pooled = self.model.visual_projection(pooled)
        return F.normalize(pooled.float(), dim=-1)

    @torch.no_grad()
    def look(
        self, images: ImageSet, progress: Progress = no_progress, mirrored: bool = False
    ) -> tuple[Tensor, dict[int, str]]:
        assert self.size is not None
        width = (
            self.config.projection_dim if self.config.model_type == "clip" else self.config.vision_config.hidden_size
        )
        found = torch.zeros((len(images), width))
        skipped: dict[int, str] = {}
        for number, drawn in enumerate(in_order(sized(images, self.size), self.batch), 1):
            if len(drawn.positions):
                pictures = to_size(drawn.pictures[0], self.size)
                found[drawn.positions] = self.image_features(pictures.flip(-1) if mirrored else pictures).cpu()
            skipped |= drawn.skipped
            progress(f"{self.name} looks", min(number * self.batch, len(images)), len(images))
        return found, skipped

    @torch.no_grad()
    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        known = self.class_features(classes, templates).cpu()
        scale = self.model.logit_scale.float().exp().cpu()
        return torch.cat([(scale * part @ known.T).softmax(-1) for part in in_parts(vectors)])


def to_size(pictures: Tensor, size: int) -> Tensor:
    """uint8 (N, C, H, W) as colour images of one size: scaled until they just cover it, and cropped to the centre."""
    if pictures.shape[1] == 1:
        pictures = pictures.expand(-1, 3, -1, -1)
    height, width = pictures.shape[2:]
    if (height, width) == (size, size):
        return pictures
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = pictures[:, :, top : top + side, left : left + side].float()
    scaled = F.interpolate(square, (size, size), mode="bicubic", antialias=True, align_corners=False)
    return scaled.round_().clamp_(0, 255).to(torch.uint8)
