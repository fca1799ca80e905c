"""Mean Teacher: the squared distance from what an average of the student predicts."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import MeanTeacher, Models
from debiaspl.training import Choice
from tests.algorithms.test_algorithms import PRIOR, Linear, batch, biased_debiaser
from tests.reference import meanteacher as twin, paper
from tests.training.tiny import TINY


def at(done, seed=1):
    return replace(batch(views=2, seed=seed), strong=(), progress=torch.tensor(done))


def models() -> Models:
    return Models(Linear(0), Linear(7).requires_grad_(False))


@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("done", [0.0, 0.2, 0.5, 0.9])
def test_losses_equal_the_slow_twin(done, strength):
    drawn, used = at(done), models()
    algorithm = MeanTeacher(biased_debiaser(strength), unlabeled_weight=7.0, ramp_up=0.5)
    losses = algorithm.losses(used, drawn)
    student, teacher = used.student(drawn.weak[0]).tolist(), used.teacher(drawn.weak[1]).tolist()
    new = paper.moved_prior(PRIOR, teacher, 0.9)
    expected = 7 * twin.growth(done, 0.5) * twin.consistency(student, teacher, PRIOR, new, strength)
    assert losses["unlabeled"].item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(drawn.labeled), drawn.labels))
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(new))


def test_a_student_that_teaches_itself_is_refused():
    with pytest.raises(ValueError, match=r"mean-teacher needs an averaged teacher, but teacher is student"):
        replace(TINY, algorithm=Choice("mean-teacher"), teacher="student")
