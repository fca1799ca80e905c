"""From what was trained to what is used."""

from copy import deepcopy

import torch
from torch import Tensor

from debiaspl.data import ImageSet, in_order
from debiaspl.debias import Correction
from debiaspl.models import Network, scale
from debiaspl.training.evaluate import BATCH
from debiaspl.training.group import ALONE, Group


def finished(model: Network, correction: Correction, images: ImageSet, group: Group = ALONE) -> Network:
    """The model with the classifier that the correction makes of its own; ``images`` are those it was trained with.

    The ranks of a group share the work, so all of them must ask.
    """
    if type(correction).classifier is Correction.classifier:
        return model
    final = deepcopy(model)
    final.head = correction.classifier(final.head, mean_features(model, images, group))
    return final


@torch.no_grad()
def mean_features(model: Network, images: ImageSet, group: Group = ALONE) -> Tensor:
    total, count = torch.zeros((), device=images.labels.device), 0
    for drawn in in_order(images, BATCH, group.number, group.count):
        features = model.embed(scale(drawn.pictures[0].to(images.labels.device)))
        total, count = total + features.double().sum(0), count + len(features)
    (total, count), *others = group.everyone((total.cpu(), count))
    for more, further in others:
        total, count = total + more, count + further
    return (total / count).float().to(images.labels.device)
