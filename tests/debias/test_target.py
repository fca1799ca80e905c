"""Debiasing towards other than equal shares."""

import copy

import pytest
import torch

from debiaspl.debias import Debiaser
from debiaspl.debias.debiaser import FEW
from debiaspl.training.parts import build
from tests.reference import paper, target as slow

COUNTS = (40, 20, 8, 4)
KNOWN = [count / sum(COUNTS) for count in COUNTS]
TRUE = [0.1, 0.2, 0.3, 0.4]
TARGETS = {"labels": KNOWN, "estimated": [0.25] * 4, "1,2,3,4": TRUE, (1, 2, 3, 4): TRUE}


def logits(seed: int, rows: int = 20) -> torch.Tensor:
    drawn = 3 * torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn + torch.tensor([1.0, 0.0, 0.0, 2.0])


def made(target: object = "estimated", **settings: float) -> Debiaser:
    return Debiaser(4, target=target, class_counts=COUNTS, momentum=0.8, **settings)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("strengths", [{}, {"strength": 0.7, "margin_strength": 0.4, "labeled_strength": 0.2}])
def test_steps_equal_the_slow_version(target, strengths):
    debiaser = made(target, count_threshold=0.9, **strengths).double()
    strength, margin, labeled = [*strengths.values()] or [1, 1, 1]
    prior, kept, estimate = [0.25] * 4, KNOWN, TARGETS[target]
    for seed in range(5):
        weak, estimated = logits(seed), target == "estimated"
        aim = slow.target(estimate, sum(COUNTS)) if estimated else estimate
        expected = [paper.softmax(slow.shifted(row, aim, strength)) for row in weak.tolist()]
        torch.testing.assert_close(debiaser.target, torch.tensor(aim, dtype=torch.float64), atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(debiaser(weak), torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=1e-5)
        prior = paper.moved_prior(prior, weak.tolist(), 0.8)
        kept = slow.moved(kept, weak.tolist(), aim, strength, 0.8, 0.9)
        if estimated:
            estimate = slow.moved(estimate, weak.tolist(), aim, strength, 0.8, 0.9)
        for buffer, values in ((debiaser.prior, prior), (debiaser.kept, kept)):
            torch.testing.assert_close(buffer, torch.tensor(values, dtype=torch.float64), atol=1e-6, rtol=1e-5)
        margins = weak + margin * torch.tensor(slow.margin(kept), dtype=torch.float64)
        torch.testing.assert_close(debiaser.margin(weak), margins, atol=1e-5, rtol=1e-5)
        margins = torch.tensor([slow.shifted(row, KNOWN, labeled) for row in weak.tolist()], dtype=torch.float64)
        torch.testing.assert_close(debiaser.labeled_margin(weak), margins, atol=1e-5, rtol=1e-5)


def test_where_a_target_acts_and_that_equal_shares_stay_the_paper_bit_for_bit():
    paper_, named = Debiaser(4), Debiaser(4, target="uniform", class_counts=COUNTS)
    for seed in range(3):
        assert torch.equal(paper_(logits(seed)), named(logits(seed)))
        assert torch.equal(paper_.margin(logits(seed)), named.margin(logits(seed)))
        assert torch.equal(named.labeled_margin(logits(seed)), logits(seed))
    assert list(named.state_dict()) == ["prior"]
    assert named.target.tolist() == [0.25] * 4
    assert not made().corrects_pseudo_labels_alone
    assert made(labeled_strength=0.0).corrects_pseudo_labels_alone
    assert made(strength=0.0).places() == frozenset()
    known = {"num_classes": 4, "class_counts": COUNTS}
    with pytest.raises(ValueError, match="twice"):
        build("correction", "debiaser+logit-adjustment-posthoc", {"target": "estimated"}, **known)
    kept = {"target": "estimated", "labeled_strength": 0.0, "margin_strength": 0.0}
    both = build("correction", "debiaser+logit-adjustment", kept, **known)
    assert torch.equal(both(logits(0)), made()(logits(0)))


def found(counts: tuple[int, ...]) -> torch.Tensor:
    """The estimate for four Gaussians, whose logits log p(x | y) say nothing of how frequent they are."""
    generator = torch.Generator().manual_seed(0)
    debiaser = Debiaser(4, momentum=0.95, target="estimated", class_counts=counts)
    for _ in range(300):
        label = torch.multinomial(torch.tensor(TRUE), 64, replacement=True, generator=generator)
        place = 3.5 * torch.eye(4)[label] + torch.randn(64, 4, generator=generator)
        debiaser(-torch.cdist(place, 3.5 * torch.eye(4)).square() / 2)
    return debiaser.target


def test_it_finds_shares_by_the_number_of_labels_and_one_of_nothing_has_finite_margins():
    many, few = found((900, 500, 300, 200)), found((5, 3, 1, 1))
    torch.testing.assert_close(many, torch.tensor(TRUE), atol=0.06, rtol=0)
    weight = 2.5 / (2.5 + FEW)
    torch.testing.assert_close(few - 0.25, weight * (torch.tensor(TRUE) - 0.25), atol=0.06, rtol=0)
    assert few.min() > many.min()
    debiaser = Debiaser(3, momentum=0.0, target="estimated", class_counts=(9, 9, 9))
    debiaser(torch.tensor([[200.0, 0.0, -200.0]]))
    assert debiaser.kept.tolist() == [1, 0, 0]
    assert debiaser.margin(torch.zeros(1, 3)).min() > -7
    assert debiaser.target.min() > 0.1


@pytest.mark.parametrize(
    ("seen", "used"),
    [([0.4, 0.3, 0.2, 0.1], KNOWN), ([0.2, 0.25, 0.3, 0.25], [0.2, 0.25, 0.3, 0.25]), (TRUE, TRUE)],
    ids=["a tail like that of the labels", "about equal", "reversed"],
)
def test_shares_of_a_graph_stay_and_are_those_of_the_labels_if_nearer_to_them_than_to_equal_ones(seen, used):
    debiaser = made(count_threshold=0.5)
    debiaser.expect(torch.tensor(seen))
    aim = torch.tensor(slow.target(used, sum(COUNTS)))
    for debiased in (debiaser, made(count_threshold=0.5)):
        debiased.load_state_dict(debiaser.state_dict())  # after a resume they stay too
        debiased(logits(1))
        torch.testing.assert_close(debiased.target, aim)
    for other in (Debiaser(4), made("labels")):
        before = copy.deepcopy(other.state_dict())
        other.expect(torch.tensor(seen))
        assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())


@pytest.mark.parametrize("bad", [torch.full((4, 4), torch.nan), torch.zeros(4, 4), torch.empty(0, 4)])
def test_without_confident_finite_labels_the_shares_stay(bad):
    debiaser = made()
    debiaser(logits(0))
    before = copy.deepcopy(debiaser.state_dict())
    debiaser(bad)
    assert set(before) == {"prior", "kept", "estimate", "expected"}
    assert all(torch.equal(debiaser.state_dict()[name], before[name]) for name in ("kept", "estimate"))
    assert debiaser.bfloat16().estimate.dtype == torch.float32


@pytest.mark.parametrize(("counts", "noun"), [(None, "counts"), ((3, 0, 2, 1), "target=uniform"), ((3, 2), "counts")])
def test_a_target_needs_labels_of_every_class(counts, noun):
    for target in ("labels", "estimated", (1, 2, 3, 4)):
        with pytest.raises(ValueError, match=noun):
            Debiaser(4, target=target, class_counts=counts)
    assert Debiaser(4, class_counts=counts).prior.tolist() == [0.25] * 4
