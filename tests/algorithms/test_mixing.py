"""Sharpening, MixUp and ramps: by hand, against slow twins, and by what their draws must look like."""

import pytest
import torch

from debiaspl.algorithms.mixing import major_share, mixup, ramp, sharpen
from tests.reference import mixmatch as twin

CPU = torch.device("cpu")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("temperature", [0.1, 0.4, 0.5, 1.0, 3.0])
def test_sharpening_equals_its_slow_twin(temperature):
    rows = torch.randn(9, 5, generator=generator()).softmax(-1)
    expected = [twin.sharpened(row, temperature) for row in rows.tolist()]
    torch.testing.assert_close(sharpen(rows, temperature), torch.tensor(expected))


def test_impossible_classes_stay_impossible_and_many_classes_do_not_underflow():
    rows = torch.randn(9, 5, generator=generator()).softmax(-1)
    torch.testing.assert_close(sharpen(rows, 1e-4), torch.nn.functional.one_hot(rows.argmax(-1), 5).float())
    assert sharpen(torch.tensor([[0.6, 0.4, 0.0]]), 0.5)[0, 2] == 0
    even = torch.full((1, 1000), 1e-3)
    torch.testing.assert_close(sharpen(even, 0.01), even)


def test_mixtures_equal_the_slow_twin_and_mix_images_as_they_mix_targets():
    """Of an identity matrix every row comes back as its own mixture: who was drawn, and for what share."""
    images = torch.randn(12, 3, 2, 2, generator=generator())
    mixed, revealed = mixup(images, torch.eye(12), 0.75, generator(1))
    shares = revealed.diagonal().tolist()
    partners = [
        int(row.argmax()) if row.sum() > 1e-7 else number
        for number, row in enumerate(revealed.tril(-1) + revealed.triu(1))
    ]
    assert sorted(partners) == list(range(12))
    assert min(shares) >= 0.5
    assert len(set(shares)) > 6
    expected = twin.mixture(images.flatten(1).tolist(), partners, shares)
    torch.testing.assert_close(mixed.flatten(1), torch.tensor(expected))


@pytest.mark.parametrize("alpha", [0.2, 0.75, 1.0, 4.0])
def test_shares_have_the_moments_of_a_beta_distribution(alpha):
    """The distance of lambda from 1/2 is that of max(lambda, 1 - lambda): its square has the mean of the variance,
    1 / (4 (2 alpha + 1)); its fourth power 3 / (16 (2 alpha + 1) (2 alpha + 3)), for Beta(alpha, alpha)."""
    share = major_share(200_000, alpha, CPU, generator()).double()
    assert share.min() >= 0.5
    assert share.max() <= 1
    distance = share - 0.5
    assert distance.square().mean().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.01)
    fourth = 3 / (16 * (2 * alpha + 1) * (2 * alpha + 3))
    assert distance.pow(4).mean().item() == pytest.approx(fourth, rel=0.02)


def test_ramps_by_hand():
    progress = torch.tensor([0.0, 0.1, 0.25, 0.5, 0.9])
    torch.testing.assert_close(ramp(progress, 0.5), torch.tensor([0.0, 0.2, 0.5, 1.0, 1.0]))
    torch.testing.assert_close(ramp(progress, 1.0), progress)
    torch.testing.assert_close(ramp(progress, 0.0), torch.ones(5))
