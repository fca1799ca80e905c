"""CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023) as teachers, with ``transformers``."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.encoders import load_encoder
from debiaspl.encoders.text import TextSide
from debiaspl.zeroshot.teacher import CHUNK, EncodingTeacher


class ClipTeacher(EncodingTeacher):
    """``softmax(scale * cos(image, class))``, with the model's own scale.

    SigLIP gives each pair an independent probability, ``sigmoid(scale * cos + bias)``; if exactly one class is true,
    the class probabilities are the softmax of those logits, in which the bias cancels.
    """

    default_templates = "general"

    def __init__(self, name_or_folder: str, folder: Path, device: torch.device) -> None:
        self.text, self.folder, self.source = TextSide(name_or_folder), folder, name_or_folder
        self.encoder = load_encoder(name_or_folder).to(device)
        self.name = self.encoder.name
        self.about = f"{self.name}, a vision-language model of type {self.text.config.model_type}."
        self.note = f"{self.name} has most likely seen images of such classes, with captions that name them."

    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        directions, scale = self.text.classifier(classes, templates)
        parts = [F.normalize(part, dim=-1) for part in torch.split(vectors, CHUNK)]
        return torch.cat([(scale * part @ directions.T).softmax(-1) for part in parts])
