"""Causal Norm, post hoc, against its paper."""

import pytest
import torch
from torch import nn

from debiaspl.debias import CausalNorm, TauNorm
from tests.reference import corrections


def trained(bias: bool = True) -> tuple[nn.Linear, torch.Tensor]:
    """A classifier of uneven classes, and features that all lie in one quarter of the space, as after a ReLU."""
    torch.manual_seed(0)
    head = nn.Linear(6, 4, bias=bias)
    head.weight.data *= torch.tensor([[8.0], [4.0], [2.0], [1.0]])
    return head, torch.randn(30, 6).relu() + 0.5


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("bias", [True, False])
def test_it_equals_the_paper_but_for_what_scales_all_logits_of_an_image(alpha, bias):
    head, features = trained(bias)
    mean = features.mean(0)
    final = CausalNorm(alpha).classifier(head, mean)
    assert (final.bias is None) == (not bias)
    assert final.weight.is_contiguous()
    norms = head.weight.norm(dim=1)
    # A bias is the weight of a feature that is always 1; a class's norm is that of its weights.
    one = [1.0] if bias else []
    for image, logits in zip(features.tolist(), final(features).tolist(), strict=True):
        for number, logit in enumerate(logits):
            weight = head.weight[number].tolist() + ([head.bias[number].item()] if bias else [])
            effect = corrections.total_direct_effect(weight, image + one, mean.tolist() + one, alpha)
            effect *= corrections.length(weight) / norms[number].item()
            expected = effect * corrections.length(image + one) * norms.mean().item()
            assert logit == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_mean_of_zeros_gives_finite_numbers():
    head, _ = trained(bias=False)
    final = CausalNorm().classifier(head, torch.zeros(6))
    assert torch.equal(final.weight, TauNorm(1).classifier(head, torch.zeros(6)).weight)
