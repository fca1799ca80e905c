"""From what was trained to what is used."""

from copy import deepcopy

import torch
from torch import Tensor

from debiaspl.data import ImageSet, in_order
from debiaspl.debias import Correction
from debiaspl.models import Network, scale
from debiaspl.training.evaluate import BATCH


def finished(model: Network, correction: Correction, images: ImageSet) -> Network:
    """The model with the classifier that the correction makes of its own; ``images`` are those it was trained with."""
    if type(correction).classifier is Correction.classifier:
        return model
    final = deepcopy(model)
    final.head = correction.classifier(final.head, mean_features(model, images))
    return final


@torch.no_grad()
def mean_features(model: Network, images: ImageSet) -> Tensor:
    total, count = torch.zeros((), device=images.labels.device), 0
    for drawn in in_order(images, BATCH):
        features = model.embed(scale(drawn.pictures[0].to(images.labels.device)))
        total, count = total + features.double().sum(0), count + len(features)
    return (total / count).float()
