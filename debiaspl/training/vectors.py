"""DebiasPL on feature vectors in memory: a linear classifier from a few labels and many vectors without."""

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
).with_settings(["joint=false"])
"""A classifier of vectors: the learning rate falls to 0, so that the last weights need little averaging."""


@dataclass(frozen=True, eq=False)
class FittedVectors:
    """What was learned, on the CPU."""

    network: LinearNetwork
    """Of vectors as they came: their scaling is inside."""
    prior: Tensor
    """(C,): how often the model predicted each class while it learned, the bias that was taken out of its labels."""
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
    """Train a linear classifier with DebiasPL. Every row also serves as an unlabeled one, as in FixMatch. Rows hold
    finite numbers, and two classes or more have labels: whoever calls it has seen to that.

    Args:
        vectors: (N, D) floats, a row per image.
        labels: int64, (N,); -1 where there is none.
        num_classes: number of classes.
        strength: how much of the bias is removed; 0 is FixMatch.
        momentum: how slowly the estimate of the bias follows.
        threshold: labels less confident than this are not learned from. FixMatch's 0.95 is for deep networks.
        steps: chosen by the number of rows, if not given.
        seed: decides order and views.
        device: ``cuda`` if there is one, else ``cpu``, unless given.
        unit: vectors are told apart by their direction, as those of an encoder are: they are divided by their length.
            Else every feature is divided by its deviation.
        graph: begin with a classifier of labels that spread over the graph of nearest neighbours.
    """
    first = "graph" if graph else "random"
    recipe = LINEAR.with_settings(
        [f"threshold={threshold}", f"strength={strength}", f"momentum={momentum}", f"first_classifier={first}"]
    )
    known = (labels >= 0).nonzero().flatten()
    scaling = Scaling.of(vectors, unit)
    everything = ImageSet(Vectors(scaling(vectors)[:, None]), labels, tuple(map(str, range(num_classes))))
    labeled = everything.select(known)
    chosen = {
        "seed": seed,
        "steps": enough_steps(len(vectors)) if steps is None else steps,
        # A batch larger than the set would hold the same vectors twice.
        "labeled_batch": min(recipe.labeled_batch, len(known)),
        "unlabeled_batch": min(recipe.unlabeled_batch, len(vectors)),
    }
    recipe = recipe.with_settings([f"{name}={value}" for name, value in chosen.items()])
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
    """Of vectors as they came, (N, D): (N, C)."""
    return torch.cat([network(part).softmax(-1) for part in torch.split(vectors, CHUNK)])


def enough_steps(rows: int) -> int:
    """To see each row a few times, and few enough to take seconds."""
    return min(max(rows // 50, 500), 1000)
