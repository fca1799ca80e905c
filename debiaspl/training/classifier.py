"""Classifiers made from features: the first one of a run, and the final one of its trained model."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.algorithms import Algorithm
from debiaspl.data import UNLABELED, Hints, ImageSet, Task
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import rewritten
from debiaspl.encoders.coop import learned_text
from debiaspl.encoders.text import TextClassifier, text_side
from debiaspl.graph import Graph, probe_weights, ridge_weights
from debiaspl.models import Network, predict_set
from debiaspl.models.network import HiddenHead
from debiaspl.models.predict import BATCH
from debiaspl.training.group import ALONE, Group
from debiaspl.training.parts import LINEAR, find
from debiaspl.training.recipe import Recipe

CHUNK = 8192
MOST_MEMBERS = 2**24
"""Numbers of one-hot labels in memory at the same time."""
TEMPERATURE = 0.1
"""Of the cosines of nearest class means."""


def finished(model: Network, algorithm: Algorithm, task: Task, group: Group = ALONE) -> Network:
    """The model with its final classifier: the learned one, changed by the correction; or, if only features were
    learned, the nearest class mean of the labeled images. Without labels it does not change. The ranks of a group share
    the work."""
    correction, model = algorithm.correction, with_learned_head(model, algorithm)
    learned = algorithm.learns_labels and "classifier" not in correction.places()
    if learned or not task.has_labels:
        return model
    final, mean = deepcopy(model), mean_features(model, task.unlabeled, group)
    if algorithm.learns_labels:
        if correction.held_out and task.validation is not None:
            correction.choose(final.head, *labeled_features(model, task.validation))
        if any(type(part).look is not Correction.look for part in correction.each()):
            correction = deepcopy(correction)  # what it sees here must not affect the next training step
            correction.look(final, mean.new_zeros((1, *task.unlabeled.images.shape[1:])), mean.new_ones(()))
        final.head = correction.classifier(final.head, mean)
    else:
        # The nearest class mean, by the cosine of features minus the mean over the unlabeled images.
        final.head = class_means(model.head, *labeled_features(model, task.labeled), mean)
    return final


def with_learned_head(model: Network, algorithm: Algorithm) -> Network:
    """The averaged model with the classifier that the algorithm selects; the model itself, if it selects none."""
    further = algorithm.classifier()
    if further is None:
        return model
    final = deepcopy(model)
    final.head = further.finished(final.head)
    return final


def labeled_features(network: Network, images: ImageSet) -> tuple[Tensor, Tensor]:
    """Features of every readable image, with its label."""
    seen = list(predict_set(network, images, BATCH))
    positions = torch.cat([part.positions for part in seen]).to(images.labels.device)
    return torch.cat([part.features for part in seen]).float(), images.labels[positions]


@torch.no_grad()
def class_means(like: nn.Linear, features: Tensor, label: Tensor, mean: Tensor) -> nn.Linear:
    """Nearest mean of the features of each class, by the cosine of features minus ``mean``, as a classifier like
    ``like``. A class without labels is never predicted."""
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
    totals, counts = zip(*group.everyone((total.cpu(), count)), strict=True)
    return (sum(totals) / sum(counts)).float().to(images.labels.device)


RANDOM, MEANS, PROBE, FIT, TEXT, COOP = "random", "means", "probe", "fit", "text", "coop"
SHARES = "shares"
"""Beside the weights of a first classifier from a graph: class shares of the unlabeled images by the labels on it."""
NAMED = TEXT, COOP
"""Those that begin with class names."""


@torch.no_grad()
def first_classifier(recipe: Recipe, network: Network, task: Task) -> dict[str, Tensor]:
    """Weights of ``network.head``, by name, for a network with good features, and ``SHARES`` if they come from a graph.
    Every rank uses those of the first."""
    kind, like, shares = recipe.first_classifier, network.head, {}
    if not find("algorithm", recipe.algorithm.name).learns_labels:
        raise ValueError(f"first_classifier is {kind}, but {recipe.algorithm.name} trains none. Use random.")
    if kind == FIT:
        raise ValueError("first_classifier is fit, which the command can: debiaspl train PHOTOS --fine-tune.")
    refuse_random_features(recipe, network=network)
    encoder = deepcopy(network).eval()
    if kind in NAMED:
        head = _of_text(recipe, encoder, task)
    elif kind == MEANS:
        mean = labeled_features(encoder, _some(task.unlabeled, recipe.fit_on))[0].mean(0)
        head = class_means(like, *labeled_features(encoder, task.labeled), mean)
    elif kind == PROBE:
        head = probe(like, *labeled_features(encoder, task.labeled))
    else:
        features, given = all_features(encoder, task, recipe.fit_on)
        graph = Graph.of(features)
        likely = graph.most_likely(given, like.out_features)[1]
        label = torch.where(given >= 0, given, likely.to(given.device))
        head = as_classifier(like, ridge_weights(graph.units, label, like.out_features), features, graph.mean)
        shares = {SHARES: ranks.of_first(class_shares(label[given < 0], like.out_features))}
    return with_finite_bias(head) | shares


def class_shares(label: Tensor, num_classes: int) -> Tensor:
    return torch.bincount(label, minlength=num_classes).float() / len(label)


def with_finite_bias(head: nn.Linear) -> dict[str, Tensor]:
    """The weights of a classifier, by name. A class without labels has no chance at first, but with a bias of minus
    infinity it would never get one."""
    bias = torch.where(head.bias.isfinite(), head.bias, head.bias[head.bias.isfinite()].min())
    return {"head.weight": ranks.of_first(head.weight), "head.bias": ranks.of_first(bias)}


@torch.no_grad()
def probe(like: nn.Linear, features: Tensor, label: Tensor) -> nn.Linear:
    """A logistic regression, as a classifier of the same shape as ``like``."""
    return rewritten(like, *probe_weights(features, label, like.out_features))


@torch.no_grad()
def graph_hints(recipe: Recipe, network: Network, task: Task) -> Hints:
    """A label and a confidence for every unlabeled image, from the graph of the network's features. Every rank computes
    the same, and uses the result of the first."""
    refuse_random_features(recipe, f"{recipe.algorithm.name} learns from labels propagated over a graph", network)
    encoder, chosen = deepcopy(network).eval(), _some(task.unlabeled, recipe.fit_on)
    features, given = all_features(encoder, task, recipe.fit_on)
    graph, classes = Graph.of(features), task.labeled.num_classes
    # Uniform for a file that cannot be read.
    confidence, label = torch.full((len(task.unlabeled),), 1 / classes), torch.zeros(len(task.unlabeled)).long()
    if len(chosen) == len(task.unlabeled):
        places = torch.cat([seen.positions for seen in predict_set(encoder, chosen, BATCH)]).cpu()
        confidence[places], label[places] = (
            part[len(given) - len(places) :] for part in graph.most_likely(given, classes)
        )
    else:  # the graph has only some of them, and all get the labels of their neighbours in it
        spread = graph.spread(given, classes)
        for seen in predict_set(encoder, task.unlabeled, BATCH):
            places = seen.positions.cpu()
            confidence[places], label[places] = graph.carried(spread, seen.features.float()).max(-1)
    where = task.unlabeled.labels.device
    return Hints(ranks.of_first(label.to(where)), ranks.of_first(confidence.to(where)))


def all_features(network: Network, task: Task, fit_on: int) -> tuple[Tensor, Tensor]:
    """Features of the labeled images and then of (some of) the unlabeled ones; and their labels, -1 for none."""
    labeled, labels = labeled_features(network, task.labeled)
    unlabeled, _ = labeled_features(network, _some(task.unlabeled, fit_on))
    return torch.cat((labeled, unlabeled)), torch.cat((labels, labels.new_full((len(unlabeled),), UNLABELED)))


def _of_text(recipe: Recipe, network: Network, task: Task) -> nn.Linear:
    """The model's own zero-shot classifier, or the one that CoOp learns."""
    source = recipe.network.settings.get("source")
    if recipe.network.name != "encoder" or source is None:
        raise ValueError(f"the network {recipe.network.name} cannot read text, as first_classifier must. Use a CLIP.")
    read = named_classifier(recipe, task.labeled.classes, lambda: labeled_features(network, task.labeled))
    length = float(labeled_features(network, _some(task.unlabeled, recipe.fit_on))[0].norm(dim=-1).mean())
    return rewritten(network.head, *text_head(read, torch.zeros(network.num_features), 1.0, length))


