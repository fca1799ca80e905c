"""A classifier to begin with, where the features are good already: from the labels alone, spread over a graph, or from
the class names."""

from copy import deepcopy

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, ImageSet, Task
from debiaspl.debias import ranks
from debiaspl.encoders import Encoded
from debiaspl.encoders.text import TextClassifier, text_classifier
from debiaspl.graph import Graph, ridge_weights
from debiaspl.models import Network, predict_set
from debiaspl.models.predict import BATCH
from debiaspl.training.classifier import as_classifier, class_means
from debiaspl.training.parts import find
from debiaspl.training.recipe import Recipe

RANDOM, MEANS, TEXT = "random", "means", "text"
MOST = 100_000
"""Unlabeled images that the graph is made of, at most; of more, as many at equal distances."""


@torch.no_grad()
def first_classifier(recipe: Recipe, network: Network, task: Task, vectors: Encoded | None = None) -> dict[str, Tensor]:
    """Weights of ``network.head``, by name, for a network whose features are good already. ``vectors`` is where the
    vectors of the task come from, if it is one of vectors that an encoder has made.

    Every rank computes the same, and takes what the first has found.
    """
    _check(recipe, network, task)
    seer = deepcopy(network).eval()
    if recipe.first_classifier == TEXT:
        weight, bias = _of_text(recipe, seer, task, vectors)
        return {"head.weight": ranks.of_first(weight), "head.bias": ranks.of_first(bias)}
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


def _of_text(recipe: Recipe, network: Network, task: Task, vectors: Encoded | None) -> tuple[Tensor, Tensor]:
    """Weights and bias whose logits are those of the model's own zero-shot classifier."""
    source = recipe.network.settings.get("source")
    if recipe.network.name != "encoder" or source is None:
        raise ValueError(
            f"first_classifier is text, but the network is {recipe.network.name}, which reads no texts. Expected a "
            "CLIP or a SigLIP: --encoder NAME or FOLDER."
        )
    read = text_classifier(source, task.labeled.classes)
    if vectors is None:
        length = float(_features(network, _some(task.unlabeled))[0].norm(dim=-1).mean())
        found = text_head(read, torch.zeros(network.num_features), 1.0, length)
    else:
        scaling = vectors.network.scaling
        assert scaling is not None  # it is frozen
        centred, length = vectors.lengths
        found = text_head(read, scaling.mean.cpu(), centred / float(scaling.gain), length)
    device = network.head.weight.device
    return found[0].to(device), found[1].to(device)


def text_head(read: TextClassifier, mean: Tensor, stretch: float, length: float) -> tuple[Tensor, Tensor]:
    """A linear classifier of z, where x = mean + stretch z are features of this length: its logits are
    scale * cos(x, direction). Features differ in length, and a linear classifier cannot divide by each one's own; all
    are taken to have the mean."""
    directions = read.directions.cpu() * (read.scale / max(length, 1e-12))
    return directions * stretch, directions @ mean.to(directions.dtype)


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
