"""A head for vectors: it learns, it is DebiasPL step by step, and bad input is refused in words."""

import math

import pytest
import torch
import torch.nn.functional as F

from debiaspl.data import IndexStream
from debiaspl.debias import CORRECTIONS, Correction, Debiaser, DistributionAlignment, TauNorm
from debiaspl.training.parts import build
from debiaspl.vectors import FittedHead, fit_head
from debiaspl.vectors.checks import checked_steps
from debiaspl.vectors.scaling import Scaling, curvature
from tests.vectors.made import clusters


def accuracy(fitted: FittedHead, features: torch.Tensor, truth: torch.Tensor) -> float:
    return float((fitted.probabilities(features).argmax(-1) == truth).float().mean())


def test_it_learns_from_vectors_without_labels():
    supervised, debiased = [], []
    for seed in range(3):
        features, labels, truth = clusters(width=32, labels=2, gap=0.6, seed=seed)
        known = {"steps": 150, "seed": seed}
        supervised.append(accuracy(fit_head(features, labels, 3, unlabeled_weight=0.0, **known), features, truth))
        debiased.append(accuracy(fit_head(features, labels, 3, **known), features, truth))
    assert sum(debiased) > sum(supervised)
    assert min(supervised) > 1 / 3


def test_units_offsets_and_a_feature_that_never_changes_do_not_matter():
    features, labels, truth = clusters()
    odd = features * torch.logspace(-3, 3, 16) + torch.linspace(-100, 100, 16)
    odd = torch.cat([odd.double(), torch.full((len(odd), 1), 7.0)], 1)
    plain, other = fit_head(features, labels, 3, steps=50), fit_head(odd, labels, 3, steps=50)
    assert other.head.weight.dtype == torch.float64
    assert other.head.weight[:, -1].abs().max() == 0
    assert accuracy(other, odd, truth) == pytest.approx(accuracy(plain, features, truth), abs=0.05)
    far = fit_head(odd + 1e7, labels, 3, steps=50)
    torch.testing.assert_close(far.probabilities(odd + 1e7), other.probabilities(odd), atol=1e-3, rtol=0)


def test_the_head_takes_raw_features():
    features, labels, _ = clusters()
    fitted = fit_head(5 + 3 * features, labels, 3, steps=20)
    by_hand = (5 + 3 * features) @ fitted.head.weight.T + fitted.head.bias
    torch.testing.assert_close(fitted.probabilities(5 + 3 * features), by_hand.softmax(-1))


def test_the_same_seed_gives_the_same_bits_and_leaves_the_users_generator_and_correction_alone():
    features, labels, _ = clusters()
    correction, before = Debiaser(3), torch.get_rng_state()
    first, second = (fit_head(features, labels, 3, steps=30, seed=4, correction=correction) for _ in range(2))
    other = fit_head(features, labels, 3, steps=30, seed=5, correction=correction)
    assert torch.equal(first.head.weight, second.head.weight)
    assert torch.equal(first.prior, second.prior)
    assert first.history == second.history
    assert not torch.equal(first.head.weight, other.head.weight)
    assert torch.equal(correction.prior, torch.full((3,), 1 / 3))
    assert torch.equal(before, torch.get_rng_state())


def test_strength_0_is_no_correction():
    features, labels, _ = clusters()
    none = fit_head(features, labels, 3, steps=30, correction=Correction())
    zero = fit_head(features, labels, 3, steps=30, correction=Debiaser(3, strength=0.0))
    some = fit_head(features, labels, 3, steps=30, correction=Debiaser(3, strength=0.5), threshold=0.4)
    plain = fit_head(features, labels, 3, steps=30, correction=Debiaser(3, strength=0.0), threshold=0.4)
    assert torch.equal(none.head.weight, zero.head.weight)
    assert not torch.equal(some.head.weight, plain.head.weight)


