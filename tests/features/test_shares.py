"""Estimated class shares on made data, whose true shares are known."""

import numpy as np
import pytest
import torch
from torch import Tensor

from debiaspl.features.shares import COVERAGE, RANDOM, ClassShares, estimate

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


def test_the_same_rows_give_the_same_bits() -> None:
    one, other = (of(UNEVEN, 5, 0)[0] for _ in range(2))
    assert torch.equal(one.estimate, other.estimate)
    assert one.weight == other.weight
