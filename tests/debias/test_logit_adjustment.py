"""Logit adjustment, the loss and the post-hoc kind, against its paper."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from debiaspl.debias import LogitAdjustment, PosthocLogitAdjustment
from tests.reference import corrections

COUNTS = (60, 25, 10, 1)
LABELS = torch.arange(12) % 4


def logits(rows: int = 12, seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("method", ["margin", "labeled_margin"])
def test_the_loss_equals_the_paper(tau, method):
    values = logits()
    loss = F.cross_entropy(getattr(LogitAdjustment(COUNTS, tau), method)(values, LABELS), LABELS, reduction="none")
    expected = [
        corrections.adjusted_loss(row, label, list(COUNTS), tau)
        for row, label in zip(values.tolist(), LABELS.tolist(), strict=True)
    ]
    torch.testing.assert_close(loss, torch.tensor(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("bias", [True, False])
def test_the_finished_classifier_equals_the_paper(tau, bias):
    torch.manual_seed(0)
    head, features = nn.Linear(6, 4, bias=bias), 3 * torch.randn(50, 6)
    weight = head.weight.clone()
    final = PosthocLogitAdjustment(COUNTS, tau).classifier(head, features.mean(0))
    expected = [corrections.adjusted_decision(row, list(COUNTS), tau) for row in head(features).tolist()]
    assert final(features).argmax(-1).tolist() == expected
    difference = final(features) - head(features)
    torch.testing.assert_close(difference, (-tau * torch.tensor(corrections.shares(COUNTS)).log()).expand(50, 4))
    final.weight.data.zero_()
    assert torch.equal(head.weight, weight)


def test_the_finished_classifier_draws_no_random_numbers_and_asks_for_no_gradient():
    head = nn.Linear(6, 4).requires_grad_(False)
    before = torch.random.get_rng_state()
    final = PosthocLogitAdjustment(COUNTS).classifier(head, torch.zeros(6))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not any(parameter.requires_grad for parameter in final.parameters())
