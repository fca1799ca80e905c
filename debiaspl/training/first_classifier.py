"""A classifier to begin with, where the features are good already: from the labels alone, or spread over a graph."""

from copy import deepcopy

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, ImageSet, Task
from debiaspl.debias import ranks
from debiaspl.graph import Graph, ridge_weights
from debiaspl.models import Network, predict_set
from debiaspl.models.predict import BATCH
from debiaspl.training.classifier import as_classifier, class_means
from debiaspl.training.parts import find
from debiaspl.training.recipe import Recipe

RANDOM, MEANS = "random", "means"
MOST = 100_000
"""Unlabeled images that the graph is made of, at most; of more, as many at equal distances."""


@torch.no_grad()
def first_classifier(recipe: Recipe, network: Network, task: Task) -> dict[str, Tensor]:
    """Weights of ``network.head``, by name, for a network whose features are good already.

    Every rank computes the same, and takes what the first has found.
    """
    _check(recipe, network, task)
    seer = deepcopy(network).eval()
    known, labels = _features(seer, task.labeled)
    if recipe.first_classifier == MEANS:
        mean = _features(seer, _some(task.unlabeled))[0].mean(0)
        head = class_means(network.head, known, labels, mean)
    else:
        unknown, _ = _features(seer, _some(task.unlabeled))
        features = torch.cat((known, unknown))
        given = torch.cat((labels, labels.new_full((len(unknown),), UNLABELED)))
        graph = Graph.of(features)
        spread = graph.spread(given, task.labeled.num_classes).argmax(-1).to(features.device)
        label = torch.where(given >= 0, given, spread)
        weights = ridge_weights(graph.units, label, task.labeled.num_classes)
        head = as_classifier(network.head, weights, features - graph.mean, graph.mean)
    # A class without labels gets no chance at first; a bias of minus infinity would never let it have one.
    bias = torch.where(head.bias.isfinite(), head.bias, head.bias[head.bias.isfinite()].min())
    return {"head.weight": ranks.of_first(head.weight), "head.bias": ranks.of_first(bias)}


def _features(network: Network, images: ImageSet) -> tuple[Tensor, Tensor]:
    """Of every image that can be read, with its label."""
    seen = list(predict_set(network, images, BATCH))
    positions = torch.cat([part.positions for part in seen]).to(images.labels.device)
    return torch.cat([part.features for part in seen]).float(), images.labels[positions]


def _some(images: ImageSet) -> ImageSet:
    every = -(-len(images) // MOST)
    return images if every == 1 else images.select(torch.arange(0, len(images), every))


def _check(recipe: Recipe, network: Network, task: Task) -> None:
    if not find("algorithm", recipe.algorithm.name).learns_labels:
        raise ValueError(
            f"first_classifier is {recipe.first_classifier}, but {recipe.algorithm.name} learns features alone and "
            "trains no classifier. Leave first_classifier=random."
        )
    pretrained = type(network).load_pretrained is not Network.load_pretrained
    if not (recipe.start or task.labeled.is_encoded or pretrained):
        raise ValueError(
            f"first_classifier is {recipe.first_classifier}, but the network begins with random weights, whose "
            "features tell nothing. Begin with a start, --set start=RUN, or leave first_classifier=random."
        )
