"""The text part of CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023): class names as directions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.pretrained import Pretrained
from debiaspl.encoders.templates import TEMPLATES, filled

KINDS = {"clip": "CLIPModel", "siglip": "SiglipModel"}
"""Types of models for images and texts, and their classes in transformers."""


class TextClassifier(NamedTuple):
    """``scale * cos(features, direction)`` are the model's own logits for an image."""

    directions: Tensor
    """(C, D), each of length 1."""
    scale: float


def load_both_sides(source: Pretrained, model_type: str) -> Any:
    """The whole model, with the image and the text part."""
    return source.model(getattr(source.transformers, KINDS[model_type]))


@torch.no_grad()
def class_directions(
    model: Any, tokenizer: Any, config: Any, classes: Sequence[str], templates: Sequence[str]
) -> Tensor:
    """(C, D), on the device of the model: for each class, the mean of the normalised features of its templates,
    normalised again."""
    length, device = config.text_config.max_position_embeddings, next(model.parameters()).device
    # SigLIP was trained on texts of one length, without a mask; CLIP's attention stops at the end of the text.
    padding: Any = "max_length" if config.model_type == "siglip" else True
    features = []
    for name in classes:
        told = tokenizer(
            filled(templates, name), padding=padding, truncation=True, max_length=length, return_tensors="pt"
        )
        ids = told["input_ids"].to(device)
        if config.model_type == "clip":
            mask = told["attention_mask"].to(device)
            pooled = model.text_projection(model.text_model(input_ids=ids, attention_mask=mask).pooler_output)
        else:
            pooled = model.text_model(input_ids=ids).pooler_output
        features.append(F.normalize(F.normalize(pooled.float(), dim=-1).mean(0), dim=-1))
    return torch.stack(features)


def has_text_side(name_or_folder: str) -> bool:
    """Whether this encoder belongs to a model for images and texts, with a tokenizer."""
    if name_or_folder == NAME:
        return False
    source = Pretrained(name_or_folder)
    if source.config().model_type not in KINDS:
        return False
    try:
        source.tokenizer()
    except DataError:
        return False
    return True


def refuse_without_text(name_or_folder: str) -> None:
    if not has_text_side(name_or_folder):
        raise ValueError(
            f"first_classifier is text, but the encoder {name_or_folder} cannot read text. Expected a model of type "
            f"{' or '.join(KINDS)} with its tokenizer. With this one, use first_classifier=random, means or graph."
        )


def text_classifier(
    name_or_folder: str, classes: Sequence[str], templates: Sequence[str] = TEMPLATES["general"]
) -> TextClassifier:
    """A classifier from class names, by an encoder's text part; ``snow_owl`` is read as ``snow owl``."""
    refuse_without_text(name_or_folder)
    source = Pretrained(name_or_folder)
    config, tokenizer = source.config(), source.tokenizer()
    model = load_both_sides(source, config.model_type)
    names = [name.replace("_", " ") for name in classes]
    directions = class_directions(model, tokenizer, config, names, templates)
    return TextClassifier(directions, float(model.logit_scale.exp()))
