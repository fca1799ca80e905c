"""The text part of CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023): class names as directions."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.hub import Pretrained
from debiaspl.encoders.templates import TEMPLATES, filled

KINDS = {"clip": "CLIPModel", "siglip": "SiglipModel"}
"""Types of models for images and texts, and their classes in transformers."""


class TextClassifier(NamedTuple):
    """``scale * cos(features, direction)`` are the model's own logits for an image."""

    directions: Tensor
    """(C, D), each of length 1."""
    scale: float


class TextSide:
    """The text part of a model for images and texts, which is loaded when it is first used."""

    def __init__(self, name_or_folder: str) -> None:
        """Raises an error for a model that cannot read text."""
        self._source = Pretrained(name_or_folder)
        self.config = self._source.config()
        if self.config.model_type not in KINDS:
            found = f"{name_or_folder} is a model of type {self.config.model_type!r}, which cannot read text"
            raise DataError(f"{found}. Expected a model for images and texts, of type {' or '.join(KINDS)}.")
        self._tokenizer = self._source.tokenizer()

    @torch.no_grad()
    def classifier(self, classes: Sequence[str], templates: Sequence[str] = TEMPLATES["general"]) -> TextClassifier:
        """For each class, the mean of the normalised features of its templates, normalised; _ is read as a space."""
        texts = (filled(templates, name.replace("_", " ")) for name in classes)
        features = [self.features(self.tokens(each)) for each in texts]
        directions = torch.stack([F.normalize(each.mean(0), dim=-1) for each in features])
        return TextClassifier(directions, float(self.model.logit_scale.exp()))

    @cached_property
    def model(self) -> Any:
        return self._source.model(getattr(self._source.transformers, KINDS[self.config.model_type]))

    def tokens(self, texts: list[str]) -> dict[str, Tensor]:
        # SigLIP was trained on texts of one length, without a mask; CLIP's attention stops at the end of the text.
        clip = self.config.model_type == "clip"
        length, padding = self.config.text_config.max_position_embeddings, True if clip else "max_length"
        tokens = self._tokenizer(texts, padding=padding, truncation=True, max_length=length, return_tensors="pt")
        return {name: tokens[name] for name in ("input_ids", *(["attention_mask"] if clip else []))}

    def features(self, tokens: dict[str, Tensor]) -> Tensor:
        """A row of length 1 for each text."""
        pooled = self.model.text_model(**tokens).pooler_output
        clip = self.config.model_type == "clip"
        return F.normalize((self.model.text_projection(pooled) if clip else pooled).float(), dim=-1)


def text_side(name_or_folder: str, learned: bool = False) -> TextSide:
    """The text part of this encoder. Raises ValueError if it has none or, where words are ``learned``, is no CLIP."""
    if name_or_folder != NAME:
        with suppress(DataError, ImportError):  # also a tokenizer that is not installed
            side = TextSide(name_or_folder)
            if not learned or side.config.model_type == "clip":
                return side
    first, kinds = ("coop", "clip") if learned else ("text", " or ".join(KINDS))
    found = f"first_classifier is {first}, but the encoder {name_or_folder} cannot read text that way"
    todo = "with this one, first_classifier=random, means, graph or probe."
    raise ValueError(f"{found}. Expected a model of type {kinds} with its tokenizer; {todo}")


def has_text_side(name_or_folder: str) -> bool:
    """Whether this encoder belongs to a model for images and texts, with a tokenizer."""
    try:
        text_side(name_or_folder)
    except ValueError:
        return False
    return True
