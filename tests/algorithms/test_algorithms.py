"""Every loss against the paper's formulas, on networks small enough to follow."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from debiaspl.algorithms import Batch, FixMatch, Models, PseudoLabel, Supervised
from debiaspl.algorithms.fixmatch import cld
from debiaspl.debias import Debiaser
from debiaspl.models import Network
from tests.reference import paper

CLASSES, FEATURES, LABELED, UNLABELED = 4, 6, 5, 16
PRIOR = [0.4, 0.3, 0.2, 0.1]


class Linear(nn.Module):
    """Features are the pixels. No batch norm: the logits of a view do not depend on its neighbours, so that twins can
    be computed by hand."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.head = nn.Linear(12, CLASSES, bias=False)
        self.head.weight.data = 0.6 * torch.randn(CLASSES, 12, generator=torch.Generator().manual_seed(seed))

    @property
    def weight(self) -> nn.Parameter:
        return self.head.weight

    def embed(self, images: Tensor) -> Tensor:
        return images.flatten(1)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.embed(images))


class Features(Network):
    """The same for algorithms that look at features."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.body, self.head = nn.Linear(12, FEATURES), nn.Linear(FEATURES, CLASSES)
        self.head.weight.data.mul_(4)
        self.num_features, self.passes = FEATURES, 0

    def embed(self, images: Tensor) -> Tensor:
        self.passes += 1
        return self.body(images.flatten(1)).tanh()


def batch(views: int = 1, seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def images(count: int) -> torch.Tensor:
        return torch.randn(count, 3, 2, 2, generator=generator)

    labels = torch.arange(LABELED) % CLASSES
    weak = tuple(images(UNLABELED) for _ in range(views))
    return Batch(images(LABELED), labels, weak, tuple(images(UNLABELED) for _ in range(views)))


def models(seed: int = 0) -> Models:
    student = Linear(seed)
    return Models(student, student)


def biased_debiaser(strength: float = 0.5, momentum: float = 0.9) -> Debiaser:
    debiaser = Debiaser(CLASSES, strength, momentum)
    debiaser.prior.copy_(torch.tensor(PRIOR))
    return debiaser


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_debiaspl_equals_the_paper(strength, joint):
    drawn, used = batch(), models()
    algorithm = FixMatch(biased_debiaser(strength), threshold=0.6, unlabeled_weight=2.0, joint=joint)
    losses = algorithm.losses(used, drawn)
    weak, strong = used.student(drawn.weak[0]).tolist(), used.student(drawn.strong[0]).tolist()
    new = paper.moved_prior(PRIOR, weak, 0.9)
    expected = 2 * paper.unlabeled_loss(weak, strong, PRIOR, new, strength, 0.6)
    assert losses["unlabeled"].item() == pytest.approx(expected, rel=1e-5)
    assert 0 < algorithm.monitors["kept"].float().mean() < 1
    labeled = [
        paper.cross_entropy(row, label)
        for row, label in zip(used.student(drawn.labeled).tolist(), drawn.labels.tolist(), strict=True)
    ]
    assert losses["labeled"].item() == pytest.approx(sum(labeled) / LABELED, rel=1e-5)
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(new))


@pytest.mark.parametrize(
    ("view_labels", "twin"), [("three-sets", paper.multi_view_loss), ("paired", paper.paired_views_loss)]
)
def test_multi_view_equals_the_released_code_and_the_paper(view_labels, twin):
    drawn, used = batch(views=2), models()
    algorithm = FixMatch(biased_debiaser(), threshold=0.6, views=2, view_labels=view_labels)
    losses = algorithm.losses(used, drawn)
    weak, strong = [[used.student(view).tolist() for view in views] for views in (drawn.weak, drawn.strong)]
    expected, new = twin(weak, strong, PRIOR, 0.9, 0.5, 0.6)
    assert losses["unlabeled"].item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(algorithm.correction.prior, torch.tensor(new))


def test_cld_equals_its_slow_twin():
    generator = torch.Generator().manual_seed(0)
    weak = (3 * torch.randn(20, CLASSES, generator=generator)).softmax(-1)
    strong = (3 * torch.randn(20, CLASSES, generator=generator)).softmax(-1)
    for rows in (20, 3, 1):  # few rows leave groups without members
        expected = paper.cld_loss(weak[:rows].tolist(), strong[:rows].tolist(), 0.07)
        assert cld(weak[:rows], strong[:rows]).item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_cld_groups_by_the_most_likely_class():
    """Defect 6: grouped by the least likely class, a strong view that agrees would be punished."""
    weak = torch.eye(3) * 0.9 + 0.05
    assert cld(weak, weak) < cld(weak, weak.roll(1, 0))


def test_cld_is_an_option_of_fixmatch_and_uses_unconfident_images():
    drawn, used = batch(), models()
    algorithm = FixMatch(threshold=1.0, cld_weight=0.3)
    losses = algorithm.losses(used, drawn)
    assert losses["unlabeled"] == 0
    weak, strong = used.student(drawn.weak[0]).softmax(-1), used.student(drawn.strong[0]).softmax(-1)
    torch.testing.assert_close(losses["cld"], 0.3 * cld(weak, strong))
    (gradient,) = torch.autograd.grad(losses["cld"], used.student.weight)
    assert gradient.abs().sum() > 0


def test_pseudolabel_equals_its_slow_twin():
    drawn, used = batch(), models()
    algorithm = PseudoLabel(biased_debiaser(), threshold=0.6)
    loss = algorithm.losses(used, drawn)["unlabeled"]
    weak = used.student(drawn.weak[0]).tolist()
    new = paper.moved_prior(PRIOR, weak, 0.9)
    assert loss.item() == pytest.approx(paper.unlabeled_loss(weak, weak, PRIOR, new, 0.5, 0.6), rel=1e-5)


def test_supervised_is_cross_entropy_and_looks_at_labeled_images_alone():
    drawn, used = batch(), models()
    losses = Supervised().losses(used, drawn)
    assert list(losses) == ["labeled"]
    torch.testing.assert_close(losses["labeled"], F.cross_entropy(used.student(drawn.labeled), drawn.labels))


def test_supervised_refuses_a_correction_of_pseudo_labels_that_it_never_makes():
    with pytest.raises(ValueError, match=r"Supervised makes no pseudo-labels.*correction=none"):
        Supervised(biased_debiaser())


def test_a_share_of_the_strong_views_that_holds_all_kept_ones_changes_nothing():
    """Without batch norm a view below the threshold takes part in nothing."""
    drawn, used = batch(), models()
    whole = FixMatch(biased_debiaser(), threshold=0.6, joint=False)
    losses = whole.losses(used, drawn)
    kept = int(whole.monitors["kept"].sum())
    assert 1 < kept < UNLABELED
    part = FixMatch(biased_debiaser(), threshold=0.6, joint=False, strong_share=kept / UNLABELED)
    for name, value in part.losses(used, drawn).items():
        torch.testing.assert_close(value, losses[name])
    assert torch.equal(part.correction.prior, whole.correction.prior)
    assert torch.equal(part.monitors["kept"], whole.monitors["kept"])


def test_a_smaller_share_leaves_out_the_least_confident():
    drawn, used = batch(), models()
    part = FixMatch(threshold=0.0, joint=False, strong_share=0.25)
    confidence, label = used.student(drawn.weak[0]).softmax(-1).max(-1)
    rows = confidence.argsort(descending=True)[: UNLABELED // 4]
    per_image = F.cross_entropy(used.student(drawn.strong[0][rows]), label[rows], reduction="none")
    torch.testing.assert_close(part.losses(used, drawn)["unlabeled"], per_image.sum() / UNLABELED)
