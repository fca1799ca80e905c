"""SimPro: two class distributions that are estimated from confident labels."""

import torch

from debiaspl.debias import SimPro
from tests.reference import simpro as twin

COUNTS = (40, 20, 8, 4)
KNOWN = [count / sum(COUNTS) for count in COUNTS]


def logits(seed: int) -> torch.Tensor:
    drawn = 3 * torch.randn(20, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn + torch.tensor([1.0, 0.0, 0.0, 2.0])


def test_steps_equal_the_slow_twin():
    correction = SimPro(COUNTS, tau=1.5, momentum=0.8, count_threshold=0.9, unlabeled_ratio=2.0)
    prior, joint = [0.25] * 4, KNOWN
    for seed in range(5):
        weak = logits(seed)
        expected = torch.tensor(twin.labels(weak.tolist(), prior, 1.5), dtype=torch.float64)
        torch.testing.assert_close(correction(weak), expected, atol=1e-5, rtol=1e-4)
        prior, joint = twin.moved(weak.tolist(), prior, joint, KNOWN, 1.5, 0.8, 0.9, 2.0)
        torch.testing.assert_close(correction.prior, torch.tensor(prior), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(correction.joint, torch.tensor(joint), atol=1e-5, rtol=1e-4)
        expected = torch.tensor([twin.adjusted(row, joint, 1.5) for row in weak.tolist()], dtype=torch.float64)
        torch.testing.assert_close(correction.margin(weak), expected, atol=1e-4, rtol=1e-4)
        assert torch.equal(correction.labeled_margin(weak), correction.margin(weak))


def test_it_finds_other_shares_by_confident_labels_alone():
    """Logits of balanced classes, log p(x | y) of four Gaussians; unlabeled images have other shares."""
    generator = torch.Generator().manual_seed(0)
    true = torch.tensor([0.05, 0.15, 0.3, 0.5])
    correction = SimPro(COUNTS, momentum=0.95)
    for _ in range(300):
        label = torch.multinomial(true, 64, replacement=True, generator=generator)
        place = 3.5 * torch.eye(4)[label] + torch.randn(64, 4, generator=generator)
        correction(-torch.cdist(place, 3.5 * torch.eye(4)).square() / 2)
    torch.testing.assert_close(correction.prior, true, atol=0.06, rtol=0)
    correction = SimPro(COUNTS, count_threshold=1.0)
    before = {name: value.clone() for name, value in correction.state_dict().items()}
    correction(logits(0))
    correction(torch.full((3, 4), torch.nan))
    assert set(before) == {"prior", "joint"}
    assert all(torch.equal(value, before[name]) for name, value in correction.state_dict().items())
    assert correction.bfloat16().joint.dtype == torch.float32