def named_classifier(
    recipe: Recipe, classes: Sequence[str], labeled: Callable[[], tuple[Tensor, Tensor]]
) -> TextClassifier:
    """From the class names; CoOp also learns from the features and labels of the ``labeled`` images."""
    source = str(recipe.network.settings["source"])
    if recipe.first_classifier == TEXT:
        return text_side(source).classifier(classes)
    return learned_text(source, classes, *labeled(), seed=recipe.seed)


def text_head(read: TextClassifier, mean: Tensor, stretch: float, length: float) -> tuple[Tensor, Tensor]:
    """A linear classifier of z, where x = mean + stretch z are features of this length: its logits are
    scale * cos(x, direction). Features differ in length, and a linear classifier cannot divide by each length, so all
    are treated as if they had the mean length."""
    directions = read.directions.cpu() * (read.scale / max(length, 1e-12))
    return directions * stretch, directions @ mean.to(directions.dtype)


def _some(images: ImageSet, most: int) -> ImageSet:
    every = -(-len(images) // most)
    return images if every == 1 else images.select(torch.arange(0, len(images), every))


def refuse_random_features(recipe: Recipe, what: str = "", network: Network | None = None) -> None:
    """Raise if the first classifier, or ``what`` is said to need features, would be made from random ones."""
    pretrained = network is not None and type(network).load_pretrained is not Network.load_pretrained
    if not (recipe.start or pretrained or recipe.network.name in ("encoder", LINEAR)):
        what = what or f"first_classifier is {recipe.first_classifier}"
        raise ValueError(f"{what}, but the network starts with random weights. Use start=RUN, or a pretrained encoder.")
