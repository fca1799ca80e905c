"""CoMatch against its slow twin, its memory step by step, and what may receive a gradient."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import Batch, Models
from debiaspl.algorithms.comatch import CoMatch
from debiaspl.debias import Correction
from tests.algorithms.test_algorithms import (
    CLASSES,
    FEATURES,
    LABELED,
    PRIOR,
    UNLABELED,
    Features,
    batch as two_views,
    biased_debiaser,
)
from tests.reference import comatch as twin, paper


def batch(seed: int = 1) -> Batch:
    drawn = two_views(2, seed)
    return replace(drawn, weak=drawn.weak[:1])


def models(seed: int = 0) -> Models:
    student = Features(seed)
    return Models(student, student)


def comatch(correction: Correction | None = None, **settings: float) -> CoMatch:
    """Equal first weights at every call; a memory of two batches."""
    chosen = {"threshold": 0.6, "memory": 2 * (LABELED + UNLABELED), "embedding": 3, "graph_threshold": 0.3, **settings}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return CoMatch(CLASSES, FEATURES, correction, **chosen)


def embedded(algorithm: CoMatch, network: Features, images: torch.Tensor) -> list[list[float]]:
    """By hand, row by row."""
    outputs = algorithm.projection(network.embed(images)).tolist()
    return [twin.normalised(row) for row in outputs]


def one_hot(label: int) -> list[float]:
    return [float(number == label) for number in range(CLASSES)]


def test_four_steps_equal_the_paper():
    """A memory of two batches: the third step is the first that is smoothed; what it leaves there is not."""
    used = models()
    algorithm = comatch(unlabeled_weight=2.0, contrast_weight=3.0)
    memory: list[tuple[list[float], list[float]]] = []
    for number in range(4):
        drawn = batch(number)
        losses = algorithm.losses(used, drawn)

        own = used.student(drawn.weak[0]).softmax(-1).tolist()
        places = embedded(algorithm, used.student, drawn.weak[0])
        labels = own
        if number >= 2:
            assert len(memory) == algorithm.memory
            labels = [twin.smoothed(p, z, memory, 0.9, 0.2) for p, z in zip(own, places, strict=True)]
        strong = used.student(drawn.strong[0]).tolist()
        first, second = (embedded(algorithm, used.student, view) for view in drawn.strong)

        assert losses["unlabeled"].item() == pytest.approx(2 * twin.soft_loss(labels, strong, 0.6), rel=1e-5)
        assert losses["contrast"].item() == pytest.approx(3 * twin.contrast(first, second, labels, 0.2, 0.3), rel=1e-5)
        labeled = F.cross_entropy(used.student(drawn.labeled), drawn.labels)
        torch.testing.assert_close(losses["labeled"], labeled)
        kept = [max(label) >= 0.6 for label in labels]
        assert algorithm.monitors["kept"].tolist() == kept
        assert 0 < sum(kept) < UNLABELED
        assert algorithm.monitors["pseudo_label"].tolist() == [label.index(max(label)) for label in labels]

        known = embedded(algorithm, used.student, drawn.labeled)
        memory += list(zip(places, own, strict=True))
        memory += [(place, one_hot(label)) for place, label in zip(known, drawn.labels.tolist(), strict=True)]
        memory = memory[-algorithm.memory :]


def test_with_a_debiaser_labels_come_from_the_old_prior_and_margins_from_the_new():
    drawn, used, old = batch(), models(), PRIOR
    loss = comatch(biased_debiaser()).losses(used, drawn)["unlabeled"]
    weak, strong = used.student(drawn.weak[0]).tolist(), used.student(drawn.strong[0]).tolist()
    labels = [paper.debiased(row, old, 0.5) for row in weak]
    new = paper.moved_prior(old, weak, 0.9)
    shifted = [[value + 0.5 * math.log(share) for value, share in zip(row, new, strict=True)] for row in strong]
    assert loss.item() == pytest.approx(twin.soft_loss(labels, shifted, 0.6), rel=1e-5)


def test_the_oldest_images_are_forgotten_first():
    rows = LABELED + UNLABELED
    algorithm = comatch(memory=rows + 4)  # the second batch wraps round
    used = models()
    for number in range(2):
        algorithm.losses(used, batch(number))
    assert algorithm.written == 2 * rows
    newest = torch.tensor(embedded(algorithm, used.student, batch(1).weak[0]))
    places = (rows + torch.arange(UNLABELED)) % (rows + 4)
    torch.testing.assert_close(algorithm.embeddings[places], newest)
    oldest_left = torch.tensor(embedded(algorithm, used.student, batch(0).labeled))[-4:]
    torch.testing.assert_close(algorithm.embeddings[rows - 4 : rows], oldest_left)