def test_training_is_the_papers_step_written_by_hand():
    """Given views and whole batches, so that chance decides nothing but the order of the rows."""
    features, labels, _ = clusters((20, 12, 8), width=5)
    strong = features + 0.3
    steps, rate, strength, momentum, threshold = 7, 1.0, 0.5, 0.9, 0.5
    debiaser = Debiaser(3, strength, momentum)
    fitted = fit_head(
        features,
        labels,
        3,
        strong=strong[None],
        correction=debiaser,
        threshold=threshold,
        steps=steps,
        weight_decay=0.01,
    )

    mean, deviation = features.double().mean(0), features.double().std(0, correction=0)
    weak, far = (((view - mean) / deviation / math.sqrt(5)).float() for view in (features, strong))
    known = labels >= 0
    largest = [torch.linalg.eigvalsh(x.T @ x / len(x))[-1] for x in (weak[known], weak)]
    rates = rate / float(sum(largest)), rate / 2
    weight, bias, prior = torch.zeros(3, 5), torch.zeros(3), torch.full((3,), 1 / 3)
    speed = [torch.zeros(3, 5), torch.zeros(3)]
    for number in range(steps):
        weight.requires_grad_(), bias.requires_grad_()
        logits = (weak @ weight.T + bias).detach()
        confidence, pseudo = (logits - strength * prior.log()).softmax(-1).max(-1)
        prior = momentum * prior + (1 - momentum) * logits.softmax(-1).mean(0)
        shifted = far @ weight.T + bias + strength * prior.log()
        unlabeled = (F.cross_entropy(shifted, pseudo, reduction="none") * (confidence >= threshold)).mean()
        labeled = F.cross_entropy(weak[known] @ weight.T + bias, labels[known])
        gradients = list(torch.autograd.grad(labeled + unlabeled, (weight, bias)))
        gradients[0] = gradients[0] + 0.01 * weight.detach()
        factor = (1 + math.cos(math.pi * number / steps)) / 2
        speed = [0.9 * old + new for old, new in zip(speed, gradients, strict=True)]
        weight = weight.detach() - factor * rates[0] * (gradients[0] + 0.9 * speed[0])
        bias = bias.detach() - factor * rates[1] * (gradients[1] + 0.9 * speed[1])

    assert 0 < fitted.history[-1]["kept"] < 1
    torch.testing.assert_close(fitted.prior, prior, atol=1e-4, rtol=0)
    by_hand = (weak @ weight.T + bias).softmax(-1)
    torch.testing.assert_close(fitted.probabilities(features), by_hand, atol=1e-3, rtol=0)


def test_the_prior_is_how_often_each_class_is_predicted():
    features, labels, truth = clusters((160, 30, 20), gap=2.0)
    fitted = fit_head(features, labels, 3, steps=200, correction=Debiaser(3, momentum=0.95))
    shares = torch.bincount(truth, minlength=3) / len(truth)
    torch.testing.assert_close(fitted.prior, shares, atol=0.08, rtol=0)
    assert float(fitted.prior.sum()) == pytest.approx(1)
    plain = fit_head(features, labels, 3, steps=50, correction=Correction())
    torch.testing.assert_close(plain.prior, plain.probabilities(features).mean(0))


@pytest.mark.parametrize("name", CORRECTIONS)
def test_every_correction(name):
    features, labels, truth = clusters(gap=2.0)
    correction = build("correction", name, {}, num_classes=3, class_counts=(4, 4, 4))
    fitted = fit_head(features, labels, 3, steps=60, correction=correction)
    assert accuracy(fitted, features, truth) > 0.9
    assert fitted.prior.shape == (3,)


def test_a_correction_of_the_finished_classifier_changes_it():
    features, labels, _ = clusters()
    plain = fit_head(features, labels, 3, steps=20, correction=Correction())
    normed = fit_head(features, labels, 3, steps=20, correction=TauNorm(tau=1.0))
    assert not torch.equal(plain.head.weight, normed.head.weight)


def test_given_views_are_drawn_from():
    features, labels, truth = clusters()
    views = torch.stack([features, features + 0.1])
    strong = torch.stack([features + 0.5, features - 0.5, features])
    fitted = fit_head(views, labels, 3, strong=strong, steps=60)
    assert accuracy(fitted, features, truth) > 0.8
    assert fitted.probabilities(views).shape == (2, 180, 3)
    spoilt = fit_head(views, labels, 3, strong=torch.stack([strong[0], strong[1], 9 * strong[2]]), steps=60)
    assert not torch.equal(fitted.head.weight, spoilt.head.weight)  # the last view is drawn too


def test_half_precision_and_a_class_without_labels():
    features, labels, _ = clusters()
    assert fit_head(features.half(), labels, 4, steps=5).head.weight.dtype == torch.float32
    assert fit_head(features, labels, 4, steps=50).probabilities(features)[:, 3].max() < 0.5


