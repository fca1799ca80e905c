"""The first classifier of a network that is fine-tuned: what is fitted to its features before they change.

A classifier that starts at random changes good features before it knows anything, so it is trained first (Kumar et al.,
Fine-tuning can distort pretrained features, 2022). Its confidence decides which photos are learned from, and that of a
fit may be anything: it is calibrated on labels that were held out.
"""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from debiaspl.data import Task
from debiaspl.features.crosscheck import SUPERVISED, crosscheck
from debiaspl.features.fit import LINEAR, TableTask, enough_steps, fit_recipe
from debiaspl.features.shares import PHOTOS
from debiaspl.features.table import FeatureTable
from debiaspl.models import Network
from debiaspl.training.classifier import FIT, all_features, first_classifier, refuse_random_features, with_finite_bias
from debiaspl.training.method import DEBIASPL, with_method
from debiaspl.training.parts import find
from debiaspl.training.recipe import Recipe

FOLDS = 3


def begin(recipe: Recipe, network: Network, task: Task) -> dict[str, Tensor]:
    """Weights of ``network.head``, by name: ``first_classifier``, which may be the fit of a frozen encoder here."""
    if recipe.first_classifier != FIT:
        return first_classifier(recipe, network, task)
    refuse_random_features(recipe, network=network)
    encoder, device = deepcopy(network).eval(), torch.device("cpu")
    features, labels = (part.to(device) for part in all_features(encoder, task, recipe.fit_on))
    learns = find("algorithm", recipe.algorithm.name).makes_pseudo_labels
    method = DEBIASPL if learns else SUPERVISED
    weight, bias = fitted_head(features, labels, task.labeled.classes, recipe.seed, method)
    head = encoder.head.requires_grad_(False)
    head.weight.copy_(weight)
    head.bias.copy_(bias)
    return with_finite_bias(head)


def fitted_head(
    features: Tensor, labels: Tensor, classes: tuple[str, ...], seed: int, method: str = DEBIASPL
) -> tuple[Tensor, Tensor]:
    """Weights and bias of a linear classifier of raw features, (N, D): what this method fits to them, with its logits
    divided by the temperature that the cross-check found. ``labels`` are -1 where there is none.

    The fit divides each row by its length, which a linear classifier cannot: all count as of mean length."""
    table = FeatureTable(features, unit=True, device=features.device)
    recipe = with_method(LINEAR.changed(first_classifier="graph", optimise=PHOTOS), method)
    recipe = replace(recipe, steps=enough_steps(len(table)), seed=seed)
    counts = torch.bincount(labels[labels >= 0])
    folds, temperature = min(FOLDS, int(counts[counts > 1].sum())), 1.0
    task = TableTask(labels, classes, tuple(map(str, range(len(table)))))
    if folds:
        (checked,) = crosscheck({method: recipe}, table, task, folds)
        temperature = 1.0 if checked.calibrated is None else checked.calibrated.temperature
    fitted = fit_recipe(recipe, table, task).network
    scaling = table.scaling
    length = (features - scaling.mean).norm(dim=-1).mean().clamp_min(1e-12)
    weight = fitted.head.weight * (scaling.gain / length)
    return weight / temperature, (fitted.head.bias - weight @ scaling.mean) / temperature
