"""A linear classifier of vectors: it learns, it is DebiasPL step by step, and bad input is refused in words."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from debiaspl.augment import Hide, VectorViews
from debiaspl.data import ImageSet, Task
from debiaspl.features import FeatureTable, Fitted, TableTask, fit, fit_recipe
from debiaspl.features.fit import LINEAR, enough_steps
from debiaspl.models import Scaling
from debiaspl.training.method import with_method
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step, fit as fit_task
from tests.estimator.test_many_classes import LargestTensor
from tests.training.clusters import clusters


def accuracy(fitted: Fitted, features: torch.Tensor, truth: torch.Tensor) -> float:
    return float((fitted.probabilities(features).argmax(-1) == truth).float().mean())


def test_it_learns_from_vectors_without_labels():
    plain, debiased = [], []
    for seed in range(3):
        features, labels, truth = clusters(width=32, labels=2, gap=0.6, seed=seed)
        known = {"steps": 150, "seed": seed}
        plain.append(accuracy(fit(features, labels, 3, method="supervised", **known), features, truth))
        debiased.append(accuracy(fit(features, labels, 3, **known), features, truth))
    assert sum(debiased) > sum(plain)
    assert min(plain) > 1 / 3


def test_units_offsets_and_a_feature_that_never_changes_do_not_matter():
    features, labels, truth = clusters()
    odd = features * torch.logspace(-3, 3, 16) + torch.linspace(-100, 100, 16)
    odd = torch.cat([odd.double(), torch.full((len(odd), 1), 7.0)], 1)
    plain, other = fit(features, labels, 3, steps=50), fit(odd, labels, 3, steps=50)
    assert other.network.head.weight[:, -1].abs().max() == 0
    assert accuracy(other, odd, truth) == pytest.approx(accuracy(plain, features, truth), abs=0.05)
    far = fit(odd + 1e7, labels, 3, steps=50)
    found = far.probabilities(odd + 1e7)
    torch.testing.assert_close(found, other.probabilities(odd), atol=1e-3, rtol=0)


def test_training_is_the_papers_step_written_by_hand():
    """A strong view without chance, and whole batches, so that chance decides nothing but the order of the rows."""
    features, labels, _ = clusters((20, 12, 8), width=5)
    weak, far = features, features + 0.3
    steps, rate, strength, momentum, threshold = 7, 0.2, 0.5, 0.9, 0.5
    images = ImageSet(features, labels, ("a", "b", "c"))
    known = labels >= 0
    labeled = images.select(known.nonzero().flatten())
    sizes = f"steps={steps}", f"labeled_batch={len(labeled)}", f"unlabeled_batch={len(images)}"
    chosen = f"strength={strength}", f"momentum={momentum}", f"threshold={threshold}", f"learning_rate={rate}"
    recipe = parse_settings(LINEAR, ["weight_decay=0.01", "average_decay=0", *sizes, *chosen])
    step = Step(recipe, Task(labeled, images.without_labels(), labeled), torch.device("cpu"))
    step.views = VectorViews(lambda vectors, generator: vectors + 0.3)
    for number in range(steps):
        step(number)

    weight, bias, prior = torch.zeros(3, 5), torch.zeros(3), torch.full((3,), 1 / 3)
    speed = [torch.zeros(3, 5), torch.zeros(3)]
    for number in range(steps):
        weight.requires_grad_(), bias.requires_grad_()
        logits = (weak @ weight.T + bias).detach()
        confidence, pseudo = (logits - strength * prior.log()).softmax(-1).max(-1)
        prior = momentum * prior + (1 - momentum) * logits.softmax(-1).mean(0)
        shifted = far @ weight.T + bias + strength * prior.log()
        kept = confidence >= threshold
        unlabeled = (F.cross_entropy(shifted, pseudo, reduction="none") * kept).mean()
        loss = F.cross_entropy(weak[known] @ weight.T + bias, labels[known]) + unlabeled
        gradients = list(torch.autograd.grad(loss, (weight, bias)))
        gradients[0] = gradients[0] + 0.01 * weight.detach()
        factor = (1 + math.cos(math.pi * number / steps)) / 2
        speed = [0.9 * old + new for old, new in zip(speed, gradients, strict=True)]
        weight = weight.detach() - factor * rate * (gradients[0] + 0.9 * speed[0])
        bias = bias.detach() - factor * rate * (gradients[1] + 0.9 * speed[1])

    assert 0 < float(kept.float().mean()) < 1
    torch.testing.assert_close(step.algorithm.correction.prior, prior, atol=1e-5, rtol=0)
    head = step.finished().head
    torch.testing.assert_close(head.weight, weight, atol=1e-5, rtol=0)
    torch.testing.assert_close(head.bias, bias, atol=1e-5, rtol=0)


def test_half_precision_and_a_class_without_labels():
    features, labels, _ = clusters()
    assert fit(features.half(), labels, 4, steps=5).network.head.weight.dtype == torch.float32
    fitted = fit(features, labels, 4, steps=50)
    assert fitted.probabilities(features)[:, 3].max() < 0.5
    assert [enough_steps(rows) for rows in (2, 30_000, 10**9)] == [250, 1000, 1000]


def test_hidden_features_are_as_many_as_they_should_be_and_noise_as_long():
    vectors = torch.randn(500, 37, generator=torch.Generator().manual_seed(0))
    strong = Hide(0.25)(vectors, torch.Generator().manual_seed(0))
    gone = strong == 0
    assert float(gone.float().mean()) == pytest.approx(0.25, abs=0.02)
    assert gone.float().mean(0).max() < 0.4  # no column is favoured
    torch.testing.assert_close(strong[~gone], vectors[~gone] / 0.75)
    noise = Hide(0.0, 2.0)(vectors, torch.Generator().manual_seed(0)) - vectors
    assert float((noise.norm(dim=1) / vectors.norm(dim=1)).mean()) == pytest.approx(2, rel=0.05)
    assert torch.equal(Hide(0.0)(vectors), vectors)
    for wrong in ((1.0, 0.0), (0.0, -1.0)):
        with pytest.raises(ValueError, match=r"hidden is 1.0|noise is -1.0"):
            Hide(*wrong)


@pytest.mark.parametrize("unit", [False, True])
def test_scaling_by_hand(unit):
    features = 3 + 5 * torch.randn(400, 6, generator=torch.Generator().manual_seed(0)).cumsum(1)
    scaled = Scaling.of(features, unit)(features)
    centred = features - features.mean(0)
    by_hand = F.normalize(centred, dim=-1) if unit else centred / centred.square().mean(0).sqrt()
    steepest = torch.linalg.eigvalsh(by_hand.T @ by_hand / 400)[-1].sqrt()
    torch.testing.assert_close(scaled, by_hand / steepest, atol=1e-4, rtol=1e-3)


def test_what_is_for_pictures_alone_is_refused_for_vectors_and_the_other_way_round():
    features, labels, _ = clusters()
    images = ImageSet(features, labels, ("a", "b", "c"))
    labeled = images.select((labels >= 0).nonzero().flatten())
    task, cpu = Task(labeled, images.without_labels(), labeled), torch.device("cpu")
    for setting, message in {
        "strong=fixmatch": "strong is fixmatch",
        "flip=true": "flip is true",
        "joint=true": "joint is true",
        "average_statistics=true": "average_statistics is true",
        "synchronise_norm=true": "synchronise_norm is true",
        "algorithm=contrastmatch": "features",
    }.items():
        with pytest.raises(ValueError, match=message):
            fit_task(parse_settings(LINEAR, [setting]), task, cpu)
    pictures = ImageSet(torch.zeros(4, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]), ("a", "b"))
    with pytest.raises(ValueError, match="network is linear"):
        fit_task(LINEAR, Task(pictures, pictures, pictures), cpu)
    small = LINEAR.changed(network="small")
    with pytest.raises(ValueError, match="strong is hide"):
        fit_task(small, Task(pictures, pictures, pictures), cpu)


def test_methods_share_a_table_and_what_is_remembered_changes_nothing():
    features, labels, _ = clusters()
    table = FeatureTable(features, device=torch.device("cpu"))
    for method in ("debiaspl", "graph", "supervised", "softmatch+debiaser", "freematch"):
        shared, alone = (fit(one, labels, 3, method=method, steps=8) for one in (table, features))
        assert torch.equal(shared.network.head.weight, alone.network.head.weight)
        assert (shared.prior is not None) == ("debiaser" in method or method == "debiaspl")
    with pytest.raises(ValueError, match="vectors"):
        fit(features, labels, 3, method="contrastmatch", steps=8)


def test_a_large_table_has_a_graph_of_all_labels_and_some_other_rows():
    features, labels, truth = clusters()
    table, some = FeatureTable(features, device=torch.device("cpu")), len(features) // 3
    recipe = replace(LINEAR, steps=50, fit_on=some)
    fitted = fit_recipe(recipe, table, TableTask(labels, "abc"))
    assert len(table.rows) == len(table.chosen) == table.spread(labels, 3).label.shape[0] == some
    assert (labels[table.chosen] >= 0).sum() == (labels >= 0).sum()
    assert len(table) == len(features)
    confidence, label = fitted.predict(table.features)
    assert confidence.shape == labels.shape
    assert float((label == truth).float().mean()) > 0.8
    before = table.graph
    table.sample(labels.masked_fill(torch.arange(len(labels)) % 2 == 0, -1))
    assert table.graph is before  # labels that are held out change nothing
    unseen = labels.clone()
    unseen[min(set(range(len(labels))) - set(table.chosen.tolist()))] = 0
    assert (table.sample(unseen) >= 0).sum() == (unseen >= 0).sum()
    assert len(table.sample(labels, len(features))) == len(features)


def test_features_may_be_mapped_and_no_tensor_has_all_rows_of_a_large_table(tmp_path):
    features, labels, truth = clusters((900, 600, 500), width=64)
    place = tmp_path / "features.npy"
    np.save(place, features.numpy())
    mapped = torch.from_numpy(np.load(place, mmap_mode="c"))  # not "r": torch would warn, but once in a process
    table = FeatureTable(mapped, device=torch.device("cpu"))
    with pytest.MonkeyPatch.context() as patch, LargestTensor() as largest:
        for name in ("features.fit", "features.table", "models.network", "training.classifier"):
            patch.setattr(sys.modules[f"debiaspl.{name}"], "CHUNK", 128)
        fitted = fit_recipe(replace(LINEAR, steps=20, fit_on=300), table, TableTask(labels, "abc"))
        label = fitted.predict(mapped)[1]
    assert largest.numbers <= 300 * 320  # similarities, beside 300 rows of 64 numbers
    assert largest.numbers < mapped.numel() < 2000 * 65
    assert float((label == truth).float().mean()) > 0.9


def test_a_large_table_is_trained_on_all_rows():
    """The rows that are scaled when they are needed are those of a table in memory."""
    features, labels, _ = clusters()
    for method in ("supervised", "debiaspl"):
        whole, large = (FeatureTable(features, device=torch.device("cpu")) for _ in range(2))
        recipe = replace(with_method(LINEAR, method), steps=20, first_classifier="random")
        one = fit_recipe(recipe, whole, TableTask(labels, "abc"))
        other = fit_recipe(replace(recipe, fit_on=30), large, TableTask(labels, "abc"))
        torch.testing.assert_close(one.network.head.weight, other.network.head.weight, atol=1e-4, rtol=1e-4)
        assert (len(whole.rows), len(large.rows)) == (len(features), 30)
