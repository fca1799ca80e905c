"""MixMatch: guessed labels, mixed images, squared errors."""

from dataclasses import replace

import pytest
import torch

from debiaspl.algorithms import MixMatch, Models
from debiaspl.algorithms.mixing import mixup
from tests.algorithms.test_algorithms import LABELED, PRIOR, UNLABELED, Linear, batch, biased_debiaser, models
from tests.reference import mixmatch as twin


def at(done=0.5, views=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return replace(batch(views, seed), strong=(), progress=torch.tensor(done), generator=generator)


def revealed(count, alpha, seed=1):
    """Who is mixed with whom, and for what share: read off the mixtures of an identity matrix, drawn alike."""
    mixed = mixup(torch.zeros(count, 1), torch.eye(count), alpha, torch.Generator().manual_seed(seed))[1]
    others = mixed - mixed.diagonal().diag()
    return [int(row.argmax()) if row.sum() else number for number, row in enumerate(others)], mixed.diagonal().tolist()


@pytest.mark.parametrize("views", [1, 2, 3])
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_losses_equal_the_slow_twin(strength, views):
    drawn, used = at(views=views), models()
    algorithm = MixMatch(biased_debiaser(strength), views=views, unlabeled_weight=10.0, ramp_up=1.0)
    losses = algorithm.losses(used, drawn)
    known, unknown, new = twin.losses(
        used.student.weight.tolist(),
        drawn.labeled.flatten(1).tolist(),
        drawn.labels.tolist(),
        [view.flatten(1).tolist() for view in drawn.weak],
        *revealed(LABELED + views * UNLABELED, 0.75),
        PRIOR,
        0.9,
        strength,
        0.5,
    )
    assert losses["labeled"].item() == pytest.approx(known, rel=1e-5)
    assert losses["unlabeled"].item() == pytest.approx(10 * 0.5 * unknown, rel=1e-5)
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(new))


def test_one_pass_of_the_student_sees_all_mixtures_so_that_batch_norm_does():
    class Counting(Linear):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, images):
            self.seen.append((len(images), torch.is_grad_enabled()))
            return super().forward(images)

    student = Counting()
    MixMatch().losses(Models(student, student), at())
    assert student.seen == [(2 * UNLABELED, False), (LABELED + 2 * UNLABELED, True)]
