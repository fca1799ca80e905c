"""UDA: soft, sharpened labels, and the annealing of the labeled loss."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import UDA
from tests.algorithms.test_algorithms import CLASSES, LABELED, PRIOR, batch, biased_debiaser, models
from tests.reference import paper, uda as twin


def at(done, **changes):
    """Labels that the network gets right, more or less surely: some are left out by annealing, some are not."""
    drawn = batch()
    labels = models().student(drawn.labeled).argmax(-1)
    return replace(drawn, **{"progress": torch.tensor(done), "labels": labels, **changes})


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_losses_equal_the_slow_twin(strength, joint):
    drawn, used = batch(), models()
    algorithm = UDA(biased_debiaser(strength), threshold=0.6, unlabeled_weight=2.0, joint=joint)
    losses = algorithm.losses(used, drawn)
    weak, strong = used.student(drawn.weak[0]).tolist(), used.student(drawn.strong[0]).tolist()
    new = paper.moved_prior(PRIOR, weak, 0.9)
    expected = 2 * twin.unlabeled_loss(weak, strong, PRIOR, new, strength, 0.6, 0.4)
    assert losses["unlabeled"].item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(drawn.labeled), drawn.labels))
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(new))
    assert 0 < algorithm.monitors["kept"].float().mean() < 1


@pytest.mark.parametrize("schedule", ["linear", "log", "exp"])
@pytest.mark.parametrize("done", [0.0, 0.3, 0.6, 1.0])
def test_annealing_equals_the_slow_twin(schedule, done):
    drawn, used = at(done), models()
    algorithm = UDA(annealing=schedule)
    eta = twin.limit(schedule, done, CLASSES)
    assert algorithm.limit(drawn.progress, CLASSES).item() == pytest.approx(eta, rel=1e-5)
    expected = twin.annealed_loss(used.student(drawn.labeled).tolist(), drawn.labels.tolist(), eta)
    assert algorithm.losses(used, drawn)["labeled"].item() == pytest.approx(expected, rel=1e-5)


def test_annealing_that_leaves_nothing_gives_a_loss_of_0():
    used = models()
    best = used.student.weight.detach()[:1].expand(LABELED, -1).reshape(LABELED, 3, 2, 2) * 5
    drawn = at(0.0, labeled=best, labels=torch.zeros(LABELED, dtype=torch.int64))
    assert UDA(annealing="linear").losses(used, drawn)["labeled"] == 0
