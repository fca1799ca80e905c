"""Where class shares are uneven a second classifier helps; where they are even, not a bit changes."""

import pytest
import torch
from torch import nn

from debiaspl.features import FeatureTable, TableTask, fit, fit_recipe
from debiaspl.features.fit import LINEAR
from debiaspl.features.shares import CLASSES, PHOTOS, blend, certain, surest
from tests.features.test_shares import EVEN, UNEVEN, labeled, made

CPU = torch.device("cpu")


NOISE = 6.0


def fitted(counts, optimise=PHOTOS, seed=0, per_class=5, **settings):
    rows, truth = made(counts, seed, NOISE)
    labels = labeled(truth, per_class)
    found = fit(FeatureTable(rows, device=CPU), labels, 5, seed=seed, steps=100, optimise=optimise, **settings)
    return found, *measures(found, rows, truth, labels).tolist()


def measures(found, rows, truth, labels):
    """Accuracy and its mean over classes, of the rows without a label."""
    right, of = (found.predict(rows)[1] == truth)[labels < 0].float(), truth[labels < 0]
    return torch.stack([right.mean(), torch.stack([right[of == number].mean() for number in range(5)]).mean()])


def test_each_aim_is_best_in_its_own_measure():
    before = photos = classes = torch.zeros(2)
    for seed in range(4):
        rows, truth = made(UNEVEN, seed, NOISE)
        labels = labeled(truth, 10)
        recipe = LINEAR.changed(first_classifier="graph", steps=100, seed=seed)
        today = fit_recipe(recipe, FeatureTable(rows, device=CPU), TableTask(labels, "abcde"))
        assert today.shares is None
        before = before + measures(today, rows, truth, labels)
        photos = photos + torch.tensor(fitted(UNEVEN, PHOTOS, seed, 10)[1:])
        classes = classes + torch.tensor(fitted(UNEVEN, CLASSES, seed, 10)[1:])
    assert photos[0] > classes[0]
    assert photos[0] > before[0]
    assert classes[1] > photos[1]


@pytest.mark.parametrize("optimise", [PHOTOS, CLASSES])
def test_of_even_shares_nothing_changes(optimise):
    found, *_ = fitted(EVEN, optimise)
    assert found.shares is not None
    assert found.shares.weight == 0
    without, *_ = fitted(EVEN, optimise, strength=0)
    assert without.shares is None, "FixMatch"
    rows, truth = made(EVEN, 0, NOISE)
    recipe = LINEAR.changed(first_classifier="graph", steps=100)
    plain = fit_recipe(recipe, FeatureTable(rows, device=CPU), TableTask(labeled(truth, 5), "abcde"))
    assert torch.equal(plain.network.head.weight, found.network.head.weight)
    assert torch.equal(plain.network.head.bias, found.network.head.bias)


def test_the_weight_is_that_of_the_shares_that_are_used():
    for seed in range(3):
        shares = fitted(UNEVEN, seed=seed, per_class=10)[0].shares
        assert shares.weight == pytest.approx(certain(shares.estimate, shares.error.square()).weight, abs=1e-9)
        assert 0 < shares.weight < 1


def test_both_aims_are_one_model_and_its_shares():
    photos, classes = (fitted(UNEVEN, aim)[0] for aim in (PHOTOS, CLASSES))
    assert torch.equal(photos.network.head.weight, classes.network.head.weight)
    apart = photos.network.head.bias - classes.network.head.bias
    torch.testing.assert_close(apart, photos.shares.log().float(), atol=1e-4, rtol=0)
    assert photos.shares.estimate.argmax() == 0


def test_the_surest_of_each_class_are_kept_and_every_label():
    confidence = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.1, 0.2])
    label = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
    given = torch.tensor([-1, -1, -1, -1, 0, -1, -1, 0])
    kept, label = surest(confidence, label, given, 100)
    assert sorted(kept.tolist()) == [0, 1, 4, 5, 6, 7]
    assert label.tolist() == [0, 0, 0, 0, 0, 1, 1, 0]
    assert sorted(surest(confidence, label, given, 2)[0].tolist()) == [4, 5, 7]


def test_no_rows_without_a_label_is_no_error():
    rows, truth = made(UNEVEN, 0)
    head = nn.Linear(64, 5).requires_grad_(False)
    best, shares = blend(rows, truth, head, lambda masses: (torch.ones(500), truth))
    assert torch.equal(best.weight, head.weight)
    assert shares.weight == 0
