"""AdaMatch against its slow twin, with a network whose batch norm tells the two passes apart."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from debiaspl.algorithms import Batch, Models
from debiaspl.algorithms.adamatch import AdaMatch
from debiaspl.debias import Composite, Correction, DistributionAlignment, TauNorm
from debiaspl.models import SmallNet
from tests.algorithms.test_algorithms import PRIOR, Linear, biased_debiaser
from tests.reference import adamatch as twin, paper

CLASSES, LABELED, UNLABELED = 4, 5, 24


def batch(progress: float = 0.25, seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def images(count: int) -> torch.Tensor:
        return torch.randn(count, 3, 8, 8, generator=generator)

    labels = torch.arange(LABELED) % CLASSES
    return Batch(
        images(LABELED) + 1,  # other statistics than those of the unlabeled images
        labels,
        (images(UNLABELED),),
        (images(UNLABELED),),
        progress=torch.tensor(progress),
        generator=torch.Generator().manual_seed(seed),
    )


def models(seed: int = 0) -> Models:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        student = SmallNet(CLASSES, channels=3, width=4)
        student.head.weight.data *= 4
    return Models(student, student)


@pytest.mark.parametrize("strength", [0.0, 0.5])
@pytest.mark.parametrize("strong_labeled", [True, False])
def test_a_step_equals_the_paper(strength, strong_labeled):
    """Of labeled images both views pass together and alone; the loss is the mean of the two, the threshold that of the
    weak one."""
    drawn, used, copy = batch(progress=0.2), models(), deepcopy(models().student)
    second = torch.randn(LABELED, 3, 8, 8, generator=torch.Generator().manual_seed(9))
    drawn = replace(drawn, labeled_strong=(second,) if strong_labeled else ())
    settings = {"threshold": 0.8, "unlabeled_weight": 2.0, "strong_labeled": strong_labeled}
    algorithm = AdaMatch(biased_debiaser(strength), **settings)
    assert algorithm.labeled_strong == int(strong_labeled)
    losses = algorithm.losses(used, drawn)

    known = torch.cat([drawn.labeled, *drawn.labeled_strong])
    together, strong, weak = (
        rows.tolist()
        for rows in copy(torch.cat([known, drawn.strong[0], drawn.weak[0]])).split([len(known), UNLABELED, UNLABELED])
    )
    alone, generator = copy(known).tolist(), torch.Generator().manual_seed(1)
    shares = torch.cat([torch.rand(LABELED, CLASSES, generator=generator) for _ in range(1 + strong_labeled)]).tolist()
    logits = twin.between(together, alone, shares)
    threshold = twin.relative_threshold(logits[:LABELED], 0.8)

    assert not torch.allclose(torch.tensor(together), torch.tensor(alone), rtol=0.1)  # the two passes differ
    labels = (1 + strong_labeled) * drawn.labels.tolist()
    labeled = [paper.cross_entropy(row, label) for row, label in zip(logits, labels, strict=True)]
    assert losses["labeled"].item() == pytest.approx(sum(labeled) / len(labeled), rel=1e-5)
    new = paper.moved_prior(PRIOR, weak, 0.9)
    expected = 2 * twin.growth(0.2) * paper.unlabeled_loss(weak, strong, PRIOR, new, strength, threshold)
    assert losses["unlabeled"].item() == pytest.approx(expected, rel=1e-4)
    assert algorithm.monitors["threshold"].item() == pytest.approx(threshold, rel=1e-5)
    assert 0 < algorithm.monitors["kept"].float().mean() < 1


def test_it_aligns_to_its_predictions_on_labeled_images():
    student, target, prior = Linear2(), [0.25] * 4, PRIOR
    alignment = DistributionAlignment((8, 2, 1, 1), momentum=0.9)
    alignment.prior.copy_(torch.tensor(prior))
    algorithm = AdaMatch(alignment, threshold=0.9, align_to_predictions=True, target_decay=0.5)
    for seed in (1, 2):
        drawn = batch(progress=0.6, seed=seed)
        loss = algorithm.losses(Models(student, student), drawn)["unlabeled"]
        labeled, weak = student(drawn.labeled).tolist(), student(drawn.weak[0]).tolist()
        target = twin.moved_target(target, labeled, 0.5)
        rows = twin.aligned(weak, target, prior)
        prior = paper.moved_prior(prior, weak, 0.9)
        threshold, total = twin.relative_threshold(labeled, 0.9), 0.0
        for row, logits in zip(rows, student(drawn.strong[0]).tolist(), strict=True):
            total += paper.cross_entropy(logits, row.index(max(row))) if max(row) >= threshold else 0.0
        assert loss.item() == pytest.approx(total / UNLABELED, rel=1e-4)
        assert 0 < algorithm.monitors["kept"].float().mean() < 1
    resumed = AdaMatch(DistributionAlignment((8, 2, 1, 1), momentum=0.9), align_to_predictions=True)
    resumed.load_state_dict(algorithm.state_dict())
    torch.testing.assert_close(resumed.labeled_marginal, torch.tensor(target))


def test_the_pass_alone_leaves_no_trace_in_the_statistics():
    used, copy, drawn = models(), models().student, batch()
    AdaMatch().losses(used, drawn)
    copy(torch.cat([drawn.labeled, drawn.strong[0], drawn.weak[0]]))
    for name, value in copy.named_buffers():
        assert torch.equal(used.student.get_buffer(name), value), name


@pytest.mark.parametrize("together", [True, False])
def test_gradients_flow_through_both_passes(monkeypatch, together):
    """Only together with the unlabeled images, in one batch norm, do labeled logits depend on those."""
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, float(together)))
    used, drawn = models(), batch()
    labeled, strong = drawn.labeled.requires_grad_(), drawn.strong[0].requires_grad_()
    losses = AdaMatch(threshold=0.5).losses(used, drawn)
    losses["labeled"].backward(retain_graph=True)
    assert labeled.grad.abs().sum() > 0
    assert (strong.grad.abs().sum() > 0) == together
    assert all(value.grad.abs().sum() > 0 for value in used.student.parameters() if value.ndim > 1)
    strong.grad.zero_()
    losses["unlabeled"].backward()
    assert strong.grad.abs().sum() > 0


class Linear2(Linear):
    """No batch norm, for images of this size: what is not in a loss gets no gradient at all."""

    def __init__(self) -> None:
        super().__init__()
        self.weight.data = 0.2 * torch.randn(CLASSES, 192, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    "correction",
    [Correction(), Composite({"alignment": DistributionAlignment((2, 1)), "tau-norm": TauNorm()})],
)
def test_a_correction_that_is_not_alignment_alone_is_refused(correction):
    with pytest.raises(ValueError, match=r"Use correction=alignment"):
        AdaMatch(correction, align_to_predictions=True)
