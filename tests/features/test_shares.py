"""Class shares on made data, whose true ones are known: their estimate, and the second classifier that uses them."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from debiaspl.features import FeatureTable, TableTask, fit, fit_recipe
from debiaspl.features.fit import LINEAR
from debiaspl.features.shares import CLASSES, COVERAGE, PHOTOS, RANDOM, ClassShares, blend, certain, estimate, surest

EVEN, UNEVEN = [100] * 5, [250, 120, 60, 40, 30]
CENTRES = 2.2 * torch.randn(5, 64, generator=torch.Generator().manual_seed(1)) / 8


def made(counts: list[int], seed: int, noise: float = 1.0) -> tuple[Tensor, Tensor]:
    """Rows around a centre for each class, and their classes."""
    box = torch.Generator().manual_seed(seed)
    truth = torch.arange(5).repeat_interleave(torch.tensor(counts))[torch.randperm(sum(counts), generator=box)]
    rows = torch.nn.functional.normalize(
        CENTRES[truth] + noise * torch.randn(len(truth), 64, generator=box) / 8, dim=-1
    )
    return rows - rows.mean(0), truth


def labeled(truth: Tensor, per_class: int, at_random: bool = False) -> Tensor:
    if at_random:
        return torch.where(torch.arange(len(truth)) < 5 * per_class, truth, -1)
    kept = [(truth == number).nonzero().flatten()[:per_class] for number in range(5)]
    labels = torch.full_like(truth, -1)
    labels[torch.cat(kept)] = truth[torch.cat(kept)]
    return labels


def nearest_centre(rows: Tensor) -> Tensor:
    """A model that errs: it takes every class for equally frequent."""
    centred = CENTRES - CENTRES.mean(0)
    return (rows @ torch.nn.functional.normalize(centred, dim=-1).T).argmax(-1)


def of(
    counts: list[int], per_class: int, seed: int, at_random: bool = False, asked: str = ""
) -> tuple[ClassShares, Tensor]:
    rows, truth = made(counts, seed)
    labels = labeled(truth, per_class, at_random)
    true = torch.bincount(truth[labels < 0], minlength=5).double()
    how = [asked if label >= 0 else "" for label in labels.tolist()] if asked else []
    return estimate(rows, labels, nearest_centre, 5, how), true / true.sum()


@pytest.mark.parametrize(("at_random", "asked"), [(False, ""), (True, ""), (True, RANDOM)])
@pytest.mark.parametrize("per_class", [5, 20])
def test_uneven_shares_are_found(per_class: int, at_random: bool, asked: str) -> None:
    found, true = of(UNEVEN, per_class, 0, at_random, asked)
    low, high = found.interval()
    assert float((found.estimate - true).abs().sum()) / 2 < 0.1
    assert int(((low <= true) & (true <= high)).sum()) >= 4
    assert found.weight > 0.5
    assert float(found.estimate.sum()) == pytest.approx(1)
    assert float(found.log().sum()) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("per_class", [3, 5, 20])
@pytest.mark.parametrize("seed", range(3))
def test_even_shares_are_told_from_uneven_ones(per_class: int, seed: int) -> None:
    found, _ = of(EVEN, per_class, seed)
    assert found.weight == 0
    assert not found.log().any()


def test_intervals_hold_what_they_say() -> None:
    inside = []
    for seed in range(20):
        found, true = of(UNEVEN, 8, seed, asked=COVERAGE)
        low, high = found.interval()
        inside += ((low <= true) & (true <= high)).tolist()
    assert np.mean(inside) > 0.85


def test_labels_that_were_drawn_at_random_count() -> None:
    told, untold = (of(UNEVEN, 10, 3, True, asked)[0] for asked in (RANDOM, "uncertainty"))
    assert float(told.error.sum()) < float(untold.error.sum())


def test_nothing_is_said_where_nothing_is_known() -> None:
    rows, truth = made(UNEVEN, 0)
    one_each = labeled(truth, 1)
    found = estimate(rows, one_each, nearest_centre, 5)
    assert found.weight == 0
    assert found.estimate.tolist() == [0.2] * 5
    assert estimate(rows, truth, nearest_centre, 5).weight == 0
    low, high = found.interval()
    assert bool((low == 0).all())
    assert float(high.min()) > 0.9


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
