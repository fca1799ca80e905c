"""What else there is for few labels on features: scikit-learn's methods, and two transductive ones of the literature.

Settings were chosen on draws 100 and 101 of EuroSAT and flowers20, as ours were.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from torch import Tensor

from debiaspl.graph import Graph


def methods(rows: np.ndarray, given: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """Labels of all rows, which have length 1; ``given`` is -1 where there is none."""

    def regression(balanced: bool = False) -> LogisticRegression:
        return LogisticRegression(C=30, max_iter=300, class_weight="balanced" if balanced else None)

    known = given >= 0
    units, labels = torch.from_numpy(rows), torch.from_numpy(given)
    graph = Graph.of(units)
    spreading = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.9, max_iter=50)
    training = SelfTrainingClassifier(regression(), threshold=0.8)
    return {
        "logistic regression": lambda: regression().fit(rows[known], given[known]).predict(rows),
        "class-balanced regression": lambda: regression(True).fit(rows[known], given[known]).predict(rows),
        "self-training": lambda: training.fit(rows, given).predict(rows),
        "LabelSpreading": lambda: spreading.fit(rows, given).transduction_,
        "graph diffusion": lambda: graph.spread(labels, int(given.max()) + 1).argmax(-1).numpy(),
        "LaplacianShot-like": lambda: laplacian(units, labels, graph),
        "TransCLIP-like": lambda: mixture(units, labels, graph),
    }


def laplacian(units: Tensor, labels: Tensor, graph: Graph, pull: float = 2.0, sharpness: float = 10.0) -> np.ndarray:
    """Nearest rectified prototypes, smoothed over the three nearest neighbours (Ziko et al., 2020)."""
    given, known = _one_hot(labels)
    prototypes = F.normalize(given.T @ units, dim=-1)
    joined = _with(given, known, (sharpness * units @ prototypes.T).softmax(-1))
    scores = sharpness * units @ F.normalize(joined.T @ units, dim=-1).T
    near = graph.near.places[:, :3]
    label = _with(given, known, scores.softmax(-1))
    for _ in range(20):
        label = _with(given, known, (scores + pull * label[near].sum(1)).softmax(-1))
    return label.argmax(-1).numpy()


def mixture(units: Tensor, labels: Tensor, graph: Graph, columns: int = 64, softness: float = 5.0) -> np.ndarray:
    """Gaussians of one diagonal covariance, with the labels of ten neighbours in each step (Zanella et al., 2024), in
    the largest principal components: in all columns it was 3 to 14 points worse."""
    given, known = _one_hot(labels)
    units = F.normalize(units @ torch.linalg.eigh(units.T @ units)[1][:, -columns:], dim=-1)
    centres, variance = F.normalize(given.T @ units, dim=-1), torch.full((units.shape[1],), 1 / units.shape[1])
    weights = graph.near.similarity[:, :10].clamp_min(0)
    label = _with(given, known, (50 * units @ centres.T).softmax(-1))
    # All given labels together count as much as all other rows.
    share = 1 + known.float() * (len(units) / int(known.sum()) - 1)
    for _ in range(10):
        scores = (units / variance) @ centres.T - (centres.square() / variance).sum(-1) / 2
        for _ in range(5):
            pulled = (weights[..., None] * label[graph.near.places[:, :10]]).sum(1)
            label = _with(given, known, (scores / softness + pulled).softmax(-1))
        members = label * share[:, None]
        centres = F.normalize((members.T @ units) / members.sum(0)[:, None].clamp_min(1e-9), dim=-1)
        apart = [(members[:, [number]] * (units - centre).square()).sum(0) for number, centre in enumerate(centres)]
        variance = torch.stack(apart).sum(0) / members.sum()
    return label.argmax(-1).numpy()


def _one_hot(labels: Tensor) -> tuple[Tensor, Tensor]:
    known = labels >= 0
    return F.one_hot(labels.clamp_min(0)).float() * known[:, None], known


def _with(given: Tensor, known: Tensor, label: Tensor) -> Tensor:
    return torch.where(known[:, None], given, label)
