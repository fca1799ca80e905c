"""DebiasPL on feature vectors in memory: a linear classifier from few labeled and many unlabeled vectors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from debiaspl.data import ImageSet, Task, Vectors
from debiaspl.debias import Debiaser
from debiaspl.models import LinearNetwork, Scaling
from debiaspl.training.loop import fit
from debiaspl.training.recipe import Choice, Recipe

CHUNK = 8192
LINEAR = Recipe(
    "linear",
    network=Choice("linear"),
    strong=Choice("hide"),
    flip=False,
    learning_rate=1.0,
    arc=1.0,
    weight_decay=1e-4,
    average_decay=0.9,
).changed(joint=False)
"""A classifier of vectors: the learning rate falls to 0, so that the last weights need little averaging."""


@dataclass(frozen=True, eq=False)
class FittedVectors:
    """The trained classifier, on the CPU."""

    network: LinearNetwork
    """For raw vectors: their scaling is inside."""
    prior: Tensor
    """(C,): how often the model predicted each class during training, the bias that was removed from its labels."""
    steps: int


def fit_vectors(
    vectors: Tensor,
    labels: Tensor,
    num_classes: int,
    *,
    strength: float = 0.5,
    momentum: float = 0.99,
    threshold: float = 0.7,
    steps: int | None = None,
    seed: int = 0,
    device: torch.device | None = None,
    unit: bool = False,
    graph: bool = False,
) -> FittedVectors:
    """Train a linear classifier with DebiasPL. Every row is also used as an unlabeled one, as in FixMatch. The caller
    must ensure that rows are finite and that at least two classes have labels.

    Args:
        vectors: (N, D) floats, a row per image.
        labels: int64, (N,); -1 for no label.
        num_classes: number of classes.
        strength: how much of the bias is removed; 0 is FixMatch.
        momentum: momentum of the running estimate of the bias.
        threshold: labels less confident than this are not used. FixMatch's 0.95 is for deep networks.
        steps: training steps; by default chosen from the number of rows.
        seed: seed of order and views.
        device: ``cuda`` or ``cpu``; by default ``cuda`` if available.
        unit: divide vectors by their length, for those that differ by their direction, as an encoder's. Otherwise
            every feature is divided by its deviation.
        graph: start with a classifier of labels propagated over the graph of nearest neighbours.
    """
    first = "graph" if graph else "random"
    recipe = LINEAR.changed(threshold=threshold, strength=strength, momentum=momentum, first_classifier=first)
    known = (labels >= 0).nonzero().flatten()
    scaling = Scaling.of(vectors, unit)
    everything = ImageSet(Vectors(scaling(vectors)[:, None]), labels, tuple(map(str, range(num_classes))))
    labeled = everything.select(known)
    recipe = recipe.changed(
        seed=seed,
        steps=enough_steps(len(vectors)) if steps is None else steps,
        # A batch larger than the set would contain the same vectors twice.
        labeled_batch=min(recipe.labeled_batch, len(known)),
        unlabeled_batch=min(recipe.unlabeled_batch, len(vectors)),
    )
    where = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    step = fit(recipe, Task(labeled, everything.without_labels(), labeled), where)
    network = LinearNetwork(vectors.shape[1], num_classes)
    network.load_state_dict(step.finished().state_dict())
    network.scaling = scaling
    correction = step.algorithm.correction
    assert isinstance(correction, Debiaser)
    return FittedVectors(network.eval().requires_grad_(False), correction.prior.detach().float().cpu(), recipe.steps)


@torch.no_grad()
def probabilities(network: LinearNetwork, vectors: Tensor) -> Tensor:
    """Class probabilities, (N, C), of raw vectors, (N, D)."""
    return torch.cat([network(part).softmax(-1) for part in torch.split(vectors, CHUNK)])


def enough_steps(rows: int) -> int:
    """Enough to see each row a few times, and few enough to take seconds."""
    return min(max(rows // 50, 500), 1000)