def test_made_strong_views_keep_the_mean_and_hide_what_they_should():
    from debiaspl.vectors.views import VectorViews

    features = torch.randn(500, 37, generator=torch.Generator().manual_seed(0))
    scaling = Scaling.of(features)
    views = VectorViews(features[None], None, scaling, 0.25, 0.0, torch.Generator().manual_seed(0))
    rows = torch.arange(500)
    weak, strong = views.weak(rows), views.strong(rows)
    gone = strong == 0
    assert float(gone.float().mean()) == pytest.approx(0.25, abs=0.02)
    assert gone.float().mean(0).max() < 0.4  # no column is favoured
    torch.testing.assert_close(strong[~gone], weak[~gone] / 0.75)
    noisy = VectorViews(features[None], None, scaling, 0.0, 2.0, torch.Generator().manual_seed(0)).strong(rows) - weak
    assert float(noisy.std()) * math.sqrt(37) == pytest.approx(2, rel=0.05)


def test_scaling_and_curvature_by_hand():
    features = 3 + 5 * torch.randn(400, 6, generator=torch.Generator().manual_seed(0)).cumsum(1)
    scaled = Scaling.of(features)(features)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(6), atol=1e-6, rtol=0)
    torch.testing.assert_close(scaled.square().sum(1).mean(), torch.tensor(1.0))
    expected = torch.linalg.eigvalsh(scaled.T @ scaled / 400)[-1]
    assert curvature(scaled) == pytest.approx(float(expected), rel=1e-4)


def test_batches_are_no_larger_than_the_set():
    features, labels, _ = clusters((3, 3), labels=1)
    assert len(IndexStream(6, 6, 1)[0].unique()) == 6
    assert fit_head(features, labels, 2, steps=2).history[-1]["step"] == 2


BAD = {
    "NaN": (
        lambda x, y: (x.index_fill(0, torch.tensor([3, 5]), math.nan), y, {}),
        "2 of 180 rows of features hold NaN",
    ),
    "infinite": (lambda x, y: (x.index_fill(0, torch.tensor([3]), math.inf), y, {}), "1 of 180 rows"),
    "whole numbers": (lambda x, y: (x.long(), y, {}), "features have dtype torch.int64, expected a tensor of float"),
    "no tensor": (lambda x, y: (x.numpy(), y, {}), "features have ndarray"),
    "one vector": (lambda x, y: (x[0], y, {}), r"features have shape \(16,\), expected \(N, D\)"),
    "no rows": (lambda x, y: (x[:0], y[:0], {}), r"features have shape \(0, 16\)"),
    "float labels": (lambda x, y: (x, y.float(), {}), "labels have shape .* dtype torch.float32, expected int64"),
    "too few labels": (lambda x, y: (x, y[:-1], {}), r"labels have shape \(179,\)"),
    "unknown class": (lambda x, y: (x, y.clamp_min(0) * 2, {}), "labels run from 0 to 4, expected -1"),
    "no labels": (lambda x, y: (x, torch.full_like(y, -1), {}), "no row has a label, expected labels of at least two"),
    "one class": (lambda x, y: (x, y.clamp_max(0), {}), "only one class, 0, has labels"),
    "unequal widths": (
        lambda x, y: (x, y, {"strong": x[None, :, :9]}),
        "180 rows of width 9, features 180 of width 16",
    ),
    "other images": (lambda x, y: (x, y, {"strong": x[None, :9]}), "9 rows of width 16"),
    "strong NaN": (lambda x, y: (x, y, {"strong": x[None] * math.nan}), "180 of 180 rows of strong views"),
    "no steps": (lambda x, y: (x, y, {"steps": 0}), "steps is 0, expected a whole number"),
    "threshold": (lambda x, y: (x, y, {"threshold": 7}), "threshold is 7, expected a confidence"),
    "hidden": (lambda x, y: (x, y, {"hidden": 1.0}), r"hidden is 1.0, expected a share in \[0, 1\)"),
    "noise": (lambda x, y: (x, y, {"noise": -1.0}), "noise is -1.0, expected 0 or more"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_words(case):
    features, labels, _ = clusters()
    spoil, message = BAD[case]
    features, labels, more = spoil(features, labels)
    with pytest.raises((TypeError, ValueError), match=message):
        fit_head(features, labels, 3, **more)


def test_vectors_of_another_width_are_refused():
    features, labels, _ = clusters()
    with pytest.raises(ValueError, match="features are 9 wide, expected 16"):
        fit_head(features, labels, 3, steps=1).probabilities(features[:, :9])


def test_alignment_keeps_its_own_prior():
    features, labels, _ = clusters()
    fitted = fit_head(features, labels, 3, steps=20, correction=DistributionAlignment((4, 4, 4)))
    assert fitted.history[-1]["prior"] == fitted.prior.tolist()


def test_the_number_of_steps_is_bounded():
    assert [checked_steps(None, rows) for rows in (2, 20_000, 10**9)] == [300, 400, 800]
