"""FlexMatch: thresholds of classes from the latest confident label of every image."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms import Batch, FixMatch, FlexMatch
from debiaspl.debias import Correction
from tests.algorithms.test_algorithms import CLASSES, UNLABELED, batch, biased_debiaser, models
from tests.reference import flexmatch as twin
from tests.reference import paper

IMAGES = 40


def drawn(seed: int = 1) -> Batch:
    """A batch of images 0..39, of which some are drawn twice, as at the end of an epoch."""
    positions = torch.randint(IMAGES, (UNLABELED,), generator=torch.Generator().manual_seed(seed))
    assert len(positions.unique()) < UNLABELED
    return replace(batch(seed=seed), positions=positions)


def flexmatch(correction: Correction | None = None, **settings) -> FlexMatch:
    return FlexMatch(CLASSES, IMAGES, correction, **settings)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("warm_up", [True, False])
@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_steps_equal_the_slow_twin(strength, warm_up, joint):
    used, prior = models(), [0.4, 0.3, 0.2, 0.1]
    settings = {"threshold": 0.7, "warm_up": warm_up, "joint": joint, "unlabeled_weight": 2.0}
    algorithm = flexmatch(biased_debiaser(strength), **settings)
    latest = [0] * 13 + [1] * 9 + [2] * 5 + [-1] * 13  # some images are labeled already: thresholds are high enough
    algorithm.latest.copy_(torch.tensor(latest))
    kept = 0
    for seed in range(1, 6):
        step = drawn(seed)
        losses = algorithm.losses(used, step)
        weak, strong = used.student(step.weak[0]).tolist(), used.student(step.strong[0]).tolist()
        labeling = [paper.debiased(row, prior, strength) for row in weak]
        prior = paper.moved_prior(prior, weak, 0.9)
        costs = [[paper.marginal_loss(row, label, prior, strength) for label in range(CLASSES)] for row in strong]
        of_class = twin.thresholds(latest, CLASSES, 0.7, warm_up)
        latest = twin.remembered(latest, step.positions.tolist(), labeling, 0.7)
        assert losses["unlabeled"].item() == pytest.approx(2 * twin.unlabeled_loss(labeling, costs, of_class), rel=1e-5)
        torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(step.labeled), step.labels))
        assert algorithm.latest.tolist() == latest
        kept += algorithm.monitors["kept"].sum()
    assert 0 < kept < 5 * UNLABELED
    assert len(set(algorithm.thresholds().tolist())) > 1


def test_an_image_that_is_twice_in_a_batch_keeps_its_last_confident_label():
    algorithm = FlexMatch(3, 5, threshold=0.9)
    positions = torch.tensor([1, 1, 2, 1, 2])
    algorithm._remember(positions, torch.tensor([0, 1, 2, 2, 0]), torch.tensor([True, True, True, False, False]))
    assert algorithm.latest.tolist() == [-1, 1, 2, -1, -1]


def test_classes_learned_alike_are_fixmatch_bit_for_bit():
    used, step = models(), drawn()
    algorithm = flexmatch(threshold=0.7)
    algorithm.latest.copy_(torch.arange(IMAGES) % CLASSES)
    expected = FixMatch(threshold=0.7).losses(used, step)
    for name, value in algorithm.losses(used, step).items():
        assert torch.equal(value, expected[name])


def test_wrong_settings_and_batches_teach():
    with pytest.raises(ValueError, match=r"threshold is 1\.2"):
        flexmatch(threshold=1.2)
    with pytest.raises(
        ValueError, match=r"16 unlabeled images, but Batch.positions has 0 entries.*set Batch.positions"
    ):
        flexmatch().losses(models(), batch())
