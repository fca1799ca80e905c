"""The Debiaser against the paper's formulas, and the defects of other implementations."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from debiaspl.debias import Debiaser
from tests.reference import paper


def logits(rows: int, classes: int, seed: int = 0, scale: float = 3.0) -> torch.Tensor:
    return scale * torch.randn(rows, classes, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None, max_examples=50)
@given(
    rows=st.integers(1, 20),
    classes=st.integers(2, 12),
    strength=st.floats(0, 3),
    margin=st.none() | st.floats(0, 3),
    momentum=st.floats(0, 0.999),
    seed=st.integers(0, 10**6),
)
def test_three_steps_equal_the_paper(rows, classes, strength, margin, momentum, seed):
    debiaser = Debiaser(classes, strength, momentum, margin_strength=margin)
    margin = strength if margin is None else margin
    prior = [1 / classes] * classes
    for step in range(3):
        weak, strong = logits(rows, classes, seed + step), logits(rows, classes, seed + step + 100)
        probabilities, logits_with_margin = debiaser(weak), debiaser.margin(strong)
        expected = [paper.debiased(row, prior, strength) for row in weak.tolist()]
        torch.testing.assert_close(probabilities, torch.tensor(expected), atol=1e-5, rtol=1e-4)
        prior = paper.moved_prior(prior, weak.tolist(), momentum)
        torch.testing.assert_close(debiaser.prior, torch.tensor(prior), atol=1e-6, rtol=1e-5)
        label = probabilities.argmax(-1)
        loss = F.cross_entropy(logits_with_margin, label, reduction="none")
        twin = [
            paper.marginal_loss(row, number, prior, margin)
            for row, number in zip(strong.tolist(), label.tolist(), strict=True)
        ]
        torch.testing.assert_close(loss, torch.tensor(twin), atol=1e-4, rtol=1e-4)


@settings(deadline=None, max_examples=10)
@given(momentum=st.sampled_from([0.0, 0.5, 0.99, 0.999, 0.9999]), seed=st.integers(0, 10**6))
def test_the_prior_keeps_its_shape_and_sums_to_one(momentum, seed):
    """Defect 2: an update that forgets to average. Also that 1,000 roundings do not let the sum drift."""
    debiaser = Debiaser(10, momentum=momentum)
    bias = torch.arange(10.0)
    for step in range(1000 if seed % 10 == 0 else 20):
        debiaser(logits(7, 10, seed + step) + bias)
    assert debiaser.prior.shape == (10,)
    assert debiaser.prior.sum().item() == pytest.approx(1, abs=2e-6)
    assert (debiaser.prior >= 0).all()


def test_the_labeled_loss_has_no_margin_unless_asked_for_and_probabilities_are_not_taken_for_logits():
    debiaser, logits = Debiaser(3), torch.randn(4, 3)
    debiaser.prior.copy_(torch.tensor([0.7, 0.2, 0.1]))
    assert torch.equal(debiaser.labeled_margin(logits), logits)
    asked = Debiaser(3, strength=0.5, labeled_strength=2.0)
    asked.prior.copy_(debiaser.prior)
    torch.testing.assert_close(asked.labeled_margin(logits), logits + 2 * torch.tensor([0.7, 0.2, 0.1]).log())
    torch.testing.assert_close(asked.margin(logits), debiaser.margin(logits))
    logits = torch.randn(6, 4)
    with pytest.raises(ValueError, match="softmax"):
        Debiaser(4)(logits.softmax(-1))
    debias = Debiaser(4)
    debias(logits)
    assert debias(logits.softmax(-1)).shape == (6, 4)  # only the first batch is read: no waiting for a GPU after it


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_batch_that_is_not_finite_leaves_the_prior_as_it_was(bad):
    debiaser = Debiaser(3)
    debiaser(logits(4, 3))
    before = debiaser.prior.clone()
    spoilt = logits(4, 3, 1)
    spoilt[2, 1] = bad
    debiaser(spoilt)
    assert torch.equal(debiaser.prior, before)
    debiaser(logits(4, 3, 2))
    assert not torch.equal(debiaser.prior, before)


def test_batches_without_rows_in_float64_and_with_leading_dimensions():
    debiaser = Debiaser(3)
    assert debiaser(torch.empty(0, 3)).shape == (0, 3)
    assert torch.equal(debiaser.prior, torch.full((3,), 1 / 3))
    debiaser = Debiaser(3).double()
    assert debiaser.prior.dtype == torch.float64
    assert debiaser(logits(4, 3).double()).dtype == torch.float64
    flat, stacked, values = Debiaser(3), Debiaser(3), logits(8, 3)
    flat(values)
    assert stacked(values.view(2, 4, 3)).shape == (2, 4, 3)
    torch.testing.assert_close(stacked.prior, flat.prior)


def test_a_class_whose_prior_vanishes_gives_finite_numbers():
    debiaser = Debiaser(3, strength=2.0, momentum=0.0)
    for _ in range(3):
        debiaser(torch.tensor([[200.0, 0.0, -200.0]]))
    assert debiaser.prior[2] == 0
    assert debiaser(logits(4, 3)).isfinite().all()
    debiaser(torch.tensor([[200.0, 0.0, -200.0]]))
    assert debiaser.margin(logits(4, 3)).isfinite().all()
    loss = F.cross_entropy(debiaser.margin(logits(4, 3)), torch.tensor([2, 2, 2, 2]))
    assert loss.isfinite()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_model_cast_to_half_keeps_an_exact_prior(dtype):
    debiaser = Debiaser(3)
    debiaser(logits(4, 3))
    exact = debiaser.prior.clone()
    torch.nn.ModuleList([debiaser]).to(dtype)
    assert debiaser.prior.dtype == torch.float32
    assert torch.equal(debiaser.prior, exact)
    assert "prior" in debiaser.state_dict()


@pytest.mark.parametrize("num_classes", [1, 0, 2.5, 10.0, "10", True])
def test_a_number_of_classes_is_a_whole_number_above_one(num_classes):
    with pytest.raises(ValueError, match="num_classes is"):
        Debiaser(num_classes)


@pytest.mark.parametrize("shape", [(3,), (4, 5), (3, 4)])
@pytest.mark.parametrize("method", ["__call__", "margin"])
def test_wrong_shapes_teach(shape, method):
    with pytest.raises(ValueError, match=r"expected \(batch, 3\).*num_classes=3"):
        getattr(Debiaser(3), method)(torch.zeros(shape))


@pytest.mark.parametrize(("logits", "word"), [(torch.zeros(4, 3).long(), "int64"), (torch.ones(4, 3).numpy(), "array")])
def test_labels_and_arrays_instead_of_logits_teach(logits, word):
    with pytest.raises(TypeError, match=word):
        Debiaser(3)(logits)
