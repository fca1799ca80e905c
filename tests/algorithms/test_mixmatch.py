"""MixMatch: guessed labels, mixed images, squared errors."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import MixMatch, Models
from debiaspl.algorithms.mixing import mixup, sharpen
from tests.algorithms.test_algorithms import LABELED, UNLABELED, Linear, batch, biased_debiaser, models
from tests.reference import mixmatch as twin

PRIOR = [0.4, 0.3, 0.2, 0.1]


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


def test_a_label_is_guessed_from_the_mean_of_the_views():
    """(0.9, 0.1) and (0.5, 0.5): the mean is (0.7, 0.3), its squares are 0.49 and 0.09."""

    class Told(torch.nn.Module):
        def forward(self, images):
            return images.flatten(1)

    told, algorithm = Told(), MixMatch(alpha=0.0, unlabeled_weight=1.0, ramp_up=0.0)
    views = tuple(torch.tensor(pair).log().view(1, 2, 1, 1) for pair in ([0.9, 0.1], [0.5, 0.5]))
    drawn = replace(at(), labeled=torch.zeros(1, 2, 1, 1), labels=torch.tensor([0]), weak=views)
    loss = algorithm.losses(Models(told, told), drawn)["unlabeled"]
    guess = torch.tensor([0.49, 0.09]) / 0.58
    expected = [(torch.tensor(pair) - guess).square().mean() for pair in ([0.9, 0.1], [0.5, 0.5])]
    torch.testing.assert_close(loss, torch.stack(expected).mean())
    torch.testing.assert_close(algorithm.monitors["confidence"], torch.tensor(0.7))


def test_without_mixing_it_is_the_squared_error_of_each_view():
    drawn, used = at(), models()
    losses = MixMatch(alpha=0.0, unlabeled_weight=1.0, ramp_up=0.0).losses(used, drawn)
    logits = [used.student(view) for view in drawn.weak]
    guess = sharpen(torch.stack([view.softmax(-1) for view in logits]).mean(0), 0.5)
    expected = torch.stack([(view.softmax(-1) - guess).square().mean() for view in logits]).mean()
    torch.testing.assert_close(losses["unlabeled"], expected)
    torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(drawn.labeled), drawn.labels))


def test_the_weight_grows_in_a_straight_line():
    used = models()
    algorithm = MixMatch(ramp_up=0.5)
    nothing, half, whole, later = (algorithm.losses(used, at(done))["unlabeled"] for done in (0.0, 0.25, 0.5, 0.9))
    assert nothing == 0
    torch.testing.assert_close(2 * half, whole)
    assert torch.equal(whole, later)


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


def test_guessed_labels_carry_no_gradient():
    """The gradient is that of the mixtures alone: the same as with a teacher that is a copy."""
    drawn, used = at(), models()
    teacher = Linear(0)
    (own,) = torch.autograd.grad(MixMatch().losses(used, drawn)["unlabeled"], used.student.weight)
    losses = MixMatch().losses(Models(used.student, teacher), at())
    losses["unlabeled"].backward()
    assert torch.equal(own, used.student.weight.grad)
    assert own.abs().sum() > 0
    assert teacher.weight.grad is None


def test_a_teacher_that_is_not_the_student_guesses():
    used = Models(Linear(0), Linear(7))
    algorithm = MixMatch()
    algorithm.losses(used, at())
    mean = torch.stack([used.teacher(view).softmax(-1) for view in at().weak]).mean(0)
    assert torch.equal(algorithm.monitors["pseudo_label"], mean.argmax(-1))


def seeds(*numbers):
    return [torch.Generator().manual_seed(number) for number in numbers]


def test_the_correction_learns_once_and_in_training_alone():
    used = models()
    algorithm = MixMatch(biased_debiaser())
    algorithm.eval().losses(used, at())
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(PRIOR))
