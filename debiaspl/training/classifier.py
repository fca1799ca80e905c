"""Turns the trained model into the final model."""

from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.algorithms import Algorithm
from debiaspl.data import ImageSet, Task
from debiaspl.models import Network, predict_set
from debiaspl.models.heads import HiddenHead
from debiaspl.models.predict import BATCH
from debiaspl.training.group import ALONE, Group

CHUNK = 8192
MOST_MEMBERS = 2**24
"""Numbers of one-hot labels in memory at the same time."""
TEMPERATURE = 0.1
"""Temperature of the cosines of nearest class means."""


def finished(model: Network, algorithm: Algorithm, task: Task, group: Group = ALONE) -> Network:
    """The model with its final classifier: the learned one, or the additional one that an algorithm has trained,
    changed by the correction; or, if only features were learned, the nearest class mean of the labeled images. Without
    labels the model does not change.

    The ranks of a group share the work, so all of them must call this.
    """
    correction, model = algorithm.correction, with_learned_head(model, algorithm)
    learned = algorithm.learns_labels and "classifier" not in correction.places()
    if learned or not task.has_labels:
        return model
    final, mean = deepcopy(model), mean_features(model, task.unlabeled, group)
    if algorithm.learns_labels:
        if correction.held_out and task.validation is not None:
            correction.choose(final.head, *labeled_features(model, task.validation))
        if correction.looks:
            correction = deepcopy(correction)  # what it sees here must not affect the next training step
            correction.look(final, mean.new_zeros((1, *task.unlabeled.images.shape[1:])), mean.new_ones(()))
        final.head = correction.classifier(final.head, mean)
    else:
        final.head = nearest_class_mean(model, task.labeled, mean)
    return final


def with_learned_head(model: Network, algorithm: Algorithm) -> Network:
    """The averaged model with the classifier that the algorithm selects; the model itself, if it selects none."""
    further = algorithm.classifier()
    if further is None:
        return model
    final = deepcopy(model)
    final.head = further.finished(final.head)
    return final


@torch.no_grad()
def nearest_class_mean(model: Network, labeled: ImageSet, mean: Tensor) -> nn.Linear:
    """A classifier that predicts the class whose labeled images are nearest on average, by the cosine of features minus
    ``mean``, the mean over the unlabeled images. A class without labels is never predicted."""
    return class_means(model.head, *labeled_features(model, labeled), mean)


def labeled_features(network: Network, images: ImageSet) -> tuple[Tensor, Tensor]:
    """Features of every readable image, with its label."""
    seen = list(predict_set(network, images, BATCH))
    positions = torch.cat([part.positions for part in seen]).to(images.labels.device)
    return torch.cat([part.features for part in seen]).float(), images.labels[positions]


@torch.no_grad()
def class_means(like: nn.Linear, features: Tensor, label: Tensor, mean: Tensor) -> nn.Linear:
    """Nearest mean of the features of each class, as a classifier of the same shape as ``like``."""
    sums = torch.zeros((like.out_features, features.shape[1]), device=features.device)
    rows = min(CHUNK, max(MOST_MEMBERS // like.out_features, 1))
    for part, own in zip(torch.split(features, rows), torch.split(label, rows), strict=True):
        # A matrix product, not index_add, which adds in no fixed order on a GPU.
        members = F.one_hot(own, like.out_features).to(sums.dtype)
        sums += members.T @ F.normalize(part - mean, dim=-1)
    head = as_classifier(like, F.normalize(sums, dim=-1), features, mean)
    head.bias[torch.bincount(label, minlength=like.out_features) == 0] = -torch.inf
    return head


@torch.no_grad()
def as_classifier(like: nn.Linear, directions: Tensor, features: Tensor, mean: Tensor) -> nn.Linear:
    """Weights for unit vectors, (C, D), as a linear classifier of raw features. All are treated as if they had the mean
    length of these ``features`` minus ``mean``."""
    head = deepcopy(like).requires_grad_(False)  # a new one would draw random numbers
    length = torch.cat([(part - mean).norm(dim=-1) for part in torch.split(features, CHUNK)]).mean()
    head.weight.copy_(directions / (TEMPERATURE * length.clamp_min(1e-12)))
    head.bias.copy_(-head.weight @ mean)
    return head


@torch.no_grad()
def mean_features(model: Network, images: ImageSet, group: Group = ALONE) -> Tensor:
    """The mean of what the classifier's weights are multiplied with."""
    total, count = torch.zeros((), device=images.labels.device), 0
    for seen in predict_set(model, images, BATCH, group.number, group.count):
        inputs = model.head.first(seen.features) if isinstance(model.head, HiddenHead) else seen.features
        total, count = total + inputs.double().sum(0), count + len(inputs)
    (total, count), *others = group.everyone((total.cpu(), count))
    for more, further in others:
        total, count = total + more, count + further
    return (total / count).float().to(images.labels.device)
