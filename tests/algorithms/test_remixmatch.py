"""ReMixMatch: anchored labels, mixed images, one view unmixed, and turns."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from debiaspl.algorithms import Batch, Models, ReMixMatch
from debiaspl.algorithms.remixmatch import turn
from tests.algorithms.test_algorithms import LABELED, PRIOR, UNLABELED, Linear, batch, biased_debiaser, models
from tests.algorithms.test_mixmatch import revealed
from tests.reference import remixmatch as twin

PIXELS = 12


def at(done=0.5, views=2, seed=1) -> Batch:
    drawn = batch(views, seed)
    generator = torch.Generator().manual_seed(seed)
    return replace(drawn, weak=drawn.weak[:1], progress=torch.tensor(done), generator=generator)


def remixmatch(correction=None, seed=0, **settings) -> ReMixMatch:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return ReMixMatch(PIXELS, correction, **settings)


@pytest.mark.parametrize("views", [1, 2, 3])
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_losses_equal_the_slow_twin(strength, views):
    drawn, used = at(views=views), models()
    algorithm = remixmatch(biased_debiaser(strength), views=views, ramp_up=1.0)
    losses = algorithm.losses(used, drawn)
    known, unknown, first, new = twin.losses(
        used.student.weight.tolist(),
        drawn.labeled.flatten(1).tolist(),
        drawn.labels.tolist(),
        drawn.weak[0].flatten(1).tolist(),
        [view.flatten(1).tolist() for view in drawn.strong],
        *revealed(LABELED + (views + 1) * UNLABELED, 0.75),
        PRIOR,
        0.9,
        strength,
        0.5,
    )
    assert losses["labeled"].item() == pytest.approx(known, rel=1e-5)
    assert losses["unlabeled"].item() == pytest.approx(1.5 * 0.5 * unknown, rel=1e-5)
    assert losses["unmixed"].item() == pytest.approx(0.5 * 0.5 * first, rel=1e-5)
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(new))


def test_the_rotation_loss_equals_its_slow_twin():
    """Which turns were drawn is found by comparing with all four of each image."""
    drawn, algorithm = at(), remixmatch(rotation_weight=3.0)
    seen = []
    algorithm.rotation.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    loss = algorithm.losses(models(), drawn)["rotation"]
    quarters, logits = [], []
    for image, found in zip(drawn.strong[0].tolist(), seen[0], strict=True):
        turns = [[twin.turned(plane, quarter) for plane in image] for quarter in range(4)]
        matches = [torch.equal(torch.tensor(turned).flatten(), found) for turned in turns]
        assert sum(matches) == 1
        quarters.append(matches.index(True))
        logits.append(algorithm.rotation(found).tolist())
    assert set(quarters) == {0, 1, 2, 3}
    assert loss.item() == pytest.approx(3 * twin.rotation_loss(logits, quarters), rel=1e-5)


def test_images_that_are_not_square_cannot_be_turned():
    with pytest.raises(ValueError, match=r"the images are 2 x 3, expected squares.*rotation_weight=0"):
        turn(torch.zeros(1, 1, 2, 3))


def test_without_weight_nothing_is_turned():
    used, drawn = models(), at()
    wide = replace(
        drawn,
        **{name: tuple(view.reshape(-1, 3, 1, 4) for view in getattr(drawn, name)) for name in ("weak", "strong")},
        labeled=drawn.labeled.reshape(-1, 3, 1, 4),
    )
    losses = remixmatch(rotation_weight=0.0).losses(used, wide)
    assert list(losses) == ["labeled", "unlabeled", "unmixed"]
    whole = remixmatch().losses(used, at())
    assert all(torch.equal(value, whole[name]) for name, value in losses.items())


def test_rotations_teach_the_features():
    """The head for turns stands on the student's features, not on its logits."""

    class Deep(Linear):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(PIXELS, PIXELS)

        def embed(self, images):
            return self.first(images.flatten(1))

    student = Deep()
    remixmatch().losses(Models(student, student), at())["rotation"].backward()
    assert student.first.weight.grad.abs().sum() > 0
    assert student.head.weight.grad is None or student.head.weight.grad.abs().sum() == 0
