"""ContrastMatch: what the contrast is between, its schedule, and FixMatch where there is none."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import Batch, ContrastMatch, Models
from debiaspl.debias import Correction, Debiaser, LogitAdjustment
from tests.algorithms.test_algorithms import CLASSES, FEATURES, Features, batch as one_batch

COUNTS = (5, 3, 2, 1)


def batch(progress: float = 0.0) -> Batch:
    return replace(one_batch(), progress=torch.tensor(progress))


def made(correction: Correction | None = None, **settings: float) -> ContrastMatch:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ContrastMatch(correction, FEATURES, threshold=0.6, **settings)


def test_the_contrast_is_between_the_students_strong_and_the_teachers_weak_views():
    student, teacher, algorithm = Features(0), Features(1), made(contrast_weight=3.0, temperature=0.3)
    drawn = batch()
    found = algorithm.losses(Models(student, teacher), drawn)["contrast"]
    expected = algorithm.contrast(student.embed(drawn.strong[0]), teacher.embed(drawn.weak[0]))
    assert found.item() == pytest.approx(3 * expected.item())


@pytest.mark.parametrize(("progress", "share"), [(0.0, 1.0), (0.2, 0.5), (0.4, 0.0), (0.9, 0.0)])
def test_the_contrast_fades_in_a_line(progress, share):
    models, algorithm = Models(Features(0), Features(1)), made(contrast_until=0.4)
    whole = algorithm.losses(models, batch())["contrast"].item()
    assert algorithm.losses(models, batch(progress))["contrast"].item() == pytest.approx(share * whole, abs=1e-6)


def test_pseudo_labels_are_learned_from_later_and_the_prior_moves_before():
    models, debiaser = Models(Features(0), Features(1)), Debiaser(CLASSES, momentum=0.5)
    algorithm = made(debiaser, labels_from=0.5)
    assert algorithm.losses(models, batch(0.49))["unlabeled"].item() == 0
    assert algorithm.monitors["kept"].any()
    assert not torch.equal(debiaser.prior, torch.full((CLASSES,), 1 / CLASSES))
    assert algorithm.losses(models, batch(0.5))["unlabeled"].item() > 0


@pytest.mark.parametrize("correction", [Debiaser(CLASSES, 2.0, labeled_strength=3.0), LogitAdjustment(COUNTS)])
def test_until_pseudo_labels_are_learned_from_no_correction_changes_what_is_learned(correction):
    def gradients(chosen: Correction, progress: float) -> list[torch.Tensor]:
        models, algorithm = Models(Features(0), Features(1)), made(chosen, labels_from=0.5)
        losses = algorithm.losses(models, batch(progress))
        parameters = [*models.student.parameters(), *algorithm.contrast.projector.parameters()]
        return list(torch.autograd.grad(sum(losses.values()), parameters))

    correction(torch.tensor([[4.0, 1.0, 0.0, 0.0]]))  # a prior that is not uniform
    early = zip(gradients(correction, 0.4), gradients(Correction(), 0.4), strict=True)
    assert all(torch.equal(one, other) for one, other in early)
    late = zip(gradients(correction, 0.5), gradients(Correction(), 0.5), strict=True)
    assert not all(torch.equal(one, other) for one, other in late)


def test_the_labeled_margin_and_the_weight_count_once_pseudo_labels_do():
    correction = Debiaser(CLASSES, 0.0, labeled_strength=3.0)
    correction(torch.tensor([[4.0, 1.0, 0.0, 0.0]]))
    student, drawn = Features(0), batch(0.5)

    def losses(chosen: Correction, **settings: float) -> tuple[dict[str, torch.Tensor], ContrastMatch]:
        algorithm = made(chosen, labels_from=0.5, **settings)
        return algorithm.losses(Models(student, Features(1)), drawn), algorithm

    plain, _ = losses(Correction())
    found, _ = losses(correction)
    logits = correction.labeled_margin(student(drawn.labeled), drawn.labels)
    assert found["labeled"] != plain["labeled"]
    torch.testing.assert_close(found["labeled"], F.cross_entropy(logits, drawn.labels))
    twice, algorithm = losses(Correction(), unlabeled_weight=2.0)
    torch.testing.assert_close(twice["unlabeled"], 2 * plain["unlabeled"])
    marginal = Features(1)(drawn.weak[0]).softmax(-1).mean(0).detach()
    torch.testing.assert_close(algorithm.monitors["marginal"], marginal)
