"""From what was trained to what is used."""

from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.algorithms import Algorithm
from debiaspl.data import ImageSet, Task
from debiaspl.models import Network, predict_set
from debiaspl.models.predict import BATCH
from debiaspl.training.group import ALONE, Group

TEMPERATURE = 0.1
"""Of the cosines that nearest class means make probabilities of."""


def finished(model: Network, algorithm: Algorithm, task: Task, group: Group = ALONE) -> Network:
    """The model with the classifier that is used in the end: the one it has learned, which an algorithm may have
    trained beside the network's own; what the correction makes of it;
    or, where only features were learned, the nearest class mean of the labeled images. Without labels there is none:
    the model is as it was trained.

    The ranks of a group share the work, so all of them must ask.
    """
    correction, model = algorithm.correction, with_learned_head(model, algorithm)
    learned = algorithm.learns_labels and "classifier" not in correction.places()
    if learned or not task.has_labels:
        return model
    final, mean = deepcopy(model), mean_features(model, task.unlabeled, group)
    if algorithm.learns_labels:
        if correction.looks:
            correction = deepcopy(correction)  # what it sees now is not what the next step is corrected by
            correction.look(final, mean.new_zeros((1, *task.unlabeled.images.shape[1:])), mean.new_ones(()))
        final.head = correction.classifier(final.head, mean)
    else:
        final.head = nearest_class_mean(model, task.labeled, mean)
    return final


def with_learned_head(model: Network, algorithm: Algorithm) -> Network:
    """The averaged model with the classifier that the algorithm names; the model itself, where it names none."""
    further = algorithm.classifier()
    if further is None:
        return model
    final = deepcopy(model)
    final.head = further.finished(final.head)
    return final


@torch.no_grad()
def nearest_class_mean(model: Network, labeled: ImageSet, mean: Tensor) -> nn.Linear:
    """A classifier whose largest logit is the class whose labeled images are nearest on average: by the cosine of
    features that ``mean``, the mean over the unlabeled images, is taken off from. A class without labels is never
    chosen."""
    features, labels = [], []
    for seen in predict_set(model, labeled, BATCH):
        features.append(seen.features)
        labels.append(labeled.labels[seen.positions.to(labeled.labels.device)])
    return class_means(model.head, torch.cat(features), torch.cat(labels), mean)


@torch.no_grad()
def class_means(like: nn.Linear, features: Tensor, label: Tensor, mean: Tensor) -> nn.Linear:
    """The nearest mean of the features of each class, as a classifier of the same shape as ``like``."""
    centred = features - mean
    # A product, not index_add: on a GPU that adds in no fixed order.
    members = F.one_hot(label, like.out_features).to(centred.dtype)
    directions = F.normalize(members.T @ F.normalize(centred, dim=-1), dim=-1)
    head = as_classifier(like, directions, centred, mean)
    head.bias[members.sum(0) == 0] = -torch.inf
    return head


@torch.no_grad()
def as_classifier(like: nn.Linear, directions: Tensor, centred: Tensor, mean: Tensor) -> nn.Linear:
    """Weights for unit vectors, (C, D), as a classifier of features as they come, which is linear: all of them are
    taken to have the mean length of ``centred``, some features that ``mean`` is taken off from."""
    head = deepcopy(like).requires_grad_(False)  # a new one would draw from the user's random numbers
    head.weight.copy_(directions / (TEMPERATURE * centred.norm(dim=-1).mean().clamp_min(1e-12)))
    head.bias.copy_(-head.weight @ mean)
    return head


@torch.no_grad()
def mean_features(model: Network, images: ImageSet, group: Group = ALONE) -> Tensor:
    total, count = torch.zeros((), device=images.labels.device), 0
    for seen in predict_set(model, images, BATCH, group.number, group.count):
        total, count = total + seen.features.double().sum(0), count + len(seen.features)
    (total, count), *others = group.everyone((total.cpu(), count))
    for more, further in others:
        total, count = total + more, count + further
    return (total / count).float().to(images.labels.device)
