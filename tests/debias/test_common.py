"""What all corrections have in common."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from debiaspl.debias import CORRECTIONS, Correction
from debiaspl.debias.correction import PLACES
from debiaspl.training.parts import build
from tests.debias.test_traits import CLASSES, LABELS, NAMES, UNEVEN, logits, made

ALL = [*NAMES, "alignment+logit-adjustment"]
NEUTRAL: dict[str, dict[str, Any]] = {
    "debiaser": {"strength": 0.0},
    "logit-adjustment": {"tau": 0.0},
    "logit-adjustment-posthoc": {"tau": 0.0},
    "ldam": {"max_margin": 0.0},
    "ldam-drw": {"max_margin": 0.0, "beta": 0.0},
    "tau-norm": {"tau": 0.0, "keep_bias": True},
}
"""Settings with which a correction changes nothing."""


def results(correction: Correction, values: Tensor) -> dict[str, Tensor]:
    """What it makes of logits, by the place where it acts."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        head = nn.Linear(5, CLASSES)
    before = deepcopy(head.state_dict())
    final = correction.classifier(head, torch.arange(5.0))
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())  # it stays as it was
    return {
        "labels": correction.probabilities(values),
        "unlabeled loss": correction.margin(values, LABELS),
        "labeled loss": correction.labeled_margin(values, LABELS),
        "classifier": torch.cat([final.weight.flatten(), final.bias]).detach(),
    }


@pytest.mark.parametrize("name", ALL)
def test_it_acts_where_it_says_and_nowhere_else(name):
    found, plain = results(made(name, UNEVEN), logits()), results(Correction(), logits())
    changed = {place for place in PLACES if not torch.equal(found[place], plain[place])}
    assert changed <= made(name, UNEVEN).places()
    assert changed


@pytest.mark.parametrize("name", NEUTRAL)
def test_with_neutral_settings_it_changes_no_bit(name):
    correction = build("correction", name, NEUTRAL[name], num_classes=CLASSES, class_counts=UNEVEN)
    correction.learn(logits(1))
    found, plain = results(correction, logits()), results(Correction(), logits())
    assert all(torch.equal(found[place], plain[place]) for place in PLACES)


@pytest.mark.parametrize("name", ALL)
def test_labels_have_no_gradient_and_margins_pass_it_on(name):
    correction, values = made(name, UNEVEN), logits().requires_grad_()
    assert not correction(values).requires_grad
    assert not any(value.requires_grad for value in [*correction.buffers(), *correction.parameters()])
    for margin in (correction.margin(values, LABELS), correction.labeled_margin(values, LABELS)):
        (gradient,) = torch.autograd.grad(margin.sum(), values)
        assert torch.equal(gradient, torch.ones_like(values))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ALL)
def test_half_precision_is_computed_in_float32(name, dtype):
    correction, values = made(name, UNEVEN), logits().to(dtype)
    half, whole = results(correction, values), results(correction, values.float())
    assert all(half[place].dtype == torch.float32 and torch.equal(half[place], whole[place]) for place in PLACES)
    one, other = made(name, UNEVEN), made(name, UNEVEN)
    one.learn(values)
    other.learn(values.float())
    assert all(torch.equal(value, other.state_dict()[key]) for key, value in one.state_dict().items())


@pytest.mark.parametrize("name", ALL)
def test_its_state_is_all_that_it_has_learned_and_in_eval_mode_it_learns_nothing(name):
    one, other = made(name, UNEVEN), made(name, UNEVEN, learned=False)
    other.load_state_dict(deepcopy(one.state_dict()))
    for seed in range(3):
        assert torch.equal(one(logits(seed)), other(logits(seed)))
    before = deepcopy(one.eval().state_dict())
    one(logits(9))
    assert all(torch.equal(value, before[key]) for key, value in one.state_dict().items())


@pytest.mark.parametrize("name", NAMES)
def test_the_first_line_about_it_which_is_listed_is_a_sentence(name):
    assert (CORRECTIONS[name].__doc__ or "").partition("\n")[0].endswith(".")


NAN = float("nan")
WRONG: dict[str, dict[str, tuple[Any, ...]]] = {
    "debiaser": {
        "strength": (-0.1, NAN),
        "labeled_strength": (-1.0,),
        "margin_strength": (-1.0,),
        "momentum": (1.0, -0.5, NAN),
        "target": ("balanced", "0.5,0.5", (1, 1, 1, -1), (0, 0, 0, 0), (1, 1, 1, NAN)),
        "count_threshold": (2.0,),
    },
    "alignment": {"target": ("balanced", "0.5,0.5", (1, 1, 1, -1), (0, 0, 0, 0), (1, 1, 1, NAN)), "momentum": (1.0,)},
    "logit-adjustment": {"tau": (-1.0, NAN)},
    "logit-adjustment-posthoc": {"tau": (-1.0,)},
    "ldam": {"max_margin": (-0.5,), "scale": (0.0,)},
    "ldam-drw": {"begin": (2.0,), "beta": (1.0,)},
    "simpro": {"tau": (-1.0,), "count_threshold": (2.0,), "unlabeled_ratio": (-1.0,)},
    "cdmad": {"begin": (2.0,), "colour": (3.0,)},
    "tau-norm": {"tau": (-0.1, float("inf"))},
    "causal-norm": {"alpha": (-1.0,)},
}


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [(name, key, value) for name, wrong in WRONG.items() for key, values in wrong.items() for value in values],
)
def test_wrong_settings_are_refused_by_name(name, setting, value):
    with pytest.raises(ValueError, match=rf"{setting} is "):
        build("correction", name, {setting: value}, num_classes=CLASSES, class_counts=UNEVEN)


@pytest.mark.parametrize(
    "name", ["alignment", "logit-adjustment", "logit-adjustment-posthoc", "ldam", "ldam-drw", "simpro"]
)
@pytest.mark.parametrize("counts", [(3, 0, 2, 0), (3,)])
def test_counts_without_a_label_of_some_class_are_refused(name, counts):
    with pytest.raises(ValueError, match=r"classes 1, 3\.|num_classes is 1|at least 2 classes"):
        CORRECTIONS[name](class_counts=counts)
