"""Tau-normalisation against its paper."""

import pytest
import torch
from torch import nn

from debiaspl.debias import TauNorm
from debiaspl.training import train
from tests.reference import corrections
from tests.training.tiny import EAGER, changed, check_resume


def uneven(bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    head = nn.Linear(6, 4, bias=bias)
    head.weight.data *= torch.tensor([[8.0], [4.0], [2.0], [1.0]])
    return head


@pytest.mark.parametrize("tau", [0.0, 0.3, 0.7, 1.0, 2.0])
def test_it_equals_the_paper_but_for_a_common_factor(tau):
    head = uneven(bias=False)
    final = TauNorm(tau).classifier(head, torch.zeros(6))
    expected = torch.tensor([corrections.tau_normalised(row, tau) for row in head.weight.tolist()])
    factor = head.weight.norm(dim=1).mean() ** tau
    torch.testing.assert_close(final.weight, factor * expected)
    assert final.bias is None


def test_numbers_by_hand_and_a_class_of_zeros():
    head = nn.Linear(2, 2)
    head.weight.data = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    head.bias.data = torch.tensor([5.0, 2.0])
    final = TauNorm(1.0, keep_bias=True).classifier(head, torch.zeros(2))  # norms 5 and 1, mean 3
    torch.testing.assert_close(final.weight, torch.tensor([[1.8, 2.4], [0.0, 3.0]]))
    torch.testing.assert_close(final.bias, torch.tensor([3.0, 6.0]))
    head = uneven()
    head.weight.data[2] = 0
    final = TauNorm(1).classifier(head, torch.zeros(6))
    assert final.weight.isfinite().all()
    assert torch.equal(final.weight[2], torch.zeros(6))


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_the_bias_is_dropped_as_in_the_paper(tau):
    """Decisions are those of w_i / |w_i|^tau alone; the head keeps a bias, of zeros, as saved models have one."""
    head, features = uneven(), torch.randn(50, 6)
    head.bias.data = torch.tensor([100.0, 0.0, 0.0, 0.0])
    final = TauNorm(tau).classifier(head, torch.zeros(6))
    rows = [corrections.tau_normalised(row, tau) for row in head.weight.tolist()]
    expected = [
        max(range(4), key=lambda number, image=image: sum(a * b for a, b in zip(rows[number], image, strict=True)))
        for image in features.tolist()
    ]
    assert final(features).argmax(-1).tolist() == expected
    assert torch.equal(final.bias, torch.zeros(4))
    assert set(TauNorm(tau, keep_bias=True).classifier(head, torch.zeros(6))(features).argmax(-1).tolist()) == {0}


@pytest.mark.parametrize("seed", range(4))
def test_tau_is_chosen_by_the_mean_accuracy_over_classes_of_held_out_images(seed):
    torch.manual_seed(seed)
    head, labels = uneven(), torch.arange(40) % 7 % 4
    features = head.weight.detach()[labels] + 0.8 * torch.randn(40, 6)
    rows, images = head.weight.tolist(), features.tolist()
    chosen = TauNorm(choose_tau=True)
    chosen.choose(head, features, labels)
    assert chosen.tau == corrections.chosen_tau(rows, images, labels.tolist())


def test_a_run_chooses_tau_by_labels_that_are_held_out(tmp_path):
    recipe = changed(EAGER, "correction=tau-norm", "choose_tau=true", "labeled_batch=4", "per_class=4")
    with pytest.raises(ValueError, match="validation"):
        train(recipe, tmp_path / "none")
    check_resume(changed(recipe, "validation=0.5"), tmp_path, 6)
    both = changed(recipe, "validation=0.5", "correction=debiaser+tau-norm", "choose_tau=true")
    train(both, tmp_path / "both")
