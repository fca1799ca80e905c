"""Several corrections as one: each in its places, settings of all of them, and pairs without meaning refused."""

import pytest
import torch
from torch import nn

from debiaspl.algorithms import ACR, MixMatch, Supervised
from debiaspl.debias import Debiaser, DistributionAlignment, LogitAdjustment
from debiaspl.training.parts import build, settings_of
from debiaspl.training.settings import settings
from tests.training.tiny import EAGER, changed

COUNTS = (50, 20, 8, 2)
KNOWN = {"num_classes": 4, "class_counts": COUNTS}
LABELS = torch.arange(12) % 4


def logits(seed: int) -> torch.Tensor:
    return 2 * torch.randn(12, 4, generator=torch.Generator().manual_seed(seed))


def test_corrections_of_different_places_are_each_in_their_place_bit_for_bit():
    both = build("correction", "alignment+logit-adjustment", {"target": "uniform", "tau": 0.7}, **KNOWN)
    labels, losses = DistributionAlignment(COUNTS, "uniform"), LogitAdjustment(COUNTS, 0.7)
    for seed in range(4):
        assert torch.equal(both(logits(seed)), labels(logits(seed)))
        assert torch.equal(both.margin(logits(seed), LABELS), losses.margin(logits(seed), LABELS))
        assert torch.equal(both.labeled_margin(logits(seed), LABELS), losses.labeled_margin(logits(seed), LABELS))
    assert torch.equal(both.prior, labels.prior)
    head = nn.Linear(3, 4)
    assert both.classifier(head, torch.ones(3)) is head
    assert both.places() == {"labels", "unlabeled loss", "labeled loss"}
    both = build("correction", "debiaser+logit-adjustment", {"margin_strength": 0.0, "strength": 0.6}, **KNOWN)
    alone, losses = Debiaser(4, strength=0.6), LogitAdjustment(COUNTS)
    assert torch.equal(both(logits(0)), alone(logits(0)))
    assert torch.equal(both(logits(1)), alone(logits(1)))
    assert torch.equal(both.margin(logits(2)), losses.margin(logits(2)))


def test_a_batch_in_parts_is_learned_from_once():
    both, whole = (build("correction", "alignment+tau-norm", {}, **KNOWN) for _ in range(2))
    both.hold()
    for part in logits(0).chunk(3):
        both.learn(part)
    both.release()
    whole.learn(logits(0))
    torch.testing.assert_close(both.prior, whole.prior)


def test_settings_of_all_parts_can_be_set_and_those_of_one_name_say_whose_they_are():
    recipe = changed(EAGER, "correction=logit-adjustment+tau-norm", "tau_norm_tau=0.3", "logit_adjustment_tau=0.9")
    made = recipe.correction.build("correction", **KNOWN)
    assert made.parts["tau-norm"].tau == 0.3
    assert made.parts["logit-adjustment"].tau == 0.9
    texts = {one.name: one.help for one in settings(recipe) if one.part == "correction"}
    assert all(texts[name] for name in ("tau_norm_tau", "logit_adjustment_tau"))
    assert set(settings_of("correction", "alignment+logit-adjustment")) == {"target", "momentum", "tau"}
    with pytest.raises(ValueError, match=r"'correction.tau'. Write logit_adjustment_tau or tau_norm_tau"):
        changed(recipe, "correction.tau=0.5")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("debiaser+alignment", "act on the labels"),
        ("debiaser+logit-adjustment", "act on the unlabeled loss"),
        ("logit-adjustment+ldam", "labeled loss and on the unlabeled loss"),
        ("logit-adjustment+logit-adjustment-posthoc", "twice"),
        ("alignment+none", "nothing"),
        ("alignment+alignment", "twice"),
        ("alignment+mixup", "causal-norm"),
    ],
)
def test_a_pair_without_meaning_is_refused(name, word):
    with pytest.raises(ValueError, match=word):
        build("correction", name, {}, **KNOWN)


@pytest.mark.parametrize(
    ("algorithm", "name", "part"),
    [
        (Supervised, "alignment+tau-norm", "DistributionAlignment"),
        (MixMatch, "alignment+ldam", "LDAM"),
        (lambda correction: ACR(4, 3, COUNTS, correction), "alignment+logit-adjustment", "LogitAdjustment"),
    ],
)
def test_a_part_that_does_not_go_with_the_algorithm_is_named(algorithm, name, part):
    with pytest.raises(ValueError, match=part):
        algorithm(build("correction", name, {}, **KNOWN))
